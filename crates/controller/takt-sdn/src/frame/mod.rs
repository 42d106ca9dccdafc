//! Ethernet frames: Ethernet II with up to two 802.1Q tags, ARP, IPv4, IPv6, UDP and LLDP.
//!
//! Headers and checksums are those of [`takt_packet`]. This module adds what a controller needs:
//! two tags, IPv4 options, IPv6 extension headers, fragments, LLDP (IEEE 802.1AB), multicast
//! membership (IGMP, MLD), and rewriting.
//!
//! Views borrow the octets. No input causes a panic. Octets beyond the length field of a packet are
//! not read, so padding is never payload. Lengths and offsets are in octets.
//!
//! Not supported: reassembly of fragments, IEEE 802.3 length frames beyond their addresses, ESP.

mod build;
mod ip;
pub mod lldp;
pub mod membership;
#[cfg(test)]
mod tests;

pub use build::{CannotRewrite, UdpFrame, arp_frame, replace_udp_payload, with_dscp};
pub use ip::{Fragment, IpPacket};
use takt_packet::UdpDatagram;
pub use takt_packet::{ArpOperation, ArpPacket, EtherType, MacAddress, Malformed, VlanTag};

/// Maximum number of tags of a frame; a third one is payload.
pub const TAGS_MAX: usize = 2;

/// EtherType of the outer tag of IEEE 802.1ad.
const SERVICE_TAG: u16 = 0x88a8;
/// EtherType of LLDP.
pub const LLDP: EtherType = EtherType(0x88cc);

/// Length of the two addresses in octets.
const ADDRESSES: usize = 12;

/// A frame with a parsed Ethernet header.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    tags: [VlanTag; TAGS_MAX],
    tag_count: usize,
    ether_type: EtherType,
}

/// Content of a frame.
#[derive(Clone, Copy, Debug)]
pub enum Network<'a> {
    /// ARP of IPv4 over Ethernet.
    Arp(ArpPacket),
    /// IPv4 or IPv6.
    Ip(IpPacket<'a>),
    /// LLDP.
    Lldp(lldp::Lldp<'a>),
    /// Any other content.
    Other,
}

impl<'a> Frame<'a> {
    /// Parses the addresses, the tags and the type. A type below 0x0600 is a length of IEEE 802.3;
    /// then [`Self::network`] is [`Network::Other`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let cut_off = Malformed { offset: bytes.len(), what: "truncated Ethernet header" };
        let word = |at: usize| {
            let octets = bytes.get(at..at + 2).ok_or(cut_off)?;
            Ok(u16::from_be_bytes([octets[0], octets[1]]))
        };
        let mut tags = [VlanTag::default(); TAGS_MAX];
        let mut tag_count = 0;
        let mut at = ADDRESSES;
        let mut ether_type = word(at)?;
        while tag_count < TAGS_MAX && (ether_type == EtherType::VLAN.0 || ether_type == SERVICE_TAG) {
            let bits = word(at + 2)?;
            tags[tag_count] = VlanTag { pcp: (bits >> 13) as u8, dei: bits & 0x1000 != 0, vid: bits & 0x0fff };
            tag_count += 1;
            at += 4;
            ether_type = word(at)?;
        }
        Ok(Self { bytes, tags, tag_count, ether_type: EtherType(ether_type) })
    }

    fn address(&self, at: usize) -> MacAddress {
        let mut octets = [0; 6];
        octets.copy_from_slice(&self.bytes[at..at + 6]);
        MacAddress(octets)
    }

    /// Returns all octets.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the destination address.
    pub fn destination(&self) -> MacAddress {
        self.address(0)
    }

    /// Returns the source address.
    pub fn source(&self) -> MacAddress {
        self.address(6)
    }

    /// Returns the tags, the outer one first.
    pub fn tags(&self) -> &[VlanTag] {
        &self.tags[..self.tag_count]
    }

    /// Returns the VLAN of the outer tag; 0 for an untagged or priority-tagged frame.
    pub fn vlan(&self) -> u16 {
        self.tags().first().map_or(0, |tag| tag.vid)
    }

    /// Returns the type after the tags.
    pub fn ether_type(&self) -> EtherType {
        self.ether_type
    }

    /// Returns the length of addresses, tags and type in octets.
    pub fn header_len(&self) -> usize {
        ADDRESSES + 4 * self.tag_count + 2
    }

    /// Returns the payload, which may end in padding.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len()..]
    }

    /// Parses the content of the frame. The offset of an error counts from the start of the
    /// payload.
    pub fn network(&self) -> Result<Network<'a>, Malformed> {
        Ok(match self.ether_type {
            EtherType::ARP => Network::Arp(ArpPacket::parse(self.payload())?),
            EtherType::IPV4 => Network::Ip(IpPacket::parse_v4(self.payload())?),
            EtherType::IPV6 => Network::Ip(IpPacket::parse_v6(self.payload())?),
            LLDP => Network::Lldp(lldp::Lldp::parse(self.payload())?),
            _ => Network::Other,
        })
    }

    /// Returns the complete UDP datagram of a frame with its IP packet. `None` for other protocols,
    /// fragments and malformed packets.
    pub fn udp(&self) -> Option<(IpPacket<'a>, UdpDatagram<'a>)> {
        let Ok(Network::Ip(packet)) = self.network() else { return None };
        Some((packet, packet.udp()?))
    }
}
