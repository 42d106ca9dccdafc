//! One run: which samples arrived when.

use crate::error::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// The arrivals of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Samples that were written.
    pub sent: u64,
    /// How late the writer was at most, ns.
    pub late_ns: u64,
    period_ns: u64,
    /// `CLOCK_MONOTONIC` of the first arrival of each sample, by its number from 0.
    arrivals: BTreeMap<u64, u64>,
}

impl Series {
    /// From the `result` lines of publisher and subscriber.
    ///
    /// # Errors
    /// They are not of that form, or nothing arrived.
    pub fn parse(published: &Value, received: &Value, period_ns: u64) -> Result<Self> {
        let number = |line: &Value, key: &str| {
            let found = line[key].as_u64();
            found.ok_or_else(|| Error::Usage(format!("a process of the experiment gave no {key}: {line:.80}")))
        };
        let mut series = Self::new(number(published, "sent")?, number(published, "late_ns")?, period_ns);
        for pair in received["arrivals"].as_array().into_iter().flatten() {
            if let (Some(sample), Some(at_ns)) = (pair[0].as_u64(), pair[1].as_u64()) {
                series.arrived(sample, at_ns);
            }
        }
        if series.arrivals.is_empty() {
            return Err(Error::NoAnswer { what: "no sample arrived".to_owned() });
        }
        Ok(series)
    }

    fn new(sent: u64, late_ns: u64, period_ns: u64) -> Self {
        Self { sent, late_ns, period_ns, arrivals: BTreeMap::new() }
    }

    fn arrived(&mut self, sample: u64, at_ns: u64) {
        self.arrivals.entry(sample).or_insert(at_ns);
    }

    /// Samples that arrived.
    pub fn received(&self) -> u64 {
        self.arrivals.len() as u64
    }

    /// When sample 0 arrived, or would have if as punctual as the first that did.
    fn begin_ns(&self) -> u64 {
        self.arrivals.first_key_value().map_or(0, |(sample, at_ns)| at_ns.saturating_sub(sample * self.period_ns))
    }

    /// How much later each sample arrived than its distance from the first one; those that are earlier count as 0.
    pub fn normalised_ns(&self) -> Vec<u64> {
        let begin_ns = self.begin_ns();
        let late = |(sample, at_ns): (&u64, &u64)| at_ns.saturating_sub(begin_ns + sample * self.period_ns);
        self.arrivals.iter().map(late).collect()
    }

    /// The time that samples were due in, whole seconds, rounded up.
    pub fn span_seconds(&self) -> u64 {
        (self.sent * self.period_ns).div_ceil(1_000_000_000)
    }

    /// Samples that had arrived at the end of each second.
    pub fn cumulative(&self, seconds: u64) -> Vec<u64> {
        let begin_ns = self.begin_ns();
        let by = |second: u64| {
            let end_ns = begin_ns + second * 1_000_000_000;
            self.arrivals.values().filter(|at_ns| **at_ns < end_ns).count() as u64
        };
        (1..=seconds).map(by).collect()
    }

    /// The longest time without an arrival, ns.
    pub fn longest_gap_ns(&self) -> u64 {
        let mut times: Vec<u64> = self.arrivals.values().copied().collect();
        times.sort_unstable();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PERIOD_NS: u64 = 5_000_000;

    #[test]
    fn lost_samples_leave_a_gap_and_late_ones_a_latency() {
        let published = json!({ "ev": "result", "sent": 5, "late_ns": 7 });
        let at = |sample: u64, late_ns: u64| json!([sample, 1_000 + sample * PERIOD_NS + late_ns]);
        // Sample 2 is lost, 3 is late, 4 came twice.
        let received = json!({ "arrivals": [at(0, 0), at(1, 0), at(3, 900), at(4, 0), at(4, 5)] });
        let series = Series::parse(&published, &received, PERIOD_NS).expect("both lines are good");
        assert_eq!((series.sent, series.received(), series.late_ns), (5, 4, 7));
        assert_eq!(series.normalised_ns(), [0, 0, 900, 0]);
        assert_eq!(series.longest_gap_ns(), 2 * PERIOD_NS + 900);
        assert_eq!(series.cumulative(1), [4]);
    }

    #[test]
    fn cumulative_count_grows_by_the_arrivals_of_each_second() {
        let mut series = Series::new(600, 0, PERIOD_NS);
        // The samples of the second second come at its end.
        for sample in 0..600 {
            let due_ns = sample * PERIOD_NS;
            let is_held = (200..400).contains(&sample);
            series.arrived(sample, if is_held { 2_000_000_000 } else { due_ns });
        }
        assert_eq!(series.cumulative(3), [200, 200, 600]);
    }

    #[test]
    fn lines_of_another_form_are_refused() {
        Series::parse(&json!({ "sent": 1 }), &json!({}), 1).expect_err("no late_ns");
        Series::parse(&json!({ "sent": 1, "late_ns": 0 }), &json!({ "arrivals": [] }), 1).expect_err("nothing arrived");
    }
}
