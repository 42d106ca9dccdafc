//! Arena of the types in a dynamic type. Types refer to each other by index, so they may be
//! recursive.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::DynamicData;
use super::layout::Layout;
pub(super) use crate::definition::TryConstruct;
use crate::structure::Member;
use crate::type_object::annotation::BuiltinMember;
use crate::{Extensibility, Representation, WString};

/// Index of a type in [`Types`].
pub(super) type NodeId = usize;

/// Primitive type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Primitive {
    Bool,
    Byte,
    U8,
    I8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    Char8,
    Char16,
}

/// Type.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Primitive(Primitive),
    String { bound: Option<usize> },
    WString { bound: Option<usize> },
    Enum(Enum),
    Bitmask(Bitmask),
    Sequence { element: NodeId, bound: Option<usize> },
    Array { element: NodeId, dimensions: Vec<u32>, len: usize },
    Map { key: NodeId, element: NodeId, bound: Option<usize> },
    Struct(Struct),
    Union(Union),
    Alias { name: Arc<str>, target: NodeId },
}

#[derive(Clone, Debug)]
pub(super) struct Enum {
    pub name: Arc<str>,
    /// Extensibility; `None` if the type object has none.
    pub extensibility: Option<Extensibility>,
    pub bit_bound: u16,
    pub literals: Vec<(Arc<str>, i32)>,
    /// Index of the literal that is marked as the default. Without a mark, the first literal is the
    /// default.
    pub default: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Bitmask {
    pub name: Arc<str>,
    pub bit_bound: u16,
    pub flags: Vec<(Arc<str>, u16)>,
}

#[derive(Clone, Debug)]
pub(super) struct Struct {
    pub name: Arc<str>,
    pub extensibility: Extensibility,
    pub nested: bool,
    pub autoid_hash: bool,
    pub base: Option<NodeId>,
    /// All members, those of the base first.
    pub members: Vec<StructMember>,
    /// Number of members of the base.
    pub inherited: usize,
    /// Indexes of all members by ascending id.
    pub by_id: Vec<usize>,
    pub has_key: bool,
}

#[derive(Clone, Debug)]
pub(super) struct StructMember {
    pub name: Arc<str>,
    pub member: Member,
    pub optional: bool,
    pub external: bool,
    pub try_construct: TryConstruct,
    pub builtin: Option<Arc<BuiltinMember>>,
    pub node: NodeId,
}

#[derive(Clone, Debug)]
pub(super) struct Union {
    pub name: Arc<str>,
    pub extensibility: Extensibility,
    pub nested: bool,
    pub autoid_hash: bool,
    pub discriminator: NodeId,
    pub discriminator_is_key: bool,
    pub cases: Vec<Case>,
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub name: Arc<str>,
    pub id: u32,
    pub labels: Vec<i32>,
    pub builtin: Option<Arc<BuiltinMember>>,
    pub default: bool,
    pub external: bool,
    pub try_construct: TryConstruct,
    pub node: NodeId,
}

/// All types of a dynamic type, and their layouts.
#[derive(Clone, Debug, Default)]
pub(super) struct Types {
    pub nodes: Vec<Node>,
    pub layouts: Vec<Layout>,
}

impl Primitive {
    /// Returns the length in bytes. It is also the alignment before the representation caps it.
    pub(super) const fn len(self) -> usize {
        match self {
            Self::Bool | Self::Byte | Self::U8 | Self::I8 | Self::Char8 => 1,
            Self::I16 | Self::U16 | Self::Char16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    fn initial(self) -> DynamicData {
        match self {
            Self::Bool => DynamicData::Bool(false),
            Self::Byte | Self::U8 => DynamicData::U8(0),
            Self::I8 => DynamicData::I8(0),
            Self::I16 => DynamicData::I16(0),
            Self::U16 => DynamicData::U16(0),
            Self::I32 => DynamicData::I32(0),
            Self::U32 => DynamicData::U32(0),
            Self::I64 => DynamicData::I64(0),
            Self::U64 => DynamicData::U64(0),
            Self::F32 => DynamicData::F32(0.0),
            Self::F64 => DynamicData::F64(0.0),
            Self::Char8 => DynamicData::Char8(0),
            Self::Char16 => DynamicData::Char16(0),
        }
    }

    /// Returns the length code of a member of `len` bytes.
    const fn length_code(len: usize) -> u8 {
        match len {
            1 => 0,
            2 => 1,
            4 => 2,
            _ => 3,
        }
    }
}

impl Enum {
    /// Returns the length in bytes of the holder of a literal (XTypes 1.3 §7.3.1.2.1.5).
    pub(super) fn holder_len(&self) -> usize {
        match self.bit_bound {
            0..=8 => 1,
            9..=16 => 2,
            _ => 4,
        }
    }

    pub(super) fn literal(&self, value: i32) -> Option<DynamicData> {
        let (name, value) = self.literals.iter().find(|(_, literal)| *literal == value)?;
        Some(DynamicData::Enum { name: name.clone(), value: *value })
    }
}

impl Bitmask {
    /// Returns the length in bytes of the holder of the flags.
    pub(super) fn holder_len(&self) -> usize {
        match self.bit_bound {
            0..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            _ => 8,
        }
    }

    pub(super) fn value(&self, value: u64) -> DynamicData {
        let set = self.flags.iter().filter(|(_, position)| value >> position & 1 != 0);
        DynamicData::Bitmask { value, flags: set.map(|(name, _)| name.clone()).collect() }
    }
}

impl Bitmask {
    /// Returns the value with this number. Bits beyond the bound are kept if the holder has room
    /// for them.
    pub(super) fn number(&self, number: i128) -> Option<DynamicData> {
        let value: u64 = number.try_into().ok()?;
        let fits = self.holder_len() == 8 || value >> (8 * self.holder_len()) == 0;
        fits.then(|| self.value(value))
    }
}

impl Struct {
    /// Returns the index of the member with this id.
    pub(super) fn index_of(&self, id: u32) -> Option<usize> {
        let found = self.by_id.binary_search_by_key(&id, |&index| self.members[index].member.id);
        found.ok().map(|position| self.by_id[position])
    }
}

impl Union {
    /// Returns the case that a discriminator selects.
    pub(super) fn select(&self, discriminator: i128) -> Option<&Case> {
        let labeled = |case: &&Case| case.labels.iter().any(|&label| i128::from(label) == discriminator);
        self.cases.iter().find(labeled).or_else(|| self.cases.iter().find(|case| case.default))
    }

    /// Returns a discriminator that selects a case: its first label, or the smallest number that is
    /// not a label.
    pub(super) fn label_of(&self, case: &Case) -> i128 {
        match case.labels.first() {
            Some(&label) => i128::from(label),
            None => {
                let is_label = |number| self.cases.iter().any(|case| case.labels.contains(&number));
                i128::from((0..).find(|&number| !is_label(number)).unwrap_or(0))
            }
        }
    }
}

impl Types {
    /// Returns a type with its aliases resolved.
    pub(super) fn resolved(&self, mut id: NodeId) -> &Node {
        // Terminates, since a type that is an alias of itself is refused when it is built.
        while let Node::Alias { target, .. } = self.nodes[id] {
            id = target;
        }
        &self.nodes[id]
    }

    /// Returns the name of a named type.
    pub(super) fn name(&self, id: NodeId) -> &str {
        match &self.nodes[id] {
            Node::Enum(Enum { name, .. })
            | Node::Bitmask(Bitmask { name, .. })
            | Node::Struct(Struct { name, .. })
            | Node::Union(Union { name, .. })
            | Node::Alias { name, .. } => name,
            _ => "",
        }
    }

    /// Returns the extensibility of a structure or union; other types are final.
    pub(super) fn extensibility(&self, id: NodeId) -> Extensibility {
        match self.resolved(id) {
            Node::Struct(structure) => structure.extensibility,
            Node::Union(union) => union.extensibility,
            _ => Extensibility::Final,
        }
    }

    /// Returns the primitive type, if the type is one.
    pub(super) fn primitive(&self, id: NodeId) -> Option<Primitive> {
        match self.resolved(id) {
            Node::Primitive(primitive) => Some(*primitive),
            _ => None,
        }
    }

    /// Reports whether a collection of this element type is kept as bytes.
    pub(super) fn is_octet(&self, id: NodeId) -> bool {
        matches!(self.primitive(id), Some(Primitive::Byte | Primitive::U8))
    }

    /// Reports whether a collection of these element types has a DHEADER.
    pub(super) fn is_delimited(&self, representation: Representation, elements: &[NodeId]) -> bool {
        representation == Representation::Xcdr2 && elements.iter().any(|&element| self.primitive(element).is_none())
    }

    /// Reports whether an array of this element type has a DHEADER. An array within an array is
    /// part of its dimensions, even if it has a name, and has no DHEADER.
    ///
    /// INTEROP(CycloneDDS 0.10.2, CycloneDDS 11.0.1): `T x[3]` with `typedef char T[2]` is encoded
    /// like `char x[3][2]`.
    pub(super) fn is_array_delimited(&self, representation: Representation, element: NodeId) -> bool {
        let mut element = element;
        while let Node::Array { element: inner, .. } = self.resolved(element) {
            element = *inner;
        }
        self.is_delimited(representation, &[element])
    }

    /// Returns the length code of a member of this type (XTypes 1.3 §7.4.3.4.2).
    pub(super) fn length_code(&self, id: NodeId) -> u8 {
        match self.resolved(id) {
            Node::Primitive(primitive) => Primitive::length_code(primitive.len()),
            Node::Enum(enumeration) => Primitive::length_code(enumeration.holder_len()),
            Node::Bitmask(bitmask) => Primitive::length_code(bitmask.holder_len()),
            Node::String { .. } | Node::WString { .. } => 5,
            Node::Sequence { element, .. } => match self.primitive(*element).map(Primitive::len) {
                None | Some(1) => 5, // the DHEADER or the octet count doubles as length
                Some(4) => 6,
                Some(8) => 7,
                Some(_) => 4,
            },
            Node::Array { element, .. } => {
                Self::delimited_code(self.is_array_delimited(Representation::Xcdr2, *element))
            }
            Node::Map { key, element, .. } => {
                Self::delimited_code(self.is_delimited(Representation::Xcdr2, &[*key, *element]))
            }
            Node::Struct(_) | Node::Union(_) | Node::Alias { .. } => 4,
        }
    }

    fn delimited_code(is_delimited: bool) -> u8 {
        if is_delimited { 5 } else { 4 }
    }

    /// Returns the default value of a type. The recursion is bounded, because the [`Layout`]s could
    /// be computed.
    pub(super) fn initial(&self, id: NodeId) -> DynamicData {
        match self.resolved(id) {
            Node::Primitive(primitive) => primitive.initial(),
            Node::String { .. } => DynamicData::String(String::new()),
            Node::WString { .. } => DynamicData::WString(WString::default()),
            Node::Enum(enumeration) => {
                let (name, value) = &enumeration.literals[enumeration.default.unwrap_or(0)];
                DynamicData::Enum { name: name.clone(), value: *value }
            }
            Node::Bitmask(bitmask) => bitmask.value(0),
            Node::Sequence { element, .. } if self.is_octet(*element) => DynamicData::Bytes(Vec::new()),
            Node::Sequence { .. } => DynamicData::Sequence(Vec::new()),
            Node::Array { element, len, .. } if self.is_octet(*element) => DynamicData::Bytes(vec![0; *len]),
            Node::Array { element, len, .. } => DynamicData::Sequence(vec![self.initial(*element); *len]),
            Node::Map { .. } => DynamicData::Map(Vec::new()),
            Node::Struct(structure) => {
                let members = structure.members.iter();
                DynamicData::Struct(members.map(|m| (m.name.clone(), self.initial_member(m))).collect())
            }
            Node::Union(union) => {
                let (discriminator, case) = self.initial_case(union);
                let member = case.map(|case| (case.name.clone(), Box::new(self.initial(case.node))));
                DynamicData::Union { discriminator: Box::new(discriminator), member }
            }
            Node::Alias { target, .. } => self.initial(*target),
        }
    }

    /// Returns the default discriminator of a union and the case that it selects. That is the first
    /// case that a discriminator can select, since the discriminator's type may lack the value of a
    /// label.
    pub(super) fn initial_case<'a>(&self, union: &'a Union) -> (DynamicData, Option<&'a Case>) {
        let possible = union.cases.iter().find_map(|case| self.number(union.discriminator, union.label_of(case)));
        let discriminator = possible.unwrap_or_else(|| self.initial(union.discriminator));
        let case = discriminator.as_integer().and_then(|number| union.select(number));
        (discriminator, case)
    }

    /// Returns the default value of a member: absent if it is optional.
    pub(super) fn initial_member(&self, member: &StructMember) -> DynamicData {
        if member.optional { DynamicData::Absent } else { self.initial(member.node) }
    }

    /// Returns the discriminator with this number, or the default if its type lacks the number.
    pub(super) fn discriminator(&self, union: &Union, number: i128) -> DynamicData {
        self.number(union.discriminator, number).unwrap_or_else(|| self.initial(union.discriminator))
    }

    /// Returns the value with this number of an integer type, a character, a boolean, an
    /// enumeration or a bitmask.
    pub(super) fn number(&self, id: NodeId, number: i128) -> Option<DynamicData> {
        Some(match self.resolved(id) {
            Node::Primitive(primitive) => match primitive {
                Primitive::Bool => DynamicData::Bool(match number {
                    0 => false,
                    1 => true,
                    _ => return None,
                }),
                Primitive::Byte | Primitive::U8 => DynamicData::U8(number.try_into().ok()?),
                Primitive::I8 => DynamicData::I8(number.try_into().ok()?),
                Primitive::I16 => DynamicData::I16(number.try_into().ok()?),
                Primitive::U16 => DynamicData::U16(number.try_into().ok()?),
                Primitive::I32 => DynamicData::I32(number.try_into().ok()?),
                Primitive::U32 => DynamicData::U32(number.try_into().ok()?),
                Primitive::I64 => DynamicData::I64(number.try_into().ok()?),
                Primitive::U64 => DynamicData::U64(number.try_into().ok()?),
                Primitive::Char8 => DynamicData::Char8(number.try_into().ok()?),
                Primitive::Char16 => DynamicData::Char16(number.try_into().ok()?),
                Primitive::F32 | Primitive::F64 => return None,
            },
            Node::Enum(enumeration) => enumeration.literal(number.try_into().ok()?)?,
            Node::Bitmask(bitmask) => bitmask.number(number)?,
            _ => return None,
        })
    }
}
