//! IPv4 packets (RFC 791).

use core::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::error::{header, room};
use crate::{Malformed, NoRoom};

/// Packet whose lengths have been validated.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4Packet<'a> {
    /// Octets of the packet, without padding.
    bytes: &'a [u8],
    header_len: usize,
}

impl<'a> Ipv4Packet<'a> {
    /// Parses version and lengths. Octets after the packet's own length are ignored. Neither the
    /// checksum of the header nor fragmentation is checked here.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; Ipv4Header::LEN] = header(bytes, "truncated IPv4 header")?;
        if fixed[0] >> 4 != 4 {
            return Err(Malformed { offset: 0, what: "IP version other than 4" });
        }
        let header_len = usize::from(fixed[0] & 0x0f) * 4;
        if header_len < Ipv4Header::LEN {
            return Err(Malformed { offset: 0, what: "IPv4 header length below 20" });
        }
        let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if total_len < header_len {
            return Err(Malformed { offset: 2, what: "IPv4 packet shorter than its header" });
        }
        let cut_off = Malformed { offset: bytes.len(), what: "truncated IPv4 packet" };
        Ok(Self { bytes: bytes.get(..total_len).ok_or(cut_off)?, header_len })
    }

    fn octets<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut octets = [0; N];
        octets.copy_from_slice(&self.bytes[at..at + N]);
        octets
    }

    /// Returns the source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.octets::<4>(12))
    }

    /// Returns the destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.octets::<4>(16))
    }

    /// Returns the protocol number of the payload; see [`UDP`](crate::UDP).
    pub fn protocol(&self) -> u8 {
        self.bytes[9]
    }

    /// Returns the time to live: the number of routers that the packet may pass, plus one.
    pub fn ttl(&self) -> u8 {
        self.bytes[8]
    }

    /// Returns DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.bytes[1]
    }

    /// Returns the length of the header in octets, including options.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Reports whether the header has options.
    pub fn has_options(&self) -> bool {
        self.header_len > Ipv4Header::LEN
    }

    /// Reports whether this is a fragment of a larger packet, including the first one.
    pub fn is_fragment(&self) -> bool {
        // More fragments, or an offset; "do not fragment" does not matter.
        u16::from_be_bytes(self.octets(6)) & 0x3fff != 0
    }

    /// Returns the identification, which all fragments of a packet share, together with addresses
    /// and protocol.
    pub fn identification(&self) -> u16 {
        u16::from_be_bytes(self.octets(4))
    }

    /// Returns the offset of this payload in that of the whole packet, in octets.
    pub fn fragment_offset(&self) -> usize {
        usize::from(u16::from_be_bytes(self.octets(6)) & 0x1fff) * 8
    }

    /// Reports whether another fragment follows.
    pub fn has_more_fragments(&self) -> bool {
        u16::from_be_bytes(self.octets(6)) & 0x2000 != 0
    }

    /// Reports whether the checksum of the header is correct.
    pub fn header_is_intact(&self) -> bool {
        let mut sum = Sum::default();
        sum.add(&self.bytes[..self.header_len]);
        sum.checksum() == 0
    }

    /// Returns the payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len..]
    }

    /// Returns the sum of the pseudo header for the payload.
    pub fn pseudo_sum(&self) -> Sum {
        // The total length has 16 bits, so the length of the payload does too.
        Sum::pseudo_v4(self.source(), self.destination(), self.protocol(), self.payload().len() as u16)
    }
}

/// Header of a packet without options that must not be fragmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Header {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Time to live: the number of routers that the packet may pass, plus one.
    pub ttl: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Length of the payload in octets.
    pub payload_len: u16,
}

impl Ipv4Header {
    /// Length in octets without options.
    pub const LEN: usize = 20;

    /// Length in octets with the router alert option.
    pub const ALERT_LEN: usize = 24;

    /// Writes the header with its checksum to the start of `into`, and returns its length. Also
    /// [`NoRoom`] if the whole packet exceeds 65,535 octets.
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        self.emit_with::<{ Self::LEN }>(into, &[])
    }

    /// Writes the header with the router alert option (RFC 2113), which IGMP requires.
    pub fn emit_alert(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        self.emit_with::<{ Self::ALERT_LEN }>(into, &[0x94, 4, 0, 0])
    }

    fn emit_with<const LEN: usize>(&self, into: &mut [u8], options: &[u8]) -> Result<usize, NoRoom> {
        let total_len = self.payload_len.checked_add(LEN as u16).ok_or(NoRoom)?;
        let into: &mut [u8; LEN] = room(into)?;
        into.fill(0);
        into[0] = 0x40 | (LEN / 4) as u8;
        into[1] = self.traffic_class;
        into[2..4].copy_from_slice(&total_len.to_be_bytes());
        // The identification is arbitrary in packets that must not be fragmented (RFC 6864 §4.1).
        into[6] = 0x40;
        into[8] = self.ttl;
        into[9] = self.protocol;
        into[12..16].copy_from_slice(&self.source.octets());
        into[16..20].copy_from_slice(&self.destination.octets());
        into[Self::LEN..].copy_from_slice(options);
        let mut sum = Sum::default();
        sum.add(into);
        into[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
        Ok(LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Ipv4Header = Ipv4Header {
        source: Ipv4Addr::new(192, 0, 2, 1),
        destination: Ipv4Addr::new(239, 255, 0, 1),
        protocol: 17,
        ttl: 3,
        traffic_class: 0xb8,
        payload_len: 9,
    };

    fn a_packet() -> [u8; 46] {
        let mut bytes = [0x5a; 46];
        HEADER.emit(&mut bytes).expect("the buffer is large enough");
        bytes
    }

    #[test]
    fn packet_round_trips_without_padding() {
        let bytes = a_packet();
        let packet = Ipv4Packet::parse(&bytes).expect("a packet");
        assert_eq!((packet.source(), packet.destination()), (HEADER.source, HEADER.destination));
        assert_eq!((packet.protocol(), packet.ttl(), packet.traffic_class()), (17, 3, 0xb8));
        assert_eq!(packet.payload(), [0x5a; 9]);
        assert!(packet.header_is_intact() && !packet.is_fragment() && !packet.has_options());
    }

    #[test]
    fn truncated_packet_is_malformed() {
        let bytes = a_packet();
        for cut in 0..29 {
            assert_eq!(Ipv4Packet::parse(&bytes[..cut]).expect_err("the octets are truncated").offset, cut);
        }
        assert!(Ipv4Packet::parse(&bytes[..29]).is_ok());
        for cut in 0..20 {
            assert_eq!(HEADER.emit(&mut [0; 20][..cut]), Err(NoRoom));
        }
    }

    #[test]
    fn impossible_versions_and_lengths_are_refused() {
        let with = |at: usize, value: u8| {
            let mut bytes = a_packet();
            bytes[at] = value;
            Ipv4Packet::parse(&bytes).map(|packet| packet.payload().len())
        };
        assert!(with(0, 0x65).is_err(), "version 6");
        assert!(with(0, 0x44).is_err(), "a header of 16");
        assert!(with(0, 0x4f).is_err(), "a header beyond the packet");
        assert!(with(3, 19).is_err(), "a packet shorter than its header");
        assert!(with(2, 0xff).is_err(), "a packet beyond the frame");
        assert_eq!(with(3, 20), Ok(0));
    }

    #[test]
    fn options_fragments_and_damage_are_recognized() {
        let mut bytes = a_packet();
        bytes[0] = 0x46;
        let packet = Ipv4Packet::parse(&bytes).expect("a packet");
        assert!(packet.has_options() && !packet.header_is_intact());
        assert_eq!((packet.header_len(), packet.payload().len()), (24, 5));
        for (at, value, fragment) in [(6, 0x40, false), (6, 0x20, true), (6, 0x01, true), (7, 1, true)] {
            let mut bytes = a_packet();
            bytes[at] = value;
            assert_eq!(Ipv4Packet::parse(&bytes).expect("a packet").is_fragment(), fragment, "{at}: {value}");
        }
    }

    #[test]
    fn fragment_states_its_offset() {
        let mut bytes = a_packet();
        bytes[4..8].copy_from_slice(&[0x12, 0x34, 0x20, 0xb9]);
        let packet = Ipv4Packet::parse(&bytes).expect("a packet");
        assert_eq!((packet.identification(), packet.fragment_offset()), (0x1234, 1480));
        assert!(packet.is_fragment() && packet.has_more_fragments());
        bytes[6] = 0x40;
        let packet = Ipv4Packet::parse(&bytes).expect("a packet");
        assert!(packet.is_fragment() && !packet.has_more_fragments(), "the last one");
    }

    #[test]
    fn router_alert_is_written_as_an_option() {
        let mut bytes = [0xee; 32];
        let header = Ipv4Header { payload_len: 8, ..HEADER };
        assert_eq!(header.emit_alert(&mut bytes), Ok(24));
        let packet = Ipv4Packet::parse(&bytes).expect("a packet");
        assert!(packet.has_options() && packet.header_is_intact());
        assert_eq!((packet.header_len(), packet.payload()), (24, &[0xee; 8][..]));
        assert_eq!(bytes[20..24], [0x94, 4, 0, 0]);
        assert_eq!(header.emit_alert(&mut [0; 23]), Err(NoRoom));
    }

    #[test]
    fn length_beyond_16_bits_is_full() {
        let too_long = Ipv4Header { payload_len: 65_516, ..HEADER };
        assert_eq!(too_long.emit(&mut [0; 20]), Err(NoRoom));
        assert!(Ipv4Header { payload_len: 65_515, ..HEADER }.emit(&mut [0; 20]).is_ok());
    }
}
