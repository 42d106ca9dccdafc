//! AF_XDP: frames between an interface and this process that pass by the kernel's network stack.
//!
//! [`XdpTransport`] is a [`Transport`](takt_transport::Transport) whose datagrams are real UDP on the wire, so that
//! whoever speaks RTPS over UDP is reached and heard. `docs/xdp.md` says what it takes and how to try it.
//!
//! | module | what it is |
//! |---|---|
//! | `mapping`, `umem`, `ring` | memory that is shared with the kernel: frames, and the rings that hand them over |
//! | `socket`, `bank` | an AF_XDP socket and its rings, bound to one queue; those of one participant |
//! | `assembly` | frames that are received in several parts |
//! | `held` | received frames that samples are borrowed from |
//! | `assembler`, `bpf`, `filter`, `attach` | the packet filter: written, loaded, given ports, attached |
//! | `share` | one filter for all participants at an interface |
//! | `seat` | one participant's queues and its part in the filter |
//! | `capabilities` | what opening takes and running does not |
//! | `patience` | waiting for what was let go a moment ago |
//! | `neighbours` | the hardware addresses of neighbours, as the kernel knows them |
//! | `wire` | frames to datagrams and back |
//! | `carrier` | one interface: datagrams to its neighbours and from them |
//! | `transport` | all of it as a transport, with the kernel's sockets for what AF_XDP does not carry |
//! | `factory`, `probe` | the transport by its name in a configuration, and what an interface has for it |
//!
//! Invariants:
//! - nothing but `libc` is needed: no C library, no compiler of filters, no file on disk;
//! - what is attached and bound is gone when the process is, whichever way it ends;
//! - a frame's memory is ours or the kernel's, never both; no entry of a ring is believed unchecked;
//! - `loan`, `commit`, `flush` and `recv` do not allocate.

#![deny(unsafe_code)]

mod assembler;
mod assembly;
mod attach;
mod bank;
mod bpf;
mod capabilities;
mod carrier;
mod config;
mod ethernet;
mod factory;
mod filter;
mod held;
mod mapping;
mod neighbours;
mod patience;
mod probe;
mod ring;
mod seat;
mod share;
mod socket;
mod syscall;
mod transport;
mod umem;
mod waiting;
mod wire;

pub use capabilities::drop_capabilities;
pub use config::{Mode, Queues, XdpConfig, XdpCounters, XdpReport};
pub use ethernet::{XdpPort, XdpPortConfig};
pub use factory::register;
pub use transport::XdpTransport;

// The code in the documents is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/xdp.md")]
#[doc = include_str!("../../../docs/transports.md")]
struct Documents;
