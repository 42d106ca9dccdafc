//! Worst-case timing analysis: response times, end-to-end bounds, and admission control of flows.
//!
//! A [`System`] consists of [`Resource`]s that serve one piece of work at a time (an executor's
//! thread, a link) and of [`Flow`]s that pass some of them in sequence. [`analyze`] computes for
//! each flow an upper bound on the time of any event, from its arrival at the first stage to its
//! completion at the last one. If there is none, it names the overloaded resource. The result is a
//! [`Certificate`]. [`verify`] checks it with arithmetic of its own, without repeating the
//! analysis.
//!
//! | module | content |
//! |---|---|
//! | [`arrivals`] | arrival bounds of events |
//! | [`server`] | response times at one resource with fixed priorities without preemption |
//! | [`system`] | flows over resources, with jitter propagated from stage to stage |
//! | [`advice`] | the dominating stage of a flow, the flow that makes a system infeasible, and possible changes |
//! | [`link`] | transmission times of Ethernet frames |
//! | [`network`] | flows through switches: delay and backlog of queues, end-to-end bounds, incremental admission |
//! | [`certificate`] | the result with its proof |
//! | [`verify`](mod@verify) | the checker of certificates |
//! | [`composition`] | end-to-end bounds over a host, the network and another host |
//!
//! The analysis is that of fixed-priority non-preemptive scheduling by busy periods: Davis, Burns,
//! Bril, Lukkien, "Controller Area Network (CAN) schedulability analysis: Refuted, revisited and
//! revised" (Real-Time Systems 35, 2007), with equal priorities in arbitrary order; and
//! compositional analysis by event models: Richter, Jersak, Ernst (2002, 2005).
//!
//! Invariants:
//! - All times are whole nanoseconds in `u64`. Arithmetic does not wrap; a sum that is too large is
//!   [`Unbounded`].
//! - A bound is never too small for arrivals that satisfy their model, at any real-valued times. It
//!   may be too large.
//! - No I/O and no clock. Every call has a documented bound of work.

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
pub use system::{Flow, Resource, Stage, System, analyze};
pub use verify::verify;

/// Example programs of the documentation, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/design/network-analysis.md")]
struct Documents;
