//! Virtual networks of hosts and switches on one machine: network namespaces, veth links, Open
//! vSwitch in user space, bridges of the kernel, HTB with strict priority.
//!
//! | module | content |
//! |---|---|
//! | [`file`] | network as a TOML file |
//! | [`plan`] | namespaces, interfaces, OpenFlow ports and disciplines derived from a file |
//! | [`lab`] | running network: creation, use, removal |
//! | [`preflight`] | checks that measure whether the network behaves as its file says |
//! | [`namespace`] | named network namespaces, and threads and programs in them |
//! | [`counters`] | counters of interfaces, queues and losses; filters of the queues |
//! | [`status`] | state of a lab that another process made |
//!
//! Invariants:
//! - A record names each part of a lab before the part is created. So [`Lab::down`] removes
//!   everything, also if the process was killed meanwhile.
//! - A process is ended only if it is in a namespace of the lab, identified by its ID and its start
//!   time.
//! - `net.core.wmem_default` and `rmem_default` of the machine are raised while Open vSwitch
//!   starts, and restored afterwards. If the process was killed meanwhile, the next lab restores
//!   them.
//! - Labs of different names do not affect each other. Nothing is created in the namespace of the
//!   caller.
//!
//! Needs root, and Open vSwitch (ovsdb-server, ovs-vswitchd, ovsdb-tool) for switches of that kind.
//! Left out: propagation delay and loss on links, VLANs, the datapath of the kernel.

#![forbid(unsafe_code)]

mod buffers;
pub mod counters;
mod error;
pub mod file;
mod first_frame;
pub mod lab;
pub mod namespace;
mod open_vswitch;
pub mod plan;
pub mod preflight;
mod process;
mod record;
pub mod status;
mod wiring;

pub use error::{Error, Result};
pub use file::LabFile;
pub use lab::Lab;
pub use namespace::Namespace;
pub use preflight::{Check, Outcome};
pub use status::Status;

/// Compiles the examples of the project's documents.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/lab.md")]
struct Documents;
