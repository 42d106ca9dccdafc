//! Types as IDL 4.2 text, with the annotations of XTypes 1.3 §7.3.1.2.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

use super::node::{Bitmask, Case, Enum, Node, NodeId, Primitive, Struct, StructMember, Types, Union};
use crate::Extensibility;

/// The definitions of a type and of all it is made of.
pub(super) fn print(types: &Types, root: NodeId) -> String {
    let mut printer = Printer { types, text: String::new(), states: vec![State::New; types.nodes.len()] };
    printer.define(root);
    printer.text
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    /// Its parts are being defined.
    Open,
    /// A part needed its name before it was defined.
    Declared,
    Done,
}

struct Printer<'a> {
    types: &'a Types,
    text: String,
    states: Vec<State>,
}

impl Printer<'_> {
    /// Defines a type after its parts. As deep as types nest, which is limited when they are built.
    fn define(&mut self, id: NodeId) {
        match self.states[id] {
            State::New => self.states[id] = State::Open,
            State::Open => return self.declare(id),
            State::Declared | State::Done => return,
        }
        for part in self.parts(id) {
            self.define(part);
        }
        self.states[id] = State::Done;
        let types = self.types;
        match &types.nodes[id] {
            Node::Struct(structure) => self.within_modules(&structure.name, |p, indent| p.structure(structure, indent)),
            Node::Union(union) => self.within_modules(&union.name, |p, indent| p.union(union, indent)),
            Node::Enum(enumeration) => {
                self.within_modules(&enumeration.name, |p, indent| p.enumeration(enumeration, indent))
            }
            Node::Bitmask(bitmask) => self.within_modules(&bitmask.name, |p, indent| p.bitmask(bitmask, indent)),
            Node::Alias { name, target } => self.within_modules(name, |p, indent| {
                let declarator = declarator(types, *target, simple_name(name));
                p.line(indent, &format!("typedef {declarator};"));
            }),
            _ => {}
        }
    }

    fn parts(&self, id: NodeId) -> Vec<NodeId> {
        match &self.types.nodes[id] {
            Node::Sequence { element, .. } | Node::Array { element, .. } => vec![*element],
            Node::Map { key, element, .. } => vec![*key, *element],
            Node::Struct(structure) => {
                structure.base.into_iter().chain(structure.members.iter().map(|member| member.node)).collect()
            }
            Node::Union(union) => {
                core::iter::once(union.discriminator).chain(union.cases.iter().map(|case| case.node)).collect()
            }
            Node::Alias { target, .. } => vec![*target],
            _ => Vec::new(),
        }
    }

    /// Says that a type exists whose definition comes later.
    fn declare(&mut self, id: NodeId) {
        let (keyword, name) = match &self.types.nodes[id] {
            Node::Struct(structure) => ("struct", &structure.name),
            Node::Union(union) => ("union", &union.name),
            _ => return,
        };
        self.states[id] = State::Declared;
        self.within_modules(name, |p, indent| p.line(indent, &format!("{keyword} {};", simple_name(name))));
    }

    fn within_modules(&mut self, name: &str, print: impl FnOnce(&mut Self, usize)) {
        let modules: Vec<&str> = name.split("::").collect();
        let modules = &modules[..modules.len() - 1];
        for (indent, module) in modules.iter().enumerate() {
            self.line(indent, &format!("module {module} {{"));
        }
        print(self, modules.len());
        for indent in (0..modules.len()).rev() {
            self.line(indent, "};");
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        for _ in 0..indent {
            self.text.push_str("  ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn structure(&mut self, structure: &Struct, indent: usize) {
        let base = structure.base.map(|base| format!(" : {}", self.types.name(base))).unwrap_or_default();
        let name = simple_name(&structure.name);
        let annotations = type_annotations(structure.extensibility, structure.nested);
        self.line(indent, &format!("{annotations}struct {name}{base} {{"));
        let mut next = structure.members[..structure.inherited].last().map_or(0, |member| member.member.id + 1);
        for member in &structure.members[structure.inherited..] {
            let annotations = member_annotations(member, next);
            next = member.member.id + 1;
            let declarator = declarator(self.types, member.node, &member.name);
            self.line(indent + 1, &format!("{annotations}{declarator};"));
        }
        self.line(indent, "};");
    }

    fn union(&mut self, union: &Union, indent: usize) {
        let annotations = type_annotations(union.extensibility, union.nested);
        let key = if union.discriminator_is_key { "@key " } else { "" };
        let discriminator = type_name(self.types, union.discriminator);
        let name = simple_name(&union.name);
        self.line(indent, &format!("{annotations}union {name} switch ({key}{discriminator}) {{"));
        let mut next = 1;
        for Case { name, id, labels, default, external, node } in &union.cases {
            for label in labels {
                let label = self.label(union.discriminator, *label);
                self.line(indent + 1, &format!("case {label}:"));
            }
            if *default {
                self.line(indent + 1, "default:");
            }
            let id_annotation = if *id == next { String::new() } else { format!("@id({id}) ") };
            next = id + 1;
            let external = if *external { "@external " } else { "" };
            let declarator = declarator(self.types, *node, name);
            self.line(indent + 2, &format!("{id_annotation}{external}{declarator};"));
        }
        self.line(indent, "};");
    }

    /// A label as the type of the discriminator has it.
    fn label(&self, discriminator: NodeId, label: i32) -> String {
        match self.types.resolved(discriminator) {
            Node::Primitive(Primitive::Bool) => if label == 0 { "FALSE" } else { "TRUE" }.to_string(),
            Node::Primitive(Primitive::Char8) => match u8::try_from(label) {
                Ok(byte) if byte.is_ascii_alphanumeric() => format!("'{}'", char::from(byte)),
                _ => format!("'\\x{:02x}'", label & 0xff),
            },
            Node::Enum(enumeration) => match enumeration.literals.iter().find(|(_, value)| *value == label) {
                Some((name, _)) => name.to_string(),
                None => label.to_string(),
            },
            _ => label.to_string(),
        }
    }

    fn enumeration(&mut self, enumeration: &Enum, indent: usize) {
        let Enum { name, bit_bound, literals, default } = enumeration;
        let bound = if *bit_bound == 32 { String::new() } else { format!("@bit_bound({bit_bound}) ") };
        self.line(indent, &format!("{bound}enum {} {{", simple_name(name)));
        let mut next = Some(0);
        for (index, (name, value)) in literals.iter().enumerate() {
            let default = if index == *default && index != 0 { "@default_literal " } else { "" };
            let number = if Some(*value) == next { String::new() } else { format!("@value({value}) ") };
            next = value.checked_add(1);
            let comma = if index + 1 == literals.len() { "" } else { "," };
            self.line(indent + 1, &format!("{default}{number}{name}{comma}"));
        }
        self.line(indent, "};");
    }

    fn bitmask(&mut self, bitmask: &Bitmask, indent: usize) {
        let Bitmask { name, bit_bound, flags } = bitmask;
        let bound = if *bit_bound == 32 { String::new() } else { format!("@bit_bound({bit_bound}) ") };
        self.line(indent, &format!("{bound}bitmask {} {{", simple_name(name)));
        let mut next = 0;
        for (index, (name, position)) in flags.iter().enumerate() {
            let annotation = if *position == next { String::new() } else { format!("@position({position}) ") };
            next = position + 1;
            let comma = if index + 1 == flags.len() { "" } else { "," };
            self.line(indent + 1, &format!("{annotation}{name}{comma}"));
        }
        self.line(indent, "};");
    }
}

/// The last part of a qualified name.
fn simple_name(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

fn type_annotations(extensibility: Extensibility, nested: bool) -> String {
    let extensibility = match extensibility {
        Extensibility::Final => "@final ",
        Extensibility::Appendable => "@appendable ",
        Extensibility::Mutable => "@mutable ",
    };
    format!("{extensibility}{}", if nested { "@nested " } else { "" })
}

/// `next` is the id that the member has if none is said.
fn member_annotations(member: &StructMember, next: u32) -> String {
    let mut text = String::new();
    if member.member.id != next {
        // Writing to a string does not fail.
        let _ = write!(text, "@id({}) ", member.member.id);
    }
    for (holds, annotation) in [
        (member.member.key, "@key "),
        (member.optional, "@optional "),
        (member.external, "@external "),
        (member.member.must_understand, "@must_understand "),
    ] {
        if holds {
            text.push_str(annotation);
        }
    }
    text
}

/// Type and name of a member, dimensions of an array behind the name.
fn declarator(types: &Types, id: NodeId, name: &str) -> String {
    match &types.nodes[id] {
        Node::Array { element, dimensions, .. } => {
            let mut text = declarator(types, *element, name);
            for dimension in dimensions {
                let _ = write!(text, "[{dimension}]");
            }
            text
        }
        _ => format!("{} {name}", type_name(types, id)),
    }
}

fn bounded(keyword: &str, bound: Option<usize>) -> String {
    match bound {
        Some(bound) => format!("{keyword}<{bound}>"),
        None => keyword.to_string(),
    }
}

fn type_name(types: &Types, id: NodeId) -> String {
    match &types.nodes[id] {
        Node::Primitive(primitive) => primitive_name(*primitive).to_string(),
        Node::String { bound } => bounded("string", *bound),
        Node::WString { bound } => bounded("wstring", *bound),
        Node::Sequence { element, bound } => {
            let bound = bound.map(|bound| format!(", {bound}")).unwrap_or_default();
            format!("sequence<{}{bound}>", type_name(types, *element))
        }
        Node::Map { key, element, bound } => {
            let bound = bound.map(|bound| format!(", {bound}")).unwrap_or_default();
            format!("map<{}, {}{bound}>", type_name(types, *key), type_name(types, *element))
        }
        // IDL has no name for an array within a collection; this says at least what it is.
        Node::Array { .. } => declarator(types, id, "").replacen(" [", "[", 1),
        _ => types.name(id).to_string(),
    }
}

fn primitive_name(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Bool => "boolean",
        Primitive::Byte => "octet",
        Primitive::U8 => "uint8",
        Primitive::I8 => "int8",
        Primitive::I16 => "short",
        Primitive::U16 => "unsigned short",
        Primitive::I32 => "long",
        Primitive::U32 => "unsigned long",
        Primitive::I64 => "long long",
        Primitive::U64 => "unsigned long long",
        Primitive::F32 => "float",
        Primitive::F64 => "double",
        Primitive::Char8 => "char",
        Primitive::Char16 => "wchar",
    }
}
