//! The DDS flow scheduler: which pairs of endpoints the network can serve, by which ways and classes, and the proof.
//!
//! | module | what it is |
//! |---|---|
//! | [`wire`] | frames of samples, HEARTBEATs and ACKNACKs, with every octet of the protocols |
//! | [`route`] | loop-free paths and trees |
//! | [`streams`] | the flows of one pair: data, HEARTBEATs, ACKNACKs |
//! | [`classes`] | the lowest class of each hop at which all flows keep their limits (Audsley) |
//! | `full` | ports without room, and what was refused there |
//! | [`remedies`] | what would make a refused pair fit |
//! | [`rooms`] | room for flow entries, groups and meters in the switches |
//! | [`end_to_end`] | one bound from `write` to callback |
//! | `detours` | second ways around each link of a way |
//! | [`scheduler::protection`] | second ways that are reserved and proved |
//! | `placement` | ways that are tried, and streams that join others |
//! | `transition` | changes of classes in an order that keeps all limits |
//! | [`decision`] | what is decided, and reasons of refusals |
//! | [`host_stages`] | what announced stages of the hosts leave to the network |
//! | [`scheduler`] | admits, removes and reroutes |
//!
//! Audsley, "On priority assignment in fixed priority scheduling" (2001): a flow gets the lowest priority at which it keeps its limit. Each
//! assignment is tested by [`takt_calculus::network::Admission`] together with all admitted flows.
//!
//! Deliberately left out: retransmissions. No frame of an admitted flow is dropped by a queue, so none is sent again.

pub mod classes;
pub mod decision;
mod detours;
pub mod end_to_end;
mod full;
pub mod host_stages;
mod placement;
pub mod remedies;
pub mod rooms;
pub mod route;
pub mod scheduler;
pub mod streams;
mod transition;
pub mod wire;

pub use decision::{Admitted, ClassChange, Hop, Reason, Refused, RequestId, Rerouted, Route};
pub use end_to_end::{HostStages, Plan};
pub use host_stages::{NetworkShare, NoCertificate, PairStages, Unfit, compose};
pub use remedies::Remedies;
pub use scheduler::protection::{Covered, SecondWay};
pub use scheduler::{Scheduler, Work};
pub use streams::{Contract, Reliability, Request};
pub use wire::{FormatError, WireFormat, trailer_len};
