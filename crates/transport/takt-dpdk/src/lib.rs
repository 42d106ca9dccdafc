//! DPDK transports: exchange frames with a network port, bypassing the kernel, in both wire
//! formats.
//!
//! | format | transport | on the wire |
//! |---|---|---|
//! | UDP | [`UdpStack`], as `DpdkTransport` | Ethernet, IPv4 and UDP: interoperates with every participant over UDP |
//! | layer 2 | [`EthernetTransport`](takt_transport::ethernet::EthernetTransport) over a `DpdkPort` | as over AF_PACKET and AF_XDP |
//!
//! `docs/guide/dpdk.md` describes the requirements and how to try it. Without the feature `dpdk`,
//! there is only the stack, which needs no library.
//!
//! | module | contents |
//! |---|---|
//! | `ffi` | FFI to the library, with owning types; all unsafe code |
//! | `eal` | DPDK's environment, once in a process |
//! | `port` | one port: frames in bursts, in mbufs |
//! | `factory` | the transports by name |
//! | `probe` | devices that DPDK can drive on this machine |
//! | `stack` | network stack in user space: ARP, IGMP, IPv4 and UDP, over any [`FramePort`](takt_transport::ethernet::FramePort) |
//!
//! Invariants:
//! - a frame belongs either to the process or to the driver, and is freed once, by the type that
//!   owns it;
//! - tables that peers can grow are bounded, `docs/reference/limits.md` lists the bounds;
//! - `loan`, `commit`, `flush` and `recv` do not allocate, and make no system calls of their own.

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
