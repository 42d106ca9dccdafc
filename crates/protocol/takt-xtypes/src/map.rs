//! Encoding of maps (XTypes 1.3 §7.4.3.5, rules for MAP_TYPE): a count and pairs of key and value.

use alloc::collections::BTreeMap;

use crate::collection::{delimited_exactly, is_delimited};
use crate::describe::{TypeCollector, TypeIdentifiers};
use crate::encoder::Content;
use crate::{CdrValue, DecodeError, Decoder, EncodeError, Encoder, Extent, HasLength, Sink};

struct Counted<'a, K, V>(&'a BTreeMap<K, V>);

impl<K: CdrValue, V: CdrValue> Content for Counted<'_, K, V> {
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        e.write_len(self.0.len())?;
        e.nested(&Pairs(self.0))
    }
}

struct Pairs<'a, K, V>(&'a BTreeMap<K, V>);

impl<K: CdrValue, V: CdrValue> Content for Pairs<'_, K, V> {
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        self.0.iter().try_for_each(|(key, value)| {
            key.encode(e)?;
            value.encode(e)
        })
    }
}

fn decode_counted<K: CdrValue + Ord, V: CdrValue>(
    map: &mut BTreeMap<K, V>,
    d: &mut Decoder<'_>,
) -> Result<(), DecodeError> {
    map.clear();
    let count = d.read_count(const { at_least_one(K::MIN_ENCODED_LEN + V::MIN_ENCODED_LEN) })?;
    d.charge(count, size_of::<(K, V)>() + K::INITIAL_HEAP_LEN + V::INITIAL_HEAP_LEN)?;
    d.nested(|d| {
        for _ in 0..count {
            let mut key = K::initial();
            key.decode(d)?;
            let mut value = V::initial();
            value.decode(d)?;
            map.insert(key, value);
        }
        Ok(())
    })
}

const fn at_least_one(len: usize) -> usize {
    assert!(len > 0, "pairs of a map must occupy at least one byte");
    len
}

/// Pairs are written in ascending order of the key and read in any order. If a key occurs twice,
/// the last pair counts.
impl<K: CdrValue + Ord, V: CdrValue> CdrValue for BTreeMap<K, V> {
    const MIN_ENCODED_LEN: usize = 4;
    const LENGTH_CODE: u8 = if K::IS_PRIMITIVE && V::IS_PRIMITIVE { 4 } else { 5 };

    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        if is_delimited(e.representation(), K::IS_PRIMITIVE && V::IS_PRIMITIVE) {
            e.delimited(&Counted(self))
        } else {
            Counted(self).encode(e)
        }
    }

    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        if is_delimited(d.representation(), K::IS_PRIMITIVE && V::IS_PRIMITIVE) {
            delimited_exactly(d, |d| decode_counted(self, d))
        } else {
            decode_counted(self, d)
        }
    }

    fn initial() -> Self {
        Self::new()
    }

    fn reset(&mut self) {
        self.clear();
    }

    fn extend(extent: Extent) -> Extent {
        extent.unbounded()
    }

    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers {
        Self::describe_bounded(types, 0)
    }
}

impl<K: CdrValue + Ord, V: CdrValue> HasLength for BTreeMap<K, V> {
    fn length(&self) -> usize {
        self.len()
    }

    fn extend_bounded(extent: Extent, bound: usize) -> Extent {
        let plain = K::IS_PRIMITIVE && V::IS_PRIMITIVE;
        let extent = if is_delimited(extent.representation(), plain) { extent.add(4, 4) } else { extent };
        extent.add(4, 4).nested(|extent| extent.repeat(bound, |extent| V::extend(K::extend(extent))))
    }

    fn describe_bounded(types: &mut TypeCollector<'_>, bound: usize) -> TypeIdentifiers {
        let key = K::describe(types);
        key.map_to(V::describe(types), bound)
    }
}
