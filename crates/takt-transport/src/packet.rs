//! Packet headers of captured datagrams: optionally Ethernet, then IPv4 or IPv6, then UDP.
//!
//! The headers are composed from the metadata of a datagram, with correct lengths and checksums.
//! Ethernet addresses are derived from IP addresses: groups by RFC 1112 §6.4 and RFC 2464 §7, hosts
//! get a locally administered address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use takt_wire::Locator;

const ETHERNET_HEADER: usize = 14;
const IP_HEADER_MAX: usize = 40;
const UDP_HEADER: usize = 8;
const TTL: u8 = 64;
const UDP: u8 = 17;

/// Datagram to be captured.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// Time since the epoch of the file's time stamps.
    pub time: Duration,
    /// Source; shown as the unspecified address if unknown.
    pub source: Option<Locator>,
    /// Destination.
    pub destination: Locator,
    /// Octet of the IP header that holds the DSCP.
    pub traffic_class: u8,
    /// The datagram was corrupted in transit: its UDP checksum is shown as wrong.
    pub damaged: bool,
    /// Octets of the datagram.
    pub datagram: &'a [u8],
}

/// First header of the records in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Records begin with an IP header.
    Raw,
    /// Records begin with an Ethernet header.
    Ethernet,
}

impl LinkType {
    /// Returns the link type number in capture files.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Raw => 101,
            Self::Ethernet => 1,
        }
    }
}

/// Ethernet, IP and UDP headers.
pub(crate) struct Headers {
    bytes: [u8; ETHERNET_HEADER + IP_HEADER_MAX + UDP_HEADER],
    len: usize,
}

impl Headers {
    /// Composes the headers of a datagram; `None` if it cannot be UDP.
    pub(crate) fn compose(link: LinkType, captured: &Captured<'_>) -> Option<Self> {
        let to = captured.destination.socket_addr()?;
        let unspecified = match to.ip() {
            IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            IpAddr::V6(_) => SocketAddr::from(([0u16; 8], 0)),
        };
        let from = captured.source.and_then(|from| from.socket_addr()).unwrap_or(unspecified);
        let udp_len = u16::try_from(UDP_HEADER + captured.datagram.len()).ok()?;
        let mut headers = Self { bytes: [0; ETHERNET_HEADER + IP_HEADER_MAX + UDP_HEADER], len: 0 };
        if link == LinkType::Ethernet {
            headers.ethernet(from.ip(), to.ip());
        }
        let addresses = headers.ip(from.ip(), to.ip(), udp_len, captured.traffic_class)?;
        let h = &mut headers.bytes[headers.len..][..UDP_HEADER];
        h[..2].copy_from_slice(&from.port().to_be_bytes());
        h[2..4].copy_from_slice(&to.port().to_be_bytes());
        h[4..6].copy_from_slice(&udp_len.to_be_bytes());
        // Pseudo header: addresses, protocol, length.
        let mut sum = addresses;
        sum.add(&[0, UDP]);
        sum.add(&udp_len.to_be_bytes());
        sum.add(h);
        sum.add(captured.datagram);
        let sum = match sum.finish() ^ if captured.damaged { 0x5555 } else { 0 } {
            // A checksum of zero is sent as 0xffff, because zero means "no checksum".
            0 => 0xffff,
            sum => sum,
        };
        h[6..].copy_from_slice(&sum.to_be_bytes());
        headers.len += UDP_HEADER;
        Some(headers)
    }

    /// Returns the octets that precede the datagram.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn ethernet(&mut self, from: IpAddr, to: IpAddr) {
        let h = &mut self.bytes[..ETHERNET_HEADER];
        h[..6].copy_from_slice(&hardware_address(to));
        h[6..12].copy_from_slice(&hardware_address(from));
        h[12..].copy_from_slice(if to.is_ipv4() { &[0x08, 0x00] } else { &[0x86, 0xdd] });
        self.len = ETHERNET_HEADER;
    }

    /// Writes the IP header; returns the checksum state over its addresses.
    fn ip(&mut self, from: IpAddr, to: IpAddr, udp_len: u16, traffic_class: u8) -> Option<Checksum> {
        let mut addresses = Checksum::default();
        match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let h = &mut self.bytes[self.len..][..20];
                h[0] = 0x45;
                h[1] = traffic_class;
                h[2..4].copy_from_slice(&udp_len.checked_add(20)?.to_be_bytes());
                h[6] = 0x40; // do not fragment
                h[8] = TTL;
                h[9] = UDP;
                h[12..16].copy_from_slice(&from.octets());
                h[16..20].copy_from_slice(&to.octets());
                let mut own = Checksum::default();
                own.add(h);
                h[10..12].copy_from_slice(&own.finish().to_be_bytes());
                addresses.add(&h[12..20]);
                self.len += 20;
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let h = &mut self.bytes[self.len..][..IP_HEADER_MAX];
                h[0] = 0x60 | traffic_class >> 4;
                h[1] = traffic_class << 4;
                h[4..6].copy_from_slice(&udp_len.to_be_bytes());
                h[6] = UDP;
                h[7] = TTL;
                h[8..24].copy_from_slice(&from.octets());
                h[24..40].copy_from_slice(&to.octets());
                addresses.add(&h[8..40]);
                self.len += IP_HEADER_MAX;
            }
            _ => return None,
        }
        Some(addresses)
    }
}

fn hardware_address(ip: IpAddr) -> [u8; 6] {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            if ip.is_multicast() { [0x01, 0x00, 0x5e, b & 0x7f, c, d] } else { [0x02, 0, a, b, c, d] }
        }
        IpAddr::V6(ip) => {
            let [.., a, b, c, d] = ip.octets();
            if ip.is_multicast() { [0x33, 0x33, a, b, c, d] } else { [0x02, 1, a, b, c, d] }
        }
    }
}

/// One's complement sum of 16-bit words, as IP and UDP use it.
#[derive(Default)]
struct Checksum(u64);

impl Checksum {
    /// Adds bytes; only the last call may add an odd number.
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            self.0 += u64::from(u16::from_be_bytes([pair[0], low]));
        }
    }

    fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(source: Option<Locator>, destination: Locator, datagram: &[u8]) -> Option<Headers> {
        Headers::compose(LinkType::Raw, &captured(source, destination, datagram))
    }

    fn captured(source: Option<Locator>, destination: Locator, datagram: &[u8]) -> Captured<'_> {
        Captured { time: Duration::ZERO, source, destination, traffic_class: 0, damaged: false, datagram }
    }

    #[test]
    fn checksum_matches_the_example_of_rfc_1071() {
        // RFC 1071 §3 has this example; its sum is ddf2.
        let mut sum = Checksum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn checksum_over_a_whole_packet_is_zero() {
        let v4 = |last| Locator::udp_v4(Ipv4Addr::new(192, 0, 2, last), 7400 + u16::from(last));
        let v6 = |last| Locator::udp_v6([0xfd00, 0, 0, 0, 0, 0, 0, last].into(), 7400 + last);
        for len in [0, 1, 2, 3, 1472, 65_507] {
            let datagram: Vec<u8> = (0..len).map(|i: u32| i as u8).collect();
            let h = headers(Some(v4(1)), v4(2), &datagram).expect("a UDP datagram");
            let mut ip = Checksum::default();
            ip.add(&h.bytes()[..20]);
            assert_eq!(ip.finish(), 0);
            assert_eq!(pseudo_sum(&h, 12..20, 20, &datagram), 0, "{len} bytes");
            let h = headers(Some(v6(1)), v6(2), &datagram).expect("a UDP datagram");
            assert_eq!(pseudo_sum(&h, 8..40, 40, &datagram), 0, "{len} bytes");
        }
    }

    fn pseudo_sum(h: &Headers, addresses: std::ops::Range<usize>, ip: usize, datagram: &[u8]) -> u16 {
        let mut sum = Checksum::default();
        sum.add(&h.bytes()[addresses]);
        sum.add(&[0, UDP]);
        sum.add(&h.bytes()[ip + 4..ip + 6]);
        sum.add(&h.bytes()[ip..]);
        sum.add(datagram);
        sum.finish()
    }

    #[test]
    fn ethernet_header_has_addresses_and_ether_type() {
        let v4 = |ip: [u8; 4]| Locator::udp_v4(ip.into(), 7400);
        let to_group = captured(Some(v4([10, 0, 0, 1])), v4([239, 255, 0, 1]), b"x");
        let h = Headers::compose(LinkType::Ethernet, &to_group).expect("a UDP datagram");
        assert_eq!(h.bytes()[..6], [0x01, 0x00, 0x5e, 0x7f, 0, 1]);
        assert_eq!(h.bytes()[6..14], [0x02, 0, 10, 0, 0, 1, 0x08, 0x00]);
        let raw = Headers::compose(LinkType::Raw, &to_group).expect("a UDP datagram");
        assert_eq!(h.bytes()[14..], *raw.bytes());
        let v6 = |last| Locator::udp_v6([0xff02, 0, 0, 0, 0, 0, 0, last].into(), 7400);
        let h = Headers::compose(LinkType::Ethernet, &captured(None, v6(7), b"x")).expect("a UDP datagram");
        assert_eq!(h.bytes()[..6], [0x33, 0x33, 0, 0, 0, 7]);
        assert_eq!(h.bytes()[12..14], [0x86, 0xdd]);
    }

    #[test]
    fn damaged_datagram_has_a_wrong_checksum_and_its_traffic_class() {
        let v4 = |last| Locator::udp_v4(Ipv4Addr::new(192, 0, 2, last), 7400);
        let damaged = Captured { damaged: true, traffic_class: 0xa0, ..captured(Some(v4(1)), v4(2), b"odd") };
        let h = Headers::compose(LinkType::Raw, &damaged).expect("a UDP datagram");
        assert_ne!(pseudo_sum(&h, 12..20, 20, b"odd"), 0);
        assert_eq!(h.bytes()[1], 0xa0);
    }

    #[test]
    fn locators_other_than_udp_have_no_headers() {
        let shm = Locator { kind: Locator::KIND_SHM, port: 1, address: [0; 16] };
        let v4 = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7411);
        let v6 = Locator::udp_v6(std::net::Ipv6Addr::LOCALHOST, 7411);
        assert!(headers(Some(v4), shm, b"x").is_none());
        assert!(headers(Some(v4), v6, b"x").is_none());
        assert!(headers(None, v4, b"x").is_some());
        assert!(headers(Some(v4), v4, &vec![0; 65_508]).is_none());
    }
}
