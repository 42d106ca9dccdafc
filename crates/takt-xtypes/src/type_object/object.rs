//! TypeObject: the definition of a type, complete or minimal, and the hash that names it (XTypes 1.3 §7.3.1.2.1).

use alloc::vec::Vec;

use md5::{Digest, Md5};
use takt_derive::DdsType;

use super::complete::Complete;
use super::identifier::{EquivalenceHash, Identifier};
use super::kind::{EK_COMPLETE, EK_MINIMAL};
use super::minimal::Minimal;
use super::{TypeIdentifier, decode_plain, encode_plain, encoded_plain_len};
use crate::{DecodeError, DecodeErrorKind};

/// The longest type object that is parsed, in bytes: many times what a structure of 512 members takes.
pub const MAX_TYPE_OBJECT_LEN: usize = 256 * 1024;

/// The definition of a type. Opaque: [`DynamicType`](crate::dynamic::DynamicType) makes something of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeObject(pub(crate) Object);

/// The union TypeObject of Annex B.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "crate", nested, discriminator = "u8")]
pub(crate) enum Object {
    #[dds(case = EK_COMPLETE)]
    Complete(Complete),
    #[dds(case = EK_MINIMAL)]
    Minimal(Minimal),
}

impl TypeObject {
    /// Reads XCDR2, little-endian, without encapsulation. Bytes behind the value are ignored.
    ///
    /// # Errors
    /// If the bytes are no type object, or more than [`MAX_TYPE_OBJECT_LEN`], or are not what would be written again: a
    /// structure that ends early, or holds what this crate does not know, would have another hash then.
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

    /// Writes XCDR2, little-endian, without encapsulation.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_plain(&self.0)
    }

    /// How many bytes [`to_bytes`](Self::to_bytes) makes.
    #[must_use]
    pub fn serialized_len(&self) -> usize {
        encoded_plain_len(&self.0)
    }

    /// The identifier that this definition has: its kind and hash.
    ///
    /// A type that contains itself is named by its strongly connected component instead, which the definition alone
    /// does not tell.
    #[must_use]
    pub fn identifier(&self) -> TypeIdentifier {
        let hash = equivalence_hash(&self.to_bytes());
        TypeIdentifier(match &self.0 {
            Object::Complete(_) => Identifier::Complete(hash),
            Object::Minimal(_) => Identifier::Minimal(hash),
        })
    }

    /// It has names.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.0, Object::Complete(_))
    }

    /// The identifiers of the type objects that are needed besides this one, in order, each once.
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

/// The hash that all types of a strongly connected component share (XTypes 1.3 §7.3.4.9): that of the sequence of
/// their type objects, in which they name each other with a hash of zeros.
pub(crate) fn component_hash(objects: &Vec<Object>) -> EquivalenceHash {
    equivalence_hash(&encode_plain(objects))
}

fn equivalence_hash(bytes: &[u8]) -> EquivalenceHash {
    let digest: [u8; 16] = Md5::digest(bytes).into();
    let mut hash = EquivalenceHash::default();
    hash.copy_from_slice(&digest[..14]);
    hash
}
