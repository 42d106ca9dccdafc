//! Random IDL types and values, compared with CycloneDDS 0.10.2.
//!
//! For each type, the test compares whether both compilers accept the file, both type identifiers,
//! the encoded octets in XCDR1 and XCDR2 in both byte orders, and the key hashes. It uses 20 seeds,
//! and 500 with `TAKT_TEST_LONG`. `TAKT_TYPES_SEED` is the first seed.
//!
//! Recursive types are compared without type identifiers: idlc 0.10.2 allocates memory without
//! limit for them, unless it generates no type information (`-t`). The following features are left
//! out, since idlc 0.10.2 refuses them or generates code that does not compile:
//! - `wchar`, `wstring`, `map`, `bitset`, `long double`; enumerators with negative values; nested
//!   definitions
//! - mutable unions; `@external` arrays of strings in a union; `@key` of a discriminator; unions,
//!   sequences and arrays of strings or structs as keys; optional keys
//! - `@key` in a derived struct; a base of another extensibility; empty structs
//! - `@default` of a member that is optional or not primitive; `@try_construct` of an element

mod cyclonedds;
mod generator;
mod text;
mod values;

use takt_idl::{Idl, Options};
use takt_testkit::{Random, not_run};
use takt_xtypes::definition::{Definition, StructDefinition, TypeSpec};
use takt_xtypes::dynamic::{DynamicData, DynamicType};
use takt_xtypes::type_object::{TypeInformation, TypeRegistry};
use takt_xtypes::{Endianness, Extensibility, Representation};

use cyclonedds::{CycloneDds, to_hex};
use generator::{RandomTypes, Range, generate};
use values::Values;

/// Number of values of each type.
const VALUES: usize = 8;

/// Random type, its text, and the result of parsing it.
struct Case {
    seed: u64,
    types: RandomTypes,
    text: String,
    name: String,
    read: Result<(TypeInformation, DynamicType), String>,
}

fn read(text: &str, name: &str) -> Result<(TypeInformation, DynamicType), String> {
    let idl = Idl::parse("types.idl", text, &Options::default()).map_err(|error| error.to_string())?;
    let mut registry = TypeRegistry::new();
    let information = idl.type_information(name, &mut registry).map_err(|error| error.to_string())?;
    let ty = DynamicType::new(&information.complete.type_id, &registry).expect("it is announced");
    Ok((information, ty))
}

fn seeds() -> std::ops::Range<u64> {
    let first = std::env::var("TAKT_TYPES_SEED").map_or(1, |text| text.parse().expect("TAKT_TYPES_SEED is a number"));
    let count = if takt_testkit::is_full_length() { 500 } else { 20 };
    first..first + count
}

impl Case {
    fn new(seed: u64, range: Range) -> Self {
        let types = generate(seed, range);
        let text = text::print(&types, seed);
        let root = *types.order.last().expect("there is one");
        let name = types.definitions.get(root).expect("it is defined").name().to_owned();
        let read = read(&text, &name);
        Self { seed, types, text, name, read }
    }

    /// INTEROP(CycloneDDS 0.10.2): for some mutable types that inherit key members, idlc hashes the
    /// keys in an order that differs from that of their ids, against XTypes 1.3 §7.6.8.
    fn has_key_order_of_its_own(&self) -> bool {
        let definitions = || self.types.order.iter().filter_map(|id| self.types.definitions.get(*id));
        let inherits = |definition| matches!(definition, &Definition::Struct(StructDefinition { base: Some(_), .. }));
        let is_mutable = |definition| {
            matches!(definition, &Definition::Struct(StructDefinition { extensibility: Extensibility::Mutable, .. }))
        };
        definitions().next_back().is_some_and(is_mutable) && definitions().any(inherits)
    }

    fn values(&self) -> Vec<DynamicData> {
        let mut values = Values { definitions: &self.types.definitions, random: Random(self.seed ^ 0xda7a), depth: 0 };
        let root = TypeSpec::Named(*self.types.order.last().expect("there is one"));
        (0..VALUES).map(|_| values.value(&root)).collect()
    }
}

/// Returns the body of a payload without padding.
fn body(payload: &[u8]) -> Vec<u8> {
    payload[4..payload.len() - usize::from(payload[3] & 3)].to_vec()
}

/// Returns descriptions of the differences of a type.
fn differences(peer: &CycloneDds, case: &Case, counts: &mut Counts) -> Vec<String> {
    let theirs = peer.compile(&case.text, &case.name, case.types.is_recursive);
    let ((information, ty), of) = match (&case.read, theirs) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (Err(_), Err(_)) => return Vec::new(),
        (Ok(_), Err(error)) => {
            let last = error.lines().rfind(|line| !line.starts_with("Failed")).unwrap_or_default();
            return vec![format!("only idlc refuses: {last}")];
        }
        (Err(error), Ok(_)) => return vec![format!("only takt-idl refuses: {error}")],
    };
    let mut found = Vec::new();
    match &of.information {
        Some(theirs) if theirs.minimal.type_id != information.minimal.type_id => found.push("minimal".to_owned()),
        Some(theirs) if theirs.complete.type_id != information.complete.type_id => found.push("complete".to_owned()),
        Some(_) => counts.identifiers += 1,
        None if case.types.is_recursive => counts.recursive += 1,
        None => found.push("no type information".to_owned()),
    }
    let mut sent = Vec::new();
    for value in case.values() {
        for (version, representation) in [(1, Representation::Xcdr1), (2, Representation::Xcdr2)] {
            let encode = |order| ty.encode_with(&value, representation, order).expect("a value of the type");
            let (little, big) = (body(&encode(Endianness::Little)), body(&encode(Endianness::Big)));
            sent.push((version, value.clone(), little, big));
        }
    }
    let bodies: Vec<(u8, Vec<u8>)> = sent.iter().map(|(version, _, little, _)| (*version, little.clone())).collect();
    let (lowest, answers) = match peer.values(&of, &bodies) {
        Ok(answers) => answers,
        Err(error) => {
            found.push(error);
            return found;
        }
    };
    // INTEROP(CycloneDDS 0.10.2): supports XCDR1 only for final types without optional members.
    for ((version, value, little, big), answer) in sent.iter().zip(answers).filter(|((of, ..), _)| *of >= lowest) {
        let Some(answer) = answer else {
            found.push(format!("XCDR{version} refused: {}", to_hex(little)));
            continue;
        };
        for (ours, theirs) in [(little, answer.little), (big, answer.big)] {
            if *ours != theirs && !differ_in_must_understand(ours, &theirs) {
                found.push(format!("XCDR{version}\n  ours   {}\n  theirs {}", to_hex(ours), to_hex(&theirs)));
            }
        }
        let hash = ty.key_hash(value, Representation::Xcdr2).expect("a value of the type");
        let is_same = hash[..] == answer.key_hash[..];
        if !is_same && case.has_key_order_of_its_own() {
            counts.other_key_orders += 1;
        } else if !is_same {
            found.push(format!("key hash: ours {}, theirs {}", to_hex(&hash), to_hex(&answer.key_hash)));
        }
        counts.values += 1;
    }
    found
}

/// INTEROP(CycloneDDS 0.10.2): the headers of key members of mutable types have the must_understand
/// flag. CycloneDDS 11 and this crate omit it, since RTI Connext refuses it there. It is the
/// highest bit of an octet.
fn differ_in_must_understand(ours: &[u8], theirs: &[u8]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| *ours | 0x80 == *theirs | 0x80)
}

#[derive(Default, Debug)]
struct Counts {
    identifiers: usize,
    recursive: usize,
    values: usize,
    other_key_orders: usize,
}

#[test]
fn random_types_equal_those_of_cyclonedds() {
    let peer = match CycloneDds::new("random") {
        Ok(peer) => peer,
        Err(why) => return not_run(why),
    };
    let (mut counts, mut different) = (Counts::default(), Vec::new());
    for seed in seeds() {
        let case = Case::new(seed, Range::Shared);
        let found = differences(&peer, &case, &mut counts);
        if !found.is_empty() {
            different.push(format!("seed {seed}:\n{}\n{}", case.text, found.join("\n")));
        }
    }
    println!("{counts:?}, {} of {} types differ", different.len(), seeds().count());
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}

#[test]
fn random_types_and_values_round_trip_through_printing() {
    for seed in seeds() {
        let case = Case::new(seed, Range::Whole);
        let (information, ty) =
            case.read.as_ref().unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", case.text));
        let root = *case.types.order.last().expect("there is one");
        let defined = case.types.definitions.type_information(root, &mut TypeRegistry::new()).expect("a type");
        assert_eq!(*information, defined, "seed {seed}: what is defined is what is read:\n{}", case.text);
        let printed = ty.to_idl();
        let (again, _) = read(&printed, &case.name).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{printed}"));
        assert_eq!(again, *information, "seed {seed}:\n{}\nprinted:\n{printed}", case.text);
        for value in case.values() {
            assert_eq!(ty.from_json(&ty.to_json(&value)).as_ref(), Ok(&value), "seed {seed}:\n{printed}");
            for representation in [Representation::Xcdr1, Representation::Xcdr2] {
                for order in [Endianness::Little, Endianness::Big] {
                    let payload = ty.encode_with(&value, representation, order).expect("a value of the type");
                    let decoded = ty.decode(&payload);
                    assert_eq!(decoded.as_ref(), Ok(&value), "seed {seed}, {representation:?} {order:?}:\n{printed}");
                }
            }
        }
    }
}
