//! Transports by name: what a configuration can ask for, and who opens it.
//!
//! | form | meaning |
//! |---|---|
//! | `udp` | a transport |
//! | `xdp:eth0` | one that uses this interface, or device |
//! | `xdp:eth0/queue=1/mode=generic` | with options of its own |
//! | `shm+xdp:eth0` | both of them at once |
//! | `xdp:eth0\|udp` | the first of these that opens |
//!
//! A [`TransportFactory`] knows how to open what has its name. Those of this crate are always there; who brings another one
//! [registers](register) it, once for the process. Why something did not open is the factory's to say, and the caller's to show.
//!
//! What there is not: an order of preference of its own. The configuration says it, or there is none.

mod builtin;
mod factory;
mod link;
pub mod probe;
mod spec;

pub use factory::{Opened, Request, TransportFactory, factories, register};
pub use link::{Link, XdpFeatures};
pub use spec::{Malformed, TransportChoice, TransportSpec};

/// The names that mean something, whether or not a program has the transport: a configuration may be for several.
pub const KNOWN_NAMES: [&str; 9] =
    ["udp", "tcp", "shm", "daemon", "packet", "xdp", "xdp-ethernet", "dpdk", "dpdk-ethernet"];
