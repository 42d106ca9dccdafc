//! Encoding tests of types that Rust cannot declare: arrays of named arrays.

use std::cmp::Ordering;

use takt_idl::{Idl, Options};
use takt_xtypes::Representation;
use takt_xtypes::dynamic::{DynamicData, DynamicType, FieldPart, Scalar};
use takt_xtypes::type_object::TypeRegistry;

use crate::support::hex;

fn dynamic(text: &str) -> DynamicType {
    let idl = Idl::parse("text.idl", text, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut registry = TypeRegistry::new();
    let information = idl.type_information("T", &mut registry).unwrap_or_else(|error| panic!("{error}"));
    DynamicType::new(&information.complete.type_id, &registry).expect("a type")
}

fn structure(members: Vec<(&str, DynamicData)>) -> DynamicData {
    DynamicData::Struct(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// Returns a two-dimensional array of strings.
fn texts(rows: [[&str; 2]; 2]) -> DynamicData {
    let text = |text: &&str| DynamicData::String((*text).to_owned());
    let row = |row: &[&str; 2]| DynamicData::Sequence(row.iter().map(text).collect());
    DynamicData::Sequence(rows.iter().map(row).collect())
}

/// Collects all elements of nested arrays in one list.
fn flat(data: &DynamicData, into: &mut Vec<DynamicData>) {
    match data {
        DynamicData::Sequence(elements) => elements.iter().for_each(|element| flat(element, into)),
        other => into.push(other.clone()),
    }
}

/// The expected octets are those of CycloneDDS 0.10.2 and 11.0.1.
#[test]
fn array_of_named_arrays_is_encoded_as_one_array() {
    let letters = |row: [u8; 2]| DynamicData::Sequence(row.map(DynamicData::Char8).to_vec());
    for (named, one, value, body) in [
        (
            "typedef char Row[2]; @final struct T { Row a[3]; };",
            "char a[3][2]",
            DynamicData::Sequence([*b"ab", *b"cd", *b"ef"].map(letters).to_vec()),
            "616263646566",
        ),
        (
            "typedef string Row[2]; @final struct T { Row a[2]; };",
            "string a[2][2]",
            texts([["a", "b"], ["a", "b"]]),
            "1e000000020000006100000002000000620000000200000061000000020000006200",
        ),
    ] {
        let (ty, data) = (dynamic(named), structure(vec![("a", value.clone())]));
        let payload = ty.encode(&data, Representation::Xcdr2).expect("a value of the type");
        assert_eq!(payload[4..4 + body.len() / 2], hex(body)[..], "{named}");
        assert_eq!(ty.decode(&payload).as_ref(), Ok(&data), "{named}");
        let mut elements = Vec::new();
        flat(&value, &mut elements);
        let (plain, same) = (
            dynamic(&format!("@final struct T {{ {one}; }};")),
            structure(vec![("a", DynamicData::Sequence(elements))]),
        );
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            assert_eq!(ty.encode(&data, representation), plain.encode(&same, representation), "{named}");
        }
    }
}

#[test]
fn field_within_an_array_of_arrays_is_read() {
    let ty = dynamic("typedef string Row[2]; @final struct T { Row a[2]; long b; };");
    let data = structure(vec![("a", texts([["p", "q"], ["r", "s"]])), ("b", DynamicData::I32(7))]);
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let payload = ty.encode(&data, representation).expect("a value of the type");
        for (first, second) in [(0, 1), (1, 0), (1, 1)] {
            let path = [FieldPart::Name("a".into()), FieldPart::Index(first), FieldPart::Index(second)];
            let field = ty.field(&path).expect("it is there");
            let read = field.read(&ty, &payload).expect("a value of the type").expect("it is there");
            let same = field.get(&ty, &data).and_then(|scalar| scalar.compare(read));
            assert_eq!(same, Some(Ordering::Equal), "{first}, {second}");
        }
        let behind = ty.field(&[FieldPart::Name("b".into())]).expect("it is there");
        assert!(matches!(behind.read(&ty, &payload), Ok(Some(Scalar::Integer(7)))));
    }
}
