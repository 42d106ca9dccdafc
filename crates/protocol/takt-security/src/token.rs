//! Tokens: class id, properties and binary properties (DDS-SEC 1.1 §7.2.3, `DataHolder`).
//!
//! Every token of DDS Security is a `DataHolder`: identity, permissions, handshake and key tokens.
//! A token that was received borrows the octets of its message. Limits: [`PROPERTIES_MAX`],
//! [`TEXT_LEN_MAX`]; a list of tokens has at most [`TOKENS_MAX`].

use std::borrow::Cow;

use takt_wire::discovery::EncodedToken;
use takt_wire::{Cursor, Endianness};

use crate::cdr::CdrWriter;
use crate::error::{ErrorKind, Result, SecurityError};

/// Maximum number of properties of one kind in one token.
pub const PROPERTIES_MAX: usize = 16;
/// Maximum length in octets of a class id, of a property name, and of the value of a text property.
pub const TEXT_LEN_MAX: usize = 1_024;
/// Maximum number of tokens in one message. Key tokens of an endpoint need two.
pub const TOKENS_MAX: usize = 8;

/// Token that borrows the octets from which it was parsed, or the values that it will serialize.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token<'a> {
    /// Plugin, version and kind, for instance `DDS:Auth:PKI-DH:1.0+Req`.
    pub class_id: Cow<'a, str>,
    /// Properties whose values are text.
    pub properties: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Properties whose values are octets.
    pub binary_properties: Vec<(Cow<'a, str>, Cow<'a, [u8]>)>,
}

impl<'a> Token<'a> {
    /// Creates a token without properties.
    pub fn new(class_id: impl Into<Cow<'a, str>>) -> Self {
        Self { class_id: class_id.into(), ..Self::default() }
    }

    /// Adds a property whose value is text.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: impl Into<Cow<'a, str>>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// Adds a property whose value is octets.
    #[must_use]
    pub fn with_octets(mut self, name: &'a str, value: impl Into<Cow<'a, [u8]>>) -> Self {
        self.binary_properties.push((name.into(), value.into()));
        self
    }

    /// Returns the value of a text property.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_ref())
    }

    /// Returns the value of a binary property.
    pub fn octets(&self, name: &str) -> Option<&[u8]> {
        self.binary_properties.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_ref())
    }

    /// Reads a token at the cursor.
    ///
    /// # Errors
    /// The octets end early, or a limit of this module is exceeded.
    pub fn parse(cursor: &mut Cursor<'a>) -> Result<Self> {
        let class_id = text(cursor)?.into();
        let mut token = Self { class_id, ..Self::default() };
        for _ in 0..property_count(cursor)? {
            let name = text(cursor)?.into();
            token.properties.push((name, text(cursor)?.into()));
        }
        for _ in 0..property_count(cursor)? {
            let name = text(cursor)?.into();
            token.binary_properties.push((name, octet_sequence(cursor)?.into()));
        }
        Ok(token)
    }

    /// Serializes the token into new octets, as the value of a parameter.
    pub fn to_octets(&self, endianness: Endianness) -> Vec<u8> {
        let mut writer = CdrWriter::new(endianness);
        self.write(&mut writer);
        writer.align(4);
        writer.into_octets()
    }

    pub(crate) fn write(&self, writer: &mut CdrWriter) {
        writer.string(&self.class_id);
        writer.count(self.properties.len());
        for (name, value) in &self.properties {
            writer.string(name);
            writer.string(value);
        }
        write_binary_properties(writer, self.binary_properties.iter().map(|(name, value)| (&**name, &**value)));
    }
}

impl From<Token<'_>> for EncodedToken {
    fn from(token: Token<'_>) -> Self {
        Self { endianness: Endianness::Little, octets: token.to_octets(Endianness::Little) }
    }
}

/// Writes a `BinaryPropertySeq`: the form over which handshake hashes and signatures are computed.
pub(crate) fn write_binary_properties<'a>(
    writer: &mut CdrWriter,
    properties: impl ExactSizeIterator<Item = (&'a str, &'a [u8])>,
) {
    writer.count(properties.len());
    for (name, value) in properties {
        writer.string(name);
        writer.octet_sequence(value);
    }
}

fn aligned_count(cursor: &mut Cursor<'_>, element_len_min: usize) -> Result<usize> {
    cursor.align(4)?;
    Ok(cursor.count(element_len_min)?)
}

fn property_count(cursor: &mut Cursor<'_>) -> Result<usize> {
    // A name occupies at least its length and a NUL, a value at least its length.
    bounded("properties of a token", aligned_count(cursor, 9)?, PROPERTIES_MAX)
}

/// Reads the number of tokens in a list.
pub(crate) fn token_count(cursor: &mut Cursor<'_>) -> Result<usize> {
    bounded("tokens of a message", aligned_count(cursor, 13)?, TOKENS_MAX)
}

fn octet_sequence<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let len = aligned_count(cursor, 1)?;
    Ok(cursor.bytes(len)?)
}

/// Reads a string.
///
/// INTEROP(CycloneDDS 0.10): an absent token is sent as a token with an empty class id, whose
/// string may have length zero.
pub(crate) fn text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str> {
    let mut lookahead = *cursor;
    lookahead.align(4)?;
    if lookahead.u32()? == 0 {
        *cursor = lookahead;
        return Ok("");
    }
    let text = cursor.string()?;
    bounded("octets of a text in a token", text.len(), TEXT_LEN_MAX)?;
    Ok(text)
}

fn bounded(what: &str, found: usize, limit: usize) -> Result<usize> {
    if found > limit {
        return Err(SecurityError::new(ErrorKind::Limit, format!("{what}: {found}, at most {limit}")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Token<'static> {
        Token::new("DDS:Auth:PKI-DH:1.0")
            .with("dds.cert.sn", "CN=a")
            .with("dds.cert.algo", "EC-prime256v1")
            .with_octets("x", &b"123"[..])
            .with_octets("", &b""[..])
    }

    #[test]
    fn token_round_trips_in_both_byte_orders_and_every_prefix_fails() {
        for endianness in [Endianness::Big, Endianness::Little] {
            let octets = example().to_octets(endianness);
            assert_eq!(Token::parse(&mut Cursor::new(&octets, endianness)), Ok(example()));
            for len in 0..octets.len() {
                assert!(Token::parse(&mut Cursor::new(&octets[..len], endianness)).is_err(), "{len}");
            }
        }
    }

    #[test]
    fn token_without_properties_has_eight_octets_after_its_class() {
        let octets = Token::new("abc").to_octets(Endianness::Big);
        assert_eq!(octets, [0, 0, 0, 4, b'a', b'b', b'c', 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let nil = [0; 12];
        assert_eq!(Token::parse(&mut Cursor::new(&nil, Endianness::Big)), Ok(Token::new("")));
    }

    #[test]
    fn excessive_counts_are_refused_before_allocation() {
        let mut octets = Token::new("abc").to_octets(Endianness::Big);
        octets[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(
            Token::parse(&mut Cursor::new(&octets, Endianness::Big)).expect_err("short").kind(),
            ErrorKind::Malformed
        );
        let mut many = Token::new("abc");
        many.properties = vec![("n".into(), "v".into()); PROPERTIES_MAX + 1];
        let octets = many.to_octets(Endianness::Big);
        let error = Token::parse(&mut Cursor::new(&octets, Endianness::Big)).expect_err("too many");
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Limit, "properties of a token: 17, at most 16"));
        let long = "x".repeat(TEXT_LEN_MAX + 1);
        let octets = Token::new(long.as_str()).to_octets(Endianness::Big);
        assert_eq!(
            Token::parse(&mut Cursor::new(&octets, Endianness::Big)).expect_err("long").kind(),
            ErrorKind::Limit
        );
    }
}
