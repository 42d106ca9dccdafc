//! Printing of types as Rust text: definitions with `#[derive(DdsType)]` that have the same type
//! identifier.
//!
//! Rust names follow the conventions of Rust, and attributes hold the IDL names. Properties that
//! the derive cannot express are listed first, as comments. The bytes are then the same, but the
//! type identifier differs.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::idl::simple_name;
use super::node::{Bitmask, Enum, Node, NodeId, Primitive, Struct, StructMember, TryConstruct, Types, Union};
use crate::Extensibility;
use crate::type_object::annotation::BuiltinMember;

/// Names that Rust or the printed text uses.
const TAKEN_TYPES: [&str; 12] =
    ["String", "Vec", "Option", "Box", "Some", "None", "Ok", "Err", "Result", "Default", "Clone", "Self"];

/// Keywords of Rust (2024) that are written as `r#keyword` in identifiers.
const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while",
];

/// Returns the definitions of a type and its parts.
pub(super) fn print(types: &Types, root: NodeId) -> String {
    let mut printer = Printer {
        types,
        text: String::new(),
        is_done: vec![false; types.nodes.len()],
        names: type_names(types),
        notes: BTreeSet::new(),
    };
    printer.define(root);
    let notes: Vec<String> = printer.notes.iter().map(|note| format!("// {note}\n")).collect();
    format!("{}{}", notes.concat(), printer.text.trim_start())
}

struct Printer<'a> {
    types: &'a Types,
    text: String,
    is_done: Vec<bool>,
    /// Rust name of each named type.
    names: Vec<String>,
    notes: BTreeSet<String>,
}

/// Splits a name into words: at underscores, and at capital letters that begin a word.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let characters: Vec<char> = name.chars().collect();
    for (index, &c) in characters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| characters[before]);
        let after_is_small = characters.get(index + 1).is_some_and(char::is_ascii_lowercase);
        let begins = c.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase() || b.is_ascii_digit() || (b.is_ascii_uppercase() && after_is_small)
            });
        if (begins || !c.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(core::mem::take(&mut word));
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns the name of a type or variant.
fn pascal_case(name: &str) -> String {
    let capital = |word: &String| format!("{}{}", word[..1].to_ascii_uppercase(), &word[1..]);
    let text: String = words(name).iter().map(capital).collect();
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) { text } else { format!("N{text}") }
}

/// Returns the name of a field.
fn snake_case(name: &str) -> String {
    let text = words(name).join("_");
    match text.as_str() {
        "self" | "super" | "crate" => format!("{text}_"),
        _ if KEYWORDS.contains(&text.as_str()) => format!("r#{text}"),
        _ if text.starts_with(|c: char| c.is_ascii_alphabetic()) => text,
        _ => format!("n_{text}"),
    }
}

/// Returns distinct Rust names for these names.
fn distinct<'n>(names: impl Iterator<Item = &'n str>, case: fn(&str) -> String) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut all = Vec::new();
    for name in names {
        let mut own = case(name);
        while !taken.insert(own.clone()) {
            own.push('_');
        }
        all.push(own);
    }
    all
}

fn type_names(types: &Types) -> Vec<String> {
    let mut taken: BTreeSet<String> = TAKEN_TYPES.into_iter().map(str::to_string).collect();
    let mut names = Vec::with_capacity(types.nodes.len());
    for id in 0..types.nodes.len() {
        let full = types.name(id);
        if full.is_empty() {
            names.push(String::new());
            continue;
        }
        let mut own = pascal_case(simple_name(full));
        if taken.contains(&own) {
            own = format!("{own}Type");
        }
        if taken.contains(&own) {
            own = pascal_case(full);
        }
        while !taken.insert(own.clone()) {
            own.push('_');
        }
        names.push(own);
    }
    names
}

impl Printer<'_> {
    /// Defines a type after its parts. The recursion depth is the nesting depth, which is limited
    /// when types are built.
    fn define(&mut self, id: NodeId) {
        if core::mem::replace(&mut self.is_done[id], true) {
            return;
        }
        let types = self.types;
        match &types.nodes[id] {
            Node::Sequence { element, .. } | Node::Array { element, .. } => self.define(*element),
            Node::Map { key, element, .. } => {
                self.define(*key);
                self.define(*element);
            }
            Node::Alias { name, target } => {
                self.notes
                    .insert(format!("typedef {name}: the derive has no type aliases; members use the aliased type"));
                self.define(*target);
            }
            Node::Struct(structure) => {
                structure.base.into_iter().for_each(|base| self.define(base));
                structure.members.iter().for_each(|member| self.define(member.node));
                self.structure(id, structure);
            }
            Node::Union(union) => {
                self.define(union.discriminator);
                union.cases.iter().for_each(|case| self.define(case.node));
                self.union(id, union);
            }
            Node::Enum(enumeration) => self.enumeration(id, enumeration),
            Node::Bitmask(bitmask) => self.bitmask(id, bitmask),
            Node::Primitive(_) | Node::String { .. } | Node::WString { .. } => {}
        }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Appends the attributes of a type and the first line of its definition.
    fn begin(&mut self, id: NodeId, derives: &str, keyword: &str, attributes: &[String]) {
        let (own, full) = (self.names[id].clone(), self.types.name(id));
        let mut all = Vec::new();
        if own != full {
            all.push(format!("name = {full:?}"));
        }
        all.extend_from_slice(attributes);
        all.push("default".to_string());
        self.line("");
        self.line(&format!("#[derive(takt::DdsType, Clone, {derives})]"));
        self.line(&format!("#[dds({})]", all.join(", ")));
        self.line(&format!("pub {keyword} {own} {{"));
    }

    fn structure(&mut self, id: NodeId, structure: &Struct) {
        let mut attributes = aggregate_attributes(structure.extensibility, structure.nested);
        if structure.autoid_hash {
            attributes.push("autoid = \"hash\"".to_string());
        }
        self.begin(id, "Debug, PartialEq", "struct", &attributes);
        let own = &structure.members[structure.inherited..];
        let names = distinct(own.iter().map(|member| &*member.name), snake_case);
        if let Some(base) = structure.base {
            let field = if names.iter().any(|name| name == "base") { "base_" } else { "base" };
            let base = self.rust_type(base);
            self.line("    #[dds(base)]");
            self.line(&format!("    pub {field}: {base},"));
        }
        let mut next = structure.members[..structure.inherited].last().map_or(0, |member| member.member.id + 1);
        for (member, field) in own.iter().zip(names) {
            let implied = if structure.autoid_hash { crate::describe::hash_id(&member.name) } else { next };
            next = member.member.id + 1;
            let mut attributes = member_attributes(member, implied);
            if field.trim_start_matches("r#") != &*member.name {
                attributes.push(format!("name = {:?}", member.name));
            }
            attributes.extend(self.bound(member.node));
            self.note_values(member.builtin.as_deref());
            if member.try_construct != TryConstruct::Discard {
                self.notes.insert("@try_construct: the derive discards samples with invalid values".to_string());
            }
            let mut ty = self.member_type(member.node);
            if member.external {
                ty = format!("Box<{ty}>");
            }
            if member.optional {
                ty = format!("Option<{ty}>");
            }
            self.attributes(&attributes);
            self.line(&format!("    pub {field}: {ty},"));
        }
        self.line("}");
    }

    fn attributes(&mut self, attributes: &[String]) {
        if !attributes.is_empty() {
            self.line(&format!("    #[dds({})]", attributes.join(", ")));
        }
    }

    fn union(&mut self, id: NodeId, union: &Union) {
        let mut attributes = aggregate_attributes(union.extensibility, union.nested);
        attributes.push(format!("discriminator = {:?}", self.rust_type(union.discriminator)));
        if union.discriminator_is_key {
            attributes.push("key".to_string());
        }
        self.begin(id, "Debug, PartialEq", "enum", &attributes);
        let names = distinct(union.cases.iter().map(|case| &*case.name), pascal_case);
        let mut next = 1;
        for (case, variant) in union.cases.iter().zip(names) {
            let mut attributes = Vec::new();
            let labels: Vec<String> = case.labels.iter().map(|label| self.label(union.discriminator, *label)).collect();
            match labels.as_slice() {
                [] => {}
                [label] => attributes.push(format!("case = {label}")),
                labels => attributes.push(format!("case = [{}]", labels.join(", "))),
            }
            if case.default {
                attributes.push("default".to_string());
            }
            if case.id != next {
                attributes.push(format!("id = {}", case.id));
            }
            next = case.id + 1;
            if variant != *case.name {
                attributes.push(format!("name = {:?}", case.name));
            }
            attributes.extend(self.bound(case.node));
            self.note_values(case.builtin.as_deref());
            if case.builtin.as_ref().is_some_and(|builtin| builtin.hash_id.is_some()) || union.autoid_hash {
                self.notes.insert("@hashid and @autoid of a union: the derive has only the ids".to_string());
            }
            let mut ty = self.member_type(case.node);
            if case.external {
                ty = format!("Box<{ty}>");
            }
            self.attributes(&attributes);
            self.line(&format!("    {variant}({ty}),"));
        }
        self.line("}");
    }

    fn note_values(&mut self, builtin: Option<&BuiltinMember>) {
        if builtin.is_some_and(|builtin| builtin.unit.is_some() || builtin.min.is_some() || builtin.max.is_some()) {
            self.notes.insert("@unit, @min, @max: the derive has no attributes for them".to_string());
        }
    }

    /// Returns the label of a case.
    fn label(&self, discriminator: NodeId, label: i32) -> String {
        match self.types.resolved(discriminator) {
            Node::Primitive(Primitive::Bool) => (label != 0).to_string(),
            Node::Primitive(Primitive::Char8) => format!("takt::xtypes::Char8({label})"),
            Node::Primitive(Primitive::Char16) => format!("takt::xtypes::Char16({label})"),
            Node::Primitive(Primitive::U8) => format!("takt::xtypes::Uint8({label})"),
            Node::Enum(enumeration) => {
                let names = distinct(enumeration.literals.iter().map(|(name, _)| &**name), pascal_case);
                let index = enumeration.literals.iter().position(|(_, value)| *value == label);
                match index {
                    Some(index) => format!("{}::{}", self.rust_type(discriminator), names[index]),
                    None => label.to_string(),
                }
            }
            _ => label.to_string(),
        }
    }

    fn enumeration(&mut self, id: NodeId, enumeration: &Enum) {
        let mut attributes = Vec::new();
        attributes.extend(enumeration.extensibility.and_then(extensibility_attribute));
        if enumeration.bit_bound != 32 {
            attributes.push(format!("bit_bound = {}", enumeration.bit_bound));
        }
        self.begin(id, "Copy, Debug, PartialEq, Eq, PartialOrd, Ord", "enum", &attributes);
        let names = distinct(enumeration.literals.iter().map(|(name, _)| &**name), pascal_case);
        let mut next = Some(0);
        for (index, ((name, value), variant)) in enumeration.literals.iter().zip(names).enumerate() {
            let mut attributes = Vec::new();
            if variant != **name {
                attributes.push(format!("name = {name:?}"));
            }
            if enumeration.default == Some(index) {
                attributes.push("default".to_string());
            }
            let number = if Some(*value) == next { String::new() } else { format!(" = {value}") };
            next = value.checked_add(1);
            self.attributes(&attributes);
            self.line(&format!("    {variant}{number},"));
        }
        self.line("}");
    }

    fn bitmask(&mut self, id: NodeId, bitmask: &Bitmask) {
        let holder = 8 * bitmask.holder_len();
        if usize::from(bitmask.bit_bound) != holder {
            let name = &bitmask.name;
            self.notes.insert(format!("bitmask {name}: the bit bound is {}, here {holder}", bitmask.bit_bound));
        }
        let (own, full) = (self.names[id].clone(), &bitmask.name);
        self.line("");
        self.line("takt::xtypes::bitmask! {");
        self.line(&format!("    /// `{full}`."));
        self.line(&format!("    pub struct {own}: u{holder} as {full:?} {{"));
        for (name, position) in &bitmask.flags {
            self.line(&format!("        /// `{name}`."));
            self.line(&format!("        const {name} = {position};"));
        }
        self.line("    }");
        self.line("}");
    }

    /// Returns the `bound` attribute of a string, sequence or map.
    fn bound(&self, id: NodeId) -> Option<String> {
        bound_of(self.types.resolved(id)).map(|bound| format!("bound = {bound}"))
    }

    /// Returns the type of a member, whose bound is an attribute.
    fn member_type(&self, id: NodeId) -> String {
        match self.types.resolved(id) {
            Node::Primitive(primitive) => primitive_name(*primitive).to_string(),
            Node::String { .. } => "String".to_string(),
            Node::WString { .. } => "takt::xtypes::WString".to_string(),
            Node::Sequence { element, .. } => format!("Vec<{}>", self.rust_type(*element)),
            Node::Array { element, dimensions, .. } => {
                let wrap = |ty: String, dimension: &u32| format!("[{ty}; {dimension}]");
                dimensions.iter().rev().fold(self.rust_type(*element), wrap)
            }
            Node::Map { key, element, .. } => {
                format!("std::collections::BTreeMap<{}, {}>", self.rust_type(*key), self.rust_type(*element))
            }
            Node::Struct(_) | Node::Union(_) | Node::Enum(_) | Node::Bitmask(_) | Node::Alias { .. } => {
                self.names[self.resolved_id(id)].clone()
            }
        }
    }

    /// Returns the type of an element, whose bound is part of the type.
    fn rust_type(&self, id: NodeId) -> String {
        let ty = self.member_type(id);
        match bound_of(self.types.resolved(id)) {
            Some(bound) => format!("takt::xtypes::Bounded<{ty}, {bound}>"),
            None => ty,
        }
    }

    fn resolved_id(&self, mut id: NodeId) -> NodeId {
        // Terminates, since a type that is an alias of itself is refused when it is built.
        while let Node::Alias { target, .. } = self.types.nodes[id] {
            id = target;
        }
        id
    }
}

fn bound_of(node: &Node) -> Option<usize> {
    match node {
        Node::String { bound } | Node::WString { bound } => *bound,
        Node::Sequence { bound, .. } | Node::Map { bound, .. } => *bound,
        _ => None,
    }
}

/// Returns the extensibility attribute. Appendable is the default of the derive.
fn extensibility_attribute(extensibility: Extensibility) -> Option<String> {
    match extensibility {
        Extensibility::Final => Some("extensibility = \"final\"".to_string()),
        Extensibility::Appendable => None,
        Extensibility::Mutable => Some("extensibility = \"mutable\"".to_string()),
    }
}

fn aggregate_attributes(extensibility: Extensibility, nested: bool) -> Vec<String> {
    extensibility_attribute(extensibility).into_iter().chain(nested.then(|| "nested".to_string())).collect()
}

/// Returns the attributes of a member. `implied` is the id that the member has without an
/// attribute.
fn member_attributes(member: &StructMember, implied: u32) -> Vec<String> {
    let id = member.member.id;
    let mut attributes = Vec::new();
    if member.member.key {
        attributes.push("key".to_string());
    }
    match member.builtin.as_ref().and_then(|builtin| builtin.hash_id.as_deref()) {
        Some(name) if name.is_empty() && crate::describe::hash_id(&member.name) == id => {
            attributes.push("hashid".to_string());
        }
        Some(name) if crate::describe::hash_id(name) == id => attributes.push(format!("hashid = {name:?}")),
        _ if id != implied => attributes.push(format!("id = {id}")),
        _ => {}
    }
    if member.member.must_understand {
        attributes.push("must_understand".to_string());
    }
    attributes
}

fn primitive_name(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Bool => "bool",
        Primitive::Byte => "u8",
        Primitive::U8 => "takt::xtypes::Uint8",
        Primitive::I8 => "i8",
        Primitive::I16 => "i16",
        Primitive::U16 => "u16",
        Primitive::I32 => "i32",
        Primitive::U32 => "u32",
        Primitive::I64 => "i64",
        Primitive::U64 => "u64",
        Primitive::F32 => "f32",
        Primitive::F64 => "f64",
        Primitive::Char8 => "takt::xtypes::Char8",
        Primitive::Char16 => "takt::xtypes::Char16",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_of_rust() {
        for (idl, snake, pascal) in [
            ("frameId", "frame_id", "FrameId"),
            ("IDLE", "idle", "Idle"),
            ("HTTPServer2", "http_server2", "HttpServer2"),
            ("MAX_SPEED", "max_speed", "MaxSpeed"),
            ("String_", "string", "String"),
            ("type", "r#type", "Type"),
            ("self", "self_", "Self"),
            ("x", "x", "X"),
            ("_2d", "n_2d", "N2d"),
        ] {
            assert_eq!((snake_case(idl).as_str(), pascal_case(idl).as_str()), (snake, pascal), "{idl}");
        }
        assert_eq!(distinct(["aB", "a_b"].into_iter(), snake_case), ["a_b", "a_b_"]);
    }
}
