//! CDR encoder: position, alignment and byte order over a [`Sink`] (XTypes 1.3 §7.4.3).

use crate::sink::CountSink;
use crate::{CdrValue, EncodeError, Endianness, Representation, Sink};

/// Maximum nesting depth of sequences, maps and boxes, at encoding and decoding.
pub const MAX_DEPTH: u8 = 64;

/// Members of a type that are encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All members: a data sample.
    Sample,
    /// Key members in the order and with the headers of the type: a key-only payload.
    Key,
    /// Key members by ascending id, with every type as final: input of the key hash.
    KeyHash,
    /// Key members of a data sample, for decoding only. Reading ends after the last key member of
    /// the outermost type.
    KeyOfSample,
}

/// Encoder of one representation and byte order. It aligns primitives.
pub struct Encoder<S> {
    sink: S,
    position: usize,
    origin: usize,
    representation: Representation,
    endianness: Endianness,
    scope: Scope,
    depth: u8,
}

/// Content that can be encoded into any sink: a closure that is generic over the sink.
pub(crate) trait Content {
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError>;
}

/// Complete value as content.
pub(crate) struct Value<'a, T>(pub &'a T);

impl<T: CdrValue> Content for Value<'_, T> {
    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        self.0.encode(e)
    }
}

impl<S: Sink> Encoder<S> {
    #[inline]
    pub(crate) fn new(sink: S, representation: Representation, endianness: Endianness, scope: Scope) -> Self {
        Self { sink, position: 0, origin: 0, representation, endianness, scope, depth: 0 }
    }

    /// Returns the encoding version.
    #[inline]
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Returns the byte order.
    #[inline]
    pub fn endianness(&self) -> Endianness {
        self.endianness
    }

    /// Returns the scope: the members that are encoded.
    #[inline]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns the number of bytes written so far, padding included.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    #[inline]
    pub(crate) fn into_sink(self) -> S {
        self.sink
    }

    /// Pads to a multiple of `alignment` (a power of two), capped at the maximum alignment of the
    /// representation.
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), EncodeError> {
        let mask = alignment.min(self.representation.max_alignment()) - 1;
        let len = self.origin.wrapping_sub(self.position) & mask;
        if len != 0 {
            self.sink.pad(self.position, len)?;
            self.position += len;
        }
        Ok(())
    }

    /// Writes a primitive of `N` bytes, given in both byte orders, at its natural alignment.
    #[inline]
    pub fn write_primitive<const N: usize>(&mut self, little: [u8; N], big: [u8; N]) -> Result<(), EncodeError> {
        self.align(N)?;
        let bytes = match self.endianness {
            Endianness::Little => little,
            Endianness::Big => big,
        };
        self.write_bytes(&bytes)
    }

    /// Writes `u32` at its natural alignment.
    #[inline]
    pub fn write_u32(&mut self, value: u32) -> Result<(), EncodeError> {
        self.write_primitive(value.to_le_bytes(), value.to_be_bytes())
    }

    #[inline]
    pub(crate) fn write_u16(&mut self, value: u16) -> Result<(), EncodeError> {
        self.write_primitive(value.to_le_bytes(), value.to_be_bytes())
    }

    /// Writes a length or count as `u32`.
    #[inline]
    pub(crate) fn write_len(&mut self, len: usize) -> Result<(), EncodeError> {
        self.write_u32(wire_len(len)?)
    }

    /// Writes bytes without alignment.
    #[inline]
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.sink.write(self.position, bytes)?;
        self.position += bytes.len();
        Ok(())
    }

    /// Writes a sequence of primitives of `N` bytes. An empty sequence does not align
    /// (XTypes 1.3 §7.4.3.5).
    #[inline]
    pub(crate) fn write_primitives<T: Copy, const N: usize>(
        &mut self,
        values: &[T],
        little: impl Fn(T) -> [u8; N],
        big: impl Fn(T) -> [u8; N],
    ) -> Result<(), EncodeError> {
        if values.is_empty() {
            return Ok(());
        }
        self.align(N)?;
        match self.endianness {
            Endianness::Little => self.sink.write_all(self.position, values, little)?,
            Endianness::Big => self.sink.write_all(self.position, values, big)?,
        }
        self.position += values.len() * N;
        Ok(())
    }

    /// Writes content after its length in bytes: a DHEADER, or a NEXTINT (XTypes 1.3 §7.4.3.4).
    #[inline]
    pub(crate) fn delimited(&mut self, content: &impl Content) -> Result<(), EncodeError> {
        if !S::PATCHES {
            let len = self.measure(content)?;
            self.write_len(len)?;
            return content.encode(self);
        }
        self.write_u32(0)?;
        let start = self.position;
        content.encode(self)?;
        let len = wire_len(self.position - start)?;
        let bytes = match self.endianness {
            Endianness::Little => len.to_le_bytes(),
            Endianness::Big => len.to_be_bytes(),
        };
        self.sink.patch(start - 4, bytes);
        Ok(())
    }

    /// Returns the length of content at a new origin. In XCDR2, where the maximum alignment is 4,
    /// that is also its length after a 4-byte header.
    #[inline]
    pub(crate) fn measure(&self, content: &impl Content) -> Result<usize, EncodeError> {
        let mut e = Encoder::new(CountSink, self.representation, self.endianness, self.scope);
        e.depth = self.depth;
        content.encode(&mut e)?;
        Ok(e.position)
    }

    /// Encodes content with alignment relative to the current position (XCDR1 parameters). `len` is
    /// its measured length.
    #[inline]
    pub(crate) fn with_origin(&mut self, len: usize, content: &impl Content) -> Result<(), EncodeError> {
        if S::COUNTS_ONLY {
            self.position += len;
            return Ok(());
        }
        let outer = core::mem::replace(&mut self.origin, self.position);
        content.encode(self)?;
        self.origin = outer;
        Ok(())
    }

    /// Encodes content one nesting level deeper.
    #[inline]
    pub(crate) fn nested(&mut self, content: &impl Content) -> Result<(), EncodeError> {
        if self.depth >= MAX_DEPTH {
            return Err(EncodeError::TooDeep);
        }
        self.depth += 1;
        content.encode(self)?;
        self.depth -= 1;
        Ok(())
    }
}

#[inline]
pub(crate) fn wire_len(len: usize) -> Result<u32, EncodeError> {
    u32::try_from(len).map_err(|_| EncodeError::TooLong { len })
}
