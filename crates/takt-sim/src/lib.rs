//! Takt in a simulated world where a seed decides everything: the network, the clocks, the crashes, the workload.
//!
//! The code under test is the code that ships: [`takt_core::Participant`], unchanged, one per simulated process.
//! [`scenario`] decides what happens, [`world`] lets it happen, [`check`] compares what applications see with
//! [`model`], and [`shrink`] makes a failing scenario small.
//!
//! # Invariants
//! - No clock, no thread, no random source and no hash table with a seed of its own: two runs of one scenario are the
//!   same to the byte, and [`world::Report::digest`] shows it. OpenSSL gets its random numbers from the seed ([`randomness`]).
//! - Nobody inside the world reads true time; each host has a clock of its own.
#![deny(unsafe_code)]

pub mod capture;
pub mod check;
pub mod clock;
pub mod counts;
pub mod damage;
pub mod discovery;
pub mod domain;
pub mod hostile;
pub mod insider;
pub mod keeping;
pub mod lookup;
pub mod matrix;
pub mod model;
pub mod network;
pub mod partitions;
pub mod process;
pub mod randomness;
pub mod recorded;
pub mod recording;
pub mod rng;
pub mod sample;
pub mod scenario;
pub mod shrink;
pub mod speed;
pub mod sql;
pub mod swarm;
pub mod timeline;
pub mod work;
pub mod world;
