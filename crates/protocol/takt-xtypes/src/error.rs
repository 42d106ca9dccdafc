//! Errors of encoding and decoding. [`EncodeError`] is caused by the caller or a limit,
//! [`DecodeError`] by malformed bytes.

use core::fmt;

/// Reason why a value cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer has `capacity` bytes for the body; at least `needed` are required.
    BufferTooSmall {
        /// Bytes that the encoder has needed so far.
        needed: usize,
        /// Bytes of the buffer.
        capacity: usize,
    },
    /// A string, sequence or map exceeds its declared bound.
    BoundExceeded {
        /// Declared bound.
        bound: usize,
        /// Length of the value.
        len: usize,
    },
    /// A length exceeds its 32 bits on the wire.
    TooLong {
        /// Length of the value.
        len: usize,
    },
    /// A value does not match its dynamic type.
    Mismatch {
        /// Expected kind of value.
        expected: &'static str,
    },
    /// A member that is not optional has no value.
    MissingMember {
        /// Member id.
        id: u32,
    },
    /// The value nests deeper than [`MAX_DEPTH`](crate::MAX_DEPTH). No reader would accept it.
    TooDeep,
    /// A string contains a NUL. CDR strings end in NUL, so C and C++ readers would lose the rest.
    Nul {
        /// Octets before the NUL.
        at: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BufferTooSmall { needed, capacity } => {
                write!(f, "buffer of {capacity} bytes is too small, at least {needed} are needed")
            }
            Self::BoundExceeded { bound, len } => write!(f, "length {len} exceeds the bound {bound}"),
            Self::Mismatch { expected } => write!(f, "the value is not {expected}"),
            Self::MissingMember { id } => write!(f, "member {id} has no value"),
            Self::TooLong { len } => write!(f, "length {len} does not fit 32 bits"),
            Self::TooDeep => write!(f, "value nests deeper than {} levels", crate::MAX_DEPTH),
            Self::Nul { at } => {
                write!(f, "string has a NUL at octet {at}: readers in C and C++ would truncate it")
            }
        }
    }
}

impl core::error::Error for EncodeError {}

/// Position and kind of a decoding error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Octets from the start of the body (after the encapsulation header) to the position of the
    /// error.
    pub offset: usize,
    /// Kind of error.
    pub kind: DecodeErrorKind,
}

/// Kind of a decoding error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The payload, or its delimited part, ends within a value.
    EndOfInput,
    /// The encapsulation identifier is unknown, or invalid for the type.
    Encapsulation {
        /// Received identifier.
        identifier: u16,
    },
    /// A count exceeds the elements that the remaining bytes can hold.
    Count {
        /// Received count.
        count: u32,
    },
    /// The elements would exceed the memory limit for a payload of this size.
    MemoryLimit,
    /// A string, sequence or map exceeds its declared bound.
    Bound {
        /// Declared bound.
        bound: usize,
        /// Received length.
        len: usize,
    },
    /// A string does not end in NUL.
    Unterminated,
    /// A string contains a NUL before its end.
    Nul,
    /// A string is not UTF-8, or a wide string has an odd number of bytes.
    Text,
    /// A value is not a literal of the enumeration.
    EnumValue {
        /// Received value.
        value: i64,
    },
    /// The union has no case for a discriminator.
    Discriminator,
    /// A parameter or member header is malformed or unexpected.
    Header,
    /// A delimited collection has bytes after its last element.
    Excess,
    /// An unknown member must be understood.
    MustUnderstand {
        /// Member id.
        id: u32,
    },
    /// A key member is missing.
    MissingKey {
        /// Member id.
        id: u32,
    },
    /// A structure has more parameters than its members can account for.
    TooManyParameters,
    /// A value nests deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    TooDeep,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.offset)?;
        match self.kind {
            DecodeErrorKind::EndOfInput => write!(f, "input is truncated inside a value"),
            DecodeErrorKind::Encapsulation { identifier } => {
                write!(f, "encapsulation {identifier:#06x} does not match the type")
            }
            DecodeErrorKind::Count { count } => write!(f, "{count} elements do not fit the remaining bytes"),
            DecodeErrorKind::MemoryLimit => write!(f, "elements need too much memory for a payload of this size"),
            DecodeErrorKind::Bound { bound, len } => write!(f, "length {len} exceeds the bound {bound}"),
            DecodeErrorKind::Unterminated => write!(f, "string does not end in NUL"),
            DecodeErrorKind::Nul => write!(f, "string contains a NUL"),
            DecodeErrorKind::Text => write!(f, "string is not valid UTF-8 or UTF-16"),
            DecodeErrorKind::EnumValue { value } => write!(f, "no enumerator has the value {value}"),
            DecodeErrorKind::Discriminator => write!(f, "the union has no case for this discriminator"),
            DecodeErrorKind::Header => write!(f, "malformed member header"),
            DecodeErrorKind::Excess => write!(f, "bytes after the last element of a delimited collection"),
            DecodeErrorKind::TooManyParameters => f.write_str("more parameters than the members require"),
            DecodeErrorKind::MustUnderstand { id } => write!(f, "unknown member {id} must be understood"),
            DecodeErrorKind::MissingKey { id } => write!(f, "key member {id} is missing"),
            DecodeErrorKind::TooDeep => write!(f, "nested deeper than {} levels", crate::MAX_DEPTH),
        }
    }
}

impl core::error::Error for DecodeError {}
