//! Type objects and payloads of the resulting types: a value that was read can be written, and
//! round-trips.

use takt_xtypes::Representation;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::{
    TypeIdentifier, TypeIdentifierTypeObjectPair, TypeInformation, TypeObject, TypeRegistry,
};

/// Runs an input: type objects, each preceded by its length in two bytes, little-endian; then a
/// length of zero and a payload of the last type. The whole input is also parsed as the other type
/// information that peers send.
pub fn run(input: &[u8]) {
    whole(input);
    let mut registry = TypeRegistry::with_limit(1 << 16);
    let mut root = None;
    let mut rest = input;
    while let Some((&len, behind)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(len)).min(behind.len());
        let (bytes, behind) = behind.split_at(len);
        rest = behind;
        if len == 0 {
            break;
        }
        if let Ok(object) = TypeObject::parse(bytes) {
            let bytes = object.to_bytes();
            let again = TypeObject::parse(&bytes).expect("what was written can be read");
            assert_eq!(again.to_bytes(), bytes);
            root = registry.insert(object).ok().or(root);
        }
    }
    if let Some(root) = root
        && let Ok(ty) = DynamicType::new(&root, &registry)
    {
        values(&ty, rest);
    }
}

fn whole(input: &[u8]) {
    if let Ok(identifier) = TypeIdentifier::parse(input) {
        assert_eq!(TypeIdentifier::parse(&identifier.to_bytes()), Ok(identifier));
    }
    if let Ok(information) = TypeInformation::parse(input) {
        assert_eq!(TypeInformation::parse(&information.to_bytes()), Ok(information));
    }
    let _ = TypeIdentifierTypeObjectPair::parse(input);
    let _ = TypeIdentifierTypeObjectPair::parse_sequence(input);
}

fn values(ty: &DynamicType, payload: &[u8]) {
    assert!(!ty.to_idl().is_empty());
    let initial = ty.default_data();
    assert_eq!(ty.from_json(&ty.to_json(&initial)).as_ref(), Ok(&initial));
    let read = ty.decode(payload);
    let _ = ty.decode_key(payload);
    for data in core::iter::once(initial).chain(read) {
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let bytes = ty.encode(&data, representation).expect("a value of the type can be encoded");
            let again = ty.decode(&bytes).expect("what was written can be read");
            assert_eq!(ty.encode(&again, representation), Ok(bytes));
            assert_eq!(ty.key_hash(&again, representation), ty.key_hash(&data, representation));
        }
    }
}
