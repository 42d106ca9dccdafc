//! Encoding of primitive types (XTypes 1.3 §7.4.3.5, rules for PRIMITIVE_TYPE). Sequences of them
//! are copied in bulk.

use alloc::vec::Vec;

use crate::describe::{TypeCollector, TypeIdentifiers};
use crate::type_object::identifier::Identifier;
use crate::{CdrValue, DecodeError, Decoder, EncodeError, Encoder, Endianness, Extent, Sink};

/// IDL `char`: one byte of an 8-bit character set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Char8(pub u8);

/// IDL `wchar`: one UTF-16 code unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Char16(pub u16);

/// IDL `uint8`: encoded like `octet`, but a different type in comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uint8(pub u8);

/// Implements a primitive of a fixed number of bytes in either byte order.
macro_rules! primitive {
    ($type:ty, $identifier:ident, $len:literal, $code:literal, $to_le:expr, $to_be:expr, $from_le:expr, $from_be:expr) => {
        impl CdrValue for $type {
            const MIN_ENCODED_LEN: usize = $len;
            const IS_PRIMITIVE: bool = true;
            const LENGTH_CODE: u8 = $code;

            #[inline]
            fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
                e.write_primitive($to_le(*self), $to_be(*self))
            }

            #[inline]
            fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
                let bytes: [u8; $len] = d.read_primitive()?;
                *self = match d.endianness() {
                    Endianness::Little => $from_le(bytes),
                    Endianness::Big => $from_be(bytes),
                };
                Ok(())
            }

            #[inline]
            fn initial() -> Self {
                Self::default()
            }

            #[inline]
            fn extend(extent: Extent) -> Extent {
                extent.add($len, $len)
            }

            fn describe(_: &mut TypeCollector<'_>) -> TypeIdentifiers {
                TypeIdentifiers::same(Identifier::$identifier)
            }

            #[inline]
            fn encode_slice<S: Sink>(values: &[Self], e: &mut Encoder<S>) -> Result<(), EncodeError> {
                e.write_primitives(values, $to_le, $to_be)
            }

            #[inline]
            fn decode_slice(values: &mut [Self], d: &mut Decoder<'_>) -> Result<(), DecodeError> {
                let source = d.take_primitives::<$len>(values.len())?;
                match d.endianness() {
                    Endianness::Little => {
                        values.iter_mut().zip(source).for_each(|(to, &bytes)| *to = $from_le(bytes));
                    }
                    Endianness::Big => {
                        values.iter_mut().zip(source).for_each(|(to, &bytes)| *to = $from_be(bytes));
                    }
                }
                Ok(())
            }

            #[inline]
            fn decode_vec(values: &mut Vec<Self>, count: usize, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
                let source = d.take_primitives::<$len>(count)?;
                values.clear();
                match d.endianness() {
                    Endianness::Little => values.extend(source.iter().map(|&bytes| $from_le(bytes))),
                    Endianness::Big => values.extend(source.iter().map(|&bytes| $from_be(bytes))),
                }
                Ok(())
            }
        }
    };
}

macro_rules! number {
    ($($type:ident $identifier:ident $len:literal $code:literal),*) => {$(
        primitive!(
            $type,
            $identifier,
            $len,
            $code,
            $type::to_le_bytes,
            $type::to_be_bytes,
            $type::from_le_bytes,
            $type::from_be_bytes
        );
    )*};
}

number!(
    i8 Int8 1 0, i16 Int16 2 1, u16 Uint16 2 1, i32 Int32 4 2, u32 Uint32 4 2, f32 Float32 4 2, i64 Int64 8 3,
    u64 Uint64 8 3, f64 Float64 8 3
);

primitive!(Char8, Char8, 1, 0, char8_bytes, char8_bytes, char8, char8);
primitive!(Uint8, Uint8, 1, 0, |v: Uint8| [v.0], |v: Uint8| [v.0], |[v]: [u8; 1]| Uint8(v), |[v]: [u8; 1]| Uint8(v));
primitive!(
    Char16,
    Char16,
    2,
    1,
    |c: Char16| c.0.to_le_bytes(),
    |c: Char16| c.0.to_be_bytes(),
    |b| Char16(u16::from_le_bytes(b)),
    |b| Char16(u16::from_be_bytes(b))
);
primitive!(bool, Boolean, 1, 0, bool_bytes, bool_bytes, boolean, boolean);

fn char8_bytes(c: Char8) -> [u8; 1] {
    [c.0]
}

fn char8(bytes: [u8; 1]) -> Char8 {
    Char8(bytes[0])
}

fn bool_bytes(b: bool) -> [u8; 1] {
    [u8::from(b)]
}

/// INTEROP(CycloneDDS 11): accepts any non-zero octet as TRUE, and so does Takt.
fn boolean(bytes: [u8; 1]) -> bool {
    bytes[0] != 0
}

/// Octets need no conversion, so they are copied directly.
impl CdrValue for u8 {
    const MIN_ENCODED_LEN: usize = 1;
    const IS_PRIMITIVE: bool = true;
    const LENGTH_CODE: u8 = 0;

    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        e.write_bytes(&[*self])
    }

    #[inline]
    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        [*self] = d.read_primitive()?;
        Ok(())
    }

    #[inline]
    fn initial() -> Self {
        0
    }

    #[inline]
    fn extend(extent: Extent) -> Extent {
        extent.add(1, 1)
    }

    /// Describes IDL `octet`. The distinct type `uint8` is [`Uint8`].
    /// INTEROP(CycloneDDS 0.10.2): uses TK_BYTE for both, and TK_CHAR8 for `int8`.
    fn describe(_: &mut TypeCollector<'_>) -> TypeIdentifiers {
        TypeIdentifiers::same(Identifier::Byte)
    }

    #[inline]
    fn encode_slice<S: Sink>(values: &[Self], e: &mut Encoder<S>) -> Result<(), EncodeError> {
        e.write_bytes(values)
    }

    #[inline]
    fn decode_slice(values: &mut [Self], d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        values.copy_from_slice(d.take(values.len())?);
        Ok(())
    }

    #[inline]
    fn decode_vec(values: &mut Vec<Self>, count: usize, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let source = d.take(count)?;
        values.clear();
        values.extend_from_slice(source);
        Ok(())
    }
}
