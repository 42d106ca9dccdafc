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
//! | [`scheduler`] | admits, removes and reroutes |
//!
//! Audsley, "On priority assignment in fixed priority scheduling" (2001): a flow gets the lowest priority at which it keeps its limit. Each
//! assignment is tested by [`takt_calculus::network::Admission`] together with all admitted flows.
//!
//! Deliberately left out: retransmissions. No frame of an admitted flow is dropped by a queue, so none is sent again.

pub mod classes;
pub mod end_to_end;
mod full;
pub mod remedies;
pub mod rooms;
pub mod route;
pub mod scheduler;
pub mod streams;
pub mod wire;

pub use end_to_end::{HostStages, Plan};
pub use remedies::Remedies;
pub use scheduler::{Admitted, Hop, Reason, Refused, RequestId, Rerouted, Route, Scheduler};
pub use streams::{Contract, Reliability, Request};
pub use wire::{FormatError, WireFormat};
