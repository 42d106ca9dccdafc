//! Client of the Open vSwitch Database Management Protocol, OVSDB (RFC 7047).
//!
//! | module | content |
//! |---|---|
//! | [`stream`] | framing of a byte stream into JSON texts of bounded length and depth |
//! | [`client`] | the client side of JSON-RPC, sans-IO: requests, replies, notifications; `echo` is answered |
//! | [`connection`] | a client connection on a socket: calls with a timeout, transactions, monitors |
//! | [`operation`] | operations of a transaction, conditions and values |
//! | [`monitor`] | copies of tables that the server keeps up to date |
//! | [`open_vswitch`] | bridges, ports, controllers, queues of Open vSwitch, typed |
//!
//! Invariants:
//! - No octets of a server cause a panic.
//! - A server cannot make the client hold more than [`Limits`] permit.
//! - `stream`, `client`, `operation` and `monitor` read no clock and do no I/O.
//!
//! Not included: TLS, locks (RFC 7047 §4.1.8), `monitor_cond` of Open vSwitch, the server side.

#![forbid(unsafe_code)]

pub mod client;
pub mod connection;
mod error;
pub mod monitor;
pub mod open_vswitch;
pub mod operation;
pub mod stream;

pub use client::{Client, Event};
pub use connection::Connection;
pub use error::{Error, Failure, Result};
pub use monitor::{Monitor, Row, Table};
pub use open_vswitch::OpenVSwitch;
pub use operation::Operation;

/// Limits of the memory that a server can make a client use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Length of one message, sent or received, in octets.
    pub message_len: usize,
    /// Nesting depth of arrays and objects.
    pub depth: usize,
    /// Number of rows of all monitored tables.
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_len: 16 << 20, depth: 64, rows: 100_000 }
    }
}
