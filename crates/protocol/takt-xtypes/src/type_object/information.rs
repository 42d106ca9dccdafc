//! TypeInformation that an endpoint announces of its type (XTypes 1.3 §7.6.3.2.2), and the pairs in
//! replies of the lookup service.

use alloc::vec::Vec;

use takt_derive::DdsType;

use super::identifier::Identifier;
use super::object::Object;
use super::{TypeIdentifier, TypeObject, decode_plain, encode_plain};
use crate::DecodeError;

/// Value of PID_TYPE_INFORMATION (0x0075): both identifiers of the type, and of the types that it
/// depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeInformation {
    /// Minimal form.
    pub minimal: TypeIdentifierWithDependencies,
    /// Complete form. Its `type_id` is none if the peer announces no complete form.
    pub complete: TypeIdentifierWithDependencies,
}

/// Type with its dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeIdentifierWithDependencies {
    /// Identifier of the type.
    pub type_id: TypeIdentifier,
    /// Length of its type object in bytes.
    pub serialized_size: u32,
    /// Number of direct and indirect dependencies; -1 if unknown.
    pub dependent_count: i32,
    /// Listed dependencies, with the lengths of their type objects. The list may be incomplete.
    pub dependencies: Vec<(TypeIdentifier, u32)>,
}

/// Type object with its identifier, as peers send it. A final structure on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeIdentifierTypeObjectPair {
    /// Identifier.
    pub type_identifier: TypeIdentifier,
    /// Definition. It is not verified against the identifier; [`TypeRegistry`](super::TypeRegistry)
    /// does that.
    pub type_object: TypeObject,
}

/// TypeIdentifierWithSize of Annex B.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(crate = "crate", nested)]
struct WithSize {
    type_id: Identifier,
    typeobject_serialized_size: u32,
}

/// TypeIdentifierWithDependencies of Annex B.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(crate = "crate", nested)]
struct WithDependencies {
    typeid_with_size: WithSize,
    dependent_typeid_count: i32,
    dependent_typeids: Vec<WithSize>,
}

/// TypeInformation of Annex B.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(crate = "crate", nested, extensibility = "mutable")]
struct Information {
    #[dds(id = 0x1001)]
    minimal: WithDependencies,
    #[dds(id = 0x1002)]
    complete: WithDependencies,
}

/// TypeIdentifierTypeObjectPair of Annex B.
#[derive(Clone, Debug, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
struct Pair {
    type_identifier: Identifier,
    type_object: Object,
}

impl TypeInformation {
    /// Parses the value of the parameter: XCDR2, little-endian, without encapsulation.
    ///
    /// # Errors
    /// Fails if the bytes are not type information.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Information { minimal, complete } = decode_plain(bytes)?;
        Ok(Self { minimal: minimal.into(), complete: complete.into() })
    }

    /// Serializes the value of the parameter.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_plain(&Information { minimal: (&self.minimal).into(), complete: (&self.complete).into() })
    }
}

impl TypeIdentifierTypeObjectPair {
    /// Parses XCDR2, little-endian, without encapsulation.
    ///
    /// # Errors
    /// Fails if the bytes are not such a pair.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Pair { type_identifier, type_object } = decode_plain(bytes)?;
        Ok(Self { type_identifier: TypeIdentifier(type_identifier), type_object: TypeObject(type_object) })
    }

    /// Serializes to XCDR2, little-endian, without encapsulation.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { type_identifier, type_object } = self.clone();
        encode_plain(&Pair { type_identifier: type_identifier.0, type_object: type_object.0 })
    }
}

impl TypeIdentifierTypeObjectPair {
    /// Parses a sequence of pairs, as in a reply of the lookup service: XCDR2, little-endian.
    ///
    /// # Errors
    /// Fails if the bytes are not such a sequence.
    pub fn parse_sequence(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let pairs: Vec<Pair> = decode_plain(bytes)?;
        let pairs = pairs.into_iter().map(|Pair { type_identifier, type_object }| Self {
            type_identifier: TypeIdentifier(type_identifier),
            type_object: TypeObject(type_object),
        });
        Ok(pairs.collect())
    }
}

impl From<WithDependencies> for TypeIdentifierWithDependencies {
    fn from(wire: WithDependencies) -> Self {
        let dependencies = wire.dependent_typeids.into_iter();
        Self {
            type_id: TypeIdentifier(wire.typeid_with_size.type_id),
            serialized_size: wire.typeid_with_size.typeobject_serialized_size,
            dependent_count: wire.dependent_typeid_count,
            dependencies: dependencies.map(|d| (TypeIdentifier(d.type_id), d.typeobject_serialized_size)).collect(),
        }
    }
}

impl From<&TypeIdentifierWithDependencies> for WithDependencies {
    fn from(value: &TypeIdentifierWithDependencies) -> Self {
        let with_size = |identifier: &TypeIdentifier, typeobject_serialized_size| WithSize {
            type_id: identifier.0.clone(),
            typeobject_serialized_size,
        };
        Self {
            typeid_with_size: with_size(&value.type_id, value.serialized_size),
            dependent_typeid_count: value.dependent_count,
            dependent_typeids: value.dependencies.iter().map(|(id, size)| with_size(id, *size)).collect(),
        }
    }
}
