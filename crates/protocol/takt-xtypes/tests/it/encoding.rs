//! Encoding tests: octets derived by hand from XTypes 1.3 §7.4, in both byte orders.

use std::collections::BTreeMap;

use takt_derive::DdsType;
use takt_xtypes::{
    Bounded, Char8, Char16, EncodeError, Endianness, Representation, TypeSupport, Uint8, WString, serialize,
    serialized_len,
};

use crate::support::{body, decoded, hex, payload};
use crate::zoo::*;

use Endianness::{Big, Little};
use Representation::{Xcdr1, Xcdr2};

fn check<T: TypeSupport + PartialEq + std::fmt::Debug>(
    value: &T,
    representation: Representation,
    endianness: Endianness,
    bytes: &str,
) {
    let bytes = hex(bytes);
    assert_eq!(payload(value, representation, endianness), bytes, "{representation:?} {endianness:?}");
    assert_eq!(decoded::<T>(&bytes), *value, "{representation:?} {endianness:?}");
}

#[test]
fn appendable_struct_is_encoded() {
    let value = ShapeType { color: "RED".into(), x: 1, y: 2, shapesize: 30, additional_payload_size: vec![0xfe, 0xff] };
    check(&value, Xcdr1, Little, "00010002 04000000 52454400 01000000 02000000 1e000000 02000000 feff0000");
    check(&value, Xcdr1, Big, "00000002 00000004 52454400 00000001 00000002 0000001e 00000002 feff0000");
    check(&value, Xcdr2, Little, "00090002 1a000000 04000000 52454400 01000000 02000000 1e000000 02000000 feff0000");
    check(&value, Xcdr2, Big, "00080002 0000001a 00000004 52454400 00000001 00000002 0000001e 00000002 feff0000");
}

#[test]
fn final_struct_aligns_to_8_or_4() {
    let value = Point { x: 1, y: 1.0 };
    check(&value, Xcdr1, Big, "00000000 00000001 00000000 3ff0000000000000");
    check(&value, Xcdr1, Little, "00010000 01000000 00000000 000000000000f03f");
    check(&value, Xcdr2, Big, "00060000 00000001 3ff0000000000000");
    check(&value, Xcdr2, Little, "00070000 01000000 000000000000f03f");
}

/// Members for every length code and every form of a parameter.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "mutable")]
struct Codes {
    byte: u8,
    short: u16,
    #[dds(must_understand)]
    long: u32,
    hyper: u64,
    #[dds(id = 0x3f00)]
    point: Point,
    text: String,
    longs: Vec<i32>,
    #[dds(id = 0x0fff_ffff)]
    hypers: Vec<u64>,
}

fn codes() -> Codes {
    Codes {
        byte: 1,
        short: 2,
        long: 3,
        hyper: 4,
        point: Point { x: 5, y: 1.0 },
        text: "a".into(),
        longs: vec![6],
        hypers: vec![7],
    }
}

#[test]
fn mutable_struct_is_encoded_in_xcdr2() {
    let big = "000a0000 00000060
        00000000 01 000000
        10000001 0002 0000
        a0000002 00000003
        30000003 0000000000000004
        40003f00 0000000c 00000005 3ff0000000000000
        50003f01 00000002 6100 0000
        60003f02 00000001 00000006
        7fffffff 00000001 0000000000000007";
    check(&codes(), Xcdr2, Big, big);
    let little = "000b0000 60000000
        00000000 01 000000
        01000010 0200 0000
        020000a0 03000000
        03000030 0400000000000000
        003f0040 0c000000 05000000 000000000000f03f
        013f0050 02000000 6100 0000
        023f0060 01000000 06000000
        ffffff7f 01000000 0700000000000000";
    check(&codes(), Xcdr2, Little, little);
}

#[test]
fn mutable_struct_is_encoded_in_xcdr1() {
    // Lengths are padded to 4; alignment restarts in each parameter; ids above 0x3f00 take the
    // extended header.
    let big = "00020000
        0000 0004 01000000
        0001 0004 0002 0000
        4002 0004 00000003
        0003 0008 0000000000000004
        3f00 0010 00000005 00000000 3ff0000000000000
        7f01 0008 00003f01 00000008 00000002 61000000
        7f01 0008 00003f02 00000008 00000001 00000006
        7f01 0008 0fffffff 00000010 00000001 00000000 0000000000000007
        7f02 0000";
    check(&codes(), Xcdr1, Big, big);
    let little = "00030000
        0000 0400 01000000
        0100 0400 0200 0000
        0240 0400 03000000
        0300 0800 0400000000000000
        003f 1000 05000000 00000000 000000000000f03f
        017f 0800 013f0000 08000000 02000000 61000000
        017f 0800 023f0000 08000000 01000000 06000000
        017f 0800 ffffff0f 10000000 01000000 00000000 0700000000000000
        027f 0000";
    check(&codes(), Xcdr1, Little, little);
}

#[test]
fn parameter_longer_than_16_bits_has_an_extended_header() {
    let value = Codes { text: "x".repeat(70_000), ..Codes::default() };
    let value = Long { before: 1, text: value.text };
    let bytes = body(&value, Xcdr1, Big);
    assert_eq!(bytes[..24], hex("0000 0004 00000001 7f01 0008 00000001 00011178 00011171"));
    assert_eq!(bytes.len(), 8 + 12 + 70_008 + 4);
    assert_eq!(decoded::<Long>(&payload(&value, Xcdr1, Big)), value);
    let value = Long { before: 1, text: "x".repeat(65_527) };
    assert_eq!(body(&value, Xcdr1, Big)[8..16], hex("0001 fffc 0000fff8"));
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "mutable")]
struct Long {
    before: u32,
    text: String,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct Optionals {
    byte: u8,
    absent: Option<u16>,
    #[dds(must_understand)]
    number: Option<f64>,
    #[dds(id = 0x3f01)]
    far: Option<u8>,
    last: u16,
}

#[test]
fn optional_members_are_encoded() {
    let value = Optionals { byte: 1, absent: None, number: Some(1.0), far: Some(2), last: 3 };
    // XCDR1: one parameter each, with length 0 for an absent value. Alignment restarts in the
    // value.
    let big = "00000000 01 000000 0001 0000 4002 0008 3ff0000000000000 7f01 0008 00003f01 00000001 02 00 0003";
    check(&value, Xcdr1, Big, big);
    let little = "00010000 01 000000 0100 0000 0240 0800 000000000000f03f 017f 0800 013f0000 01000000 02 00 0300";
    check(&value, Xcdr1, Little, little);
    // XCDR2: a boolean each.
    check(&value, Xcdr2, Big, "00060000 01 00 01 00 3ff0000000000000 01 02 0003");
    check(&value, Xcdr2, Little, "00070000 01 00 01 00 000000000000f03f 01 02 0300");
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct SmallNumbers {
    one: Uint8,
    many: Vec<Uint8>,
}

/// `uint8` is encoded like `octet` but is a different type.
#[test]
fn uint8_is_encoded_as_octet() {
    let value = SmallNumbers { one: Uint8(0x2a), many: vec![Uint8(0), Uint8(0xff)] };
    check(&value, Xcdr1, Big, "00000002 2a 000000 00000002 00ff 0000");
    check(&value, Xcdr2, Little, "00070002 2a 000000 02000000 00ff 0000");
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct Text {
    letter: Char8,
    wide_letter: Char16,
    text: String,
    wide: WString,
    none: WString,
    end: u8,
}

#[test]
fn strings_and_characters_are_encoded() {
    let value = Text {
        letter: Char8(b'A'),
        wide_letter: Char16(0x6c34),
        text: "é".into(),
        wide: "a🦀".into(),
        none: "".into(),
        end: 0xff,
    };
    // A wide string: its length in bytes, surrogate pairs, no NUL.
    let big = "41 00 6c34 00000003 c3a900 00 00000006 0061 d83e dd80 0000 00000000 ff 000000";
    check(&value, Xcdr1, Big, &format!("00000003 {big}"));
    check(&value, Xcdr2, Big, &format!("00060003 {big}"));
    let little = "41 00 346c 03000000 c3a900 00 06000000 6100 3ed8 80dd 0000 00000000 ff 000000";
    check(&value, Xcdr1, Little, &format!("00010003 {little}"));
    check(&value, Xcdr2, Little, &format!("00070003 {little}"));
    assert_eq!(value.wide.to_string_lossy(), "a🦀");
    assert_eq!(format!("{:?}", value.wide), "\"a🦀\"");
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct Maps {
    numbers: BTreeMap<u8, u32>,
    words: BTreeMap<String, u8>,
}

#[test]
fn maps_are_encoded() {
    let value =
        Maps { numbers: BTreeMap::from([(1, 2), (3, 4)]), words: BTreeMap::from([("b".into(), 6), ("a".into(), 5)]) };
    let numbers = "00000002 01 000000 00000002 03 000000 00000004";
    let words = "00000002 00000002 6100 05 00 00000002 6200 06";
    check(&value, Xcdr1, Big, &format!("00000001 {numbers} {words} 00"));
    // Delimited unless both key and value are primitive.
    check(&value, Xcdr2, Big, &format!("00060001 {numbers} 00000013 {words} 00"));
}

#[test]
fn mutable_union_is_encoded() {
    let value = MutableUnion::Text("a".into());
    // The discriminator is member 0 and must be understood; the member has its declared id.
    check(&value, Xcdr2, Big, "000a0002 00000012 80000000 02 000000 50000009 00000002 6100 0000");
    check(&value, Xcdr2, Little, "000b0002 12000000 00000080 02 000000 09000050 02000000 6100 0000");
    check(&value, Xcdr1, Big, "00020000 4000 0004 02 000000 0009 0008 00000002 61000000 7f02 0000");
    check(&value, Xcdr1, Little, "00030000 0040 0400 02 000000 0900 0800 02000000 61000000 027f 0000");
    // The first member's id is 1. Without a member, only the discriminator is encoded: the smallest
    // unused value.
    check(&MutableUnion::Number(7), Xcdr2, Big, "000a0002 0000000e 80000000 01 000000 10000001 0007 0000");
    check(&MutableUnion::Nothing, Xcdr2, Big, "000a0003 00000005 80000000 00 000000");
    check(&MutableUnion::Nothing, Xcdr1, Big, "00020000 4000 0004 00 000000 7f02 0000");
}

#[test]
fn unions_with_shared_and_default_labels_are_encoded() {
    let value = FinalUnion::Label("a".into());
    check(&value, Xcdr2, Big, "00060002 00000002 00000002 6100 0000");
    assert_eq!(decoded::<FinalUnion>(&hex("00060002 00000003 00000002 6100 0000")), value);
    let value = FinalUnion::Other(9);
    check(&value, Xcdr2, Big, "00060002 00000000 0009 0000");
    assert_eq!(decoded::<FinalUnion>(&hex("00060002 80000000 0009 0000")), value);
    check(&AppendableUnion::Nothing, Xcdr2, Big, "00080000 00000004 00000001");
    check(&AppendableUnion::Nothing, Xcdr1, Big, "00000000 00000001");
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct Arrays {
    plain: [[u16; 2]; 2],
    text: [[String; 1]; 2],
    list: Vec<[u8; 2]>,
    masks: Vec<Mask8>,
    none: Vec<u64>,
    end: u8,
}

#[test]
fn arrays_are_delimited_unless_their_elements_are_primitive() {
    let value = Arrays {
        plain: [[1, 2], [3, 4]],
        text: [["a".into()], ["b".into()]],
        list: vec![[5, 6]],
        masks: vec![Mask8::C],
        none: vec![],
        end: 7,
    };
    // An empty sequence of 8-byte elements is not aligned to 8.
    let plain = "0001 0002 0003 0004";
    let text = "00000002 6100 0000 00000002 6200";
    let rest = |list: &str, masks: &str| format!("{list} 00000001 0506 0000 {masks} 00000001 04 000000 00000000 07");
    check(&value, Xcdr1, Big, &format!("00000003 {plain} {text} 0000 {} 000000", rest("", "")));
    // Several dimensions are one array with one DHEADER. Arrays and bitmasks are not primitive
    // elements.
    let delimited = rest("00000006", "00000005");
    check(&value, Xcdr2, Big, &format!("00060003 {plain} 0000000e {text} 0000 {delimited} 000000"));
}

#[test]
fn recursive_types_are_encoded() {
    let leaf = |value| Tree { value, ..Tree::default() };
    let value = Tree { value: 1, children: vec![leaf(2)], other: Some(Box::new(leaf(3))) };
    let leaf = |value: &str| format!("0000000d {value} 00000004 00000000 00");
    let big = format!(
        "00080003 00000031 00000001 00000015 00000001 {} 01 0000 {} 000000",
        leaf("00000002"),
        leaf("00000003")
    );
    check(&value, Xcdr2, Big, &big);
}

#[test]
fn nested_mutable_struct_restarts_alignment_in_xcdr1() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", extensibility = "mutable")]
    struct Outer {
        inner: Inner8,
        tail: u64,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", extensibility = "mutable", nested)]
    struct Inner8 {
        value: u64,
        byte: u8,
    }
    let value = Outer { inner: Inner8 { value: 1, byte: 2 }, tail: 3 };
    let inner = "0000 0008 0000000000000001 0001 0004 02000000 7f02 0000";
    check(&value, Xcdr1, Big, &format!("00020000 0000 0018 {inner} 0001 0008 0000000000000003 7f02 0000"));
}

#[test]
fn base_members_come_first_without_a_header_of_their_own() {
    let value = OnlyBase { base: Derived { base: Base { id: 1, name: "a".into() }, extra: 1.0 } };
    check(&value, Xcdr2, Big, "00080000 00000014 00000001 00000002 6100 0000 3ff0000000000000");
    check(&Empty {}, Xcdr2, Big, "00080000 00000000");
    check(&Empty {}, Xcdr1, Big, "00000000");
}

#[test]
fn member_ids_continue_after_those_of_the_base() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", extensibility = "mutable")]
    struct First {
        #[dds(id = 4)]
        a: u8,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", extensibility = "mutable")]
    struct Second {
        #[dds(base)]
        first: First,
        b: u8,
        c: u8,
        #[dds(id = 2)]
        d: u8,
    }
    let value = Second { first: First { a: 1 }, b: 2, c: 3, d: 4 };
    let members = "00000004 01 000000 00000005 02 000000 00000006 03 000000 00000002 04";
    check(&value, Xcdr2, Big, &format!("000a0003 0000001d {members} 000000"));
}

#[test]
fn hash_ids_are_those_of_the_specification() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", extensibility = "mutable", autoid = "hash")]
    struct Hashed {
        color: u8,
        #[dds(hashid = "shapesize")]
        renamed: u8,
        #[dds(id = 5)]
        given: u8,
    }
    // XTypes 1.3 §7.3.1.2.1.1: hash ids of "color" and "shapesize" are 0x0fa5dd70 and 0x047790da.
    let value = Hashed { color: 1, renamed: 2, given: 3 };
    check(&value, Xcdr2, Big, "000a0003 00000015 0fa5dd70 01 000000 047790da 02 000000 00000005 03 000000");
}

#[test]
fn encoding_fails_if_a_bound_is_exceeded() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes")]
    struct Limits {
        #[dds(bound = 2)]
        text: String,
        #[dds(bound = 2)]
        list: Vec<u8>,
        #[dds(bound = 2)]
        option: Option<WString>,
        inner: Vec<Bounded<Vec<u8>, 2>>,
    }
    let good =
        Limits { text: "ab".into(), list: vec![1, 2], option: Some("ab".into()), inner: vec![Bounded(vec![1, 2])] };
    let mut out = [0; 100];
    assert_eq!(serialize(&good, Xcdr2, &mut out), Ok(serialized_len(&good, Xcdr2)));
    let too_long = EncodeError::BoundExceeded { bound: 2, len: 3 };
    let bad = [
        Limits { text: "abc".into(), ..good.clone() },
        Limits { list: vec![1, 2, 3], ..good.clone() },
        Limits { option: Some("abc".into()), ..good.clone() },
        Limits { inner: vec![Bounded(vec![1, 2, 3])], ..good.clone() },
    ];
    for value in bad {
        assert_eq!(serialize(&value, Xcdr2, &mut out), Err(too_long), "{value:?}");
        assert_eq!(serialize(&value, Xcdr1, &mut out), Err(too_long), "{value:?}");
    }
}

#[test]
fn encoding_fails_if_a_value_nests_too_deeply() {
    let mut value = Tree::default();
    for _ in 0..200 {
        value = Tree { other: Some(Box::new(value)), ..Tree::default() };
    }
    assert_eq!(serialize(&value, Xcdr2, &mut [0; 8000]), Err(EncodeError::TooDeep));
    assert_eq!(serialize(&value, Xcdr1, &mut [0; 8000]), Err(EncodeError::TooDeep));
}

#[test]
fn error_of_the_value_precedes_that_of_the_buffer() {
    #[derive(DdsType, Default, Debug)]
    #[dds(crate = "takt_xtypes")]
    struct Text {
        #[dds(bound = 2)]
        text: String,
    }
    let value = Text { text: "abc".into() };
    for representation in [Xcdr1, Xcdr2] {
        let mut out = vec![0; serialized_len(&value, representation)];
        assert_eq!(
            serialize(&value, representation, &mut out),
            Err(EncodeError::BoundExceeded { bound: 2, len: 3 }),
            "{representation:?}"
        );
    }
}

#[test]
fn encoding_fails_if_a_string_contains_a_nul() {
    for text in ["\0", "ab\0cd", "abc\0"] {
        let at = text.find('\0').expect("there is one");
        for representation in [Xcdr1, Xcdr2] {
            assert_eq!(
                serialize(&Label { text: text.into() }, representation, &mut [0; 64]),
                Err(EncodeError::Nul { at })
            );
        }
    }
    let mut read = Label::default();
    let error = takt_xtypes::deserialize(&mut read, &hex("00010000 04000000 61006200")).expect_err("it contains a NUL");
    assert!(error.to_string().contains("contains a NUL"), "{error}");
    assert!(EncodeError::Nul { at: 2 }.to_string().contains("NUL at octet 2"));
}

#[derive(Clone, Debug, Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct Label {
    text: String,
}
