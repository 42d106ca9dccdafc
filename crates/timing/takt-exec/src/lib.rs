//! Real-time settings of threads and processes, and the reports of an executor.
//!
//! Scheduling, processor affinity, memory locking and CPU sleep states are set and then verified.
//!
//! | module | content |
//! |---|---|
//! | [`thread`] | settings of a thread: [`ThreadSettings`] |
//! | [`process`] | settings of a process, and of the machine while it runs: [`ProcessSettings`] |
//! | [`refusal`] | [`Refusal`]: a setting that failed, its cause, and the remedy |
//! | [`report`] | execution times as a file for the timing analysis |
//! | [`trace`] | trace of the last jobs as a file for trace viewers |
//!
//! Priorities, the queue of ready jobs and the statistics that the reports contain are in
//! `takt-schedule`. The loop that runs the jobs is in the crate `takt`, which knows their sources.
//!
//! Invariants:
//! - Every setting is read back; a difference is always an error.
//! - A refusal names the missing capability or limit.
//! - Only necessary files stay open ([`LatencyRequest`]), and no machine setting outlives it.

#![deny(unsafe_code)]

pub mod process;
pub mod refusal;
pub mod report;
mod syscall;
pub mod thread;
pub mod trace;

pub use process::{LatencyRequest, ProcessSettings};
pub use refusal::Refusal;
pub use thread::{Scheduling, ThreadSettings};
