//! Bounds-checked reading and writing in network byte order, and the macros that derive both from
//! one list of fields or numbers.
//!
//! Octets that OpenFlow reserves are ignored when read, and written as zero (OF 1.3.5 §7.1). A
//! writer keeps its first error and continues, so that the code of a layout is a plain list of
//! fields.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::error::{EncodeError, Malformed};
use crate::version::Version;

/// Value with one wire form for each version.
pub(crate) trait Wire: Sized {
    /// Reads the value. The reader continues after it.
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed>;
    /// Appends the value.
    fn write(&self, w: &mut Writer<'_>);
}

/// Reader of a message, or of a part of it.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Offset of `bytes` in the message, for errors.
    base: usize,
    version: Version,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(version: Version, bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, base: 0, version }
    }

    pub(crate) const fn version(&self) -> Version {
        self.version
    }

    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Returns an error at the current position.
    pub(crate) const fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { offset: self.base + self.position, what }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some((octets, _)) = self.bytes[self.position..].split_first_chunk::<N>() else {
            return Err(self.malformed("ends early"));
        };
        self.position += N;
        Ok(*octets)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let Some(octets) = self.bytes[self.position..].get(..len) else {
            return Err(self.malformed("ends early"));
        };
        self.position += len;
        Ok(octets)
    }

    /// Returns the remaining octets.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.position..];
        self.position = self.bytes.len();
        rest
    }

    /// Skips reserved octets.
    pub(crate) fn reserved(&mut self, len: usize) -> Result<(), Malformed> {
        self.bytes(len).map(|_| ())
    }

    /// Skips padding to the next multiple of 8 octets after `from`, which is a position of this
    /// reader.
    pub(crate) fn align(&mut self, from: usize) -> Result<(), Malformed> {
        self.reserved((self.position - from).wrapping_neg() & 7)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[octet]| octet)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Returns a reader of the next `len` octets.
    pub(crate) fn sub(&mut self, len: usize) -> Result<Reader<'a>, Malformed> {
        let base = self.base + self.position;
        let bytes = self.bytes(len)?;
        Ok(Reader { bytes, position: 0, base, version: self.version })
    }

    /// Returns a reader of the rest of a structure of `len` octets. `read` octets of it, including
    /// the length, have been read.
    pub(crate) fn rest_of(&mut self, len: u16, read: usize) -> Result<Reader<'a>, Malformed> {
        match usize::from(len).checked_sub(read) {
            Some(rest) => self.sub(rest),
            None => Err(self.malformed("length is shorter than its structure")),
        }
    }

    /// Fails if octets remain.
    pub(crate) fn finish(&self, what: &'static str) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(self.malformed(what)) }
    }

    /// Reads values up to the end.
    pub(crate) fn list<T: Wire>(&mut self) -> Result<Vec<T>, Malformed> {
        let mut values = Vec::new();
        while !self.is_empty() {
            values.push(T::read(self)?);
        }
        Ok(values)
    }
}

/// Writer that appends one message to a buffer.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    version: Version,
    error: Option<EncodeError>,
}

impl<'a> Writer<'a> {
    pub(crate) const fn new(version: Version, out: &'a mut Vec<u8>) -> Self {
        Self { out, version, error: None }
    }

    pub(crate) const fn version(&self) -> Version {
        self.version
    }

    pub(crate) const fn error(&self) -> Option<EncodeError> {
        self.error
    }

    /// Returns the length of the buffer.
    pub(crate) fn position(&self) -> usize {
        self.out.len()
    }

    /// Records that the version has no form for `what`.
    pub(crate) fn refuse(&mut self, what: &'static str) {
        let version = self.version;
        self.error.get_or_insert(EncodeError::NotInVersion { version, what });
    }

    /// Refuses `what` if it is present.
    pub(crate) fn refuse_if(&mut self, is_present: bool, what: &'static str) {
        if is_present {
            self.refuse(what);
        }
    }

    pub(crate) fn bytes(&mut self, octets: &[u8]) {
        self.out.extend_from_slice(octets);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn reserved(&mut self, len: usize) {
        self.out.resize(self.out.len() + len, 0);
    }

    /// Writes zeros up to the next multiple of 8 octets after `from`.
    pub(crate) fn align(&mut self, from: usize) {
        self.reserved((self.out.len() - from).wrapping_neg() & 7);
    }

    pub(crate) fn list<T: Wire>(&mut self, values: &[T]) {
        for value in values {
            value.write(self);
        }
    }

    /// Writes the number of octets since `from` into the 16-bit length field at `at`.
    pub(crate) fn set_len(&mut self, at: usize, from: usize, what: &'static str) {
        let len = self.out.len() - from;
        match u16::try_from(len) {
            Ok(octets) => self.out[at..at + 2].copy_from_slice(&octets.to_be_bytes()),
            Err(_) => self.too_long(what, len, usize::from(u16::MAX)),
        }
    }

    pub(crate) fn too_long(&mut self, what: &'static str, len: usize, len_max: usize) {
        self.error.get_or_insert(EncodeError::TooLong { what, len, len_max });
    }
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Wire for $type {
            fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
                r.$type()
            }

            fn write(&self, w: &mut Writer<'_>) {
                w.$type(*self);
            }
        }
    )*};
}
integers!(u8 u16 u32 u64);

impl<const N: usize> Wire for [u8; N] {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.array()
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.bytes(self);
    }
}

impl Wire for Ipv4Addr {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.array::<4>().map(Self::from)
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.bytes(&self.octets());
    }
}

impl Wire for Ipv6Addr {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.array::<16>().map(Self::from)
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.bytes(&self.octets());
    }
}

/// Derives [`Wire`] for a structure whose wire form is its fields in order, the same in every
/// version. `field: type, reserved n;` adds n reserved octets after the field.
macro_rules! layout {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* $field:ident: $type:ty $(, reserved $reserved:literal)?;)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $crate::wire::Wire for $name {
            fn read(r: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::error::Malformed> {
                $(
                    let $field = <$type as $crate::wire::Wire>::read(r)?;
                    $(r.reserved($reserved)?;)?
                )*
                Ok(Self { $($field),* })
            }

            fn write(&self, w: &mut $crate::wire::Writer<'_>) {
                $(
                    $crate::wire::Wire::write(&self.$field, w);
                    $(w.reserved($reserved);)?
                )*
            }
        }
    };
}
pub(crate) use layout;

/// Derives [`Wire`] for an enumeration whose wire form is its number, the same in every version.
/// Any other number is malformed.
macro_rules! numbered {
    (
        $(#[$meta:meta])*
        pub enum $name:ident as $number_type:ident, $malformed:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $number:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$variant_meta])* $variant = $number,)*
        }

        impl $crate::wire::Wire for $name {
            fn read(r: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::error::Malformed> {
                let at = *r;
                match r.$number_type()? {
                    $($number => Ok(Self::$variant),)*
                    _ => Err(at.malformed($malformed)),
                }
            }

            fn write(&self, w: &mut $crate::wire::Writer<'_>) {
                w.$number_type(*self as $number_type);
            }
        }
    };
}
pub(crate) use numbered;

/// Returns the octets of a value, or `None` if the version cannot encode it.
#[cfg(test)]
pub(crate) fn written(version: Version, value: &impl Wire) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut w = Writer::new(version, &mut out);
    value.write(&mut w);
    w.error().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn read_past_the_end_fails_with_its_offset_in_the_message() {
        let mut r = Reader::new(Version::V1_3, &[1, 2, 3, 4]);
        r.reserved(1).expect("one octet is there");
        let mut inner = r.sub(2).expect("two octets are there");
        inner.reserved(1).expect("one octet is there");
        assert_eq!(inner.u16(), Err(Malformed { offset: 2, what: "ends early" }));
        assert_eq!(inner.remaining(), 1);
        assert_eq!(r.bytes(usize::MAX), Err(Malformed { offset: 3, what: "ends early" }));
        assert_eq!(r.rest_of(3, 4).map(|_| ()).expect_err("shorter").what, "length is shorter than its structure");
    }

    #[test]
    fn padding_is_relative_to_the_start_of_its_structure() {
        let mut r = Reader::new(Version::V1_3, &[0; 13]);
        r.reserved(3).expect("the octets exist");
        r.reserved(2).expect("the octets exist");
        r.align(3).expect("six octets of padding");
        assert_eq!(r.position(), 11);
        let mut out = vec![9; 3];
        let mut w = Writer::new(Version::V1_3, &mut out);
        w.bytes(&[1, 2]);
        w.align(3);
        assert_eq!(out, [9, 9, 9, 1, 2, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn writer_keeps_its_first_error() {
        let mut out = Vec::new();
        let mut w = Writer::new(Version::V1_0, &mut out);
        w.refuse("groups");
        w.refuse("meters");
        w.too_long("message", 1, 0);
        let expected = EncodeError::NotInVersion { version: Version::V1_0, what: "groups" };
        assert_eq!(w.error(), Some(expected));
    }

    #[test]
    fn length_beyond_sixteen_bits_is_refused() {
        let mut out = vec![0; 65_538];
        let mut w = Writer::new(Version::V1_3, &mut out);
        w.set_len(0, 2, "list");
        assert_eq!(w.error(), Some(EncodeError::TooLong { what: "list", len: 65_536, len_max: 65_535 }));
    }
}
