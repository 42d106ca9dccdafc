//! Transports: sending and receiving the datagrams of RTPS messages.
//!
//! [`Transport`] is the central trait. A transport owns its buffers: the sender borrows a frame,
//! writes the message into it and commits it with its destinations; the receiver borrows the
//! arrived datagram. No call hands data to another thread, blocks, or allocates after opening.
//!
//! Contents:
//!
//! * the trait and its types ([`Transport`], [`FlowSpec`], [`RxFrame`], ...),
//! * [`udp`]: UDPv4 and UDPv6, the platform specific model of RTPS 2.5 §9,
//! * [`tcp`]: TCP, with or without TLS,
//! * [`shm`]: shared memory between the processes of one user,
//! * [`daemon`]: a process that owns the network for a host, and the transport that connects to it,
//! * [`ethernet`]: RTPS on Ethernet frames without IP,
//! * [`choice`]: selection of transports by name, for configurations,
//! * [`urgency_buffer`]: queue of received datagrams by urgency,
//! * [`Layer`] and the transport wrappers: [`FaultInjector`], [`PcapTap`], [`Tracer`],
//! * [`Capture`]: a pcapng file that several transports write to, and [`pcapng`], its blocks,
//! * [`readiness`]: waiting for descriptors, and waking such a wait,
//! * `conformance` (feature of that name): the suite that every backend passes.
//!
//! Deliberately not here: interpretation of RTPS messages. Exceptions are the message header, which
//! frames messages in a stream, and the submessages by which a daemon routes.

#![deny(unsafe_code)]

mod capture;
pub mod choice;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod daemon;
mod error;
pub mod ethernet;
mod fault;
mod interface;
mod layer;
mod packet;
mod pcap;
pub mod pcapng;
pub mod readiness;
pub mod shm;
mod stats;
pub mod tcp;
mod trace;
mod transport;
pub mod udp;
pub mod urgency_buffer;

pub use capture::{Capture, CaptureSummary};
pub use error::{TransportError, Warning};
pub use fault::{FaultConfig, FaultCounts, FaultInjector, Faults};
pub use interface::{Interface, address_towards};
pub use layer::Layer;
pub use packet::{Captured, LinkType};
pub use pcap::{PcapFile, PcapTap};
pub use stats::{ConnectionCounts, SendErrors, TransportStats};
pub use takt_wire::MESSAGE_LEN_MIN;
pub use trace::{Observer, TraceEvent, Tracer};
pub use transport::{
    Capabilities, Commit, Control, FRAGMENT_OCTETS_PER_FLUSH, FlowId, FlowSpec, Locators, Lost, Payload, Reach,
    Receive, RxFrame, RxMeta, Scan, Status, Transport, TransportEvent,
};
