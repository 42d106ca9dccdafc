//! The network interfaces that a transport uses.

use std::net::IpAddr;

/// One network interface with the addresses in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name as the operating system shows it: `"eth0"`.
    pub name: String,
    /// Index (`ifindex`), the operating system's handle.
    pub index: u32,
    /// Addresses with the length of their network prefix in bits.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Largest IP packet that it carries, in bytes.
    pub mtu: usize,
    /// It leads back to this machine.
    pub loopback: bool,
    /// Multicast may leave and enter through it.
    pub multicast: bool,
}
