//! Applied annotations, parsed and serialized unchanged, so that a type object keeps its hash
//! (XTypes 1.3 Annex B).

use alloc::string::String;
use alloc::vec::Vec;

use takt_derive::DdsType;

use super::identifier::Identifier;
use super::kind::*;
use crate::Char8;
use crate::Char16;

/// First four octets of the MD5 of a name.
pub(crate) type NameHash = [u8; 4];

/// AnnotationParameterValue.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final", discriminator = "u8")]
pub(crate) enum ParameterValue {
    #[dds(case = TK_BOOLEAN)]
    Boolean(bool),
    #[dds(case = TK_BYTE)]
    Byte(u8),
    #[dds(case = TK_INT8)]
    Int8(i8),
    #[dds(case = TK_UINT8)]
    Uint8(u8),
    #[dds(case = TK_INT16)]
    Int16(i16),
    #[dds(case = TK_UINT16)]
    Uint16(u16),
    #[dds(case = TK_INT32)]
    Int32(i32),
    #[dds(case = TK_UINT32)]
    Uint32(u32),
    #[dds(case = TK_INT64)]
    Int64(i64),
    #[dds(case = TK_UINT64)]
    Uint64(u64),
    #[dds(case = TK_FLOAT32)]
    Float32(f32),
    #[dds(case = TK_FLOAT64)]
    Float64(f64),
    #[dds(case = TK_CHAR8)]
    Char8(Char8),
    #[dds(case = TK_CHAR16)]
    Char16(Char16),
    #[dds(case = TK_ENUM)]
    Enumerated(i32),
    #[dds(case = TK_STRING8, bound = 128)]
    String8(String),
}

/// AppliedAnnotationParameter.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Parameter {
    pub paramname_hash: NameHash,
    pub value: ParameterValue,
}

/// AppliedAnnotation.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct Annotation {
    pub annotation_typeid: Identifier,
    pub param_seq: Option<Vec<Parameter>>,
}

/// AppliedVerbatimAnnotation.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Verbatim {
    #[dds(bound = 32)]
    pub placement: String,
    #[dds(bound = 32)]
    pub language: String,
    pub text: String,
}

/// AppliedBuiltinMemberAnnotations.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct BuiltinMember {
    pub unit: Option<String>,
    pub min: Option<ParameterValue>,
    pub max: Option<ParameterValue>,
    pub hash_id: Option<String>,
}

/// AppliedBuiltinTypeAnnotations.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested)]
pub(crate) struct BuiltinType {
    pub verbatim: Option<Verbatim>,
}
