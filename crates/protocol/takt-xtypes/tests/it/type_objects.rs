//! Tests of type objects: derived types against those of the CycloneDDS IDL compiler 0.10.2
//! (tests/vectors/type_objects.py).

use std::collections::{BTreeMap, BTreeSet};

use takt_derive::DdsType;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::{
    TypeError, TypeIdentifier, TypeIdentifierTypeObjectPair, TypeIdentifierWithDependencies, TypeInformation,
    TypeObject, TypeRegistry,
};
use takt_xtypes::{Bounded, Char8, TypeSupport, bitmask};

use crate::support::hex;
use crate::zoo;

const VECTORS: &str = include_str!("../vectors/cyclonedds_types.txt");

fn vector(type_name: &str, what: &str) -> Vec<u8> {
    let line = VECTORS.lines().find(|line| line.starts_with(&format!("{type_name} {what} ")));
    hex(line.expect("a vector of this type").rsplit(' ').next().expect("bytes"))
}

fn vectors(what: &str) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    VECTORS.lines().filter_map(move |line| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields[1] == what).then(|| (fields[0], hex(fields[2])))
    })
}

/// Parses the two sequences of pairs at the start of a type mapping.
fn pairs(mapping: &[u8]) -> [Vec<TypeIdentifierTypeObjectPair>; 2] {
    let len = 4 + u32::from_le_bytes(mapping[..4].try_into().expect("a DHEADER")) as usize;
    let minimal = TypeIdentifierTypeObjectPair::parse_sequence(&mapping[..len]).expect("minimal pairs");
    let rest = &mapping[len.next_multiple_of(4)..];
    [minimal, TypeIdentifierTypeObjectPair::parse_sequence(rest).expect("complete pairs")]
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "objects::Color")]
#[allow(clippy::upper_case_acronyms)]
enum Color {
    #[default]
    RED,
    GREEN,
    BLUE = 7,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "objects::Small", bit_bound = 8, extensibility = "final")]
#[allow(clippy::upper_case_acronyms)]
enum Small {
    #[default]
    ONE = 1,
    TWO,
}

bitmask! {
    /// Three flags.
    struct Mask8: u8 as "objects::Mask8" {
        /// First.
        const A = 0;
        /// Second.
        const B = 1;
        /// Not adjacent to the others.
        const F = 5;
    }
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "objects::Point", nested, extensibility = "final")]
struct Point {
    x: i32,
    y: f64,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "objects::Base")]
struct Base {
    #[dds(key)]
    id: i32,
    name: String,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "objects::Derived")]
struct Derived {
    #[dds(base)]
    base: Base,
    extra: f64,
    r#where: Option<Point>,
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "objects::Choice", extensibility = "final", default)]
#[allow(non_camel_case_types)]
enum Choice {
    #[dds(case = 1)]
    radius(f64),
    #[dds(case = [2, 3], bound = 16)]
    label(String),
    #[dds(case = 4)]
    point(Point),
    #[dds(default)]
    other(i16),
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "objects::ByColor", discriminator = "Color", default)]
#[allow(non_camel_case_types)]
enum ByColor {
    #[dds(case = Color::RED)]
    radius(f64),
    #[dds(case = Color::BLUE)]
    point(Point),
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "objects::Everything", extensibility = "mutable", default)]
struct Everything {
    #[dds(key, id = 4, bound = 32)]
    key: String,
    #[dds(id = 9)]
    flag: bool,
    byte: u8,
    letter: Char8,
    s16: i16,
    v16: u16,
    s32: i32,
    v32: u32,
    s64: i64,
    v64: u64,
    r32: f32,
    r64: f64,
    v8: u8,
    text: String,
    #[dds(must_understand, bound = 300)]
    long_text: String,
    octets: Vec<u8>,
    #[dds(bound = 5)]
    few: Vec<i32>,
    #[dds(bound = 300)]
    points: Vec<Point>,
    words: Vec<Bounded<String, 8>>,
    nested: Vec<Vec<i16>>,
    trio: [i32; 3],
    matrix: [[f64; 300]; 3],
    corners: [Point; 2],
    color: Color,
    small: Small,
    mask: Mask8,
    choice: Choice,
    by_color: ByColor,
    derived: Derived,
    maybe: Option<i32>,
    far: Option<Box<Point>>,
    #[dds(hashid)]
    hashed: u8,
}

fn set(of: &TypeIdentifierWithDependencies) -> BTreeSet<(TypeIdentifier, u32)> {
    of.dependencies.iter().cloned().collect()
}

/// Compares a derived type with the vector. If a hash differs, reports the differing type object
/// member by member.
fn compare<T: TypeSupport>() {
    let mut registry = TypeRegistry::new();
    let ours = T::type_information(&mut registry);
    for pair in pairs(&vector(T::TYPE_NAME, "map")).into_iter().flatten() {
        let found = registry.get(&pair.type_identifier).is_some();
        assert!(found, "{} {:#?}\nof {:#?}", T::TYPE_NAME, pair.type_object, registry.iter().collect::<Vec<_>>());
    }
    let theirs = TypeInformation::parse(&vector(T::TYPE_NAME, "info")).expect("type information");
    for (ours, theirs) in [(&ours.minimal, &theirs.minimal), (&ours.complete, &theirs.complete)] {
        assert_eq!(ours.type_id, theirs.type_id);
        assert_eq!(ours.serialized_size, theirs.serialized_size);
        assert_eq!(ours.dependent_count, theirs.dependent_count);
        assert_eq!(set(ours), set(theirs));
    }
}

#[test]
fn struct_and_base_have_the_identifiers_of_the_peer() {
    compare::<Base>();
    compare::<Derived>();
}

#[test]
fn unions_have_the_identifiers_of_the_peer() {
    compare::<Choice>();
    compare::<ByColor>();
}

#[test]
fn every_kind_of_member_has_the_identifier_of_the_peer() {
    compare::<Everything>();
}

#[test]
fn type_information_of_the_peer_round_trips() {
    for (name, bytes) in vectors("info") {
        let information = TypeInformation::parse(&bytes).expect("type information");
        assert_eq!(information.to_bytes(), bytes, "{name}");
        assert!(information.minimal.type_id.is_minimal() && information.complete.type_id.is_complete());
        for len in 0..bytes.len() {
            assert!(TypeInformation::parse(&bytes[..len]).is_err(), "{name} at {len}");
        }
    }
}

#[test]
fn type_objects_of_the_peer_round_trip_and_match_their_hashes() {
    for (name, bytes) in vectors("map") {
        let [minimal, complete] = pairs(&bytes);
        assert_eq!(minimal.len(), complete.len());
        for TypeIdentifierTypeObjectPair { type_identifier, type_object } in minimal.into_iter().chain(complete) {
            assert_eq!(type_object.identifier(), type_identifier, "{name}");
            let bytes = type_object.to_bytes();
            assert_eq!(type_object.serialized_len(), bytes.len());
            assert_eq!(TypeObject::parse(&bytes), Ok(type_object));
            for len in 0..bytes.len() {
                assert!(TypeObject::parse(&bytes[..len]).is_err(), "{name} at {len}");
            }
            let bytes = type_identifier.to_bytes();
            assert_eq!(TypeIdentifier::parse(&bytes), Ok(type_identifier));
        }
    }
}

#[test]
fn dynamic_type_is_built_from_type_objects_of_the_peer() {
    let information = TypeInformation::parse(&vector("objects::Everything", "info")).expect("type information");
    let root = &information.complete.type_id;
    let mut registry = TypeRegistry::new();
    assert_eq!(registry.missing(root), std::slice::from_ref(root));
    let [minimal, complete] = pairs(&vector("objects::Everything", "map"));
    let mut complete: BTreeMap<_, _> =
        complete.into_iter().map(|pair| (pair.type_identifier, pair.type_object)).collect();
    while let Some(identifier) = registry.missing(root).first() {
        let missing = DynamicType::new(root, &registry).expect_err("something is missing");
        assert!(matches!(missing, TypeError::Missing { .. }), "{missing}");
        let object = complete.remove(identifier).expect("the peer's mapping is whole");
        registry.insert_as(identifier, object).expect("it hashes to its name");
    }
    assert!(complete.is_empty());
    let ty = DynamicType::new(root, &registry).expect("a whole type");
    assert_eq!(ty.name(), "objects::Everything");
    assert!(ty.has_key());

    let minimal_root = &information.minimal.type_id;
    for pair in minimal {
        registry.insert(pair.type_object).expect("room");
    }
    assert_eq!(DynamicType::new(minimal_root, &registry).expect_err("no names"), TypeError::Minimal);
}

#[test]
fn registry_verifies_identifiers_and_enforces_its_limit() {
    let [minimal, complete] = pairs(&vector("objects::Derived", "map"));
    let (first, other) = (&complete[0], &complete[1]);
    let mut registry = TypeRegistry::with_limit(first.type_object.serialized_len());
    let wrong = registry.insert_as(&first.type_identifier, other.type_object.clone());
    assert_eq!(wrong, Err(TypeError::HashMismatch { identifier: first.type_identifier.clone() }));
    let wrong = registry.insert_as(&first.type_identifier, minimal[0].type_object.clone());
    assert!(matches!(wrong, Err(TypeError::HashMismatch { .. })));
    assert!(registry.is_empty());
    registry.insert(first.type_object.clone()).expect("room for one");
    registry.insert(first.type_object.clone()).expect("no room is needed for what is there");
    assert!(matches!(registry.insert(other.type_object.clone()), Err(TypeError::Limit { .. })));
    assert_eq!(registry.len(), 1);
    assert_eq!(registry.get(&first.type_identifier), Some(&first.type_object));
}

#[test]
fn recursive_types_form_one_component() {
    let mut registry = TypeRegistry::new();
    let information = zoo::Tree::type_information(&mut registry);
    assert_eq!(information.complete.dependent_count, 0);
    let bytes = information.to_bytes();
    assert_eq!(TypeInformation::parse(&bytes), Ok(information.clone()));
    let object = registry.get(&information.complete.type_id).expect("the definition");
    assert_eq!(object.dependencies(), std::slice::from_ref(&information.complete.type_id));
    let again = zoo::Tree::type_information(&mut TypeRegistry::new());
    assert_eq!(again, information);
    let ty = DynamicType::new(&information.complete.type_id, &registry).expect("a recursive type");
    assert!(ty.to_idl().contains("sequence<Tree> children;"));
}

/// Two mutually recursive types, and a type that contains them.
mod mutual {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes")]
    pub struct Outer {
        pub odd: Odd,
        pub even: Even,
    }

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes")]
    pub struct Odd {
        pub next: Vec<Even>,
        pub color: Vec<Color>,
    }

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes")]
    pub struct Even {
        pub next: Option<Box<Odd>>,
    }
}

#[test]
fn component_identifiers_are_independent_of_the_starting_type() {
    let mut registry = TypeRegistry::new();
    let outer = mutual::Outer::type_information(&mut registry);
    let odd = mutual::Odd::type_information(&mut TypeRegistry::new());
    let even = mutual::Even::type_information(&mut TypeRegistry::new());
    let listed = set(&outer.complete);
    assert_eq!(listed.len(), 3);
    for inner in [&odd.complete, &even.complete] {
        assert!(listed.contains(&(inner.type_id.clone(), inner.serialized_size)));
        assert_ne!(inner.type_id.hash(), Some([0; 14]));
    }
    assert_eq!(odd.complete.type_id.hash(), even.complete.type_id.hash());
    assert_ne!(odd.complete.type_id, even.complete.type_id);
    assert!(registry.missing(&outer.complete.type_id).is_empty());
    DynamicType::new(&outer.complete.type_id, &registry).expect("a whole type");
}

#[test]
fn deeply_nested_identifiers_are_refused() {
    // sequence<sequence<sequence<...>>>: kind, header, bound, then the element.
    let mut bytes = Vec::new();
    for _ in 0..100_000 {
        bytes.extend([0x80, 0xf3, 0, 0, 0]);
    }
    assert!(TypeIdentifier::parse(&bytes).is_err());
}

#[test]
fn type_object_that_ends_early_is_refused() {
    // A minimal structure whose last member lacks its name hash. With defaults filled in, it would
    // be serialized longer.
    let bytes = hex(
        "38000000f25102000f000000f20000000700000053365f33343300001c00000001000000140000000020000001000200060000006d305f7336000000",
    );
    assert!(TypeObject::parse(&bytes).is_err());
}
