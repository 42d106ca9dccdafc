//! Messages of the TypeLookup service: requests for types by identifier, and replies
//! (XTypes 1.3 §7.6.3.3), in XCDR2 with the headers of DDS-RPC.
//!
//! Types stay serialized: a `TypeObject` is delimited but not parsed. Only identifiers that are
//! hashes are kept, since only those have an object. Parsing accepts either byte order and is
//! bounded by the input. Serialization is little endian.
//!
//! Messages in XCDR1 are not supported.

mod reply;
mod request;
#[cfg(test)]
mod tests;
mod xcdr;

pub use reply::{ReplyBody, TypeReply, TypesEmitter, dependencies_reply, failure_reply};
pub use request::{Addressee, Operation, TypeRequest};

use alloc::vec::Vec;
use core::fmt;

use crate::cursor::{Cursor, Endianness};
use crate::error::Malformed;
use crate::guid::Guid;

/// Maximum number of identifiers kept of one message; further ones are dropped.
pub const TYPE_IDS_MAX: usize = 512;

/// `REMOTE_EX_OK` of DDS-RPC.
pub const REMOTE_OK: i32 = 0;
/// `REMOTE_EX_UNKNOWN_OPERATION` of DDS-RPC.
pub const REMOTE_UNKNOWN_OPERATION: i32 = 4;

/// Hashes that identify the two operations on the wire.
mod operation {
    pub(super) const GET_TYPES: i32 = 0x0182_52d3;
    pub(super) const GET_DEPENDENCIES: i32 = 0x05aa_fb31;
}

/// Extensibility of the unions in the messages.
///
/// INTEROP(CycloneDDS 0.10.2): its unions are final, while XTypes does not specify the
/// extensibility and appendable is the default. A final union begins with the operation hash, which
/// is not a possible delimiter.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UnionForm {
    /// Appendable: a delimiter precedes the union.
    #[default]
    Appendable,
    /// Final: no delimiter.
    Final,
}

impl UnionForm {
    /// Returns the other form.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Appendable => Self::Final,
            Self::Final => Self::Appendable,
        }
    }

    /// Detects the form of the next union, which selects an operation.
    fn detect(cursor: &Cursor<'_>) -> Result<Self, Malformed> {
        let mut peek = *cursor;
        peek.align(4)?;
        let known = [operation::GET_TYPES, operation::GET_DEPENDENCIES].contains(&peek.i32()?);
        Ok(if known { Self::Final } else { Self::Appendable })
    }

    /// Returns a cursor over the content of a union.
    fn open<'a>(self, cursor: &mut Cursor<'a>) -> Result<Cursor<'a>, Malformed> {
        match self {
            Self::Appendable => xcdr::delimited(cursor),
            Self::Final => {
                cursor.align(4)?;
                Ok(Cursor::with_base(cursor.rest(), cursor.endianness(), cursor.offset()))
            }
        }
    }

    /// Begins a union. Returns the argument of [`close`](Self::close).
    fn begin(self, out: &mut xcdr::Output) -> Option<usize> {
        match self {
            Self::Appendable => Some(out.reserve()),
            Self::Final => None,
        }
    }

    fn close(position: Option<usize>, out: &mut xcdr::Output) {
        if let Some(position) = position {
            out.close(position);
        }
    }
}

/// Member ids, which are hashes of the member names.
mod member {
    pub(super) const TYPE_IDS: u32 = 0x0c53_6065;
    pub(super) const CONTINUATION_POINT: u32 = 0x0508_e3d2;
    pub(super) const TYPES: u32 = 0x0280_4ad1;
    pub(super) const COMPLETE_TO_MINIMAL: u32 = 0x0b8e_6577;
    pub(super) const DEPENDENT_TYPEIDS: u32 = 0x0ba4_dfc9;
}

/// Identifier of a type that has an object: the kind of equivalence and a hash of the object
/// (XTypes 1.3 §7.3.4). Mutually recursive types share a hash and have an index each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EquivalenceId {
    kind: u8,
    hash: [u8; 14],
    component: Option<Component>,
}

/// Index among mutually recursive types.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Component {
    length: i32,
    index: i32,
}

impl EquivalenceId {
    /// `EK_MINIMAL`: the object has the information for assignability.
    pub const MINIMAL: u8 = 0xf1;
    /// `EK_COMPLETE`: the object also has names and annotations.
    pub const COMPLETE: u8 = 0xf2;
    /// `TI_STRONGLY_CONNECTED_COMPONENT`.
    const STRONGLY_CONNECTED_COMPONENT: u8 = 0xb0;

    /// Returns the identifier of a type that is not recursive.
    #[must_use]
    pub const fn new(kind: u8, hash: [u8; 14]) -> Self {
        Self { kind, hash, component: None }
    }

    /// Returns [`Self::MINIMAL`] or [`Self::COMPLETE`].
    #[must_use]
    pub const fn kind(self) -> u8 {
        self.kind
    }

    /// Parses a `TypeIdentifier` in XCDR2, little endian; `None` if it is malformed or has no
    /// object.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::parse(&mut Cursor::new(bytes, Endianness::Little)).ok().flatten()
    }

    /// Serializes the `TypeIdentifier` in XCDR2, little endian.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = xcdr::Output::new();
        self.emit(&mut out);
        out.into_value()
    }

    /// Parses a `TypeIdentifier`; `None` if it has no object.
    fn parse(cursor: &mut Cursor<'_>) -> Result<Option<Self>, Malformed> {
        const LAST_PRIMITIVE: u8 = 0x11;
        let at = cursor.malformed("type identifier kind has no type object");
        match cursor.u8()? {
            kind @ (Self::MINIMAL | Self::COMPLETE) => Ok(Some(Self::new(kind, cursor.array()?))),
            Self::STRONGLY_CONNECTED_COMPONENT => {
                let mut content = xcdr::delimited(cursor)?;
                let (kind, hash) = (content.u8()?, content.array()?);
                content.align(4)?;
                let component = Some(Component { length: content.i32()?, index: content.i32()? });
                let known = matches!(kind, Self::MINIMAL | Self::COMPLETE);
                if known { Ok(Some(Self { kind, hash, component })) } else { Err(at) }
            }
            0..=LAST_PRIMITIVE => Ok(None),
            _ => Err(at),
        }
    }

    fn emit(self, out: &mut xcdr::Output) {
        let hash_id = |out: &mut xcdr::Output| {
            out.bytes(&[self.kind]);
            out.bytes(&self.hash);
        };
        let Some(Component { length, index }) = self.component else { return hash_id(out) };
        out.bytes(&[Self::STRONGLY_CONNECTED_COMPONENT]);
        out.delimited(|out| {
            hash_id(out);
            out.u32(length.cast_unsigned());
            out.u32(index.cast_unsigned());
        });
    }
}

impl fmt::Display for EquivalenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.kind)?;
        self.hash.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        self.component.map_or(Ok(()), |Component { length, index }| write!(f, " {index}/{length}"))
    }
}

impl fmt::Debug for EquivalenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `SampleIdentity` of DDS-RPC: the identity of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId {
    /// Writer of the request.
    pub writer: Guid,
    /// Sequence number of the request.
    pub number: i64,
}

impl RequestId {
    fn parse(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let writer = Guid::from_bytes(cursor.array()?);
        let (high, low) = (cursor.i32()?, cursor.u32()?);
        Ok(Self { writer, number: (i64::from(high) << 32) | i64::from(low) })
    }

    fn emit(self, out: &mut xcdr::Output) {
        out.bytes(&self.writer.to_bytes());
        out.u32((self.number >> 32) as u32);
        out.u32(self.number as u32);
    }
}

/// Position at which a list of dependencies continues (`continuation_point`): at most 32 octets
/// that only the server interprets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ContinuationPoint {
    octets: [u8; 32],
    len: usize,
}

impl ContinuationPoint {
    /// Returns the continuation point with these octets; `None` if there are too many.
    #[must_use]
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut point = Self { octets: [0; 32], len: octets.len() };
        point.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(point)
    }

    /// Returns the octets; empty at the start and at the end.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }

    fn parse(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at = cursor.malformed("continuation point is longer than 32 octets");
        let len = cursor.count(1)?;
        Self::new(cursor.bytes(len)?).ok_or(at)
    }

    fn emit(&self, out: &mut xcdr::Output) {
        if self.len > 0 {
            out.member(member::CONTINUATION_POINT, |out| {
                out.u32(self.len as u32);
                out.bytes(self.octets());
            });
        }
    }
}
