//! Types and values that are known at run time only (XTypes 1.3 §7.5.2): what a tool needs to read and write any topic
//! of any vendor.
//!
//! A [`DynamicType`] is built from a [`TypeIdentifier`](crate::type_object::TypeIdentifier) and the complete type
//! objects it depends on. It decodes payloads to [`DynamicData`] and encodes them again, in both representations, with
//! the encoder, the decoder and the member headers that derived types use. A [`Field`] is read from a payload without
//! decoding the rest. [`JsonValue`] is the same data as text has
//! it; [`DynamicType::to_idl`] is the type as text.
//!
//! Invariants:
//! - A type that a peer made up is refused when it is built: one that contains itself without end, whose default value
//!   has more than [`MAX_INITIAL_VALUES`] parts, or that nests deeper than [`MAX_NESTING`].
//! - Decoding is bounded by the payload: at most [`MEMORY_FACTOR`] times its length, or [`MEMORY_FLOOR`] bytes.
//! - Names are free of control characters, so that printing them is harmless.
//!
//! It deliberately does not do: bitsets, `long double`, types known in minimal form only.

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

/// How many types a type may be made of.
pub const MAX_TYPES: usize = 64 * 1024;
/// How many members the structures of a type may have in sum. Each has those that it inherits, too.
pub const MAX_MEMBERS: usize = 256 * 1024;
/// How deep types, and values, may nest: structures, unions and collections each count.
pub const MAX_NESTING: u8 = 128;
/// Of how many parts the default value of a type may consist; 64 octets count as one.
pub const MAX_INITIAL_VALUES: usize = 1 << 22;
/// Bytes of memory that one byte of payload may cause.
pub const MEMORY_FACTOR: usize = 256;
/// Bytes of memory that a payload may cause whatever its length.
pub const MEMORY_FLOOR: usize = 16 * 1024 * 1024;

/// A type known at run time.
#[derive(Clone, Debug)]
pub struct DynamicType {
    types: Types,
    root: NodeId,
    /// For each representation, whether the key hash is a digest.
    key_is_digest: [bool; 2],
}

impl DynamicType {
    /// Builds the type that `root` names from its definition and those it needs.
    ///
    /// # Errors
    /// If a definition is [missing](TypeError::Missing), is not complete, is contradictory or exceeds a limit.
    pub fn new(root: &TypeIdentifier, types: &TypeRegistry) -> Result<Self, TypeError> {
        let (types, root) = build::build(root, types)?;
        if !matches!(types.resolved(root), Node::Struct(_) | Node::Union(_)) {
            return Err(TypeError::NotAggregated);
        }
        let is_digest = |representation| extent::key_len(&types, root, representation).is_none();
        let key_is_digest = [is_digest(Representation::Xcdr1), is_digest(Representation::Xcdr2)];
        Ok(Self { types, root, key_is_digest })
    }

    /// The qualified name, e.g. `module::Name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.types.name(self.root)
    }

    /// Whether the topic has instances.
    #[must_use]
    pub fn has_key(&self) -> bool {
        match self.types.resolved(self.root) {
            Node::Struct(structure) => structure.has_key,
            Node::Union(union) => union.discriminator_is_key,
            _ => false,
        }
    }

    /// How the type may evolve.
    #[must_use]
    pub fn extensibility(&self) -> Extensibility {
        self.types.extensibility(self.root)
    }

    /// The type and all it is made of in IDL 4.2, in an order in which it compiles.
    #[must_use]
    pub fn to_idl(&self) -> String {
        idl::print(&self.types, self.root)
    }

    /// The type and all it is made of as Rust, with `#[derive(takt::DdsType)]`. The derived type has the same type identifier;
    /// where the derive cannot say something, a comment before the definitions names it.
    #[must_use]
    pub fn to_rust(&self) -> String {
        rust::print(&self.types, self.root)
    }

    /// The value that a sample starts with: zeros, empty collections, first cases, optional members absent.
    #[must_use]
    pub fn default_data(&self) -> DynamicData {
        self.types.initial(self.root)
    }

    /// Reads the payload of a sample.
    ///
    /// # Errors
    /// If the bytes are no value of the type.
    pub fn decode(&self, payload: &[u8]) -> Result<DynamicData, DecodeError> {
        self.decode_reporting(payload).map(|(data, _)| data)
    }

    /// [`decode`](Self::decode), and what the payload was.
    ///
    /// # Errors
    /// If the bytes are no value of the type.
    pub fn decode_reporting(&self, payload: &[u8]) -> Result<(DynamicData, Decoded), DecodeError> {
        self.decode_scope(payload, Scope::Sample)
    }

    /// Reads a key-only payload: of a structure with key members only these, elsewhere as [`decode`](Self::decode).
    ///
    /// # Errors
    /// If the bytes are no key of the type.
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
                // INTEROP(CycloneDDS 0.10.2): no DHEADER before the key of an appendable type.
                d = decoder(Scope::KeyHash);
                decode::decode(&self.types, self.root, &mut d).map_err(|_| error)?
            }
            Err(error) => return Err(error),
        };
        Ok((data, opened.decoded(d.remaining())))
    }

    /// The payload of a sample, little-endian: encapsulation header, body, padding.
    ///
    /// # Errors
    /// If the data is no value of the type, or exceeds a bound.
    pub fn encode(&self, data: &DynamicData, representation: Representation) -> Result<Vec<u8>, EncodeError> {
        self.encode_with(data, representation, Endianness::Little)
    }

    /// [`encode`](Self::encode) in a byte order of choice.
    ///
    /// # Errors
    /// If the data is no value of the type, or exceeds a bound.
    pub fn encode_with(
        &self,
        data: &DynamicData,
        representation: Representation,
        endianness: Endianness,
    ) -> Result<Vec<u8>, EncodeError> {
        self.encode_scope(data, representation, endianness, Scope::Sample)
    }

    /// The key-only payload of dispose and unregister, little-endian. The data may hold the key members alone.
    ///
    /// # Errors
    /// If the data has no key of the type.
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

    /// The hash of the data's key (XTypes 1.3 §7.6.8); zeros if the type has none. The data may hold the key members
    /// alone.
    ///
    /// # Errors
    /// If the data has no key of the type.
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

    /// The MD5 of the data's key, however short that is.
    ///
    /// # Errors
    /// As [`Self::key_hash`].
    pub fn key_digest(&self, data: &DynamicData, representation: Representation) -> Result<KeyHash, EncodeError> {
        let value = encode::Value::root(&self.types, self.root, data);
        let mut e = Encoder::new(Md5Sink(Md5::new()), representation, Endianness::Big, Scope::KeyHash);
        value.encode(&mut e)?;
        Ok(e.into_sink().0.finalize().into())
    }

    /// The hash of the key of a serialised sample, or of a key-only payload, in XCDR2 whatever the representation of the
    /// payload. Of a sample, nothing behind the last key member is read.
    ///
    /// # Errors
    /// If the bytes hold no key of the type.
    pub fn key_hash_from_payload(&self, payload: &[u8], key_only: bool) -> Result<KeyHash, DecodeError> {
        if !self.has_key() {
            return Ok(KeyHash::default());
        }
        let scope = if key_only { Scope::Key } else { Scope::KeyOfSample };
        let (data, _) = self.decode_scope(payload, scope)?;
        let hash = self.key_hash(&data, Representation::Xcdr2);
        Ok(hash.expect("what was decoded within its bounds can be encoded"))
    }

    /// The data as JSON has it.
    #[must_use]
    pub fn to_json(&self, data: &DynamicData) -> JsonValue {
        json::from_data(data)
    }

    /// The value of the type that JSON describes. Members that are not named have their defaults.
    ///
    /// # Errors
    /// If it describes no value of the type; the error names the member.
    pub fn from_json(&self, json: &JsonValue) -> Result<DynamicData, ValueError> {
        json::to_data(&self.types, self.root, json)
    }
}

/// What a type nests too deep for.
fn too_deep(d: &Decoder<'_>) -> DecodeError {
    d.error(DecodeErrorKind::TooDeep)
}
