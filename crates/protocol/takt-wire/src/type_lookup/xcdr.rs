//! Subset of XCDR2 for the messages of the TypeLookup service: delimiters, and members with headers
//! (XTypes 1.3 §7.4.3).
//!
//! No value here is aligned to more than four octets, and each delimited part begins at a multiple
//! of four. Alignment within a part therefore equals alignment within the message.

use alloc::vec::Vec;

use crate::cursor::{Cursor, Endianness, padding};
use crate::error::Malformed;

/// Representation identifiers of plain XCDR2 (XTypes 1.3 §7.6.3.1).
const PLAIN_CDR2_BE: u16 = 0x0006;
const PLAIN_CDR2_LE: u16 = 0x0007;
const ENCAPSULATION_LEN: usize = 4;

/// Returns a cursor after the encapsulation header of a payload in plain XCDR2.
pub(super) fn decapsulate(payload: &[u8]) -> Result<Cursor<'_>, Malformed> {
    let mut header = Cursor::new(payload, Endianness::Big);
    let at = header.malformed("type lookup message is not in plain XCDR2");
    let endianness = match header.u16()? {
        PLAIN_CDR2_BE => Endianness::Big,
        PLAIN_CDR2_LE => Endianness::Little,
        _ => return Err(at),
    };
    header.skip(2)?;
    Ok(Cursor::with_base(header.rest(), endianness, ENCAPSULATION_LEN))
}

/// Splits off a part of `len` octets.
fn part<'a>(cursor: &mut Cursor<'a>, len: usize) -> Result<Cursor<'a>, Malformed> {
    let base = cursor.offset();
    Ok(Cursor::with_base(cursor.bytes(len)?, cursor.endianness(), base))
}

/// Reads an aligned length.
fn length(cursor: &mut Cursor<'_>) -> Result<usize, Malformed> {
    cursor.align(4)?;
    cursor.count(1)
}

/// Returns the content after a delimiter (DHEADER).
pub(super) fn delimited<'a>(cursor: &mut Cursor<'a>) -> Result<Cursor<'a>, Malformed> {
    let len = length(cursor)?;
    part(cursor, len)
}

/// Reads a sequence of elements that are not primitive. Returns the number of elements and a cursor
/// over them.
pub(super) fn sequence<'a>(cursor: &mut Cursor<'a>, element_len_min: usize) -> Result<(usize, Cursor<'a>), Malformed> {
    let mut content = delimited(cursor)?;
    let count = content.count(element_len_min)?;
    Ok((count, content))
}

/// Returns the id and value of the next member of a mutable structure. `None` at the end.
pub(super) fn next_member<'a>(cursor: &mut Cursor<'a>) -> Result<Option<(u32, Cursor<'a>)>, Malformed> {
    cursor
        .align(4)
        .or_else(|error| if cursor.remaining() < 4 { cursor.skip(cursor.remaining()) } else { Err(error) })?;
    if cursor.is_empty() {
        return Ok(None);
    }
    let header = cursor.u32()?;
    let id = header & 0x0fff_ffff;
    let value = match (header >> 28) & 0b111 {
        code @ 0..=3 => part(cursor, 1 << code)?,
        4 => delimited(cursor)?,
        code => {
            // The length is also the first word of the value.
            let mut peek = *cursor;
            let unit = [1, 4, 8][code as usize - 5];
            let count = usize::try_from(peek.u32()?).unwrap_or(usize::MAX);
            let at = cursor.malformed("member is longer than its structure");
            let len = count.checked_mul(unit).and_then(|len| len.checked_add(4)).ok_or(at)?;
            part(cursor, len)?
        }
    };
    Ok(Some((id, value)))
}

/// Payload under construction, little endian.
pub(super) struct Output(Vec<u8>);

impl Output {
    pub(super) fn new() -> Self {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(&PLAIN_CDR2_LE.to_be_bytes());
        bytes.extend_from_slice(&[0, 0]);
        Self(bytes)
    }

    /// The encapsulation header takes four octets, so alignment may include it.
    pub(super) fn align(&mut self) {
        let padding = padding(self.0.len(), 4);
        self.0.resize(self.0.len() + padding, 0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.align();
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn string(&mut self, text: &str) {
        self.u32(text.len() as u32 + 1);
        self.bytes(text.as_bytes());
        self.0.push(0);
    }

    /// Appends a word that [`set`](Self::set) fills in later.
    pub(super) fn reserve(&mut self) -> usize {
        self.u32(0);
        self.0.len() - 4
    }

    pub(super) fn set(&mut self, position: usize, value: u32) {
        self.0[position..position + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Fills in the length of the octets written since the word at `position`.
    pub(super) fn close(&mut self, position: usize) {
        let len = self.0.len() - position - 4;
        self.set(position, len as u32);
    }

    /// Appends the output of `content` with its delimiter.
    pub(super) fn delimited(&mut self, content: impl FnOnce(&mut Self)) {
        let position = self.reserve();
        content(self);
        self.close(position);
    }

    /// Appends a member of a mutable structure. The word after its header holds its length.
    pub(super) fn member(&mut self, id: u32, value: impl FnOnce(&mut Self)) {
        self.u32(4 << 28 | id);
        self.delimited(value);
    }

    /// Returns the octets without the encapsulation header.
    pub(super) fn into_value(mut self) -> Vec<u8> {
        self.0.drain(..ENCAPSULATION_LEN);
        self.0
    }

    /// Returns the payload, padded to whole words. The options of the header hold the padding
    /// length (XTypes 1.3 §7.6.3.1.2).
    pub(super) fn finish(mut self) -> Vec<u8> {
        let padding = padding(self.0.len(), 4);
        self.align();
        self.0[3] = padding as u8;
        self.0
    }
}
