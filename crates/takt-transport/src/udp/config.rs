//! What a UDP transport is asked to be.

use std::net::{Ipv4Addr, Ipv6Addr};

use takt_wire::ports::PortMapping;

/// Which of the well-known unicast ports a participant takes (RTPS 2.5 §9.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParticipantIndex {
    /// The first free index of 0..=119, whose metatraffic and user port are both
    /// free; beyond that, ports of the kernel's choice. So there is no limit
    /// to the participants of a host.
    #[default]
    Auto,
    /// This index or nothing.
    Fixed(u16),
    /// Ports of the kernel's choice at once.
    Ephemeral,
    /// This port for metatraffic, where others look for it, and one of the kernel's choice for user data.
    Metatraffic(u16),
}

/// Which network interfaces to use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum InterfaceSelection {
    /// All that are up and not loopback; loopback when there is no other.
    #[default]
    All,
    /// These, each given by name (`"eth0"`) or by one of its addresses
    /// (`"192.0.2.2"`, which chooses that address alone).
    Named(Vec<String>),
}

/// Configuration of a [`UdpTransport`](super::UdpTransport).
#[derive(Debug, Clone, PartialEq)]
pub struct UdpConfig {
    /// The DDS domain; decides on the well-known ports.
    pub domain_id: u32,
    /// Which well-known unicast ports to take.
    pub participant_index: ParticipantIndex,
    /// Which network interfaces to use.
    pub interfaces: InterfaceSelection,
    /// Use UDPv4.
    pub ipv4: bool,
    /// Use UDPv6.
    pub ipv6: bool,
    /// Use multicast: join the groups, announce them, and send to any group.
    pub multicast: bool,
    /// The UDPv4 group of discovery and user data: 239.255.0.1 (RTPS 2.5 §9.6.2).
    pub multicast_group_v4: Ipv4Addr,
    /// The UDPv6 group of discovery and user data.
    pub multicast_group_v6: Ipv6Addr,
    /// How many routers a multicast datagram may pass, plus one.
    pub multicast_ttl: u8,
    /// Receive buffer to ask the kernel for, in bytes, per socket.
    pub receive_buffer_bytes: usize,
    /// Send buffer to ask the kernel for, in bytes, per socket.
    pub send_buffer_bytes: usize,
    /// Have the kernel cut and join datagrams of one size to one address, where it can (`UDP_SEGMENT`, `UDP_GRO`).
    pub segmentation: bool,
    /// Constants of the port mapping.
    pub ports: PortMapping,
}

impl UdpConfig {
    /// The defaults for a domain: UDPv4 with multicast on all interfaces.
    pub fn new(domain_id: u32) -> Self {
        Self {
            domain_id,
            participant_index: ParticipantIndex::Auto,
            interfaces: InterfaceSelection::All,
            ipv4: true,
            ipv6: false,
            multicast: true,
            multicast_group_v4: Ipv4Addr::new(239, 255, 0, 1),
            multicast_group_v6: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1),
            multicast_ttl: 1,
            receive_buffer_bytes: 4 << 20,
            send_buffer_bytes: 4 << 20,
            segmentation: true,
            ports: PortMapping::default(),
        }
    }
}
