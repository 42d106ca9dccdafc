//! One run at one reader: which samples arrived when.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The arrival of a sample. Times are of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival(
    /// Its number, from 0.
    pub u64,
    /// When it was written, ns.
    pub i64,
    /// When it arrived, ns.
    pub i64,
);

/// The arrivals of one run, in the order of their numbers. Times are ns since sample 0 arrived, or would have if it was as punctual as the
/// first that did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Samples that were written.
    pub sent: u64,
    /// Time from one sample to the next, ns.
    pub period_ns: u64,
    /// The first arrival of each sample.
    pub arrivals: Vec<Arrival>,
}

impl Arrival {
    /// From a line of a subscriber; `None` if it is about something else.
    pub fn parse(line: &Value) -> Option<Self> {
        let time = |key: &str| line[key].as_i64();
        (line["ev"] == "sample").then_some(Self(line["seq"].as_u64()?, time("stamp_ns")?, time("received_ns")?))
    }
}

impl Series {
    /// Of arrivals in any order, by any clock; those of numbers that were not sent do not count.
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

    /// When a sample is due to arrive, ns.
    fn due(&self, number: u64) -> i64 {
        i64::try_from(number * self.period_ns).unwrap_or(i64::MAX)
    }

    /// Samples that arrived.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.arrivals.len() as u64
    }

    /// The normalised latency of each sample that arrived, with its number, ns; negative if it came early.
    pub fn normalised(&self) -> impl Iterator<Item = (u64, i64)> {
        self.arrivals.iter().map(|Arrival(number, _, at)| (*number, at - self.due(*number)))
    }

    /// The time from writing to arrival of each sample that arrived, ns.
    pub fn one_way(&self) -> impl Iterator<Item = u64> {
        self.arrivals.iter().map(|Arrival(_, written, at)| u64::try_from(at - written).unwrap_or(0))
    }

    /// How much later than the most punctual one each sample that arrived was written, ns.
    #[must_use]
    pub fn writer_late(&self) -> Vec<u64> {
        let late = |Arrival(number, written, _): &Arrival| written - self.due(*number);
        let least = self.arrivals.iter().map(late).min().unwrap_or(0);
        self.arrivals.iter().map(|arrival| u64::try_from(late(arrival) - least).unwrap_or(0)).collect()
    }

    /// The time that samples were due in, whole seconds, rounded up.
    #[must_use]
    pub fn span_seconds(&self) -> u64 {
        (self.sent * self.period_ns).div_ceil(1_000_000_000)
    }

    /// Samples that had arrived at the end of each step of so many ns.
    #[must_use]
    pub fn cumulative(&self, step_ns: u64, steps: u64) -> Vec<u64> {
        let times = self.times();
        let by = |step: u64| {
            let end = i64::try_from(step * step_ns).unwrap_or(i64::MAX);
            times.partition_point(|at| *at < end) as u64
        };
        (1..=steps).map(by).collect()
    }

    /// The longest time without an arrival, ns.
    #[must_use]
    pub fn longest_gap_ns(&self) -> u64 {
        let gaps = self.times().windows(2).map(|pair| pair[1] - pair[0]).max();
        gaps.and_then(|gap| u64::try_from(gap).ok()).unwrap_or(0)
    }

    /// The numbers of the first and the last sample that did not arrive.
    #[must_use]
    pub fn lost_range(&self) -> Option<(u64, u64)> {
        let arrived: BTreeSet<u64> = self.arrivals.iter().map(|arrival| arrival.0).collect();
        let mut lost = (0..self.sent).filter(|number| !arrived.contains(number));
        let first = lost.next()?;
        Some((first, lost.next_back().unwrap_or(first)))
    }

    /// The time from the last arrival before the first lost sample to the first arrival of a sample after the last lost one, ns. Samples may
    /// arrive in between. `None` if no sample is lost, or if none arrives before or after those that are.
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

    /// The arrival of a sample that was written 100 ns late, and arrives 1 us after it was due and this much later.
    fn arrival(number: u64, late_ns: i64) -> Arrival {
        let due = 1_000_000 + (number * PERIOD_NS) as i64;
        Arrival(number, due + 100 * i64::from(number > 0), due + 1_000 + late_ns)
    }

    #[test]
    fn lost_samples_leave_a_gap_and_late_ones_a_latency() {
        // Sample 2 is lost, 3 is late, 4 came twice, 5 is early, 6 was not sent.
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
        // The samples of the second second come at its end.
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
        assert_eq!(Series::new(9, PERIOD_NS, &arrivals[..3]).outage_ns(), None, "it does not end");
    }

    #[test]
    fn first_sample_that_arrives_is_on_time() {
        let series = Series::new(9, PERIOD_NS, &[arrival(2, 70), arrival(3, 70)]);
        assert_eq!(series.normalised().collect::<Vec<_>>(), [(2, 0), (3, 0)]);
        assert_eq!((series.lost_range(), series.outage_ns()), (Some((0, 8)), None));
        assert_eq!(Series::new(9, PERIOD_NS, &[]).longest_gap_ns(), 0);
    }

    #[test]
    fn lines_about_something_else_are_no_arrivals() {
        let line = json!({ "ev": "sample", "id": "reader", "seq": 7, "stamp_ns": 1, "received_ns": 3 });
        assert_eq!(Arrival::parse(&line), Some(Arrival(7, 1, 3)));
        assert_eq!(Arrival::parse(&json!({ "ev": "matched", "current": 1 })), None);
        assert_eq!(Arrival::parse(&json!({ "ev": "sample", "valid": false })), None);
    }
}
