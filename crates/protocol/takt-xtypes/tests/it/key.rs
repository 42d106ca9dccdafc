//! Tests of key hashes (RTPS 2.5 §9.6.4.8, XTypes 1.3 §7.6.8) and key-only payloads.
//!
//! The expected digests were computed with another MD5 implementation. Comments show the hashed
//! octets.

use takt_derive::DdsType;
use takt_xtypes::{
    DecodeErrorKind, EncodeError, Endianness, Extensibility, KeyHash, Representation, TypeSupport, deserialize_key,
    key_hash, key_hash_from_payload, key_hash_with, serialize, serialize_key, serialize_key_with, serialized_key_len,
    serialized_len,
};

use crate::support::hex;
use crate::zoo::*;

fn hash(text: &str) -> KeyHash {
    hex(text).try_into().expect("sixteen bytes")
}

#[test]
fn long_key_is_hashed_with_md5() {
    let value = ShapeType { color: "BLUE".into(), ..Default::default() };
    // 00000005 "BLUE" 00. A string<128> may exceed 16 bytes, so even a short value is digested.
    assert_eq!(key_hash(&value), Ok(hash("cac217c318363f8ef1160eeedef9e886")));
    assert_eq!(key_hash_with(&value, Representation::Xcdr1), key_hash(&value));
    assert_eq!(ShapeType::max_key_len(Representation::Xcdr2), Some(4 + 129));
}

#[test]
fn short_key_is_its_own_hash() {
    let value = Derived { base: Base { id: 0x0102_0304, name: "ignored".into() }, extra: 1.0 };
    assert_eq!(key_hash(&value), Ok(hash("01020304 000000000000000000000000")));
    assert_eq!(Derived::max_key_len(Representation::Xcdr2), Some(4));
}

#[test]
fn members_are_ordered_by_id_at_every_level() {
    let value = Keyed {
        text: "ignored".into(),
        late: 0x1112_1314_1516_1718,
        inner: Inner { ignored: "ignored".into(), high: 0x2122_2324_2526_2728, low: 0x3132 },
        early: 0x4142_4344,
        point: Point { x: 5, y: 5.5 },
    };
    // early, inner.low, two bytes of padding, inner.high, late, point.x, point.y. The point has no
    // key members, so all of its members are key.
    assert_eq!(key_hash(&value), Ok(hash("14a3ffe5f9af8f14d6e61b685159d16f")));
    // The same octets with four bytes of padding before point.y.
    assert_eq!(key_hash_with(&value, Representation::Xcdr1), Ok(hash("7969d6fe5cee785b7ffe0fd17cb7efb8")));
    assert_eq!(Keyed::max_key_len(Representation::Xcdr2), Some(4 + 2 + 2 + 8 + 8 + 4 + 8));
    assert_eq!(Keyed::max_key_len(Representation::Xcdr1), Some(4 + 2 + 2 + 8 + 8 + 4 + 4 + 8));
}

#[test]
fn mutable_types_are_hashed_as_final_types() {
    let value = MutableKeyed { text: "x".into(), id: 0x0102_0304_0506_0708, name: "nine".into(), flag: 1 };
    // id, 00000005 "nine" 00
    assert_eq!(key_hash(&value), Ok(hash("48f1ca39ac5c01f7ba9b8fe6e81664d6")));
    assert_eq!(MutableKeyed::max_key_len(Representation::Xcdr2), None);
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
struct Aligned {
    #[dds(key)]
    a: i32,
    #[dds(key)]
    b: i64,
}

#[test]
fn key_hashes_of_representations_differ_in_alignment() {
    let value = Aligned { a: 1, b: 2 };
    assert_eq!(key_hash(&value), Ok(hash("00000001 0000000000000002 00000000")));
    assert_eq!(key_hash_with(&value, Representation::Xcdr1), Ok(hash("00000001 00000000 0000000000000002")));
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct Eleven {
    #[dds(key, bound = 11)]
    name: String,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct Twelve {
    #[dds(key, bound = 12)]
    name: String,
}

#[test]
fn maximum_key_length_decides_about_md5() {
    assert_eq!(Eleven::max_key_len(Representation::Xcdr2), Some(16));
    assert_eq!(key_hash(&Eleven { name: "ab".into() }), Ok(hash("00000003 616200 000000000000000000")));
    assert_eq!(Twelve::max_key_len(Representation::Xcdr2), Some(17));
    assert_eq!(key_hash(&Twelve { name: "ab".into() }), Ok(hash("186594b7205d08ac2ff8e1ac47fb4b2a")));
    let long = Eleven { name: "twelve chars".into() };
    assert_eq!(key_hash(&long), Err(EncodeError::BoundExceeded { bound: 11, len: 12 }));
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct Words {
    #[dds(key)]
    words: [String; 2],
}

#[test]
fn key_collections_keep_their_delimiter() {
    let value = Words { words: ["a".into(), "bc".into()] };
    // 0000000f, 00000002 "a" 00, two bytes of padding, 00000003 "bc" 00
    assert_eq!(key_hash(&value), Ok(hash("46ec33429878d037e2bbc70b65d9f641")));
    // In XCDR1 there is no delimiter.
    assert_eq!(key_hash_with(&value, Representation::Xcdr1), Ok(hash("2fa020345118702d3717a511b9a99e8d")));
}

#[test]
fn union_may_have_its_discriminator_as_key() {
    let value = MutableUnion::Text("text".into());
    assert_eq!(key_hash(&value), Ok(hash("02 000000000000000000000000000000")));
    let mut key = vec![0; serialized_key_len(&value, Representation::Xcdr2)];
    serialize_key(&value, Representation::Xcdr2, &mut key).expect("a key");
    // DHEADER, EMHEADER of the discriminator (must_understand, one byte), value, padding.
    assert_eq!(key, hex("000b0003 05000000 00000080 02 000000"));
    let mut read = MutableUnion::default();
    deserialize_key(&mut read, &key).expect("a well-formed key");
    assert_eq!(read, MutableUnion::Text(String::new()));
}

#[test]
fn type_without_key_has_one_instance() {
    const { assert!(!Primitives::HAS_KEY && ShapeType::HAS_KEY && Derived::HAS_KEY && !FinalUnion::HAS_KEY) };
    let value = Primitives { i32: 5, ..Default::default() };
    assert_eq!(key_hash(&value), Ok([0; 16]));
    let mut key = vec![0xee; serialized_key_len(&value, Representation::Xcdr2)];
    assert_eq!(serialize_key_with(&value, Representation::Xcdr2, Endianness::Big, &mut key), Ok(4));
    assert_eq!(key, hex("00060000"));
    let mut read = value.clone();
    assert_eq!(deserialize_key(&mut read, &key), Ok(()));
    assert_eq!(read, value);
}

#[test]
fn key_payload_sets_only_key_members() {
    let mut value = ShapeType { color: "RED".into(), x: 1, y: 2, shapesize: 3, additional_payload_size: vec![4] };
    deserialize_key(&mut value, &hex("00090003 09000000 05000000 424c554500 000000")).expect("a well-formed key");
    let expected = ShapeType { color: "BLUE".into(), x: 1, y: 2, shapesize: 3, additional_payload_size: vec![4] };
    assert_eq!(value, expected);
}

/// The payload is the key of an appendable type as CycloneDDS 0.10 encodes it.
#[test]
fn key_payload_may_lack_its_delimiter() {
    let mut value = ShapeType::default();
    deserialize_key(&mut value, &hex("00090000 05000000 424c554500 000000")).expect("a well-formed key");
    assert_eq!(value.color, "BLUE");
    // The first member could be mistaken for a delimiter.
    let mut value = Aligned::default();
    deserialize_key(&mut value, &hex("00090000 08000000 0700000000000000")).expect("a well-formed key");
    assert_eq!(value, Aligned { a: 8, b: 7 });
}

#[test]
fn missing_key_member_is_refused() {
    let mut value = Aligned::default();
    let error = deserialize_key(&mut value, &hex("00090000 04000000 01000000")).expect_err("no b");
    assert_eq!(error.kind, DecodeErrorKind::MissingKey { id: 1 });
    let mut value = MutableKeyed::default();
    let error = deserialize_key(&mut value, &hex("000b0000 0c000000 01000030 0807060504030201")).expect_err("no name");
    assert_eq!(error.kind, DecodeErrorKind::MissingKey { id: 2 });
}

#[test]
fn derived_types_have_the_declared_name_and_extensibility() {
    assert_eq!((ShapeType::TYPE_NAME, ShapeType::EXTENSIBILITY), ("ShapeType", Extensibility::Appendable));
    assert_eq!((Derived::TYPE_NAME, Point::EXTENSIBILITY), ("zoo::Derived", Extensibility::Final));
    assert_eq!((MutableUnion::TYPE_NAME, MutableUnion::EXTENSIBILITY), ("MutableUnion", Extensibility::Mutable));
}

#[test]
fn maximum_serialized_lengths() {
    let both = |f: fn(Representation) -> Option<usize>| (f(Representation::Xcdr1), f(Representation::Xcdr2));
    // 4 of encapsulation; x, and y aligned to 8 or to 4.
    assert_eq!(both(Point::max_serialized_len), (Some(4 + 16), Some(4 + 12)));
    assert_eq!(both(Primitives::max_serialized_len), (Some(4 + 64), Some(4 + 56)));
    assert_eq!(both(ShapeType::max_serialized_len), (None, None));
    assert_eq!(both(Tree::max_serialized_len), (None, None));
    // XCDR1: headers of 4; 4 of count, 4 of padding and 24; 4; 5 and 3 of padding; end of list.
    let xcdr1 = (4 + 32) + (4 + 4) + (4 + 8) + 4;
    // XCDR2: DHEADER; EMHEADERs of 4, the last with NEXTINT; the nested struct's own DHEADER; 3 of
    // padding.
    let xcdr2 = 4 + (4 + 4 + 24) + (4 + 4) + (8 + 4 + 5) + 3;
    assert_eq!(both(Fixed::max_serialized_len), (Some(4 + xcdr1), Some(4 + xcdr2)));
}

/// The key is shorter than the elements could be in a sample.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct KeyedElements {
    #[dds(key)]
    inner: Vec<ShortKey>,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", nested, extensibility = "final")]
struct ShortKey {
    #[dds(key)]
    id: u8,
    rest: [u64; 8],
}

#[test]
fn elements_in_a_key_have_only_their_key_members() {
    let element = |id| ShortKey { id, rest: [9; 8] };
    let value = KeyedElements { inner: vec![element(1), element(2)] };
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut key = vec![0; serialized_key_len(&value, representation)];
        serialize_key(&value, representation, &mut key).expect("a key");
        let mut read = KeyedElements::default();
        deserialize_key(&mut read, &key).expect("the key that was written");
        assert_eq!(read.inner.iter().map(|element| element.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(key_hash(&read), key_hash(&value));
    }
}

/// Members of all kinds with a maximum length.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "mutable")]
struct Fixed {
    #[dds(bound = 3)]
    points: Vec<i64>,
    number: Option<u32>,
    color: AppendableColor,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", nested)]
struct AppendableColor {
    color: Color,
    small: Small,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
struct KeyThenRest {
    before: String,
    #[dds(key)]
    a: u8,
    #[dds(key)]
    b: i64,
    rest: Vec<u64>,
}

#[test]
fn key_of_a_sample_is_read_without_the_rest() {
    let value = KeyThenRest { before: "x".into(), a: 7, b: -2, rest: vec![9; 100] };
    let hash = key_hash(&value).expect("a key");
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut payload = vec![0; serialized_len(&value, representation)];
        serialize(&value, representation, &mut payload).expect("room");
        let mut scratch = KeyThenRest::default();
        assert_eq!(key_hash_from_payload(&mut scratch, &payload), Ok(hash));
        assert!(scratch.rest.is_empty(), "what follows the key is not read");
        // The DHEADER of XCDR2 reveals that the rest is missing.
        payload.truncate(40);
        let read = key_hash_from_payload(&mut scratch, &payload);
        assert_eq!(read.is_ok(), representation == Representation::Xcdr1, "{read:?}");
    }
}

#[test]
fn key_of_a_mutable_sample_is_found_at_any_position() {
    let value = MutableKeyed { text: "x".into(), id: 0x0102_0304_0506_0708, name: "nine".into(), flag: 1 };
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut payload = vec![0; serialized_len(&value, representation)];
        serialize(&value, representation, &mut payload).expect("room");
        let read = key_hash_from_payload(&mut MutableKeyed::default(), &payload);
        assert_eq!(read.ok(), key_hash(&value).ok());
    }
}
