//! TypeInformation: what an endpoint announces of its type (XTypes 1.3 §7.6.3.2.2), and pairs as the lookup
//! service answers with.

use alloc::vec::Vec;

use takt_derive::DdsType;

use super::identifier::Identifier;
use super::object::Object;
use super::{TypeIdentifier, TypeObject, decode_plain, encode_plain};
use crate::DecodeError;

/// The value of PID_TYPE_INFORMATION (0x0075): both identifiers of the type, and of everything it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeInformation {
    /// In minimal form.
    pub minimal: TypeIdentifierWithDependencies,
    /// In complete form. Its `type_id` is none where the peer announces no complete form.
    pub complete: TypeIdentifierWithDependencies,
}

/// A type and what it depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeIdentifierWithDependencies {
    /// The type.
    pub type_id: TypeIdentifier,
    /// Length of its type object in bytes.
    pub serialized_size: u32,
    /// How many types it depends on, directly or not; -1 if that is not said.
    pub dependent_count: i32,
    /// The dependencies that are listed, with the lengths of their type objects: all of them, or not.
    pub dependencies: Vec<(TypeIdentifier, u32)>,
}

/// A type object under its identifier, as peers hand them out. On the wire a final structure.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeIdentifierTypeObjectPair {
    /// The name.
    pub type_identifier: TypeIdentifier,
    /// The definition. Nothing says that it belongs to the name; [`TypeRegistry`](super::TypeRegistry) checks it.
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
    /// Reads the value of the parameter: XCDR2, little-endian, without encapsulation.
    ///
    /// # Errors
    /// If the bytes are no type information.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Information { minimal, complete } = decode_plain(bytes)?;
        Ok(Self { minimal: minimal.into(), complete: complete.into() })
    }

    /// Writes the value of the parameter.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_plain(&Information { minimal: (&self.minimal).into(), complete: (&self.complete).into() })
    }
}

impl TypeIdentifierTypeObjectPair {
    /// Reads XCDR2, little-endian, without encapsulation.
    ///
    /// # Errors
    /// If the bytes are no such pair.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Pair { type_identifier, type_object } = decode_plain(bytes)?;
        Ok(Self { type_identifier: TypeIdentifier(type_identifier), type_object: TypeObject(type_object) })
    }

    /// Writes XCDR2, little-endian, without encapsulation.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { type_identifier, type_object } = self.clone();
        encode_plain(&Pair { type_identifier: type_identifier.0, type_object: type_object.0 })
    }
}

impl TypeIdentifierTypeObjectPair {
    /// Reads a sequence of pairs, as an answer of the lookup service has it: XCDR2, little-endian.
    ///
    /// # Errors
    /// If the bytes are no such sequence.
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
