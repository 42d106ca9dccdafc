//! A host made fit for real-time traffic, as data: look, plan, apply, verify, revert.
//!
//! | module | what it is |
//! |---|---|
//! | [`knob`] | one thing of the machine that can be read and set |
//! | [`machine`] | where knobs are read and set |
//! | [`facts`] | what is there: processors, interfaces, their queues and interrupts |
//! | [`plan`] | what is wished for, the changes that make it so, and what cannot be had |
//! | [`journal`] | what was there before, written down before it is changed |
//! | [`apply`] | all changes of a plan or none; and back |
//!
//! Invariants:
//! - nothing is changed before what was there is on disk; `revert` restores it whatever happened in between, a `kill -9` included;
//! - what was set is read back: a knob that did not take its value is an error, and all others go back;
//! - what a machine lacks is named, with what to do instead; nothing is passed over in silence.

#![deny(unsafe_code)]

pub mod apply;
mod ethtool;
pub mod facts;
pub mod journal;
pub mod knob;
pub mod machine;
pub mod plan;

pub use apply::{apply, revert, verify};
pub use facts::Facts;
pub use journal::Journal;
pub use knob::Knob;
pub use machine::Machine;
pub use plan::{Change, Lack, Plan, Wish};
