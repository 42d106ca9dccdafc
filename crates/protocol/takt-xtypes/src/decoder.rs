//! CDR decoder: a bounds-checked cursor with alignment, byte order, nested limits and a memory
//! budget.

use crate::{DecodeError, DecodeErrorKind, Endianness, MAX_DEPTH, Representation, Scope};

/// Memory for elements in addition to [`MEMORY_FACTOR`] times the payload, in bytes.
const MEMORY_FLOOR: usize = 64 * 1024;
/// Bytes of element memory per byte of payload.
const MEMORY_FACTOR: usize = 64;

/// Decoder of one representation and byte order. It aligns primitives and never reads beyond its
/// limit.
#[derive(Clone)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    limit: usize,
    position: usize,
    origin: usize,
    representation: Representation,
    endianness: Endianness,
    scope: Scope,
    depth: u8,
    memory: usize,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8], representation: Representation, endianness: Endianness, scope: Scope) -> Self {
        Self {
            bytes,
            limit: bytes.len(),
            position: 0,
            origin: 0,
            representation,
            endianness,
            scope,
            depth: 0,
            memory: MEMORY_FLOOR.saturating_add(bytes.len().saturating_mul(MEMORY_FACTOR)),
        }
    }

    /// Returns the encoding version of the payload.
    #[inline]
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Returns the byte order of the payload.
    #[inline]
    pub fn endianness(&self) -> Endianness {
        self.endianness
    }

    /// Returns the scope: the members that are decoded.
    #[inline]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Reports whether only the key members of the current type of a data sample are needed. Nested
    /// types are then read completely, since the members that follow come after them.
    #[inline]
    pub(crate) fn takes_key_of_sample(&mut self) -> bool {
        let takes = self.scope == Scope::KeyOfSample;
        if takes {
            self.scope = Scope::Sample;
        }
        takes
    }

    /// Returns the number of octets read so far, padding included.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the number of octets up to the innermost limit.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.limit - self.position
    }

    /// Returns an error at the current position.
    #[cold]
    pub fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { offset: self.position, kind }
    }

    /// Skips to a multiple of `alignment` (a power of two), capped at the maximum alignment of the
    /// representation.
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), DecodeError> {
        let mask = alignment.min(self.representation.max_alignment()) - 1;
        let len = self.origin.wrapping_sub(self.position) & mask;
        if len > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfInput));
        }
        self.position += len;
        Ok(())
    }

    /// Takes bytes without alignment.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        if len > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfInput));
        }
        let bytes = &self.bytes[self.position..self.position + len];
        self.position += len;
        Ok(bytes)
    }

    /// Reads the bytes of a primitive at its natural alignment.
    #[inline]
    pub fn read_primitive<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.align(N)?;
        match self.take(N)?.first_chunk() {
            Some(bytes) => Ok(*bytes),
            None => Err(self.error(DecodeErrorKind::EndOfInput)),
        }
    }

    /// Reads `u32` at its natural alignment.
    #[inline]
    pub fn read_u32(&mut self) -> Result<u32, DecodeError> {
        let bytes = self.read_primitive()?;
        Ok(match self.endianness {
            Endianness::Little => u32::from_le_bytes(bytes),
            Endianness::Big => u32::from_be_bytes(bytes),
        })
    }

    /// Reads `u32` without advancing.
    #[inline]
    pub(crate) fn peek_u32(&mut self) -> Result<u32, DecodeError> {
        let value = self.read_u32()?;
        self.position -= 4;
        Ok(value)
    }

    #[inline]
    pub(crate) fn read_u16(&mut self) -> Result<u16, DecodeError> {
        let bytes = self.read_primitive()?;
        Ok(match self.endianness {
            Endianness::Little => u16::from_le_bytes(bytes),
            Endianness::Big => u16::from_be_bytes(bytes),
        })
    }

    /// Takes the bytes of `count` primitives of `N` bytes. A count of zero does not align.
    #[inline]
    pub(crate) fn take_primitives<const N: usize>(&mut self, count: usize) -> Result<&'a [[u8; N]], DecodeError> {
        if count == 0 {
            return Ok(&[]);
        }
        self.align(N)?;
        match count.checked_mul(N) {
            Some(len) => Ok(self.take(len)?.as_chunks().0),
            None => Err(self.error(DecodeErrorKind::EndOfInput)),
        }
    }

    /// Reads an element count and checks it against the remaining bytes, before any memory is
    /// reserved.
    #[inline]
    pub(crate) fn read_count(&mut self, min_element_len: usize) -> Result<usize, DecodeError> {
        let count = self.read_u32()?;
        // In a key, elements may be shorter than in a sample: they have their key members alone.
        let min_element_len = if self.scope == Scope::Sample { min_element_len } else { 1 };
        match usize::try_from(count) {
            Ok(len) if len <= self.remaining() / min_element_len => Ok(len),
            _ => Err(self.error(DecodeErrorKind::Count { count })),
        }
    }

    /// Charges the memory of `count` elements of `size` bytes to the budget before they are
    /// allocated.
    #[inline]
    pub(crate) fn charge(&mut self, count: usize, size: usize) -> Result<(), DecodeError> {
        match count.checked_mul(size).and_then(|bytes| self.memory.checked_sub(bytes)) {
            Some(left) => {
                self.memory = left;
                Ok(())
            }
            None => Err(self.error(DecodeErrorKind::MemoryLimit)),
        }
    }

    /// Replaces the memory budget for elements.
    pub(crate) fn set_memory(&mut self, bytes: usize) {
        self.memory = bytes;
    }

    /// Runs `read` on the next `len` bytes, then advances past them, including unread bytes.
    #[inline]
    pub(crate) fn within<R>(
        &mut self,
        len: usize,
        read: impl FnOnce(&mut Self) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        if len > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfInput));
        }
        let end = self.position + len;
        let outer = core::mem::replace(&mut self.limit, end);
        let result = read(self)?;
        self.limit = outer;
        self.position = end;
        Ok(result)
    }

    /// Runs `read` within the length of a DHEADER.
    #[inline]
    pub(crate) fn delimited<R>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        let len = self.read_u32()? as usize;
        self.within(len, read)
    }

    /// Runs `read` within `len` bytes, with alignment relative to the current position (XCDR1
    /// parameters).
    #[inline]
    pub(crate) fn with_origin<R>(
        &mut self,
        len: usize,
        read: impl FnOnce(&mut Self) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        let outer = core::mem::replace(&mut self.origin, self.position);
        let result = self.within(len, read)?;
        self.origin = outer;
        Ok(result)
    }

    /// Limits the decoder to the next `len` bytes permanently.
    pub(crate) fn enter(&mut self, len: usize) -> Result<(), DecodeError> {
        if len > self.remaining() {
            return Err(self.error(DecodeErrorKind::EndOfInput));
        }
        self.limit = self.position + len;
        Ok(())
    }

    /// Limits the decoder to the length of a DHEADER permanently; see [`enter`](Self::enter).
    pub(crate) fn enter_delimited(&mut self) -> Result<(), DecodeError> {
        let len = self.read_u32()? as usize;
        self.enter(len)
    }

    /// Limits the decoder permanently, with alignment relative to the current position (XCDR1
    /// parameters); see [`enter`](Self::enter).
    pub(crate) fn enter_parameter(&mut self, len: usize) -> Result<(), DecodeError> {
        self.origin = self.position;
        self.enter(len)
    }

    /// Runs `read` one nesting level deeper.
    #[inline]
    pub(crate) fn nested<R>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(DecodeErrorKind::TooDeep));
        }
        self.depth += 1;
        let result = read(self)?;
        self.depth -= 1;
        Ok(result)
    }
}
