//! Network packet headers below RTPS on Ethernet: views that parse them and headers that write
//! them.
//!
//! | layer | view | header | source |
//! |---|---|---|---|
//! | Ethernet II, one 802.1Q tag | [`EthernetFrame`] | [`EthernetHeader`] | IEEE 802.3, 802.1Q |
//! | ARP | [`ArpPacket`] | [`ArpPacket`] | RFC 826 |
//! | IPv4 | [`Ipv4Packet`] | [`Ipv4Header`] | RFC 791 |
//! | IPv6 | [`Ipv6Packet`] | [`Ipv6Header`] | RFC 8200 |
//! | ICMP: echo replies | | [`reply_to_echo`] | RFC 792 |
//! | IGMP | [`IgmpMessage`] | [`IgmpMessage`] | RFC 2236, RFC 3376 |
//! | UDP | [`UdpDatagram`] | [`UdpHeader`] | RFC 768 |
//! | IP and UDP together | | [`DatagramHeader`] | |
//! | RTPS without IP | [`TaktDatagram`] | [`TaktHeader`] | Takt's own |
//!
//! and the [internet checksum](checksum) (RFC 1071), including the "partial" one of Linux.
//!
//! Two levels, as in `takt-wire`: a view borrows bytes whose lengths it has validated once, so that
//! its getters cannot fail; a header is a plain value that is written into the caller's frame.
//!
//! Invariants: no I/O, no allocation, no panic for any bytes. No octet beyond the stated length of
//! a packet is read, so the padding of short Ethernet frames is never taken for payload. Lengths
//! are in octets; ports and addresses are values, not in network order.
//!
//! Deliberately not here: reassembly, IPv4 options and IPv6 extension headers (recognized, so that
//! such packets can be left to the kernel), and any state.

#![no_std]
#![forbid(unsafe_code)]

mod address;
mod arp;
pub mod checksum;
mod datagram;
mod error;
mod ethernet;
mod icmp;
mod igmp;
mod ipv4;
mod ipv6;
mod takt;
mod udp;

pub use address::{MacAddress, NotAMacAddress};
pub use arp::{ArpOperation, ArpPacket};
pub use checksum::Sum;
pub use datagram::{DatagramAddresses, DatagramHeader};
pub use error::{Malformed, NoRoom};
pub use ethernet::{EtherType, EthernetFrame, EthernetHeader, VlanTag};
pub use icmp::{ICMP, reply_to_echo};
pub use igmp::{IGMP, IgmpMessage};
pub use ipv4::{Ipv4Header, Ipv4Packet};
pub use ipv6::{Ipv6Header, Ipv6Packet};
pub use takt::{TaktDatagram, TaktHeader};
pub use udp::{DatagramError, UDP, UdpChecksum, UdpDatagram, UdpHeader};
