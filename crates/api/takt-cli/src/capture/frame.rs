//! Detection of RTPS in Ethernet frames: UDP over IPv4 or IPv6 whose payload begins with `RTPS`, or
//! with `RTPX` (Connext), fragments of such datagrams, and RTPS on Ethernet without IP.
//!
//! RTPS over TCP is not detected.

use std::collections::VecDeque;
use std::net::IpAddr;
use takt_packet::{EtherType, EthernetFrame, Ipv4Packet, Ipv6Packet, TaktDatagram};

const UDP: u8 = 17;
const UDP_HEADER_LEN: usize = 8;
/// Next header of an IPv6 fragment, and the length of the fragment header (RFC 8200 §4.5).
const IPV6_FRAGMENT: u8 = 44;
const IPV6_FRAGMENT_LEN: usize = 8;
/// Protocol identifiers of an RTPS message (RTPS 2.5 §9.4.4).
const PROTOCOLS: [&[u8]; 2] = [b"RTPS", b"RTPX"];
/// Maximum number of fragmented datagrams whose further fragments are recognized.
const FRAGMENTED_MAX: usize = 256;

/// Identity of a fragmented datagram.
type Fragmented = (IpAddr, IpAddr, u32);

/// Recognizes RTPS in the frames of one interface.
#[derive(Debug, Default)]
pub struct Recognition {
    /// Datagrams of RTPS whose first fragment was seen, oldest first.
    fragmented: VecDeque<Fragmented>,
}

impl Recognition {
    /// Reports whether a frame carries RTPS, or a further fragment of it.
    pub fn is_rtps(&mut self, frame: &[u8]) -> bool {
        let Ok(frame) = EthernetFrame::parse(frame) else { return false };
        match frame.header().ether_type {
            EtherType::IPV4 => self.is_ipv4(frame.payload()),
            EtherType::IPV6 => self.is_ipv6(frame.payload()),
            EtherType::TAKT => TaktDatagram::parse(frame.payload()).is_ok_and(|datagram| begins(datagram.payload())),
            _ => false,
        }
    }

    fn is_ipv4(&mut self, packet: &[u8]) -> bool {
        let Ok(packet) = Ipv4Packet::parse(packet) else { return false };
        if packet.protocol() != UDP {
            return false;
        }
        let datagram = (packet.source().into(), packet.destination().into(), u32::from(packet.identification()));
        self.is_part(packet.payload(), packet.fragment_offset(), packet.is_fragment().then_some(datagram))
    }

    fn is_ipv6(&mut self, packet: &[u8]) -> bool {
        let Ok(packet) = Ipv6Packet::parse(packet) else { return false };
        match (packet.next_header(), packet.payload()) {
            (UDP, payload) => self.is_part(payload, 0, None),
            (IPV6_FRAGMENT, &[UDP, _, a, b, ref id @ ..]) => {
                let Some(&id) = id.first_chunk() else { return false };
                let datagram = (packet.source().into(), packet.destination().into(), u32::from_be_bytes(id));
                let offset = usize::from(u16::from_be_bytes([a, b]) & !7);
                self.is_part(&packet.payload()[IPV6_FRAGMENT_LEN..], offset, Some(datagram))
            }
            _ => false,
        }
    }

    /// Reports whether the part of a UDP datagram at this offset belongs to RTPS.
    fn is_part(&mut self, part: &[u8], offset: usize, fragmented: Option<Fragmented>) -> bool {
        if offset > 0 {
            return fragmented.is_some_and(|datagram| self.fragmented.contains(&datagram));
        }
        let is_rtps = part.get(UDP_HEADER_LEN..).is_some_and(begins);
        if is_rtps && let Some(datagram) = fragmented {
            if self.fragmented.len() == FRAGMENTED_MAX {
                self.fragmented.pop_front();
            }
            self.fragmented.push_back(datagram);
        }
        is_rtps
    }
}

/// Reports whether octets begin like an RTPS message.
fn begins(octets: &[u8]) -> bool {
    PROTOCOLS.iter().any(|protocol| octets.starts_with(protocol))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(ether_type: u16, content: &[u8]) -> Vec<u8> {
        [&[2; 12][..], &ether_type.to_be_bytes(), content].concat()
    }

    /// Returns an IPv4 packet; `fragment` is the field of flags and offset.
    fn ipv4(protocol: u8, id: u8, fragment: u16, content: &[u8]) -> Vec<u8> {
        let len = u16::try_from(20 + content.len()).expect("short").to_be_bytes();
        let [a, b] = fragment.to_be_bytes();
        let header = [0x45, 0, len[0], len[1], 0, id, a, b, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ethernet(0x0800, &[&header[..], content].concat())
    }

    fn ipv6(next_header: u8, content: &[u8]) -> Vec<u8> {
        let len = u16::try_from(content.len()).expect("short").to_be_bytes();
        let header = [&[0x60, 0, 0, 0, len[0], len[1], next_header, 64][..], &[0xfd; 32]].concat();
        ethernet(0x86dd, &[&header[..], content].concat())
    }

    fn udp(payload: &[u8]) -> Vec<u8> {
        let len = u16::try_from(8 + payload.len()).expect("short").to_be_bytes();
        [&[0x1c, 0xe8, 0x1c, 0xe9, len[0], len[1], 0, 0][..], payload].concat()
    }

    #[test]
    fn rtps_is_recognized_over_udp_and_nothing_else_is() {
        let mut recognition = Recognition::default();
        for payload in [&b"RTPS\x02\x05rest"[..], b"RTPX\x02\x05rest"] {
            assert!(recognition.is_rtps(&ipv4(17, 1, 0, &udp(payload))));
            assert!(recognition.is_rtps(&ipv6(17, &udp(payload))));
        }
        assert!(!recognition.is_rtps(&ipv4(17, 1, 0, &udp(b"RTP"))));
        assert!(!recognition.is_rtps(&ipv4(6, 1, 0, &udp(b"RTPS\x02\x05rest"))));
        assert!(!recognition.is_rtps(&ethernet(0x0806, &udp(b"RTPS\x02\x05rest"))));
        let whole = ipv4(17, 1, 0, &udp(b"RTPS\x02\x05rest"));
        for len in 0..whole.len() {
            recognition.is_rtps(&whole[..len]);
        }
    }

    #[test]
    fn fragments_follow_their_first_fragment() {
        const MORE: u16 = 0x2000;
        let mut recognition = Recognition::default();
        assert!(!recognition.is_rtps(&ipv4(17, 7, 1, b"continued")), "its first fragment was not seen");
        assert!(recognition.is_rtps(&ipv4(17, 7, MORE, &udp(b"RTPS\x02\x05rest"))));
        assert!(recognition.is_rtps(&ipv4(17, 7, 1, b"continued")));
        assert!(!recognition.is_rtps(&ipv4(17, 8, 1, b"of another datagram")));
        let fragment = |offset: u8, content: &[u8]| [&[17, 0, 0, offset | 1, 0, 0, 0, 9][..], content].concat();
        assert!(recognition.is_rtps(&ipv6(44, &fragment(0, &udp(b"RTPS\x02\x05rest")))));
        assert!(recognition.is_rtps(&ipv6(44, &fragment(16, b"continued"))));
    }

    #[test]
    fn number_of_remembered_datagrams_is_bounded() {
        let mut recognition = Recognition::default();
        for id in 0..=255 {
            recognition.is_rtps(&ipv4(17, id, 0x2000, &udp(b"RTPS\x02\x05rest")));
        }
        recognition.is_rtps(&ipv6(44, &[&[17, 0, 0, 1, 0, 0, 0, 9][..], &udp(b"RTPS\x02\x05rest")].concat()));
        assert_eq!(recognition.fragmented.len(), FRAGMENTED_MAX);
        assert!(!recognition.is_rtps(&ipv4(17, 0, 1, b"of the oldest")));
    }
}
