//! Conversion between frames and their contents: datagrams, ARP, IGMP, echo requests; with or
//! without a tag.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

use takt_packet::{
    ArpOperation, ArpPacket, DatagramAddresses, DatagramError, DatagramHeader, EtherType, EthernetFrame,
    EthernetHeader, ICMP, IGMP, IgmpMessage, Ipv4Header, Ipv4Packet, MacAddress, UDP, UdpDatagram, UdpHeader, VlanTag,
    reply_to_echo,
};

/// Time to live of unicast datagrams.
pub(super) const TTL: u8 = 64;

/// Source or destination of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) mac: MacAddress,
    pub(super) address: SocketAddrV4,
}

/// Returns the number of octets before the payload of a datagram.
pub(super) const fn headers_len(is_tagged: bool) -> usize {
    EthernetHeader::LEN + if is_tagged { EthernetHeader::TAG_LEN } else { 0 } + DatagramHeader::V4_LEN
}

/// Writes an Ethernet header, and returns its length.
fn ethernet(
    frame: &mut [u8],
    to: MacAddress,
    from: MacAddress,
    tag: Option<VlanTag>,
    kind: EtherType,
) -> Option<usize> {
    let header = EthernetHeader { destination: to, source: from, tag, ether_type: kind };
    header.emit(frame).ok() // tidy-allow(dropped-cause): fails only for lack of room; the caller counts it.
}

/// Writes the headers of a datagram before its payload, which are `len` octets behind
/// [`headers_len`]. Returns the length of the frame; `None` if it exceeds the limit of a datagram
/// or of this frame.
pub(super) fn encapsulate(
    frame: &mut [u8],
    len: usize,
    [from, to]: [End; 2],
    tag: Option<VlanTag>,
    [traffic_class, ttl]: [u8; 2],
) -> Option<usize> {
    let end = headers_len(tag.is_some()).checked_add(len)?;
    let frame = frame.get_mut(..end)?;
    let at = ethernet(frame, to.mac, from.mac, tag, EtherType::IPV4)?;
    let addresses = DatagramAddresses::V4(from.address, to.address);
    let header = DatagramHeader { addresses, traffic_class, hop_limit: ttl };
    header.emit(&mut frame[at..]).ok()?; // tidy-allow(dropped-cause): too long, as documented.
    Some(end)
}

/// Writes an ARP packet, and returns the length of the frame.
pub(super) fn arp(frame: &mut [u8], to: MacAddress, tag: Option<VlanTag>, packet: ArpPacket) -> Option<usize> {
    let at = ethernet(frame, to, packet.sender.0, tag, EtherType::ARP)?;
    let len = packet.emit(frame.get_mut(at..)?).ok()?; // tidy-allow(dropped-cause): fails only for lack of room.
    Some(at + len)
}

/// Makes an ARP request for an address.
pub(super) fn arp_request(own: (MacAddress, Ipv4Addr), of: Ipv4Addr) -> ArpPacket {
    ArpPacket { operation: ArpOperation::Request, sender: own, target: (MacAddress::default(), of) }
}

/// Writes an IGMP message, and returns the length of the frame.
pub(super) fn igmp(
    frame: &mut [u8],
    own: (MacAddress, Ipv4Addr),
    tag: Option<VlanTag>,
    message: IgmpMessage,
) -> Option<usize> {
    let to = message.destination();
    let at = ethernet(frame, MacAddress::of_group(to.into())?, own.0, tag, EtherType::IPV4)?;
    let (ip, rest) = frame.get_mut(at..)?.split_at_mut_checked(Ipv4Header::ALERT_LEN)?;
    let len = message.emit(rest).ok()?; // tidy-allow(dropped-cause): fails only for lack of room.
    let header = Ipv4Header {
        source: own.1,
        destination: to,
        protocol: IGMP,
        ttl: 1,
        // Internetwork control (RFC 3376 §4).
        traffic_class: 0xc0,
        payload_len: len as u16,
    };
    header.emit_alert(ip).ok()?; // tidy-allow(dropped-cause): as above.
    Some(at + Ipv4Header::ALERT_LEN + len)
}

/// Writes the reply to the echo request in this frame, and returns its length. `None` if it does
/// not fit or is damaged.
pub(super) fn echo_reply(frame: &mut [u8], request: &[u8], own: MacAddress) -> Option<usize> {
    let request_frame = EthernetFrame::parse(request).ok()?; // tidy-allow(dropped-cause): it was parsed before.
    let packet = Ipv4Packet::parse(request_frame.payload()).ok()?; // tidy-allow(dropped-cause): as above.
    let at = request_frame.header().header_len();
    let message = at + packet.header_len();
    let end = message + packet.payload().len();
    let reply = frame.get_mut(..end)?;
    reply.copy_from_slice(request.get(..end)?);
    ethernet(reply, request_frame.header().source, own, request_frame.header().tag, EtherType::IPV4)?;
    // Swapping the addresses does not change the checksum.
    reply[at + 12..at + 16].copy_from_slice(&packet.destination().octets());
    reply[at + 16..at + 20].copy_from_slice(&packet.source().octets());
    reply_to_echo(&mut reply[message..]).ok()?; // tidy-allow(dropped-cause): damaged, as documented.
    Some(end)
}

/// Received datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) from: SocketAddrV4,
    pub(super) to: SocketAddrV4,
    /// Range of the payload in the parsed bytes.
    pub(super) payload: Range<usize>,
}

/// Contents of a frame.
#[derive(Debug)]
pub(super) enum FrameContent<'a> {
    Datagram(Datagram),
    /// Fragment of a larger packet.
    Fragment(Ipv4Packet<'a>),
    Arp(ArpPacket),
    Igmp(IgmpMessage),
    /// Echo request to this address.
    EchoRequest(Ipv4Addr),
}

/// Reason why a frame is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Another VLAN, protocol or address.
    NotAddressed,
    /// Inconsistent lengths, or a damaged header.
    Malformed,
    /// Datagram with a wrong checksum.
    Damaged,
}

impl From<DatagramError> for Refused {
    fn from(why: DatagramError) -> Self {
        match why {
            DatagramError::Malformed(_) => Self::Malformed,
            DatagramError::WrongChecksum => Self::Damaged,
        }
    }
}

/// Parses a frame of this VLAN, or an untagged one with `None`.
pub(super) fn parse(frame: &[u8], vlan: Option<u16>) -> Result<FrameContent<'_>, Refused> {
    let malformed = |_| Refused::Malformed;
    let ethernet = EthernetFrame::parse(frame).map_err(malformed)?;
    let header = ethernet.header();
    // VLAN 0 is a priority tag.
    let tagged = header.tag.map(|tag| tag.vid).filter(|vid| *vid != 0);
    if tagged != vlan {
        return Err(Refused::NotAddressed);
    }
    match header.ether_type {
        EtherType::ARP => return ArpPacket::parse(ethernet.payload()).map(FrameContent::Arp).map_err(malformed),
        EtherType::IPV4 => {}
        _ => return Err(Refused::NotAddressed),
    }
    let packet = Ipv4Packet::parse(ethernet.payload()).map_err(malformed)?;
    if !packet.header_is_intact() {
        return Err(Refused::Malformed);
    }
    if packet.is_fragment() {
        return Ok(FrameContent::Fragment(packet));
    }
    match packet.protocol() {
        UDP => {
            let mut datagram = datagram(packet.payload(), packet.source(), packet.destination())?;
            let at = header.header_len() + packet.header_len();
            datagram.payload = datagram.payload.start + at..datagram.payload.end + at;
            Ok(FrameContent::Datagram(datagram))
        }
        IGMP => IgmpMessage::parse(packet.payload()).map(FrameContent::Igmp).map_err(|_| Refused::NotAddressed),
        ICMP if packet.payload().first() == Some(&8) => Ok(FrameContent::EchoRequest(packet.destination())),
        _ => Err(Refused::NotAddressed),
    }
}

/// Parses the datagram in the payload of a packet.
pub(super) fn datagram(bytes: &[u8], source: Ipv4Addr, destination: Ipv4Addr) -> Result<Datagram, Refused> {
    // Such a source cannot be replied to.
    if source.is_multicast() || source.is_broadcast() || source.is_unspecified() {
        return Err(Refused::Malformed);
    }
    let udp = UdpDatagram::verify_v4(bytes, source, destination)?;
    Ok(Datagram {
        from: SocketAddrV4::new(source, udp.source_port()),
        to: SocketAddrV4::new(destination, udp.destination_port()),
        payload: UdpHeader::LEN..UdpHeader::LEN + udp.payload().len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: VlanTag = VlanTag { pcp: 5, dei: false, vid: 7 };

    fn end(n: u8) -> End {
        End {
            mac: MacAddress([2, 0, 0, 0, 0, n]),
            address: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, n), 7400 + u16::from(n)),
        }
    }

    fn encapsulated(len: usize, tag: Option<VlanTag>) -> Vec<u8> {
        let mut frame = vec![0x5a; 1600];
        let frame_len =
            encapsulate(&mut frame, len, [end(1), end(2)], tag, [0xb8, 64]).expect("the buffer is large enough");
        frame.truncate(frame_len);
        frame
    }

    #[test]
    fn encapsulated_datagram_is_parsed() {
        for (tag, vlan) in [(None, None), (Some(TAG), Some(7)), (Some(VlanTag { vid: 0, ..TAG }), None)] {
            for len in [0, 1, 17, 64, 1472] {
                let frame = encapsulated(len, tag);
                assert_eq!(frame.len(), headers_len(tag.is_some()) + len);
                let Ok(FrameContent::Datagram(datagram)) = parse(&frame, vlan) else { panic!("{len} octets") };
                assert_eq!((datagram.from, datagram.to), (end(1).address, end(2).address));
                assert_eq!(frame[datagram.payload], vec![0x5a; len]);
            }
        }
        for (tag, vlan) in [(None, Some(7)), (Some(TAG), None), (Some(TAG), Some(8))] {
            assert!(matches!(parse(&encapsulated(9, tag), vlan), Err(Refused::NotAddressed)));
        }
        assert_eq!(encapsulate(&mut [0; 100], 59, [end(1), end(2)], None, [0, 64]), None);
        assert_eq!(encapsulate(&mut [0; 100], usize::MAX, [end(1), end(2)], None, [0, 64]), None);
    }

    #[test]
    fn truncated_and_damaged_frames_are_refused() {
        let frame = encapsulated(100, None);
        for len in 0..frame.len() {
            assert!(matches!(parse(&frame[..len], None), Err(Refused::Malformed)), "{len} octets");
        }
        // No checksum covers the Ethernet addresses; the EtherType follows them.
        for at in 14..frame.len() {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x04;
            assert!(parse(&damaged, None).is_err(), "octet {at}");
        }
    }

    #[test]
    fn group_address_as_source_is_refused() {
        for source in [Ipv4Addr::new(239, 255, 0, 1), Ipv4Addr::BROADCAST, Ipv4Addr::UNSPECIFIED] {
            let mut frame = [0; 64];
            let from = End { address: SocketAddrV4::new(source, 7401), ..end(1) };
            let len = encapsulate(&mut frame, 4, [from, end(2)], None, [0, 64]).expect("the buffer is large enough");
            assert!(matches!(parse(&frame[..len], None), Err(Refused::Malformed)), "{source}");
        }
    }

    #[test]
    fn arp_requests_and_igmp_reports_are_parsed() {
        let own = (end(1).mac, *end(1).address.ip());
        for (tag, vlan) in [(None, None), (Some(TAG), Some(7))] {
            let mut frame = [0; 64];
            let request = arp_request(own, *end(2).address.ip());
            let len = arp(&mut frame, MacAddress::BROADCAST, tag, request).expect("the buffer is large enough");
            assert!(matches!(parse(&frame[..len], vlan), Ok(FrameContent::Arp(parsed)) if parsed == request));
            let message = IgmpMessage::ReportV3 { group: Ipv4Addr::new(239, 255, 0, 1), is_change: true };
            let len = igmp(&mut frame, own, tag, message).expect("the buffer is large enough");
            assert!(matches!(parse(&frame[..len], vlan), Ok(FrameContent::Igmp(seen)) if seen == message));
            assert_eq!(frame[..6], [0x01, 0x00, 0x5e, 0, 0, 22]);
            assert_eq!(
                (arp(&mut [0; 41], end(2).mac, tag, request), igmp(&mut [0; 50], own, tag, message)),
                (None, None)
            );
        }
    }
}
