//! Construction of frames: UDP datagrams, ARP, and frames with a replaced UDP payload. Checksums
//! are computed.

use std::fmt;
use std::net::SocketAddr;

use takt_packet::{DatagramAddresses, DatagramHeader, EthernetHeader, Ipv6Header, NoRoom, Sum, UdpHeader};

use super::{ADDRESSES, ArpPacket, EtherType, Frame, MacAddress, Network, SERVICE_TAG, TAGS_MAX, VlanTag};

/// A frame with a UDP datagram.
#[derive(Clone, Copy, Debug)]
pub struct UdpFrame<'a> {
    /// Destination address of the frame.
    pub destination_mac: MacAddress,
    /// Source address of the frame.
    pub source_mac: MacAddress,
    /// VLAN tags, at most two, the outer one first.
    pub tags: &'a [VlanTag],
    /// Source of the datagram.
    pub source: SocketAddr,
    /// Destination of the datagram, with the same IP version.
    pub destination: SocketAddr,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Payload of the datagram.
    pub payload: &'a [u8],
}

impl UdpFrame<'_> {
    /// Returns the octets. [`NoRoom`] if the datagram is too long for IP, the IP versions differ,
    /// or there are more than two tags.
    pub fn build(&self) -> Result<Vec<u8>, NoRoom> {
        if self.tags.len() > TAGS_MAX {
            return Err(NoRoom);
        }
        let addresses = DatagramAddresses::new(self.source, self.destination).ok_or(NoRoom)?;
        let header = DatagramHeader { addresses, traffic_class: self.traffic_class, hop_limit: self.hop_limit };
        let mut frame = ethernet(self.destination_mac, self.source_mac, self.tags, addresses.ether_type());
        let ip_at = frame.len();
        frame.resize(ip_at + header.header_len(), 0);
        frame.extend_from_slice(self.payload);
        header.emit(&mut frame[ip_at..])?;
        Ok(frame)
    }
}

/// Builds the start of a frame: addresses, tags and type. The outer one of two tags is that of IEEE
/// 802.1ad.
pub(super) fn ethernet(
    destination: MacAddress,
    source: MacAddress,
    tags: &[VlanTag],
    ether_type: EtherType,
) -> Vec<u8> {
    let mut frame = Vec::with_capacity(EthernetHeader::LEN + EthernetHeader::TAG_LEN * tags.len());
    frame.extend_from_slice(&destination.0);
    frame.extend_from_slice(&source.0);
    for (index, tag) in tags.iter().enumerate() {
        let kind = if index + 1 < tags.len() { SERVICE_TAG } else { EtherType::VLAN.0 };
        let bits = u16::from(tag.pcp & 7) << 13 | u16::from(tag.dei) << 12 | tag.vid & 0x0fff;
        frame.extend_from_slice(&kind.to_be_bytes());
        frame.extend_from_slice(&bits.to_be_bytes());
    }
    frame.extend_from_slice(&ether_type.0.to_be_bytes());
    frame
}

/// Builds a frame with an ARP packet.
pub fn arp_frame(destination: MacAddress, source: MacAddress, tags: &[VlanTag], packet: &ArpPacket) -> Vec<u8> {
    let mut frame = ethernet(destination, source, &tags[..tags.len().min(TAGS_MAX)], EtherType::ARP);
    let at = frame.len();
    frame.resize(at + ArpPacket::LEN, 0);
    packet.emit(&mut frame[at..]).expect("the room is that of the packet");
    frame
}

/// Reason why a payload cannot be replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CannotRewrite {
    /// The frame carries no complete UDP datagram.
    NotUdp,
    /// The new packet would exceed the maximum length of IP.
    TooLong,
}

impl fmt::Display for CannotRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotUdp => "the frame carries no whole UDP datagram",
            Self::TooLong => "the payload makes the packet longer than 65,535 octets",
        })
    }
}

impl std::error::Error for CannotRewrite {}

/// Returns the frame with another UDP payload. Tags, options and extension headers stay; the
/// lengths of IP and UDP and the checksums of the IPv4 header and of UDP are computed. A datagram
/// without a checksum gets one.
pub fn replace_udp_payload(frame: &Frame<'_>, payload: &[u8]) -> Result<Vec<u8>, CannotRewrite> {
    let (packet, datagram) = frame.udp().ok_or(CannotRewrite::NotUdp)?;
    let is_v4 = packet.source().is_ipv4();
    let udp_len = UdpHeader::LEN + payload.len();
    // The length field of IPv4 includes the header, that of IPv6 excludes the fixed header.
    let stated = packet.header_len() + udp_len - if is_v4 { 0 } else { Ipv6Header::LEN };
    let stated = u16::try_from(stated).map_err(|_| CannotRewrite::TooLong)?;
    let ip_at = frame.header_len();
    let udp_at = ip_at + packet.header_len();
    let mut out = frame.bytes()[..udp_at].to_vec();
    out.resize(udp_at + UdpHeader::LEN, 0);
    out.extend_from_slice(payload);
    let header = &mut out[ip_at..udp_at];
    if is_v4 {
        header[2..4].copy_from_slice(&stated.to_be_bytes());
        header[10..12].fill(0);
        let mut sum = Sum::default();
        sum.add(header);
        header[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
    } else {
        header[4..6].copy_from_slice(&stated.to_be_bytes());
    }
    let ports = UdpHeader { source_port: datagram.source_port(), destination_port: datagram.destination_port() };
    ports.emit(&mut out[udp_at..], |len| packet.pseudo_sum(len)).map_err(|_| CannotRewrite::TooLong)?;
    Ok(out)
}

/// Returns the frame with another DSCP (6 bits), 0 for the lowest class; unchanged if it carries no
/// IP.
pub fn with_dscp(frame: &Frame<'_>, dscp: u8) -> Vec<u8> {
    let mut out = frame.bytes().to_vec();
    let Ok(Network::Ip(packet)) = frame.network() else { return out };
    let (at, is_v4) = (frame.header_len(), packet.source().is_ipv4());
    if is_v4 {
        let header = &mut out[at..at + packet.header_len()];
        header[1] = header[1] & 0x03 | dscp << 2;
        header[10..12].fill(0);
        let mut sum = Sum::default();
        sum.add(header);
        header[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
    } else {
        // The traffic class follows the four bits of the version; its last two bits are ECN.
        out[at] = out[at] & 0xf0 | dscp >> 2 & 0x0f;
        out[at + 1] = out[at + 1] & 0x3f | dscp << 6;
    }
    out
}

const _: () = assert!(ADDRESSES + 2 == EthernetHeader::LEN);
