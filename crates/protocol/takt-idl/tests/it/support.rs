//! Test helpers: types of texts.

use takt_idl::{Idl, Options};
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::{TypeInformation, TypeRegistry};

/// Parses a text and checks that it yields no warnings.
pub fn read(text: &str) -> Idl {
    let idl = Idl::parse("text.idl", text, &Options::default()).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    assert_eq!(idl.warnings(), []);
    idl
}

/// Returns the type information of a type of a text.
pub fn information(text: &str, name: &str) -> TypeInformation {
    let found = read(text).type_information(name, &mut TypeRegistry::new());
    found.unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

/// Returns a type of a text as printed IDL.
pub fn printed(text: &str, name: &str) -> String {
    let mut registry = TypeRegistry::new();
    let information = read(text).type_information(name, &mut registry);
    let information = information.unwrap_or_else(|error| panic!("{error} in\n{text}"));
    DynamicType::new(&information.complete.type_id, &registry).expect("a type").to_idl()
}

/// Returns the reason why a text is refused.
pub fn refusal(text: &str) -> String {
    let idl = match Idl::parse("text.idl", text, &Options::default()) {
        Ok(idl) => idl,
        Err(error) => return error.to_string(),
    };
    let names = idl.type_names();
    let refused = names.iter().find_map(|name| idl.type_information(name, &mut TypeRegistry::new()).err());
    refused.unwrap_or_else(|| panic!("it is read:\n{text}")).to_string()
}

/// Parses hexadecimal octets.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).expect("hexadecimal digit") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
