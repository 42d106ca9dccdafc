//! Key hash of an instance (RTPS 2.5 §9.6.4.8, XTypes 1.3 §7.6.8).
//!
//! The input is the big-endian encoding of the key members alone, by ascending member id, with
//! every type as final. If its maximum length is at most 16 bytes, the hash is the zero-padded
//! encoding. Otherwise, the hash is its MD5.
//!
//! [`key_hash`] always uses XCDR2 (PLAIN_CDR2), as the specification requires, so an instance has
//! one identity in all representations. Writers announce this hash, and readers compute it from the
//! payload. [`key_hash_with`] XCDR1 differs where 8-byte members align to 8, and where a collection
//! has no DHEADER. It serves to recognize the hashes that peers announce.
//!
//! INTEROP(Fast DDS 3): always PLAIN_CDR2, as here.
//! INTEROP(CycloneDDS 11): the representation of the sample.
//! INTEROP(Fast DDS 2.9): XCDR1, the only one it has.

use md5::{Digest, Md5};

use crate::encoder::Scope;
use crate::payload::deserialize_key_of_sample;
use crate::sink::{Md5Sink, SliceSink};
use crate::{DecodeError, EncodeError, Encoder, Endianness, Representation, TypeSupport, deserialize_key};

/// Hash that identifies an instance of a topic with a key.
pub type KeyHash = [u8; 16];

/// Returns the hash of the value's key in XCDR2; zeros if the type has no key. Never allocates.
///
/// # Errors
/// Fails if a key member exceeds its bound, so that the value could not be serialized either.
#[inline]
pub fn key_hash<T: TypeSupport>(value: &T) -> Result<KeyHash, EncodeError> {
    key_hash_with(value, Representation::Xcdr2)
}

/// Returns the hash of the value's key in this representation.
///
/// # Errors
/// Fails if a key member exceeds its bound, so that the value could not be serialized either.
pub fn key_hash_with<T: TypeSupport>(value: &T, representation: Representation) -> Result<KeyHash, EncodeError> {
    let mut hash = KeyHash::default();
    if !T::HAS_KEY {
        return Ok(hash);
    }
    if T::max_key_len(representation).is_some_and(|len| len <= hash.len()) {
        let sink = SliceSink(&mut hash);
        value.encode(&mut Encoder::new(sink, representation, Endianness::Big, Scope::KeyHash))?;
        return Ok(hash);
    }
    key_digest_with(value, representation)
}

/// Returns the MD5 of a key. It is the [`key_hash_with`] of a long key. If keys are encrypted,
/// writers announce it for every key.
///
/// # Errors
/// Fails as [`key_hash_with`] does.
pub fn key_digest_with<T: TypeSupport>(value: &T, representation: Representation) -> Result<KeyHash, EncodeError> {
    let mut e = Encoder::new(Md5Sink(Md5::new()), representation, Endianness::Big, Scope::KeyHash);
    value.encode(&mut e)?;
    Ok(e.into_sink().0.finalize().into())
}

/// Returns the [`key_hash`] of a sample's payload. Decodes the members up to the last key member
/// into `scratch`, whose memory is reused from call to call. The rest is not read.
pub fn key_hash_from_payload<T: TypeSupport>(scratch: &mut T, payload: &[u8]) -> Result<KeyHash, DecodeError> {
    deserialize_key_of_sample(scratch, payload)?;
    Ok(hash_of_decoded(scratch))
}

/// Returns the [`key_hash`] of a key-only payload. Decodes the key members into `scratch`.
pub fn key_hash_from_key_payload<T: TypeSupport>(scratch: &mut T, payload: &[u8]) -> Result<KeyHash, DecodeError> {
    deserialize_key(scratch, payload)?;
    Ok(hash_of_decoded(scratch))
}

fn hash_of_decoded<T: TypeSupport>(value: &T) -> KeyHash {
    // Decoding enforces the same bounds and depth as encoding, and a digest cannot overflow.
    key_hash(value).expect("a value decoded within its bounds encodes")
}
