//! Samples of simulated applications. Each sample contains its writer, its number and its instance,
//! which determine the rest of its content.

use takt_core::{ContentFilter, FilterFactory, KeyExtractor, KeyHash, ReaderFilter};
use takt_wire::discovery::ContentFilterProperty;

/// Minimum length of a sample in octets, including its encapsulation header.
pub const SAMPLE_LEN_MIN: usize = 16;

/// Identity of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Writer, by its position in the order of creation in the whole world.
    pub writer: u32,
    /// Number of the sample within its writer, from 1.
    pub number: u32,
    /// Instance, or 0 without keys.
    pub instance: u8,
}

/// Fills `out`, of at least [`SAMPLE_LEN_MIN`] octets, with the sample.
pub fn fill(identity: Identity, out: &mut [u8]) {
    out[..4].copy_from_slice(&[0, 1, 0, 0]);
    out[4..8].copy_from_slice(&[identity.instance, 0, 0, 0]);
    out[8..12].copy_from_slice(&identity.writer.to_le_bytes());
    out[12..16].copy_from_slice(&identity.number.to_le_bytes());
    let len = out.len() as u32;
    let mut state = identity.writer.wrapping_mul(0x9e37_79b9) ^ identity.number.wrapping_mul(0x85eb_ca6b);
    state = (state ^ len.wrapping_mul(0xc2b2_ae35)) | 1;
    for chunk in out[16..].chunks_mut(4) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}

/// Returns the identity of a sample; `None` if no application wrote it.
#[must_use]
pub fn identify(payload: &[u8], scratch: &mut Vec<u8>) -> Option<Identity> {
    let word = |at: usize| payload.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let identity = Identity { writer: word(8)?, number: word(12)?, instance: payload[4] };
    scratch.resize(payload.len(), 0);
    fill(identity, scratch);
    (scratch == payload).then_some(identity)
}

/// Returns the key hash of an instance.
#[must_use]
pub fn key_hash(instance: u8) -> KeyHash {
    let mut hash = [0; 16];
    hash[0] = instance;
    hash
}

/// Returns the instance of a key hash, 0 without keys; `None` if the hash belongs to no instance.
#[must_use]
pub fn instance_of(hash: &KeyHash) -> Option<u8> {
    (hash[1..] == [0; 15]).then_some(hash[0])
}

/// Length of a serialized key in octets.
pub const KEY_LEN: usize = 8;

/// Fills `out`, of [`KEY_LEN`] octets, with the serialized key of an instance.
pub fn fill_key(instance: u8, out: &mut [u8]) {
    out.copy_from_slice(&[0, 1, 0, 0, instance, 0, 0, 0]);
}

/// Extracts the instance from a sample.
#[derive(Debug)]
pub struct InstanceKey;

impl KeyExtractor for InstanceKey {
    fn key_hash(&mut self, payload: &[u8], _key_only: bool) -> Option<KeyHash> {
        payload.get(4).map(|instance| key_hash(*instance))
    }

    fn serialize_key(&mut self, payload: &[u8], _key_only: bool, key: &mut Vec<u8>) -> bool {
        key.extend_from_slice(payload.get(..5).unwrap_or_default());
        payload.len() > 4
    }
}

/// Filter that accepts samples whose number is a multiple of this one.
struct Multiples(u32);

impl ContentFilter for Multiples {
    fn passes(&mut self, payload: &[u8]) -> bool {
        let number = payload.get(12..16).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        number.is_multiple_of(self.0)
    }
}

/// Filter class name of these filters.
const FILTER_CLASS: &str = "MULTIPLES";

/// Returns the filter of a reader for multiples of a number.
#[must_use]
pub fn multiples_of(number: u32) -> ReaderFilter {
    let property = ContentFilterProperty {
        filter_class_name: FILTER_CLASS.into(),
        expression_parameters: vec![number.to_string()],
        ..ContentFilterProperty::default()
    };
    ReaderFilter { property, filter: Box::new(Multiples(number)) }
}

/// Factory of such filters for writers.
#[derive(Debug)]
pub struct NumberFilters;

impl FilterFactory for NumberFilters {
    fn compile(&self, property: &ContentFilterProperty) -> Option<Box<dyn ContentFilter>> {
        let number = property.expression_parameters.first()?.parse().ok().filter(|number| *number > 0)?;
        (property.filter_class_name == FILTER_CLASS).then(|| Box::new(Multiples(number)) as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_octet_is_detected() {
        let identity = Identity { writer: 7, number: 9, instance: 2 };
        let (mut bytes, mut scratch) = (vec![0; 31], Vec::new());
        fill(identity, &mut bytes);
        assert_eq!(identify(&bytes, &mut scratch), Some(identity));
        for at in 0..bytes.len() {
            bytes[at] ^= 4;
            assert_ne!(identify(&bytes, &mut scratch), Some(identity), "octet {at}");
            bytes[at] ^= 4;
        }
        assert!((17..bytes.len()).all(|len| identify(&bytes[..len], &mut scratch) != Some(identity)));
    }
}
