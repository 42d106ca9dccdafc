//! Uniform view of a type whose definition is complete, minimal or contained in its identifier.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{Fuel, Inassignable};
use crate::Extensibility;
use crate::describe::name_hash;
use crate::type_object::annotation::NameHash;
use crate::type_object::complete::{Complete, MemberDetail};
use crate::type_object::identifier::{
    ArrayLarge, ArraySmall, Identifier, MapLarge, MapSmall, SequenceLarge, SequenceSmall,
};
use crate::type_object::kind::{MemberFlag, TypeFlag};
use crate::type_object::minimal::Minimal;
use crate::type_object::{Object, TypeIdentifier, TypeRegistry};

/// Maximum number of characters of a name in a reason.
const NAME_LEN_MAX: usize = 64;

/// Type with its aliases resolved.
pub(super) enum Shape<'a> {
    Primitive(Primitive),
    String {
        wide: bool,
        bound: Bound,
    },
    Sequence {
        bound: Bound,
        element: &'a Identifier,
    },
    Array {
        bounds: Vec<u32>,
        element: &'a Identifier,
    },
    Map {
        bound: Bound,
        key: &'a Identifier,
        element: &'a Identifier,
    },
    /// Enumeration; the extensibility is `None` if the definition has none.
    Enum {
        bit_bound: u16,
        extensibility: Option<Extensibility>,
        literals: Vec<Label<'a>>,
    },
    Bitmask {
        bit_bound: u16,
        flags: Vec<Label<'a>>,
    },
    Bitset {
        fields: Vec<(u16, u8)>,
    },
    Struct(Struct<'a>),
    Union(Union<'a>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Primitive {
    Boolean,
    /// `octet`: eight bits without interpretation.
    Octet,
    Uint8,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float32,
    Float64,
    Float128,
    Char8,
    Char16,
}

/// Bound of a string, sequence or map; `None` means unbounded.
pub(super) type Bound = Option<u32>;

/// Reports whether every length within the bound `writer` is within the bound `reader`.
pub(super) fn bound_covers(reader: Bound, writer: Bound) -> bool {
    reader.is_none_or(|reader| writer.is_some_and(|writer| writer <= reader))
}

fn bound(bound: u32) -> Bound {
    match bound {
        // INTEROP(CycloneDDS 11): unbounded collections in type objects of their own have this
        // bound.
        0 | u32::MAX => None,
        _ => Some(bound),
    }
}

/// Name, or the hash that a minimal type object keeps of it.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub text: Option<&'a str>,
    pub hash: NameHash,
}

/// Literal with its value, or flag with its position.
pub(super) struct Label<'a> {
    pub name: Name<'a>,
    pub value: i32,
}

pub(super) struct Struct<'a> {
    pub extensibility: Extensibility,
    pub base: &'a Identifier,
    pub members: Vec<Member<'a>>,
}

#[derive(Clone)]
pub(super) struct Member<'a> {
    pub id: u32,
    pub name: Name<'a>,
    pub key: bool,
    pub optional: bool,
    pub must_understand: bool,
    pub external: bool,
    /// Key flag as declared, even where it has no effect.
    pub declared_key: bool,
    pub of: &'a Identifier,
}

pub(super) struct Union<'a> {
    pub extensibility: Extensibility,
    pub discriminator: &'a Identifier,
    pub key: bool,
    pub cases: Vec<Case<'a>>,
}

pub(super) struct Case<'a> {
    pub id: u32,
    pub name: Name<'a>,
    pub default: bool,
    pub labels: &'a [i32],
    pub of: &'a Identifier,
}

impl<'a> From<&'a MemberDetail> for Name<'a> {
    fn from(detail: &'a MemberDetail) -> Self {
        Self { text: Some(&detail.name), hash: name_hash(&detail.name) }
    }
}

impl From<&NameHash> for Name<'_> {
    fn from(hash: &NameHash) -> Self {
        Self { text: None, hash: *hash }
    }
}

impl Name<'_> {
    /// Returns the text for a reason: the name, or a number in its place.
    pub(super) fn display_or(&self, what: &str, number: impl fmt::Display) -> String {
        match self.text {
            Some(text) => text.chars().filter(|c| !c.is_control()).take(NAME_LEN_MAX).collect(),
            None => alloc::format!("{what} {number}"),
        }
    }
}

impl Primitive {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Octet => "octet",
            Self::Uint8 => "uint8",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Uint16 => "uint16",
            Self::Int32 => "int32",
            Self::Uint32 => "uint32",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Float32 => "float",
            Self::Float64 => "double",
            Self::Float128 => "long double",
            Self::Char8 => "char",
            Self::Char16 => "wchar",
        }
    }

    /// Returns the number of bits of an unsigned integer.
    pub(super) fn unsigned_bits(self) -> Option<u16> {
        match self {
            Self::Octet | Self::Uint8 => Some(8),
            Self::Uint16 => Some(16),
            Self::Uint32 => Some(32),
            Self::Uint64 => Some(64),
            _ => None,
        }
    }
}

/// Kind of the type for display.
impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Primitive(primitive) => primitive.name(),
            Self::String { wide: false, .. } => "a string",
            Self::String { wide: true, .. } => "a wstring",
            Self::Sequence { .. } => "a sequence",
            Self::Array { .. } => "an array",
            Self::Map { .. } => "a map",
            Self::Enum { .. } => "an enum",
            Self::Bitmask { bit_bound, .. } => return write!(f, "a bitmask of {bit_bound} bits"),
            Self::Bitset { .. } => "a bitset",
            Self::Struct(_) => "a struct",
            Self::Union(_) => "a union",
        })
    }
}

/// Appendable is the default extensibility (XTypes 1.3 §7.3.3.1).
fn extensibility(flags: TypeFlag) -> Extensibility {
    if flags.contains(TypeFlag::IS_FINAL) {
        Extensibility::Final
    } else if flags.contains(TypeFlag::IS_MUTABLE) {
        Extensibility::Mutable
    } else {
        Extensibility::Appendable
    }
}

/// INTEROP(Fast DDS 2.9.1): sets no extensibility flag of an enum, as XTypes 1.3 Annex B specifies.
fn enum_extensibility(flags: TypeFlag) -> Option<Extensibility> {
    let is_set = [TypeFlag::IS_FINAL, TypeFlag::IS_APPENDABLE, TypeFlag::IS_MUTABLE].iter().any(|f| flags.contains(*f));
    is_set.then(|| extensibility(flags))
}

/// Returns the type of an identifier with its aliases resolved.
pub(super) fn resolve<'a>(
    mut identifier: &'a Identifier,
    types: &'a TypeRegistry,
    fuel: &mut Fuel,
) -> Result<Shape<'a>, Inassignable> {
    loop {
        fuel.burn(1)?;
        if let Some(shape) = described(identifier) {
            return Ok(shape);
        }
        let undefined = || Inassignable::Undefined { identifier: TypeIdentifier(identifier.clone()) };
        let object = types.definition(identifier).ok_or_else(undefined)?;
        identifier = match &object.0 {
            Object::Complete(Complete::Alias(alias)) => &alias.body.related_type,
            Object::Minimal(Minimal::Alias(alias)) => &alias.body.related_type,
            Object::Complete(complete) => return of_complete(complete, fuel)?.ok_or_else(undefined),
            Object::Minimal(minimal) => return of_minimal(minimal, fuel)?.ok_or_else(undefined),
        };
    }
}

/// Returns the type that the identifier fully describes, if it does.
fn described(identifier: &Identifier) -> Option<Shape<'_>> {
    let string = |wide, len| Shape::String { wide, bound: bound(len) };
    Some(match identifier {
        Identifier::Boolean => Shape::Primitive(Primitive::Boolean),
        Identifier::Byte => Shape::Primitive(Primitive::Octet),
        Identifier::Uint8 => Shape::Primitive(Primitive::Uint8),
        Identifier::Int8 => Shape::Primitive(Primitive::Int8),
        Identifier::Int16 => Shape::Primitive(Primitive::Int16),
        Identifier::Uint16 => Shape::Primitive(Primitive::Uint16),
        Identifier::Int32 => Shape::Primitive(Primitive::Int32),
        Identifier::Uint32 => Shape::Primitive(Primitive::Uint32),
        Identifier::Int64 => Shape::Primitive(Primitive::Int64),
        Identifier::Uint64 => Shape::Primitive(Primitive::Uint64),
        Identifier::Float32 => Shape::Primitive(Primitive::Float32),
        Identifier::Float64 => Shape::Primitive(Primitive::Float64),
        Identifier::Float128 => Shape::Primitive(Primitive::Float128),
        Identifier::Char8 => Shape::Primitive(Primitive::Char8),
        Identifier::Char16 => Shape::Primitive(Primitive::Char16),
        Identifier::String8Small(len) => string(false, u32::from(*len)),
        Identifier::String8Large(len) => string(false, *len),
        Identifier::String16Small(len) => string(true, u32::from(*len)),
        Identifier::String16Large(len) => string(true, *len),
        Identifier::SequenceSmall(SequenceSmall { bound: len, element, .. }) => {
            Shape::Sequence { bound: bound(u32::from(*len)), element: &element.0 }
        }
        Identifier::SequenceLarge(SequenceLarge { bound: len, element, .. }) => {
            Shape::Sequence { bound: bound(*len), element: &element.0 }
        }
        Identifier::ArraySmall(ArraySmall { bounds, element, .. }) => {
            Shape::Array { bounds: bounds.iter().map(|&bound| u32::from(bound)).collect(), element: &element.0 }
        }
        Identifier::ArrayLarge(ArrayLarge { bounds, element, .. }) => {
            Shape::Array { bounds: bounds.clone(), element: &element.0 }
        }
        Identifier::MapSmall(MapSmall { bound: len, key, element, .. }) => {
            Shape::Map { bound: bound(u32::from(*len)), key: &key.0, element: &element.0 }
        }
        Identifier::MapLarge(MapLarge { bound: len, key, element, .. }) => {
            Shape::Map { bound: bound(*len), key: &key.0, element: &element.0 }
        }
        Identifier::None | Identifier::Minimal(_) | Identifier::Complete(_) | Identifier::Component(_) => return None,
    })
}

fn member<'a>(id: u32, name: Name<'a>, flags: MemberFlag, of: &'a Identifier) -> Member<'a> {
    Member {
        id,
        name,
        key: flags.contains(MemberFlag::IS_KEY),
        optional: flags.contains(MemberFlag::IS_OPTIONAL),
        must_understand: flags.contains(MemberFlag::IS_MUST_UNDERSTAND),
        external: flags.contains(MemberFlag::IS_EXTERNAL),
        declared_key: flags.contains(MemberFlag::IS_KEY),
        of,
    }
}

/// Defines the shape of the type objects of one form.
macro_rules! shape_of {
    ($shape_of:ident, $object:ident) => {
        fn $shape_of<'a>(object: &'a $object, fuel: &mut Fuel) -> Result<Option<Shape<'a>>, Inassignable> {
            Ok(Some(match object {
                $object::Struct(structure) => {
                    fuel.burn(structure.member_seq.len())?;
                    let members = structure.member_seq.iter();
                    Shape::Struct(Struct {
                        extensibility: extensibility(structure.struct_flags),
                        base: &structure.header.base_type,
                        members: members
                            .map(|m| member(m.member_id, Name::from(&m.detail), m.member_flags, &m.member_type_id))
                            .collect(),
                    })
                }
                $object::Union(union) => {
                    fuel.burn(union.member_seq.iter().map(|case| 1 + case.label_seq.len()).sum())?;
                    let cases = union.member_seq.iter().map(|case| Case {
                        id: case.member_id,
                        name: Name::from(&case.detail),
                        default: case.member_flags.contains(MemberFlag::IS_DEFAULT),
                        labels: &case.label_seq,
                        of: &case.type_id,
                    });
                    Shape::Union(Union {
                        extensibility: extensibility(union.union_flags),
                        discriminator: &union.discriminator.type_id,
                        key: union.discriminator.member_flags.contains(MemberFlag::IS_KEY),
                        cases: cases.collect(),
                    })
                }
                $object::Sequence(sequence) => {
                    Shape::Sequence { bound: bound(sequence.header.bound), element: &sequence.element.type_id }
                }
                $object::Array(array) => {
                    Shape::Array { bounds: array.header.bound_seq.clone(), element: &array.element.type_id }
                }
                $object::Map(map) => {
                    Shape::Map { bound: bound(map.header.bound), key: &map.key.type_id, element: &map.element.type_id }
                }
                $object::Enum(enumeration) => {
                    fuel.burn(enumeration.literal_seq.len())?;
                    let literals = enumeration.literal_seq.iter();
                    Shape::Enum {
                        bit_bound: enumeration.header.bit_bound,
                        extensibility: enum_extensibility(enumeration.enum_flags),
                        literals: literals
                            .map(|l| Label { name: Name::from(&l.detail), value: l.common.value })
                            .collect(),
                    }
                }
                $object::Bitmask(bitmask) => {
                    fuel.burn(bitmask.flag_seq.len())?;
                    let flags = bitmask.flag_seq.iter();
                    Shape::Bitmask {
                        bit_bound: bitmask.header.bit_bound,
                        flags: flags
                            .map(|f| Label { name: Name::from(&f.detail), value: i32::from(f.position) })
                            .collect(),
                    }
                }
                $object::Bitset(bitset) => Shape::Bitset {
                    fields: bitset.field_seq.iter().map(|field| (field.position, field.bitcount)).collect(),
                },
                $object::Alias(_) | $object::Annotation(_) => return Ok(None),
            }))
        }
    };
}
shape_of!(of_complete, Complete);
shape_of!(of_minimal, Minimal);
