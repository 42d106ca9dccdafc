//! Encoding of [`DynamicData`] (XTypes 1.3 §7.4.3.5), the counterpart of [`decode`](super::decode).

use super::node::{Node, NodeId, Primitive, Struct, StructMember, Types, Union};
use super::{DynamicData, MAX_NESTING};
use crate::encoder::Content;
use crate::member::Member;
use crate::structure::effective;
use crate::union::DISCRIMINATOR;
use crate::{CdrValue, Char8, Char16, EncodeError, Encoder, Extensibility, Representation, Scope, Sink, parameter};

/// Value of a type as encoder content.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    types: &'a Types,
    id: NodeId,
    data: &'a DynamicData,
    depth: u8,
}

impl<'a> Value<'a> {
    pub(super) fn root(types: &'a Types, id: NodeId, data: &'a DynamicData) -> Self {
        Self { types, id, data, depth: 0 }
    }

    fn deeper(self) -> Result<Self, EncodeError> {
        if self.depth >= MAX_NESTING { Err(EncodeError::TooDeep) } else { Ok(Self { depth: self.depth + 1, ..self }) }
    }

    fn part(self, id: NodeId, data: &'a DynamicData) -> Self {
        Self { id, data, ..self }
    }
}

impl Content for Value<'_> {
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        match (self.types.resolved(self.id), self.data) {
            (Node::Primitive(kind), data) => primitive(*kind, data, e),
            (Node::Enum(enumeration), DynamicData::Enum { value, .. }) => {
                if enumeration.literal(*value).is_none() {
                    return Err(mismatch("a literal of the enumeration"));
                }
                // The literal's value was checked against the bit bound when the type was built.
                match enumeration.holder_len() {
                    1 => (*value as i8).encode(e),
                    2 => (*value as i16).encode(e),
                    _ => value.encode(e),
                }
            }
            (Node::Bitmask(bitmask), DynamicData::Bitmask { value, .. }) => match bitmask.holder_len() {
                1 => narrow::<u8>(*value)?.encode(e),
                2 => narrow::<u16>(*value)?.encode(e),
                4 => narrow::<u32>(*value)?.encode(e),
                _ => value.encode(e),
            },
            (Node::String { bound }, DynamicData::String(text)) => {
                check_bound(*bound, text.len())?;
                text.encode(e)
            }
            (Node::WString { bound }, DynamicData::WString(text)) => {
                check_bound(*bound, text.0.len())?;
                text.encode(e)
            }
            (Node::Struct(structure), DynamicData::Struct(_)) => self.deeper()?.structure(structure, e),
            (Node::Union(union), DynamicData::Union { .. }) => self.deeper()?.union(union, e),
            (Node::Sequence { element, .. }, _) => {
                self.deeper()?.collection(self.types.is_delimited(e.representation(), &[*element]), e)
            }
            (Node::Array { element, .. }, _) => {
                self.deeper()?.collection(self.types.is_array_delimited(e.representation(), *element), e)
            }
            (Node::Map { key, element, .. }, _) => {
                self.deeper()?.collection(self.types.is_delimited(e.representation(), &[*key, *element]), e)
            }
            (Node::Alias { target, .. }, data) => self.part(*target, data).encode(e),
            (node, _) => Err(mismatch(kind_of(node))),
        }
    }
}

fn mismatch(expected: &'static str) -> EncodeError {
    EncodeError::Mismatch { expected }
}

fn kind_of(node: &Node) -> &'static str {
    match node {
        Node::Primitive(_) => "a primitive value",
        Node::String { .. } => "a string",
        Node::WString { .. } => "a wide string",
        Node::Enum(_) => "a literal",
        Node::Bitmask(_) => "a bitmask",
        Node::Sequence { .. } => "a sequence",
        Node::Array { .. } => "an array",
        Node::Map { .. } => "a map",
        Node::Struct(_) => "a structure",
        Node::Union(_) => "a union",
        Node::Alias { .. } => "an alias",
    }
}

fn narrow<T: TryFrom<u64>>(value: u64) -> Result<T, EncodeError> {
    T::try_from(value).map_err(|_| mismatch("a bitmask within its bit bound"))
}

fn check_bound(bound: Option<usize>, len: usize) -> Result<(), EncodeError> {
    match bound {
        Some(bound) if len > bound => Err(EncodeError::BoundExceeded { bound, len }),
        _ => Ok(()),
    }
}

fn primitive<S: Sink>(kind: Primitive, data: &DynamicData, e: &mut Encoder<S>) -> Result<(), EncodeError> {
    match (kind, data) {
        (Primitive::Bool, DynamicData::Bool(value)) => value.encode(e),
        (Primitive::Byte | Primitive::U8, DynamicData::U8(value)) => value.encode(e),
        (Primitive::I8, DynamicData::I8(value)) => value.encode(e),
        (Primitive::I16, DynamicData::I16(value)) => value.encode(e),
        (Primitive::U16, DynamicData::U16(value)) => value.encode(e),
        (Primitive::I32, DynamicData::I32(value)) => value.encode(e),
        (Primitive::U32, DynamicData::U32(value)) => value.encode(e),
        (Primitive::I64, DynamicData::I64(value)) => value.encode(e),
        (Primitive::U64, DynamicData::U64(value)) => value.encode(e),
        (Primitive::F32, DynamicData::F32(value)) => value.encode(e),
        (Primitive::F64, DynamicData::F64(value)) => value.encode(e),
        (Primitive::Char8, DynamicData::Char8(value)) => Char8(*value).encode(e),
        (Primitive::Char16, DynamicData::Char16(value)) => Char16(*value).encode(e),
        _ => Err(mismatch("a value of the primitive type")),
    }
}

/// Elements of a collection, with their count if the collection has one.
struct Elements<'a>(Value<'a>);

impl Content for Elements<'_> {
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        let value = self.0;
        match (value.types.resolved(value.id), value.data) {
            (Node::Sequence { bound, .. }, DynamicData::Bytes(bytes)) => {
                check_bound(*bound, bytes.len())?;
                e.write_len(bytes.len())?;
            }
            (Node::Sequence { bound, .. }, DynamicData::Sequence(elements)) => {
                check_bound(*bound, elements.len())?;
                e.write_len(elements.len())?;
            }
            (Node::Map { bound, .. }, DynamicData::Map(pairs)) => {
                check_bound(*bound, pairs.len())?;
                e.write_len(pairs.len())?;
            }
            (Node::Array { len, .. }, DynamicData::Bytes(bytes)) if bytes.len() == *len => {}
            (Node::Array { len, .. }, DynamicData::Sequence(elements)) if elements.len() == *len => {}
            (Node::Array { .. }, _) => return Err(mismatch("an array with the declared number of elements")),
            (node, _) => return Err(mismatch(kind_of(node))),
        }
        match (value.types.resolved(value.id), value.data) {
            (Node::Sequence { element, .. } | Node::Array { element, .. }, DynamicData::Bytes(bytes)) => {
                if value.types.is_octet(*element) { e.write_bytes(bytes) } else { Err(mismatch("a sequence")) }
            }
            (Node::Array { element, .. }, DynamicData::Sequence(rows))
                if matches!(value.types.resolved(*element), Node::Array { .. }) =>
            {
                rows.iter().try_for_each(|row| Elements(value.part(*element, row).deeper()?).encode(e))
            }
            (Node::Sequence { element, .. } | Node::Array { element, .. }, DynamicData::Sequence(elements)) => {
                elements.iter().try_for_each(|data| value.part(*element, data).encode(e))
            }
            (Node::Map { key, element, .. }, DynamicData::Map(pairs)) => pairs.iter().try_for_each(|(k, v)| {
                value.part(*key, k).encode(e)?;
                value.part(*element, v).encode(e)
            }),
            (node, _) => Err(mismatch(kind_of(node))),
        }
    }
}

/// Members of a structure, or discriminator and member of a union.
struct Members<'a> {
    value: Value<'a>,
    headers: bool,
}

impl Content for Members<'_> {
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        match (self.value.types.resolved(self.value.id), self.value.data) {
            (Node::Struct(structure), DynamicData::Struct(values)) => {
                let keys_only = e.scope() != Scope::Sample && structure.has_key;
                let by_id = e.scope() == Scope::KeyHash;
                for position in 0..structure.members.len() {
                    let index = if by_id { structure.by_id[position] } else { position };
                    let member = &structure.members[index];
                    if member.member.key || !keys_only {
                        let data = find(values, index, &member.name)
                            .ok_or(EncodeError::MissingMember { id: member.member.id })?;
                        self.member(member, data, e)?;
                    }
                }
                Ok(())
            }
            (Node::Union(union), DynamicData::Union { discriminator, member }) => {
                let member = member.as_ref().map(|(_, data)| &**data);
                self.case(union, discriminator, member, e)
            }
            (node, _) => Err(mismatch(kind_of(node))),
        }
    }
}

/// Returns the value of a member: usually at the member's index, otherwise by name.
fn find<'a>(values: &'a [(alloc::sync::Arc<str>, DynamicData)], index: usize, name: &str) -> Option<&'a DynamicData> {
    match values.get(index) {
        Some((key, value)) if &**key == name => Some(value),
        _ => values.iter().find(|(key, _)| &**key == name).map(|(_, value)| value),
    }
}

impl Members<'_> {
    fn member<S: Sink>(
        &self,
        member: &StructMember,
        data: &DynamicData,
        e: &mut Encoder<S>,
    ) -> Result<(), EncodeError> {
        let value = Value { types: self.value.types, id: member.node, data, depth: self.value.depth };
        let present = *data != DynamicData::Absent;
        if !member.optional {
            return self.content(member.member, &value, e);
        }
        match (self.headers, e.representation()) {
            (true, _) if present => self.content(member.member, &value, e),
            (true, _) => Ok(()),
            (false, Representation::Xcdr1) => parameter::write_optional(e, member.member, present.then_some(&value)),
            (false, Representation::Xcdr2) => {
                present.encode(e)?;
                if present { value.encode(e) } else { Ok(()) }
            }
        }
    }

    fn case<S: Sink>(
        &self,
        union: &Union,
        discriminator: &DynamicData,
        member: Option<&DynamicData>,
        e: &mut Encoder<S>,
    ) -> Result<(), EncodeError> {
        let Value { types, depth, .. } = self.value;
        let number = discriminator.as_integer().ok_or(mismatch("a discriminator"))?;
        self.content(DISCRIMINATOR, &Value { types, id: union.discriminator, data: discriminator, depth }, e)?;
        match (union.select(number), member) {
            _ if e.scope() != Scope::Sample && union.discriminator_is_key => Ok(()),
            (Some(case), Some(data)) => {
                let info = Member { id: case.id, key: false, must_understand: false };
                self.content(info, &Value { types, id: case.node, data, depth }, e)
            }
            (Some(_), None) => Err(mismatch("the member that the discriminator selects")),
            (None, Some(_)) => Err(mismatch("a discriminator that selects the member")),
            (None, None) => Ok(()),
        }
    }

    fn content<S: Sink>(&self, member: Member, value: &Value<'_>, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        if self.headers {
            parameter::write(e, member, value.types.length_code(value.id), value)
        } else {
            value.encode(e)
        }
    }
}

impl Value<'_> {
    fn structure<S: Sink>(self, structure: &Struct, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        self.aggregate(structure.extensibility, e)
    }

    fn union<S: Sink>(self, union: &Union, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        self.aggregate(union.extensibility, e)
    }

    fn aggregate<S: Sink>(self, extensibility: Extensibility, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        let members = |headers| Members { value: self, headers };
        match (effective(extensibility, e.scope()), e.representation()) {
            (Extensibility::Final, _) | (Extensibility::Appendable, Representation::Xcdr1) => members(false).encode(e),
            (Extensibility::Appendable, Representation::Xcdr2) => e.delimited(&members(false)),
            (Extensibility::Mutable, Representation::Xcdr2) => e.delimited(&members(true)),
            (Extensibility::Mutable, Representation::Xcdr1) => {
                members(true).encode(e)?;
                parameter::write_list_end(e)
            }
        }
    }

    fn collection<S: Sink>(self, is_delimited: bool, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        if is_delimited { e.delimited(&Elements(self)) } else { Elements(self).encode(e) }
    }
}
