//! What the scheduler knows of the network: its switches by model, ports, links and hosts.
//!
//! | module | what it is |
//! |---|---|
//! | [`switch`] | models of switches: queues, how a class is reached, forwarding time, tables; read from TOML |
//! | [`network`] | switches, ports, links and hosts, in versions |
//!
//! Units: nanoseconds, octets, bits per second, parts of a million.

pub mod network;
pub mod switch;

pub use network::{Egress, HostId, HostInterface, Network, NetworkError, Node, Snapshot};
pub use switch::{ModelError, Queue, Reach, SwitchModel, Tables};
