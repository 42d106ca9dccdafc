//! What the scheduler knows of the network: its switches by model, ports, links and hosts.
//!
//! | module | what it is |
//! |---|---|
//! | [`file`] | what an operator says of a network; read from TOML |
//! | [`switch`] | models of switches: queues, how a class is reached, forwarding time, tables; read from TOML |
//! | [`network`] | switches, ports, links and hosts, in versions |
//!
//! Units: nanoseconds, octets, bits per second, parts of a million.

pub mod file;
pub mod network;
pub mod switch;

pub use file::NetworkFile;
pub use network::{Egress, HostId, HostInterface, Network, NetworkError, Node, Snapshot};
pub use switch::{ModelError, Queue, Reach, SwitchModel, Tables};
