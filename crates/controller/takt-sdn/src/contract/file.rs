//! The operator's contracts by topic in TOML, for applications that declare none.
//!
//! ```toml
//! [[contract]]
//! topic = "camera/*"     # patterns as in PARTITION: *, ?, [a-z]
//! type = "Image"         # optional, a pattern too
//! separation = "5ms"
//! jitter = "20ms"        # optional; one separation by default
//! size = 1400            # octets of a serialized sample
//! limit = "1ms"
//! importance = 7
//! protected = true       # optional; backup paths for links that fail
//! ```
//!
//! The first table whose patterns match applies, even if it does not have all values. Unknown keys
//! are errors.
//!
//! One `[default]` table without patterns has the values that no other source gives, so that every
//! topic can have a contract.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use takt_wire::partition::partitions_match;
use takt_wire::qos::Partition;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Source, Sourced, parse_span};

/// Maximum length of a file in octets.
pub const FILE_LEN_MAX: usize = 1 << 20;
/// Maximum number of contracts in a file.
pub const CONTRACTS_MAX: usize = 10_000;

/// Error of a contract file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileError {
    /// Line of the error, starting at 1.
    pub line: usize,
    /// Key of the error; empty if there is none.
    pub key: String,
    /// Found and expected content.
    pub what: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for FileError {}

/// One `[[contract]]` table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    topic: Partition,
    type_name: Option<Partition>,
    pub(super) separation: Option<Sourced<Duration>>,
    pub(super) jitter: Option<Sourced<Duration>>,
    pub(super) size: Option<Sourced<u32>>,
    pub(super) limit: Option<Sourced<Duration>>,
    pub(super) importance: Option<Sourced<i32>>,
    pub(super) is_protected: Option<Sourced<bool>>,
}

/// The operator's contracts; empty by default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContractFile {
    entries: Vec<Entry>,
    default: Option<Entry>,
}

impl ContractFile {
    /// Parses a file of at most [`FILE_LEN_MAX`] octets with at most [`CONTRACTS_MAX`] contracts.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let reader = Reader { text };
        if text.len() > FILE_LEN_MAX {
            let what = format!("the file has {} octets; the maximum is {FILE_LEN_MAX}", text.len());
            return Err(FileError { line: 1, key: String::new(), what });
        }
        let root = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            FileError { line: reader.line(at), key: String::new(), what: error.message().to_owned() }
        })?;
        let (mut entries, mut default) = (Vec::new(), None);
        for (key, value) in root.get_ref() {
            if key.get_ref() == "default" {
                default = Some(reader.entry(value, false)?);
                continue;
            }
            if key.get_ref() != "contract" {
                return Err(reader.error(
                    &key.span(),
                    key.get_ref(),
                    "unknown key; a contract begins with [[contract]], the default with [default]",
                ));
            }
            let DeValue::Array(tables) = value.get_ref() else {
                return Err(reader.error(&key.span(), "contract", "is not a list; write [[contract]]"));
            };
            for table in tables {
                if entries.len() == CONTRACTS_MAX {
                    let what = format!("more than {CONTRACTS_MAX} contracts");
                    return Err(reader.error(&table.span(), "contract", &what));
                }
                entries.push(reader.entry(table, true)?);
            }
        }
        Ok(Self { entries, default })
    }

    /// Returns the number of contracts.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Reports whether there is no contract.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the values that apply where no other source has one.
    pub(super) fn default_entry(&self) -> Option<&Entry> {
        self.default.as_ref()
    }

    /// Returns the first contract for this topic and type.
    pub(super) fn find(&self, topic: &str, type_name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| {
            matches(&entry.topic, topic) && entry.type_name.as_ref().is_none_or(|pattern| matches(pattern, type_name))
        })
    }
}

/// Reports whether the name matches the pattern. A name that contains pattern characters matches
/// only itself.
fn matches(pattern: &Partition, name: &str) -> bool {
    pattern.names[0] == name || partitions_match(pattern, &Partition { names: vec![name.to_owned()] })
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        before.iter().filter(|octet| **octet == b'\n').count() + 1
    }

    fn error(&self, at: &Range<usize>, key: &str, what: &str) -> FileError {
        FileError { line: self.line(at.start), key: key.to_owned(), what: what.to_owned() }
    }

    /// Parses a table: a contract for some topics, or the default.
    fn entry(&self, value: &Spanned<DeValue<'_>>, has_patterns: bool) -> Result<Entry, FileError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.error(&value.span(), "contract", "is not a table; write [[contract]], or [default]"));
        };
        let mut topic = None;
        let mut entry = Entry {
            topic: Partition::default(),
            type_name: None,
            separation: None,
            jitter: None,
            size: None,
            limit: None,
            importance: None,
            is_protected: None,
        };
        for (key, value) in table {
            let source = Source::File { line: self.line(key.span().start) };
            let wrong = |what: &str| self.error(&key.span(), key.get_ref(), what);
            match key.get_ref().as_ref() {
                "topic" if has_patterns => {
                    topic = Some(pattern(value).ok_or_else(|| wrong("is not a string; give a pattern of topic names"))?)
                }
                "type" if has_patterns => {
                    let pattern =
                        pattern(value).ok_or_else(|| wrong("is not a string; give a pattern of type names"))?;
                    entry.type_name = Some(pattern);
                }
                "separation" | "jitter" | "limit" => {
                    let span = text(value).and_then(parse_span).ok_or_else(|| {
                        wrong("is not a duration; write a whole number above zero and ns, us, ms or s, such as \"5ms\"")
                    })?;
                    let span = Some(Sourced::new(span, source));
                    match key.get_ref().as_ref() {
                        "limit" => entry.limit = span,
                        "jitter" => entry.jitter = span,
                        _ => entry.separation = span,
                    }
                }
                "size" => {
                    let size = integer(value).and_then(|size| u32::try_from(size).ok()).filter(|size| *size > 0);
                    let size = size.ok_or_else(|| wrong("is not a size; expected 1 to 4294967295 octets"))?;
                    entry.size = Some(Sourced::new(size, source));
                }
                "importance" => {
                    let importance = integer(value).and_then(|importance| i32::try_from(importance).ok());
                    let importance = importance.ok_or_else(|| wrong("is not a 32-bit integer"))?;
                    entry.importance = Some(Sourced::new(importance, source));
                }
                "protected" => {
                    let DeValue::Boolean(is_protected) = value.get_ref() else {
                        return Err(wrong("is neither true nor false"));
                    };
                    entry.is_protected = Some(Sourced::new(*is_protected, source));
                }
                _ => {
                    return Err(wrong(
                        "unknown key; expected topic, type, separation, jitter, size, limit, importance or protected",
                    ));
                }
            }
        }
        let missing = || self.error(&value.span(), "topic", "is missing; expected a pattern of topic names, * for all");
        if has_patterns {
            entry.topic = topic.ok_or_else(missing)?;
        }
        Ok(entry)
    }
}

fn text<'a>(value: &'a Spanned<DeValue<'_>>) -> Option<&'a str> {
    match value.get_ref() {
        DeValue::String(text) => Some(text),
        _ => None,
    }
}

fn pattern(value: &Spanned<DeValue<'_>>) -> Option<Partition> {
    Some(Partition { names: vec![text(value)?.to_owned()] })
}

fn integer(value: &Spanned<DeValue<'_>>) -> Option<i64> {
    match value.get_ref() {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    }
}
