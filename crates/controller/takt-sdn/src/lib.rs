//! An OpenFlow controller for networks that carry DDS.
//!
//! | module | contents |
//! |---|---|
//! | [`frame`] | Ethernet frames: zero-copy parsing, construction, rewriting with checksums |
//! | [`topology`] | switches, ports and links, by authenticated LLDP |
//! | [`devices`] | hosts: addresses, attachment, moves, spoofing |
//! | [`forwarding`] | spanning tree, shortest paths, rules |
//! | [`discovery`] | DDS discovery: participants, pairs, verdicts, rewritten announcements |
//! | [`contract`] | minimum separation, size, latency limit and importance of a writer and reader |
//! | [`controller`] | the state machine that combines all modules over the channels of the switches |
//! | [`model`] | versioned network model: switches by model, ports, links and hosts |
//! | [`schedule`] | admission of flows: frames, paths, classes, proof |
//! | [`admission`] | pairs with contracts: decided, admitted with flow entries in force, refused, tried again |
//! | [`registration`] | pairs that are not discovered but registered by an authenticated client |
//! | [`rules`] | flow entries and meters of admitted flows |
//! | [`store`] | persistent state of a controller |
//! | [`view`] | the state of the controller in one snapshot |
//! | [`api`] | the snapshot and what-if decisions over HTTP: REST, metrics, web page, control socket |
//! | [`queues`] | the queues of switch models on real ports, by netlink or OVSDB |
//! | [`measure`] | measurement of a switch model at a real switch |
//! | `simulation` (a feature, for tests) | random networks and requests |
//! | [`runtime`] | TCP and TLS connections of switches, and the clock |
//!
//! Everything except [`runtime`], [`store`], [`api`], [`queues`] and [`measure`] is sans-IO: time
//! and randomness are arguments, and octets are passed as slices.

#![forbid(unsafe_code)]

pub mod admission;
pub mod api;
pub mod cluster;
pub mod contract;
pub mod controller;
pub mod devices;
pub mod discovery;
pub mod forwarding;
pub mod frame;
pub mod isolation;
pub mod measure;
pub mod model;
mod port;
pub mod queues;
pub mod registration;
pub mod rules;
pub mod runtime;
pub mod schedule;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod store;
pub mod topology;
pub mod view;

pub use port::PortRef;

#[cfg(doctest)]
#[doc = include_str!("../../../../docs/guide/sdn.md")]
#[doc = include_str!("../../../../docs/design/sdn-admission.md")]
struct Documentation;
