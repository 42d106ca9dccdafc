//! DDS flow scheduler: decides which pairs of endpoints the network can serve, by which paths and
//! classes, with a proof.
//!
//! | module | contents |
//! |---|---|
//! | [`wire`] | frames of samples, HEARTBEATs and ACKNACKs, with all protocol overhead |
//! | [`route`] | loop-free paths and trees |
//! | [`streams`] | the flows of one pair: data, HEARTBEATs, ACKNACKs |
//! | [`classes`] | the lowest class of each hop at which all flows keep their limits (Audsley) |
//! | `full` | full ports, with stored refusals |
//! | [`remedies`] | changes that would make a refused pair fit |
//! | [`table_use`] | table capacities for flow entries, groups and meters in the switches |
//! | [`end_to_end`] | end-to-end bound from `write` to callback |
//! | `detours` | backup paths around each link of a path |
//! | [`scheduler::protection`] | reserved and proved backup paths |
//! | `placement` | trial of paths, and streams that join others |
//! | `transition` | class changes in an order that keeps all limits |
//! | [`decision`] | decisions, and reasons of refusals |
//! | [`host_stages`] | division of a limit between announced host stages and the network |
//! | [`scheduler`] | admission, removal and rerouting |
//!
//! Audsley, "On priority assignment in fixed priority scheduling" (2001): a flow gets the lowest
//! priority at which it keeps its limit. Each assignment is tested by
//! [`takt_calculus::network::Admission`] together with all admitted flows.
//!
//! Not modeled: retransmissions. No queue drops a frame of an admitted flow, so none is
//! retransmitted.

pub mod classes;
pub mod decision;
mod detours;
pub mod end_to_end;
mod full;
pub mod host_stages;
mod placement;
pub mod remedies;
pub mod route;
pub mod scheduler;
pub mod streams;
pub mod table_use;
mod transition;
pub mod wire;

pub use decision::{Admitted, ClassChange, Hop, Reason, Refused, RequestId, Rerouted, Route};
pub use end_to_end::{HostStages, Plan};
pub use host_stages::{NetworkShare, NoCertificate, PairStages, Unfit, compose};
pub use remedies::Remedies;
pub use scheduler::protection::{BackupPath, Coverage};
pub use scheduler::{Scheduler, Work};
pub use streams::{Contract, Reliability, Request};
pub use wire::{FormatError, WireFormat, trailer_len};
