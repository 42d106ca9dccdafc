//! Complete type objects (XTypes 1.3 Annex B): types with names and annotations.
//!
//! Structures that the IDL of Annex B declares final and nests (CommonStructMember,
//! CompleteMemberDetail, ...) are written out in place: a final structure adds no bytes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use takt_derive::DdsType;

use super::annotation::{Annotation, BuiltinMember, BuiltinType, ParameterValue};
use super::identifier::Identifier;
use super::kind::*;

/// CompleteTypeObject.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final", discriminator = "u8")]
pub(crate) enum Complete {
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

/// CompleteTypeDetail.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct TypeDetail {
    pub ann_builtin: Option<Box<BuiltinType>>,
    pub ann_custom: Option<Vec<Annotation>>,
    #[dds(bound = 256)]
    pub type_name: String,
}

/// CompleteMemberDetail.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct MemberDetail {
    #[dds(bound = 256)]
    pub name: String,
    pub ann_builtin: Option<Box<BuiltinMember>>,
    pub ann_custom: Option<Vec<Annotation>>,
}

/// Header that consists of the detail: CompleteUnionHeader, CompleteAliasHeader,
/// CompleteBitsetHeader.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Header {
    pub detail: TypeDetail,
}

/// CompleteStructHeader.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct StructHeader {
    pub base_type: Identifier,
    pub detail: TypeDetail,
}

/// CompleteStructMember.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct StructMember {
    pub member_id: u32,
    pub member_flags: MemberFlag,
    pub member_type_id: Identifier,
    pub detail: MemberDetail,
}

/// CompleteStructType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Struct {
    pub struct_flags: TypeFlag,
    pub header: StructHeader,
    pub member_seq: Vec<StructMember>,
}

/// CompleteDiscriminatorMember.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Discriminator {
    pub member_flags: MemberFlag,
    pub type_id: Identifier,
    pub ann_builtin: Option<Box<BuiltinType>>,
    pub ann_custom: Option<Vec<Annotation>>,
}

/// CompleteUnionMember.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct UnionMember {
    pub member_id: u32,
    pub member_flags: MemberFlag,
    pub type_id: Identifier,
    pub label_seq: Vec<i32>,
    pub detail: MemberDetail,
}

/// CompleteUnionType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Union {
    pub union_flags: TypeFlag,
    pub header: Header,
    pub discriminator: Discriminator,
    pub member_seq: Vec<UnionMember>,
}

/// CompleteAliasBody.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct AliasBody {
    pub related_flags: MemberFlag,
    pub related_type: Identifier,
    pub ann_builtin: Option<Box<BuiltinMember>>,
    pub ann_custom: Option<Vec<Annotation>>,
}

/// CompleteAliasType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Alias {
    pub alias_flags: TypeFlag,
    pub header: Header,
    pub body: AliasBody,
}

/// CompleteCollectionElement.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Element {
    pub element_flags: MemberFlag,
    pub type_id: Identifier,
    pub ann_builtin: Option<Box<BuiltinMember>>,
    pub ann_custom: Option<Vec<Annotation>>,
}

/// CompleteCollectionHeader.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct CollectionHeader {
    pub bound: u32,
    pub detail: Option<TypeDetail>,
}

/// CompleteSequenceType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Sequence {
    pub collection_flag: TypeFlag,
    pub header: CollectionHeader,
    pub element: Element,
}

/// CompleteArrayHeader.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct ArrayHeader {
    pub bound_seq: Vec<u32>,
    pub detail: TypeDetail,
}

/// CompleteArrayType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Array {
    pub collection_flag: TypeFlag,
    pub header: ArrayHeader,
    pub element: Element,
}

/// CompleteMapType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Map {
    pub collection_flag: TypeFlag,
    pub header: CollectionHeader,
    pub key: Element,
    pub element: Element,
}

/// CompleteEnumeratedHeader, and CompleteBitmaskHeader.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct BitBoundHeader {
    pub bit_bound: u16,
    pub detail: TypeDetail,
}

/// CommonEnumeratedLiteral.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct CommonLiteral {
    pub value: i32,
    pub flags: MemberFlag,
}

/// CompleteEnumeratedLiteral.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Literal {
    pub common: CommonLiteral,
    pub detail: MemberDetail,
}

/// CompleteEnumeratedType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Enum {
    pub enum_flags: TypeFlag,
    pub header: BitBoundHeader,
    pub literal_seq: Vec<Literal>,
}

/// CompleteBitflag.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Bitflag {
    pub position: u16,
    pub flags: MemberFlag,
    pub detail: MemberDetail,
}

/// CompleteBitmaskType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Bitmask {
    pub bitmask_flags: TypeFlag,
    pub header: BitBoundHeader,
    pub flag_seq: Vec<Bitflag>,
}

/// CompleteBitfield.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Bitfield {
    pub position: u16,
    pub flags: MemberFlag,
    pub bitcount: u8,
    pub holder_type: u8,
    pub detail: MemberDetail,
}

/// CompleteBitsetType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Bitset {
    pub bitset_flags: TypeFlag,
    pub header: Header,
    pub field_seq: Vec<Bitfield>,
}

/// CompleteAnnotationHeader.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct AnnotationHeader {
    #[dds(bound = 256)]
    pub annotation_name: String,
}

/// CompleteAnnotationParameter.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct AnnotationParameter {
    pub member_flags: MemberFlag,
    pub member_type_id: Identifier,
    #[dds(bound = 256)]
    pub name: String,
    pub default_value: ParameterValue,
}

/// CompleteAnnotationType.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct AnnotationType {
    pub annotation_flag: TypeFlag,
    pub header: AnnotationHeader,
    pub member_seq: Vec<AnnotationParameter>,
}

impl Complete {
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
