//! Merged histograms of rounds: percentiles, tails and bins.
//!
//! The histograms have three digits, so values are exact to 0.1 %. Quantiles are nearest-rank, as
//! in [`stats`](crate::stats).

/// Values of several rounds. Each round can have a weight, for a bootstrap.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// Distinct values of all rounds, ns, ascending.
    values: Vec<u64>,
    /// For each round: number of samples at most as large as the value at the same index.
    cumulative: Vec<Vec<u64>>,
}

impl Distribution {
    /// Merges the histograms of rounds: pairs of a value and its count, ascending.
    #[must_use]
    pub fn of(rounds: &[&[(u64, u64)]]) -> Self {
        let mut values: Vec<u64> = rounds.iter().flat_map(|round| round.iter().map(|(value, _)| *value)).collect();
        values.sort_unstable();
        values.dedup();
        let cumulate = |round: &&[(u64, u64)]| {
            let mut counts = vec![0; values.len()];
            for (value, count) in *round {
                if let Ok(at) = values.binary_search(value) {
                    counts[at] += count;
                }
            }
            let mut sum = 0_u64;
            for count in &mut counts {
                sum = sum.saturating_add(*count);
                *count = sum;
            }
            counts
        };
        let cumulative = rounds.iter().map(cumulate).collect();
        Self { values, cumulative }
    }

    /// Returns the number of samples of all rounds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.below(self.values.len())
    }

    /// Returns the number of samples with one of the first `values` values.
    fn below(&self, values: usize) -> u64 {
        match values.checked_sub(1) {
            Some(last) => self.cumulative.iter().map(|round| round[last]).sum(),
            None => 0,
        }
    }

    /// Returns the quantile `p` of all rounds, ns. Returns `None` if there are too few samples:
    /// fewer than one is expected above it.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let ones = vec![1; self.cumulative.len()];
        is_supported(self.count(), p).then(|| self.weighted_quantile(p, &ones)).filter(|value| value.is_finite())
    }

    /// Returns the quantile `p` of weighted rounds, ns; NaN if no sample counts.
    #[must_use]
    pub fn weighted_quantile(&self, p: f64, weights: &[u32]) -> f64 {
        let up_to = |at: usize| -> u64 {
            self.cumulative.iter().zip(weights).map(|(round, weight)| round[at] * u64::from(*weight)).sum()
        };
        let Some(last) = self.values.len().checked_sub(1) else { return f64::NAN };
        let total = up_to(last);
        if total == 0 {
            return f64::NAN;
        }
        // Rounding errors may put the product slightly above a whole number, which must not round
        // up.
        let rank = ((p * total as f64 - 1e-9).ceil() as u64).clamp(1, total);
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = usize::midpoint(low, high);
            if up_to(middle) >= rank { high = middle } else { low = middle + 1 }
        }
        self.values[low] as f64
    }

    /// Returns the smallest value, ns.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        self.values.first().copied()
    }

    /// Returns the largest value, ns.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.values.last().copied()
    }

    /// Returns the share of samples above each value: pairs of a value in ns and 1 - F. The last
    /// share is 0.
    #[must_use]
    pub fn tail(&self) -> Vec<(u64, f64)> {
        let total = self.count();
        let share = |(index, value): (usize, &u64)| (*value, (total - self.below(index + 1)) as f64 / total as f64);
        self.values.iter().enumerate().map(share).collect()
    }

    /// Returns the shares of samples between neighboring edges, ns. Edges ascend; a sample on an
    /// edge is in the bin above it.
    #[must_use]
    pub fn bins(&self, edges: &[f64]) -> Vec<f64> {
        let total = (self.count() as f64).max(1.0);
        let below = |edge: &f64| self.below(self.values.partition_point(|value| (*value as f64) < *edge));
        let counts: Vec<u64> = edges.iter().map(below).collect();
        counts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / total).collect()
    }
}

/// Reports whether `count` samples suffice for a quantile: at least one is expected above it.
#[must_use]
pub fn is_supported(count: u64, p: f64) -> bool {
    // 1 - p is not exact: 1000 * (1 - 0.999) is slightly below 1.
    count as f64 * (1.0 - p) >= 1.0 - 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hundred() -> Vec<(u64, u64)> {
        (1..=100).map(|value| (value, 1)).collect()
    }

    #[test]
    fn quantiles_of_merged_rounds_are_those_of_all_samples() {
        let (one, other) = (hundred(), vec![(50, 100), (200, 100)]);
        let both = Distribution::of(&[&one, &other]);
        assert_eq!((both.count(), both.min(), both.max()), (300, Some(1), Some(200)));
        assert_eq!(both.quantile(0.5), Some(50.0));
        assert_eq!(both.quantile(0.9), Some(200.0));
        assert_eq!(both.weighted_quantile(0.5, &[1, 0]), 50.0);
        assert_eq!(both.weighted_quantile(0.51, &[0, 1]), 200.0);
        assert_eq!(both.weighted_quantile(0.99, &[3, 0]), 99.0);
    }

    #[test]
    fn quantile_that_samples_cannot_support_is_none_and_not_the_maximum() {
        let of = Distribution::of(&[&[(7, 999)]]);
        assert_eq!((of.quantile(0.99), of.quantile(0.999)), (Some(7.0), None));
        assert_eq!(Distribution::of(&[&[(7, 1000)]]).quantile(0.999), Some(7.0));
        assert!(is_supported(1_000_000, 0.999999) && !is_supported(999_999, 0.999999));
    }

    #[test]
    fn tail_falls_from_all_samples_to_none() {
        let tail = Distribution::of(&[&hundred()]).tail();
        assert_eq!((tail[0], tail[98], tail[99]), ((1, 0.99), (99, 0.01), (100, 0.0)));
    }

    #[test]
    fn bins_have_all_samples_between_their_edges() {
        let of = Distribution::of(&[&hundred()]);
        assert_eq!(of.bins(&[1.0, 11.0, 51.0, 101.0]), [0.1, 0.4, 0.5]);
        assert_eq!(of.bins(&[500.0, 600.0]), [0.0]);
    }

    #[test]
    fn empty_distribution_has_no_quantile() {
        let empty = Distribution::of(&[]);
        assert_eq!((empty.quantile(0.5), empty.count(), empty.max()), (None, 0, None));
        assert!(empty.weighted_quantile(0.5, &[]).is_nan());
        assert!(empty.tail().is_empty());
        assert_eq!(Distribution::of(&[&[]]).bins(&[0.0, 1.0]), [0.0]);
    }
}
