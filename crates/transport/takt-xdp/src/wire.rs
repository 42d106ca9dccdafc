//! Conversion between frames and datagrams: Ethernet with or without a tag, IPv4 or IPv6, and UDP
//! around the RTPS message.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use takt_packet::{
    DatagramAddresses, DatagramError, DatagramHeader, EtherType, EthernetFrame, EthernetHeader, Ipv4Packet, Ipv6Header,
    Ipv6Packet, MacAddress, UDP, UdpDatagram, UdpHeader, VlanTag,
};

/// Offset of an outgoing datagram in a frame of the umem: room for the longest headers, and a
/// multiple of a cache line.
pub(crate) const PAYLOAD_AT: usize = 128;

/// Time to live, as the kernel sets it by default.
const TTL: u8 = 64;

/// Source or destination of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) mac: MacAddress,
    pub(crate) address: SocketAddr,
}

/// Priority and VLAN of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marking {
    /// DSCP, 0 to 63; the PCP is its upper half.
    pub(crate) priority: u8,
    /// VLAN ID, if the frame is tagged.
    pub(crate) vid: Option<u16>,
}

/// Writes headers before the `len` octets of payload at [`PAYLOAD_AT`] of `bytes`, which begin a
/// frame of the umem. Returns the range to be sent. `None` if `bytes` is too short, the datagram
/// too long for UDP, or the addresses are of different families.
pub(crate) fn encapsulate(bytes: &mut [u8], len: usize, from: End, to: End, marking: Marking) -> Option<Range<usize>> {
    let end = PAYLOAD_AT.checked_add(len)?;
    let addresses = DatagramAddresses::new(from.address, to.address)?;
    let datagram = DatagramHeader { addresses, traffic_class: marking.priority << 2, hop_limit: TTL };
    let tag = marking.vid.map(|vid| VlanTag { pcp: marking.priority >> 3, dei: false, vid });
    let ether_type = addresses.ether_type();
    let ethernet = EthernetHeader { destination: to.mac, source: from.mac, tag, ether_type };
    let packet_at = PAYLOAD_AT - datagram.header_len();
    datagram.emit(bytes.get_mut(packet_at..end)?).ok()?; // tidy-allow(dropped-cause): too long, as documented.
    let start = packet_at - ethernet.header_len();
    // It is emitted into room of its own length, so it cannot fail.
    ethernet.emit(&mut bytes[start..packet_at]).ok()?; // tidy-allow(dropped-cause): see above.
    let frame_end = end.max(start + EthernetFrame::LEN_MIN);
    // Padding must not reveal earlier contents of the frame.
    bytes.get_mut(end..frame_end)?.fill(0);
    Some(start..frame_end)
}

/// Received datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encapsulated {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// Range of the payload in the frame.
    pub(crate) payload: Range<usize>,
}

/// Reason why a frame that the filter accepted is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The frame is no valid datagram.
    Malformed,
    /// The checksum of the datagram is wrong.
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

/// Returns the datagram in a frame. Accepts any frame; the filter redirects only frames that this
/// function supports.
pub(crate) fn decapsulate(frame: &[u8]) -> Result<Encapsulated, Refused> {
    let ethernet = EthernetFrame::parse(frame).map_err(malformed)?;
    let before = ethernet.header().header_len();
    match ethernet.header().ether_type {
        EtherType::IPV4 => decapsulate_v4(ethernet.payload(), before),
        EtherType::IPV6 => decapsulate_v6(ethernet.payload(), before),
        _ => Err(Refused::Malformed),
    }
}

fn malformed(_: takt_packet::Malformed) -> Refused {
    Refused::Malformed
}

fn decapsulate_v4(packet: &[u8], before: usize) -> Result<Encapsulated, Refused> {
    let ip = Ipv4Packet::parse(packet).map_err(malformed)?;
    if ip.is_fragment() || ip.protocol() != UDP || !ip.header_is_intact() {
        return Err(Refused::Malformed);
    }
    let udp = UdpDatagram::verify_v4(ip.payload(), ip.source(), ip.destination())?;
    Ok(encapsulated((ip.source().into(), ip.destination().into()), &udp, before + ip.header_len()))
}

fn decapsulate_v6(packet: &[u8], before: usize) -> Result<Encapsulated, Refused> {
    let ip = Ipv6Packet::parse(packet).map_err(malformed)?;
    if ip.next_header() != UDP {
        return Err(Refused::Malformed);
    }
    let udp = UdpDatagram::verify_v6(ip.payload(), ip.source(), ip.destination())?;
    Ok(encapsulated((ip.source().into(), ip.destination().into()), &udp, before + Ipv6Header::LEN))
}

fn encapsulated((source, destination): (IpAddr, IpAddr), udp: &UdpDatagram<'_>, udp_at: usize) -> Encapsulated {
    let start = udp_at + UdpHeader::LEN;
    Encapsulated {
        from: SocketAddr::new(source, udp.source_port()),
        to: SocketAddr::new(destination, udp.destination_port()),
        payload: start..start + udp.payload().len(),
    }
}

#[cfg(test)]
mod tests {
    use takt_packet::Sum;

    use super::*;

    /// Makes a source and a destination of one family.
    fn ends(v6: bool) -> [End; 2] {
        [1, 2].map(|n| {
            let ip = if v6 { IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n]) } else { IpAddr::from([192, 0, 2, n as u8]) };
            End { mac: MacAddress([2, 0, 0, 0, 0, n as u8]), address: SocketAddr::new(ip, 7400 + n) }
        })
    }

    const MARKINGS: [Marking; 3] = [
        Marking { priority: 46, vid: None },
        Marking { priority: 46, vid: Some(0) },
        Marking { priority: 46, vid: Some(0x0abc) },
    ];

    fn encapsulated_frame(len: usize, v6: bool, marking: Marking) -> (Vec<u8>, Range<usize>) {
        let mut bytes = vec![0xee; 2048];
        for (n, byte) in bytes[PAYLOAD_AT..PAYLOAD_AT + len].iter_mut().enumerate() {
            *byte = n as u8;
        }
        let [from, to] = ends(v6);
        let range = encapsulate(&mut bytes, len, from, to, marking).expect("the buffer is large enough");
        (bytes, range)
    }

    #[test]
    fn encapsulated_datagram_is_decapsulated() {
        for (len, v6, marking) in [0, 1, 17, 18, 19, 64, 1472]
            .into_iter()
            .flat_map(|len| [false, true].into_iter().flat_map(move |v6| MARKINGS.map(|marking| (len, v6, marking))))
        {
            let (bytes, range) = encapsulated_frame(len, v6, marking);
            let frame = &bytes[range];
            let ip = 14 + if marking.vid.is_some() { 4 } else { 0 };
            let headers = ip + if v6 { DatagramHeader::V6_LEN } else { DatagramHeader::V4_LEN };
            assert_eq!(frame.len(), (headers + len).max(60));
            assert_eq!(frame[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
            assert_eq!(frame[ip - 2..ip], if v6 { [0x86, 0xdd] } else { [8, 0] });
            let tag: &[u8] = match marking.vid {
                // Priority 46 is PCP 5.
                Some(vid) => &[0x81, 0, 5 << 5 | (vid >> 8) as u8, vid as u8],
                None => &[],
            };
            assert_eq!(&frame[12..ip - 2], tag);
            assert_eq!(frame[ip..ip + 2], if v6 { [0x6b, 0x80] } else { [0x45, 0xb8] }, "DSCP 46");
            assert!(frame[headers + len..].iter().all(|byte| *byte == 0), "padded with zeros");
            let (datagram, [from, to]) = (decapsulate(frame).expect("a datagram"), ends(v6));
            assert_eq!((datagram.from, datagram.to), (from.address, to.address));
            assert!(frame[datagram.payload].iter().enumerate().all(|(n, byte)| *byte == n as u8));
        }
    }

    #[test]
    fn datagram_without_room_is_refused() {
        let mut bytes = vec![0; 2048];
        let ([from, to], [_, other]) = (ends(false), ends(true));
        let most = 2048 - PAYLOAD_AT;
        assert_eq!(encapsulate(&mut bytes, most + 1, from, to, Marking::default()), None);
        assert_eq!(encapsulate(&mut bytes, usize::MAX, from, to, Marking::default()), None);
        assert_eq!(encapsulate(&mut bytes, 10, from, other, Marking::default()), None, "of another family");
        assert!(encapsulate(&mut bytes, most, from, to, Marking::default()).is_some());
    }

    #[test]
    fn truncated_and_damaged_frames_are_refused() {
        let (bytes, range) = encapsulated_frame(100, false, MARKINGS[0]);
        let frame = &bytes[range];
        for len in 0..frame.len() {
            assert_eq!(decapsulate(&frame[..len]), Err(Refused::Malformed), "{len} octets");
        }
        // No checksum covers the Ethernet addresses; octet 38 makes the datagram longer than the
        // packet.
        for at in 12..frame.len() {
            let mut damaged = frame.to_vec();
            damaged[at] ^= 0x04;
            let why = decapsulate(&damaged).expect_err("the datagram is damaged");
            assert_eq!(why == Refused::Damaged, at >= 34 && at != 38, "octet {at}");
        }
    }

    #[test]
    fn truncated_and_damaged_frames_of_ipv6_are_refused() {
        let (bytes, range) = encapsulated_frame(100, true, MARKINGS[2]);
        let frame = &bytes[range];
        for len in 0..frame.len() {
            assert_eq!(decapsulate(&frame[..len]), Err(Refused::Malformed), "{len} octets");
        }
        // Addresses, ports, checksum and payload.
        for at in (26..58).chain(58..62).chain(64..frame.len()) {
            let mut damaged = frame.to_vec();
            damaged[at] ^= 0x04;
            assert_eq!(decapsulate(&damaged), Err(Refused::Damaged), "octet {at}");
        }
        let mut unchecked = frame.to_vec();
        unchecked[64..66].fill(0);
        assert_eq!(decapsulate(&unchecked), Err(Refused::Damaged), "version 6 of IP demands a checksum");
        let mut extended = frame.to_vec();
        extended[24] = 0;
        assert_eq!(decapsulate(&extended), Err(Refused::Malformed), "an extension header");
    }

    #[test]
    fn partial_checksum_is_accepted() {
        for v6 in [false, true] {
            let (bytes, range) = encapsulated_frame(100, v6, MARKINGS[0]);
            let mut frame = bytes[range].to_vec();
            let pseudo = match (ends(v6)[0].address.ip(), ends(v6)[1].address.ip()) {
                (IpAddr::V4(source), IpAddr::V4(destination)) => Sum::pseudo_v4(source, destination, UDP, 108),
                (IpAddr::V6(source), IpAddr::V6(destination)) => Sum::pseudo_v6(source, destination, UDP, 108),
                _ => unreachable!("both are of one family"),
            };
            let at = 14 + if v6 { DatagramHeader::V6_LEN } else { DatagramHeader::V4_LEN } - 2;
            frame[at..at + 2].copy_from_slice(&pseudo.folded().to_be_bytes());
            assert!(decapsulate(&frame).is_ok());
            frame[at + 1] ^= 1;
            assert_eq!(decapsulate(&frame), Err(Refused::Damaged));
        }
    }

    #[test]
    fn options_do_not_shift_the_payload() {
        let (bytes, range) = encapsulated_frame(20, false, MARKINGS[0]);
        let mut frame = bytes[range].to_vec();
        frame.splice(34..34, [1, 1, 1, 1]);
        frame[14] = 0x46;
        frame[17] += 4;
        frame[24..26].fill(0);
        let mut sum = Sum::default();
        sum.add(&frame[14..38]);
        frame[24..26].copy_from_slice(&sum.checksum().to_be_bytes());
        let datagram = decapsulate(&frame).expect("a datagram");
        assert_eq!(frame[datagram.payload], *(0..20).collect::<Vec<u8>>());
    }
}
