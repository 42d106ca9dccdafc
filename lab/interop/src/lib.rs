//! Interoperability tests of Takt with CycloneDDS 0.10 and 11, Fast DDS 2.9, and Takt itself.
//!
//! A *peer program* runs one DDS product. It executes the commands that it reads from standard
//! input and reports events as JSON lines ([`event`]). `lab/interop/README.md` describes the
//! protocol. This crate holds what the tests and the demo need to run peer programs against one
//! another:
//!
//! - [`programs`] builds and locates the peer programs,
//! - [`network`] provides two hosts: network namespaces joined by one link with an MTU of 1500,
//! - [`peer`] starts a program on a host and communicates with it; dropping the handle kills the
//!   program,
//! - [`impairment`] makes the link lose, duplicate and reorder datagrams,
//! - [`capture`] records the link and has tshark analyze the recording,
//! - [`content`] defines the content of each sample, so that every received sample is compared.
//!
//! Every process has limits: 300 s for a command, and 20 s for each answer and for the exit of a
//! peer. At most 64 KiB of a line, a million lines of a peer and 256 MiB of the output of a command
//! are read.
//!
//! The crate itself sends no packets, and no packet leaves the namespaces or the loopback
//! interface.

pub mod capture;
pub mod content;
mod error;
pub mod event;
pub mod impairment;
pub mod network;
pub mod peer;
mod process;
pub mod programs;

pub use error::{Error, Result};
