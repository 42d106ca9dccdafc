//! Arrival series of one run at one reader.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Arrival of a sample. All times are of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival(
    /// Sample number, from 0.
    pub u64,
    /// Write time, ns.
    pub i64,
    /// Arrival time, ns.
    pub i64,
);

/// Arrivals of one run, in the order of their numbers. Times are in ns since sample 0 arrived. If
/// it is lost, they count from its due arrival relative to the first sample that arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Number of samples written.
    pub sent: u64,
    /// Interval between two samples, ns.
    pub period_ns: u64,
    /// First arrival of each sample.
    pub arrivals: Vec<Arrival>,
}

impl Arrival {
    /// Parses a line of a subscriber; `None` if the line is not an arrival.
    pub fn parse(line: &Value) -> Option<Self> {
        let time = |key: &str| line[key].as_i64();
        (line["ev"] == "sample").then_some(Self(line["seq"].as_u64()?, time("stamp_ns")?, time("received_ns")?))
    }
}

impl Series {
    /// Creates a series from arrivals in any order, by any clock. Arrivals of samples that were not
    /// sent are ignored.
    #[must_use]
    pub fn new(sent: u64, period_ns: u64, arrivals: &[Arrival]) -> Self {
        let mut first = BTreeMap::new();
        for arrival in arrivals.iter().filter(|arrival| arrival.0 < sent) {
            first.entry(arrival.0).or_insert(*arrival);
        }
        let mut series = Self { sent, period_ns, arrivals: first.into_values().collect() };
        let begin = series.arrivals.first().map_or(0, |Arrival(number, _, at)| at - series.due(*number));
        for arrival in &mut series.arrivals {
            arrival.1 -= begin;
            arrival.2 -= begin;
        }
        series
    }

    /// Returns the due arrival time of a sample, ns.
    fn due(&self, number: u64) -> i64 {
        i64::try_from(number * self.period_ns).unwrap_or(i64::MAX)
    }

    /// Returns the number of samples that arrived.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.arrivals.len() as u64
    }

    /// Iterates over number and normalized latency of each sample that arrived, ns; negative if it
    /// arrived early.
    pub fn normalised(&self) -> impl Iterator<Item = (u64, i64)> {
        self.arrivals.iter().map(|Arrival(number, _, at)| (*number, at - self.due(*number)))
    }

    /// Iterates over the times from write to arrival, ns.
    pub fn one_way(&self) -> impl Iterator<Item = u64> {
        self.arrivals.iter().map(|Arrival(_, written, at)| u64::try_from(at - written).unwrap_or(0))
    }

    /// Returns the delay of each write relative to the most punctual one, ns.
    #[must_use]
    pub fn writer_late(&self) -> Vec<u64> {
        let late = |Arrival(number, written, _): &Arrival| written - self.due(*number);
        let least = self.arrivals.iter().map(late).min().unwrap_or(0);
        self.arrivals.iter().map(|arrival| u64::try_from(late(arrival) - least).unwrap_or(0)).collect()
    }

    /// Returns the time in which samples were due, whole seconds, rounded up.
    #[must_use]
    pub fn span_seconds(&self) -> u64 {
        (self.sent * self.period_ns).div_ceil(1_000_000_000)
    }

    /// Returns the number of samples that had arrived at the end of each step of `step_ns`.
    #[must_use]
    pub fn cumulative(&self, step_ns: u64, steps: u64) -> Vec<u64> {
        let times = self.times();
        let by = |step: u64| {
            let end = i64::try_from(step * step_ns).unwrap_or(i64::MAX);
            times.partition_point(|at| *at < end) as u64
        };
        (1..=steps).map(by).collect()
    }

    /// Returns the longest interval without an arrival, ns.
    #[must_use]
    pub fn longest_gap_ns(&self) -> u64 {
        let gaps = self.times().windows(2).map(|pair| pair[1] - pair[0]).max();
        gaps.and_then(|gap| u64::try_from(gap).ok()).unwrap_or(0)
    }

    /// Returns the numbers of the first and of the last sample that did not arrive.
    #[must_use]
    pub fn lost_range(&self) -> Option<(u64, u64)> {
        let arrived: BTreeSet<u64> = self.arrivals.iter().map(|arrival| arrival.0).collect();
        let mut lost = (0..self.sent).filter(|number| !arrived.contains(number));
        let first = lost.next()?;
        Some((first, lost.next_back().unwrap_or(first)))
    }

    /// Returns the time from the last arrival before the first lost sample to the first arrival of
    /// a sample after the last lost one, ns. Samples may arrive in between. Returns `None` if no
    /// sample is lost, or if none arrives before or after the lost ones.
    #[must_use]
    pub fn outage_ns(&self) -> Option<u64> {
        let (first, last) = self.lost_range()?;
        let before = self.arrivals.iter().filter(|arrival| arrival.0 < first).map(|arrival| arrival.2).max()?;
        let after = self.arrivals.iter().filter(|arrival| arrival.0 > last).map(|arrival| arrival.2).min()?;
        Some(u64::try_from(after - before).unwrap_or(0))
    }

    fn times(&self) -> Vec<i64> {
        let mut times: Vec<i64> = self.arrivals.iter().map(|arrival| arrival.2).collect();
        times.sort_unstable();
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PERIOD_NS: u64 = 5_000_000;

    /// Returns the arrival of a sample that was written 100 ns late, and arrives 1 us and `late_ns`
    /// after it was due.
    fn arrival(number: u64, late_ns: i64) -> Arrival {
        let due = 1_000_000 + (number * PERIOD_NS) as i64;
        Arrival(number, due + 100 * i64::from(number > 0), due + 1_000 + late_ns)
    }

    #[test]
    fn lost_samples_leave_a_gap_and_late_ones_a_latency() {
        // Sample 2 is lost, 3 is late, 4 arrives twice, 5 is early, 6 was not sent.
        let arrivals = [(0, 0), (1, 0), (3, 900), (4, 0), (4, 5), (5, -40), (6, 0)].map(|(n, late)| arrival(n, late));
        let series = Series::new(6, PERIOD_NS, &arrivals);
        assert_eq!((series.sent, series.received()), (6, 5));
        assert_eq!(series.normalised().collect::<Vec<_>>(), [(0, 0), (1, 0), (3, 900), (4, 0), (5, -40)]);
        assert_eq!(series.one_way().collect::<Vec<_>>(), [1_000, 900, 1_800, 900, 860]);
        assert_eq!(series.writer_late(), [0, 100, 100, 100, 100]);
        assert_eq!(series.longest_gap_ns(), 2 * PERIOD_NS + 900);
        assert_eq!((series.lost_range(), series.outage_ns()), (Some((2, 2)), Some(2 * PERIOD_NS + 900)));
        assert_eq!(series.cumulative(1_000_000_000, 1), [5]);
    }

    #[test]
    fn cumulative_count_grows_by_the_arrivals_of_each_step() {
        // The samples of the second second arrive at its end.
        let held = |number: u64| if (200..400).contains(&number) { 2_000_000_000 } else { (number * PERIOD_NS) as i64 };
        let arrivals: Vec<_> = (0..600).map(|number| Arrival(number, 0, held(number))).collect();
        let series = Series::new(600, PERIOD_NS, &arrivals);
        assert_eq!(series.cumulative(1_000_000_000, 3), [200, 200, 600]);
        assert_eq!((series.lost_range(), series.outage_ns()), (None, None));
    }

    #[test]
    fn outage_covers_all_losses_though_a_sample_arrives_between_them() {
        let arrivals = [0, 1, 4, 7, 8].map(|number| arrival(number, 0));
        let series = Series::new(9, PERIOD_NS, &arrivals);
        assert_eq!(series.longest_gap_ns(), 3 * PERIOD_NS);
        assert_eq!((series.lost_range(), series.outage_ns()), (Some((2, 6)), Some(6 * PERIOD_NS)));
        assert_eq!(Series::new(9, PERIOD_NS, &arrivals[..3]).outage_ns(), None, "the outage does not end");
    }

    #[test]
    fn first_sample_that_arrives_is_on_time() {
        let series = Series::new(9, PERIOD_NS, &[arrival(2, 70), arrival(3, 70)]);
        assert_eq!(series.normalised().collect::<Vec<_>>(), [(2, 0), (3, 0)]);
        assert_eq!((series.lost_range(), series.outage_ns()), (Some((0, 8)), None));
        assert_eq!(Series::new(9, PERIOD_NS, &[]).longest_gap_ns(), 0);
    }

    #[test]
    fn lines_other_than_samples_are_no_arrivals() {
        let line = json!({ "ev": "sample", "id": "reader", "seq": 7, "stamp_ns": 1, "received_ns": 3 });
        assert_eq!(Arrival::parse(&line), Some(Arrival(7, 1, 3)));
        assert_eq!(Arrival::parse(&json!({ "ev": "matched", "current": 1 })), None);
        assert_eq!(Arrival::parse(&json!({ "ev": "sample", "valid": false })), None);
    }
}
