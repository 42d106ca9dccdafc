//! Types as data: identifiers, type objects, and what an endpoint announces of its type (XTypes 1.3 §7.3.4, Annex B).
//!
//! A [`TypeIdentifier`] names a type, a [`TypeObject`] is its definition, a [`TypeInformation`] lists what has to be
//! known to understand a topic. All three are exchanged in XCDR2, little-endian, without encapsulation header, and
//! this crate encodes and decodes them with its own derive: the modules below are the IDL of Annex B in Rust.
//!
//! [`TypeRegistry`] holds type objects by identifier; a derived type adds its own by
//! [`TypeSupport::type_information`](crate::TypeSupport::type_information).
//!
//! Invariants:
//! - What is parsed and written again has the same bytes, or was not understood: a hash never changes on the way.
//! - Parsing is bounded like every decoding of this crate. Recursion: [`MAX_DEPTH`](crate::MAX_DEPTH). A type object:
//!   [`MAX_TYPE_OBJECT_LEN`]. A registry: [`TypeRegistry::DEFAULT_LIMIT`] unless it is told otherwise.
//!
//! It deliberately does not do: the type object of XTypes 1.1.

pub(crate) mod annotation;
pub(crate) mod build;
pub(crate) mod complete;
mod error;
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

/// The bytes of a value in XCDR2, little-endian, without encapsulation.
pub(crate) fn encode_plain<T: CdrValue>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0; encoded_plain_len(value)];
    let mut e = Encoder::new(SliceSink(&mut bytes), Representation::Xcdr2, Endianness::Little, Scope::Sample);
    match value.encode(&mut e) {
        Ok(()) => bytes,
        // What cannot be encoded has no bytes: a name over its bound, which only a derived type can have.
        Err(_) => Vec::new(),
    }
}

/// How many bytes [`encode_plain`] makes.
pub(crate) fn encoded_plain_len<T: CdrValue>(value: &T) -> usize {
    let mut e = Encoder::new(CountSink, Representation::Xcdr2, Endianness::Little, Scope::Sample);
    value.encode(&mut e).map_or(0, |()| e.position())
}

/// Reads what [`encode_plain`] writes. Bytes behind the value are ignored.
pub(crate) fn decode_plain<T: CdrValue>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut value = T::initial();
    value.decode(&mut Decoder::new(bytes, Representation::Xcdr2, Endianness::Little, Scope::Sample))?;
    Ok(value)
}
