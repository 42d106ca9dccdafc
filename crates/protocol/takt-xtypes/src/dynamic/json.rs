//! Conversion of DynamicData to and from JSON. [`JsonValue`] is plain data; callers map it to the
//! values of a JSON library.
//!
//! | IDL | JSON |
//! |---|---|
//! | `boolean`, integers, strings | as they are |
//! | `float`, `double` | a number; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `char`, `wchar` | a string of one character, or its number |
//! | enumeration | the literal's name, or its number |
//! | bitmask | the list of its flags' names; a number where a bit has no name |
//! | sequence, array | a list; an array of several dimensions is one list |
//! | map | an object if the keys are strings, else a list of pairs `[key, value]` |
//! | structure | an object; members left out have their defaults |
//! | optional member that is absent | `null` |
//! | union | an object with `"$discriminator"` and the member; either may be left out |

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::node::{Bitmask, Enum, Node, NodeId, Primitive, Struct, Types, Union};
use super::{DynamicData, MAX_NESTING};
use crate::WString;

/// 2^63: magnitude from which an integer may be given as a floating-point number.
const LEAST_BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;

/// Key of a union's discriminator.
const DISCRIMINATOR: &str = "$discriminator";

/// JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonValue {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Integer.
    Integer(i128),
    /// Any other number, as floating point.
    Number(f64),
    /// String.
    String(String),
    /// List.
    Array(Vec<JsonValue>),
    /// Object, in the order of its members.
    Object(Vec<(String, JsonValue)>),
}

/// Reason why a JSON value does not match a type, with its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// Path of the member: `pose.position[2].x`; empty for the whole value.
    pub path: String,
    /// Description of the error.
    pub what: String,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.path, self.what) }
    }
}

impl core::error::Error for ValueError {}

/// Converts a value to JSON.
pub(super) fn from_data(data: &DynamicData) -> JsonValue {
    match data {
        DynamicData::Bool(value) => JsonValue::Bool(*value),
        DynamicData::F32(value) => number(f64::from(*value), || format!("{value}")),
        DynamicData::F64(value) => number(*value, || format!("{value}")),
        DynamicData::Char8(value) => JsonValue::String(char::from(*value).to_string()),
        DynamicData::Char16(value) => match char::from_u32(u32::from(*value)) {
            Some(character) => JsonValue::String(character.to_string()),
            None => JsonValue::Integer(i128::from(*value)),
        },
        DynamicData::String(text) => JsonValue::String(text.clone()),
        DynamicData::WString(text) => JsonValue::String(text.to_string_lossy()),
        DynamicData::Enum { name, .. } => JsonValue::String(name.to_string()),
        DynamicData::Bitmask { value, flags } if value.count_ones() as usize == flags.len() => {
            JsonValue::Array(flags.iter().map(|flag| JsonValue::String(flag.to_string())).collect())
        }
        DynamicData::Bytes(bytes) => {
            JsonValue::Array(bytes.iter().map(|&byte| JsonValue::Integer(i128::from(byte))).collect())
        }
        DynamicData::Sequence(elements) => JsonValue::Array(elements.iter().map(from_data).collect()),
        DynamicData::Map(pairs) => from_map(pairs),
        DynamicData::Struct(members) => {
            JsonValue::Object(members.iter().map(|(name, value)| (name.to_string(), from_data(value))).collect())
        }
        DynamicData::Union { discriminator, member } => {
            let discriminator = core::iter::once((DISCRIMINATOR.to_string(), from_data(discriminator)));
            let member = member.iter().map(|(name, value)| (name.to_string(), from_data(value)));
            JsonValue::Object(discriminator.chain(member).collect())
        }
        DynamicData::Absent => JsonValue::Null,
        number => number.as_integer().map_or(JsonValue::Null, JsonValue::Integer),
    }
}

/// Converts a float to JSON. A value without a JSON number becomes a string. A `float` becomes the
/// shortest number that parses to the same value.
fn number(value: f64, text: impl Fn() -> String) -> JsonValue {
    if value.is_nan() {
        JsonValue::String("NaN".to_string())
    } else if value.is_infinite() {
        JsonValue::String(if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string())
    } else {
        JsonValue::Number(text().parse().unwrap_or(value))
    }
}

fn from_map(pairs: &[(DynamicData, DynamicData)]) -> JsonValue {
    let named: Option<Vec<_>> = pairs
        .iter()
        .map(|(key, value)| match key {
            DynamicData::String(key) => Some((key.clone(), from_data(value))),
            _ => None,
        })
        .collect();
    match named {
        Some(named) if !named.is_empty() => JsonValue::Object(named),
        _ => {
            let pair = |(key, value): &(_, _)| JsonValue::Array(Vec::from([from_data(key), from_data(value)]));
            JsonValue::Array(pairs.iter().map(pair).collect())
        }
    }
}

/// Converts JSON to a value of the type.
pub(super) fn to_data(types: &Types, root: NodeId, json: &JsonValue) -> Result<DynamicData, ValueError> {
    let mut reader = Reader { types, path: Vec::new() };
    reader.value(root, json).map_err(|what| ValueError { path: reader.path(), what })
}

/// Step from a value to one of its parts.
enum Step {
    Member(Arc<str>),
    Element(usize),
}

/// The types and the path to the current value. After an error, the path stays at the failing
/// value.
struct Reader<'a> {
    types: &'a Types,
    path: Vec<Step>,
}

fn kind(json: &JsonValue) -> &'static str {
    match json {
        JsonValue::Null => "null",
        JsonValue::Bool(_) => "a boolean",
        JsonValue::Integer(_) | JsonValue::Number(_) => "a number",
        JsonValue::String(_) => "a string",
        JsonValue::Array(_) => "a list",
        JsonValue::Object(_) => "an object",
    }
}

fn expected<T>(what: &str, json: &JsonValue) -> Result<T, String> {
    Err(format!("expected {what}, not {}", kind(json)))
}

fn check_bound(bound: Option<usize>, len: usize) -> Result<(), String> {
    match bound {
        Some(bound) if len > bound => Err(format!("length {len} exceeds the bound {bound}")),
        _ => Ok(()),
    }
}

/// Checks for NUL. A CDR string ends at its first NUL; C and C++ readers would lose the rest.
fn check_text(text: &str) -> Result<(), String> {
    match text.contains('\0') {
        true => Err("a string cannot contain a NUL character".to_string()),
        false => Ok(()),
    }
}

/// Returns a number as a `float`.
fn single(json: &JsonValue) -> Result<f32, String> {
    let value = float(json)?;
    let single = value as f32;
    if single.is_infinite() && value.is_finite() {
        return Err(format!("{value:e} is out of range: a float is at most {:e}", f32::MAX));
    }
    Ok(single)
}

fn float(json: &JsonValue) -> Result<f64, String> {
    match json {
        JsonValue::Integer(value) => Ok(*value as f64),
        JsonValue::Number(value) => Ok(*value),
        JsonValue::String(text) => match text.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => expected("a number", json),
        },
        _ => expected("a number", json),
    }
}

fn literal(enumeration: &Enum, json: &JsonValue) -> Result<DynamicData, String> {
    let literals = &enumeration.literals;
    let found = match json {
        JsonValue::String(text) => literals.iter().find(|(name, _)| **name == **text),
        JsonValue::Integer(number) => literals.iter().find(|(_, value)| i128::from(*value) == *number),
        _ => return expected("a literal's name", json),
    };
    match found {
        Some((name, value)) => Ok(DynamicData::Enum { name: name.clone(), value: *value }),
        None => {
            let names: Vec<&str> = literals.iter().map(|(name, _)| &**name).collect();
            Err(format!("unknown literal; expected one of {}", names.join(", ")))
        }
    }
}

fn bitmask(bitmask: &Bitmask, json: &JsonValue) -> Result<DynamicData, String> {
    let flags = match json {
        JsonValue::Integer(number) => {
            return bitmask.number(*number).ok_or_else(|| format!("{number} exceeds {} bits", bitmask.bit_bound));
        }
        JsonValue::Array(flags) => flags,
        _ => return expected("a list of flags", json),
    };
    let mut value = 0_u64;
    for flag in flags {
        let JsonValue::String(text) = flag else {
            return expected("a flag's name", flag);
        };
        match bitmask.flags.iter().find(|(name, _)| **name == **text) {
            Some((_, position)) => value |= 1 << position,
            None => return Err(format!("unknown flag {text:?}")),
        }
    }
    Ok(bitmask.value(value))
}

impl Reader<'_> {
    fn path(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Member(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(name);
                }
                Step::Element(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }

    fn part(&mut self, step: Step, id: NodeId, json: &JsonValue) -> Result<DynamicData, String> {
        if self.path.len() >= usize::from(MAX_NESTING) {
            return Err(format!("nested deeper than {MAX_NESTING} levels"));
        }
        self.path.push(step);
        let data = self.value(id, json)?;
        self.path.pop();
        Ok(data)
    }

    fn value(&mut self, id: NodeId, json: &JsonValue) -> Result<DynamicData, String> {
        let types = self.types;
        match types.resolved(id) {
            Node::Primitive(Primitive::Bool) => match json {
                JsonValue::Bool(value) => Ok(DynamicData::Bool(*value)),
                _ => expected("a boolean", json),
            },
            Node::Primitive(Primitive::F32) => single(json).map(DynamicData::F32),
            Node::Primitive(Primitive::F64) => float(json).map(DynamicData::F64),
            Node::Primitive(primitive) => self.number(id, *primitive, json),
            Node::String { bound } => match json {
                JsonValue::String(text) => {
                    check_text(text)?;
                    check_bound(*bound, text.len())?;
                    Ok(DynamicData::String(text.clone()))
                }
                _ => expected("a string", json),
            },
            Node::WString { bound } => match json {
                JsonValue::String(text) => {
                    check_text(text)?;
                    let text = WString::from(text.as_str());
                    check_bound(*bound, text.0.len())?;
                    Ok(DynamicData::WString(text))
                }
                _ => expected("a string", json),
            },
            Node::Enum(enumeration) => literal(enumeration, json),
            Node::Bitmask(mask) => bitmask(mask, json),
            Node::Sequence { element, bound } => self.elements(*element, *bound, json),
            Node::Array { element, len, .. } => match json {
                JsonValue::Array(values) if values.len() != *len => {
                    Err(format!("expected {len} elements, not {}", values.len()))
                }
                _ => self.elements(*element, None, json),
            },
            Node::Map { key, element, bound } => self.map(*key, *element, *bound, json),
            Node::Struct(structure) => self.structure(structure, json),
            Node::Union(union) => self.union(union, json),
            Node::Alias { target, .. } => self.value(*target, json),
        }
    }

    fn number(&mut self, id: NodeId, primitive: Primitive, json: &JsonValue) -> Result<DynamicData, String> {
        let is_character = matches!(primitive, Primitive::Char8 | Primitive::Char16);
        let number = match json {
            JsonValue::Integer(value) => *value,
            JsonValue::String(text) if is_character => {
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (Some(character), None) => i128::from(u32::from(character)),
                    _ => return Err("expected one character".to_string()),
                }
            }
            // JSON parsers yield `-0`, and integers beyond 64 bits, as floating-point numbers.
            JsonValue::Number(0.0) => 0,
            _ if is_character => return expected("a character", json),
            JsonValue::Number(value) if value.abs() >= LEAST_BEYOND_I64 => {
                return Err(format!("{value} is out of range"));
            }
            JsonValue::Number(value) => return Err(format!("expected an integer, not {value:?}")),
            _ => return expected("an integer", json),
        };
        self.types.number(id, number).ok_or_else(|| format!("{number} is out of range"))
    }

    fn elements(&mut self, element: NodeId, bound: Option<usize>, json: &JsonValue) -> Result<DynamicData, String> {
        let JsonValue::Array(values) = json else {
            return expected("a list", json);
        };
        check_bound(bound, values.len())?;
        if !self.types.is_octet(element) {
            let parts = values.iter().enumerate().map(|(index, json)| self.part(Step::Element(index), element, json));
            return parts.collect::<Result<_, _>>().map(DynamicData::Sequence);
        }
        let mut bytes = Vec::with_capacity(values.len());
        for (index, json) in values.iter().enumerate() {
            match self.part(Step::Element(index), element, json)? {
                DynamicData::U8(byte) => bytes.push(byte),
                _ => return expected("an octet", json),
            }
        }
        Ok(DynamicData::Bytes(bytes))
    }

    fn map(
        &mut self,
        key: NodeId,
        element: NodeId,
        bound: Option<usize>,
        json: &JsonValue,
    ) -> Result<DynamicData, String> {
        let mut pairs = Vec::new();
        match json {
            JsonValue::Object(members) => {
                for (name, json) in members {
                    let step = || Step::Member(Arc::from(name.as_str()));
                    let key = self.part(step(), key, &JsonValue::String(name.clone()))?;
                    pairs.push((key, self.part(step(), element, json)?));
                }
            }
            JsonValue::Array(list) => {
                for (index, json) in list.iter().enumerate() {
                    match json {
                        JsonValue::Array(pair) if pair.len() == 2 => {
                            let key = self.part(Step::Element(index), key, &pair[0])?;
                            pairs.push((key, self.part(Step::Element(index), element, &pair[1])?));
                        }
                        _ => return expected("a list of pairs [key, value]", json),
                    }
                }
            }
            _ => return expected("an object or a list of pairs [key, value]", json),
        }
        check_bound(bound, pairs.len())?;
        Ok(DynamicData::Map(pairs))
    }

    fn structure(&mut self, structure: &Struct, json: &JsonValue) -> Result<DynamicData, String> {
        let JsonValue::Object(given) = json else {
            return expected("an object", json);
        };
        if let Some((name, _)) = given.iter().find(|(name, _)| structure.members.iter().all(|m| *m.name != **name)) {
            return Err(format!("{} has no member {name:?}", structure.name));
        }
        let mut members = Vec::with_capacity(structure.members.len());
        for member in &structure.members {
            // If a member occurs twice, the last one counts, as in JSON parsers.
            let json = given.iter().rev().find(|(name, _)| *member.name == **name).map(|(_, json)| json);
            let value = match json {
                None => self.types.initial_member(member),
                Some(JsonValue::Null) if member.optional => DynamicData::Absent,
                Some(json) => self.part(Step::Member(member.name.clone()), member.node, json)?,
            };
            members.push((member.name.clone(), value));
        }
        Ok(DynamicData::Struct(members))
    }

    fn union(&mut self, union: &Union, json: &JsonValue) -> Result<DynamicData, String> {
        let JsonValue::Object(given) = json else {
            return expected("an object", json);
        };
        let stated = match given.iter().find(|(name, _)| name == DISCRIMINATOR) {
            Some((_, json)) => Some(self.part(Step::Member(Arc::from(DISCRIMINATOR)), union.discriminator, json)?),
            None => None,
        };
        let mut others = given.iter().filter(|(name, _)| name != DISCRIMINATOR);
        let member = others.next();
        if let Some((name, _)) = others.next() {
            return Err(format!("a union has one member; unexpected second member {name:?}"));
        }
        let case = match member {
            Some((name, _)) => match union.cases.iter().find(|case| *case.name == **name) {
                Some(case) => Some(case),
                None => return Err(format!("{} has no member {name:?}", union.name)),
            },
            None => None,
        };
        let discriminator = match (stated, case) {
            (Some(stated), _) => stated,
            (None, Some(case)) => self.types.discriminator(union, union.label_of(case)),
            (None, None) => return Err(format!("expected {DISCRIMINATOR} or a member of {}", union.name)),
        };
        let selected = discriminator.as_integer().and_then(|number| union.select(number));
        let member = match (selected, member) {
            (Some(selected), Some((name, json))) if *selected.name == **name => {
                Some(self.part(Step::Member(selected.name.clone()), selected.node, json)?)
            }
            (_, Some((name, _))) => return Err(format!("the discriminator does not select {name:?}")),
            (Some(selected), None) => Some(self.types.initial(selected.node)),
            (None, None) => None,
        };
        let name = selected.map(|case| case.name.clone());
        let member = name.zip(member).map(|(name, value)| (name, Box::new(value)));
        Ok(DynamicData::Union { discriminator: Box::new(discriminator), member })
    }
}
