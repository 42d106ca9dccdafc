//! OpenFlow Extensible Match: fields with their masks (OF 1.3.5 §7.2.3).
//!
//! A field of the class OPENFLOW_BASIC has a variant. Its value is [`Masked`] if the specification
//! allows a mask. [`Oxm::Other`] keeps the octets of all other fields: other classes, experimenter
//! fields, unknown fields, and masks that the specification does not allow. The switch checks
//! prerequisites.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::error::Malformed;
use crate::value::{MacAddress, PortNo};
use crate::wire::{Reader, Wire, Writer};

/// Class of the standard fields.
pub const OPENFLOW_BASIC: u16 = 0x8000;
/// Class of experimenter fields. Four octets of the experimenter ID precede the value.
pub const EXPERIMENTER_CLASS: u16 = 0xffff;
/// Bit of a VLAN ID that indicates a tag.
pub const VLAN_PRESENT: u16 = 0x1000;

/// Value with the bits that are compared. Without a mask, all bits are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Masked<T> {
    /// The value.
    pub value: T,
    /// Mask with one bits for the bits that are compared.
    pub mask: Option<T>,
}

impl<T> Masked<T> {
    /// Creates a value of which all bits are compared.
    pub const fn exact(value: T) -> Self {
        Self { value, mask: None }
    }

    /// Creates a value of which the one bits of `mask` are compared.
    pub const fn new(value: T, mask: T) -> Self {
        Self { value, mask: Some(mask) }
    }
}

impl<T> From<T> for Masked<T> {
    fn from(value: T) -> Self {
        Self::exact(value)
    }
}

/// Class, number and mask bit of a field without its value, as in feature lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OxmHeader {
    /// Class of the field.
    pub class: u16,
    /// Number in the class, below 128.
    pub field: u8,
    /// Whether the field has a mask, or may have one.
    pub has_mask: bool,
    /// Octets of value and mask, and of the experimenter ID if there is one.
    pub len: u8,
    /// Experimenter ID, for [`EXPERIMENTER_CLASS`] only.
    pub experimenter: Option<u32>,
}

impl Wire for OxmHeader {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let class = r.u16()?;
        let field = r.u8()?;
        let len = r.u8()?;
        let experimenter = if class == EXPERIMENTER_CLASS { Some(r.u32()?) } else { None };
        Ok(Self { class, field: field >> 1, has_mask: field & 1 != 0, len, experimenter })
    }

    fn write(&self, w: &mut Writer<'_>) {
        write_header(w, self.class, self.field, self.has_mask, self.len);
        if self.class == EXPERIMENTER_CLASS {
            w.u32(self.experimenter.unwrap_or_default());
        }
    }
}

fn write_header(w: &mut Writer<'_>, class: u16, field: u8, has_mask: bool, len: u8) {
    w.refuse_if(field > 0x7f, "an OXM field beyond 127");
    w.u16(class);
    w.u8(field << 1 | u8::from(has_mask));
    w.u8(len);
}

macro_rules! fields {
    (
        exact { $($(#[$exact_meta:meta])* $exact:ident: $exact_type:ty = $exact_field:literal, $exact_len:literal;)* }
        masked { $($(#[$masked_meta:meta])* $masked:ident: $masked_type:ty = $masked_field:literal, $masked_len:literal;)* }
    ) => {
        /// Field of a packet or of the pipeline, with its value.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Oxm {
            $($(#[$exact_meta])* $exact($exact_type),)*
            $($(#[$masked_meta])* $masked(Masked<$masked_type>),)*
            /// Field without a variant in this crate.
            Other {
                /// Class of the field.
                class: u16,
                /// Number in the class, below 128.
                field: u8,
                /// Whether the second half of the body is a mask.
                has_mask: bool,
                /// Experimenter ID if there is one, value and mask: at most 255 octets.
                body: Vec<u8>,
            },
        }

        impl Oxm {
            /// Returns class, number, mask bit and length.
            pub fn header(&self) -> OxmHeader {
                let basic = |field, has_mask, len| {
                    OxmHeader { class: OPENFLOW_BASIC, field, has_mask, len, experimenter: None }
                };
                match self {
                    $(Self::$exact(_) => basic($exact_field, false, $exact_len),)*
                    $(Self::$masked(v) => {
                        let has_mask = v.mask.is_some();
                        basic($masked_field, has_mask, if has_mask { 2 * $masked_len } else { $masked_len })
                    })*
                    Self::Other { class, field, has_mask, body } => {
                        let experimenter = body.first_chunk().filter(|_| *class == EXPERIMENTER_CLASS);
                        OxmHeader {
                            class: *class,
                            field: *field,
                            has_mask: *has_mask,
                            len: u8::try_from(body.len()).unwrap_or(u8::MAX),
                            experimenter: experimenter.map(|octets| u32::from_be_bytes(*octets)),
                        }
                    }
                }
            }
        }

        impl Wire for Oxm {
            fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
                let class = r.u16()?;
                let field = r.u8()?;
                let len = r.u8()?;
                let (field, has_mask) = (field >> 1, field & 1 != 0);
                let mut body = r.sub(usize::from(len))?;
                let value = match (class, field, has_mask) {
                    $((OPENFLOW_BASIC, $exact_field, false) => {
                        length(&body, $exact_len)?;
                        Self::$exact(Wire::read(&mut body)?)
                    })*
                    $((OPENFLOW_BASIC, $masked_field, _) => {
                        length(&body, if has_mask { 2 * $masked_len } else { $masked_len })?;
                        let value = Wire::read(&mut body)?;
                        let mask = if has_mask { Some(Wire::read(&mut body)?) } else { None };
                        Self::$masked(Masked { value, mask })
                    })*
                    _ => {
                        if class == EXPERIMENTER_CLASS && len < 4 {
                            return Err(body.malformed("experimenter OXM field without an experimenter id"));
                        }
                        Self::Other { class, field, has_mask, body: body.rest().to_vec() }
                    }
                };
                Ok(value)
            }

            fn write(&self, w: &mut Writer<'_>) {
                match self {
                    $(Self::$exact(value) => {
                        write_header(w, OPENFLOW_BASIC, $exact_field, false, $exact_len);
                        value.write(w);
                    })*
                    $(Self::$masked(Masked { value, mask }) => {
                        let len = if mask.is_some() { 2 * $masked_len } else { $masked_len };
                        write_header(w, OPENFLOW_BASIC, $masked_field, mask.is_some(), len);
                        value.write(w);
                        if let Some(mask) = mask {
                            mask.write(w);
                        }
                    })*
                    Self::Other { class, field, has_mask, body } => {
                        if body.len() > 255 {
                            w.too_long("OXM field", body.len(), 255);
                        }
                        write_header(w, *class, *field, *has_mask, u8::try_from(body.len()).unwrap_or(u8::MAX));
                        w.bytes(body);
                    }
                }
            }
        }
    };
}

fn length(body: &Reader<'_>, expected: usize) -> Result<(), Malformed> {
    if body.remaining() == expected { Ok(()) } else { Err(body.malformed("OXM length does not fit its field")) }
}

fields! {
    exact {
        /// Ingress port.
        InPort: PortNo = 0, 4;
        /// Physical ingress port, if it differs.
        InPhyPort: PortNo = 1, 4;
        /// Ethernet type after VLAN tags.
        EthType: u16 = 5, 2;
        /// VLAN priority (PCP), 3 bits.
        VlanPcp: u8 = 7, 1;
        /// Differentiated services code point, 6 bits.
        IpDscp: u8 = 8, 1;
        /// Explicit congestion notification, 2 bits.
        IpEcn: u8 = 9, 1;
        /// IP protocol.
        IpProto: u8 = 10, 1;
        /// TCP source port.
        TcpSrc: u16 = 13, 2;
        /// TCP destination port.
        TcpDst: u16 = 14, 2;
        /// UDP source port.
        UdpSrc: u16 = 15, 2;
        /// UDP destination port.
        UdpDst: u16 = 16, 2;
        /// SCTP source port.
        SctpSrc: u16 = 17, 2;
        /// SCTP destination port.
        SctpDst: u16 = 18, 2;
        /// ICMP type.
        Icmpv4Type: u8 = 19, 1;
        /// ICMP code.
        Icmpv4Code: u8 = 20, 1;
        /// ARP operation.
        ArpOp: u16 = 21, 2;
        /// ICMPv6 type.
        Icmpv6Type: u8 = 29, 1;
        /// ICMPv6 code.
        Icmpv6Code: u8 = 30, 1;
        /// Target address of neighbor discovery.
        Ipv6NdTarget: Ipv6Addr = 31, 16;
        /// Source link-layer address of neighbor discovery.
        Ipv6NdSll: MacAddress = 32, 6;
        /// Target link-layer address of neighbor discovery.
        Ipv6NdTll: MacAddress = 33, 6;
        /// MPLS label, 20 bits.
        MplsLabel: u32 = 34, 4;
        /// MPLS traffic class, 3 bits.
        MplsTc: u8 = 35, 1;
        /// MPLS bottom of stack, 1 bit.
        MplsBos: u8 = 36, 1;
        /// PBB use customer address, 1 bit. Since 1.4.
        PbbUca: u8 = 41, 1;
        /// Output port in the action set. Since 1.5.
        ActsetOutput: PortNo = 43, 4;
        /// Namespace and type of the packet. Since 1.5.
        PacketType: u32 = 44, 4;
    }
    masked {
        /// Metadata that tables pass on.
        Metadata: u64 = 2, 8;
        /// Ethernet destination address.
        EthDst: MacAddress = 3, 6;
        /// Ethernet source address.
        EthSrc: MacAddress = 4, 6;
        /// VLAN ID, 12 bits, with [`VLAN_PRESENT`].
        VlanVid: u16 = 6, 2;
        /// IPv4 source address.
        Ipv4Src: Ipv4Addr = 11, 4;
        /// IPv4 destination address.
        Ipv4Dst: Ipv4Addr = 12, 4;
        /// Sender IPv4 address in ARP.
        ArpSpa: Ipv4Addr = 22, 4;
        /// Target IPv4 address in ARP.
        ArpTpa: Ipv4Addr = 23, 4;
        /// Sender Ethernet address in ARP.
        ArpSha: MacAddress = 24, 6;
        /// Target Ethernet address in ARP.
        ArpTha: MacAddress = 25, 6;
        /// IPv6 source address.
        Ipv6Src: Ipv6Addr = 26, 16;
        /// IPv6 destination address.
        Ipv6Dst: Ipv6Addr = 27, 16;
        /// IPv6 flow label, 20 bits.
        Ipv6Flabel: u32 = 28, 4;
        /// PBB service instance, 24 bits.
        PbbIsid: [u8; 3] = 37, 3;
        /// Metadata of the logical port: a tunnel ID.
        TunnelId: u64 = 38, 8;
        /// Present IPv6 extension headers, 9 bits.
        Ipv6Exthdr: u16 = 39, 2;
        /// TCP flags, 12 bits. Since 1.5.
        TcpFlags: u16 = 42, 2;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::version::Version;

    fn written(oxm: &Oxm) -> Vec<u8> {
        let mut out = Vec::new();
        let mut w = Writer::new(Version::V1_3, &mut out);
        oxm.write(&mut w);
        assert_eq!(w.error(), None);
        out
    }

    fn read(octets: &[u8]) -> Result<Oxm, Malformed> {
        Oxm::read(&mut Reader::new(Version::V1_3, octets))
    }

    #[test]
    fn fields_have_the_octets_of_the_specification() {
        let masked = Masked::new(Ipv4Addr::new(10, 0, 0, 0), Ipv4Addr::new(255, 0, 0, 0));
        for (oxm, octets) in [
            (Oxm::InPort(PortNo(7)), vec![0x80, 0, 0, 4, 0, 0, 0, 7]),
            (Oxm::Ipv4Src(masked), vec![0x80, 0, 0x17, 8, 10, 0, 0, 0, 255, 0, 0, 0]),
            (Oxm::VlanVid((VLAN_PRESENT | 5).into()), vec![0x80, 0, 0x0c, 2, 0x10, 5]),
            (Oxm::PbbIsid([1, 2, 3].into()), vec![0x80, 0, 0x4a, 3, 1, 2, 3]),
        ] {
            assert_eq!(written(&oxm), octets);
            assert_eq!(read(&octets), Ok(oxm.clone()));
            let header = oxm.header();
            assert_eq!(usize::from(header.len), octets.len() - 4);
            assert_eq!((header.field << 1 | u8::from(header.has_mask), header.class), (octets[2], OPENFLOW_BASIC));
            for len in 0..octets.len() {
                assert!(read(&octets[..len]).is_err(), "{oxm:?} cut to {len}");
            }
        }
    }

    #[test]
    fn other_classes_and_forbidden_masks_are_kept() {
        for octets in [
            &[0x00, 0x01, 0x02, 1, 9][..],
            &[0x80, 0, 0x1b, 4, 0, 1, 0, 1],
            &[0x80, 0, 0xfe, 0],
            &[0xff, 0xff, 0x54, 6, 0x4f, 0x4e, 0x46, 0, 0, 2],
        ] {
            let oxm = read(octets).expect("well formed");
            assert!(matches!(oxm, Oxm::Other { .. }));
            assert_eq!(written(&oxm), octets);
        }
        let header = read(&[0xff, 0xff, 0x54, 6, 0x4f, 0x4e, 0x46, 0, 0, 2]).expect("well formed").header();
        assert_eq!((header.experimenter, header.field), (Some(crate::value::ONF), 42));
    }

    #[test]
    fn field_with_a_wrong_length_is_malformed() {
        for octets in [
            &[0x80, 0, 0, 3, 0, 0, 0][..],
            &[0x80, 0, 0x17, 4, 1, 2, 3, 4],
            &[0x80, 0, 0x16, 8, 1, 2, 3, 4, 5, 6, 7, 8],
        ] {
            assert_eq!(read(octets).expect_err("malformed").what, "OXM length does not fit its field");
        }
        assert!(read(&[0xff, 0xff, 0, 2, 0, 0]).is_err());
    }
}
