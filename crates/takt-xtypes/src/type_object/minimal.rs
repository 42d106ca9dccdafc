//! Minimal type objects (XTypes 1.3 Annex B): the information for assignability, with hashes in
//! place of names.
//!
//! As in [`complete`](super::complete), structures that are final in Annex B are written out in
//! place.

use alloc::vec::Vec;

use takt_derive::DdsType;

use super::annotation::{NameHash, ParameterValue};
use super::complete::CommonLiteral;
use super::identifier::Identifier;
use super::kind::*;

/// MinimalTypeObject.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final", discriminator = "u8")]
pub(crate) enum Minimal {
    #[dds(case = TK_ALIAS)]
    Alias(Alias),
    #[dds(case = TK_ANNOTATION)]
    Annotation(AnnotationType),
    #[dds(case = TK_STRUCTURE)]
    Struct(Struct),
    #[dds(case = TK_UNION)]
    Union(Union),
    #[dds(case = TK_BITSET)]
    Bitset(Bitset),
    #[dds(case = TK_SEQUENCE)]
    Sequence(Sequence),
    #[dds(case = TK_ARRAY)]
    Array(Array),
    #[dds(case = TK_MAP)]
    Map(Map),
    #[dds(case = TK_ENUM)]
    Enum(Enum),
    #[dds(case = TK_BITMASK)]
    Bitmask(Bitmask),
}

/// Empty header: MinimalUnionHeader, MinimalAliasHeader, MinimalBitsetHeader,
/// MinimalAnnotationHeader.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct EmptyHeader {}

/// MinimalStructHeader.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct StructHeader {
    pub base_type: Identifier,
}

/// MinimalStructMember.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct StructMember {
    pub member_id: u32,
    pub member_flags: MemberFlag,
    pub member_type_id: Identifier,
    pub name_hash: NameHash,
}

/// MinimalStructType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Struct {
    pub struct_flags: TypeFlag,
    pub header: StructHeader,
    pub member_seq: Vec<StructMember>,
}

/// MinimalDiscriminatorMember.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Discriminator {
    pub member_flags: MemberFlag,
    pub type_id: Identifier,
}

/// MinimalUnionMember.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct UnionMember {
    pub member_id: u32,
    pub member_flags: MemberFlag,
    pub type_id: Identifier,
    pub label_seq: Vec<i32>,
    pub name_hash: NameHash,
}

/// MinimalUnionType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Union {
    pub union_flags: TypeFlag,
    pub header: EmptyHeader,
    pub discriminator: Discriminator,
    pub member_seq: Vec<UnionMember>,
}

/// MinimalAliasBody.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct AliasBody {
    pub related_flags: MemberFlag,
    pub related_type: Identifier,
}

/// MinimalAliasType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Alias {
    pub alias_flags: TypeFlag,
    pub header: EmptyHeader,
    pub body: AliasBody,
}

/// MinimalCollectionElement.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Element {
    pub element_flags: MemberFlag,
    pub type_id: Identifier,
}

/// MinimalCollectionHeader.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct CollectionHeader {
    pub bound: u32,
}

/// MinimalSequenceType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Sequence {
    pub collection_flag: TypeFlag,
    pub header: CollectionHeader,
    pub element: Element,
}

/// MinimalArrayHeader.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct ArrayHeader {
    pub bound_seq: Vec<u32>,
}

/// MinimalArrayType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Array {
    pub collection_flag: TypeFlag,
    pub header: ArrayHeader,
    pub element: Element,
}

/// MinimalMapType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Map {
    pub collection_flag: TypeFlag,
    pub header: CollectionHeader,
    pub key: Element,
    pub element: Element,
}

/// MinimalEnumeratedHeader, and MinimalBitmaskHeader.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct BitBoundHeader {
    pub bit_bound: u16,
}

/// MinimalEnumeratedLiteral.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Literal {
    pub common: CommonLiteral,
    pub name_hash: NameHash,
}

/// MinimalEnumeratedType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Enum {
    pub enum_flags: TypeFlag,
    pub header: BitBoundHeader,
    pub literal_seq: Vec<Literal>,
}

/// MinimalBitflag.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Bitflag {
    pub position: u16,
    pub flags: MemberFlag,
    pub name_hash: NameHash,
}

/// MinimalBitmaskType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Bitmask {
    pub bitmask_flags: TypeFlag,
    pub header: BitBoundHeader,
    pub flag_seq: Vec<Bitflag>,
}

/// MinimalBitfield.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Bitfield {
    pub position: u16,
    pub flags: MemberFlag,
    pub bitcount: u8,
    pub holder_type: u8,
    pub name_hash: NameHash,
}

/// MinimalBitsetType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Bitset {
    pub bitset_flags: TypeFlag,
    pub header: EmptyHeader,
    pub field_seq: Vec<Bitfield>,
}

/// MinimalAnnotationParameter.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct AnnotationParameter {
    pub member_flags: MemberFlag,
    pub member_type_id: Identifier,
    pub name_hash: NameHash,
    pub default_value: ParameterValue,
}

/// MinimalAnnotationType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct AnnotationType {
    pub annotation_flag: TypeFlag,
    pub header: EmptyHeader,
    pub member_seq: Vec<AnnotationParameter>,
}

impl Minimal {
    /// Passes the identifiers of all types that the type refers to to `visit`.
    pub(crate) fn for_each_identifier<'a>(&'a self, visit: &mut dyn FnMut(&'a Identifier)) {
        match self {
            Self::Alias(alias) => visit(&alias.body.related_type),
            Self::Annotation(annotation) => annotation.member_seq.iter().for_each(|m| visit(&m.member_type_id)),
            Self::Struct(structure) => {
                visit(&structure.header.base_type);
                structure.member_seq.iter().for_each(|member| visit(&member.member_type_id));
            }
            Self::Union(union) => {
                visit(&union.discriminator.type_id);
                union.member_seq.iter().for_each(|member| visit(&member.type_id));
            }
            Self::Sequence(Sequence { element, .. }) | Self::Array(Array { element, .. }) => visit(&element.type_id),
            Self::Map(map) => {
                visit(&map.key.type_id);
                visit(&map.element.type_id);
            }
            Self::Bitset(_) | Self::Enum(_) | Self::Bitmask(_) => {}
        }
    }
}
