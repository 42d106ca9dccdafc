//! Selection of transports by name: the syntax, the factories and their registry.
//!
//! | form | meaning |
//! |---|---|
//! | `udp` | a transport |
//! | `xdp:eth0` | a transport that uses this interface or device |
//! | `xdp:eth0/queue=1/mode=generic` | a transport with options |
//! | `shm+xdp:eth0` | two transports that are used together |
//! | `xdp:eth0\|udp` | the first of these that opens |
//!
//! A [`TransportFactory`] opens the transports of its name. Those of this crate are always
//! registered; programs [register](register) others once per process. The factory reports why a
//! transport did not open; the caller shows the error.
//!
//! There is no built-in order of preference: only the configuration states one.

mod builtin;
mod factory;
mod link;
pub mod probe;
mod spec;

pub use factory::{Description, Opened, Request, TransportFactory, factories, register};
pub use link::{Link, XdpFeatures};
pub use spec::{Malformed, TransportChoice, TransportOption, TransportSpec};

/// Reserved names, whether or not a program has the transport: one configuration may serve several
/// programs.
pub const KNOWN_NAMES: [&str; 9] =
    ["udp", "tcp", "shm", "daemon", "packet", "xdp", "xdp-ethernet", "dpdk", "dpdk-ethernet"];
