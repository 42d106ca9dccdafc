//! Benchmarks of Takt, of other middleware and of the bare operating system.
//!
//! A **workload** ([`workload`]) is a loop over a [`link::Link`]: one writer, one reader, and a way
//! to wait. Links are Takt ([`dds`]), plain UDP sockets ([`raw_udp`]), plain shared memory
//! ([`raw_shm`]) and plain datagrams over other transports ([`wire`]). A **report** ([`report`]) is
//! the result of one process. An **agent** ([`agent`]) is a process that runs a workload for a
//! driver, by a line protocol of JSON objects. A **campaign** ([`campaign`]) starts agents of Takt
//! and of other middleware in interleaved rounds on pinned cores, and compares their figures.
//! Measurements that need no second process run in this one ([`participant_pair`]).
//!
//! Latencies are nanoseconds inside and microseconds in reports. The clock is `CLOCK_MONOTONIC` of
//! one host. One-way latencies between two hosts estimate the offset of the other clock by echoes
//! ([`clock`]), with an uncertainty. Linux only.

pub mod agent;
pub mod campaign;
pub mod clock;
pub mod complex;
pub mod dds;
pub mod error;
pub mod executor_bound;
pub mod isolation;
#[cfg(feature = "security")]
mod keys;
pub mod link;
pub mod machine;
pub mod numbered;
pub mod page;
pub mod participant_pair;
pub mod pauses;
pub mod payload;
pub mod raw_shm;
pub mod raw_udp;
pub mod report;
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
