//! What the scheduler knows of the network: its switches by model, ports, links and hosts.
//!
//! | module | what it is |
//! |---|---|
//! | [`file`] | what an operator says of a network; read from TOML |
//! | [`switch`] | models of switches: queues, how a class is reached, forwarding time, tables; read from TOML |
//! | [`control`] | what the controller sends itself |
//! | [`host_limit`] | packets that hosts receive without admission |
//! | [`network`] | switches, ports, links and hosts, in versions |
//!
//! Units: nanoseconds, octets, bits per second, parts of a million.

pub mod control;
pub mod file;
pub mod host_limit;
pub mod network;
pub mod switch;

pub use control::{Allowance, Cause};
pub use file::{NetworkFile, WithoutContract};
pub use host_limit::{HostLimit, Share};
pub use network::{Egress, HostId, HostInterface, Network, NetworkError, Node, Snapshot};
pub use switch::{ModelError, Queue, Reach, SwitchModel, Tables};
