//! Key extraction for the core, which does not know the types of samples.

use takt_core::{KeyExtractor, KeyHash};
use takt_xtypes::Representation;

use crate::TypeSupport;

/// Extracts keys of `T` by decoding the payload into a value that is reused, so that decoding does
/// not allocate.
#[derive(Debug, Default)]
pub(crate) struct TypeKey<T> {
    scratch: T,
}

impl<T: TypeSupport> KeyExtractor for TypeKey<T> {
    fn key_hash(&mut self, payload: &[u8], key_only: bool) -> Option<KeyHash> {
        if key_only {
            takt_xtypes::key_hash_from_key_payload(&mut self.scratch, payload).ok()
        } else {
            takt_xtypes::key_hash_from_payload(&mut self.scratch, payload).ok()
        }
    }

    fn key_hash_in_xcdr1(&mut self, payload: &[u8], key_only: bool, is_digest: bool) -> Option<KeyHash> {
        let decoded = if key_only {
            takt_xtypes::deserialize_key(&mut self.scratch, payload)
        } else {
            takt_xtypes::deserialize(&mut self.scratch, payload)
        };
        decoded.ok()?;
        let hash = if is_digest { takt_xtypes::key_digest_with } else { takt_xtypes::key_hash_with };
        hash(&self.scratch, Representation::Xcdr1).ok()
    }

    fn serialize_key(&mut self, payload: &[u8], key_only: bool, key: &mut Vec<u8>) -> bool {
        let decoded = if key_only {
            takt_xtypes::deserialize_key(&mut self.scratch, payload)
        } else {
            takt_xtypes::deserialize(&mut self.scratch, payload)
        };
        if decoded.is_err() {
            return false;
        }
        let start = key.len();
        key.resize(start + takt_xtypes::serialized_key_len(&self.scratch, Representation::Xcdr1), 0);
        match takt_xtypes::serialize_key(&self.scratch, Representation::Xcdr1, &mut key[start..]) {
            Ok(len) => {
                key.truncate(start + len);
                true
            }
            Err(_) => {
                key.truncate(start);
                false
            }
        }
    }
}
