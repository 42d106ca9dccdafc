//! Parser of ROS 2 message files (`.msg`), with the type and topic names of ROS 2 DDS
//! implementations.
//!
//! `std_msgs/msg/String` is the final struct `std_msgs::msg::dds_::String_`, and `/chatter` is the
//! topic `rt/chatter`. Members have the names of the fields. `char` and `uint8` are `uint8`, `byte`
//! is `octet`. A message without fields has one member, as rosidl generates it.
//!
//! Not supported: default values of fields, constants (they are not part of a type), services
//! (`.srv`) and actions (`.action`), whose topics need more than a type.

mod type_hash;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use takt_xtypes::Extensibility;
use takt_xtypes::definition::{Definition, DefinitionId, Definitions, MemberDefinition, StructDefinition, TypeSpec};

use crate::error::{Diagnostic, Position};
use crate::limits::{MAX_DEPTH, MAX_NAME_LEN, MAX_TEXT_LEN};
use crate::{Idl, files};

pub use type_hash::type_hash;

/// Member of a message without fields.
const PLACEHOLDER: &str = "structure_needs_at_least_one_member";

/// Package and name of a message.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    package: String,
    name: String,
}

/// Returns the DDS topic name of a ROS 2 topic. A name that begins with `rt/` is returned
/// unchanged.
#[must_use]
pub fn topic_name(name: &str) -> String {
    if name.starts_with("rt/") { name.to_owned() } else { format!("rt/{}", name.trim_start_matches('/')) }
}

/// Returns the DDS type name of a message: `std_msgs/msg/String` is `std_msgs::msg::dds_::String_`.
///
/// # Errors
/// Fails if the name is not a message name.
pub fn type_name(message: &str) -> Result<String, Diagnostic> {
    Message::parse(message, None).map(|message| message.type_name()).map_err(|error| of_name(message, error))
}

/// Reads a message and the messages that it contains: `share/PACKAGE/msg/NAME.msg` or
/// `PACKAGE/msg/NAME.msg` in the first of the directories that has it. The type has the name of
/// [`type_name`].
///
/// # Errors
/// Fails if a file is not found, cannot be read, is not a message, or exceeds one of the
/// [`limits`](crate::limits).
pub fn read(message: &str, directories: &[PathBuf]) -> Result<Idl, Diagnostic> {
    read_from(message, &|message| find(message, directories))
}

/// Parses a message and the messages that it contains from texts with message names as keys,
/// `PACKAGE/msg/NAME`.
///
/// # Errors
/// Fails if a text is missing, is not a message, or exceeds one of the [`limits`](crate::limits).
pub fn parse(message: &str, texts: &BTreeMap<String, String>) -> Result<Idl, Diagnostic> {
    read_from(message, &|Message { package, name }| {
        let name = format!("{package}/msg/{name}");
        let text = texts.get(&name).ok_or_else(|| format!("message {name} is not among the given messages"))?;
        Ok((format!("{name}.msg"), text.clone()))
    })
}

fn read_from(message: &str, find: Find<'_>) -> Result<Idl, Diagnostic> {
    let root = Message::parse(message, None).map_err(|error| of_name(message, error))?;
    let mut reader = Reader {
        find,
        definitions: Definitions::new(),
        known: BTreeMap::new(),
        positions: Vec::new(),
        text_len: 0,
        depth: 0,
    };
    reader.message(&root, &Position { file: message.to_owned(), line: 1, column: 1 })?;
    Ok(Idl { definitions: reader.definitions, positions: reader.positions, warnings: Vec::new() })
}

fn of_name(message: &str, error: String) -> Diagnostic {
    Diagnostic { position: Position { file: message.to_owned(), line: 1, column: 1 }, message: error }
}

/// Function that returns the file name of a message, and its text.
type Find<'a> = &'a dyn Fn(&Message) -> Result<(String, String), String>;

/// Searches the directories for the file of a message.
fn find(message: &Message, directories: &[PathBuf]) -> Result<(String, String), String> {
    let Message { package, name } = message;
    for directory in directories {
        for path in [format!("share/{package}/msg/{name}.msg"), format!("{package}/msg/{name}.msg")] {
            let path = directory.join(path);
            match files::read(&path) {
                Ok(text) => return Ok((path.display().to_string(), text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
            }
        }
    }
    let searched: Vec<String> = directories.iter().map(|directory| directory.display().to_string()).collect();
    let searched = if searched.is_empty() { "no directory".to_owned() } else { searched.join(", ") };
    Err(format!("no {package}/msg/{name}.msg below {searched} (-I, AMENT_PREFIX_PATH)"))
}

struct Reader<'a> {
    find: Find<'a>,
    definitions: Definitions,
    known: BTreeMap<Message, DefinitionId>,
    positions: Vec<(DefinitionId, Position)>,
    text_len: usize,
    depth: usize,
}

impl Message {
    /// Parses `package/msg/Name`, `package/Name`, or `Name` within a package.
    fn parse(text: &str, package: Option<&str>) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (package, name) = match (parts[..].as_ref(), package) {
            ([name], Some(package)) => (package, *name),
            ([package, "msg", name] | [package, name], _) => (*package, *name),
            ([_, kind @ ("srv" | "action"), _], _) => {
                return Err(format!("'{kind}' is not supported: only messages (msg) are"));
            }
            _ => return Err(format!("expected PACKAGE/msg/NAME, found '{text}'")),
        };
        let is_name = |text: &str| {
            text.len() <= MAX_NAME_LEN / 4
                && text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if !is_name(package) || !is_name(name) {
            return Err(format!("expected PACKAGE/msg/NAME, found '{text}'"));
        }
        Ok(Self { package: package.to_owned(), name: name.to_owned() })
    }

    fn type_name(&self) -> String {
        format!("{}::msg::dds_::{}_", self.package, self.name)
    }
}

impl Reader<'_> {
    /// Reads a message that is used at this position.
    fn message(&mut self, message: &Message, used: &Position) -> Result<DefinitionId, Diagnostic> {
        let refused = |what: String| Diagnostic { position: used.clone(), message: what };
        if let Some(&id) = self.known.get(message) {
            let is_open = self.definitions.get(id).is_none();
            let what = format!("{}/{} contains itself", message.package, message.name);
            return if is_open { Err(refused(what)) } else { Ok(id) };
        }
        if self.depth >= MAX_DEPTH {
            return Err(refused(format!("more than {MAX_DEPTH} levels of messages")));
        }
        let (file, text) = (self.find)(message).map_err(refused)?;
        self.text_len += text.len();
        if self.text_len > MAX_TEXT_LEN {
            return Err(refused(format!("more than {MAX_TEXT_LEN} octets of messages")));
        }
        let id = self.definitions.declare();
        self.known.insert(message.clone(), id);
        self.positions.push((id, Position { file: file.clone(), line: 1, column: 1 }));
        self.depth += 1;
        let (mut members, mut names) = (Vec::new(), BTreeSet::new());
        for (index, line) in text.lines().enumerate() {
            let place = Position { file: file.clone(), line: u32::try_from(index + 1).unwrap_or(u32::MAX), column: 1 };
            if let Some((name, of)) = self.line(line, &message.package, &place)? {
                if !names.insert(name.clone()) {
                    return Err(Diagnostic { position: place, message: format!("two fields named '{name}'") });
                }
                members.push(member(name, of, members.len()));
            }
        }
        self.depth -= 1;
        if members.is_empty() {
            members.push(member(PLACEHOLDER.to_owned(), TypeSpec::Uint8, 0));
        }
        let definition = StructDefinition {
            name: message.type_name(),
            extensibility: Extensibility::Final,
            nested: false,
            autoid_hash: false,
            base: None,
            members,
        };
        self.definitions.define(id, Definition::Struct(definition));
        Ok(id)
    }

    /// Parses a field; `None` for a line without one.
    fn line(&mut self, line: &str, package: &str, place: &Position) -> Result<Option<(String, TypeSpec)>, Diagnostic> {
        let text = line.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            return Ok(None);
        }
        let refused = |what: String| Diagnostic { position: place.clone(), message: what };
        let (of, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim_start();
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, behind) = rest.split_at(len);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || name.len() > MAX_NAME_LEN {
            return Err(refused(format!("expected a type and the name of a field, found '{text}'")));
        }
        if behind.trim_start().starts_with('=') {
            return Ok(None);
        }
        if behind.starts_with(|c: char| !c.is_whitespace()) {
            return Err(refused(format!("expected a default value or nothing after '{name}', found '{behind}'")));
        }
        Ok(Some((name.to_owned(), self.type_of(of, package, place)?)))
    }

    /// Parses `T`, `T[]`, `T[3]` or `T[<=3]`.
    fn type_of(&mut self, text: &str, package: &str, place: &Position) -> Result<TypeSpec, Diagnostic> {
        let refused = |what: String| Diagnostic { position: place.clone(), message: what };
        let (element, dimension) = match text.split_once('[') {
            None => (text, None),
            Some((element, dimension)) => match dimension.strip_suffix(']') {
                Some(dimension) => (element, Some(dimension)),
                None => return Err(refused(format!("expected ']' at the end of '{text}'"))),
            },
        };
        let number = |text: &str| match text.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(refused(format!("expected a positive number, found '{text}'"))),
        };
        let (word, bound) = match element.split_once("<=") {
            None => (element, 0),
            Some((word @ ("string" | "wstring"), bound)) => (word, number(bound)?),
            Some((word, _)) => return Err(refused(format!("'{word}' has no bound; only string and wstring do"))),
        };
        let element = match word {
            "bool" => TypeSpec::Boolean,
            "byte" => TypeSpec::Octet,
            "char" | "uint8" => TypeSpec::Uint8,
            "int8" => TypeSpec::Int8,
            "int16" => TypeSpec::Int16,
            "uint16" => TypeSpec::Uint16,
            "int32" => TypeSpec::Int32,
            "uint32" => TypeSpec::Uint32,
            "int64" => TypeSpec::Int64,
            "uint64" => TypeSpec::Uint64,
            "float32" => TypeSpec::Float,
            "float64" => TypeSpec::Double,
            "string" => TypeSpec::String { bound },
            "wstring" => TypeSpec::WString { bound },
            _ => TypeSpec::Named(self.message(&Message::parse(word, Some(package)).map_err(refused)?, place)?),
        };
        let element = Box::new(element);
        Ok(match dimension {
            None => *element,
            Some("") => TypeSpec::Sequence { element, external: false, bound: 0 },
            Some(dimension) => match dimension.strip_prefix("<=") {
                Some(bound) => TypeSpec::Sequence { element, external: false, bound: number(bound)? },
                None => TypeSpec::Array { element, dimensions: vec![number(dimension)?] },
            },
        })
    }
}

fn member(name: String, of: TypeSpec, index: usize) -> MemberDefinition {
    MemberDefinition {
        name,
        id: u32::try_from(index).unwrap_or(u32::MAX),
        hash_id: None,
        values: Default::default(),
        key: false,
        must_understand: false,
        optional: false,
        external: false,
        try_construct: Default::default(),
        of,
    }
}
