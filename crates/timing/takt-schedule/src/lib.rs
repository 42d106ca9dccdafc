//! Scheduling of jobs without an operating system: priorities, the queue of ready jobs, and
//! execution time statistics.
//!
//! | module | content |
//! |---|---|
//! | [`priority`] | priority of a job: [`Priority`] |
//! | [`queue`] | queue of ready jobs: [`PriorityQueue`] |
//! | [`jobs`] | kinds of jobs and their execution times: [`JobStatistics`] |
//! | [`lock`] | maximum number of lock waits: [`lock_waits`] |
//! | [`histogram`] | histogram of durations: [`Histogram`] |
//! | [`trace`] | trace of the last jobs: [`Trace`] |
//!
//! The crate has no clock, no thread and no I/O. The loop that runs the jobs is in the crate
//! `takt`, which knows their sources; the settings of its thread are in `takt-exec`.
//!
//! Invariant: queuing, dequeuing and recording a job do not allocate once the capacity suffices.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod histogram;
pub mod jobs;
pub mod lock;
pub mod priority;
pub mod queue;
pub mod trace;

pub use histogram::Histogram;
pub use jobs::{JobClass, JobKind, JobStatistics, Run};
pub use lock::lock_waits;
pub use priority::{Priority, PrioritySet};
pub use queue::PriorityQueue;
pub use trace::{Trace, TraceRecord};
