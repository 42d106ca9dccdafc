//! Key extraction for types that are known only at run time.

use takt_core::{KeyExtractor, KeyHash};
use takt_xtypes::Representation;

use super::DynamicTypeSupport;

/// Returns the key extractor of a type; `None` if the type has no key.
pub(crate) fn key_extractor(type_: &DynamicTypeSupport) -> Option<Box<dyn KeyExtractor>> {
    type_.has_key().then(|| Box::new(DynamicKey(type_.clone())) as _)
}

/// Key extractor that decodes payloads.
///
/// A payload of an opaque type cannot be decoded. Samples of such a type belong to the instance of
/// the key hash that their writer sends. Samples without a key hash all belong to one instance.
struct DynamicKey(DynamicTypeSupport);

impl KeyExtractor for DynamicKey {
    fn key_hash(&mut self, payload: &[u8], key_only: bool) -> Option<KeyHash> {
        self.0.dynamic_type()?.key_hash_from_payload(payload, key_only).ok()
    }

    fn key_hash_in_xcdr1(&mut self, payload: &[u8], key_only: bool, is_digest: bool) -> Option<KeyHash> {
        let type_ = self.0.dynamic_type()?;
        let data = if key_only { type_.decode_key(payload) } else { type_.decode(payload) };
        match is_digest {
            true => type_.key_digest(&data.ok()?, Representation::Xcdr1).ok(),
            false => type_.key_hash(&data.ok()?, Representation::Xcdr1).ok(),
        }
    }

    fn unknown_key_hash(&self) -> Option<KeyHash> {
        self.0.dynamic_type().is_none().then(KeyHash::default)
    }

    fn serialize_key(&mut self, payload: &[u8], key_only: bool, key: &mut Vec<u8>) -> bool {
        let Some(type_) = self.0.dynamic_type() else { return false };
        let data = if key_only { type_.decode_key(payload) } else { type_.decode(payload) };
        let bytes = data.ok().and_then(|data| type_.encode_key(&data, Representation::Xcdr1).ok());
        bytes.is_some_and(|bytes| {
            key.extend_from_slice(&bytes);
            true
        })
    }
}
