//! The bytes of CycloneDDS 11.0.1 (tests/vectors/generate.py made them) against ours.

use takt_xtypes::{
    Char8, Endianness, Representation, TypeSupport, deserialize_key_reporting, deserialize_reporting,
    serialize_key_with, serialize_with, serialized_key_len,
};

use crate::support::{hex, payload};
use crate::zoo::*;

const VECTORS: &str = include_str!("../vectors/cyclonedds.txt");

/// Cases in which the peer always takes the extended form of an XCDR1 parameter header, and we the short one.
const LONG_HEADERS: [&str; 9] = [
    "final_optional",
    "final_optional_absent",
    "final_optional_mixed",
    "appendable_optional",
    "appendable_optional_absent",
    "mutable",
    "mutable_absent",
    "nested",
    "mutable_keyed",
];

struct Vector {
    name: &'static str,
    representation: Representation,
    endianness: Endianness,
    is_key: bool,
    bytes: Vec<u8>,
}

fn vectors() -> impl Iterator<Item = Vector> {
    VECTORS.lines().map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, representation, endianness, what, bytes] = fields[..] else { panic!("five fields: {line}") };
        Vector {
            name,
            representation: if representation == "1" { Representation::Xcdr1 } else { Representation::Xcdr2 },
            endianness: if endianness == "le" { Endianness::Little } else { Endianness::Big },
            is_key: what == "key",
            bytes: hex(bytes),
        }
    })
}

impl Vector {
    fn is_comparable(&self) -> bool {
        self.representation == Representation::Xcdr2 || !LONG_HEADERS.contains(&self.name)
    }
}

/// The peer leaves the padding out; with it, and the options saying so, both are the same.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded[3] = (padded.len() - bytes.len()) as u8;
    padded
}

/// Checks all vectors of the case both ways: two representations in two byte orders.
fn check<T: TypeSupport + PartialEq + std::fmt::Debug>(name: &str, value: &T) {
    assert_eq!(check_some(name, value), 4, "{name}");
}

/// Checks the vectors of the case both ways; returns how many samples there were.
fn check_some<T: TypeSupport + PartialEq + std::fmt::Debug>(name: &str, value: &T) -> usize {
    let mut samples = 0;
    for vector in vectors().filter(|vector| vector.name == name) {
        let (representation, endianness) = (vector.representation, vector.endianness);
        let context = format!("{name} {representation:?} {endianness:?}");
        let ours = if vector.is_key {
            let mut out = vec![0; serialized_key_len(value, representation)];
            assert_eq!(serialize_key_with(value, representation, endianness, &mut out), Ok(out.len()), "{context}");
            out
        } else {
            payload(value, representation, endianness)
        };
        if vector.is_comparable() {
            assert_eq!(ours, padded(&vector.bytes), "{context}");
        }
        for bytes in [&vector.bytes, &padded(&vector.bytes), &ours] {
            let mut read = T::default();
            let report = if vector.is_key {
                deserialize_key_reporting(&mut read, bytes)
            } else {
                deserialize_reporting(&mut read, bytes)
            };
            let report = report.unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(report.trailing_bytes, 0, "{context}");
            assert_eq!((report.representation, report.endianness), (representation, endianness));
            if vector.is_key {
                let mut again = vec![0; serialized_key_len(&read, representation)];
                serialize_key_with(&read, representation, endianness, &mut again).expect("a key");
                assert_eq!(again, ours, "{context}");
            } else {
                assert_eq!(read, *value, "{context}");
            }
        }
        samples += usize::from(!vector.is_key);
    }
    samples
}

fn point(n: i32) -> Point {
    Point { x: n, y: f64::from(n) + 0.5 }
}

fn grown(name: &str, count: i8) -> Grown {
    Grown { name: name.into(), count }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.into()).collect()
}

fn mutable(present: Option<i64>) -> Mutable {
    Mutable {
        octet: 200,
        i16: -2,
        i32: 3,
        i64: -4,
        text: "five".into(),
        octets: vec![6, 7, 8],
        ints: vec![9, -9],
        longs: vec![10],
        shorts: vec![11, 12, 13],
        names: words(&["a", "bc"]),
        point: point(14),
        grown: grown("grown", 15),
        fixed: [16, 17, 18],
        words: ["x".into(), "".into()],
        color: Color::Blue,
        absent: None,
        present,
    }
}

#[test]
fn shape() {
    let value =
        ShapeType { color: "BLUE".into(), x: 1, y: -2, shapesize: 30, additional_payload_size: vec![255, 254, 253] };
    check("shape", &value);
    check("shape_empty", &ShapeType::default());
}

#[test]
fn primitives() {
    let value = Primitives {
        flag: true,
        i64: -0x0102_0304_0506_0708,
        octet: 200,
        double: 1.5,
        i16: -2,
        i32: 0x0102_0304,
        letter: Char8(b'T'),
        u16: 65535,
        float: -0.25,
        i8: -7,
        u32: 4_000_000_000,
        u64: 0x8000_0000_0000_0001,
    };
    check("primitives", &value);
}

#[test]
fn enums_and_bitmasks() {
    let value = Enums {
        small: Small::Two,
        color: Color::Blue,
        middle: Middle::High,
        mask: Mask8::A | Mask8::C,
        wide: Mask64::HIGH,
        colors: vec![Color::Green, Color::Red],
        smalls: [Small::One, Small::Two, Small::One],
    };
    assert_eq!(check_some("enums", &value), 2, "XCDR2 only: in XCDR1 the peer's binding ignores bit_bound");
}

#[test]
fn collections() {
    let value = Collections {
        shorts: vec![1, -2, 3],
        longs: vec![4, -5],
        flags: vec![true, false, true],
        names: words(&["", "six"]),
        fixed: [7, 8, 9],
        words: ["ten".into(), "e".into()],
        matrix: [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        table: [["a".into(), "b".into()], ["cc".into(), "dd".into()]],
        points: vec![point(1), point(2)],
        grown: vec![grown("g", 1), grown("hh", 2)],
        nested: vec![vec![1], vec![], vec![2, 3]],
        empty: vec![],
        last: 77,
    };
    check("collections", &value);
    check("collections_empty", &Collections::default());
}

#[test]
fn unions() {
    let value = Unions {
        lead: 1,
        a: FinalUnion::Radius(2.5),
        b: FinalUnion::Label("two".into()),
        c: FinalUnion::Point(point(4)),
        d: FinalUnion::Other(-1),
        e: AppendableUnion::Radius(0.125),
        f: AppendableUnion::Grown(grown("u", 5)),
    };
    check("unions", &value);
}

#[test]
fn optionals() {
    let all = FinalOptional {
        lead: 1,
        number: Some(2),
        wide: Some(3.0),
        text: Some("four".into()),
        point: Some(point(5)),
        last: 6,
    };
    check("final_optional_absent", &FinalOptional { lead: 1, last: 6, ..Default::default() });
    check("final_optional_mixed", &FinalOptional { number: None, text: None, ..all.clone() });
    check("final_optional", &all);
    let all = AppendableOptional {
        lead: 1,
        number: Some(2),
        wide: Some(3.0),
        text: Some("four".into()),
        grown: Some(grown("g", 5)),
        last: 6,
    };
    check("appendable_optional", &all);
    check("appendable_optional_absent", &AppendableOptional { lead: 1, last: 6, ..Default::default() });
}

#[test]
fn mutable_and_nested() {
    check("mutable", &mutable(Some(19)));
    check("mutable_absent", &mutable(None));
    check("nested", &Nested { lead: 1, grown: grown("n", 2), mutable: mutable(None), tail: 3 });
}

#[test]
fn inheritance() {
    check("derived", &Derived { base: Base { id: 7, name: "seven".into() }, extra: 7.5 });
}

#[test]
fn keys() {
    let value = Keyed {
        text: "text".into(),
        late: 0x1112_1314_1516_1718,
        inner: Inner { ignored: "no".into(), high: 0x2122_2324_2526_2728, low: 0x3132 },
        early: 0x4142_4344,
        point: point(5),
    };
    check("keyed", &value);
    let value = MutableKeyed { text: "text".into(), id: 0x0102_0304_0506_0708, name: "nine".into(), flag: 1 };
    check("mutable_keyed", &value);
}

#[test]
fn every_vector_has_a_test() {
    let mut names: Vec<_> = vectors().map(|vector| vector.name).collect();
    names.dedup();
    let tested = [
        "shape",
        "shape_empty",
        "primitives",
        "enums",
        "collections",
        "collections_empty",
        "unions",
        "final_optional",
        "final_optional_absent",
        "final_optional_mixed",
        "appendable_optional",
        "appendable_optional_absent",
        "mutable",
        "mutable_absent",
        "nested",
        "derived",
        "keyed",
        "mutable_keyed",
    ];
    assert_eq!(names, tested);
}

#[test]
fn a_buffer_that_is_too_small_is_refused_at_every_length() {
    let value = mutable(Some(1));
    for representation in crate::support::REPRESENTATIONS {
        let len = payload(&value, representation, Endianness::Little).len();
        for short in 0..len {
            let mut out = vec![0; short];
            assert!(serialize_with(&value, representation, Endianness::Little, &mut out).is_err(), "{short} of {len}");
        }
    }
}
