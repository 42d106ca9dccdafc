//! Encoding of strings and wide strings (XTypes 1.3 §7.4.3.5, rules for STRING_TYPE).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::describe::{TypeCollector, TypeIdentifiers, wire_bound};
use crate::type_object::identifier::Identifier;
use crate::{CdrValue, DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Extent, HasLength, Sink};

/// IDL `wstring`: UTF-16 code units.
///
/// The wire format is the length in bytes and the units, with no terminating NUL.
/// INTEROP(Fast-CDR 2.3): writes the number of characters as length. CycloneDDS 11 and Takt
/// interpret it as bytes, so wide strings are not interoperable between the two.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WString(pub Vec<u16>);

impl WString {
    /// Returns the text; unpaired surrogates become U+FFFD.
    pub fn to_string_lossy(&self) -> String {
        String::from_utf16_lossy(&self.0)
    }
}

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        Self(text.encode_utf16().collect())
    }
}

impl fmt::Debug for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string_lossy(), f)
    }
}

impl CdrValue for String {
    const MIN_ENCODED_LEN: usize = 4;
    const LENGTH_CODE: u8 = 5;

    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        if let Some(at) = self.find('\0') {
            return Err(EncodeError::Nul { at });
        }
        e.write_len(self.len().saturating_add(1))?;
        e.write_bytes(self.as_bytes())?;
        e.write_bytes(&[0])
    }

    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.clear();
        let len = d.read_count(1)?;
        if len == 0 {
            // INTEROP(Fast-CDR 2.3): writes a null C string as length 0, without the NUL.
            return Ok(());
        }
        match d.take(len)?.split_last() {
            // Every decoded string must be encodable: keys rely on that.
            Some((0, bytes)) if bytes.contains(&0) => return Err(d.error(DecodeErrorKind::Nul)),
            Some((0, bytes)) => match core::str::from_utf8(bytes) {
                Ok(text) => self.push_str(text),
                Err(_) => return Err(d.error(DecodeErrorKind::Text)),
            },
            _ => return Err(d.error(DecodeErrorKind::Unterminated)),
        }
        Ok(())
    }

    #[inline]
    fn initial() -> Self {
        Self::new()
    }

    #[inline]
    fn reset(&mut self) {
        self.clear();
    }

    #[inline]
    fn extend(extent: Extent) -> Extent {
        extent.unbounded()
    }

    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers {
        Self::describe_bounded(types, 0)
    }
}

/// The bound of a string counts bytes without the NUL.
impl HasLength for String {
    #[inline]
    fn length(&self) -> usize {
        self.len()
    }

    #[inline]
    fn extend_bounded(extent: Extent, bound: usize) -> Extent {
        extent.add(4, 4).add(1, bound.saturating_add(1))
    }

    fn describe_bounded(_: &mut TypeCollector<'_>, bound: usize) -> TypeIdentifiers {
        TypeIdentifiers::same(Identifier::string8(wire_bound(bound)))
    }
}

impl CdrValue for WString {
    const MIN_ENCODED_LEN: usize = 4;
    const LENGTH_CODE: u8 = 5;

    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        e.write_len(self.0.len().saturating_mul(2))?;
        u16::encode_slice(&self.0, e)
    }

    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let len = d.read_count(1)?;
        if len % 2 != 0 {
            return Err(d.error(DecodeErrorKind::Text));
        }
        u16::decode_vec(&mut self.0, len / 2, d)
    }

    #[inline]
    fn initial() -> Self {
        Self(Vec::new())
    }

    #[inline]
    fn reset(&mut self) {
        self.0.clear();
    }

    #[inline]
    fn extend(extent: Extent) -> Extent {
        extent.unbounded()
    }

    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers {
        Self::describe_bounded(types, 0)
    }
}

/// The bound of a wide string counts code units.
impl HasLength for WString {
    #[inline]
    fn length(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn extend_bounded(extent: Extent, bound: usize) -> Extent {
        extent.add(4, 4).add(1, bound.saturating_mul(2))
    }

    fn describe_bounded(_: &mut TypeCollector<'_>, bound: usize) -> TypeIdentifiers {
        TypeIdentifiers::same(Identifier::string16(wire_bound(bound)))
    }
}
