//! Complete type objects (XTypes 1.3 Annex B): types with names and annotations.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use takt_derive::DdsType;

use super::annotation::{Annotation, BuiltinMember, BuiltinType, ParameterValue};
use super::form::{CommonLiteral, type_objects};
use super::identifier::Identifier;
use super::kind::*;

type_objects! {
    /// CompleteTypeObject.
    Complete
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

/// Detail of a CompleteCollectionHeader.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct CollectionDetail {
    pub detail: Option<TypeDetail>,
}

/// Annotations of a CompleteDiscriminatorMember.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct DiscriminatorDetail {
    pub ann_builtin: Option<Box<BuiltinType>>,
    pub ann_custom: Option<Vec<Annotation>>,
}

/// CompleteElementDetail, and the annotations of a CompleteAliasBody.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct ElementDetail {
    pub ann_builtin: Option<Box<BuiltinMember>>,
    pub ann_custom: Option<Vec<Annotation>>,
}

/// CompleteAnnotationHeader.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct AnnotationHeader {
    #[dds(bound = 256)]
    pub annotation_name: String,
}

/// Name of a CompleteAnnotationParameter.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct ParameterDetail {
    #[dds(bound = 256)]
    pub name: String,
}
