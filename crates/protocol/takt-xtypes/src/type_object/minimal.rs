//! Minimal type objects (XTypes 1.3 Annex B): the information for assignability, with hashes in
//! place of names.

use alloc::vec::Vec;

use takt_derive::DdsType;

use super::annotation::{NameHash, ParameterValue};
use super::form::{CommonLiteral, type_objects};
use super::identifier::Identifier;
use super::kind::*;

type_objects! {
    /// MinimalTypeObject.
    Minimal
}

/// MinimalTypeDetail. The other details of types and elements are empty as well.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct TypeDetail {}
pub(crate) type CollectionDetail = TypeDetail;
pub(crate) type DiscriminatorDetail = TypeDetail;
pub(crate) type ElementDetail = TypeDetail;

/// MinimalMemberDetail.
pub(crate) type MemberDetail = NameHash;
pub(crate) type ParameterDetail = NameHash;

/// MinimalAnnotationHeader.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct AnnotationHeader {}
