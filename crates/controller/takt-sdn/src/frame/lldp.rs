//! LLDP data units (IEEE 802.1AB): parser and builder.
//!
//! The parser reads the three mandatory TLVs at the start and the organizationally specific ones.
//! It ignores other TLVs.

use super::{EtherType, LLDP, MacAddress, Malformed, build};

/// Destination address that bridges do not forward: "nearest bridge" (IEEE 802.1AB).
pub const NEAREST_BRIDGE: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);

/// Subtype "locally assigned" of a chassis id.
pub const LOCAL_CHASSIS: u8 = 7;
/// Subtype "locally assigned" of a port id.
pub const LOCAL_PORT: u8 = 7;

const END: u8 = 0;
const CHASSIS: u8 = 1;
const PORT: u8 = 2;
const TTL: u8 = 3;
const ORGANIZATION: u8 = 127;

/// Maximum length of the value of a TLV in octets.
const VALUE_MAX: usize = 511;

/// Id of a chassis or port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identifier<'a> {
    /// Subtype of the id.
    pub kind: u8,
    /// Octets of the id.
    pub value: &'a [u8],
}

/// A data unit with validated TLVs.
#[derive(Clone, Copy, Debug)]
pub struct Lldp<'a> {
    chassis: Identifier<'a>,
    port: Identifier<'a>,
    ttl: u16,
    /// TLVs after the mandatory ones.
    optional: &'a [u8],
}

/// Splits off the first TLV. Returns its type, its value and the remaining octets.
fn tlv(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [a, b] = *bytes.first_chunk()?;
    let len = usize::from(u16::from_be_bytes([a, b]) & 0x01ff);
    let (value, rest) = bytes[2..].split_at_checked(len)?;
    Some((a >> 1, value, rest))
}

impl<'a> Lldp<'a> {
    /// Parses a data unit; octets after its end are padding. A unit without the end TLV is
    /// accepted, since frames do not always contain it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        let mut mandatory = |kind: u8, what: &'static str| {
            let at = Malformed { offset: bytes.len() - rest.len(), what };
            let (found, value, next) = tlv(rest).ok_or(at)?;
            rest = next;
            if found == kind && value.len() >= 2 { Ok(value) } else { Err(at) }
        };
        let identifier = |value: &'a [u8]| Identifier { kind: value[0], value: &value[1..] };
        let chassis = identifier(mandatory(CHASSIS, "LLDP without a chassis")?);
        let port = identifier(mandatory(PORT, "LLDP without a port")?);
        let ttl = mandatory(TTL, "LLDP without a time to live")?;
        let unit = Self { chassis, port, ttl: u16::from_be_bytes([ttl[0], ttl[1]]), optional: rest };
        while !rest.is_empty() {
            let at = Malformed { offset: bytes.len() - rest.len(), what: "truncated LLDP TLV" };
            let (kind, _, next) = tlv(rest).ok_or(at)?;
            if kind == END {
                break;
            }
            rest = next;
        }
        Ok(unit)
    }

    /// Returns the chassis id.
    pub fn chassis(&self) -> Identifier<'a> {
        self.chassis
    }

    /// Returns the port id.
    pub fn port(&self) -> Identifier<'a> {
        self.port
    }

    /// Returns the lifetime of the information in seconds.
    pub fn ttl(&self) -> u16 {
        self.ttl
    }

    /// Returns the value of the first TLV of an organization with a subtype.
    pub fn organization(&self, oui: [u8; 3], kind: u8) -> Option<&'a [u8]> {
        let mut rest = self.optional;
        while let Some((found, value, next)) = tlv(rest) {
            let of = value.split_at_checked(4);
            match (found, of) {
                (END, _) => return None,
                (ORGANIZATION, Some((header, value))) if header[..3] == oui && header[3] == kind => return Some(value),
                _ => rest = next,
            }
        }
        None
    }
}

/// Content of a data unit to be built.
#[derive(Clone, Copy, Debug)]
pub struct LldpFrame<'a> {
    /// Source address of the frame.
    pub source: MacAddress,
    /// Chassis id.
    pub chassis: Identifier<'a>,
    /// Port id.
    pub port: Identifier<'a>,
    /// Lifetime of the information in seconds.
    pub ttl: u16,
    /// Organizationally specific TLVs: OUI, subtype, value.
    pub organization: &'a [([u8; 3], u8, &'a [u8])],
}

impl LldpFrame<'_> {
    /// Builds the untagged frame to [`NEAREST_BRIDGE`]; `None` if a value is too long for a TLV.
    pub fn build(&self) -> Option<Vec<u8>> {
        let mut frame = build::ethernet(NEAREST_BRIDGE, self.source, &[], EtherType(LLDP.0));
        let mut push = |kind: u8, parts: &[&[u8]]| {
            let len: usize = parts.iter().map(|part| part.len()).sum();
            let len = u16::try_from(len).ok().filter(|len| usize::from(*len) <= VALUE_MAX)?; // tidy-allow(dropped-cause): both errors mean that the value is too long.
            frame.extend_from_slice(&(u16::from(kind) << 9 | len).to_be_bytes());
            parts.iter().for_each(|part| frame.extend_from_slice(part));
            Some(())
        };
        push(CHASSIS, &[&[self.chassis.kind], self.chassis.value])?;
        push(PORT, &[&[self.port.kind], self.port.value])?;
        push(TTL, &[&self.ttl.to_be_bytes()])?;
        for (oui, kind, value) in self.organization {
            push(ORGANIZATION, &[oui, &[*kind], value])?;
        }
        push(END, &[])?;
        Some(frame)
    }
}
