//! Timing analysis: how late may it be, at worst?
//!
//! A [`System`] is a set of [`Resource`]s that serve one piece of work at a time (an executor's thread, a link) and of [`Flow`]s that
//! pass some of them one after the other. [`analyse`] computes for each flow a time that no event of it takes longer, from its
//! arrival at the first stage until the last has done with it; or says which resource is overloaded. The outcome is a [`Certificate`], that
//! [`verify`] checks with arithmetic of its own, without computing anything again.
//!
//! | module | what it is |
//! |---|---|
//! | [`arrivals`] | how often something happens at most |
//! | [`server`] | fixed priorities without preemption: response times at one resource |
//! | [`system`] | flows over resources, jitter handed on from stage to stage |
//! | [`advice`] | what binds a flow, which flow breaks a system, and what would mend it |
//! | [`link`] | how long frames take on Ethernet |
//! | [`network`] | flows through switches: delay and backlog of queues, end-to-end bounds, admission one by one |
//! | [`certificate`] | the outcome, with what proves it |
//! | [`verify`](mod@verify) | the checker of certificates |
//! | [`composition`] | one bound over a host, the network and another host |
//!
//! The analysis is that of fixed-priority non-preemptive scheduling by busy periods: Davis, Burns, Bril, Lukkien, "Controller Area
//! Network (CAN) schedulability analysis: Refuted, revisited and revised" (Real-Time Systems 35, 2007), with equal priorities in no
//! promised order; and compositional analysis by event models: Richter, Jersak, Ernst (2002, 2005).
//!
//! Invariants:
//! - all times are whole nanoseconds in `u64`; nothing wraps, a sum that is too large is [`Unbounded`];
//! - a bound is never too small for any arrivals that keep to their model, at whatever real-valued times; it may be too large;
//! - no I/O, no clock, and every call has a stated bound of work.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod advice;
pub mod arrivals;
pub mod certificate;
pub mod composition;
pub mod link;
pub mod network;
pub mod server;
pub mod system;
pub mod verify;

pub use arrivals::Arrivals;
pub use certificate::{Certificate, FlowClaim, MeasuredJobs, MeasuredTime, StageClaim};
pub use server::{Job, Response, Unbounded};
pub use system::{Flow, Resource, Stage, System, analyse};
pub use verify::verify;

/// The programs of the documents, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/network-analysis.md")]
struct Documents;
