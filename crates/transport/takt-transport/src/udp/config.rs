//! Configuration of the UDP transport.

use std::net::{Ipv4Addr, Ipv6Addr};

use takt_wire::ports::PortMapping;

/// Selection of the well-known unicast ports of a participant (RTPS 2.5 §9.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParticipantIndex {
    /// The first index of 0..=119 whose metatraffic and user ports are both free; higher ones would
    /// use ports of the next domain. If none is free, the kernel chooses the ports, so the number
    /// of participants of a host is unlimited.
    #[default]
    Auto,
    /// Exactly this index. Opening the transport fails if one of its ports is not free.
    Fixed(u16),
    /// Ports that the kernel chooses.
    Ephemeral,
    /// This port for metatraffic, to which other participants are configured to send, and a port
    /// that the kernel chooses for user data. Opening the transport fails if the port is not free.
    Metatraffic(u16),
}

/// Selection of network interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum InterfaceSelection {
    /// All interfaces that are up, except loopback. Loopback is used if no other interface is up.
    #[default]
    All,
    /// Interfaces given by name (`"eth0"`) or by one of their addresses (`"192.0.2.2"`, which
    /// selects that address alone).
    Named(Vec<String>),
}

/// Configuration of a [`UdpTransport`](super::UdpTransport).
#[derive(Debug, Clone, PartialEq)]
pub struct UdpConfig {
    /// DDS domain; determines the well-known ports.
    pub domain_id: u32,
    /// Well-known unicast ports to use.
    pub participant_index: ParticipantIndex,
    /// Network interfaces to use.
    pub interfaces: InterfaceSelection,
    /// Whether to use UDPv4.
    pub ipv4: bool,
    /// Whether to use UDPv6.
    pub ipv6: bool,
    /// Whether to use multicast: join the two groups, announce them, and send to multicast groups.
    pub multicast: bool,
    /// UDPv4 group of discovery and user data. Default: 239.255.0.1 (RTPS 2.5 §9.6.2).
    pub multicast_group_v4: Ipv4Addr,
    /// UDPv6 group of discovery and user data. Default: ff02::ffff:efff:1.
    pub multicast_group_v6: Ipv6Addr,
    /// Time to live (IPv6: hop limit) of multicast datagrams. They pass at most one router less. 0
    /// keeps them on this host.
    pub multicast_ttl: u8,
    /// Requested receive buffer size of each socket, in bytes. The transport warns if the kernel
    /// grants less (`net.core.rmem_max`).
    pub receive_buffer_bytes: usize,
    /// Requested send buffer size of each socket, in bytes. The transport warns if the kernel
    /// grants less (`net.core.wmem_max`).
    pub send_buffer_bytes: usize,
    /// Maximum number of octets of fragments of large samples in the queues of the network
    /// interfaces, for each priority. Samples of other topics and processes wait behind at most so
    /// many. The kernel counts its own overhead too, and one more batch of fragments of some 16 KiB
    /// may be queued. 0 for no limit but [`send_buffer_bytes`](Self::send_buffer_bytes).
    pub fragment_queue_bytes: usize,
    /// Whether the kernel segments sent datagrams and coalesces received ones (`UDP_SEGMENT`,
    /// `UDP_GRO`), where it supports that.
    pub segmentation: bool,
    /// Constants of the port mapping.
    pub ports: PortMapping,
}

impl UdpConfig {
    /// Returns the defaults for a domain: UDPv4 with multicast on all interfaces, buffers of 4 MiB.
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
            fragment_queue_bytes: 64 << 10,
            segmentation: true,
            ports: PortMapping::default(),
        }
    }
}
