//! Tests of dynamic types against derived types: both encode and decode the same bytes, for valid
//! and malformed input.

use std::fmt::Debug;

use takt_testkit::memory::peak_octets;
use takt_xtypes::dynamic::{DynamicData, DynamicType, JsonValue, MEMORY_FACTOR, MEMORY_FLOOR};
use takt_xtypes::type_object::TypeRegistry;
use takt_xtypes::{
    DecodeErrorKind, EncodeError, Endianness, Representation, TypeSupport, deserialize, deserialize_key, key_hash,
    key_hash_with, serialize_key, serialized_key_len,
};

use crate::random::{ForEachType, Random, Rng, for_each_type};
use crate::support::{ENDIANNESSES, REPRESENTATIONS, decoded, hex, payload};
use crate::zoo::*;

const ROUNDS: usize = 50;

pub fn dynamic<T: TypeSupport>() -> DynamicType {
    let mut registry = TypeRegistry::new();
    let information = T::type_information(&mut registry);
    assert!(registry.missing(&information.complete.type_id).is_empty());
    DynamicType::new(&information.complete.type_id, &registry).expect("a type that compiles can be built")
}

/// Converts data to JSON and back. A JSON map loses only the distinction between a number and a
/// name.
fn through_json(ty: &DynamicType, data: &DynamicData) -> DynamicData {
    ty.from_json(&ty.to_json(data)).expect("what was printed can be read")
}

struct RoundTrip(Rng);

impl ForEachType for RoundTrip {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        let ty = dynamic::<T>();
        assert_eq!(ty.name(), T::TYPE_NAME);
        assert_eq!(ty.extensibility(), T::EXTENSIBILITY);
        assert_eq!(ty.has_key(), T::HAS_KEY);
        for round in 0..ROUNDS {
            let value = if round == 0 { T::initial() } else { T::random(&mut self.0) };
            for representation in REPRESENTATIONS {
                let context = format!("{} {representation:?} {value:?}", T::TYPE_NAME);
                for endianness in ENDIANNESSES {
                    let bytes = payload(&value, representation, endianness);
                    let (data, report) = ty.decode_reporting(&bytes).expect(&context);
                    assert_eq!(report.trailing_bytes, 0, "{context}");
                    assert_eq!(ty.key_hash_from_payload(&bytes, false).ok(), key_hash(&value).ok(), "{context}");
                    assert_eq!(ty.encode_with(&data, representation, endianness), Ok(bytes), "{context}");
                    assert_eq!(through_json(&ty, &data), data, "{context}");
                    if round == 0 {
                        assert_eq!(ty.default_data(), data, "{context}");
                    }
                    assert_eq!(
                        ty.key_hash(&data, representation),
                        key_hash_with(&value, representation),
                        "{context} {endianness:?}"
                    );
                }
                let mut key = vec![0; serialized_key_len(&value, representation)];
                serialize_key(&value, representation, &mut key).expect("a key");
                let data = ty.decode_key(&key).expect(&context);
                assert_eq!(ty.key_hash_from_payload(&key, true).ok(), key_hash(&value).ok(), "{context}");
                assert_eq!(ty.encode_key(&data, representation), Ok(key), "{context}");
                assert_eq!(ty.key_hash(&data, representation), key_hash_with(&value, representation), "{context}");
            }
        }
    }
}

#[test]
fn dynamic_and_derived_types_encode_the_same_bytes() {
    for_each_type(&mut RoundTrip(Rng(21)));
}

/// Checks that a dynamic type decodes the same value as the derived type.
fn agree<T: TypeSupport + PartialEq + Debug>(ty: &DynamicType, bytes: &[u8]) {
    let mut value = T::initial();
    let accepted = deserialize(&mut value, bytes).is_ok();
    let data = ty.decode(bytes);
    if accepted {
        let data = data.unwrap_or_else(|error| panic!("{} refuses {bytes:02x?}: {error}", T::TYPE_NAME));
        let again = ty.encode(&data, Representation::Xcdr2).expect("what was decoded can be encoded");
        // NaN differs from itself, so values are compared by their debug output.
        assert_eq!(format!("{:?}", decoded::<T>(&again)), format!("{value:?}"), "{bytes:02x?}");
    }
    let mut key = T::initial();
    if deserialize_key(&mut key, bytes).is_ok() {
        assert!(ty.decode_key(bytes).is_ok(), "{} key {bytes:02x?}", T::TYPE_NAME);
    }
}

struct Hostile(Rng);

impl ForEachType for Hostile {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        let ty = dynamic::<T>();
        for _ in 0..10 {
            let value = T::random(&mut self.0);
            for representation in REPRESENTATIONS {
                for endianness in ENDIANNESSES {
                    let bytes = payload(&value, representation, endianness);
                    for len in 0..bytes.len() {
                        agree::<T>(&ty, &bytes[..len]);
                    }
                    for _ in 0..50 {
                        let mut bytes = bytes.clone();
                        for _ in 0..=self.0.below(3) {
                            let at = 4 + self.0.below(bytes.len() - 4);
                            bytes[at] = if self.0.below(2) == 0 { self.0.next() as u8 } else { 0xff };
                        }
                        agree::<T>(&ty, &bytes);
                    }
                }
            }
        }
    }
}

#[test]
fn truncated_and_mutated_payloads_decode_as_with_derived_types() {
    for_each_type(&mut Hostile(Rng(22)));
}

struct Bounded(Rng);

impl ForEachType for Bounded {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        let ty = dynamic::<T>();
        for _ in 0..50 {
            let header = payload(&T::initial(), Representation::Xcdr2, Endianness::Little);
            let mut bytes = header[..4].to_vec();
            // Small words pass as valid counts.
            bytes.extend((0..64).flat_map(|_| (self.0.below(300) as u32).to_le_bytes()));
            let peak = peak_octets(|| {
                let _ = ty.decode(&bytes);
            });
            assert!(peak <= 2 * MEMORY_FLOOR.max(MEMORY_FACTOR * bytes.len()), "{} {peak}", T::TYPE_NAME);
        }
    }
}

#[test]
fn decoding_memory_is_bounded_by_the_payload() {
    for_each_type(&mut Bounded(Rng(23)));
}

#[test]
fn nesting_is_limited() {
    let ty = dynamic::<Tree>();
    // XCDR1, appendable: value, one child, and so on. The length does not limit the recursion.
    let mut bytes = hex("0001 0000");
    for _ in 0..10_000 {
        bytes.extend(hex("07000000 01000000"));
    }
    assert_eq!(ty.decode(&bytes).expect_err("too deep").kind, DecodeErrorKind::TooDeep);
    let mut data = ty.default_data();
    for _ in 0..200 {
        let mut parent = ty.default_data();
        let DynamicData::Struct(members) = &mut parent else { panic!("a structure") };
        members[1].1 = DynamicData::Sequence(vec![data]);
        data = parent;
    }
    assert_eq!(ty.encode(&data, Representation::Xcdr2), Err(EncodeError::TooDeep));
}

#[test]
fn key_of_an_appendable_type_may_lack_its_dheader() {
    let ty = dynamic::<ShapeType>();
    // Payload of CycloneDDS 0.10.2: the length of the string in place of the DHEADER.
    let data = ty.decode_key(&hex("0009 0003 05000000 424c5545 00000000")).expect("a key");
    assert_eq!(data.member("color"), Some(&DynamicData::String("BLUE".to_owned())));
}

#[test]
fn structure_is_encoded_by_name_and_requires_all_members() {
    let ty = dynamic::<Point>();
    let members = [("y".into(), DynamicData::F64(2.5)), ("x".into(), DynamicData::I32(1))];
    let bytes = ty.encode(&DynamicData::Struct(members.to_vec()), Representation::Xcdr1).expect("a point");
    assert_eq!(decoded::<Point>(&bytes), Point { x: 1, y: 2.5 });
    let error = ty.encode(&DynamicData::Struct(members[..1].to_vec()), Representation::Xcdr1);
    assert_eq!(error, Err(EncodeError::MissingMember { id: 0 }));
    let error = ty.encode(&DynamicData::I32(1), Representation::Xcdr1);
    assert_eq!(error, Err(EncodeError::Mismatch { expected: "a structure" }));
}

fn object<const N: usize>(members: [(&str, JsonValue); N]) -> JsonValue {
    JsonValue::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn text(text: &str) -> JsonValue {
    JsonValue::String(text.to_owned())
}

#[test]
fn json_fills_in_defaults_and_reports_the_path_of_an_error() {
    let ty = dynamic::<Unions>();
    let radius = |value| object([("Radius", value)]);
    let data = ty.from_json(&object([("b", radius(JsonValue::Integer(3)))])).expect("a value");
    let expected = Unions { b: FinalUnion::Radius(3.0), ..Unions::default() };
    let bytes = ty.encode(&data, Representation::Xcdr2).expect("a payload");
    assert_eq!(decoded::<Unions>(&bytes), expected);

    let error = |json| ty.from_json(&json).expect_err("no value of the type").to_string();
    assert_eq!(error(object([("b", radius(text("far")))])), "b.Radius: expected a number, not a string");
    assert_eq!(error(object([("lead", JsonValue::Integer(256))])), "lead: 256 is out of range");
    assert_eq!(error(object([("last", JsonValue::Null)])), "Unions has no member \"last\"");
    assert_eq!(
        error(object([("f", object([("Width", JsonValue::Null)]))])),
        "f: AppendableUnion has no member \"Width\""
    );
    assert_eq!(error(JsonValue::Null), "expected an object, not null");
}

#[test]
fn json_accepts_names_of_literals_and_flags() {
    let ty = dynamic::<Enums>();
    let value = Enums { color: Color::Blue, mask: Mask8::A | Mask8::C, colors: vec![Color::Green], ..Enums::default() };
    let data = ty.decode(&payload(&value, Representation::Xcdr2, Endianness::Little)).expect("a value");
    let JsonValue::Object(members) = ty.to_json(&data) else { panic!("an object") };
    let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    assert_eq!(member("color"), Some(text("Blue")));
    assert_eq!(member("mask"), Some(JsonValue::Array(vec![text("A"), text("C")])));
    assert_eq!(member("colors"), Some(JsonValue::Array(vec![text("Green")])));

    let colors = |value| object([("colors", JsonValue::Array(vec![text("Red"), value]))]);
    let error = ty.from_json(&colors(text("Pink"))).expect_err("no such color");
    assert_eq!(error.to_string(), "colors[1]: unknown literal; expected one of Red, Green, Blue");
    assert_eq!(error.path, "colors[1]");
    let smalls = object([("smalls", JsonValue::Array(vec![]))]);
    assert_eq!(ty.from_json(&smalls).expect_err("too few").to_string(), "smalls: expected 3 elements, not 0");
}

#[test]
fn idl_defines_types_before_their_use() {
    let idl = dynamic::<Derived>().to_idl();
    assert_eq!(
        idl,
        "@appendable struct Base {\n  @key long id;\n  string name;\n};\n\
         module zoo {\n  @appendable struct Derived : Base {\n    double extra;\n  };\n};\n"
    );
    let idl = dynamic::<Exotic>().to_idl();
    for line in [
        "@appendable @bit_bound(8) enum Small {",
        "map<unsigned long, double, 4> numbers;",
        "sequence<string<8> > _short;",
        "double matrix[3][2];",
        "@external Point boxed;",
        "@mutable @autoid(HASH) struct Exotic {",
        "union MutableUnion switch (@key octet) {",
        "    @id(9) string Text;",
        "@bit_bound(64) bitmask Mask64 {",
        "@position(31) HIGH",
        "@hashid(\"renamed\") Collections collections;",
    ] {
        assert!(idl.contains(line) || line.contains("Small"), "{line} is not in\n{idl}");
    }
    let tree = dynamic::<Tree>().to_idl();
    assert!(tree.starts_with("struct Tree;\n@appendable struct Tree {\n"), "{tree}");
}

#[test]
fn numbers_out_of_range_are_refused_and_minus_zero_is_zero() {
    let ty = dynamic::<Primitives>();
    let value = |name, json| ty.from_json(&object([(name, json)]));
    let error = |name, json| value(name, json).expect_err("no value of the type").to_string();
    assert_eq!(error("float", JsonValue::Number(1e39)), "float: 1e39 is out of range: a float is at most 3.4028235e38");
    assert_eq!(
        error("float", JsonValue::Number(-1e300)),
        "float: -1e300 is out of range: a float is at most 3.4028235e38"
    );
    assert_eq!(
        error("u64", JsonValue::Number(18_446_744_073_709_551_616.0)),
        "u64: 18446744073709552000 is out of range"
    );
    assert_eq!(
        error("i64", JsonValue::Number(-9_223_372_036_854_775_809.0)),
        "i64: -9223372036854776000 is out of range"
    );
    assert_eq!(error("i32", JsonValue::Number(1.0)), "i32: expected an integer, not 1.0");
    assert_eq!(error("i32", text("1")), "i32: expected an integer, not a string");
    let zero = value("u64", JsonValue::Number(-0.0)).expect("-0 is 0");
    assert_eq!(zero, ty.default_data());
    assert!(value("float", text("Infinity")).is_ok() && value("float", JsonValue::Number(3.4e38)).is_ok());
}

#[test]
fn strings_with_a_nul_are_refused() {
    let ty = dynamic::<ShapeType>();
    let error = ty.from_json(&object([("color", text("a\0b"))])).expect_err("no string of IDL").to_string();
    assert_eq!(error, "color: a string cannot contain a NUL character");
}
