//! Real-time threads and processes: scheduling, processors, memory and sleep states, set and then looked at.
//!
//! | module | what it is |
//! |---|---|
//! | [`thread`] | what one thread is given: [`ThreadSettings`] |
//! | [`process`] | what a whole process, or the machine for as long as it lives, is given: [`ProcessSettings`] |
//! | [`refusal`] | [`Refusal`]: what is not as asked, why, and what would mend it |
//!
//! Invariants:
//! - whatever is set is read back; what is not as asked is an error, never silence;
//! - a refusal names the capability or the limit that is missing;
//! - nothing is kept open but what has to be ([`Held`]), and nothing on the machine outlives it.

#![deny(unsafe_code)]

pub mod process;
pub mod refusal;
mod syscall;
pub mod thread;

pub use process::{Held, ProcessSettings};
pub use refusal::Refusal;
pub use thread::{Scheduling, ThreadSettings};
