//! Transports: how datagrams of RTPS messages get out of and into a participant.
//!
//! [`Transport`] is the one trait. A transport owns its buffers: the sender
//! borrows a frame, writes the message into it and commits it with its
//! destinations; the receiver borrows what arrived. Nothing is handed to
//! another thread, nothing blocks, and after opening nothing allocates.
//!
//! What lives here:
//!
//! * the trait and its types ([`Transport`], [`FlowSpec`], [`RxFrame`], ...),
//! * [`udp`]: UDPv4 and UDPv6, the platform specific model of RTPS 2.5 §9,
//! * [`tcp`]: TCP, with or without TLS,
//! * [`shm`]: shared memory between the processes of one user,
//! * [`daemon`]: one process of a host that has the network, and the way to it,
//! * [`ethernet`]: what moves Ethernet frames without IP,
//! * [`choice`]: transports by name, for those who configure them,
//! * [`ahead`]: datagrams that wait while what is urgent is looked for behind them,
//! * transports that wrap transports: [`FaultInjector`], [`PcapTap`], [`Tracer`],
//! * [`readiness`]: waiting for descriptors, and waking such a wait,
//! * `conformance` (feature of that name): the suite that every backend passes.
//!
//! What does not: any knowledge of RTPS messages, but for their header, which frames them in a stream, and for the submessages
//! by which a daemon routes them. Bytes are bytes elsewhere.

#![deny(unsafe_code)]

pub mod ahead;
pub mod choice;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod daemon;
mod error;
pub mod ethernet;
mod fault;
mod interface;
mod packet;
mod pcap;
pub mod readiness;
pub mod shm;
mod stats;
pub mod tcp;
mod trace;
mod transport;
pub mod udp;

pub use error::{TransportError, Warning};
pub use fault::{FaultConfig, FaultCounts, FaultInjector, Faults};
pub use interface::Interface;
pub use packet::{Captured, LinkType};
pub use pcap::{PcapFile, PcapTap};
pub use stats::{ConnectionCounts, SendErrors, TransportStats};
pub use trace::{Observer, TraceEvent, Tracer};
pub use transport::{FlowId, FlowSpec, Locators, Lost, RxFrame, RxMeta, Scan, Transport};
