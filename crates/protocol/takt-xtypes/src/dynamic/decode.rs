//! Decoding of payloads to [`DynamicData`] (XTypes 1.3 §7.4.3.5). The rules equal those of the
//! crate's visitors for Rust types, applied to a type known at run time.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::node::{Enum, Node, NodeId, Primitive, Struct, StructMember, Types, Union};
use super::{DynamicData, MAX_NESTING, too_deep};
use crate::collection::delimited_exactly;
use crate::structure::effective;
use crate::union::{DISCRIMINATOR, within_member};
use crate::{
    CdrValue, DecodeError, DecodeErrorKind, Decoder, Extensibility, Representation, Scope, WString, parameter,
};

/// Memory of a member in addition to its value, in bytes.
const NAME_LEN: usize = size_of::<(alloc::sync::Arc<str>, DynamicData)>() - size_of::<DynamicData>();

/// Decodes a value of the type at the decoder's position.
pub(super) fn decode(types: &Types, id: NodeId, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
    Reader { types, depth: 0 }.value(id, d)
}

/// Members of a structure to decode.
#[derive(Clone, Copy)]
enum Wanted {
    All,
    Keys,
    /// All members up to the last key member.
    UpToLastKey,
}

/// Decoder state: the types and the nesting depth.
#[derive(Clone, Copy)]
struct Reader<'a> {
    types: &'a Types,
    depth: u8,
}

/// Decodes a primitive.
fn read<T: CdrValue>(d: &mut Decoder<'_>) -> Result<T, DecodeError> {
    let mut value = T::initial();
    value.decode(d)?;
    Ok(value)
}

fn primitive(primitive: Primitive, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
    Ok(match primitive {
        Primitive::Bool => DynamicData::Bool(read(d)?),
        Primitive::Byte | Primitive::U8 => DynamicData::U8(read(d)?),
        Primitive::I8 => DynamicData::I8(read(d)?),
        Primitive::I16 => DynamicData::I16(read(d)?),
        Primitive::U16 => DynamicData::U16(read(d)?),
        Primitive::I32 => DynamicData::I32(read(d)?),
        Primitive::U32 => DynamicData::U32(read(d)?),
        Primitive::I64 => DynamicData::I64(read(d)?),
        Primitive::U64 => DynamicData::U64(read(d)?),
        Primitive::F32 => DynamicData::F32(read(d)?),
        Primitive::F64 => DynamicData::F64(read(d)?),
        Primitive::Char8 => DynamicData::Char8(read(d)?),
        Primitive::Char16 => DynamicData::Char16(read(d)?),
    })
}

fn literal(enumeration: &Enum, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
    let value = match enumeration.holder_len() {
        1 => i32::from(read::<i8>(d)?),
        2 => i32::from(read::<i16>(d)?),
        _ => read::<i32>(d)?,
    };
    let unknown = DecodeErrorKind::EnumValue { value: i64::from(value) };
    enumeration.literal(value).ok_or_else(|| d.error(unknown))
}

pub(super) fn flags(holder_len: usize, d: &mut Decoder<'_>) -> Result<u64, DecodeError> {
    Ok(match holder_len {
        1 => u64::from(read::<u8>(d)?),
        2 => u64::from(read::<u16>(d)?),
        4 => u64::from(read::<u32>(d)?),
        _ => read::<u64>(d)?,
    })
}

fn check_bound(bound: Option<usize>, len: usize, d: &Decoder<'_>) -> Result<(), DecodeError> {
    match bound {
        Some(bound) if len > bound => Err(d.error(DecodeErrorKind::Bound { bound, len })),
        _ => Ok(()),
    }
}

impl Reader<'_> {
    fn deeper(self, d: &Decoder<'_>) -> Result<Self, DecodeError> {
        if self.depth >= MAX_NESTING { Err(too_deep(d)) } else { Ok(Self { depth: self.depth + 1, ..self }) }
    }

    fn value(self, id: NodeId, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        Ok(match self.types.resolved(id) {
            Node::Primitive(kind) => primitive(*kind, d)?,
            Node::Enum(enumeration) => literal(enumeration, d)?,
            Node::Bitmask(bitmask) => bitmask.value(flags(bitmask.holder_len(), d)?),
            Node::String { bound } => {
                let text: String = read(d)?;
                check_bound(*bound, text.len(), d)?;
                DynamicData::String(text)
            }
            Node::WString { bound } => {
                let text: WString = read(d)?;
                check_bound(*bound, text.0.len(), d)?;
                DynamicData::WString(text)
            }
            Node::Sequence { element, bound } => self.deeper(d)?.sequence(*element, *bound, d)?,
            Node::Array { element, len, .. } => self.deeper(d)?.array(*element, *len, d)?,
            Node::Map { key, element, bound } => self.deeper(d)?.map(*key, *element, *bound, d)?,
            Node::Struct(structure) => self.deeper(d)?.structure(structure, d)?,
            Node::Union(union) => self.deeper(d)?.union(union, d)?,
            Node::Alias { target, .. } => self.value(*target, d)?,
        })
    }

    /// Runs `read` within the DHEADER of a collection, if such a collection has one.
    fn collection(
        self,
        elements: &[NodeId],
        d: &mut Decoder<'_>,
        read: impl FnOnce(&mut Decoder<'_>) -> Result<DynamicData, DecodeError>,
    ) -> Result<DynamicData, DecodeError> {
        if !self.types.is_delimited(d.representation(), elements) {
            return read(d);
        }
        self.delimited(d, read)
    }

    /// Runs `read` within a DHEADER.
    fn delimited(
        self,
        d: &mut Decoder<'_>,
        read: impl FnOnce(&mut Decoder<'_>) -> Result<DynamicData, DecodeError>,
    ) -> Result<DynamicData, DecodeError> {
        let mut data = DynamicData::Absent;
        delimited_exactly(d, |d| {
            data = read(d)?;
            Ok(())
        })?;
        Ok(data)
    }

    /// Reads a count and checks it against the remaining bytes and the bound.
    fn count(self, elements: &[NodeId], bound: Option<usize>, d: &mut Decoder<'_>) -> Result<usize, DecodeError> {
        let min_len: usize = elements.iter().map(|&element| self.types.layouts[element].min_len).sum();
        let count = d.read_count(min_len.max(1))?;
        check_bound(bound, count, d)?;
        Ok(count)
    }

    fn sequence(self, element: NodeId, bound: Option<usize>, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        self.collection(&[element], d, |d| {
            let count = self.count(&[element], bound, d)?;
            self.elements(element, count, d)
        })
    }

    fn array(self, element: NodeId, len: usize, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        if !self.types.is_array_delimited(d.representation(), element) {
            return self.rows(element, len, d);
        }
        self.delimited(d, |d| self.rows(element, len, d))
    }

    /// Decodes elements of an array without a header.
    fn rows(self, element: NodeId, len: usize, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        let Node::Array { element: inner, len: inner_len, .. } = self.types.resolved(element) else {
            return self.elements(element, len, d);
        };
        let row = self.deeper(d)?;
        d.charge(len, size_of::<DynamicData>())?;
        let rows = (0..len).map(|_| row.rows(*inner, *inner_len, d));
        Ok(DynamicData::Sequence(rows.collect::<Result<_, _>>()?))
    }

    fn elements(self, element: NodeId, count: usize, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        if self.types.is_octet(element) {
            return Ok(DynamicData::Bytes(d.take(count)?.to_vec()));
        }
        d.charge(count, size_of::<DynamicData>())?;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(self.value(element, d)?);
        }
        Ok(DynamicData::Sequence(elements))
    }

    fn map(
        self,
        key: NodeId,
        element: NodeId,
        bound: Option<usize>,
        d: &mut Decoder<'_>,
    ) -> Result<DynamicData, DecodeError> {
        self.collection(&[key, element], d, |d| {
            let count = self.count(&[key, element], bound, d)?;
            d.charge(count, 2 * size_of::<DynamicData>())?;
            let mut pairs = Vec::with_capacity(count);
            for _ in 0..count {
                let key = self.value(key, d)?;
                pairs.push((key, self.value(element, d)?));
            }
            Ok(DynamicData::Map(pairs))
        })
    }

    fn structure(self, structure: &Struct, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        let wanted = if d.takes_key_of_sample() {
            Wanted::UpToLastKey
        } else if d.scope() != Scope::Sample && structure.has_key {
            Wanted::Keys
        } else {
            Wanted::All
        };
        d.charge(structure.members.len(), NAME_LEN + size_of::<DynamicData>())?;
        match (effective(structure.extensibility, d.scope()), d.representation()) {
            (Extensibility::Final, _) => self.in_order(structure, wanted, false, d),
            (Extensibility::Appendable, Representation::Xcdr1) => self.in_order(structure, wanted, true, d),
            (Extensibility::Appendable, Representation::Xcdr2) => {
                d.delimited(|d| self.in_order(structure, wanted, true, d))
            }
            (Extensibility::Mutable, Representation::Xcdr1) => self.by_id(structure, wanted, d),
            (Extensibility::Mutable, Representation::Xcdr2) => d.delimited(|d| self.by_id(structure, wanted, d)),
        }
    }

    fn in_order(
        self,
        structure: &Struct,
        wanted: Wanted,
        may_end: bool,
        d: &mut Decoder<'_>,
    ) -> Result<DynamicData, DecodeError> {
        let mut members = Vec::with_capacity(structure.members.len());
        let end = match wanted {
            Wanted::UpToLastKey => {
                structure.members.iter().rposition(|member| member.member.key).map_or(0, |last| last + 1)
            }
            Wanted::All | Wanted::Keys => structure.members.len(),
        };
        let takes = |member: &&StructMember| member.member.key || !matches!(wanted, Wanted::Keys);
        for member in structure.members[..end].iter().filter(takes) {
            let value = if may_end && d.remaining() == 0 {
                self.default(member, d)?
            } else if member.optional {
                self.optional(member, d)?
            } else {
                self.value(member.node, d)?
            };
            members.push((member.name.clone(), value));
        }
        Ok(DynamicData::Struct(members))
    }

    /// Returns the default of a member that the writer did not send.
    fn default(self, member: &StructMember, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        if member.member.key {
            return Err(d.error(DecodeErrorKind::MissingKey { id: member.member.id }));
        }
        if !member.optional {
            d.charge(self.types.layouts[member.node].initial_values, NAME_LEN + size_of::<DynamicData>())?;
        }
        Ok(self.types.initial_member(member))
    }

    /// Decodes an optional member of a final or appendable structure.
    fn optional(self, member: &StructMember, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        match d.representation() {
            Representation::Xcdr2 => match read::<bool>(d)? {
                true => self.value(member.node, d),
                false => Ok(DynamicData::Absent),
            },
            Representation::Xcdr1 => match parameter::read_parameter(d)? {
                Some(header) if header.id == member.member.id => d.with_origin(header.len, |d| match header.len {
                    0 => Ok(DynamicData::Absent),
                    _ => self.value(member.node, d),
                }),
                _ => Err(d.error(DecodeErrorKind::Header)),
            },
        }
    }

    fn by_id(self, structure: &Struct, wanted: Wanted, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        let keys_only = !matches!(wanted, Wanted::All);
        let mut values: Vec<Option<DynamicData>> = vec![None; structure.members.len()];
        while let Some(header) = parameter::read(d)? {
            let index = structure.index_of(header.id);
            if index.is_none() && header.must_understand {
                return Err(d.error(DecodeErrorKind::MustUnderstand { id: header.id }));
            }
            within_member(d, header.len, |d| {
                if let Some(index) = index {
                    let member = &structure.members[index];
                    if member.member.key || !keys_only {
                        values[index] = Some(self.value(member.node, d)?);
                    }
                }
                Ok(())
            })?;
        }
        let mut members = Vec::with_capacity(structure.members.len());
        for (member, value) in structure.members.iter().zip(values) {
            if member.member.key || !keys_only {
                let value = match value {
                    Some(value) => value,
                    None => self.default(member, d)?,
                };
                members.push((member.name.clone(), value));
            }
        }
        Ok(DynamicData::Struct(members))
    }

    fn union(self, union: &Union, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        d.charge(2, NAME_LEN + size_of::<DynamicData>())?;
        match (effective(union.extensibility, d.scope()), d.representation()) {
            (Extensibility::Final, _) => self.plain_union(union, false, d),
            (Extensibility::Appendable, Representation::Xcdr1) => self.plain_union(union, true, d),
            (Extensibility::Appendable, Representation::Xcdr2) => d.delimited(|d| self.plain_union(union, true, d)),
            (Extensibility::Mutable, Representation::Xcdr1) => self.mutable_union(union, d),
            (Extensibility::Mutable, Representation::Xcdr2) => d.delimited(|d| self.mutable_union(union, d)),
        }
    }

    fn plain_union(self, union: &Union, may_end: bool, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        let discriminator = self.value(union.discriminator, d)?;
        let discriminator_only = d.scope() != Scope::Sample && union.discriminator_is_key;
        let member = match discriminator.as_integer().and_then(|number| union.select(number)) {
            Some(case) if !discriminator_only => {
                let value = if may_end && d.remaining() == 0 {
                    self.charged_initial(case.node, d)?
                } else {
                    self.value(case.node, d)?
                };
                Some((case.name.clone(), Box::new(value)))
            }
            _ => None,
        };
        Ok(DynamicData::Union { discriminator: Box::new(discriminator), member })
    }

    fn charged_initial(self, node: NodeId, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        d.charge(self.types.layouts[node].initial_values, NAME_LEN + size_of::<DynamicData>())?;
        Ok(self.types.initial(node))
    }

    /// Decodes a mutable union: first the discriminator, then at most one member, which the
    /// discriminator selects.
    fn mutable_union(self, union: &Union, d: &mut Decoder<'_>) -> Result<DynamicData, DecodeError> {
        let header = match parameter::read(d)? {
            Some(header) if header.id == DISCRIMINATOR.id => header,
            _ => return Err(d.error(DecodeErrorKind::Header)),
        };
        let discriminator_only = d.scope() != Scope::Sample && union.discriminator_is_key;
        let mut discriminator = DynamicData::Absent;
        within_member(d, header.len, |d| {
            discriminator = self.value(union.discriminator, d)?;
            Ok(())
        })?;
        let case = discriminator.as_integer().and_then(|number| union.select(number));
        let mut found = None;
        while let Some(header) = parameter::read(d)? {
            let wanted = case.filter(|case| found.is_none() && case.id == header.id);
            if wanted.is_none() && header.must_understand {
                return Err(d.error(DecodeErrorKind::MustUnderstand { id: header.id }));
            }
            within_member(d, header.len, |d| {
                if let Some(case) = wanted.filter(|_| !discriminator_only) {
                    found = Some(self.value(case.node, d)?);
                }
                Ok(())
            })?;
        }
        let member = match case {
            Some(case) if !discriminator_only => {
                let value = match found {
                    Some(value) => value,
                    None => self.charged_initial(case.node, d)?,
                };
                Some((case.name.clone(), Box::new(value)))
            }
            _ => None,
        };
        Ok(DynamicData::Union { discriminator: Box::new(discriminator), member })
    }
}
