//! Round trip tests: the output of `to_idl` parses to the same type.

use std::fs;
use std::path::PathBuf;

use takt_idl::{Idl, Options};
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::{TypeInformation, TypeObject, TypeRegistry};
use takt_xtypes::{Extensibility, TypeSupport};

use crate::support::{hex, information, printed};
use crate::zoo;

const VECTORS: &str = include_str!("../../../takt-xtypes/tests/vectors/cyclonedds_types.txt");

fn compare<T: TypeSupport>() {
    let mut registry = TypeRegistry::new();
    let own = T::type_information(&mut registry);
    let idl = DynamicType::new(&own.complete.type_id, &registry).expect("a type").to_idl();
    assert_eq!(information(&idl, T::TYPE_NAME), own, "{idl}");
}

#[test]
fn printed_types_parse_to_the_same_types() {
    compare::<zoo::ShapeType>();
    compare::<zoo::Primitives>();
    compare::<zoo::Point>();
    compare::<zoo::Grown>();
    compare::<zoo::Enums>();
    compare::<zoo::Collections>();
    compare::<zoo::Unions>();
    compare::<zoo::FinalOptional>();
    compare::<zoo::AppendableOptional>();
    compare::<zoo::Mutable>();
    compare::<zoo::Nested>();
    compare::<zoo::Base>();
    compare::<zoo::Derived>();
    compare::<zoo::OnlyBase>();
    compare::<zoo::Inner>();
    compare::<zoo::Keyed>();
    compare::<zoo::MutableKeyed>();
    compare::<zoo::Empty>();
    compare::<zoo::Exotic>();
}

#[test]
fn printed_recursive_types_parse_to_the_same_types() {
    compare::<zoo::Tree>();
}

/// Uses the type objects of peers and mutations of them: the corpus of the fuzz target `types`. A
/// mutation may have flags that IDL cannot express, such as a key member without must_understand.
/// It then prints the same text but is a different type.
#[test]
fn printed_types_of_peers_parse_and_print_the_same_text() {
    let directory: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "lab", "fuzz", "corpus", "types"].iter().collect();
    let mut count = 0;
    for entry in fs::read_dir(directory).expect("the corpus is in the repository") {
        let input = fs::read(entry.expect("it can be read").path()).expect("it can be read");
        count += usize::from(through_idl(&input));
    }
    assert!(count >= 10, "{count} types are the same");
}

/// Reports whether the input has a type that can be built and expressed exactly in IDL.
fn through_idl(input: &[u8]) -> bool {
    let mut registry = TypeRegistry::new();
    let (mut root, mut rest) = (None, input);
    while let Some((&len, behind)) = rest.split_first_chunk::<2>() {
        let (object, behind) = behind.split_at(usize::from(u16::from_le_bytes(len)).min(behind.len()));
        rest = behind;
        if object.is_empty() {
            break;
        }
        if let Ok(object) = TypeObject::parse(object) {
            root = registry.insert(object).ok().or(root);
        }
    }
    let Some(root) = root else { return false };
    let Ok(ty) = DynamicType::new(&root, &registry) else { return false };
    let idl = ty.to_idl();
    // Some mutated names are not identifiers.
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_text = |c: char| is_name(c) || c.is_ascii_whitespace() || ":;,<>{}[]()@=\"'-\\".contains(c);
    if !idl.chars().all(is_text) || !ty.name().split("::").all(|part| part.chars().all(is_name)) {
        return false;
    }
    assert_eq!(printed(&idl, ty.name()), idl);
    information(&idl, ty.name()).complete.type_id == root
}

/// Uses the file from which the CycloneDDS compiler 0.10.2 generated the vectors. It uses TK_BYTE
/// for `uint8`, and final as the default extensibility.
#[test]
fn parsed_file_has_the_types_of_the_cyclonedds_compiler() {
    let text = include_str!("../../../takt-xtypes/tests/vectors/objects.idl").replace("uint8 v8", "octet v8");
    let options = Options { default_extensibility: Extensibility::Final, ..Options::default() };
    let idl = Idl::parse("objects.idl", &text, &options).expect("it is read");
    let mut count = 0;
    for line in VECTORS.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if let [name, "info", bytes] = fields[..] {
            let theirs = TypeInformation::parse(&hex(bytes)).expect("type information");
            let ours = idl.type_information(name, &mut TypeRegistry::new()).expect("a type");
            assert_eq!(ours.minimal.type_id, theirs.minimal.type_id, "minimal form of {name}");
            assert_eq!(ours.complete.type_id, theirs.complete.type_id, "complete form of {name}");
            assert_eq!(ours.complete.dependent_count, theirs.complete.dependent_count, "{name}");
            count += 1;
        }
    }
    assert!(count >= 5, "{count} types");
}
