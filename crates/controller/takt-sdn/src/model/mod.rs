//! Network model of the scheduler: switches by model, ports, links and hosts.
//!
//! | module | contents |
//! |---|---|
//! | [`file`] | the operator's description of a network, read from TOML |
//! | [`switch`] | models of switches: queues, class selection, forwarding time, table capacities; read from TOML |
//! | [`control`] | control traffic of the controller |
//! | [`host_limit`] | limits of packets to hosts without admission |
//! | [`network`] | versions of switches, ports, links and hosts |
//!
//! Units: nanoseconds, octets, bits per second, ppm.

pub mod control;
pub mod file;
pub mod host_limit;
pub mod network;
pub mod switch;

pub use control::{Allowance, Cause};
pub use file::{NetworkFile, WithoutContract};
pub use host_limit::{HostLimit, Share};
pub use network::{Egress, HostId, HostInterface, Network, NetworkError, Node, Snapshot};
pub use switch::{ModelError, Queue, QueueSelection, SwitchModel, Tables};
