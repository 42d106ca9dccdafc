//! Replies of the TypeLookup service: serialized types, or identifiers with the sizes of their
//! objects.

use alloc::vec::Vec;

use super::{ContinuationPoint, EquivalenceId, REMOTE_OK, RequestId, TYPE_IDS_MAX, UnionForm, member, operation, xcdr};
use crate::cursor::{Cursor, Endianness};
use crate::error::Malformed;

/// Reply of the TypeLookup service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeReply<'a> {
    /// Request that the reply answers.
    pub request: RequestId,
    /// Byte order of the types in the reply.
    pub endianness: Endianness,
    /// Content of the reply.
    pub body: ReplyBody<'a>,
}

/// Content of a reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplyBody<'a> {
    /// Types, and the mapping of complete to minimal identifiers.
    Types {
        /// Identifier and `TypeObject` of each type, starting at the delimiter.
        types: Vec<(EquivalenceId, &'a [u8])>,
        /// Pairs of complete and minimal identifiers of the same types.
        complete_to_minimal: Vec<(EquivalenceId, EquivalenceId)>,
    },
    /// Types that other types refer to.
    Dependencies {
        /// Identifiers with the sizes of their objects in octets.
        type_ids: Vec<(EquivalenceId, u32)>,
        /// Position at which the list continues.
        continuation_point: ContinuationPoint,
    },
    /// Failure: a code of DDS-RPC or a return code of DDS.
    Failure(i32),
}

impl<'a> TypeReply<'a> {
    /// Parses a reply, encapsulation header included.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = xcdr::decapsulate(payload)?;
        let endianness = cursor.endianness();
        let request = RequestId::parse(&mut cursor)?;
        let exception = cursor.i32()?;
        let body = if exception == REMOTE_OK { parse_body(&mut cursor)? } else { ReplyBody::Failure(exception) };
        Ok(Self { request, endianness, body })
    }
}

fn parse_body<'a>(cursor: &mut Cursor<'a>) -> Result<ReplyBody<'a>, Malformed> {
    const RETCODE_OK: i32 = 0;
    let form = UnionForm::detect(cursor)?;
    let mut returned = form.open(cursor)?;
    let at = returned.malformed("reply to an unknown operation");
    let kind = returned.i32()?;
    let mut result = form.open(&mut returned)?;
    let code = result.i32()?;
    if code != RETCODE_OK {
        return Ok(ReplyBody::Failure(code));
    }
    let mut members = xcdr::delimited(&mut result)?;
    match kind {
        operation::GET_TYPES => parse_types(&mut members),
        operation::GET_DEPENDENCIES => parse_dependencies(&mut members),
        _ => Err(at),
    }
}

fn parse_types<'a>(members: &mut Cursor<'a>) -> Result<ReplyBody<'a>, Malformed> {
    let mut types = Vec::new();
    let mut complete_to_minimal = Vec::new();
    while let Some((id, mut value)) = xcdr::next_member(members)? {
        match id {
            member::TYPES => {
                // The shortest element is an identifier, a delimiter, and a nonempty object.
                let (count, mut elements) = xcdr::sequence(&mut value, 6)?;
                for _ in 0..count.min(TYPE_IDS_MAX) {
                    let id = EquivalenceId::parse(&mut elements)?;
                    elements.align(4)?;
                    let object = elements.rest();
                    let len = xcdr::delimited(&mut elements)?.remaining();
                    types.extend(id.map(|id| (id, &object[..4 + len])));
                }
            }
            member::COMPLETE_TO_MINIMAL => {
                let (count, mut elements) = xcdr::sequence(&mut value, 2)?;
                for _ in 0..count.min(TYPE_IDS_MAX) {
                    let pair = (EquivalenceId::parse(&mut elements)?, EquivalenceId::parse(&mut elements)?);
                    if let (Some(complete), Some(minimal)) = pair {
                        complete_to_minimal.push((complete, minimal));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(ReplyBody::Types { types, complete_to_minimal })
}

fn parse_dependencies<'a>(members: &mut Cursor<'a>) -> Result<ReplyBody<'a>, Malformed> {
    let mut type_ids = Vec::new();
    let mut continuation_point = ContinuationPoint::default();
    while let Some((id, mut value)) = xcdr::next_member(members)? {
        match id {
            member::DEPENDENT_TYPEIDS => {
                let (count, mut elements) = xcdr::sequence(&mut value, 4)?;
                for _ in 0..count.min(TYPE_IDS_MAX) {
                    let mut element = xcdr::delimited(&mut elements)?;
                    if let Some(id) = EquivalenceId::parse(&mut element)? {
                        element.align(4)?;
                        type_ids.push((id, element.u32()?));
                    }
                }
            }
            member::CONTINUATION_POINT => continuation_point = ContinuationPoint::parse(&mut value)?,
            _ => {}
        }
    }
    Ok(ReplyBody::Dependencies { type_ids, continuation_point })
}

/// Builder of the reply to `getTypes`, type by type, up to a maximum length.
pub struct TypesEmitter {
    out: xcdr::Output,
    len_max: usize,
    count: u32,
    /// Positions of the delimiters of the two unions, the outer one first.
    unions: [Option<usize>; 2],
    /// Positions of the length words that enclose the types, the outer one first.
    length_positions: [usize; 3],
    /// Position of the word with the number of types.
    number: usize,
    pairs: Vec<(EquivalenceId, EquivalenceId)>,
}

/// Maximum length of a pair of identifiers, and of the header of the member that holds the pairs,
/// in octets.
const PAIR_LEN: usize = 64;
const PAIRS_HEADER_LEN: usize = 24;

impl TypesEmitter {
    /// Begins a reply of at most `len_max` octets, or of the length of an empty reply if that is
    /// more.
    #[must_use]
    pub fn new(request: RequestId, form: UnionForm, len_max: usize) -> Self {
        let mut out = begin(request, REMOTE_OK);
        let returned = form.begin(&mut out);
        out.u32(operation::GET_TYPES as u32);
        let result = form.begin(&mut out);
        out.u32(0);
        let members = out.reserve();
        out.u32(4 << 28 | member::TYPES);
        let member = out.reserve();
        let sequence = out.reserve();
        let number = out.reserve();
        let (unions, length_positions) = ([returned, result], [members, member, sequence]);
        Self { out, len_max, count: 0, unions, length_positions, number, pairs: Vec::new() }
    }

    /// Adds a type: its `TypeObject` in little endian, starting at the delimiter, and its minimal
    /// identifier if `id` is complete and has one. Returns false and adds nothing if there is no
    /// room.
    pub fn push(&mut self, id: EquivalenceId, object: &[u8], minimal: Option<EquivalenceId>) -> bool {
        let before = self.out.len();
        id.emit(&mut self.out);
        self.out.align();
        self.out.bytes(object);
        let pairs = self.pairs.len() + usize::from(minimal.is_some());
        if self.out.len() + PAIRS_HEADER_LEN + pairs * PAIR_LEN > self.len_max {
            self.out.truncate(before);
            return false;
        }
        self.count += 1;
        self.pairs.extend(minimal.map(|minimal| (id, minimal)));
        true
    }

    /// Returns the number of added types.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the payload.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let [members, member, sequence] = self.length_positions;
        let mut out = self.out;
        out.set(self.number, self.count);
        out.close(sequence);
        out.close(member);
        let pairs = core::mem::take(&mut self.pairs);
        out.member(member::COMPLETE_TO_MINIMAL, |out| {
            out.delimited(|out| {
                out.u32(pairs.len() as u32);
                for (complete, minimal) in &pairs {
                    complete.emit(out);
                    minimal.emit(out);
                }
            });
        });
        out.close(members);
        self.unions.into_iter().rev().for_each(|position| UnionForm::close(position, &mut out));
        out.finish()
    }
}

fn begin(request: RequestId, exception: i32) -> xcdr::Output {
    let mut out = xcdr::Output::new();
    request.emit(&mut out);
    out.u32(exception.cast_unsigned());
    out
}

/// Returns the payload of the reply to `getTypeDependencies`.
#[must_use]
pub fn dependencies_reply(
    request: RequestId,
    form: UnionForm,
    type_ids: &[(EquivalenceId, u32)],
    continuation_point: ContinuationPoint,
) -> Vec<u8> {
    let mut out = begin(request, REMOTE_OK);
    let returned = form.begin(&mut out);
    out.u32(operation::GET_DEPENDENCIES as u32);
    let result = form.begin(&mut out);
    out.u32(0);
    out.delimited(|out| {
        out.member(member::DEPENDENT_TYPEIDS, |out| {
            out.delimited(|out| {
                out.u32(type_ids.len() as u32);
                for (id, size) in type_ids {
                    out.delimited(|out| {
                        id.emit(out);
                        out.u32(*size);
                    });
                }
            });
        });
        continuation_point.emit(out);
    });
    UnionForm::close(result, &mut out);
    UnionForm::close(returned, &mut out);
    out.finish()
}

/// Returns the payload of a reply that refuses the request with a code of DDS-RPC. The union for
/// the result selects no member.
#[must_use]
pub fn failure_reply(request: RequestId, exception: i32) -> Vec<u8> {
    let mut out = begin(request, exception);
    out.delimited(|out| out.u32(0));
    out.finish()
}
