//! Round trips of IDL texts and ROS 2 messages: an accepted type that is printed and parsed again
//! is the same type.

use std::collections::BTreeMap;

use takt_idl::{Idl, Options, ros2};
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::{TypeInformation, TypeRegistry};

/// Maximum number of types of a text that are printed and parsed again.
const TYPES_MAX: usize = 8;
/// Maximum length in octets of a printed type that is parsed again: a few members of many types may
/// produce much text.
const PRINTED_LEN_MAX: usize = 256 * 1024;

/// Parses the input as IDL, and as the message `pkg/msg/A`. A zero octet separates the message
/// `pkg/msg/B`.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let read = Idl::parse("fuzz.idl", &text, &Options::default());
    check(read);
    let (first, second) = text.split_once('\0').unwrap_or((&text, ""));
    let texts = [("pkg/msg/A", first), ("pkg/msg/B", second)].map(|(name, text)| (name.to_owned(), text.to_owned()));
    check(ros2::parse("pkg/msg/A", &BTreeMap::from(texts)));
}

fn check(read: Result<Idl, takt_idl::Diagnostic>) {
    let idl = match read {
        Ok(idl) => idl,
        Err(error) => {
            assert!(error.position.line > 0 && !error.message.is_empty(), "{error}");
            return;
        }
    };
    for name in idl.type_names().into_iter().take(TYPES_MAX) {
        let mut registry = TypeRegistry::new();
        if let Ok(information) = idl.type_information(name, &mut registry) {
            through_text(name, &information, &registry);
        }
    }
}

fn through_text(name: &str, information: &TypeInformation, registry: &TypeRegistry) {
    let ty = DynamicType::new(&information.complete.type_id, registry).expect("what is announced can be built");
    let printed = ty.to_idl();
    assert!(!ty.to_rust().is_empty());
    if printed.len() > PRINTED_LEN_MAX {
        return;
    }
    let again = Idl::parse("printed.idl", &printed, &Options::default());
    let again = again.unwrap_or_else(|error| panic!("{error} in\n{printed}"));
    let found = again.type_information(name, &mut TypeRegistry::new());
    let found = found.unwrap_or_else(|error| panic!("{error} in\n{printed}"));
    assert_eq!(found.complete.type_id, information.complete.type_id, "complete form of\n{printed}");
    assert_eq!(found.minimal.type_id, information.minimal.type_id, "minimal form of\n{printed}");
}
