//! Integration tests of the `takt` command: processes, their output and exit codes. All traffic
//! uses loopback; each test has a separate domain.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail their test by a panic")]

mod agent_contract;
mod analyze;
mod capture;
mod command_line;
mod compare;
mod completion;
mod config;
mod daemon;
mod discovery_server;
mod durability;
mod executor_bound;
mod file;
#[cfg(feature = "security")]
mod hardware_keys;
mod host;
mod idl;
mod inspecting;
mod isolation;
mod joining;
mod json;
mod lab;
mod listing;
mod measured;
mod network;
mod overload;
mod process;
mod results;
mod round_trips;
mod rust_types;
mod sdn;
mod sdn_isolation;
mod sdn_queues;
mod sdn_site;
mod sdn_tutorial;
#[cfg(feature = "security")]
mod security;
#[cfg(feature = "security")]
mod security_renewal;
mod signals;
mod soak;
mod streams;
mod topics;
mod transport;
mod transports;
