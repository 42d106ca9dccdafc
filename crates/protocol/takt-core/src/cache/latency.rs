//! Latency monitoring of a reader's samples, against its E2E_LATENCY and the computed bound.
//!
//! The age of a sample is the time from its source timestamp until it can be read here. It is
//! compared with the reader's E2E_LATENCY (`rt.e2e_ns`, see [`takt_wire::qos::Contract`]) and with
//! the bound of the timing analysis.
//!
//! Each age includes the offset between the wall clocks of both ends. A timestamp in the future
//! counts as age 0. Samples written before the reader was enabled are history and do not count.

use core::time::Duration;
use takt_schedule::Histogram;
use takt_wire::Timestamp;

/// Configured limits for the ages of a reader's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyTerms {
    /// Largest permitted age in nanoseconds, if the reader has no E2E_LATENCY.
    pub limit_ns: Option<u64>,
    /// Bound computed by the timing analysis, in nanoseconds.
    pub bound_ns: Option<u64>,
}

/// Status of a reader's E2E_LATENCY and of its computed bound. Specific to Takt; the OMG defines
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyExceededStatus {
    /// Limit: the reader's E2E_LATENCY, else the limit of its topic's flow.
    pub limit: Option<Duration>,
    /// Samples older than the limit.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Bound of its topic's flow, from the system file.
    pub bound: Option<Duration>,
    /// Samples older than the bound: the times in the file or its assumptions do not hold.
    pub above_bound_count: u64,
    /// Change of `above_bound_count` since the status was last read.
    pub above_bound_count_change: u64,
    /// Age of the last sample that exceeded limit or bound.
    pub last: Duration,
    /// Ages of all samples; the worst case is the maximum.
    pub ages: Histogram,
}

#[derive(Debug)]
pub(crate) struct LatencyMonitor {
    since: Timestamp,
    has_changed: bool,
    terms: LatencyTerms,
    status: LatencyExceededStatus,
}

impl LatencyMonitor {
    /// Returns a monitor; `None` without limit and bound.
    pub(crate) fn new(terms: LatencyTerms, since: Timestamp) -> Option<Self> {
        terms.limit_ns.or(terms.bound_ns)?;
        let [limit, bound] = [terms.limit_ns, terms.bound_ns].map(|most_ns| most_ns.map(Duration::from_nanos));
        let status = LatencyExceededStatus { limit, bound, ..LatencyExceededStatus::default() };
        Some(Self { since, has_changed: false, terms, status })
    }

    /// Records a sample that has become readable.
    #[inline]
    pub(crate) fn arrived(&mut self, written: Timestamp, now: Timestamp) {
        if written.is_invalid() || written < self.since {
            return;
        }
        let age_ns = now.to_nanos().saturating_sub(written.to_nanos()).max(0).cast_unsigned();
        let status = &mut self.status;
        status.ages.record(age_ns);
        let exceeds = |most_ns: Option<u64>| u64::from(most_ns.is_some_and(|most_ns| age_ns > most_ns));
        let (limit, bound) = (exceeds(self.terms.limit_ns), exceeds(self.terms.bound_ns));
        status.total_count += limit;
        status.total_count_change += limit;
        status.above_bound_count += bound;
        status.above_bound_count_change += bound;
        if limit + bound > 0 {
            status.last = Duration::from_nanos(age_ns);
            self.has_changed = true;
        }
    }

    /// Returns the largest age in nanoseconds; 0 without a sample.
    pub(crate) fn worst_ns(&self) -> u64 {
        self.status.ages.max_ns()
    }

    /// Takes whether a sample exceeded limit or bound since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.has_changed)
    }

    pub(crate) fn read(&mut self) -> LatencyExceededStatus {
        let status = self.status.clone();
        (self.status.total_count_change, self.status.above_bound_count_change) = (0, 0);
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Timestamp = Timestamp { seconds: 100, fraction: 0 };

    #[test]
    fn limit_and_bound_are_counted_separately() {
        let terms = LatencyTerms { limit_ns: Some(3_000_000_000), bound_ns: Some(1_000_000_000) };
        let mut monitor = LatencyMonitor::new(terms, SINCE).expect("there is something to compare with");
        let mut arrived = |age: u32| {
            monitor.arrived(SINCE, Timestamp { seconds: 100 + age, fraction: 0 });
            let changed = monitor.take_changed();
            let status = monitor.read();
            let changes = (status.above_bound_count_change, status.total_count_change);
            (changed, changes, (status.above_bound_count, status.total_count), status.last.as_secs())
        };
        assert_eq!(arrived(1), (false, (0, 0), (0, 0), 0));
        assert_eq!(arrived(2), (true, (1, 0), (1, 0), 2));
        assert_eq!(arrived(4), (true, (1, 1), (2, 1), 4));
        assert_eq!(arrived(0), (false, (0, 0), (2, 1), 4));
        assert_eq!((monitor.read().ages.count(), monitor.read().ages.max_ns()), (4, 4_000_000_000));
    }

    #[test]
    fn ages_are_not_compared_without_limit_and_bound() {
        assert!(LatencyMonitor::new(LatencyTerms::default(), SINCE).is_none());
        let terms = LatencyTerms { bound_ns: Some(5), ..LatencyTerms::default() };
        assert!(LatencyMonitor::new(terms, SINCE).is_some());
    }
}
