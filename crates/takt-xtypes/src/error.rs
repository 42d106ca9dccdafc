//! What can go wrong: [`EncodeError`] is the caller's or a limit's, [`DecodeError`] is bad bytes.

use core::fmt;

/// Why a value could not be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The destination has `capacity` bytes for the body; at least `needed` are needed.
    BufferTooSmall {
        /// Bytes the encoder would have filled so far.
        needed: usize,
        /// Bytes it was given.
        capacity: usize,
    },
    /// A string, sequence or map is longer than its declared bound.
    BoundExceeded {
        /// The declared bound.
        bound: usize,
        /// The length found.
        len: usize,
    },
    /// A length does not fit the 32 bits it has on the wire.
    TooLong {
        /// The length found.
        len: usize,
    },
    /// A value of a type known at run time is not what the type wants.
    Mismatch {
        /// What it wants.
        expected: &'static str,
    },
    /// A member that is not optional has no value.
    MissingMember {
        /// Its member id.
        id: u32,
    },
    /// The value nests deeper than [`MAX_DEPTH`](crate::MAX_DEPTH), so no reader would accept it.
    TooDeep,
    /// A string has a NUL within. On the wire a string ends in NUL, so readers in C and C++ would lose the rest.
    Nul {
        /// Octets before it.
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
                write!(f, "string has a NUL at octet {at}, where readers in C and C++ would cut it off")
            }
        }
    }
}

impl core::error::Error for EncodeError {}

/// Bytes that are not a value of the type: where, and what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Octets from the start of the body (behind the encapsulation header) to where decoding stopped.
    pub offset: usize,
    /// What is wrong there.
    pub kind: DecodeErrorKind,
}

/// What is wrong with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The payload, or the delimited part of it, ends inside a value.
    EndOfInput,
    /// The encapsulation identifier is unknown or is none the type can have.
    Encapsulation {
        /// The identifier found.
        identifier: u16,
    },
    /// A count promises more elements than the remaining bytes can hold.
    Count {
        /// The count found.
        count: u32,
    },
    /// The elements would take more memory than a payload of this size may cause.
    MemoryLimit,
    /// A string, sequence or map is longer than its declared bound.
    Bound {
        /// The declared bound.
        bound: usize,
        /// The length found.
        len: usize,
    },
    /// A string does not end in NUL.
    Unterminated,
    /// A string has a NUL within.
    Nul,
    /// A string is not UTF-8, or a wide string has an odd number of bytes.
    Text,
    /// A value that is none of the enumeration's.
    EnumValue {
        /// The value found.
        value: i64,
    },
    /// A discriminator for which the union has no case.
    Discriminator,
    /// A parameter or member header that is not well-formed, or is not the expected one.
    Header,
    /// A delimited collection has bytes behind its last element.
    Excess,
    /// A member that this type does not know and that must be understood.
    MustUnderstand {
        /// Its member id.
        id: u32,
    },
    /// A key member is not there.
    MissingKey {
        /// Its member id.
        id: u32,
    },
    /// A structure has more parameters than its members explain.
    TooManyParameters,
    /// Nested deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    TooDeep,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.offset)?;
        match self.kind {
            DecodeErrorKind::EndOfInput => write!(f, "input ends inside a value"),
            DecodeErrorKind::Encapsulation { identifier } => {
                write!(f, "encapsulation {identifier:#06x} does not suit the type")
            }
            DecodeErrorKind::Count { count } => write!(f, "{count} elements do not fit the remaining bytes"),
            DecodeErrorKind::MemoryLimit => write!(f, "elements need too much memory for a payload of this size"),
            DecodeErrorKind::Bound { bound, len } => write!(f, "length {len} exceeds the bound {bound}"),
            DecodeErrorKind::Unterminated => write!(f, "string does not end in NUL"),
            DecodeErrorKind::Nul => write!(f, "string has a NUL within"),
            DecodeErrorKind::Text => write!(f, "string is not valid text"),
            DecodeErrorKind::EnumValue { value } => write!(f, "no enumerator has the value {value}"),
            DecodeErrorKind::Discriminator => write!(f, "the union has no case for this discriminator"),
            DecodeErrorKind::Header => write!(f, "malformed member header"),
            DecodeErrorKind::Excess => write!(f, "bytes behind the last element of a delimited collection"),
            DecodeErrorKind::TooManyParameters => f.write_str("more parameters than members explain"),
            DecodeErrorKind::MustUnderstand { id } => write!(f, "unknown member {id} must be understood"),
            DecodeErrorKind::MissingKey { id } => write!(f, "key member {id} is missing"),
            DecodeErrorKind::TooDeep => write!(f, "nested deeper than {} levels", crate::MAX_DEPTH),
        }
    }
}

impl core::error::Error for DecodeError {}
