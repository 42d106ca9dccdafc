//! Common values of messages: port numbers, MAC addresses, names, properties (OF 1.3.5 §7.2.1).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::error::Malformed;
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// Absence of a buffer: a packet-in contains the whole frame, a packet-out or flow_mod refers to no
/// buffer.
pub const NO_BUFFER: u32 = 0xffff_ffff;
/// Length of an output to the controller, or of `miss_send_len`, that stands for the whole frame
/// without a buffer in the switch.
pub const NO_BUFFER_LEN: u16 = 0xffff;
/// All tables, in requests for statistics and in deletions.
pub const TABLE_ALL: u8 = 0xff;
/// All groups, in requests for statistics and in deletions.
pub const GROUP_ALL: u32 = 0xffff_fffc;
/// Any group, as a filter.
pub const GROUP_ANY: u32 = 0xffff_ffff;
/// All queues of a port.
pub const QUEUE_ALL: u32 = 0xffff_ffff;
/// All meters, in requests for statistics and in deletions.
pub const METER_ALL: u32 = 0xffff_ffff;

/// Number of a port: 32 bits, in OpenFlow 1.0 16 bits. The reserved ports of 1.0 are decoded as
/// those of the other versions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNo(pub u32);

impl PortNo {
    /// Ingress port of the packet.
    pub const IN_PORT: Self = Self(0xffff_fff8);
    /// Flow tables. Only in packet-out.
    pub const TABLE: Self = Self(0xffff_fff9);
    /// Non-OpenFlow pipeline of the switch.
    pub const NORMAL: Self = Self(0xffff_fffa);
    /// Flooding by the non-OpenFlow pipeline.
    pub const FLOOD: Self = Self(0xffff_fffb);
    /// All ports except the ingress port.
    pub const ALL: Self = Self(0xffff_fffc);
    /// Controller.
    pub const CONTROLLER: Self = Self(0xffff_fffd);
    /// Local port of the switch.
    pub const LOCAL: Self = Self(0xffff_fffe);
    /// Any port, as a filter. OFPP_NONE in 1.0.
    pub const ANY: Self = Self(0xffff_ffff);

    /// First reserved port of 1.0.
    const RESERVED_V1_0: u16 = 0xfff8;
}

impl Wire for PortNo {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.version() != Version::V1_0 {
            return r.u32().map(Self);
        }
        let number = r.u16()?;
        let high = if number >= Self::RESERVED_V1_0 { 0xffff_0000 } else { 0 };
        Ok(Self(high | u32::from(number)))
    }

    fn write(&self, w: &mut Writer<'_>) {
        if w.version() != Version::V1_0 {
            return w.u32(self.0);
        }
        let [high @ .., a, b] = self.0.to_be_bytes();
        let low = u16::from_be_bytes([a, b]);
        let is_reserved = low >= Self::RESERVED_V1_0;
        w.refuse_if(high != if is_reserved { [0xff; 2] } else { [0; 2] }, "a port number beyond 16 bits");
        w.u16(low);
    }
}

impl fmt::Debug for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::IN_PORT => f.write_str("IN_PORT"),
            Self::TABLE => f.write_str("TABLE"),
            Self::NORMAL => f.write_str("NORMAL"),
            Self::FLOOD => f.write_str("FLOOD"),
            Self::ALL => f.write_str("ALL"),
            Self::CONTROLLER => f.write_str("CONTROLLER"),
            Self::LOCAL => f.write_str("LOCAL"),
            Self::ANY => f.write_str("ANY"),
            Self(number) => write!(f, "{number}"),
        }
    }
}

/// Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl Wire for MacAddress {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.array().map(Self)
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.bytes(&self.0);
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Text in a field of `N` octets, with a NUL after a shorter text. All octets are kept, including
/// those after the NUL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>(pub [u8; N]);

impl<const N: usize> Text<N> {
    /// Returns the octets before the first NUL as text. Octets that are not UTF-8 are replaced.
    pub fn to_text(&self) -> Cow<'_, str> {
        let end = self.0.iter().position(|octet| *octet == 0).unwrap_or(N);
        String::from_utf8_lossy(&self.0[..end])
    }

    /// Creates a text of at most `N` - 1 octets, so that a NUL follows. Returns `None` for a longer
    /// text or one with a NUL.
    pub fn new(text: &str) -> Option<Self> {
        let fits = text.len() < N && !text.as_bytes().contains(&0);
        fits.then(|| {
            let mut octets = [0; N];
            octets[..text.len()].copy_from_slice(text.as_bytes());
            Self(octets)
        })
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_text())
    }
}

impl<const N: usize> Wire for Text<N> {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.array().map(Self)
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.bytes(&self.0);
    }
}

/// Property without a type in this crate, including experimenter properties: its type, and the
/// octets after its length without padding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// Type of the property, 0xffff for an experimenter property.
    pub kind: u16,
    /// Octets after the length.
    pub body: Vec<u8>,
}

impl Wire for Property {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, mut body) = read_property(r)?;
        Ok(Self { kind, body: body.rest().to_vec() })
    }

    fn write(&self, w: &mut Writer<'_>) {
        write_property(w, self.kind, |w| w.bytes(&self.body));
    }
}

/// Reads the type of a property and returns a reader of its body. `r` continues after the padding.
pub(crate) fn read_property<'a>(r: &mut Reader<'a>) -> Result<(u16, Reader<'a>), Malformed> {
    let start = r.position();
    let kind = r.u16()?;
    let len = r.u16()?;
    let body = r.rest_of(len, 4)?;
    r.align(start)?;
    Ok((kind, body))
}

/// Writes a property: type, length, body, and padding to 8 octets that the length does not include.
pub(crate) fn write_property(w: &mut Writer<'_>, kind: u16, body: impl FnOnce(&mut Writer<'_>)) {
    let start = w.position();
    w.u16(kind);
    w.u16(0);
    body(w);
    w.set_len(start + 2, start, "property");
    w.align(start);
}

/// Experimenter data, kept as octets (OF 1.3.5 §7.5.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Experimenter {
    /// Experimenter ID: an OUI, or a number that the ONF assigned.
    pub experimenter: u32,
    /// Message type of the experimenter. OpenFlow 1.0 does not define it, but its experimenters use
    /// it here.
    pub kind: u32,
    /// Octets after the type.
    pub body: Vec<u8>,
}

/// Experimenter ID of the Open Networking Foundation.
pub const ONF: u32 = 0x4f4e_4600;

impl Wire for Experimenter {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { experimenter: r.u32()?, kind: r.u32()?, body: r.rest().to_vec() })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u32(self.experimenter);
        w.u32(self.kind);
        w.bytes(&self.body);
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn written(version: Version, value: &impl Wire) -> Result<Vec<u8>, crate::EncodeError> {
        let mut out = Vec::new();
        let mut w = Writer::new(version, &mut out);
        value.write(&mut w);
        w.error().map_or(Ok(out), Err)
    }

    #[test]
    fn reserved_ports_of_1_0_are_those_of_later_versions() {
        for number in [0u16, 1, 0xff00, 0xfff7, 0xfff8, 0xfffd, 0xffff] {
            let port = PortNo::read(&mut Reader::new(Version::V1_0, &number.to_be_bytes())).expect("two octets");
            assert_eq!(written(Version::V1_0, &port), Ok(number.to_be_bytes().to_vec()));
            assert_eq!(port == PortNo::CONTROLLER, number == 0xfffd);
        }
        for port in [PortNo(0x1_0000), PortNo(0xfff8), PortNo(0xffff_ff00)] {
            assert!(written(Version::V1_0, &port).is_err(), "{port}");
            assert_eq!(written(Version::V1_3, &port), Ok(port.0.to_be_bytes().to_vec()));
        }
    }

    #[test]
    fn text_ends_at_the_first_nul_and_keeps_all_octets() {
        let text = Text(*b"ab\0c");
        assert_eq!(text.to_text(), "ab");
        assert_eq!(written(Version::V1_3, &text), Ok(b"ab\0c".to_vec()));
        assert_eq!(Text::<4>::new("abc"), Some(Text(*b"abc\0")));
        assert_eq!(Text::<4>::new("abcd"), None);
        assert_eq!(Text::<4>::new("a\0"), None);
        assert_eq!(Text([0xff; 2]).to_text(), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn property_is_padded_and_its_length_excludes_the_padding() {
        let property = Property { kind: 7, body: alloc::vec![1] };
        let octets = written(Version::V1_4, &property).expect("short");
        assert_eq!(octets, [0, 7, 0, 5, 1, 0, 0, 0]);
        for len in 0..octets.len() {
            assert!(Property::read(&mut Reader::new(Version::V1_4, &octets[..len])).is_err(), "{len}");
        }
        assert_eq!(Property::read(&mut Reader::new(Version::V1_4, &octets)), Ok(property));
        assert!(Property::read(&mut Reader::new(Version::V1_4, &[0, 7, 0, 3])).is_err());
    }

    #[test]
    fn addresses_and_ports_are_displayed_in_their_usual_form() {
        assert_eq!(MacAddress([0, 1, 2, 3, 4, 0xff]).to_string(), "00:01:02:03:04:ff");
        assert_eq!(PortNo(3).to_string(), "3");
        assert_eq!(PortNo::LOCAL.to_string(), "LOCAL");
    }
}
