//! Type objects: identifiers, definitions, and the type information of an endpoint
//! (XTypes 1.3 §7.3.4, Annex B).
//!
//! A [`TypeIdentifier`] identifies a type, a [`TypeObject`] is its definition, a
//! [`TypeInformation`] lists all types that a topic type depends on. All three are exchanged in
//! XCDR2, little-endian, without encapsulation header. This crate encodes and decodes them with its
//! own derive: the modules below are the IDL of Annex B in Rust.
//!
//! [`TypeRegistry`] holds type objects by identifier. A derived type adds its own by
//! [`TypeSupport::type_information`](crate::TypeSupport::type_information).
//!
//! Invariants:
//! - A parsed value serializes to the same bytes, or parsing fails. A hash therefore never changes.
//! - Parsing is bounded like all decoding in this crate. Recursion:
//!   [`MAX_DEPTH`](crate::MAX_DEPTH). A type object: [`MAX_TYPE_OBJECT_LEN`]. A registry:
//!   [`TypeRegistry::DEFAULT_LIMIT`] by default.
//!
//! Not supported: the type object of XTypes 1.1.

pub(crate) mod annotation;
pub(crate) mod build;
pub(crate) mod complete;
mod error;
pub(crate) mod form;
pub(crate) mod identifier;
mod information;
pub(crate) mod kind;
pub(crate) mod minimal;
mod object;
mod registry;

use alloc::vec;
use alloc::vec::Vec;

pub use error::TypeError;
pub use identifier::TypeIdentifier;
pub use information::{TypeIdentifierTypeObjectPair, TypeIdentifierWithDependencies, TypeInformation};
pub use object::{MAX_TYPE_OBJECT_LEN, TypeObject};
pub use registry::TypeRegistry;

pub(crate) use object::{Object, component_hash};

use crate::sink::{CountSink, SliceSink};
use crate::{CdrValue, DecodeError, Decoder, Encoder, Endianness, Representation, Scope};

/// Encodes a value in XCDR2, little-endian, without encapsulation.
pub(crate) fn encode_plain<T: CdrValue>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0; encoded_plain_len(value)];
    let mut e = Encoder::new(SliceSink(&mut bytes), Representation::Xcdr2, Endianness::Little, Scope::Sample);
    match value.encode(&mut e) {
        Ok(()) => bytes,
        // A value that cannot be encoded yields no bytes: a name beyond its bound, possible only in
        // a derived type.
        Err(_) => Vec::new(),
    }
}

/// Returns the number of bytes that [`encode_plain`] yields.
pub(crate) fn encoded_plain_len<T: CdrValue>(value: &T) -> usize {
    let mut e = Encoder::new(CountSink, Representation::Xcdr2, Endianness::Little, Scope::Sample);
    value.encode(&mut e).map_or(0, |()| e.position())
}

/// Decodes the output of [`encode_plain`]. Bytes after the value are ignored.
pub(crate) fn decode_plain<T: CdrValue>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut value = T::initial();
    value.decode(&mut Decoder::new(bytes, Representation::Xcdr2, Endianness::Little, Scope::Sample))?;
    Ok(value)
}
