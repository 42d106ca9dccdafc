//! TypeObject: the complete or minimal definition of a type, and the hash that identifies it
//! (XTypes 1.3 §7.3.1.2.1).

use alloc::vec::Vec;

use md5::{Digest, Md5};
use takt_derive::DdsType;

use super::complete::Complete;
use super::identifier::{EquivalenceHash, Identifier};
use super::kind::{EK_COMPLETE, EK_MINIMAL};
use super::minimal::Minimal;
use super::{TypeIdentifier, decode_plain, encode_plain, encoded_plain_len};
use crate::{DecodeError, DecodeErrorKind};

/// Maximum length of a parsed type object in bytes, a multiple of that of a structure with 512
/// members.
pub const MAX_TYPE_OBJECT_LEN: usize = 256 * 1024;

/// Definition of a type. Opaque: [`DynamicType`](crate::dynamic::DynamicType) interprets it.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeObject(pub(crate) Object);

/// Union TypeObject of Annex B.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, discriminator = "u8")]
pub(crate) enum Object {
    #[dds(case = EK_COMPLETE)]
    Complete(Complete),
    #[dds(case = EK_MINIMAL)]
    Minimal(Minimal),
}

impl TypeObject {
    /// Parses XCDR2, little-endian, without encapsulation. Bytes after the value are ignored.
    ///
    /// # Errors
    /// Fails if the bytes are not a type object, exceed [`MAX_TYPE_OBJECT_LEN`], or would be
    /// serialized differently. A structure that ends early, or has content unknown to this crate,
    /// would change its hash.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_TYPE_OBJECT_LEN {
            return Err(DecodeError { offset: 0, kind: DecodeErrorKind::MemoryLimit });
        }
        let object = Self(decode_plain(bytes)?);
        if !bytes.starts_with(&object.to_bytes()) {
            return Err(DecodeError { offset: 0, kind: DecodeErrorKind::Excess });
        }
        Ok(object)
    }

    /// Serializes to XCDR2, little-endian, without encapsulation.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_plain(&self.0)
    }

    /// Returns the number of bytes that [`to_bytes`](Self::to_bytes) yields.
    #[must_use]
    pub fn serialized_len(&self) -> usize {
        encoded_plain_len(&self.0)
    }

    /// Returns the identifier of this definition: its kind and hash.
    ///
    /// A recursive type is identified by its strongly connected component instead. That identifier
    /// cannot be computed from this definition alone.
    #[must_use]
    pub fn identifier(&self) -> TypeIdentifier {
        let hash = equivalence_hash(&self.to_bytes());
        TypeIdentifier(match &self.0 {
            Object::Complete(_) => Identifier::Complete(hash),
            Object::Minimal(_) => Identifier::Minimal(hash),
        })
    }

    /// Reports whether the type object is complete, that is, has names.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.0, Object::Complete(_))
    }

    /// Returns the identifiers of the other type objects that are needed, in order, each once.
    #[must_use]
    pub fn dependencies(&self) -> Vec<TypeIdentifier> {
        let mut found: Vec<&Identifier> = Vec::new();
        let mut visit = |identifier| {
            Identifier::for_each_hash(identifier, &mut |hash| {
                if !found.contains(&hash) {
                    found.push(hash);
                }
            });
        };
        match &self.0 {
            Object::Complete(complete) => complete.for_each_identifier(&mut visit),
            Object::Minimal(minimal) => minimal.for_each_identifier(&mut visit),
        }
        found.into_iter().map(|identifier| TypeIdentifier(identifier.clone())).collect()
    }
}

/// Returns the hash that all types of a strongly connected component share (XTypes 1.3 §7.3.4.9).
/// It is the hash of the sequence of their type objects, in which they refer to each other with a
/// hash of zeros.
pub(crate) fn component_hash(objects: &Vec<Object>) -> EquivalenceHash {
    equivalence_hash(&encode_plain(objects))
}

fn equivalence_hash(bytes: &[u8]) -> EquivalenceHash {
    let digest: [u8; 16] = Md5::digest(bytes).into();
    let mut hash = EquivalenceHash::default();
    hash.copy_from_slice(&digest[..14]);
    hash
}
