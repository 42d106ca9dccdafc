//! Priorities, execution time statistics, and real-time settings of threads and processes.
//!
//! The module unites two crates: `takt-schedule`, which orders and counts jobs without an operating
//! system, and `takt-exec`, which sets threads and processes and writes reports.

pub use takt_exec::{
    LatencyRequest, ProcessSettings, Refusal, Scheduling, ThreadSettings, process, refusal, report, thread, trace,
};
pub use takt_schedule::{
    Histogram, JobClass, JobKind, JobStatistics, Priority, PriorityQueue, PrioritySet, Run, Trace, TraceRecord,
    histogram, jobs, lock, lock_waits, priority, queue,
};
