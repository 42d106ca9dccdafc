//! AF_XDP transport: exchanges frames with an interface, bypassing the kernel's network stack.
//!
//! [`XdpTransport`] is a [`Transport`](takt_transport::Transport) whose datagrams are ordinary UDP
//! on the wire, so it interoperates with every participant over UDP. `docs/guide/xdp.md` describes
//! its requirements and how to try it.
//!
//! | module | contents |
//! |---|---|
//! | `mapping`, `umem`, `ring` | memory shared with the kernel: frames, and the rings that exchange them |
//! | `socket`, `socket_set` | an AF_XDP socket with its rings, bound to one queue; the sockets of one participant |
//! | `assembly` | frames that are received in several parts |
//! | `holds` | received frames that samples on loan refer to |
//! | `assembler`, `bpf`, `filter`, `attach` | the packet filter: assembling, loading, ports, attachment |
//! | `share` | one filter for all participants at an interface |
//! | `queue_binding` | the queues of one participant and its part in the filter |
//! | `capabilities` | capabilities that opening needs and running does not |
//! | `retry` | retries while a resource is still busy |
//! | `neighbors` | hardware addresses of neighbors, from the kernel's table |
//! | `wire` | conversion between frames and datagrams |
//! | `interface` | datagrams to and from the neighbors at one interface |
//! | `transport` | the transport, with the kernel's sockets for traffic that AF_XDP does not carry |
//! | `factory`, `probe` | the transport by its name in a configuration, and the requirements on an interface |
//!
//! Invariants:
//! - apart from Takt's crates, the only dependency is `libc`: no C library, no filter compiler, no
//!   file on disk;
//! - attachments and bindings end with the process, for any reason;
//! - a frame's memory belongs either to the process or to the kernel; every entry of a ring is
//!   validated;
//! - `loan`, `commit`, `flush` and `recv` do not allocate.

#![deny(unsafe_code)]

mod assembly;
mod capabilities;
mod config;
mod ethernet;
mod factory;
mod interface;
mod neighbors;
mod probe;
mod program;
mod retry;
mod share;
mod sockets;
mod syscall;
mod transport;
mod urgency_queue;
mod wire;

pub use capabilities::drop_capabilities;
pub use config::{Mode, Queues, XdpConfig, XdpCounters, XdpReport};
pub use ethernet::{XdpPort, XdpPortConfig};
pub use factory::register;
pub use transport::XdpTransport;

// The code in the documents is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/guide/xdp.md")]
#[doc = include_str!("../../../../docs/guide/transports.md")]
struct Documents;
