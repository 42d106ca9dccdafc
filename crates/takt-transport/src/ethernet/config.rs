//! What a layer-2 transport is asked to be, and what it has dropped.

use std::net::Ipv4Addr;

use takt_wire::ports::PortMapping;

use crate::udp::{ParticipantIndex, UdpConfig};

/// Configuration of an [`EthernetTransport`](super::EthernetTransport).
#[derive(Debug, Clone, PartialEq)]
pub struct EthernetConfig {
    /// The DDS domain; decides on the well-known ports.
    pub domain_id: u32,
    /// Which well-known unicast ports to take. "Of the kernel's choice" means any free one from 49,152 on.
    pub participant_index: ParticipantIndex,
    /// Use multicast: join the group, announce it, and send to any group.
    pub multicast: bool,
    /// The group of IPv4 whose hardware address discovery and user data use: 239.255.0.1 (RTPS 2.5 §9.6.2).
    pub multicast_group: Ipv4Addr,
    /// Constants of the port mapping.
    pub ports: PortMapping,
}

impl EthernetConfig {
    /// The defaults for a domain.
    pub fn new(domain_id: u32) -> Self {
        Self {
            domain_id,
            participant_index: ParticipantIndex::Auto,
            multicast: true,
            multicast_group: Ipv4Addr::new(239, 255, 0, 1),
            ports: PortMapping::default(),
        }
    }

    /// What a participant is that would use UDP like this.
    pub fn beside(udp: &UdpConfig) -> Self {
        Self {
            domain_id: udp.domain_id,
            participant_index: udp.participant_index,
            multicast: udp.multicast,
            multicast_group: udp.multicast_group_v4,
            ports: udp.ports,
        }
    }
}

/// Frames that were received and dropped, by reason, since the transport was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EthernetCounters {
    /// Cut off, of a version or with a flag that is not known, with lengths that contradict each other, or from nowhere.
    pub malformed: u64,
    /// Of another EtherType, VLAN, group, or for another hardware address.
    pub foreign: u64,
    /// For a port that is not open.
    pub closed: u64,
    /// Attempts to send that the interface refused: it is down, or gone. [`FramePortStats`](super::FramePortStats) has the frames.
    pub refused_flushes: u64,
}
