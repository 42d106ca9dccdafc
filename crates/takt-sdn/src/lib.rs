//! An OpenFlow controller for networks that carry DDS.
//!
//! | module | what it does |
//! |---|---|
//! | [`frame`] | Ethernet frames: read without copying, built, rewritten with their checksums |
//! | [`topology`] | switches, ports and links, by authenticated LLDP |
//! | [`devices`] | hosts: addresses, attachment, moves, spoofing |
//!
//! Everything is sans-IO: time and randomness are arguments, and octets come and go as slices.

#![forbid(unsafe_code)]

pub mod devices;
pub mod frame;
mod port;
pub mod topology;

pub use port::PortRef;
