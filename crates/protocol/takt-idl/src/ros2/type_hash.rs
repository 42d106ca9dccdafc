//! ROS 2 type hashes (REP 2011, RIHS01): SHA-256 of a JSON description of a message and the
//! messages that it contains.
//!
//! Nodes announce the hash in USER_DATA as `typehash=RIHS01_...;`, from ROS 2 Iron on. The hash
//! covers names of packages, messages and fields, types and bounds. It does not cover constants and
//! default values.

use std::collections::BTreeMap;
use std::fmt::Write;

use sha2::{Digest, Sha256};
use takt_xtypes::definition::{Definition, DefinitionId, Definitions, StructDefinition, TypeSpec};

use super::{Message, of_name};
use crate::Idl;
use crate::error::Diagnostic;

/// Offsets on the number of a type for elements of an array, of a bounded sequence, and of an
/// unbounded sequence.
const ARRAY: u8 = 48;
const BOUNDED_SEQUENCE: u8 = 96;
const SEQUENCE: u8 = 144;

/// Type of a field as in type_description_interfaces/msg/FieldType.
#[derive(Default)]
struct FieldType {
    number: u8,
    capacity: u32,
    string_capacity: u32,
    nested: Option<DefinitionId>,
}

/// Returns the type hash of a parsed message: `RIHS01_` and 64 hexadecimal digits.
///
/// # Errors
/// Fails if the name is not a message name, or if the message is not among the parsed ones.
pub fn type_hash(idl: &Idl, message: &str) -> Result<String, Diagnostic> {
    let name = Message::parse(message, None).map_err(|error| of_name(message, error))?.type_name();
    let root = idl.definitions.iter().find(|(_, of)| of.name() == name);
    let Some((root, Definition::Struct(structure))) = root else {
        return Err(of_name(message, format!("no message {message} was read")));
    };
    let mut parts = BTreeMap::new();
    collect(&idl.definitions, root, &mut parts);
    parts.remove(&ros2_name(&structure.name));
    let mut text =
        format!("{{\"type_description\": {}, \"referenced_type_descriptions\": [", description(idl, structure));
    for (index, part) in parts.values().enumerate() {
        text.push_str(if index == 0 { "" } else { ", " });
        text.push_str(&description(idl, part));
    }
    text.push_str("]}");
    let mut hash = "RIHS01_".to_owned();
    for octet in Sha256::digest(text.as_bytes()) {
        // Writing to a string does not fail.
        let _ = write!(hash, "{octet:02x}");
    }
    Ok(hash)
}

/// Collects all messages that a message contains, by name, itself included. The recursion depth is
/// the nesting depth of messages.
fn collect<'a>(definitions: &'a Definitions, id: DefinitionId, found: &mut BTreeMap<String, &'a StructDefinition>) {
    if let Some(of @ Definition::Struct(structure)) = definitions.get(id)
        && found.insert(ros2_name(&structure.name), structure).is_none()
    {
        of.parts().into_iter().for_each(|part| collect(definitions, part, found));
    }
}

/// Converts `std_msgs::msg::dds_::String_` to `std_msgs/msg/String`.
fn ros2_name(type_name: &str) -> String {
    let name = type_name.replace("::dds_::", "::").replace("::", "/");
    name.strip_suffix('_').unwrap_or(&name).to_owned()
}

/// Returns an IndividualTypeDescription without default values. Names consist of ASCII letters,
/// digits and underscores.
fn description(idl: &Idl, structure: &StructDefinition) -> String {
    let mut text = format!("{{\"type_name\": \"{}\", \"fields\": [", ros2_name(&structure.name));
    for (index, member) in structure.members.iter().enumerate() {
        let FieldType { number, capacity, string_capacity, nested } = field_type(&member.of);
        let nested = nested.and_then(|id| idl.definitions.get(id)).map_or(String::new(), |of| ros2_name(of.name()));
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{}{{\"name\": \"{}\", \"type\": {{\"type_id\": {number}, \"capacity\": {capacity}, \
             \"string_capacity\": {string_capacity}, \"nested_type_name\": \"{nested}\"}}}}",
            if index == 0 { "" } else { ", " },
            member.name,
        );
    }
    text.push_str("]}");
    text
}

fn field_type(of: &TypeSpec) -> FieldType {
    let simple = |number| FieldType { number, ..FieldType::default() };
    let text = |unbounded, bounded, bound| FieldType {
        number: if bound == 0 { unbounded } else { bounded },
        string_capacity: bound,
        ..FieldType::default()
    };
    let collection = |element: &TypeSpec, kind, capacity| {
        let element = field_type(element);
        FieldType { number: element.number + kind, capacity, ..element }
    };
    match of {
        TypeSpec::Named(id) => FieldType { number: 1, nested: Some(*id), ..FieldType::default() },
        TypeSpec::Int8 => simple(2),
        TypeSpec::Uint8 => simple(3),
        TypeSpec::Int16 => simple(4),
        TypeSpec::Uint16 => simple(5),
        TypeSpec::Int32 => simple(6),
        TypeSpec::Uint32 => simple(7),
        TypeSpec::Int64 => simple(8),
        TypeSpec::Uint64 => simple(9),
        TypeSpec::Float => simple(10),
        TypeSpec::Double => simple(11),
        TypeSpec::Char => simple(13),
        TypeSpec::WChar => simple(14),
        TypeSpec::Boolean => simple(15),
        TypeSpec::Octet => simple(16),
        TypeSpec::String { bound } => text(17, 21, *bound),
        TypeSpec::WString { bound } => text(18, 22, *bound),
        TypeSpec::Sequence { element, bound: 0, .. } => collection(element, SEQUENCE, 0),
        TypeSpec::Sequence { element, bound, .. } => collection(element, BOUNDED_SEQUENCE, *bound),
        TypeSpec::Array { element, dimensions } => collection(element, ARRAY, dimensions.iter().product()),
        // Messages have no maps.
        TypeSpec::Map { .. } => simple(0),
    }
}
