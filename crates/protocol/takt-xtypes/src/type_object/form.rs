//! Definitions that complete and minimal type objects share (XTypes 1.3 Annex B).
//!
//! [`complete`](super::complete) and [`minimal`](super::minimal) define the details in which they
//! differ: names and annotations, or hashes of names. Structures that the IDL of Annex B declares
//! final and nests (CommonStructMember, CommonCollectionElement, ...) are written out in place, and
//! a detail that a form lacks is an empty final structure: a final structure adds no bytes.

use takt_derive::DdsType;

use super::kind::MemberFlag;

/// CommonEnumeratedLiteral.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct CommonLiteral {
    pub value: i32,
    pub flags: MemberFlag,
}

/// Defines the type objects of one form. Each definition has the name of Annex B without the form:
/// `StructMember` is CompleteStructMember or MinimalStructMember. The module that invokes the macro
/// has these details:
///
/// | detail | of |
/// |---|---|
/// | `TypeDetail` | type |
/// | `CollectionDetail` | sequence, map: an optional detail of a type |
/// | `MemberDetail` | member of a struct or union, literal, flag, bitfield |
/// | `DiscriminatorDetail`, `ElementDetail` | discriminator; element of a collection, type of an alias |
/// | `AnnotationHeader`, `ParameterDetail` | annotation and its parameters |
macro_rules! type_objects {
    ($(#[$meta:meta])* $object:ident) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested, extensibility = "final", discriminator = "u8")]
        pub(crate) enum $object {
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

        /// UnionHeader, AliasHeader, BitsetHeader.
        #[derive(Clone, Debug, Default, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct Header {
            pub detail: TypeDetail,
        }

        /// StructHeader.
        #[derive(Clone, Debug, Default, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct StructHeader {
            pub base_type: Identifier,
            pub detail: TypeDetail,
        }

        /// StructMember.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct StructMember {
            pub member_id: u32,
            pub member_flags: MemberFlag,
            pub member_type_id: Identifier,
            pub detail: MemberDetail,
        }

        /// StructType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested, extensibility = "final")]
        pub(crate) struct Struct {
            pub struct_flags: TypeFlag,
            pub header: StructHeader,
            pub member_seq: Vec<StructMember>,
        }

        /// DiscriminatorMember.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct Discriminator {
            pub member_flags: MemberFlag,
            pub type_id: Identifier,
            pub detail: DiscriminatorDetail,
        }

        /// UnionMember.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct UnionMember {
            pub member_id: u32,
            pub member_flags: MemberFlag,
            pub type_id: Identifier,
            pub label_seq: Vec<i32>,
            pub detail: MemberDetail,
        }

        /// UnionType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested, extensibility = "final")]
        pub(crate) struct Union {
            pub union_flags: TypeFlag,
            pub header: Header,
            pub discriminator: Discriminator,
            pub member_seq: Vec<UnionMember>,
        }

        /// AliasBody.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct AliasBody {
            pub related_flags: MemberFlag,
            pub related_type: Identifier,
            pub detail: ElementDetail,
        }

        /// AliasType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested, extensibility = "final")]
        pub(crate) struct Alias {
            pub alias_flags: TypeFlag,
            pub header: Header,
            pub body: AliasBody,
        }

        /// CollectionElement.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct Element {
            pub element_flags: MemberFlag,
            pub type_id: Identifier,
            pub detail: ElementDetail,
        }

        /// CollectionHeader.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct CollectionHeader {
            pub bound: u32,
            pub detail: CollectionDetail,
        }

        /// SequenceType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested, extensibility = "final")]
        pub(crate) struct Sequence {
            pub collection_flag: TypeFlag,
            pub header: CollectionHeader,
            pub element: Element,
        }

        /// ArrayHeader.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct ArrayHeader {
            pub bound_seq: Vec<u32>,
            pub detail: TypeDetail,
        }

        /// ArrayType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct Array {
            pub collection_flag: TypeFlag,
            pub header: ArrayHeader,
            pub element: Element,
        }

        /// MapType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested, extensibility = "final")]
        pub(crate) struct Map {
            pub collection_flag: TypeFlag,
            pub header: CollectionHeader,
            pub key: Element,
            pub element: Element,
        }

        /// EnumeratedHeader, and BitmaskHeader.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct BitBoundHeader {
            pub bit_bound: u16,
            pub detail: TypeDetail,
        }

        /// EnumeratedLiteral.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct Literal {
            pub common: CommonLiteral,
            pub detail: MemberDetail,
        }

        /// EnumeratedType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested, extensibility = "final")]
        pub(crate) struct Enum {
            pub enum_flags: TypeFlag,
            pub header: BitBoundHeader,
            pub literal_seq: Vec<Literal>,
        }

        /// Bitflag.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct Bitflag {
            pub position: u16,
            pub flags: MemberFlag,
            pub detail: MemberDetail,
        }

        /// BitmaskType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct Bitmask {
            pub bitmask_flags: TypeFlag,
            pub header: BitBoundHeader,
            pub flag_seq: Vec<Bitflag>,
        }

        /// Bitfield.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct Bitfield {
            pub position: u16,
            pub flags: MemberFlag,
            pub bitcount: u8,
            pub holder_type: u8,
            pub detail: MemberDetail,
        }

        /// BitsetType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct Bitset {
            pub bitset_flags: TypeFlag,
            pub header: Header,
            pub field_seq: Vec<Bitfield>,
        }

        /// AnnotationParameter.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested)]
        pub(crate) struct AnnotationParameter {
            pub member_flags: MemberFlag,
            pub member_type_id: Identifier,
            pub detail: ParameterDetail,
            pub default_value: ParameterValue,
        }

        /// AnnotationType.
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "crate", nested, extensibility = "final")]
        pub(crate) struct AnnotationType {
            pub annotation_flag: TypeFlag,
            pub header: AnnotationHeader,
            pub member_seq: Vec<AnnotationParameter>,
        }

        impl $object {
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
    };
}
pub(super) use type_objects;
