//! Matches of flow entries: lists of OXM fields (OF 1.3.5 §7.2.3), and the fixed structure of
//! OpenFlow 1.0.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use crate::error::Malformed;
use crate::oxm::{Masked, Oxm, VLAN_PRESENT};
use crate::value::{MacAddress, PortNo};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer, layout};

/// Type of a match that is a list of OXM fields.
const OFPMT_OXM: u16 = 1;

/// Match of a flow entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Match {
    /// List of OXM fields that all have to match; since OpenFlow 1.2. An empty list matches every
    /// packet. For a switch of OpenFlow 1.0 it is converted to the structure of that version.
    Oxm(Vec<Oxm>),
    /// Match structure of OpenFlow 1.0.
    Standard(Box<StandardMatch>),
}

impl Match {
    /// Match of every packet.
    pub const ANY: Self = Self::Oxm(Vec::new());
}

impl Default for Match {
    fn default() -> Self {
        Self::ANY
    }
}

impl From<Vec<Oxm>> for Match {
    fn from(fields: Vec<Oxm>) -> Self {
        Self::Oxm(fields)
    }
}

impl Wire for Match {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.version() {
            Version::V1_0 => StandardMatch::read(r).map(|standard| Self::Standard(Box::new(standard))),
            _ => read_fields(r).map(Self::Oxm),
        }
    }

    fn write(&self, w: &mut Writer<'_>) {
        match (self, w.version()) {
            (Self::Standard(standard), Version::V1_0) => standard.write(w),
            (Self::Oxm(fields), Version::V1_0) => match StandardMatch::from_fields(fields) {
                Some(standard) => standard.write(w),
                None => w.refuse("a match that the twelve fields of 1.0 cannot express"),
            },
            (Self::Standard(_), _) => w.refuse("the fixed match structure of 1.0"),
            (Self::Oxm(fields), _) => write_fields(w, fields),
        }
    }
}

/// Reads a match of OXM fields: type, length, fields and padding.
pub(crate) fn read_fields(r: &mut Reader<'_>) -> Result<Vec<Oxm>, Malformed> {
    let start = r.position();
    if r.u16()? != OFPMT_OXM {
        return Err(r.malformed("match is not of the type OXM"));
    }
    let len = r.u16()?;
    let fields = r.rest_of(len, 4)?.list()?;
    r.align(start)?;
    Ok(fields)
}

/// Writes the octets that [`read_fields`] reads.
pub(crate) fn write_fields(w: &mut Writer<'_>, fields: &[Oxm]) {
    let start = w.position();
    w.u16(OFPMT_OXM);
    w.u16(0);
    w.list(fields);
    w.set_len(start + 2, start, "match");
    w.align(start);
}

layout! {
    /// Match of OpenFlow 1.0: twelve fields, each of which `wildcards` can exclude from the
    /// comparison.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct StandardMatch {
        /// Excluded fields, one bit for each. The two IPv4 addresses have 6 bits each: the number
        /// of low bits that are not compared.
        wildcards: u32;
        /// Ingress port.
        in_port: PortNo;
        /// Ethernet source address.
        eth_src: MacAddress;
        /// Ethernet destination address.
        eth_dst: MacAddress;
        /// VLAN ID. 0xffff for frames without a tag.
        vlan_vid: u16;
        /// Priority of the VLAN tag (PCP).
        vlan_pcp: u8, reserved 1;
        /// Ethernet type.
        eth_type: u16;
        /// DSCP of IPv4, in the upper six bits.
        ip_tos: u8;
        /// IP protocol, or ARP operation.
        ip_proto: u8, reserved 2;
        /// IPv4 source address.
        ipv4_src: Ipv4Addr;
        /// IPv4 destination address.
        ipv4_dst: Ipv4Addr;
        /// TCP or UDP source port, or ICMP type.
        tp_src: u16;
        /// TCP or UDP destination port, or ICMP code.
        tp_dst: u16;
    }
}

/// Bits of `wildcards`.
mod wildcard {
    pub const IN_PORT: u32 = 1;
    pub const VLAN_VID: u32 = 1 << 1;
    pub const ETH_SRC: u32 = 1 << 2;
    pub const ETH_DST: u32 = 1 << 3;
    pub const ETH_TYPE: u32 = 1 << 4;
    pub const IP_PROTO: u32 = 1 << 5;
    pub const TP_SRC: u32 = 1 << 6;
    pub const TP_DST: u32 = 1 << 7;
    pub const IPV4_SRC_SHIFT: u32 = 8;
    pub const IPV4_DST_SHIFT: u32 = 14;
    pub const VLAN_PCP: u32 = 1 << 20;
    pub const IP_TOS: u32 = 1 << 21;
    /// Exclusion of all fields, including all 32 bits of both addresses.
    pub const ALL: u32 = 0x0038_20ff;
}

impl StandardMatch {
    /// Match of every packet.
    pub const ANY: Self = Self {
        wildcards: wildcard::ALL,
        in_port: PortNo(0),
        eth_src: MacAddress([0; 6]),
        eth_dst: MacAddress([0; 6]),
        vlan_vid: 0,
        vlan_pcp: 0,
        eth_type: 0,
        ip_tos: 0,
        ip_proto: 0,
        ipv4_src: Ipv4Addr::UNSPECIFIED,
        ipv4_dst: Ipv4Addr::UNSPECIFIED,
        tp_src: 0,
        tp_dst: 0,
    };

    /// Converts OXM fields to the equivalent match of 1.0. `None` if there is none, for instance
    /// because 1.0 has no such field, or the mask of an address is not a prefix.
    pub fn from_fields(fields: &[Oxm]) -> Option<Self> {
        let mut standard = Self::ANY;
        for field in fields {
            standard.set(field)?;
        }
        Some(standard)
    }

    /// Compares one more field. `None` if 1.0 cannot express it.
    fn set(&mut self, field: &Oxm) -> Option<()> {
        let bit = match field {
            Oxm::InPort(port) => {
                self.in_port = *port;
                wildcard::IN_PORT
            }
            Oxm::EthSrc(Masked { value, mask: None }) => {
                self.eth_src = *value;
                wildcard::ETH_SRC
            }
            Oxm::EthDst(Masked { value, mask: None }) => {
                self.eth_dst = *value;
                wildcard::ETH_DST
            }
            Oxm::EthType(value) => {
                self.eth_type = *value;
                wildcard::ETH_TYPE
            }
            Oxm::VlanVid(Masked { value, mask: None }) => {
                self.vlan_vid = if *value == 0 { 0xffff } else { *value & !VLAN_PRESENT };
                wildcard::VLAN_VID
            }
            Oxm::VlanPcp(value) => {
                self.vlan_pcp = *value;
                wildcard::VLAN_PCP
            }
            Oxm::IpDscp(value) => {
                self.ip_tos = *value << 2;
                wildcard::IP_TOS
            }
            Oxm::IpProto(value) => {
                self.ip_proto = *value;
                wildcard::IP_PROTO
            }
            Oxm::ArpOp(value) => {
                self.ip_proto = u8::try_from(*value).ok()?;
                wildcard::IP_PROTO
            }
            Oxm::Ipv4Src(value) | Oxm::ArpSpa(value) => {
                self.ipv4_src = value.value;
                self.set_prefix(wildcard::IPV4_SRC_SHIFT, value)?;
                0
            }
            Oxm::Ipv4Dst(value) | Oxm::ArpTpa(value) => {
                self.ipv4_dst = value.value;
                self.set_prefix(wildcard::IPV4_DST_SHIFT, value)?;
                0
            }
            Oxm::TcpSrc(value) | Oxm::UdpSrc(value) => {
                self.tp_src = *value;
                wildcard::TP_SRC
            }
            Oxm::TcpDst(value) | Oxm::UdpDst(value) => {
                self.tp_dst = *value;
                wildcard::TP_DST
            }
            Oxm::Icmpv4Type(value) => {
                self.tp_src = u16::from(*value);
                wildcard::TP_SRC
            }
            Oxm::Icmpv4Code(value) => {
                self.tp_dst = u16::from(*value);
                wildcard::TP_DST
            }
            _ => return None,
        };
        self.wildcards &= !bit;
        Some(())
    }

    /// Sets the number of low bits of an address that are not compared. `None` if the mask is not a
    /// prefix.
    fn set_prefix(&mut self, shift: u32, value: &Masked<Ipv4Addr>) -> Option<()> {
        let mask = value.mask.map_or(u32::MAX, u32::from);
        let ignored = mask.trailing_zeros();
        let is_prefix = ignored == 32 || mask >> ignored == u32::MAX >> ignored;
        self.wildcards = self.wildcards & !(0x3f << shift) | ignored << shift;
        is_prefix.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::wire::written;

    #[test]
    fn empty_match_has_eight_octets() {
        let octets = written(Version::V1_3, &Match::ANY).expect("the version can encode it");
        assert_eq!(octets, [0, 1, 0, 4, 0, 0, 0, 0]);
        assert_eq!(Match::read(&mut Reader::new(Version::V1_3, &octets)), Ok(Match::ANY));
        assert!(Match::read(&mut Reader::new(Version::V1_3, &[0, 0, 0, 4, 0, 0, 0, 0])).is_err(), "OFPMT_STANDARD");
        assert!(Match::read(&mut Reader::new(Version::V1_3, &[0, 1, 0, 3, 0, 0, 0, 0])).is_err());
    }

    #[test]
    fn oxm_fields_are_converted_to_the_match_of_1_0() {
        let prefix = Masked::new(Ipv4Addr::new(10, 0, 0, 0), Ipv4Addr::new(255, 255, 255, 0));
        let fields = vec![
            Oxm::InPort(PortNo(3)),
            Oxm::EthType(0x800),
            Oxm::IpProto(17),
            Oxm::Ipv4Dst(prefix),
            Oxm::UdpDst(7400),
            Oxm::IpDscp(46),
        ];
        let standard = StandardMatch::from_fields(&fields).expect("1.0 has these");
        assert_eq!(standard.wildcards, 0x0010_004e | 32 << 8 | 8 << 14);
        assert_eq!((standard.ip_tos, standard.tp_dst), (184, 7400));
        let octets = written(Version::V1_0, &Match::Oxm(fields)).expect("1.0 has these");
        assert_eq!(octets.len(), 40);
        let back = Match::read(&mut Reader::new(Version::V1_0, &octets));
        assert_eq!(back, Ok(Match::Standard(Box::new(standard))));
    }

    #[test]
    fn match_without_a_form_in_1_0_is_refused() {
        let not_contiguous = Masked::new(Ipv4Addr::LOCALHOST, Ipv4Addr::new(255, 0, 255, 0));
        for field in [
            Oxm::Ipv4Src(not_contiguous),
            Oxm::TunnelId(1.into()),
            Oxm::EthDst(Masked::new(MacAddress::default(), MacAddress::default())),
        ] {
            assert_eq!(written(Version::V1_0, &Match::Oxm(vec![field])), None);
        }
        let standard = Match::Standard(Box::new(StandardMatch::ANY));
        assert_eq!(written(Version::V1_3, &standard), None);
        assert_eq!(written(Version::V1_0, &Match::ANY), written(Version::V1_0, &standard));
    }

    #[test]
    fn prefixes_of_every_length_can_be_expressed_in_1_0() {
        for len in 0..=32 {
            let mask = Ipv4Addr::from(u32::MAX.checked_shl(32 - len).unwrap_or(0));
            let fields = [Oxm::Ipv4Src(Masked::new(Ipv4Addr::LOCALHOST, mask))];
            let standard = StandardMatch::from_fields(&fields).expect("a prefix");
            assert_eq!(standard.wildcards >> 8 & 0x3f, 32 - len);
        }
    }
}
