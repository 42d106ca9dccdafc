//! IP packets of both versions, with IPv4 options, IPv6 extension headers and fragments (RFC 791,
//! RFC 8200 §4).

use std::net::IpAddr;

use takt_packet::{Ipv4Packet, Ipv6Header, Ipv6Packet, Malformed, Sum, UDP, UdpDatagram};

/// Protocol numbers of the extension headers: hop-by-hop options, routing header, fragment header,
/// destination options, and mobility, HIP and shim6 (RFC 7045 §4).
const EXTENSIONS: [u8; 8] = [0, 43, FRAGMENT, AUTHENTICATION, 60, 135, 139, 140];
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

/// Position of a fragment in its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Identification that the fragments of one packet share, together with addresses and protocol.
    pub identification: u32,
    /// Offset of the fragment in the packet in octets.
    pub offset: usize,
    /// Whether another fragment follows.
    pub more: bool,
}

/// An IP packet with validated lengths.
#[derive(Clone, Copy, Debug)]
pub struct IpPacket<'a> {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    hop_limit: u8,
    traffic_class: u8,
    fragment: Option<Fragment>,
    header_len: usize,
    bytes: &'a [u8],
}

impl<'a> IpPacket<'a> {
    /// Parses an IPv4 packet; octets beyond its length are padding. A wrong header checksum is
    /// malformed.
    pub fn parse_v4(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let packet = Ipv4Packet::parse(bytes)?;
        if !packet.header_is_intact() {
            return Err(Malformed { offset: 10, what: "IPv4 header with a wrong checksum" });
        }
        let fragment = packet.is_fragment().then(|| Fragment {
            identification: u32::from(packet.identification()),
            offset: packet.fragment_offset(),
            more: packet.has_more_fragments(),
        });
        Ok(Self {
            source: packet.source().into(),
            destination: packet.destination().into(),
            protocol: packet.protocol(),
            hop_limit: packet.ttl(),
            traffic_class: packet.traffic_class(),
            fragment,
            header_len: packet.header_len(),
            bytes: &bytes[..packet.header_len() + packet.payload().len()],
        })
    }

    /// Parses an IPv6 packet and its extension headers; octets beyond its length are padding. In a
    /// fragment other than the first, the headers after the fragment header are not parsed: they
    /// are in the first fragment.
    pub fn parse_v6(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let packet = Ipv6Packet::parse(bytes)?;
        let bytes = &bytes[..Ipv6Header::LEN + packet.payload().len()];
        let mut next = packet.next_header();
        let mut at = Ipv6Header::LEN;
        let mut fragment = None;
        while EXTENSIONS.contains(&next) {
            let cut_off = Malformed { offset: bytes.len(), what: "truncated IPv6 extension header" };
            let header: &[u8; 8] = bytes[at..].first_chunk().ok_or(cut_off)?;
            let len = match next {
                FRAGMENT => 8,
                AUTHENTICATION => (usize::from(header[1]) + 2) * 4,
                _ => (usize::from(header[1]) + 1) * 8,
            };
            if at + len > bytes.len() {
                return Err(cut_off);
            }
            at += len;
            let is_fragment = next == FRAGMENT;
            next = header[0];
            if is_fragment {
                let word = u16::from_be_bytes([header[2], header[3]]);
                let part = Fragment {
                    identification: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
                    offset: usize::from(word & 0xfff8),
                    more: word & 1 != 0,
                };
                // An unfragmented packet may have the header, too (RFC 6946).
                if part.offset != 0 || part.more {
                    fragment = Some(part);
                }
                if part.offset != 0 {
                    break;
                }
            }
        }
        Ok(Self {
            source: packet.source().into(),
            destination: packet.destination().into(),
            protocol: next,
            hop_limit: packet.hop_limit(),
            traffic_class: packet.traffic_class(),
            fragment,
            header_len: at,
            bytes,
        })
    }

    /// Returns the source address.
    pub fn source(&self) -> IpAddr {
        self.source
    }

    /// Returns the destination address.
    pub fn destination(&self) -> IpAddr {
        self.destination
    }

    /// Returns the protocol after all headers. In a fragment of IPv6 other than the first, it may
    /// be an extension header.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Returns TTL or hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Returns DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.traffic_class
    }

    /// Returns the position of a fragment; `None` for a whole packet.
    pub fn fragment(&self) -> Option<Fragment> {
        self.fragment
    }

    /// Returns the length of the header in octets, with options and extension headers.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Returns the packet without padding.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the payload after the headers.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len..]
    }

    /// Returns the sum of the pseudo header for a payload of `len` octets with the protocol of this
    /// packet.
    pub fn pseudo_sum(&self, len: u16) -> Sum {
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Sum::pseudo_v4(source, destination, self.protocol, len),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Sum::pseudo_v6(source, destination, self.protocol, len),
            // Both addresses have the same IP version.
            _ => Sum::default(),
        }
    }

    /// Returns the UDP datagram of a whole packet; `None` for another protocol, a fragment, or a
    /// malformed datagram.
    pub fn udp(&self) -> Option<UdpDatagram<'a>> {
        if self.protocol != UDP || self.fragment.is_some() {
            return None;
        }
        UdpDatagram::parse(self.payload()).ok() // tidy-allow(dropped-cause): a malformed datagram counts as none.
    }

    /// Reports whether the packet is a UDP fragment, which no rule on UDP ports matches.
    pub fn is_udp_fragment(&self) -> bool {
        self.fragment.is_some() && (self.protocol == UDP || EXTENSIONS.contains(&self.protocol))
    }
}
