//! Allocation tests: encoding never allocates. Decoding does not allocate if the value has
//! sufficient capacity.

use takt_testkit::memory::{allocations, peak_octets};
use takt_xtypes::{Endianness, deserialize, key_hash, serialize, serialized_len};

use crate::support::{REPRESENTATIONS, payload};
use crate::zoo::*;

#[global_allocator]
static ALLOCATOR: takt_testkit::memory::Counting = takt_testkit::memory::Counting;

fn collections() -> Collections {
    Collections {
        shorts: vec![1; 100],
        longs: vec![2; 100],
        flags: vec![true; 9],
        names: vec!["name".into(), "another".into()],
        words: ["a".into(), "b".into()],
        points: vec![Point::default(); 3],
        grown: vec![Grown { name: "grown".into(), count: 1 }; 4],
        nested: vec![vec![1, 2], vec![3]],
        ..Default::default()
    }
}

fn mutable() -> Mutable {
    Mutable {
        text: "text".into(),
        octets: vec![1; 1000],
        names: vec!["n".into(); 5],
        grown: Grown { name: "grown".into(), count: 1 },
        present: Some(1),
        ..Default::default()
    }
}

fn check<T: takt_xtypes::TypeSupport + PartialEq + std::fmt::Debug>(value: &T) {
    for representation in REPRESENTATIONS {
        let bytes = payload(value, representation, Endianness::Little);
        let mut out = vec![0; bytes.len()];
        let mut read = T::default();
        deserialize(&mut read, &bytes).expect("a well-formed payload");
        let count = allocations(|| {
            for _ in 0..10 {
                let len = serialized_len(value, representation);
                assert_eq!(serialize(value, representation, &mut out), Ok(len));
                assert!(deserialize(&mut read, &out).is_ok());
                assert!(key_hash(value).is_ok());
            }
        });
        assert_eq!(count, 0, "{} {representation:?}", T::TYPE_NAME);
        assert_eq!(read, *value);
    }
}

#[test]
fn steady_state_does_not_allocate() {
    check(&collections());
    check(&mutable());
    check(&ShapeType { color: "RED".into(), additional_payload_size: vec![1; 10], ..Default::default() });
    check(&Keyed { text: "key".into(), ..Default::default() });
    check(&Unions { b: FinalUnion::Label("label".into()), ..Default::default() });
    check(&MutableKeyed { name: "a name longer than sixteen bytes".into(), ..Default::default() });
}

#[test]
fn allocation_counter_detects_allocations() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    assert!(peak_octets(|| drop(std::hint::black_box(vec![0_u8; 1000]))) >= 1000);
}
