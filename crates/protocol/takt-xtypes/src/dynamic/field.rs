//! Field access by path: reads `a.b[2].c` of a serialized sample without decoding the rest
//! (XTypes 1.3 §7.4.3.5; paths as in DDS 1.4 annex B).
//!
//! Values before the field are skipped; members with a length are skipped in one step. A member
//! that the writer did not send has its default, as in [`DynamicType::decode`].
//!
//! Invariants: reading neither allocates nor reads beyond the payload. The number of steps is at
//! most a multiple of the payload's length.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::budget::Budget;
use super::node::{Node, NodeId, Struct, StructMember, Types, Union};
use super::scalar::{Scalar, Text};
use super::{DynamicData, DynamicType, MAX_NESTING, decode, too_deep};
use crate::structure::effective;
use crate::union::DISCRIMINATOR;
use crate::{
    CdrValue, DecodeError, DecodeErrorKind, Decoder, Extensibility, Representation, Scope, parameter, payload,
};

/// Part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldPart {
    /// Member of a structure, or case of a union.
    Name(String),
    /// Index of a sequence element, counted from 0. An array takes one index for each dimension.
    Index(u32),
}

/// Reason why a path does not lead to a comparable field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Description of the error with the part of the path.
    pub what: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl core::error::Error for FieldError {}

/// Kind of a field for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// `boolean`.
    Bool,
    /// Integer, `octet` or bitmask.
    Integer,
    /// `float` or `double`.
    Float,
    /// `char` or `wchar`.
    Char,
    /// `string` or `wstring`.
    Text,
    /// Enumeration.
    Enum,
}

/// Field of a type. It belongs to the [`DynamicType`] that created it, which all calls take as an
/// argument.
#[derive(Clone, Debug)]
pub struct Field {
    steps: Vec<Step>,
    leaf: NodeId,
    kind: FieldKind,
}

#[derive(Clone, Debug)]
struct Step {
    /// Structure, union or collection.
    node: NodeId,
    /// Index of the member, case or element.
    index: usize,
    /// Default of the field if the writer sent nothing from this step on.
    default: DynamicData,
}

/// Result of a step.
enum Location {
    /// The decoder is at the start of the value.
    Here,
    /// The value is absent.
    Absent,
    /// The writer did not send the value.
    Default,
}

impl DynamicType {
    /// Returns the field at the end of a path.
    ///
    /// # Errors
    /// Fails if a part does not exist, or if the field is a structure, union or collection.
    pub fn field(&self, path: &[FieldPart]) -> Result<Field, FieldError> {
        let types = &self.types;
        let (mut steps, mut at) = (Vec::new(), self.root);
        let mut parts = path.iter();
        while let Some(part) = parts.next() {
            let (index, next) = match (types.resolved(at), part) {
                (Node::Struct(structure), FieldPart::Name(name)) => {
                    let index = structure.members.iter().position(|member| *member.name == **name);
                    let index = index.ok_or_else(|| unknown(types, at, name))?;
                    (index, structure.members[index].node)
                }
                (Node::Union(union), FieldPart::Name(name)) => {
                    let index = union.cases.iter().position(|case| *case.name == **name);
                    let index = index.ok_or_else(|| unknown(types, at, name))?;
                    (index, union.cases[index].node)
                }
                (Node::Sequence { element, .. }, FieldPart::Index(index)) => (*index as usize, *element),
                (Node::Array { element, dimensions, .. }, FieldPart::Index(first)) => {
                    let rest = dimensions[1..].iter().map(|_| match parts.next() {
                        Some(FieldPart::Index(index)) => Some(*index),
                        _ => None,
                    });
                    (element_index(dimensions, core::iter::once(Some(*first)).chain(rest))?, *element)
                }
                (_, FieldPart::Name(name)) => return Err(FieldError { what: format!("'{name}' is not a member") }),
                (_, FieldPart::Index(index)) => {
                    return Err(FieldError { what: format!("[{index}] of a value that is not a sequence or array") });
                }
            };
            steps.push(Step { node: at, index, default: DynamicData::Absent });
            at = next;
        }
        let kind = kind(types, at).ok_or_else(|| FieldError {
            what: "a structure, union or collection cannot be compared; compare its members or elements".to_string(),
        })?;
        for start in 0..steps.len() {
            steps[start].default = default_from(types, &steps[start..], at);
        }
        Ok(Field { steps, leaf: at, kind })
    }
}

fn unknown(types: &Types, id: NodeId, name: &str) -> FieldError {
    FieldError { what: format!("{} has no member '{name}'", types.name(id)) }
}

/// Returns the index of an element, with the last dimension fastest.
fn element_index(dimensions: &[u32], indexes: impl Iterator<Item = Option<u32>>) -> Result<usize, FieldError> {
    let mut at = 0_usize;
    for (&dimension, index) in dimensions.iter().zip(indexes) {
        match index {
            Some(index) if index < dimension => at = at * dimension as usize + index as usize,
            Some(index) => return Err(FieldError { what: format!("[{index}] of an array of {dimension}") }),
            None => return Err(FieldError { what: format!("an array of {} dimensions", dimensions.len()) }),
        }
    }
    Ok(at)
}

fn kind(types: &Types, id: NodeId) -> Option<FieldKind> {
    use super::node::Primitive;
    Some(match types.resolved(id) {
        Node::Primitive(Primitive::Bool) => FieldKind::Bool,
        Node::Primitive(Primitive::F32 | Primitive::F64) => FieldKind::Float,
        Node::Primitive(Primitive::Char8 | Primitive::Char16) => FieldKind::Char,
        Node::Primitive(_) | Node::Bitmask(_) => FieldKind::Integer,
        Node::String { .. } | Node::WString { .. } => FieldKind::Text,
        Node::Enum(_) => FieldKind::Enum,
        _ => return None,
    })
}

/// Returns the default of a field if the member that the first step selects has its default.
fn default_from(types: &Types, steps: &[Step], leaf: NodeId) -> DynamicData {
    for (place, step) in steps.iter().enumerate() {
        let is_first = place == 0;
        match types.resolved(step.node) {
            Node::Struct(structure) if structure.members[step.index].optional => return DynamicData::Absent,
            Node::Sequence { .. } => return DynamicData::Absent,
            // The first union is known to have the case selected.
            Node::Union(union) if !is_first => {
                let selected = types.initial_case(union).1;
                if selected.is_none_or(|case| case.id != union.cases[step.index].id) {
                    return DynamicData::Absent;
                }
            }
            _ => {}
        }
    }
    types.initial(leaf)
}

impl Field {
    /// Returns the kind of the field's values.
    #[must_use]
    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    /// Returns the value of a literal, if the field is an enumeration with this literal.
    #[must_use]
    pub fn literal(&self, ty: &DynamicType, name: &str) -> Option<i32> {
        let Node::Enum(enumeration) = ty.types.resolved(self.leaf) else { return None };
        enumeration.literals.iter().find(|(literal, _)| **literal == *name).map(|(_, value)| *value)
    }

    /// Reports whether both fields have the same enumeration type.
    #[must_use]
    pub fn has_literals_of(&self, ty: &DynamicType, other: &Self) -> bool {
        match (ty.types.resolved(self.leaf), ty.types.resolved(other.leaf)) {
            (Node::Enum(a), Node::Enum(b)) => a.literals == b.literals,
            _ => false,
        }
    }

    /// Reads the field from the payload of a sample. `None` if the field is, or is part of, an
    /// absent optional member, an unselected case or an element beyond the last.
    ///
    /// # Errors
    /// Fails if the bytes up to the field are not a value of the type.
    pub fn read<'a>(&'a self, ty: &DynamicType, payload: &'a [u8]) -> Result<Option<Scalar<'a>>, DecodeError> {
        self.read_within(ty, payload, &Budget::unlimited())
    }

    /// Reads the field within a budget: one step for each visited value, and one for each 16 octets
    /// of a string.
    pub(crate) fn read_within<'a>(
        &'a self,
        ty: &DynamicType,
        payload: &'a [u8],
        budget: &Budget,
    ) -> Result<Option<Scalar<'a>>, DecodeError> {
        let opened = payload::open(payload, ty.extensibility())?;
        let mut d = Decoder::new(opened.body, opened.representation, opened.endianness, Scope::Sample);
        let walker = Walker { types: &ty.types, budget, depth: 0 };
        let mut is_row = false;
        for step in &self.steps {
            let place = walker.enter(step, is_row, &mut d)?;
            is_row = matches!(ty.types.resolved(step.node), Node::Array { .. });
            match place {
                Location::Here => {}
                Location::Absent => return Ok(None),
                Location::Default => return Ok(Scalar::of(&step.default)),
            }
        }
        let before = d.remaining();
        let value = scalar(&ty.types, self.leaf, &mut d)?;
        budget.spend(1 + (before - d.remaining()) as u64 / 16);
        Ok(Some(value))
    }

    /// Returns the field of decoded data. `None` also if the data is not a value of the type.
    #[must_use]
    pub fn get<'a>(&self, ty: &DynamicType, data: &'a DynamicData) -> Option<Scalar<'a>> {
        let mut at = data;
        for step in &self.steps {
            at = match (ty.types.resolved(step.node), at) {
                (Node::Struct(structure), data) => data.member(&structure.members[step.index].name)?,
                (Node::Union(union), data) => data.member(&union.cases[step.index].name)?,
                (_, DynamicData::Sequence(elements)) => elements.get(step.index)?,
                (_, DynamicData::Bytes(bytes)) => {
                    return bytes.get(step.index).map(|byte| Scalar::Integer(i128::from(*byte)));
                }
                _ => return None,
            };
        }
        Scalar::of(at)
    }
}

/// Reads the value at the decoder's position.
fn scalar<'a>(types: &Types, id: NodeId, d: &mut Decoder<'a>) -> Result<Scalar<'a>, DecodeError> {
    match types.resolved(id) {
        Node::String { .. } => {
            let len = d.read_count(1)?;
            let text = match d.take(len)?.split_last() {
                None => "",
                Some((0, bytes)) => match core::str::from_utf8(bytes) {
                    Ok(text) => text,
                    Err(_) => return Err(d.error(DecodeErrorKind::Text)),
                },
                Some(_) => return Err(d.error(DecodeErrorKind::Unterminated)),
            };
            Ok(Scalar::Text(Text::Utf8(text)))
        }
        Node::WString { .. } => {
            let len = d.read_count(1)?;
            if !len.is_multiple_of(2) {
                return Err(d.error(DecodeErrorKind::Text));
            }
            Ok(Scalar::Text(Text::Wire(d.take(len)?, d.endianness())))
        }
        Node::Bitmask(bitmask) => {
            let flags = decode::flags(bitmask.holder_len(), d)?;
            Ok(Scalar::Integer(i128::from(flags)))
        }
        // Primitives and literals do not allocate.
        _ => match number_like(&decode::decode(types, id, d)?) {
            Some(scalar) => Ok(scalar),
            None => Err(d.error(DecodeErrorKind::Header)),
        },
    }
}

/// Returns the value of data without text.
fn number_like<'a>(data: &DynamicData) -> Option<Scalar<'a>> {
    Some(match Scalar::of(data)? {
        Scalar::Bool(value) => Scalar::Bool(value),
        Scalar::Integer(value) => Scalar::Integer(value),
        Scalar::Float(value) => Scalar::Float(value),
        Scalar::Char(value) => Scalar::Char(value),
        Scalar::Enum(value) => Scalar::Enum(value),
        Scalar::Text(_) => return None,
    })
}

/// Cursor that enters or skips values.
#[derive(Clone, Copy)]
struct Walker<'t> {
    types: &'t Types,
    budget: &'t Budget,
    depth: u8,
}

impl Walker<'_> {
    /// Enters the value that a step selects. With `is_row`, the value is an element of an array, as
    /// an array without a header.
    fn enter(self, step: &Step, is_row: bool, d: &mut Decoder<'_>) -> Result<Location, DecodeError> {
        match self.types.resolved(step.node) {
            Node::Struct(structure) => self.enter_structure(structure, step.index, d),
            Node::Union(union) => self.enter_union(union, step.index, d),
            Node::Sequence { element, .. } => {
                if self.types.is_delimited(d.representation(), &[*element]) {
                    d.enter_delimited()?;
                }
                let count = self.count(&[*element], d)?;
                if step.index >= count {
                    return Ok(Location::Absent);
                }
                self.skip_elements(*element, step.index, d)?;
                Ok(Location::Here)
            }
            Node::Array { element, .. } => {
                if !is_row && self.types.is_array_delimited(d.representation(), *element) {
                    d.enter_delimited()?;
                }
                self.skip_rows(*element, step.index, d)?;
                Ok(Location::Here)
            }
            _ => Ok(Location::Absent),
        }
    }

    fn enter_structure(self, structure: &Struct, index: usize, d: &mut Decoder<'_>) -> Result<Location, DecodeError> {
        match (effective(structure.extensibility, d.scope()), d.representation()) {
            (Extensibility::Final, _) => self.enter_in_order(structure, index, false, d),
            (Extensibility::Appendable, Representation::Xcdr1) => self.enter_in_order(structure, index, true, d),
            (Extensibility::Appendable, Representation::Xcdr2) => {
                d.enter_delimited()?;
                self.enter_in_order(structure, index, true, d)
            }
            (Extensibility::Mutable, representation) => {
                if representation == Representation::Xcdr2 {
                    d.enter_delimited()?;
                }
                enter_by_id(structure, index, d)
            }
        }
    }

    fn enter_in_order(
        self,
        structure: &Struct,
        index: usize,
        may_end: bool,
        d: &mut Decoder<'_>,
    ) -> Result<Location, DecodeError> {
        for member in &structure.members[..index] {
            if may_end && d.remaining() == 0 {
                break;
            }
            self.skip_member(member, d)?;
        }
        let member = &structure.members[index];
        if may_end && d.remaining() == 0 {
            return not_sent(member, d);
        }
        if !member.optional {
            return Ok(Location::Here);
        }
        match optional_len(member, d)? {
            Presence::Absent => return Ok(Location::Absent),
            Presence::Here => {}
            Presence::Parameter(len) => d.enter_parameter(len)?,
        }
        Ok(Location::Here)
    }

    fn enter_union(self, union: &Union, index: usize, d: &mut Decoder<'_>) -> Result<Location, DecodeError> {
        let extensibility = effective(union.extensibility, d.scope());
        if extensibility != Extensibility::Final && d.representation() == Representation::Xcdr2 {
            d.enter_delimited()?;
        }
        let wanted = &union.cases[index];
        let selects = |data: &DynamicData| {
            let case = data.as_integer().and_then(|number| union.select(number));
            case.is_some_and(|case| case.id == wanted.id)
        };
        if extensibility != Extensibility::Mutable {
            if !selects(&decode::decode(self.types, union.discriminator, d)?) {
                return Ok(Location::Absent);
            }
            let ends = extensibility == Extensibility::Appendable && d.remaining() == 0;
            return Ok(if ends { Location::Default } else { Location::Here });
        }
        let header = match parameter::read(d)? {
            Some(header) if header.id == DISCRIMINATOR.id => header,
            _ => return Err(d.error(DecodeErrorKind::Header)),
        };
        let mut discriminator = d.clone();
        enter_member(&mut discriminator, header.len)?;
        if !selects(&decode::decode(self.types, union.discriminator, &mut discriminator)?) {
            return Ok(Location::Absent);
        }
        d.take(header.len)?;
        let mut found = None;
        while let Some(header) = parameter::read(d)? {
            let is_wanted = found.is_none() && header.id == wanted.id;
            if is_wanted {
                let mut inside = d.clone();
                enter_member(&mut inside, header.len)?;
                found = Some(inside);
            } else if header.must_understand {
                return Err(d.error(DecodeErrorKind::MustUnderstand { id: header.id }));
            }
            d.take(header.len)?;
        }
        Ok(match found {
            Some(inside) => {
                *d = inside;
                Location::Here
            }
            None => Location::Default,
        })
    }

    /// Reads a count and checks it against the remaining bytes.
    fn count(self, elements: &[NodeId], d: &mut Decoder<'_>) -> Result<usize, DecodeError> {
        let min_len: usize = elements.iter().map(|&element| self.types.layouts[element].min_len).sum();
        d.read_count(min_len.max(1))
    }

    fn deeper(self, d: &Decoder<'_>) -> Result<Self, DecodeError> {
        if self.depth >= MAX_NESTING { Err(too_deep(d)) } else { Ok(Self { depth: self.depth + 1, ..self }) }
    }

    /// Skips a value.
    fn skip(self, id: NodeId, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.budget.spend(1);
        let node = self.types.resolved(id);
        if let Some(len) = fixed_len(node) {
            d.align(len)?;
            return d.take(len).map(drop);
        }
        let xcdr2 = d.representation() == Representation::Xcdr2;
        let walker = self.deeper(d)?;
        match node {
            Node::String { .. } | Node::WString { .. } => skip_counted(d),
            Node::Sequence { element, .. } if self.types.is_delimited(d.representation(), &[*element]) => {
                skip_counted(d)
            }
            Node::Sequence { element, .. } => {
                let count = walker.count(&[*element], d)?;
                walker.skip_elements(*element, count, d)
            }
            Node::Array { element, .. } if self.types.is_array_delimited(d.representation(), *element) => {
                skip_counted(d)
            }
            Node::Array { element, len, .. } => walker.skip_elements(*element, *len, d),
            Node::Map { key, element, .. } if self.types.is_delimited(d.representation(), &[*key, *element]) => {
                skip_counted(d)
            }
            Node::Map { key, element, .. } => {
                let count = walker.count(&[*key, *element], d)?;
                d.charge(count, 2)?;
                for _ in 0..count {
                    walker.skip(*key, d)?;
                    walker.skip(*element, d)?;
                }
                Ok(())
            }
            Node::Struct(structure) => match structure.extensibility {
                Extensibility::Appendable | Extensibility::Mutable if xcdr2 => skip_counted(d),
                Extensibility::Mutable => skip_parameters(d),
                extensibility => {
                    d.charge(structure.members.len(), 1)?;
                    for member in &structure.members {
                        if extensibility == Extensibility::Appendable && d.remaining() == 0 {
                            break;
                        }
                        walker.skip_member(member, d)?;
                    }
                    Ok(())
                }
            },
            Node::Union(union) => match union.extensibility {
                Extensibility::Appendable | Extensibility::Mutable if xcdr2 => skip_counted(d),
                Extensibility::Mutable => skip_parameters(d),
                extensibility => walker.skip_plain_union(union, extensibility == Extensibility::Appendable, d),
            },
            Node::Alias { .. } | Node::Primitive(_) | Node::Enum(_) | Node::Bitmask(_) => Ok(()),
        }
    }

    fn skip_plain_union(self, union: &Union, may_end: bool, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let discriminator = decode::decode(self.types, union.discriminator, d)?;
        match discriminator.as_integer().and_then(|number| union.select(number)) {
            Some(case) if !(may_end && d.remaining() == 0) => self.skip(case.node, d),
            _ => Ok(()),
        }
    }

    fn skip_member(self, member: &StructMember, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        if !member.optional {
            return self.skip(member.node, d);
        }
        match optional_len(member, d)? {
            Presence::Absent => Ok(()),
            Presence::Here => self.skip(member.node, d),
            Presence::Parameter(len) => d.take(len).map(drop),
        }
    }

    /// Skips elements of an array. If they are arrays, they have no header.
    fn skip_rows(self, element: NodeId, count: usize, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let Node::Array { element: inner, len, .. } = self.types.resolved(element) else {
            return self.skip_elements(element, count, d);
        };
        match count.checked_mul(*len) {
            Some(count) => self.deeper(d)?.skip_rows(*inner, count, d),
            None => Err(d.error(DecodeErrorKind::EndOfInput)),
        }
    }

    fn skip_elements(self, element: NodeId, count: usize, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        if let Some(len) = fixed_len(self.types.resolved(element)) {
            if count > 0 {
                d.align(len)?;
            }
            let Some(bytes) = count.checked_mul(len) else { return Err(d.error(DecodeErrorKind::EndOfInput)) };
            return d.take(bytes).map(drop);
        }
        // Elements may take no bytes at all, so steps are charged to the memory budget.
        d.charge(count, 1)?;
        for _ in 0..count {
            self.skip(element, d)?;
        }
        Ok(())
    }
}

/// Presence of an optional member of a final or appendable structure.
enum Presence {
    Absent,
    Here,
    /// Present in a parameter of this length.
    Parameter(usize),
}

fn optional_len(member: &StructMember, d: &mut Decoder<'_>) -> Result<Presence, DecodeError> {
    match d.representation() {
        Representation::Xcdr2 => {
            let mut present = false;
            present.decode(d)?;
            Ok(if present { Presence::Here } else { Presence::Absent })
        }
        Representation::Xcdr1 => match parameter::read_parameter(d)? {
            Some(header) if header.id == member.member.id => Ok(match header.len {
                0 => Presence::Absent,
                len => Presence::Parameter(len),
            }),
            _ => Err(d.error(DecodeErrorKind::Header)),
        },
    }
}

/// Returns the default of a member that the writer did not send, or an error for a key member.
fn not_sent(member: &StructMember, d: &Decoder<'_>) -> Result<Location, DecodeError> {
    if member.member.key {
        return Err(d.error(DecodeErrorKind::MissingKey { id: member.member.id }));
    }
    Ok(if member.optional { Location::Absent } else { Location::Default })
}

/// Enters a member of a mutable structure: the last one with its id, as in decoding.
fn enter_by_id(structure: &Struct, index: usize, d: &mut Decoder<'_>) -> Result<Location, DecodeError> {
    let mut found = None;
    while let Some(header) = parameter::read(d)? {
        match structure.index_of(header.id) {
            Some(at) if at == index => {
                let mut inside = d.clone();
                enter_member(&mut inside, header.len)?;
                found = Some(inside);
            }
            None if header.must_understand => {
                return Err(d.error(DecodeErrorKind::MustUnderstand { id: header.id }));
            }
            _ => {}
        }
        d.take(header.len)?;
    }
    match found {
        Some(inside) => {
            *d = inside;
            Ok(Location::Here)
        }
        None => not_sent(&structure.members[index], d),
    }
}

fn enter_member(d: &mut Decoder<'_>, len: usize) -> Result<(), DecodeError> {
    match d.representation() {
        Representation::Xcdr1 => d.enter_parameter(len),
        Representation::Xcdr2 => d.enter(len),
    }
}

/// Returns length and alignment in bytes of types with a constant length.
fn fixed_len(node: &Node) -> Option<usize> {
    match node {
        Node::Primitive(primitive) => Some(primitive.len()),
        Node::Enum(enumeration) => Some(enumeration.holder_len()),
        Node::Bitmask(bitmask) => Some(bitmask.holder_len()),
        _ => None,
    }
}

/// Skips a value that begins with its length in bytes.
fn skip_counted(d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    let len = d.read_u32()? as usize;
    d.take(len).map(drop)
}

/// Skips the members of a mutable type in XCDR1.
fn skip_parameters(d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    while let Some(header) = parameter::read(d)? {
        d.take(header.len)?;
    }
    Ok(())
}
