//! Client of the Open vSwitch Database Management Protocol, OVSDB (RFC 7047).
//!
//! | module | content |
//! |---|---|
//! | [`stream`] | JSON texts from the octets of a byte stream, of bounded length and depth |
//! | [`client`] | the client's half of JSON-RPC, sans-IO: requests, replies, notifications; `echo` is answered |
//! | [`connection`] | a client on a socket: calls with a timeout, transactions, monitors |
//! | [`operation`] | operations of a transaction, conditions and values |
//! | [`monitor`] | copies of tables that the server keeps up to date |
//! | [`open_vswitch`] | bridges, ports, controllers, queues of Open vSwitch, typed |
//!
//! Invariants: no octet of a server makes it panic; a server cannot make it hold more than [`Limits`] says. `stream`, `client`, `operation` and
//! `monitor` read no clock and do no I/O.
//!
//! Left out: TLS, locks (RFC 7047 §4.1.8), `monitor_cond` of Open vSwitch, the server's half.

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

/// What a server can make a client hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of one message, sent or received.
    pub message_len: usize,
    /// Arrays and objects within each other.
    pub depth: usize,
    /// Rows of all monitored tables.
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_len: 16 << 20, depth: 64, rows: 100_000 }
    }
}
