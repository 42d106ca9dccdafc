//! Type evolution tests: writers and readers with different types (XTypes 1.3 §7.2.4, §7.4).

use std::fmt::Debug;

use takt_derive::DdsType;
use takt_xtypes::{DecodeErrorKind, Endianness, Representation, TypeSupport, deserialize, deserialize_reporting};

use crate::support::{ENDIANNESSES, REPRESENTATIONS, decoded, hex, payload};

/// Encodes a value of one type and decodes it as another type into a copy of `into`, in both byte
/// orders.
fn read<W: TypeSupport, R: TypeSupport + Clone + PartialEq + Debug>(
    written: &W,
    into: &R,
    representation: Representation,
) -> R {
    let [big, little] = ENDIANNESSES.map(|endianness| {
        let mut value = into.clone();
        deserialize(&mut value, &payload(written, representation, endianness)).expect("assignable");
        value
    });
    assert_eq!(big, little);
    big
}

mod old {
    use super::DdsType;

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes")]
    pub struct Appendable {
        pub a: i32,
        pub b: u8,
    }

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", extensibility = "final")]
    pub struct Holder {
        pub list: Vec<Appendable>,
        pub one: Appendable,
        pub tail: u32,
    }

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", extensibility = "mutable")]
    pub struct Mutable {
        #[dds(key, id = 1)]
        pub id: u32,
        #[dds(id = 7)]
        pub text: String,
        #[dds(id = 3)]
        pub gone: u64,
    }

    #[derive(Clone, Debug, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", default)]
    pub enum Union {
        #[dds(case = 1)]
        Number(i32),
        #[dds(case = 2)]
        Nothing,
    }
}

mod new {
    use super::DdsType;

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes")]
    pub struct Appendable {
        pub a: i32,
        pub b: u8,
        #[dds(default = 42)]
        pub c: i64,
        pub d: String,
        pub e: Option<u8>,
        #[dds(bound = 4, default = vec![1, 2])]
        pub f: Vec<u8>,
    }

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", extensibility = "final")]
    pub struct Holder {
        pub list: Vec<Appendable>,
        pub one: Appendable,
        pub tail: u32,
    }

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", extensibility = "mutable")]
    pub struct Mutable {
        #[dds(id = 7)]
        pub text: String,
        #[dds(id = 100)]
        pub fresh: Option<String>,
        #[dds(id = 101, default = -1)]
        pub number: i16,
        #[dds(key, id = 1)]
        pub id: u32,
    }

    #[derive(Clone, Debug, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", default)]
    pub enum Union {
        #[dds(case = 1)]
        Number(i32),
        #[dds(case = 2)]
        Text(String),
    }
}

fn used() -> new::Appendable {
    new::Appendable { a: -1, b: 255, c: -1, d: "old".into(), e: Some(9), f: vec![9] }
}

fn defaulted(a: i32, b: u8) -> new::Appendable {
    new::Appendable { a, b, c: 42, d: String::new(), e: None, f: vec![1, 2] }
}

#[test]
fn members_missing_at_the_end_get_their_defaults() {
    for representation in REPRESENTATIONS {
        assert_eq!(read(&old::Appendable { a: 1, b: 2 }, &used(), representation), defaulted(1, 2));
    }
}

#[test]
fn members_unknown_at_the_end_are_skipped() {
    for representation in REPRESENTATIONS {
        let written = new::Appendable { a: 1, b: 2, ..used() };
        assert_eq!(read(&written, &old::Appendable::default(), representation), old::Appendable { a: 1, b: 2 });
    }
}

#[test]
fn trailing_bytes_are_counted() {
    let written = new::Appendable { a: 1, b: 2, ..used() };
    let mut value = old::Appendable::default();
    let report = deserialize_reporting(&mut value, &payload(&written, Representation::Xcdr1, Endianness::Little));
    // XCDR1 does not delimit the value: the trailing bytes are c to f with the padding before c.
    assert_eq!(report.expect("assignable").trailing_bytes, 3 + 8 + 8 + 5 + 3 + 5);
    let report = deserialize_reporting(&mut value, &payload(&written, Representation::Xcdr2, Endianness::Little));
    assert_eq!(report.expect("assignable").trailing_bytes, 0);
    // Undeclared padding, as after a final type.
    let mut point = crate::zoo::Point::default();
    let report = deserialize_reporting(&mut point, &hex("00070000 01000000 000000000000f03f 0102"));
    assert_eq!(report.expect("accepted").trailing_bytes, 2);
    assert_eq!(point, crate::zoo::Point { x: 1, y: 1.0 });
}

#[test]
fn delimited_types_may_evolve_at_any_nesting_level() {
    let representation = Representation::Xcdr2;
    let written = old::Holder {
        list: vec![old::Appendable { a: 1, b: 2 }, old::Appendable { a: 3, b: 4 }],
        one: old::Appendable { a: 5, b: 6 },
        tail: 7,
    };
    let into = new::Holder { list: vec![used(), used(), used()], one: used(), tail: 0 };
    let expected = new::Holder { list: vec![defaulted(1, 2), defaulted(3, 4)], one: defaulted(5, 6), tail: 7 };
    assert_eq!(read(&written, &into, representation), expected);
    assert_eq!(read(&expected, &old::Holder::default(), representation), written);
}

#[test]
fn mutable_members_are_matched_by_id() {
    for representation in REPRESENTATIONS {
        let written = old::Mutable { id: 1, text: "text".into(), gone: u64::MAX };
        let into = new::Mutable { text: "x".into(), fresh: Some("y".into()), number: 5, id: 9 };
        let expected = new::Mutable { text: "text".into(), fresh: None, number: -1, id: 1 };
        assert_eq!(read(&written, &into, representation), expected);
        let written = new::Mutable { text: "text".into(), fresh: Some("fresh".into()), number: 3, id: 1 };
        let into = old::Mutable { id: 9, text: "x".into(), gone: 5 };
        let expected = old::Mutable { id: 1, text: "text".into(), gone: 0 };
        assert_eq!(read(&written, &into, representation), expected);
    }
}

#[test]
fn every_length_code_is_read() {
    let expected = new::Mutable { text: "abc".into(), fresh: None, number: 2, id: 1 };
    // Forms of the members: id with 4 bytes or NEXTINT; text with NEXTINT or its own length; number
    // with 2 bytes or NEXTINT.
    let forms = [
        "20000001 00000001  50000007 00000004 61626300  10000065 0002",
        "40000001 00000004 00000001  40000007 00000008 00000004 61626300  40000065 00000002 0002",
        // Length codes 6 and 7 count in units of 4 and 8.
        "20000001 00000001  10000065 0002 0000  60000007 00000001 61626300",
    ];
    for (form, bytes) in forms.iter().enumerate() {
        let members = hex(bytes);
        let mut payload = hex("000a0000");
        payload.extend((members.len() as u32).to_be_bytes());
        payload.extend(members);
        if form == 2 {
            // Code 6 declares 1 * 4 bytes after the length, but the string takes its length as 1
            // byte and finds no NUL.
            let error = deserialize(&mut new::Mutable::default(), &payload).expect_err("not a string");
            assert_eq!(error.kind, DecodeErrorKind::Unterminated);
        } else {
            assert_eq!(decoded::<new::Mutable>(&payload), expected, "form {form}");
        }
    }
}

#[test]
fn last_occurrence_of_a_repeated_member_counts() {
    let payload = hex("000a0000 00000018 20000001 00000001 20000001 00000002 20000063 00000009");
    assert_eq!(decoded::<new::Mutable>(&payload).id, 2);
}

#[test]
fn unknown_must_understand_member_is_refused() {
    let refused = DecodeErrorKind::MustUnderstand { id: 99 };
    let mut value = new::Mutable::default();
    for payload in [
        "000a0000 00000010 20000001 00000001 a0000063 00000009",
        "00020000 0001 0004 00000001 4063 0004 00000009 7f02 0000",
        "00020000 0001 0004 00000001 7f01 0008 40000063 00000004 00000009 7f02 0000",
    ] {
        assert_eq!(deserialize(&mut value, &hex(payload)).expect_err("must be understood").kind, refused);
    }
    // A known member may be flagged. The flag on the extended header itself has no meaning.
    for payload in [
        "000a0000 00000008 a0000001 00000001",
        "00020000 4001 0004 00000001 7f02 0000",
        "00020000 3f01 0008 00000001 00000004 00000001 3f02 0000",
        "00020000 7f01 0008 00000063 00000004 00000009 4001 0004 00000001 7f02 0000",
        // One ignored parameter, and one reserved for implementations.
        "00020000 3f03 0004 00000009 8001 0004 00000009 0001 0004 00000001 7f02 0000",
    ] {
        deserialize(&mut value, &hex(payload)).expect("nothing unknown to understand");
        assert_eq!(value.id, 1);
    }
}

#[test]
fn missing_key_member_is_refused() {
    let mut value = new::Mutable::default();
    for payload in ["000a0000 00000000", "00020000 7f02 0000"] {
        let error = deserialize(&mut value, &hex(payload)).expect_err("no key");
        assert_eq!(error.kind, DecodeErrorKind::MissingKey { id: 1 });
    }
    let mut value = crate::zoo::ShapeType::default();
    let error = deserialize(&mut value, &hex("00090000 00000000")).expect_err("no key");
    assert_eq!(error.kind, DecodeErrorKind::MissingKey { id: 0 });
}

#[test]
fn union_case_may_gain_or_lose_its_member() {
    let representation = Representation::Xcdr2;
    let text = new::Union::Text("x".into());
    assert_eq!(read(&old::Union::Nothing, &text, representation), new::Union::Text(String::new()));
    assert_eq!(read(&text, &old::Union::Number(1), representation), old::Union::Nothing);
    assert_eq!(read(&old::Union::Number(5), &text, representation), new::Union::Number(5));
}

#[test]
fn encapsulation_must_match_the_extensibility() {
    let body = payload(&old::Appendable { a: 1, b: 2 }, Representation::Xcdr2, Endianness::Little);
    for identifier in (0..=20).chain([0x0100, 0xffff]) {
        let mut payload = body.clone();
        payload[..2].copy_from_slice(&u16::to_be_bytes(identifier));
        let result = deserialize(&mut old::Appendable::default(), &payload);
        let refused = result.is_err_and(|error| error.kind == DecodeErrorKind::Encapsulation { identifier });
        // CDR, and CDR2 with delimiters. All other identifiers are unknown or for other
        // extensibilities.
        assert_eq!(refused, ![0, 1, 8, 9].contains(&identifier), "{identifier:#06x}");
    }
}
