//! XCDR round trips of test types: a value that was read can be written and read again, and is
//! equal.

use crate::zoo::*;
use takt_xtypes::{
    Endianness, Representation, TypeSupport, deserialize, deserialize_key, key_hash, key_hash_from_key_payload,
    key_hash_from_payload, serialize_with, serialized_len,
};

/// Runs an input: the first byte selects the type, the others are the payload.
pub fn run(input: &[u8]) {
    let Some((choice, payload)) = input.split_first() else { return };
    let types: &[fn(&[u8])] = &[
        decode::<ShapeType>,
        decode::<Primitives>,
        decode::<Point>,
        decode::<Grown>,
        decode::<Enums>,
        decode::<Collections>,
        decode::<FinalUnion>,
        decode::<AppendableUnion>,
        decode::<MutableUnion>,
        decode::<Unions>,
        decode::<FinalOptional>,
        decode::<AppendableOptional>,
        decode::<Mutable>,
        decode::<Nested>,
        decode::<Base>,
        decode::<Derived>,
        decode::<Inner>,
        decode::<Keyed>,
        decode::<MutableKeyed>,
        decode::<Tree>,
        decode::<Empty>,
        decode::<OnlyBase>,
        decode::<Exotic>,
    ];
    types[usize::from(*choice) % types.len()](payload);
}

fn decode<T: TypeSupport>(payload: &[u8]) {
    let mut value = T::default();
    if deserialize(&mut value, payload).is_ok() {
        let hash = key_hash(&value);
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            for endianness in [Endianness::Big, Endianness::Little] {
                encode(&value, representation, endianness);
            }
        }
        if let (Ok(hash), true) = (hash, T::HAS_KEY) {
            let mut scratch = T::default();
            assert_eq!(key_hash_from_payload(&mut scratch, payload), Ok(hash));
        }
    }
    let mut key = T::default();
    let read = deserialize_key(&mut key, payload).is_ok();
    let mut scratch = T::default();
    assert_eq!(key_hash_from_key_payload(&mut scratch, payload).is_ok(), read);
}

/// Asserts that a written value is read back as equal, and that writing it again yields the same
/// bytes.
fn encode<T: TypeSupport>(value: &T, representation: Representation, endianness: Endianness) {
    let mut bytes = vec![0; serialized_len(value, representation)];
    // Some values cannot be written, for instance a union without a case.
    let Ok(len) = serialize_with(value, representation, endianness, &mut bytes) else { return };
    assert_eq!(len, bytes.len());
    let mut again = T::default();
    deserialize(&mut again, &bytes).expect("what we wrote is well formed");
    let mut same = vec![0; len];
    assert_eq!(serialize_with(&again, representation, endianness, &mut same), Ok(len));
    assert!(bytes == same, "{bytes:02x?} became {same:02x?}");
}
