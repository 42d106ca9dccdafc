//! Trace of the last jobs in memory. `takt-exec` exports it for trace viewers.

use alloc::boxed::Box;
use alloc::vec;

use crate::jobs::{JobKind, Run};
use crate::priority::Priority;

/// Run of a job in 24 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Start time in nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// Execution time in nanoseconds, saturated at some 4.3 s.
    pub duration_ns: u32,
    /// Owner of the job; see [`Run::owner`].
    pub owner: u32,
    /// Kind of the job.
    pub kind: JobKind,
    /// Priority of the job.
    pub priority: Priority,
}

impl TraceRecord {
    pub(crate) fn of(run: &Run) -> Self {
        let Run { kind, priority, owner, began_ns, .. } = *run;
        Self { began_ns, duration_ns: run.duration_ns().try_into().unwrap_or(u32::MAX), owner, kind, priority }
    }
}

/// Ring buffer of the last jobs. The newest job overwrites the oldest.
#[derive(Clone, Debug)]
pub struct Trace {
    records: Box<[TraceRecord]>,
    /// Number of jobs ever recorded.
    count: u64,
}

impl Trace {
    /// Returns a trace of the last `jobs` jobs, at least one.
    #[must_use]
    pub fn new(jobs: usize) -> Self {
        let none =
            TraceRecord { began_ns: 0, duration_ns: 0, owner: 0, kind: JobKind::Receive, priority: Priority::NORMAL };
        Self { records: vec![none; jobs.max(1)].into_boxed_slice(), count: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, record: TraceRecord) {
        let index = self.count % self.records.len() as u64;
        self.records[index as usize] = record;
        self.count += 1;
    }

    /// Returns the records from the oldest to the newest.
    pub fn records(&self) -> impl Iterator<Item = &TraceRecord> {
        let capacity = self.records.len() as u64;
        let first = self.count.saturating_sub(capacity);
        (first..self.count).map(move |number| &self.records[(number % capacity) as usize])
    }

    /// Returns the number of overwritten records.
    #[must_use]
    pub fn overwritten(&self) -> u64 {
        self.count.saturating_sub(self.records.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn record(began_ns: u64) -> TraceRecord {
        let (kind, priority) = (JobKind::Timers, Priority::new(-3));
        TraceRecord::of(&Run { kind, priority, owner: 2, began_ns, ended_ns: began_ns + 1_500 })
    }

    #[test]
    fn newest_records_overwrite_the_oldest() {
        let mut trace = Trace::new(3);
        assert_eq!(trace.records().count(), 0);
        (1..=5).for_each(|began_ns| trace.push(record(began_ns)));
        let began: Vec<_> = trace.records().map(|record| record.began_ns).collect();
        assert_eq!((began.as_slice(), trace.overwritten()), (&[3, 4, 5][..], 2));
    }

    #[test]
    fn duration_of_a_long_job_saturates() {
        let run = Run { began_ns: 0, ended_ns: u64::MAX, kind: JobKind::Receive, priority: Priority::MAX, owner: 0 };
        assert_eq!(TraceRecord::of(&run).duration_ns, u32::MAX);
    }
}
