//! Configuration of the layer-2 transport, and its counters of dropped frames.

use std::net::Ipv4Addr;

use takt_wire::ports::PortMapping;

use crate::udp::{ParticipantIndex, UdpConfig};

/// Configuration of an [`EthernetTransport`](super::EthernetTransport).
#[derive(Debug, Clone, PartialEq)]
pub struct EthernetConfig {
    /// DDS domain; determines the well-known ports.
    pub domain_id: u32,
    /// Well-known unicast ports to use. Where UDP lets the kernel choose a port, this transport
    /// takes a free one from 49,152 on.
    pub participant_index: ParticipantIndex,
    /// Whether to use multicast: join the group, announce it, and send to any group.
    pub multicast: bool,
    /// IPv4 group whose hardware address is used for discovery and user data: 239.255.0.1
    /// (RTPS 2.5 §9.6.2).
    pub multicast_group: Ipv4Addr,
    /// Constants of the port mapping.
    pub ports: PortMapping,
}

impl EthernetConfig {
    /// Returns the defaults for a domain.
    pub fn new(domain_id: u32) -> Self {
        Self {
            domain_id,
            participant_index: ParticipantIndex::Auto,
            multicast: true,
            multicast_group: Ipv4Addr::new(239, 255, 0, 1),
            ports: PortMapping::default(),
        }
    }

    /// Derives the configuration from the UDP settings of the same participant.
    pub fn from_udp(udp: &UdpConfig) -> Self {
        Self {
            domain_id: udp.domain_id,
            participant_index: udp.participant_index,
            multicast: udp.multicast,
            multicast_group: udp.multicast_group_v4,
            ports: udp.ports,
        }
    }
}

/// Received frames that were dropped since the transport was opened, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EthernetCounters {
    /// Frames that are truncated, have an unknown version or flag, inconsistent lengths, or no
    /// valid source.
    pub malformed: u64,
    /// Frames of another EtherType, VLAN or group, or for another hardware address.
    pub not_addressed: u64,
    /// Frames for a port that is not open.
    pub port_closed: u64,
    /// Failed attempts to send, because the interface is down or gone.
    /// [`FramePortStats`](super::FramePortStats) counts the frames.
    pub refused_flushes: u64,
}
