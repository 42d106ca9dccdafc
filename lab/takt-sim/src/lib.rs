//! Deterministic simulation of Takt: a seed decides the network, the clocks, the crashes and the
//! workload.
//!
//! The code under test is the shipped code: [`takt_core::Participant`], unchanged, one per
//! simulated process. [`scenario`] generates the events of a world, [`world`] executes them,
//! [`check`] compares what applications see with [`model`], and [`shrink`] reduces a failing
//! scenario.
//!
//! # Invariants
//! - No clock, no thread, no random source and no hash table with a random seed: two runs of one
//!   scenario are identical to the byte, which [`world::Report::digest`] verifies. OpenSSL gets its
//!   random numbers from the seed ([`randomness`]).
//! - No simulated process reads the true time. Each host has its own clock.
#![deny(unsafe_code)]

pub mod capture;
pub mod check;
pub mod clock;
pub mod counts;
pub mod damage;
pub mod discovery;
pub mod domain;
pub mod durability;
pub mod hostile;
pub mod insider;
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
