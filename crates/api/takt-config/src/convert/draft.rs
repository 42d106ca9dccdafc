//! Converted file in preparation: settings, profiles and omissions.

use std::fmt::Write;

use super::Omission;
use crate::error::Origin;
use crate::policy::{Entity, FIELDS, Field};
use crate::setting::{self, Setting};
use crate::show::{key, toml_value};
use crate::toml_tree::quote;
use crate::tree::Node;
use crate::value::{Kind, Value};

/// Profile in preparation.
pub(super) struct Profile {
    pub(super) qos_library: String,
    pub(super) name: String,
    pub(super) base: Option<String>,
    pub(super) is_default: bool,
    pub(super) blocks: Vec<Block>,
}

/// Policies of one entity in preparation.
pub(super) struct Block {
    entity: Entity,
    topic_filter: Option<String>,
    base: Option<String>,
    fields: Vec<(&'static Field, Value, u32)>,
}

impl Profile {
    pub(super) fn new(library: &str, name: &str) -> Self {
        Self {
            qos_library: library.to_owned(),
            name: name.to_owned(),
            base: None,
            is_default: false,
            blocks: Vec::new(),
        }
    }

    /// Adds an empty block and returns it.
    pub(super) fn add(&mut self, entity: Entity) -> &mut Block {
        self.blocks.push(Block::new(entity));
        self.blocks.last_mut().expect("it was pushed just now")
    }

    /// Returns the first block of the entity, which is added if there is none.
    pub(super) fn block(&mut self, entity: Entity) -> &mut Block {
        match self.blocks.iter().position(|block| block.entity == entity) {
            Some(index) => &mut self.blocks[index],
            None => self.add(entity),
        }
    }
}

impl Block {
    pub(super) fn new(entity: Entity) -> Self {
        Self { entity, topic_filter: None, base: None, fields: Vec::new() }
    }

    pub(super) fn restrict(&mut self, topic_filter: Option<&str>, base: Option<&str>) {
        self.topic_filter = topic_filter.map(str::to_owned);
        self.base = base.map(str::to_owned);
    }

    pub(super) fn entity(&self) -> Entity {
        self.entity
    }

    /// Adds a value. The first value of a field counts.
    pub(super) fn set(&mut self, field: &'static Field, value: Value, line: u32) {
        if !self.fields.iter().any(|(known, ..)| known.path() == field.path()) {
            self.fields.push((field, value, line));
        }
    }

    /// Adds a property.
    pub(super) fn add_property(&mut self, property: (String, String, bool), line: u32) {
        let existing = self.fields.iter_mut().find_map(|(field, value, _)| match value {
            Value::Properties(pairs) if field.policy == "property" => Some(pairs),
            _ => None,
        });
        match existing {
            Some(pairs) => pairs.push(property),
            None => {
                let field =
                    field(self.entity, "property", "value").expect("participants and endpoints have properties");
                self.set(field, Value::Properties(vec![property]), line);
            }
        }
    }
}

/// Returns the field of a policy of the entity.
pub(super) fn field(entity: Entity, policy: &str, name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.policy == policy && field.name == name && field.is_of(entity))
}

/// Converted file in preparation.
pub(super) struct Draft<'s> {
    source: &'s str,
    settings: Vec<(&'static Setting, Value, u32)>,
    pub(super) profiles: Vec<Profile>,
    omissions: Vec<Omission>,
}

impl<'s> Draft<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, settings: Vec::new(), profiles: Vec::new(), omissions: Vec::new() }
    }

    /// Reports an element as not converted.
    pub(super) fn omit(&mut self, node: &Node, path: &str, reason: impl Into<String>) {
        let origin = Origin { source: self.source.to_owned(), line: node.line };
        self.omissions.push(Omission { origin, element: path.to_owned(), reason: reason.into() });
    }

    /// Sets a setting, `table.key`, to a text of its kind. A list grows by the text.
    pub(super) fn set(&mut self, node: &Node, path: &str, setting: &str, text: &str) {
        let found = setting::all().find(|known| known.path() == setting).expect("settings are named in this crate");
        let value = match found.kind.parse_text(text) {
            Ok(value) => value,
            Err(what) => return self.omit(node, path, format!("{setting}: {what}")),
        };
        let existing = self.settings.iter_mut().find(|(known, ..)| known.path() == setting);
        match (existing, value) {
            (Some((_, Value::Texts(texts), _)), Value::Texts(added)) => {
                texts.extend(added.into_iter().filter(|text| !texts.contains(text)).collect::<Vec<_>>());
            }
            (Some((_, known, _)), value) if *known == value => {}
            (Some(_), _) => self.omit(node, path, format!("{setting} has another value already")),
            (None, value) => self.settings.push((found, value, node.line)),
        }
    }

    /// Sets a setting to the duration of an element.
    pub(super) fn set_duration(&mut self, node: &Node, path: &str, setting: &str) {
        match duration(node) {
            Some(text) => self.set(node, path, setting, &text),
            None => self.omit(node, path, "expected a duration of sec and nanosec"),
        }
    }

    /// Adds a policy's field to a block, from a text of the field's kind.
    pub(super) fn set_field(&mut self, block: &mut Block, node: &Node, path: &str, names: (&str, &str), text: &str) {
        let Some(field) = field(block.entity, names.0, names.1) else {
            return self.omit(node, path, format!("{} has no {}.{}", block.entity.element(), names.0, names.1));
        };
        match field.kind.parse_text(text) {
            Ok(value) => block.set(field, value, node.line),
            Err(what) => self.omit(node, path, what),
        }
    }

    /// Reports every attribute that is not among `known`.
    pub(super) fn check_attributes(&mut self, node: &Node, path: &str, known: &[&str]) {
        for (name, _) in &node.attributes {
            if !known.contains(&name.as_str()) {
                self.omit(node, &format!("{path}/@{name}"), "no equivalent");
            }
        }
    }

    /// Returns the TOML text and the omissions.
    pub(super) fn finish(self) -> (String, Vec<Omission>) {
        let mut text = String::new();
        let mut settings = self.settings;
        let order: Vec<String> = setting::all().map(|setting| setting.path()).collect();
        settings.sort_by_key(|(setting, ..)| order.iter().position(|path| *path == setting.path()));
        let mut table = "";
        for (setting, value, line) in &settings {
            if setting.table != table {
                table = setting.table;
                let gap = if text.is_empty() { "" } else { "\n" };
                writeln!(text, "{gap}[{table}]").expect("a string grows");
            }
            write_line(&mut text, setting.key, value, *line);
        }
        for profile in &self.profiles {
            write_profile(&mut text, profile);
        }
        (text, self.omissions)
    }
}

fn write_line(text: &mut String, key: &str, value: &Value, line: u32) {
    let assignment = format!("{key} = {}", toml_value(value));
    writeln!(text, "{assignment:<64} # line {line}").expect("a string grows");
}

fn write_profile(text: &mut String, profile: &Profile) {
    let gap = if text.is_empty() { "" } else { "\n" };
    let path = format!("qos_library.{}.{}", key(&profile.qos_library), key(&profile.name));
    writeln!(text, "{gap}[{path}]").expect("a string grows");
    if let Some(base) = &profile.base {
        writeln!(text, "base_name = {}", quote(base)).expect("a string grows");
    }
    if profile.is_default {
        text.push_str("is_default_qos = true\n");
    }
    for block in &profile.blocks {
        writeln!(text, "\n[[{path}.{}]]", block.entity.element()).expect("a string grows");
        for (name, value) in [("topic_filter", &block.topic_filter), ("base_name", &block.base)] {
            if let Some(value) = value {
                writeln!(text, "{name} = {}", quote(value)).expect("a string grows");
            }
        }
        for (field, value, line) in &block.fields {
            write_line(text, &field.path(), value, *line);
        }
    }
}

/// Returns a name for a profile: `_` replaces characters that names of profiles do not have.
pub(super) fn profile_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).collect()
}

/// Returns a duration of `sec` and `nanosec` elements in the form of the settings. `None` if it is
/// no duration.
fn duration(node: &Node) -> Option<String> {
    let is_infinite = |text: &str| text.starts_with("DURATION_INFINIT");
    if node.text().is_some_and(is_infinite) {
        return Some("infinite".to_owned());
    }
    let mut nanoseconds: u64 = 0;
    for part in node.children() {
        let text = part.text()?;
        if is_infinite(text) || text == "2147483647" {
            return Some("infinite".to_owned());
        }
        let unit = match part.name.as_str() {
            "sec" | "seconds" => 1_000_000_000,
            "nanosec" | "nanoseconds" => 1,
            _ => return None,
        };
        let number = if matches!(text, "DURATION_ZERO_SEC" | "DURATION_ZERO_NSEC") { 0 } else { text.parse().ok()? };
        nanoseconds = nanoseconds.checked_add(u64::checked_mul(number, unit)?)?;
    }
    (!node.children().is_empty()).then(|| format!("{nanoseconds} ns"))
}

/// Returns a field's value from an element: a duration, or a text.
pub(super) fn value_text(kind: Kind, node: &Node) -> Option<String> {
    match kind {
        Kind::Duration => duration(node),
        Kind::Texts | Kind::Words { .. } | Kind::Octets if !node.children().is_empty() => {
            let texts: Option<Vec<&str>> = node.children().iter().map(Node::text).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => node.text().map(str::to_owned),
    }
}
