//! Packet headers of captured datagrams: optionally Ethernet, then IPv4 or IPv6, then UDP.
//!
//! The headers are composed from the metadata of a datagram, with correct lengths and checksums.
//! Ethernet addresses are derived from IP addresses: groups by RFC 1112 §6.4 and RFC 2464 §7, hosts
//! get a locally administered address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use takt_packet::{DatagramAddresses, DatagramHeader, EthernetHeader, MacAddress};
use takt_wire::Locator;

const TTL: u8 = 64;

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
    bytes: [u8; EthernetHeader::LEN + DatagramHeader::V6_LEN],
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
        let addresses = DatagramAddresses::new(from, to)?;
        let header = DatagramHeader { addresses, traffic_class: captured.traffic_class, hop_limit: TTL };
        let mut headers = Self { bytes: [0; EthernetHeader::LEN + DatagramHeader::V6_LEN], len: 0 };
        if link == LinkType::Ethernet {
            let [source, destination] = [from, to].map(|end| hardware_address(end.ip()));
            let ethernet = EthernetHeader { destination, source, tag: None, ether_type: addresses.ether_type() };
            headers.len = ethernet.emit(&mut headers.bytes).ok()?; // tidy-allow(dropped-cause): it has the room.
        }
        let room = &mut headers.bytes[headers.len..];
        // tidy-allow(dropped-cause): too long for UDP, as documented.
        headers.len += header.emit_before(room, captured.datagram).ok()?;
        if captured.damaged {
            headers.spoil_checksum();
        }
        Some(headers)
    }

    /// Makes the checksum of the datagram wrong, which ends the UDP header.
    fn spoil_checksum(&mut self) {
        if let Some(checksum) = self.bytes[..self.len].last_chunk_mut::<2>() {
            // A checksum of zero would mean "no checksum".
            let wrong = match u16::from_be_bytes(*checksum) ^ 0x5555 {
                0 => 0xffff,
                wrong => wrong,
            };
            *checksum = wrong.to_be_bytes();
        }
    }

    /// Returns the octets that precede the datagram.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn hardware_address(ip: IpAddr) -> MacAddress {
    MacAddress::of_group(ip).unwrap_or_else(|| match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            MacAddress([0x02, 0, a, b, c, d])
        }
        IpAddr::V6(ip) => {
            let [.., a, b, c, d] = ip.octets();
            MacAddress([0x02, 1, a, b, c, d])
        }
    })
}

#[cfg(test)]
mod tests {
    use takt_packet::{Sum, UDP};

    use super::*;

    fn headers(source: Option<Locator>, destination: Locator, datagram: &[u8]) -> Option<Headers> {
        Headers::compose(LinkType::Raw, &captured(source, destination, datagram))
    }

    fn captured(source: Option<Locator>, destination: Locator, datagram: &[u8]) -> Captured<'_> {
        Captured { time: Duration::ZERO, source, destination, traffic_class: 0, damaged: false, datagram }
    }

    #[test]
    fn checksum_over_a_whole_packet_is_zero() {
        let v4 = |last| Locator::udp_v4(Ipv4Addr::new(192, 0, 2, last), 7400 + u16::from(last));
        let v6 = |last| Locator::udp_v6([0xfd00, 0, 0, 0, 0, 0, 0, last].into(), 7400 + last);
        for len in [0, 1, 2, 3, 1472, 65_507] {
            let datagram: Vec<u8> = (0..len).map(|i: u32| i as u8).collect();
            let h = headers(Some(v4(1)), v4(2), &datagram).expect("a UDP datagram");
            let mut ip = Sum::default();
            ip.add(&h.bytes()[..20]);
            assert_eq!(ip.checksum(), 0);
            assert_eq!(pseudo_sum(&h, 12..20, 20, &datagram), 0, "{len} bytes");
            let h = headers(Some(v6(1)), v6(2), &datagram).expect("a UDP datagram");
            assert_eq!(pseudo_sum(&h, 8..40, 40, &datagram), 0, "{len} bytes");
        }
    }

    fn pseudo_sum(h: &Headers, addresses: std::ops::Range<usize>, ip: usize, datagram: &[u8]) -> u16 {
        let mut sum = Sum::default();
        sum.add(&h.bytes()[addresses]);
        sum.add(&[0, UDP]);
        sum.add(&h.bytes()[ip + 4..ip + 6]);
        sum.add(&h.bytes()[ip..]);
        sum.add(datagram);
        sum.checksum()
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
