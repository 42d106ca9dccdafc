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
//! | [`measure`] | whether marked frames really leave where a plan has them leave |
//! | [`clock`] | how far clocks are from each other, and how well that is known |
//!
//! Invariants:
//! - nothing is changed before what was there is on disk; `revert` restores it whatever happened in between, a `kill -9` included;
//! - what was set is read back: a knob that did not take its value is an error, and all others go back;
//! - what a machine lacks is named, with what to do instead; nothing is passed over in silence.

#![deny(unsafe_code)]

pub mod apply;
pub mod clock;
mod ethtool;
pub mod facts;
mod forbidden;
pub mod journal;
pub mod knob;
pub mod machine;
pub mod measure;
mod namespace;
pub mod plan;
mod route;
mod tc;

pub use apply::{apply, revert, verify};
pub use clock::ClockQuality;
pub use facts::Facts;
pub use journal::Journal;
pub use knob::Knob;
pub use machine::Machine;
pub use plan::schedule::{Gate, LaunchTime};
pub use plan::{Change, Lack, Plan, Wish};
pub use route::Groups;
