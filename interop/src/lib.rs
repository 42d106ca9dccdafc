//! Takt against real peers: CycloneDDS 0.10 and 11, Fast DDS 2.9, and Takt itself.
//!
//! A *peer program* owns one DDS product and does what it is told on standard input, reporting what it sees as JSON lines
//! ([`event`]); `interop/README.md` describes that protocol. Here is what the tests and the demo need to run such
//! programs against one another:
//!
//! - [`programs`] builds and finds them,
//! - [`network`] gives them two hosts: network namespaces joined by one link with an MTU of 1500,
//! - [`peer`] starts one on a host and talks to it; it dies with its handle,
//! - [`impairment`] makes the link lose, duplicate and reorder,
//! - [`capture`] records the link and has tshark judge the recording,
//! - [`content`] says what a sample must contain, so that every received one is compared.
//!
//! Every process has a limit: commands 300 s, peers 20 s for each answer and for their end. Of a line 64 KiB are read, of a
//! peer a million lines, of a command 256 MiB.
//!
//! Nothing here sends a packet itself, and nothing leaves the namespaces or the loopback interface.

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
