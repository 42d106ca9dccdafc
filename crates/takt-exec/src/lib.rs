//! What an executor is made of: jobs by priority and their accounts, and the scheduling, processors, memory and sleep states of
//! its thread, set and then looked at.
//!
//! | module | what it is |
//! |---|---|
//! | [`priority`] | how urgent a job is: [`Priority`] |
//! | [`queue`] | jobs that wait: [`PriorityQueue`] |
//! | [`jobs`] | what jobs there are, and what they took: [`Accounts`] |
//! | [`lock`] | how often jobs wait for locks: [`lock_waits`] |
//! | [`report`] | accounts as a file, for the timing analysis |
//! | [`histogram`] | how long something took: [`Histogram`] |
//! | [`trace`] | the jobs that ran last: [`Trace`] |
//! | [`thread`] | what one thread is given: [`ThreadSettings`] |
//! | [`process`] | what a whole process, or the machine for as long as it lives, is given: [`ProcessSettings`] |
//! | [`refusal`] | [`Refusal`]: what is not as asked, why, and what would mend it |
//!
//! The loop that runs the jobs is in the crate `takt`, which knows where they come from.
//!
//! Invariants:
//! - to queue, to take and to count a job allocates nothing once there is room for it;
//! - whatever is set is read back; what is not as asked is an error, never silence;
//! - a refusal names the capability or the limit that is missing;
//! - nothing is kept open but what has to be ([`Held`]), and nothing on the machine outlives it.

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
pub use jobs::{Accounts, JobClass, JobKind, Run};
pub use lock::lock_waits;
pub use priority::{Priority, PrioritySet};
#[cfg(feature = "std")]
pub use process::{Held, ProcessSettings};
pub use queue::PriorityQueue;
#[cfg(feature = "std")]
pub use refusal::Refusal;
#[cfg(feature = "std")]
pub use thread::{Scheduling, ThreadSettings};
pub use trace::{Trace, TraceRecord};
