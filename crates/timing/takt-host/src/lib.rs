//! Configuration of a host for real-time traffic: inspect, plan, apply, verify, revert.
//!
//! | module | content |
//! |---|---|
//! | [`setting`] | one setting of the machine that can be read and written |
//! | [`machine`] | the machine on which settings are read and written |
//! | [`facts`] | the inventory: processors, interfaces, their queues and interrupts |
//! | [`plan`] | the requested properties, the necessary changes, and the missing features |
//! | [`journal`] | former values, written to disk before a change |
//! | [`apply`] | application of a plan as a transaction, and its reversal |
//! | [`measure`] | check that marked frames leave by their planned queue or class |
//! | [`clock`] | clock offsets and their uncertainty |
//!
//! Invariants:
//! - A setting changes only after its former value is on disk. `revert` restores it after any
//!   interruption, including `kill -9`.
//! - A value is read back after it was set. A setting without its new value is an error, and all
//!   changes are reverted.
//! - A missing feature is reported with an alternative, never ignored.

#![deny(unsafe_code)]

pub mod apply;
pub mod clock;
mod ethtool;
pub mod facts;
mod forbidden;
pub mod journal;
pub mod machine;
pub mod measure;
mod namespace;
pub mod plan;
mod route;
pub mod setting;
mod tc;

pub use apply::{apply, revert, verify};
pub use clock::ClockQuality;
pub use facts::Facts;
pub use journal::Journal;
pub use machine::Machine;
pub use plan::schedule::{Gate, LaunchTime};
pub use plan::{Change, MissingFeature, Plan, Request};
pub use route::Groups;
pub use setting::Setting;
