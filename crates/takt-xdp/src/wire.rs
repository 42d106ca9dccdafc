//! Frames to datagrams and back: Ethernet, IPv4 and UDP around what RTPS makes.

use std::net::Ipv4Addr;
use std::ops::Range;

use takt_packet::{
    EtherType, EthernetFrame, EthernetHeader, Ipv4Header, Ipv4Packet, MacAddress, Sum, UDP, UdpDatagram, UdpHeader,
};

/// Where in a frame of the umem an outgoing datagram begins: room for the headers, and a multiple of a cache line.
pub(crate) const PAYLOAD_AT: usize = 64;

/// Octets of all headers.
pub(crate) const HEADERS: usize = EthernetHeader::LEN + Ipv4Header::LEN + UdpHeader::LEN;

/// Where in a frame of the umem an outgoing frame begins.
pub(crate) const FRAME_AT: usize = PAYLOAD_AT - HEADERS;

/// The shortest frame of Ethernet, without check sequence.
const FRAME_MIN: usize = 60;

/// As many routers as the kernel's own datagrams may pass.
const TTL: u8 = 64;

/// One end of a datagram's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) mac: MacAddress,
    pub(crate) ip: Ipv4Addr,
    pub(crate) port: u16,
}

/// Writes headers before the `len` octets of payload at [`PAYLOAD_AT`] of `bytes`, which begin a frame of the umem; which octets are to
/// be sent. `None` if `bytes` is too short, or the datagram too long for UDP.
pub(crate) fn enclose(bytes: &mut [u8], len: usize, from: End, to: End, traffic_class: u8) -> Option<Range<usize>> {
    let end = PAYLOAD_AT.checked_add(len)?;
    let frame = bytes.get_mut(FRAME_AT..end)?;
    let payload_len = u16::try_from(UdpHeader::LEN + len).ok()?;
    let (ethernet, rest) = frame.split_at_mut(EthernetHeader::LEN);
    let header = EthernetHeader { destination: to.mac, source: from.mac, tag: None, ether_type: EtherType::IPV4 };
    header.emit(ethernet).ok()?; // tidy-allow(dropped-cause): the room is the header's own length.
    let (ip, datagram) = rest.split_at_mut(Ipv4Header::LEN);
    let (source, destination) = (from.ip, to.ip);
    let header = Ipv4Header { source, destination, protocol: UDP, ttl: TTL, traffic_class, payload_len };
    header.emit(ip).ok()?; // tidy-allow(dropped-cause): only a length can be wrong, and the caller counts that.
    let header = UdpHeader { source_port: from.port, destination_port: to.port };
    // tidy-allow(dropped-cause): as above.
    header.emit(datagram, |len| Sum::pseudo_v4(source, destination, UDP, len)).ok()?;
    let frame_end = end.max(FRAME_AT + FRAME_MIN);
    // What once stood in the frame is nobody's business.
    bytes.get_mut(end..frame_end)?.fill(0);
    Some(FRAME_AT..frame_end)
}

/// A received datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Enclosed {
    pub(crate) from: (Ipv4Addr, u16),
    pub(crate) to: (Ipv4Addr, u16),
    /// Which octets of the frame it is.
    pub(crate) payload: Range<usize>,
}

/// Why a frame is refused that the filter took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is no datagram.
    Malformed,
    /// The datagram's checksum is wrong.
    Damaged,
}

/// The datagram in a frame. Every frame may be given, but the filter takes only what this understands.
pub(crate) fn open(frame: &[u8]) -> Result<Enclosed, Refused> {
    let malformed = |_| Refused::Malformed;
    let ethernet = EthernetFrame::parse(frame).map_err(malformed)?;
    if ethernet.header().ether_type != EtherType::IPV4 {
        return Err(Refused::Malformed);
    }
    let ip = Ipv4Packet::parse(ethernet.payload()).map_err(malformed)?;
    if ip.is_fragment() || ip.protocol() != UDP || !ip.header_is_intact() {
        return Err(Refused::Malformed);
    }
    let udp = UdpDatagram::parse(ip.payload()).map_err(malformed)?;
    // Of the datagram's own length: what an IP packet has behind it is ignored.
    let len = UdpHeader::LEN + udp.payload().len();
    let pseudo = Sum::pseudo_v4(ip.source(), ip.destination(), UDP, len as u16);
    if !udp.checksum(pseudo).is_acceptable() {
        return Err(Refused::Damaged);
    }
    let before = ethernet.header().header_len() + ip.header_len() + UdpHeader::LEN;
    Ok(Enclosed {
        from: (ip.source(), udp.source_port()),
        to: (ip.destination(), udp.destination_port()),
        payload: before..before + udp.payload().len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(n: u8) -> End {
        End { mac: MacAddress([2, 0, 0, 0, 0, n]), ip: Ipv4Addr::new(192, 0, 2, n), port: 7400 + u16::from(n) }
    }

    fn enclosed(len: usize) -> (Vec<u8>, Range<usize>) {
        let mut bytes = vec![0xee; 2048];
        for (n, byte) in bytes[PAYLOAD_AT..PAYLOAD_AT + len].iter_mut().enumerate() {
            *byte = n as u8;
        }
        let range = enclose(&mut bytes, len, end(1), end(2), 0xb8).expect("it fits");
        (bytes, range)
    }

    #[test]
    fn what_was_enclosed_is_opened() {
        for len in [0, 1, 17, 18, 19, 64, 1472] {
            let (bytes, range) = enclosed(len);
            let frame = &bytes[range];
            assert_eq!(frame.len(), (HEADERS + len).max(60));
            assert_eq!(frame[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
            assert_eq!((frame[15], frame[22]), (0xb8, 64));
            assert!(frame[HEADERS + len..].iter().all(|byte| *byte == 0), "padded with zeros");
            let datagram = open(frame).expect("a datagram");
            assert_eq!((datagram.from, datagram.to), ((end(1).ip, 7401), (end(2).ip, 7402)));
            assert!(frame[datagram.payload].iter().enumerate().all(|(n, byte)| *byte == n as u8));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut bytes = vec![0; 2048];
        assert_eq!(enclose(&mut bytes, 2048 - 64 + 1, end(1), end(2), 0), None);
        assert_eq!(enclose(&mut bytes, usize::MAX, end(1), end(2), 0), None);
        assert!(enclose(&mut bytes, 2048 - 64, end(1), end(2), 0).is_some());
    }

    #[test]
    fn cuts_and_damage_are_refused() {
        let (bytes, range) = enclosed(100);
        let frame = &bytes[range];
        for len in 0..frame.len() {
            assert_eq!(open(&frame[..len]), Err(Refused::Malformed), "{len} octets");
        }
        // The addresses of Ethernet are in no checksum; octet 38 says that the datagram is longer than the packet.
        for at in 12..frame.len() {
            let mut damaged = frame.to_vec();
            damaged[at] ^= 0x04;
            let why = open(&damaged).expect_err("it is damaged");
            assert_eq!(why == Refused::Damaged, at >= 34 && at != 38, "octet {at}");
        }
    }

    #[test]
    fn options_do_not_shift_the_payload() {
        let (bytes, range) = enclosed(20);
        let mut frame = bytes[range].to_vec();
        frame.splice(34..34, [1, 1, 1, 1]);
        frame[14] = 0x46;
        frame[17] += 4;
        frame[24..26].fill(0);
        let mut sum = Sum::default();
        sum.add(&frame[14..38]);
        frame[24..26].copy_from_slice(&sum.checksum().to_be_bytes());
        let datagram = open(&frame).expect("a datagram");
        assert_eq!(frame[datagram.payload], *(0..20).collect::<Vec<u8>>());
    }
}
