//! Profile libraries: conversion of [`Node`]s to profiles (DDS-XML 1.0 §7.3.2).
//!
//! Unknown and repeated elements are errors. A profile inherits only from a profile that precedes
//! it, in the same file or in one that was read earlier. Inheritance therefore has no cycles.

use crate::convert::Vendor;
use crate::error::{ConfigError, Origin, Result};
use crate::policy::{Entity, FIELDS, Field, WITHOUT_EFFECT};
use crate::tree::{Content, Format, Node, Place, did_you_mean};
use crate::value::{Kind, Value, base64};

/// Maximum number of profiles, over all files.
pub const PROFILES_MAX: usize = 1024;
/// Longest name of a library or profile.
const NAME_LEN_MAX: usize = 255;

/// Value that a profile assigns to a field.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Index into [`FIELDS`].
    pub(crate) field: usize,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// Policies of one kind of entity within a profile, optionally restricted to some topics.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) entity: Entity,
    pub(crate) topic_filter: Option<String>,
    /// Index of the base profile, whose policies for the same entity apply first.
    pub(crate) base: Option<usize>,
    pub(crate) settings: Vec<Setting>,
}

/// QoS profile.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Name in the form `library::profile`.
    pub(crate) name: String,
    pub(crate) base: Option<usize>,
    pub(crate) is_default: bool,
    pub(crate) blocks: Vec<Block>,
    pub(crate) origin: Origin,
}

/// Adds the libraries of a document to `profiles`. On an error it adds none.
pub(crate) fn read(profiles: &mut Vec<Profile>, source: &str, format: Format, root: &Node) -> Result<()> {
    let mut reader = Reader { profiles: profiles.clone(), source, format };
    let place = Place { source, path: "", format };
    match format {
        Format::Toml => {
            for library in toml_libraries(root, place)? {
                reader.read_library(&library, "")?;
            }
        }
        Format::Xml if root.name == "qos_library" => reader.read_library(root, "")?,
        Format::Xml if root.name == "dds" => {
            if let Some(vendor) = foreign(root) {
                return Err(root.error(place, vendor));
            }
            root.check_attributes(place, &[])?;
            root.check_no_text(place)?;
            for library in root.children() {
                if library.name != "qos_library" {
                    return Err(root.unknown_child(place, library, &["qos_library"]));
                }
                reader.read_library(library, "dds/")?;
            }
        }
        Format::Xml => {
            let unknown = || "unknown element; expected qos_library or dds".to_owned();
            return Err(root.error(place, foreign(root).unwrap_or_else(unknown)));
        }
    }
    *profiles = reader.profiles;
    Ok(())
}

/// Returns the error text for a file of another vendor.
fn foreign(root: &Node) -> Option<String> {
    let vendor = Vendor::of_root(root)?;
    Some(format!("a configuration of {vendor}; `takt config convert FILE` converts it to TOML"))
}

/// Converts TOML tables named by library and profile to the named elements of XML.
fn toml_libraries(root: &Node, place: Place<'_>) -> Result<Vec<Node>> {
    let mut libraries = Vec::new();
    for table in root.children().iter().filter(|child| child.name == "qos_library") {
        table.check_attributes(place, &[])?;
        table.check_no_text(place)?;
        for library in table.children() {
            library.check_no_text(place)?;
            let profiles = library.children().iter().map(|profile| named("qos_profile", profile)).collect();
            libraries.push(Node { content: Content::Children(profiles), ..named("qos_library", library) });
        }
    }
    Ok(libraries)
}

fn named(element: &str, node: &Node) -> Node {
    let mut named = node.clone();
    named.attributes.push(("name".to_owned(), node.name.clone()));
    named.name = element.to_owned();
    named
}

struct Reader<'a> {
    profiles: Vec<Profile>,
    source: &'a str,
    format: Format,
}

impl Reader<'_> {
    fn place<'p>(&'p self, path: &'p str) -> Place<'p> {
        Place { source: self.source, path, format: self.format }
    }

    fn read_library(&mut self, node: &Node, path: &str) -> Result<()> {
        node.check_attributes(self.place(path), &["name"])?;
        node.check_no_text(self.place(path))?;
        let library = name(node, self.place(path))?.to_owned();
        let (above, path) = (path, node.below(self.place(path)));
        for child in node.children() {
            let profile = match (child.name.as_str(), Entity::of_name(&child.name)) {
                ("qos_profile", _) => self.profile(child, &library, &path)?,
                // Policies of one entity with a name form a profile of their own
                // (DDS-XML 1.0 §7.3.2.4.4).
                (element, Some(entity)) if entity.element() == element => {
                    let name = name(child, self.place(&path))?;
                    let block = self.block(child, entity, &library, &path)?;
                    let origin = child.origin(self.place(&path));
                    let name = format!("{library}::{name}");
                    Profile { name, base: None, is_default: false, blocks: vec![block], origin }
                }
                _ => {
                    let known: Vec<&str> = [&["qos_profile"][..], &Entity::ALL.map(Entity::element)].concat();
                    return Err(node.unknown_child(self.place(above), child, &known));
                }
            };
            self.add(profile, child, &path)?;
        }
        Ok(())
    }

    fn add(&mut self, profile: Profile, node: &Node, path: &str) -> Result<()> {
        let place = self.place(path);
        if let Some(other) = self.profiles.iter().find(|other| other.name == profile.name) {
            return Err(node.error(place, format!("{} is already defined in {}", profile.name, other.origin)));
        }
        if let Some(other) = self.profiles.iter().find(|other| other.is_default && profile.is_default) {
            return Err(node
                .error(place, format!("the default profile is already {}, defined in {}", other.name, other.origin)));
        }
        if self.profiles.len() == PROFILES_MAX {
            return Err(node.error(place, format!("more than {PROFILES_MAX} profiles")));
        }
        self.profiles.push(profile);
        Ok(())
    }

    fn profile(&self, node: &Node, library: &str, path: &str) -> Result<Profile> {
        let place = self.place(path);
        node.check_attributes(place, &["name", "base_name", "is_default_qos"])?;
        node.check_no_text(place)?;
        let is_default = match node.attribute("is_default_qos") {
            None => false,
            Some(text) => match Kind::Bool.parse_text(text) {
                Ok(Value::Bool(value)) => value,
                _ => return Err(node.error(place, format!("is_default_qos is {text:?}; expected true or false"))),
            },
        };
        let base = self.base(node, library, place)?;
        let name = format!("{library}::{}", name(node, place)?);
        let below = node.below(place);
        let mut blocks: Vec<Block> = Vec::new();
        for child in node.children() {
            let entity = Entity::of_name(&child.name).filter(|entity| entity.element() == child.name);
            let known = Entity::ALL.map(Entity::element);
            let entity = entity.ok_or_else(|| node.unknown_child(place, child, &known))?;
            let block = self.block(child, entity, library, &below)?;
            let same = |other: &Block| other.entity == entity && other.topic_filter == block.topic_filter;
            if blocks.iter().any(same) {
                return Err(child.error(self.place(&below), "given twice for the same topics"));
            }
            blocks.push(block);
        }
        Ok(Profile { name, base, is_default, blocks, origin: node.origin(place) })
    }

    /// Returns the index of the profile in `base_name`: of this library, unless the name includes
    /// another.
    fn base(&self, node: &Node, library: &str, place: Place<'_>) -> Result<Option<usize>> {
        let Some(base) = node.attribute("base_name") else { return Ok(None) };
        let bare = base.strip_prefix("::").unwrap_or(base);
        let full = if bare.contains("::") { bare.to_owned() } else { format!("{library}::{bare}") };
        let found = self.profiles.iter().position(|profile| profile.name == full);
        let unknown = || {
            let names = self.profiles.iter().map(|profile| profile.name.as_str());
            let meant = did_you_mean(&full, names);
            node.error(place, format!("base_name {base:?} is not a profile defined before this one{meant}"))
        };
        found.map(Some).ok_or_else(unknown)
    }

    fn block(&self, node: &Node, entity: Entity, library: &str, path: &str) -> Result<Block> {
        let place = self.place(path);
        let attributes: &[&str] =
            if entity.has_topic() { &["name", "base_name", "topic_filter"] } else { &["name", "base_name"] };
        node.check_attributes(place, attributes)?;
        node.check_no_text(place)?;
        let topic_filter = node.attribute("topic_filter").map(|filter| filter.trim().to_owned());
        if topic_filter.as_deref() == Some("") {
            return Err(node.error(place, "topic_filter is empty; use \"*\" for every topic"));
        }
        let base = self.base(node, library, place)?;
        let below = node.below(place);
        let mut settings: Vec<Setting> = Vec::new();
        for policy in node.children() {
            self.policy(policy, node, entity, &below, &mut settings)?;
        }
        Ok(Block { entity, topic_filter, base, settings })
    }

    fn policy(
        &self,
        node: &Node,
        parent: &Node,
        entity: Entity,
        path: &str,
        settings: &mut Vec<Setting>,
    ) -> Result<()> {
        let of_entity = |field: &&Field| field.is_of(entity);
        if !FIELDS.iter().any(|field| field.policy == node.name && of_entity(&field)) {
            let mut known: Vec<&str> = FIELDS.iter().filter(of_entity).map(|field| field.policy).collect();
            known.dedup();
            let own = parent.below(self.place(""));
            let parent_path = path.strip_suffix(own.as_str()).unwrap_or_default();
            return Err(parent.unknown_child(self.place(parent_path), node, &known));
        }
        let place = self.place(path);
        node.check_attributes(place, &[])?;
        node.check_no_text(place)?;
        let below = node.below(place);
        for child in node.children() {
            let Some((index, value)) = self.field(node, child, path, &below)? else { continue };
            if settings.iter().any(|setting| setting.field == index) {
                return Err(child.error(self.place(&below), "given twice"));
            }
            settings.push(Setting { field: index, value, origin: child.origin(place) });
        }
        Ok(())
    }

    /// Parses a field of a policy. Returns `None` for a field that has no effect in Takt.
    fn field(&self, policy: &Node, node: &Node, path: &str, below: &str) -> Result<Option<(usize, Value)>> {
        let place = self.place(below);
        if WITHOUT_EFFECT.contains(&(policy.name.as_str(), node.name.as_str())) {
            return Kind::Length.parse(node, place).map(|_| None);
        }
        let of_policy = |field: &Field| field.policy == policy.name;
        let coded = node.name.strip_suffix("B64");
        let is_named = |field: &Field| {
            field.name == node.name || (field.kind == Kind::Octets && coded.is_some_and(|name| name == field.name))
        };
        let found = FIELDS.iter().position(|field| of_policy(field) && is_named(field));
        let Some(index) = found else {
            let known: Vec<&str> = FIELDS.iter().filter(|field| of_policy(field)).map(|field| field.name).collect();
            return Err(policy.unknown_child(self.place(path), node, &known));
        };
        if FIELDS[index].name != node.name {
            let text = node.text().unwrap_or_default();
            let octets = base64(text).ok_or_else(|| node.error(place, "invalid Base64"))?;
            return Ok(Some((index, Value::Octets(octets))));
        }
        FIELDS[index].kind.parse(node, place).map(|value| Some((index, value)))
    }
}

fn name<'n>(node: &'n Node, place: Place<'_>) -> Result<&'n str> {
    let name = node.attribute("name").ok_or_else(|| node.error(place, "the attribute name is missing"))?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if name.is_empty() || name.len() > NAME_LEN_MAX || !name.chars().all(is_allowed) {
        let what = format!("a name must have 1 to {NAME_LEN_MAX} letters, digits, '_' or '.'");
        return Err(ConfigError::new(node.origin(place), format!("{}{}", place.path, node.name), what));
    }
    Ok(name)
}
