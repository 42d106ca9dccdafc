//! Ethernet II frames, with at most one 802.1Q tag.

use crate::error::{header, room};
use crate::{MacAddress, Malformed, NoRoom};

/// Protocol number of the payload of an Ethernet frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// 802.1Q tag, followed by another EtherType.
    pub const VLAN: Self = Self(0x8100);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);
    /// RTPS directly on Ethernet ([`TaktHeader`](crate::TaktHeader)): the first of the two
    /// EtherTypes that IEEE 802 reserves for local experiments.
    pub const TAKT: Self = Self(0x88b5);
}

/// 802.1Q tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VlanTag {
    /// Priority code point, 0 to 7; higher is more urgent, except for 0 and 1.
    pub pcp: u8,
    /// Drop eligible indicator.
    pub dei: bool,
    /// VLAN ID, 0 to 4,095; 0 is a priority tag.
    pub vid: u16,
}

impl VlanTag {
    const fn of_bits(bits: u16) -> Self {
        Self { pcp: (bits >> 13) as u8, dei: bits & 0x1000 != 0, vid: bits & 0x0fff }
    }

    fn bits(self) -> u16 {
        u16::from(self.pcp & 7) << 13 | u16::from(self.dei) << 12 | self.vid & 0x0fff
    }
}

/// Frame in wire format, without preamble and check sequence.
#[derive(Clone, Copy, Debug)]
pub struct EthernetFrame<'a> {
    bytes: &'a [u8],
    header: EthernetHeader,
}

impl<'a> EthernetFrame<'a> {
    /// Minimum length in octets. Shorter frames are padded.
    pub const LEN_MIN: usize = 60;

    /// Returns the destination address of a frame; `None` if the header is truncated.
    pub fn destination(bytes: &[u8]) -> Option<MacAddress> {
        bytes.get(..EthernetHeader::LEN)?.first_chunk().map(|octets| MacAddress(*octets))
    }

    /// Parses the header. A second tag is not parsed: the EtherType is then that of a tag.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *header(bytes, "truncated Ethernet header")?;
        let mut own = EthernetHeader {
            destination: MacAddress([d0, d1, d2, d3, d4, d5]),
            source: MacAddress([s0, s1, s2, s3, s4, s5]),
            tag: None,
            ether_type: EtherType(u16::from_be_bytes([t0, t1])),
        };
        if own.ether_type == EtherType::VLAN {
            let cut_off = Malformed { offset: bytes.len(), what: "truncated 802.1Q tag" };
            let [a, b, t0, t1] = *bytes[EthernetHeader::LEN..].first_chunk().ok_or(cut_off)?;
            own.tag = Some(VlanTag::of_bits(u16::from_be_bytes([a, b])));
            own.ether_type = EtherType(u16::from_be_bytes([t0, t1]));
        }
        if own.ether_type.0 < 0x0600 {
            return Err(Malformed { offset: 12, what: "IEEE 802.3 length instead of an EtherType" });
        }
        Ok(Self { bytes, header: own })
    }

    /// Returns addresses, tag and EtherType.
    pub fn header(&self) -> &EthernetHeader {
        &self.header
    }

    /// Returns the octets after the header; may end in padding.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header.header_len()..]
    }
}

/// Header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EthernetHeader {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// VLAN and priority, if the frame is tagged.
    pub tag: Option<VlanTag>,
    /// EtherType of the payload.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// Length in octets without a tag.
    pub const LEN: usize = 14;
    /// Length of a tag in octets.
    pub const TAG_LEN: usize = 4;
    /// Length in octets with a tag.
    pub const LEN_MAX: usize = Self::LEN + Self::TAG_LEN;

    /// Returns the length of this header in octets.
    pub const fn header_len(&self) -> usize {
        if self.tag.is_some() { Self::LEN + Self::TAG_LEN } else { Self::LEN }
    }

    /// Writes the header to the start of `into`, and returns its length.
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let len = self.header_len();
        let into = into.get_mut(..len).ok_or(NoRoom)?;
        into[..6].copy_from_slice(&self.destination.0);
        into[6..12].copy_from_slice(&self.source.0);
        if let Some(tag) = self.tag {
            let into: &mut [u8; 4] = room(&mut into[12..])?;
            into[..2].copy_from_slice(&EtherType::VLAN.0.to_be_bytes());
            into[2..].copy_from_slice(&tag.bits().to_be_bytes());
        }
        into[len - 2..].copy_from_slice(&self.ether_type.0.to_be_bytes());
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_header(tag: Option<VlanTag>) -> EthernetHeader {
        EthernetHeader {
            destination: MacAddress([1, 2, 3, 4, 5, 6]),
            source: MacAddress([7, 8, 9, 10, 11, 12]),
            tag,
            ether_type: EtherType::IPV4,
        }
    }

    #[test]
    fn header_round_trips() {
        let urgent = VlanTag { pcp: 7, dei: true, vid: 4095 };
        for tag in [None, Some(VlanTag::default()), Some(urgent), Some(VlanTag { pcp: 3, dei: false, vid: 42 })] {
            let mut bytes = [0xaa; 24];
            let written = a_header(tag);
            let len = written.emit(&mut bytes).expect("the buffer is large enough");
            let frame = EthernetFrame::parse(&bytes).expect("the frame is valid");
            assert_eq!(*frame.header(), written);
            assert_eq!((len, frame.payload().len()), (written.header_len(), 24 - len));
            assert!(frame.payload().iter().all(|byte| *byte == 0xaa));
        }
    }

    #[test]
    fn tag_has_the_position_of_802_1q() {
        let mut bytes = [0; 18];
        a_header(Some(VlanTag { pcp: 5, dei: false, vid: 0x123 })).emit(&mut bytes).expect("enough space");
        assert_eq!(bytes[12..], [0x81, 0x00, 0xa1, 0x23, 0x08, 0x00]);
    }

    #[test]
    fn truncated_header_is_malformed_and_short_buffer_has_no_room() {
        for tag in [None, Some(VlanTag::default())] {
            let written = a_header(tag);
            let mut bytes = [0; 18];
            let len = written.emit(&mut bytes).expect("the buffer is large enough");
            for cut in 0..len {
                let refused = EthernetFrame::parse(&bytes[..cut]).expect_err("the octets are truncated");
                assert_eq!(refused.offset, cut);
                assert_eq!(EthernetFrame::destination(&bytes[..cut]).is_some(), cut >= EthernetHeader::LEN);
                assert_eq!(written.emit(&mut [0; 18][..cut]), Err(NoRoom));
            }
            assert!(EthernetFrame::parse(&bytes[..len]).is_ok());
        }
    }

    #[test]
    fn length_field_is_refused_and_second_tag_is_not_parsed() {
        let mut bytes = [0; 22];
        EthernetHeader { ether_type: EtherType(0x05dc), ..a_header(None) }.emit(&mut bytes).expect("enough space");
        assert!(EthernetFrame::parse(&bytes).is_err());
        EthernetHeader { ether_type: EtherType::VLAN, ..a_header(Some(VlanTag::default())) }
            .emit(&mut bytes)
            .expect("the buffer is large enough");
        let frame = EthernetFrame::parse(&bytes).expect("a frame");
        assert_eq!((frame.header().ether_type, frame.payload().len()), (EtherType::VLAN, 4));
    }
}
