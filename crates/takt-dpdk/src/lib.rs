//! DPDK: frames between a network port and this process that the kernel does not see, in either wire form.
//!
//! | form | transport | on the wire |
//! |---|---|---|
//! | UDP | [`UdpStack`], as `DpdkTransport` | Ethernet, IPv4 and UDP: whoever speaks RTPS over UDP is reached and heard |
//! | layer 2 | [`EthernetTransport`](takt_transport::ethernet::EthernetTransport) over a `DpdkPort` | as AF_PACKET and AF_XDP have it |
//!
//! `docs/dpdk.md` says what it takes and how to try it. Without the feature `dpdk` there is only the stack, which needs no library.
//!
//! | module | what it is |
//! |---|---|
//! | `ffi` | the border to the library, with owners for what crosses it; all unsafe code |
//! | `eal` | DPDK's environment, once in a process |
//! | `port` | one port: frames in bursts, in mbufs |
//! | `factory` | the transports by name |
//! | `probe` | what DPDK could drive here |
//! | `stack` | what a kernel does otherwise: ARP, IGMP, IPv4 and UDP, over any [`FramePort`](takt_transport::ethernet::FramePort) |
//!
//! Invariants:
//! - a frame is ours or the driver's, never both, and freed once: the type that owns it sees to that;
//! - tables that others can make grow are bounded, `docs/limits.md` has the bounds;
//! - `loan`, `commit`, `flush` and `recv` do not allocate, and none of them is a system call of ours.

#![deny(unsafe_code)]

mod config;
#[cfg(feature = "dpdk")]
mod eal;
#[cfg(feature = "dpdk")]
mod factory;
#[cfg(feature = "dpdk")]
mod ffi;
#[cfg(feature = "dpdk")]
mod port;
#[cfg(feature = "dpdk")]
mod probe;
mod stack;

pub use config::{DpdkConfig, UdpStackConfig};
#[cfg(feature = "dpdk")]
pub use factory::register;
#[cfg(feature = "dpdk")]
pub use port::{DpdkCounters, DpdkPort};
#[cfg(feature = "dpdk")]
pub use stack::DpdkTransport;
pub use stack::{StackCounters, UdpStack};
