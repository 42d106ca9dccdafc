//! Building blocks of an executor: prioritized jobs, execution time statistics, and real-time
//! settings of threads and processes.
//!
//! Scheduling, processor affinity, memory locking and CPU sleep states are set and then verified.
//!
//! | module | content |
//! |---|---|
//! | [`priority`] | priority of a job: [`Priority`] |
//! | [`queue`] | queue of ready jobs: [`PriorityQueue`] |
//! | [`jobs`] | kinds of jobs and their execution times: [`JobStatistics`] |
//! | [`lock`] | maximum number of lock waits: [`lock_waits`] |
//! | [`report`] | execution times as a file for the timing analysis |
//! | [`histogram`] | histogram of durations: [`Histogram`] |
//! | [`trace`] | trace of the last jobs: [`Trace`] |
//! | [`thread`] | settings of a thread: [`ThreadSettings`] |
//! | [`process`] | settings of a process, and of the machine while it runs: [`ProcessSettings`] |
//! | [`refusal`] | [`Refusal`]: a setting that failed, its cause, and the remedy |
//!
//! The loop that runs the jobs is in the crate `takt`, which knows their sources.
//!
//! Invariants:
//! - Queuing, dequeuing and recording a job do not allocate once the capacity suffices.
//! - Every setting is read back; a difference is always an error.
//! - A refusal names the missing capability or limit.
//! - Only necessary files stay open ([`LatencyRequest`]), and no machine setting outlives it.

#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod histogram;
pub mod jobs;
pub mod lock;
pub mod priority;
#[cfg(feature = "std")]
pub mod process;
pub mod queue;
#[cfg(feature = "std")]
pub mod refusal;
#[cfg(feature = "std")]
pub mod report;
#[cfg(feature = "std")]
mod syscall;
#[cfg(feature = "std")]
pub mod thread;
pub mod trace;

pub use histogram::Histogram;
pub use jobs::{JobClass, JobKind, JobStatistics, Run};
pub use lock::lock_waits;
pub use priority::{Priority, PrioritySet};
#[cfg(feature = "std")]
pub use process::{LatencyRequest, ProcessSettings};
pub use queue::PriorityQueue;
#[cfg(feature = "std")]
pub use refusal::Refusal;
#[cfg(feature = "std")]
pub use thread::{Scheduling, ThreadSettings};
pub use trace::{Trace, TraceRecord};
