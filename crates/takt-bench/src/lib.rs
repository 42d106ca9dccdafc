//! Measuring Takt beside its peers and beside the bare operating system.
//!
//! A **workload** ([`workload`]) is a loop over a [`link::Link`]: one writer, one reader, a way to
//! wait. Takt ([`dds`]), plain UDP sockets ([`raw_udp`]) plain shared memory ([`raw_shm`]) and plain
//! datagrams by other ways ([`wire`]) are links. A **report** ([`report`]) is what one
//! process says of its run. An **agent** ([`agent`]) is a process that runs a workload for somebody else and
//! speaks a line protocol of JSON objects; a **campaign** ([`campaign`]) starts agents, ours and those of other
//! middleware, in interleaved rounds on pinned cores, and sets their figures side by side. What needs no second process
//! is measured in this one ([`duo`]).
//!
//! Latencies are nanoseconds inside and microseconds in reports. The clock is `CLOCK_MONOTONIC` of one host; one-way
//! latencies between two hosts take the other's clock by echoes ([`clock`]), and have a band. Linux only.

pub mod agent;
pub mod campaign;
pub mod clock;
pub mod complex;
pub mod dds;
pub mod duo;
pub mod error;
pub mod executor_bound;
pub mod isolation;
#[cfg(feature = "security")]
mod keys;
pub mod link;
pub mod machine;
pub mod numbered;
pub mod page;
pub mod payload;
pub mod raw_shm;
pub mod raw_udp;
pub mod report;
pub mod rest;
pub mod sdn_overload;
pub mod sequence;
pub mod signal;
pub mod spec;
pub mod stall;
pub mod statistics;
pub mod stats;
pub mod study;
pub mod wire;
pub mod workload;

pub use error::{Error, Result};
