//! Round trip tests: decoding yields the encoded value, independent of the previous value.

use std::fmt::Debug;

use takt_xtypes::{
    TypeSupport, deserialize_key_reporting, key_hash, key_hash_from_key_payload, key_hash_from_payload,
    serialize_key_with, serialized_key_len,
};

use crate::random::{ForEachType, Random, Rng, for_each_type};
use crate::support::{ENDIANNESSES, REPRESENTATIONS, decoded, payload};

const ROUNDS: usize = 200;

struct RoundTrip(Rng);

impl ForEachType for RoundTrip {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        let mut reused = T::initial();
        for _ in 0..ROUNDS {
            let seed = self.0.0;
            let value = T::random(&mut self.0);
            for representation in REPRESENTATIONS {
                for endianness in ENDIANNESSES {
                    let bytes = payload(&value, representation, endianness);
                    let context = format!("{} seed {seed} {representation:?} {endianness:?}", T::TYPE_NAME);
                    assert_eq!(bytes.len() % 4, 0, "{context}");
                    assert_eq!(decoded::<T>(&bytes), value, "{context}");
                    takt_xtypes::deserialize(&mut reused, &bytes).expect("a well-formed payload");
                    assert_eq!(reused, value, "into a used value: {context}");
                    if let Some(max) = T::max_serialized_len(representation) {
                        assert!(bytes.len() <= max, "{context}");
                    }
                }
            }
            reused.reset();
            assert_eq!(reused, T::initial());
        }
    }
}

#[test]
fn samples_round_trip() {
    for_each_type(&mut RoundTrip(Rng(1)));
}

struct Keys(Rng);

impl ForEachType for Keys {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        for _ in 0..ROUNDS {
            let value = T::random(&mut self.0);
            let hash = key_hash(&value).expect("a key");
            for representation in REPRESENTATIONS {
                for endianness in ENDIANNESSES {
                    let mut key = vec![0xee; serialized_key_len(&value, representation)];
                    assert_eq!(serialize_key_with(&value, representation, endianness, &mut key), Ok(key.len()));
                    let mut read = T::initial();
                    let report = deserialize_key_reporting(&mut read, &key).expect("a well-formed key");
                    assert_eq!(report.trailing_bytes, 0);
                    assert_eq!(key_hash(&read), Ok(hash), "{} {representation:?}", T::TYPE_NAME);
                    let mut scratch = T::initial();
                    assert_eq!(key_hash_from_key_payload(&mut scratch, &key), Ok(hash));
                    let sample = payload(&value, representation, endianness);
                    assert_eq!(key_hash_from_payload(&mut scratch, &sample), Ok(hash));
                }
            }
        }
    }
}

#[test]
fn keys_round_trip() {
    for_each_type(&mut Keys(Rng(2)));
}
