//! Dynamic types and data, known at run time only (XTypes 1.3 §7.5.2). Tools use them to read and
//! write any topic of any vendor.
//!
//! A [`DynamicType`] is built from a [`TypeIdentifier`](crate::type_object::TypeIdentifier) and the
//! complete type objects that it depends on. It decodes payloads to [`DynamicData`] and encodes
//! them, in both representations. It uses the same encoder, decoder and member headers as derived
//! types. A [`Field`] is read from a payload without decoding the rest. [`JsonValue`] is the data
//! as JSON; [`DynamicType::to_idl`] returns the type as text.
//!
//! Invariants:
//! - Malicious types of a peer are refused when they are built: types that contain themselves
//!   without end, whose default value has more than [`MAX_INITIAL_VALUES`] parts, or that nest
//!   deeper than [`MAX_NESTING`].
//! - The memory for decoding is bounded by the payload: at most [`MEMORY_FACTOR`] times its length,
//!   or [`MEMORY_FLOOR`] bytes.
//! - Names contain no control characters, so they can be printed safely.
//!
//! Not supported: bitsets, `long double`, types known in minimal form only.

mod budget;
mod build;
mod data;
mod decode;
mod encode;
mod extent;
mod field;
mod idl;
mod json;
mod layout;
mod node;
mod rust;
mod scalar;
#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use md5::{Digest, Md5};

pub(crate) use budget::Budget;
pub use data::DynamicData;
pub use field::{Field, FieldError, FieldKind, FieldPart};
pub use json::{JsonValue, ValueError};
pub use scalar::{Chars, Scalar, Text};

use crate::encoder::Content;
use crate::sink::{CountSink, Md5Sink, SliceSink};
use crate::type_object::{TypeError, TypeIdentifier, TypeRegistry};
use crate::{
    DecodeError, DecodeErrorKind, Decoded, Decoder, EncodeError, Encoder, Endianness, Extensibility, KeyHash,
    Representation, Scope, payload, representation,
};
use node::{Node, NodeId, Types};

/// Maximum number of types that a type consists of.
pub const MAX_TYPES: usize = 64 * 1024;
/// Maximum number of members of all structures of a type. Inherited members count for each
/// structure.
pub const MAX_MEMBERS: usize = 256 * 1024;
/// Maximum nesting depth of types and values: structures, unions and collections each count.
pub const MAX_NESTING: u8 = 128;
/// Maximum number of parts of a type's default value; 64 octets count as one.
pub const MAX_INITIAL_VALUES: usize = 1 << 22;
/// Bytes of memory per byte of payload.
pub const MEMORY_FACTOR: usize = 256;
/// Bytes of memory that a payload may use regardless of its length.
pub const MEMORY_FLOOR: usize = 16 * 1024 * 1024;

/// Type known at run time.
#[derive(Clone, Debug)]
pub struct DynamicType {
    types: Types,
    root: NodeId,
    /// For each representation, true if the key hash is a digest.
    key_is_digest: [bool; 2],
}

impl DynamicType {
    /// Builds the type `root` from its definition and those that it needs.
    ///
    /// # Errors
    /// Fails if a definition is [missing](TypeError::Missing), incomplete or contradictory, or
    /// exceeds a limit.
    pub fn new(root: &TypeIdentifier, types: &TypeRegistry) -> Result<Self, TypeError> {
        let (types, root) = build::build(root, types)?;
        if !matches!(types.resolved(root), Node::Struct(_) | Node::Union(_)) {
            return Err(TypeError::NotAggregated);
        }
        let is_digest = |representation| extent::key_len(&types, root, representation).is_none();
        let key_is_digest = [is_digest(Representation::Xcdr1), is_digest(Representation::Xcdr2)];
        Ok(Self { types, root, key_is_digest })
    }

    /// Returns the qualified name, e.g. `module::Name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.types.name(self.root)
    }

    /// Reports whether the type has a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        match self.types.resolved(self.root) {
            Node::Struct(structure) => structure.has_key,
            Node::Union(union) => union.discriminator_is_key,
            _ => false,
        }
    }

    /// Returns the extensibility.
    #[must_use]
    pub fn extensibility(&self) -> Extensibility {
        self.types.extensibility(self.root)
    }

    /// Returns the type and its parts as IDL 4.2, in an order that compiles.
    #[must_use]
    pub fn to_idl(&self) -> String {
        idl::print(&self.types, self.root)
    }

    /// Returns the type and its parts as Rust with `#[derive(takt::DdsType)]`. The derived type has
    /// the same type identifier. Properties that the derive cannot express are listed in a comment
    /// before the definitions.
    #[must_use]
    pub fn to_rust(&self) -> String {
        rust::print(&self.types, self.root)
    }

    /// Returns the default value: zeros, empty collections, first cases, optional members absent.
    #[must_use]
    pub fn default_data(&self) -> DynamicData {
        self.types.initial(self.root)
    }

    /// Decodes the payload of a sample.
    ///
    /// # Errors
    /// Fails if the bytes are not a value of the type.
    pub fn decode(&self, payload: &[u8]) -> Result<DynamicData, DecodeError> {
        self.decode_reporting(payload).map(|(data, _)| data)
    }

    /// Decodes the payload of a sample as [`decode`](Self::decode) does, and reports its
    /// representation.
    ///
    /// # Errors
    /// Fails if the bytes are not a value of the type.
    pub fn decode_reporting(&self, payload: &[u8]) -> Result<(DynamicData, Decoded), DecodeError> {
        self.decode_scope(payload, Scope::Sample)
    }

    /// Decodes a key-only payload. A structure with key members yields these members only; other
    /// types decode as in [`decode`](Self::decode).
    ///
    /// # Errors
    /// Fails if the bytes are not a key of the type.
    pub fn decode_key(&self, payload: &[u8]) -> Result<DynamicData, DecodeError> {
        self.decode_scope(payload, Scope::Key).map(|(data, _)| data)
    }

    fn decode_scope(&self, payload: &[u8], scope: Scope) -> Result<(DynamicData, Decoded), DecodeError> {
        let opened = payload::open(payload, self.extensibility())?;
        let decoder = |scope| {
            let mut d = Decoder::new(opened.body, opened.representation, opened.endianness, scope);
            d.set_memory(MEMORY_FLOOR.max(opened.body.len().saturating_mul(MEMORY_FACTOR)));
            d
        };
        if scope == Scope::Key && !self.has_key() {
            let data = DynamicData::Struct(Vec::new());
            return Ok((data, opened.decoded(opened.body.len())));
        }
        let mut d = decoder(scope);
        let data = match decode::decode(&self.types, self.root, &mut d) {
            Ok(data) => data,
            Err(error) if scope == Scope::Key && self.extensibility() == Extensibility::Appendable => {
                // INTEROP(CycloneDDS 0.10.2): sends no DHEADER before the key of an appendable
                // type.
                d = decoder(Scope::KeyHash);
                decode::decode(&self.types, self.root, &mut d).map_err(|_| error)?
            }
            Err(error) => return Err(error),
        };
        Ok((data, opened.decoded(d.remaining())))
    }

    /// Encodes the payload of a sample in little endian: encapsulation header, body, padding.
    ///
    /// # Errors
    /// Fails if the data is not a value of the type, or exceeds a bound.
    pub fn encode(&self, data: &DynamicData, representation: Representation) -> Result<Vec<u8>, EncodeError> {
        self.encode_with(data, representation, Endianness::Little)
    }

    /// Encodes the payload of a sample in this byte order; see [`encode`](Self::encode).
    ///
    /// # Errors
    /// Fails if the data is not a value of the type, or exceeds a bound.
    pub fn encode_with(
        &self,
        data: &DynamicData,
        representation: Representation,
        endianness: Endianness,
    ) -> Result<Vec<u8>, EncodeError> {
        self.encode_scope(data, representation, endianness, Scope::Sample)
    }

    /// Encodes the key-only payload of dispose and unregister in little endian. The data may
    /// consist of the key members alone.
    ///
    /// # Errors
    /// Fails if the data has no key of the type.
    pub fn encode_key(&self, data: &DynamicData, representation: Representation) -> Result<Vec<u8>, EncodeError> {
        self.encode_scope(data, representation, Endianness::Little, Scope::Key)
    }

    fn encode_scope(
        &self,
        data: &DynamicData,
        representation: Representation,
        endianness: Endianness,
        scope: Scope,
    ) -> Result<Vec<u8>, EncodeError> {
        let identifier = representation::identifier(representation, self.extensibility(), endianness).to_be_bytes();
        let header = |padding: usize| [identifier[0], identifier[1], 0, padding as u8];
        if scope == Scope::Key && !self.has_key() {
            return Ok(header(0).to_vec());
        }
        let value = encode::Value::root(&self.types, self.root, data);
        let mut counter = Encoder::new(CountSink, representation, endianness, scope);
        value.encode(&mut counter)?;
        let len = counter.position();
        let padded = len.next_multiple_of(4);
        let mut bytes = vec![0; payload::ENCAPSULATION_LEN + padded];
        let (head, body) = bytes.split_at_mut(payload::ENCAPSULATION_LEN);
        head.copy_from_slice(&header(padded - len));
        value.encode(&mut Encoder::new(SliceSink(body), representation, endianness, scope))?;
        Ok(bytes)
    }

    /// Returns the key hash of the data (XTypes 1.3 §7.6.8); zeros if the type has no key. The data
    /// may consist of the key members alone.
    ///
    /// # Errors
    /// Fails if the data has no key of the type.
    pub fn key_hash(&self, data: &DynamicData, representation: Representation) -> Result<KeyHash, EncodeError> {
        let mut hash = KeyHash::default();
        if !self.has_key() {
            return Ok(hash);
        }
        let [digest_in_xcdr1, digest_in_xcdr2] = self.key_is_digest;
        let is_digest = match representation {
            Representation::Xcdr1 => digest_in_xcdr1,
            Representation::Xcdr2 => digest_in_xcdr2,
        };
        if is_digest {
            return self.key_digest(data, representation);
        }
        let value = encode::Value::root(&self.types, self.root, data);
        value.encode(&mut Encoder::new(SliceSink(&mut hash), representation, Endianness::Big, Scope::KeyHash))?;
        Ok(hash)
    }

    /// Returns the MD5 of the data's key, even if the key is short.
    ///
    /// # Errors
    /// Fails as [`Self::key_hash`] does.
    pub fn key_digest(&self, data: &DynamicData, representation: Representation) -> Result<KeyHash, EncodeError> {
        let value = encode::Value::root(&self.types, self.root, data);
        let mut e = Encoder::new(Md5Sink(Md5::new()), representation, Endianness::Big, Scope::KeyHash);
        value.encode(&mut e)?;
        Ok(e.into_sink().0.finalize().into())
    }

    /// Returns the key hash of a serialized sample or of a key-only payload. The hash is computed
    /// in XCDR2, independent of the representation of the payload. Nothing after the last key
    /// member of a sample is read.
    ///
    /// # Errors
    /// Fails if the bytes contain no key of the type.
    pub fn key_hash_from_payload(&self, payload: &[u8], key_only: bool) -> Result<KeyHash, DecodeError> {
        if !self.has_key() {
            return Ok(KeyHash::default());
        }
        let scope = if key_only { Scope::Key } else { Scope::KeyOfSample };
        let (data, _) = self.decode_scope(payload, scope)?;
        let hash = self.key_hash(&data, Representation::Xcdr2);
        Ok(hash.expect("a value decoded within its bounds encodes"))
    }

    /// Converts the data to JSON.
    #[must_use]
    pub fn to_json(&self, data: &DynamicData) -> JsonValue {
        json::from_data(data)
    }

    /// Converts JSON to a value of the type. Members that are not present have their defaults.
    ///
    /// # Errors
    /// Fails if the JSON is not a value of the type; the error names the member.
    pub fn from_json(&self, json: &JsonValue) -> Result<DynamicData, ValueError> {
        json::to_data(&self.types, self.root, json)
    }
}

/// Returns the error for values that nest too deeply.
fn too_deep(d: &Decoder<'_>) -> DecodeError {
    d.error(DecodeErrorKind::TooDeep)
}
