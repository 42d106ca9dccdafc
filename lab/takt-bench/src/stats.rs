//! Latency statistics: exact summaries and constant-memory histograms.
//!
//! Quantiles are nearest-rank: the p-quantile of n ordered values is the value with rank ceil(p n).
//! From recorded arrays they are exact. From a [`Histogram`], which holds any number of values in
//! constant memory, they are exact to 0.1 %. Inputs are nanoseconds, outputs microseconds.

use serde::{Deserialize, Serialize};

/// Summary of a set of latencies, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// Minimum.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p999: f64,
    /// 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p9999: f64,
    /// 99.999th percentile.
    #[serde(rename = "p99.999", default)]
    pub p99999: f64,
    /// 99.9999th percentile.
    #[serde(rename = "p99.9999", default)]
    pub p999999: f64,
    /// Maximum.
    pub max: f64,
    /// Standard deviation of the values (of the population, not of a sample).
    pub stdev: f64,
}

impl Summary {
    /// Summarizes recorded nanoseconds exactly, and sorts them. Returns `None` if there are none.
    #[must_use]
    pub fn of(values_ns: &mut [u64]) -> Option<Self> {
        values_ns.sort_unstable();
        let (min, max) = (*values_ns.first()?, *values_ns.last()?);
        let count = values_ns.len() as f64;
        let mean = values_ns.iter().map(|&v| v as f64).sum::<f64>() / count;
        let square = values_ns.iter().map(|&v| (v as f64 - mean).powi(2));
        let quantile = |p: f64| microseconds(values_ns[rank(values_ns.len(), p)] as f64);
        Some(Self {
            count: values_ns.len() as u64,
            min: microseconds(min as f64),
            mean: microseconds(mean),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            p9999: quantile(0.9999),
            p99999: quantile(0.99999),
            p999999: quantile(0.999999),
            max: microseconds(max as f64),
            stdev: microseconds((square.sum::<f64>() / count).sqrt()),
        })
    }
}

/// Returns the index of the nearest-rank quantile `p` in `len` ordered values; `len` is not 0.
fn rank(len: usize, p: f64) -> usize {
    // Rounding errors may put the product slightly above a whole number (0.9 * 10), which must not
    // round up.
    let rank = (p * len as f64 - 1e-9).ceil() as usize;
    rank.clamp(1, len) - 1
}

/// Converts to microseconds, rounded to whole nanoseconds.
fn microseconds(ns: f64) -> f64 {
    ns.round() / 1e3
}

/// Returns the median of a few figures, the mean of the middle two if their number is even; 0 if
/// there are none.
#[must_use]
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Returns minimum and maximum of a few figures; zeroes if there are none.
#[must_use]
pub fn spread(figures: &[f64]) -> (f64, f64) {
    figures
        .iter()
        .fold(None, |range, &f| match range {
            None => Some((f, f)),
            Some((lo, hi)) => Some((f64::min(lo, f), f64::max(hi, f))),
        })
        .unwrap_or((0.0, 0.0))
}

/// Histogram of any number of latencies; recording neither allocates nor fails. Values above 100 s
/// count as 100 s.
#[derive(Clone, Debug)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Histogram {
    const NS_MAX: u64 = 100_000_000_000;

    /// Creates a histogram with three significant digits over 1 ns to 100 s: about 225 KiB.
    #[must_use]
    pub fn new() -> Self {
        let histogram = hdrhistogram::Histogram::new_with_bounds(1, Self::NS_MAX, 3)
            .expect("the bounds are in order and three digits are within one to five");
        Self(histogram)
    }

    /// Records one latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns.min(Self::NS_MAX));
    }

    /// Returns the recorded values as pairs of nanoseconds, to three digits, and count; ascending.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect()
    }

    /// Adds the [`buckets`](Self::buckets) of another histogram.
    pub fn add(&mut self, buckets: &[(u64, u64)]) {
        for &(latency_ns, count) in buckets {
            self.0.saturating_record_n(latency_ns.min(Self::NS_MAX), count);
        }
    }

    /// Returns the summary of all recorded values; `None` if there are none.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let histogram = &self.0;
        if histogram.is_empty() {
            return None;
        }
        let quantile = |p: f64| microseconds(histogram.value_at_quantile(p) as f64);
        Some(Summary {
            count: histogram.len(),
            min: microseconds(histogram.min() as f64),
            mean: microseconds(histogram.mean()),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            p9999: quantile(0.9999),
            p99999: quantile(0.99999),
            p999999: quantile(0.999999),
            max: microseconds(histogram.max() as f64),
            stdev: microseconds(histogram.stdev()),
        })
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_agrees_with_values_computed_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9 us: mean 5, population deviation 2, rank ceil(0.5 * 8) = 4 -> 4.
        let mut values = [9, 4, 5, 2, 4, 7, 5, 4].map(|us| us * 1000);
        let summary = Summary::of(&mut values).unwrap();
        assert_eq!(summary.count, 8);
        assert_eq!((summary.min, summary.max), (2.0, 9.0));
        assert_eq!((summary.mean, summary.stdev), (5.0, 2.0));
        assert_eq!((summary.p50, summary.p90, summary.p99), (4.0, 9.0, 9.0));
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let mut values: Vec<u64> = (1..=10_000).rev().map(|us| us * 1000).collect();
        let summary = Summary::of(&mut values).unwrap();
        assert_eq!(summary.p50, 5000.0);
        assert_eq!(summary.p90, 9000.0);
        assert_eq!(summary.p99, 9900.0);
        assert_eq!(summary.p999, 9990.0);
        assert_eq!(summary.p9999, 9999.0);
        assert_eq!(summary.mean, 5000.5);
    }

    #[test]
    fn rank_of_exact_products_is_not_rounded_up_twice() {
        assert_eq!(rank(10, 0.9), 8);
        assert_eq!(rank(1, 0.5), 0);
        assert_eq!(rank(3, 1.0), 2);
        assert_eq!(rank(1000, 0.999), 998);
    }

    #[test]
    fn all_quantiles_of_one_value_are_that_value() {
        let summary = Summary::of(&mut [4_321]).unwrap();
        assert_eq!((summary.min, summary.p9999, summary.stdev), (4.321, 4.321, 0.0));
    }

    #[test]
    fn no_values_have_no_summary() {
        assert_eq!(Summary::of(&mut []), None);
        assert_eq!(Histogram::new().summary(), None);
    }

    #[test]
    fn histogram_agrees_with_the_exact_summary_to_a_thousandth() {
        let mut values: Vec<u64> = (0..50_000u64).map(|i| 3_000 + (i * i) % 90_001).collect();
        let mut histogram = Histogram::new();
        values.iter().for_each(|&v| histogram.record(v));
        let exact = Summary::of(&mut values).unwrap();
        let bucketed = histogram.summary().unwrap();
        assert_eq!(bucketed.count, exact.count);
        for (a, b) in [
            (bucketed.min, exact.min),
            (bucketed.mean, exact.mean),
            (bucketed.p50, exact.p50),
            (bucketed.p99, exact.p99),
            (bucketed.p9999, exact.p9999),
            (bucketed.max, exact.max),
            (bucketed.stdev, exact.stdev),
        ] {
            assert!((a - b).abs() <= 0.001 * b + 0.001, "{a} is not {b}");
        }
    }

    #[test]
    fn histogram_accepts_any_value() {
        let mut histogram = Histogram::new();
        histogram.record(0);
        histogram.record(u64::MAX);
        assert_eq!(histogram.summary().unwrap().count, 2);
    }

    #[test]
    fn histogram_is_rebuilt_from_its_buckets() {
        let (mut one, mut both) = (Histogram::new(), Histogram::new());
        (1..=1000).for_each(|us| one.record(us * 1000));
        both.add(&one.buckets());
        both.add(&[(5_000_000, 1000)]);
        let summary = both.summary().unwrap();
        assert_eq!(summary.count, 2000);
        assert!((summary.p50 - 1000.0).abs() <= 1.0 && (summary.max - 5000.0).abs() <= 5.0, "{summary:?}");
        assert!(summary.min <= 1.0 && summary.min > 0.99);
    }

    #[test]
    fn median_and_spread_of_rounds() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), (1.0, 3.0));
        assert_eq!(spread(&[]), (0.0, 0.0));
    }
}
