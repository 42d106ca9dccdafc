//! IP and UDP headers of a datagram, of either IP version.

use core::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::{EtherType, Ipv4Header, Ipv6Header, NoRoom, Sum, UDP, UdpHeader};

/// Source and destination of a datagram, of the same IP version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramAddresses {
    /// Source and destination in IPv4.
    V4(SocketAddrV4, SocketAddrV4),
    /// Source and destination in IPv6.
    V6(SocketAddrV6, SocketAddrV6),
}

impl DatagramAddresses {
    /// Returns the addresses of a datagram; `None` if their IP versions differ.
    pub const fn new(source: SocketAddr, destination: SocketAddr) -> Option<Self> {
        match (source, destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => Some(Self::V4(source, destination)),
            (SocketAddr::V6(source), SocketAddr::V6(destination)) => Some(Self::V6(source, destination)),
            _ => None,
        }
    }

    /// Returns the EtherType of the packet.
    pub const fn ether_type(&self) -> EtherType {
        match self {
            Self::V4(..) => EtherType::IPV4,
            Self::V6(..) => EtherType::IPV6,
        }
    }
}

/// IP and UDP header of a datagram without options and extension headers, which must not be
/// fragmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramHeader {
    /// Source and destination.
    pub addresses: DatagramAddresses,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Time to live or hop limit: the number of routers that the packet may pass, plus one.
    pub hop_limit: u8,
}

impl DatagramHeader {
    /// Length in octets in IPv4.
    pub const V4_LEN: usize = Ipv4Header::LEN + UdpHeader::LEN;
    /// Length in octets in IPv6.
    pub const V6_LEN: usize = Ipv6Header::LEN + UdpHeader::LEN;

    /// Returns the length of this header in octets.
    pub const fn header_len(&self) -> usize {
        match self.addresses {
            DatagramAddresses::V4(..) => Self::V4_LEN,
            DatagramAddresses::V6(..) => Self::V6_LEN,
        }
    }

    /// Writes the header with its checksums to the start of `into`, for the payload after it,
    /// which is all the rest of `into`. Returns the length of the header.
    #[inline]
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let (into, payload) = into.split_at_mut_checked(self.header_len()).ok_or(NoRoom)?;
        self.emit_before(into, payload)
    }

    /// Writes the header to the start of `into`, for a payload that is elsewhere. Also [`NoRoom`]
    /// if the payload is too long for UDP or for IPv4.
    #[inline]
    pub fn emit_before(&self, into: &mut [u8], payload: &[u8]) -> Result<usize, NoRoom> {
        let payload_len = u16::try_from(UdpHeader::LEN + payload.len()).map_err(|_| NoRoom)?;
        let into = into.get_mut(..self.header_len()).ok_or(NoRoom)?;
        let traffic_class = self.traffic_class;
        match self.addresses {
            DatagramAddresses::V4(from, to) => {
                let (source, destination, ttl) = (*from.ip(), *to.ip(), self.hop_limit);
                let (ip, udp) = into.split_at_mut(Ipv4Header::LEN);
                Ipv4Header { source, destination, protocol: UDP, ttl, traffic_class, payload_len }.emit(ip)?;
                let header = UdpHeader { source_port: from.port(), destination_port: to.port() };
                header.emit_before(udp, payload, |len| Sum::pseudo_v4(source, destination, UDP, len))?;
            }
            DatagramAddresses::V6(from, to) => {
                let (source, destination, hop_limit) = (*from.ip(), *to.ip(), self.hop_limit);
                let (ip, udp) = into.split_at_mut(Ipv6Header::LEN);
                Ipv6Header { source, destination, next_header: UDP, hop_limit, traffic_class, payload_len }.emit(ip)?;
                let header = UdpHeader { source_port: from.port(), destination_port: to.port() };
                header.emit_before(udp, payload, |len| Sum::pseudo_v6(source, destination, UDP, len))?;
            }
        }
        Ok(self.header_len())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;
    use crate::{Ipv4Packet, Ipv6Packet, UdpChecksum, UdpDatagram};

    fn header(v6: bool) -> DatagramHeader {
        let [from, to] = [1, 2].map(|n| match v6 {
            true => SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, n], 7400 + n)),
            false => SocketAddr::from(([192, 0, 2, n as u8], 7400 + n)),
        });
        let addresses = DatagramAddresses::new(from, to).expect("the versions are the same");
        DatagramHeader { addresses, traffic_class: 0xb8, hop_limit: 64 }
    }

    #[test]
    fn datagram_round_trips() {
        for (v6, payload_len) in [(false, 0), (false, 1), (false, 1472), (true, 0), (true, 7), (true, 1452)] {
            let header = header(v6);
            let mut bytes = vec![0x5a; header.header_len() + payload_len];
            assert_eq!(header.emit(&mut bytes), Ok(if v6 { 48 } else { 28 }));
            let (payload, sum, traffic_class, hop_limit) = if v6 {
                let packet = Ipv6Packet::parse(&bytes).expect("a packet");
                (packet.payload(), packet.pseudo_sum(), packet.traffic_class(), packet.hop_limit())
            } else {
                let packet = Ipv4Packet::parse(&bytes).expect("a packet");
                assert!(packet.header_is_intact() && !packet.is_fragment());
                (packet.payload(), packet.pseudo_sum(), packet.traffic_class(), packet.ttl())
            };
            assert_eq!((traffic_class, hop_limit), (0xb8, 64));
            let datagram = UdpDatagram::parse(payload).expect("a datagram");
            assert_eq!((datagram.source_port(), datagram.destination_port()), (7401, 7402));
            assert_eq!(datagram.payload(), vec![0x5a; payload_len]);
            assert_eq!(datagram.checksum(sum), UdpChecksum::Right);
        }
    }

    #[test]
    fn payload_elsewhere_has_the_same_header() {
        for v6 in [false, true] {
            let header = header(v6);
            let mut whole = vec![3; header.header_len() + 33];
            let len = header.emit(&mut whole).expect("the buffer is large enough");
            let mut alone = [0; DatagramHeader::V6_LEN];
            assert_eq!(header.emit_before(&mut alone, &[3; 33]), Ok(len));
            assert_eq!(alone[..len], whole[..len]);
        }
    }

    #[test]
    fn other_versions_and_lengths_have_no_header() {
        let (v4, v6) = (SocketAddr::from(([192, 0, 2, 1], 1)), SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, 1], 1)));
        assert_eq!((DatagramAddresses::new(v4, v6), DatagramAddresses::new(v6, v4)), (None, None));
        for (is_v6, most) in [(false, 65_507), (true, 65_527)] {
            let header = header(is_v6);
            let mut room = [0; DatagramHeader::V6_LEN];
            assert_eq!(header.emit_before(&mut room, &vec![0; most + 1]), Err(NoRoom));
            assert_eq!(header.emit_before(&mut room, &vec![0; most]), Ok(header.header_len()));
            assert_eq!(header.emit(&mut room[..header.header_len() - 1]), Err(NoRoom));
        }
    }
}
