//! Compares the age of each sample with the reader's E2E_LATENCY (`rt.e2e_ns`, see [`takt_wire::qos::Contract`]), from the writer's time
//! stamp to the moment in which the sample can be read here.
//!
//! Both ends' wall clocks are believed: what they differ by is in each age. A time stamp from the future counts as age 0. Samples
//! that were written before the reader was enabled are history, and do not count.

use takt_exec::Histogram;
use takt_wire::Timestamp;

/// What became of a reader's E2E_LATENCY. A Takt status; the OMG has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyExceededStatus {
    /// What the reader asked for in nanoseconds.
    pub limit_ns: u64,
    /// Samples that were older.
    pub total_count: u64,
    /// The same since the status was last read.
    pub total_count_change: u64,
    /// The age in nanoseconds of the last of them.
    pub last_ns: u64,
    /// The ages of all samples, those within the limit too.
    pub ages: Histogram,
}

#[derive(Debug)]
pub(crate) struct LatencyMonitor {
    since: Timestamp,
    has_news: bool,
    status: LatencyExceededStatus,
}

impl LatencyMonitor {
    pub(crate) fn new(limit_ns: u64, since: Timestamp) -> Self {
        Self { since, has_news: false, status: LatencyExceededStatus { limit_ns, ..LatencyExceededStatus::default() } }
    }

    /// A sample can be read now.
    #[inline]
    pub(crate) fn arrived(&mut self, written: Timestamp, now: Timestamp) {
        if written.is_invalid() || written < self.since {
            return;
        }
        let age_ns = now.to_nanos().saturating_sub(written.to_nanos()).max(0).cast_unsigned();
        self.status.ages.record(age_ns);
        if age_ns > self.status.limit_ns {
            self.status.total_count += 1;
            self.status.total_count_change += 1;
            self.status.last_ns = age_ns;
            self.has_news = true;
        }
    }

    /// Whether a sample exceeded the limit since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.has_news)
    }

    pub(crate) fn read(&mut self) -> LatencyExceededStatus {
        let status = self.status.clone();
        self.status.total_count_change = 0;
        status
    }
}
