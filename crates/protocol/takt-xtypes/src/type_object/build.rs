//! Construction of minimal and complete type objects from the parts of a type and the identifiers
//! of its member types (XTypes 1.3 §7.3.4). Derived types and [`definition`](crate::definition)s
//! use it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::annotation::{BuiltinMember, ParameterValue};
use super::complete::{
    Alias, AliasBody, BitBoundHeader, Bitflag, Bitmask, Complete, Discriminator, DiscriminatorDetail, ElementDetail,
    Enum, Header, Literal, MemberDetail, Struct, StructHeader, StructMember, TypeDetail, Union, UnionMember,
};
use super::form::CommonLiteral;
use super::kind::{MemberFlag, TypeFlag};
use super::minimal::{self, Minimal};
use super::{Object, TypeObject, TypeRegistry};
use crate::Extensibility;
use crate::definition::{Limit, ValueAnnotations};
use crate::describe::{TypeIdentifiers, name_hash};

/// Minimal and complete type object of a type.
#[derive(Clone, Debug)]
pub struct TypeObjects {
    pub(crate) minimal: Minimal,
    pub(crate) complete: Complete,
}

/// Struct without its members.
pub(crate) struct StructParts<'a> {
    pub name: &'a str,
    pub extensibility: Extensibility,
    pub nested: bool,
    pub autoid_hash: bool,
    /// Identifiers of the base struct, or none.
    pub base: TypeIdentifiers,
}

/// Member of a struct.
pub(crate) struct MemberParts<'a> {
    pub name: &'a str,
    pub id: u32,
    pub flags: MemberFlag,
    pub builtin: Option<Box<BuiltinMember>>,
    pub of: TypeIdentifiers,
}

/// Union without its cases.
pub(crate) struct UnionParts<'a> {
    pub name: &'a str,
    pub extensibility: Extensibility,
    pub nested: bool,
    pub autoid_hash: bool,
    pub key: bool,
    pub discriminator: TypeIdentifiers,
}

/// Case of a union.
pub(crate) struct CaseParts<'a> {
    pub name: &'a str,
    pub id: u32,
    pub flags: MemberFlag,
    pub labels: &'a [i32],
    pub builtin: Option<Box<BuiltinMember>>,
    pub of: TypeIdentifiers,
}

impl TypeObjects {
    /// Adds both to the program's own types. Returns their identifiers.
    pub(crate) fn keep_own(self, registry: &mut TypeRegistry) -> TypeIdentifiers {
        let minimal = TypeObject(Object::Minimal(self.minimal));
        let complete = TypeObject(Object::Complete(self.complete));
        let identifiers = TypeIdentifiers { minimal: minimal.identifier(), complete: complete.identifier() };
        registry.keep_own(identifiers.minimal.clone(), minimal);
        registry.keep_own(identifiers.complete.clone(), complete);
        identifiers
    }
}

impl StructParts<'_> {
    pub(crate) fn build(self, members: Vec<MemberParts<'_>>) -> TypeObjects {
        let struct_flags = type_flags(self.extensibility)
            .with(TypeFlag::IS_NESTED, self.nested)
            .with(TypeFlag::IS_AUTOID_HASH, self.autoid_hash);
        let mut minimal = minimal::Struct {
            // INTEROP(CycloneDDS 0.10.2): nested and autoid are also in the minimal form, while the
            // mask of Annex B leaves only the extensibility.
            struct_flags,
            header: minimal::StructHeader { base_type: self.base.minimal.0, detail: minimal::TypeDetail {} },
            member_seq: Vec::with_capacity(members.len()),
        };
        let mut complete = Struct {
            struct_flags,
            header: StructHeader { base_type: self.base.complete.0, detail: type_detail(self.name) },
            member_seq: Vec::with_capacity(members.len()),
        };
        for MemberParts { name, id, flags, builtin, of } in members {
            // XTypes 1.3 §7.2.2.4.4.4.8: key members imply must_understand, independent of their
            // headers.
            let member_flags = flags.with(MemberFlag::IS_MUST_UNDERSTAND, flags.contains(MemberFlag::IS_KEY));
            minimal.member_seq.push(minimal::StructMember {
                member_id: id,
                member_flags,
                member_type_id: of.minimal.0.clone(),
                detail: name_hash(name),
            });
            complete.member_seq.push(StructMember {
                member_id: id,
                member_flags,
                member_type_id: of.complete.0.clone(),
                detail: MemberDetail { ann_builtin: builtin, ..member_detail(name) },
            });
        }
        TypeObjects { minimal: Minimal::Struct(minimal), complete: Complete::Struct(complete) }
    }
}

impl UnionParts<'_> {
    pub(crate) fn build(self, cases: Vec<CaseParts<'_>>) -> TypeObjects {
        let union_flags = type_flags(self.extensibility)
            .with(TypeFlag::IS_NESTED, self.nested)
            .with(TypeFlag::IS_AUTOID_HASH, self.autoid_hash);
        let discriminator = self.discriminator;
        let member_flags =
            (MemberFlag::TRY_CONSTRUCT1 | MemberFlag::IS_MUST_UNDERSTAND).with(MemberFlag::IS_KEY, self.key);
        let mut minimal = minimal::Union {
            union_flags,
            header: minimal::Header::default(),
            discriminator: minimal::Discriminator {
                member_flags,
                type_id: discriminator.minimal.0,
                detail: minimal::TypeDetail {},
            },
            member_seq: Vec::with_capacity(cases.len()),
        };
        let mut complete = Union {
            union_flags,
            header: Header { detail: type_detail(self.name) },
            discriminator: Discriminator {
                member_flags,
                type_id: discriminator.complete.0,
                detail: DiscriminatorDetail::default(),
            },
            member_seq: Vec::with_capacity(cases.len()),
        };
        for CaseParts { name, id, flags, labels, builtin, of } in cases {
            minimal.member_seq.push(minimal::UnionMember {
                member_id: id,
                member_flags: flags,
                type_id: of.minimal.0.clone(),
                label_seq: labels.to_vec(),
                detail: name_hash(name),
            });
            complete.member_seq.push(UnionMember {
                member_id: id,
                member_flags: flags,
                type_id: of.complete.0.clone(),
                label_seq: labels.to_vec(),
                detail: MemberDetail { ann_builtin: builtin, ..member_detail(name) },
            });
        }
        TypeObjects { minimal: Minimal::Union(minimal), complete: Complete::Union(complete) }
    }
}

/// Builds an enumeration from names and values of its literals and the default.
pub(crate) fn enumeration<'a>(
    name: &str,
    extensibility: Extensibility,
    bit_bound: u16,
    literals: impl Iterator<Item = (&'a str, i32, bool)> + Clone,
) -> TypeObjects {
    let enum_flags = type_flags(extensibility);
    let literals = literals.map(|(name, value, default)| {
        (name, CommonLiteral { value, flags: MemberFlag(0).with(MemberFlag::IS_DEFAULT, default) })
    });
    let minimal = minimal::Enum {
        enum_flags,
        header: minimal::BitBoundHeader { bit_bound, detail: minimal::TypeDetail {} },
        literal_seq: literals
            .clone()
            .map(|(name, common)| minimal::Literal { common, detail: name_hash(name) })
            .collect(),
    };
    let complete = Enum {
        enum_flags,
        header: BitBoundHeader { bit_bound, detail: type_detail(name) },
        literal_seq: literals.map(|(name, common)| Literal { common, detail: member_detail(name) }).collect(),
    };
    TypeObjects { minimal: Minimal::Enum(minimal), complete: Complete::Enum(complete) }
}

/// Builds a bitmask from names and positions of its flags.
pub(crate) fn bitmask<'a>(
    name: &str,
    bit_bound: u16,
    named: impl Iterator<Item = (&'a str, u16)> + Clone,
) -> TypeObjects {
    // INTEROP(CycloneDDS 0.10.2): final, while Annex B says that no flags apply.
    let bitmask_flags = TypeFlag::IS_FINAL;
    let flags = MemberFlag(0);
    let minimal = minimal::Bitmask {
        bitmask_flags,
        header: minimal::BitBoundHeader { bit_bound, detail: minimal::TypeDetail {} },
        flag_seq: named
            .clone()
            .map(|(name, position)| minimal::Bitflag { position, flags, detail: name_hash(name) })
            .collect(),
    };
    let complete = Bitmask {
        bitmask_flags,
        header: BitBoundHeader { bit_bound, detail: type_detail(name) },
        flag_seq: named.map(|(name, position)| Bitflag { position, flags, detail: member_detail(name) }).collect(),
    };
    TypeObjects { minimal: Minimal::Bitmask(minimal), complete: Complete::Bitmask(complete) }
}

/// Builds an alias of a type.
pub(crate) fn alias(name: &str, of: TypeIdentifiers) -> TypeObjects {
    let (alias_flags, related_flags) = (TypeFlag(0), MemberFlag(0));
    let minimal = minimal::Alias {
        alias_flags,
        header: minimal::Header::default(),
        body: minimal::AliasBody { related_flags, related_type: of.minimal.0, detail: minimal::TypeDetail {} },
    };
    let body = AliasBody { related_flags, related_type: of.complete.0, detail: ElementDetail::default() };
    let complete = Alias { alias_flags, header: Header { detail: type_detail(name) }, body };
    TypeObjects { minimal: Minimal::Alias(minimal), complete: Complete::Alias(complete) }
}

fn type_detail(name: &str) -> TypeDetail {
    TypeDetail { type_name: String::from(name), ..TypeDetail::default() }
}

fn member_detail(name: &str) -> MemberDetail {
    MemberDetail { name: String::from(name), ..MemberDetail::default() }
}

/// Returns the annotations of a member that are not flags: `@hashid`, with the hashed name if it is
/// not the member's own, and the annotations of its values.
pub(crate) fn builtin(hash_id: Option<&str>, values: &ValueAnnotations) -> Option<Box<BuiltinMember>> {
    let builtin = BuiltinMember {
        unit: values.unit.clone(),
        min: values.min.map(parameter),
        max: values.max.map(parameter),
        hash_id: hash_id.map(String::from),
    };
    let is_empty =
        builtin.unit.is_none() && builtin.min.is_none() && builtin.max.is_none() && builtin.hash_id.is_none();
    (!is_empty).then(|| Box::new(builtin))
}

/// INTEROP(CycloneDDS 0.10.2): the parameter has the type of the literal, independent of the type
/// of the member.
fn parameter(limit: Limit) -> ParameterValue {
    let number = match limit {
        Limit::Float(number) => return ParameterValue::Float64(number),
        Limit::Integer(number) => number,
    };
    match (i32::try_from(number), u32::try_from(number), i64::try_from(number)) {
        (Ok(number), ..) => ParameterValue::Int32(number),
        (_, Ok(number), _) => ParameterValue::Uint32(number),
        (.., Ok(number)) => ParameterValue::Int64(number),
        _ if number < 0 => ParameterValue::Int64(i64::MIN),
        _ => ParameterValue::Uint64(u64::try_from(number).unwrap_or(u64::MAX)),
    }
}

fn type_flags(extensibility: Extensibility) -> TypeFlag {
    match extensibility {
        Extensibility::Final => TypeFlag::IS_FINAL,
        Extensibility::Appendable => TypeFlag::IS_APPENDABLE,
        Extensibility::Mutable => TypeFlag::IS_MUTABLE,
    }
}
