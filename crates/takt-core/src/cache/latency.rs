//! Compares the age of each sample, from the writer's time stamp to the moment in which the sample can be read here, with the reader's
//! E2E_LATENCY (`rt.e2e_ns`, see [`takt_wire::qos::Contract`]) and with what the timing analysis computed as a bound for it.
//!
//! Both ends' wall clocks are believed: what they differ by is in each age. A time stamp from the future counts as age 0. Samples
//! that were written before the reader was enabled are history, and do not count.

use takt_exec::Histogram;
use takt_wire::Timestamp;

/// What is known beforehand of how old a reader's samples may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyTerms {
    /// What they may be at most, in nanoseconds, where the reader has no E2E_LATENCY.
    pub limit_ns: Option<u64>,
    /// What the timing analysis says that they will be at most, in nanoseconds.
    pub bound_ns: Option<u64>,
}

/// What became of a reader's E2E_LATENCY, and of its computed bound. A Takt status; the OMG has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyExceededStatus {
    /// What was asked for in nanoseconds: the reader's E2E_LATENCY, else the limit of its topic's flow.
    pub limit_ns: Option<u64>,
    /// Samples that were older.
    pub total_count: u64,
    /// The same since the status was last read.
    pub total_count_change: u64,
    /// The bound of its topic's flow in nanoseconds, from the system file.
    pub bound_ns: Option<u64>,
    /// Samples that were older: what the bound rests on is not so, the times in the file or its assumptions.
    pub above_bound_count: u64,
    /// The same since the status was last read.
    pub above_bound_count_change: u64,
    /// The age in nanoseconds of the last that was older than limit or bound.
    pub last_ns: u64,
    /// The ages of all samples; the worst is its maximum.
    pub ages: Histogram,
}

#[derive(Debug)]
pub(crate) struct LatencyMonitor {
    since: Timestamp,
    has_news: bool,
    status: LatencyExceededStatus,
}

impl LatencyMonitor {
    /// `None` if there is nothing to compare with.
    pub(crate) fn new(LatencyTerms { limit_ns, bound_ns }: LatencyTerms, since: Timestamp) -> Option<Self> {
        limit_ns.or(bound_ns)?;
        let status = LatencyExceededStatus { limit_ns, bound_ns, ..LatencyExceededStatus::default() };
        Some(Self { since, has_news: false, status })
    }

    /// A sample can be read now.
    #[inline]
    pub(crate) fn arrived(&mut self, written: Timestamp, now: Timestamp) {
        if written.is_invalid() || written < self.since {
            return;
        }
        let age_ns = now.to_nanos().saturating_sub(written.to_nanos()).max(0).cast_unsigned();
        let status = &mut self.status;
        status.ages.record(age_ns);
        let exceeds = |most_ns: Option<u64>| u64::from(most_ns.is_some_and(|most_ns| age_ns > most_ns));
        let (limit, bound) = (exceeds(status.limit_ns), exceeds(status.bound_ns));
        status.total_count += limit;
        status.total_count_change += limit;
        status.above_bound_count += bound;
        status.above_bound_count_change += bound;
        if limit + bound > 0 {
            status.last_ns = age_ns;
            self.has_news = true;
        }
    }

    /// The age of the oldest sample in nanoseconds; 0 without one.
    pub(crate) fn worst_ns(&self) -> u64 {
        self.status.ages.max_ns()
    }

    /// Whether a sample exceeded limit or bound since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.has_news)
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
    fn limit_and_bound_are_counted_apart() {
        let terms = LatencyTerms { limit_ns: Some(3_000_000_000), bound_ns: Some(1_000_000_000) };
        let mut monitor = LatencyMonitor::new(terms, SINCE).expect("there is something to compare with");
        let mut arrived = |age: u32| {
            monitor.arrived(SINCE, Timestamp { seconds: 100 + age, fraction: 0 });
            let news = monitor.take_news();
            let status = monitor.read();
            let changes = (status.above_bound_count_change, status.total_count_change);
            (news, changes, (status.above_bound_count, status.total_count), status.last_ns)
        };
        assert_eq!(arrived(1), (false, (0, 0), (0, 0), 0));
        assert_eq!(arrived(2), (true, (1, 0), (1, 0), 2_000_000_000));
        assert_eq!(arrived(4), (true, (1, 1), (2, 1), 4_000_000_000));
        assert_eq!(arrived(0), (false, (0, 0), (2, 1), 4_000_000_000));
        assert_eq!((monitor.read().ages.count(), monitor.read().ages.max_ns()), (4, 4_000_000_000));
    }

    #[test]
    fn without_limit_and_bound_nothing_is_compared() {
        assert!(LatencyMonitor::new(LatencyTerms::default(), SINCE).is_none());
        let terms = LatencyTerms { bound_ns: Some(5), ..LatencyTerms::default() };
        assert!(LatencyMonitor::new(terms, SINCE).is_some());
    }
}
