//! Printing of types as IDL 4.2 text, with the annotations of XTypes 1.3 §7.3.1.2. An IDL compiler
//! produces the same type from it.
//!
//! Invariants:
//! - A type follows the types that it consists of. The definitions of one module are grouped where
//!   that order permits it.
//! - A structure or union may be defined after a type that refers to it by a sequence, a map or an
//!   external member. It is then forward declared.
//! - Names that are keywords of IDL are escaped (IDL 4.2 §7.2.3.2); union labels are scoped by
//!   their enumeration.
//! - IDL can express an array within a collection only by a typedef, which is a type of its own.
//!   The bytes are the same, the type identifier is not.
//!
//! Not printed: `@verbatim`, user-defined annotations, limits that are not numbers.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

use super::node::{Bitmask, Case, Enum, Node, NodeId, Primitive, Struct, StructMember, TryConstruct, Types, Union};
use crate::Extensibility;
use crate::type_object::annotation::{BuiltinMember, ParameterValue};

/// Returns the definitions of a type and its parts.
pub(super) fn print(types: &Types, root: NodeId) -> String {
    let count = types.nodes.len();
    let mut printer = Printer {
        types,
        text: String::new(),
        modules: Vec::new(),
        states: vec![State::New; count],
        typedefs: vec![None; count],
        inner: types.nodes.iter().enumerate().flat_map(|(id, node)| inner_names(types.name(id), node)).collect(),
    };
    printer.define(root);
    for id in 0..count {
        if printer.states[id] == State::Deferred {
            printer.define(id);
        }
    }
    printer.enter(&[]);
    printer.text
}

/// Returns the names that a type adds to its modules.
fn inner_names<'a>(name: &'a str, node: &'a Node) -> impl Iterator<Item = String> + 'a {
    let literals = match node {
        Node::Enum(enumeration) if name.contains("::") => enumeration.literals.as_slice(),
        _ => &[],
    };
    let literals = literals.iter().map(|(literal, _)| &**literal);
    name.split("::").skip(1).chain(literals).map(str::to_ascii_lowercase)
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    /// The parts of the type are being defined.
    Open,
    /// A part needed the name of the type before its definition.
    Declared,
    /// Declared; the definition follows those of its parts.
    Deferred,
    Done,
}

/// Part of a type.
enum Part {
    /// The definition must precede.
    Whole(NodeId),
    /// A declaration suffices.
    Name(NodeId),
}

struct Printer<'a> {
    types: &'a Types,
    text: String,
    /// Modules that are open.
    modules: Vec<&'a str>,
    states: Vec<State>,
    /// Names of arrays that are elements of collections.
    typedefs: Vec<Option<String>>,
    /// Names declared within modules, in lower case.
    inner: BTreeSet<String>,
}

impl<'a> Printer<'a> {
    /// Defines a type after its parts. The recursion depth is the nesting depth, which is limited
    /// when types are built.
    fn define(&mut self, id: NodeId) {
        match self.states[id] {
            State::New => self.states[id] = State::Open,
            State::Deferred => self.states[id] = State::Declared,
            State::Open => return self.declare(id, State::Declared),
            State::Declared | State::Done => return,
        }
        for part in self.parts(id) {
            match part {
                Part::Whole(part) => {
                    self.define(self.aggregate(part));
                    self.define(part);
                }
                Part::Name(part) => self.define_or_declare(part),
            }
        }
        self.states[id] = State::Done;
        let types = self.types;
        match &types.nodes[id] {
            Node::Sequence { element, .. } => self.name_array(*element),
            Node::Map { key, element, .. } => {
                self.name_array(*key);
                self.name_array(*element);
            }
            Node::Struct(structure) => {
                self.within(&structure.name);
                self.structure(structure);
            }
            Node::Union(union) => {
                self.within(&union.name);
                self.union(union);
            }
            Node::Enum(enumeration) => {
                self.within(&enumeration.name);
                self.enumeration(enumeration);
            }
            Node::Bitmask(bitmask) => {
                self.within(&bitmask.name);
                self.bitmask(bitmask);
            }
            Node::Alias { name, target } => {
                self.within(name);
                let declarator = self.declarator(*target, simple_name(name));
                self.line(0, &format!("typedef {declarator};"));
            }
            _ => {}
        }
    }

    /// Defines a type of which only the name is needed. If the type needs a type whose definition
    /// has begun, declares it instead.
    fn define_or_declare(&mut self, id: NodeId) {
        let is_aggregate = matches!(self.types.nodes[id], Node::Struct(_) | Node::Union(_));
        if is_aggregate && self.states[id] == State::New && self.needs_open(id) {
            self.declare(id, State::Deferred);
        } else if self.states[id] != State::Deferred {
            self.define(id);
        }
    }

    /// Reports whether an undefined type contains a type whose definition has begun or is deferred.
    fn needs_open(&self, id: NodeId) -> bool {
        let mut seen = BTreeSet::from([id]);
        let mut rest = vec![id];
        while let Some(id) = rest.pop() {
            for part in self.parts(id) {
                let Part::Whole(part) = part else { continue };
                let part = self.aggregate(part);
                match self.states[part] {
                    State::Open | State::Declared | State::Deferred => return true,
                    State::New if seen.insert(part) => rest.push(part),
                    State::New | State::Done => {}
                }
            }
        }
        false
    }

    fn parts(&self, id: NodeId) -> Vec<Part> {
        let member = |node: NodeId, external: bool| if external { Part::Name(node) } else { Part::Whole(node) };
        match &self.types.nodes[id] {
            Node::Sequence { element, .. } | Node::Array { element, .. } => vec![Part::Name(*element)],
            Node::Map { key, element, .. } => vec![Part::Name(*key), Part::Name(*element)],
            Node::Struct(structure) => {
                let members = structure.members.iter().map(|own| member(own.node, own.external));
                structure.base.into_iter().map(Part::Whole).chain(members).collect()
            }
            Node::Union(union) => {
                let cases = union.cases.iter().map(|case| member(case.node, case.external));
                core::iter::once(Part::Whole(union.discriminator)).chain(cases).collect()
            }
            Node::Alias { target, .. } => vec![Part::Name(*target)],
            _ => Vec::new(),
        }
    }

    /// Resolves aliases and array elements of a type.
    fn aggregate(&self, mut id: NodeId) -> NodeId {
        while let Node::Alias { target: inner, .. } | Node::Array { element: inner, .. } = &self.types.nodes[id] {
            id = *inner;
        }
        id
    }

    /// Declares a type whose definition follows later.
    fn declare(&mut self, id: NodeId, state: State) {
        let types = self.types;
        let (keyword, name) = match &types.nodes[id] {
            Node::Struct(structure) => ("struct", &structure.name),
            Node::Union(union) => ("union", &union.name),
            _ => return,
        };
        self.states[id] = state;
        self.within(name);
        self.line(0, &format!("{keyword} {};", escaped(simple_name(name))));
    }

    /// Adds a typedef for an array that is an element of a collection.
    fn name_array(&mut self, id: NodeId) {
        if !matches!(self.types.nodes[id], Node::Array { .. }) || self.typedefs[id].is_some() {
            return;
        }
        let is_letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let description: String = self.declarator(id, "of").chars().map(is_letter).collect();
        let mut name = format!("array_{}", description.trim_end_matches('_'));
        let is_taken = |name: &str| {
            let named = (0..self.types.nodes.len()).map(|other| self.types.name(other));
            let given = self.typedefs.iter().flatten().filter_map(|given| given.split("::").next());
            named.chain(given).any(|other| other == name)
        };
        while is_taken(&name) {
            name.push('_');
        }
        self.enter(&[]);
        let declarator = self.declarator(id, &name);
        if !declarator.contains("::") {
            self.line(0, &format!("typedef {declarator};"));
            self.typedefs[id] = Some(name);
            return;
        }
        // INTEROP(CycloneDDS 0.10.2): idlc refuses a module that is reopened after a typedef of one
        // of its types, unless the typedef is in another module.
        self.line(0, &format!("module {name} {{"));
        let declarator = self.declarator(id, "element");
        self.line(1, &format!("typedef {declarator};"));
        self.line(0, "};");
        self.typedefs[id] = Some(format!("{name}::element"));
    }

    /// Opens the module of a qualified name.
    fn within(&mut self, name: &'a str) {
        let mut modules: Vec<&str> = name.split("::").collect();
        modules.pop();
        self.enter(&modules);
    }

    /// Closes the open modules that are not in the list and opens the missing ones.
    fn enter(&mut self, modules: &[&'a str]) {
        let common = self.modules.iter().zip(modules).take_while(|(open, wanted)| open == wanted).count();
        while self.modules.len() > common {
            self.modules.pop();
            self.line(0, "};");
        }
        for module in &modules[common..] {
            self.line(0, &format!("module {} {{", escaped(module)));
            self.modules.push(module);
        }
    }

    /// Appends a line, indented within the open modules.
    fn line(&mut self, indent: usize, text: &str) {
        for _ in 0..self.modules.len() + indent {
            self.text.push_str("  ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn structure(&mut self, structure: &Struct) {
        let base = structure.base.map(|base| format!(" : {}", self.scoped(self.types.name(base)))).unwrap_or_default();
        let name = escaped(simple_name(&structure.name));
        let annotations = type_annotations(structure.extensibility, structure.nested);
        let autoid = if structure.autoid_hash { "@autoid(HASH) " } else { "" };
        self.line(0, &format!("{annotations}{autoid}struct {name}{base} {{"));
        let mut next = structure.members[..structure.inherited].last().map_or(0, |member| member.member.id + 1);
        for member in &structure.members[structure.inherited..] {
            let implied = if structure.autoid_hash { crate::describe::hash_id(&member.name) } else { next };
            let annotations = member_annotations(member, implied);
            next = member.member.id + 1;
            let declarator = self.declarator(member.node, &member.name);
            self.line(1, &format!("{annotations}{declarator};"));
        }
        self.line(0, "};");
    }

    /// INTEROP(CycloneDDS 0.10.2): idlc numbers the members of a union from 0, the derive from 1.
    /// Each member is therefore printed with its id.
    fn union(&mut self, union: &Union) {
        let annotations = type_annotations(union.extensibility, union.nested);
        let autoid = if union.autoid_hash { "@autoid(HASH) " } else { "" };
        let key = if union.discriminator_is_key { "@key " } else { "" };
        let discriminator = self.type_name(union.discriminator);
        let name = escaped(simple_name(&union.name));
        self.line(0, &format!("{annotations}{autoid}union {name} switch ({key}{discriminator}) {{"));
        for Case { name, id, labels, builtin, default, external, try_construct, node } in &union.cases {
            for label in labels {
                let label = self.label(union.discriminator, *label);
                self.line(1, &format!("case {label}:"));
            }
            if *default {
                self.line(1, "default:");
            }
            let external = if *external { "@external " } else { "" };
            let try_construct = try_construct_annotation(*try_construct);
            let declarator = self.declarator(*node, name);
            let id = hash_id_annotation(builtin.as_deref(), name, *id).unwrap_or_else(|| format!("@id({id}) "));
            let values = value_annotations(builtin.as_deref());
            self.line(2, &format!("{id}{external}{try_construct}{values}{declarator};"));
        }
        self.line(0, "};");
    }

    /// Returns a label as a literal of the discriminator's type.
    fn label(&self, discriminator: NodeId, label: i32) -> String {
        let character = |prefix: &str| match u8::try_from(label) {
            Ok(byte) if byte.is_ascii_alphanumeric() => format!("{prefix}'{}'", char::from(byte)),
            _ if prefix.is_empty() => format!("'\\x{:02x}'", label & 0xff),
            _ => format!("{prefix}'\\u{:04x}'", label & 0xffff),
        };
        match self.types.resolved(discriminator) {
            Node::Primitive(Primitive::Bool) => if label == 0 { "FALSE" } else { "TRUE" }.to_string(),
            Node::Primitive(Primitive::Char8) => character(""),
            Node::Primitive(Primitive::Char16) => character("L"),
            Node::Enum(enumeration) => match enumeration.literals.iter().find(|(_, value)| *value == label) {
                // A literal belongs to the scope that contains its enumeration.
                Some((name, _)) => match enumeration.name.rsplit_once("::") {
                    Some((scope, _)) => format!("{}::{}", self.scoped(scope), escaped(name)),
                    None => self.scoped(name),
                },
                None => label.to_string(),
            },
            _ => label.to_string(),
        }
    }

    fn enumeration(&mut self, enumeration: &Enum) {
        let Enum { name, extensibility, bit_bound, literals, default } = enumeration;
        let extensibility = extensibility.map(extensibility_annotation).unwrap_or_default();
        let bound = if *bit_bound == 32 { String::new() } else { format!("@bit_bound({bit_bound}) ") };
        self.line(0, &format!("{extensibility}{bound}enum {} {{", escaped(simple_name(name))));
        let mut next = Some(0);
        for (index, (name, value)) in literals.iter().enumerate() {
            let default = if *default == Some(index) { "@default_literal " } else { "" };
            let number = if Some(*value) == next { String::new() } else { format!("@value({value}) ") };
            next = value.checked_add(1);
            let comma = if index + 1 == literals.len() { "" } else { "," };
            self.line(1, &format!("{default}{number}{}{comma}", escaped(name)));
        }
        self.line(0, "};");
    }

    fn bitmask(&mut self, bitmask: &Bitmask) {
        let Bitmask { name, bit_bound, flags } = bitmask;
        let bound = if *bit_bound == 32 { String::new() } else { format!("@bit_bound({bit_bound}) ") };
        self.line(0, &format!("{bound}bitmask {} {{", escaped(simple_name(name))));
        let mut next = 0;
        for (index, (name, position)) in flags.iter().enumerate() {
            let annotation = if *position == next { String::new() } else { format!("@position({position}) ") };
            next = position + 1;
            let comma = if index + 1 == flags.len() { "" } else { "," };
            self.line(1, &format!("{annotation}{}{comma}", escaped(name)));
        }
        self.line(0, "};");
    }

    /// Returns the type and name of a member. Array dimensions follow the name.
    fn declarator(&self, id: NodeId, name: &str) -> String {
        let mut dimensions = String::new();
        let mut element = id;
        // The outer dimensions of an array of arrays come first.
        while let Node::Array { element: inner, dimensions: own, .. } = &self.types.nodes[element] {
            for dimension in own {
                // Writing to a string does not fail.
                let _ = write!(dimensions, "[{dimension}]");
            }
            element = *inner;
        }
        format!("{} {}{dimensions}", self.type_name(element), escaped(name))
    }

    /// Returns a qualified name with each part escaped. The name starts at the global scope if its
    /// first part also exists within a module.
    fn scoped(&self, name: &str) -> String {
        let parts: Vec<Cow<'_, str>> = name.split("::").map(escaped).collect();
        let first = name.split("::").next().unwrap_or(name).to_ascii_lowercase();
        format!("{}{}", if self.inner.contains(&first) { "::" } else { "" }, parts.join("::"))
    }

    fn type_name(&self, id: NodeId) -> String {
        let element = |element: NodeId| match &self.typedefs[element] {
            Some(name) => name.clone(),
            None => self.type_name(element),
        };
        // `>>` is an operator of IDL.
        let closed = |text: String| if text.ends_with('>') { format!("{text} >") } else { format!("{text}>") };
        let bounded = |text: String, bound: Option<usize>| match bound {
            Some(bound) => format!("{text}, {bound}>"),
            None => closed(text),
        };
        match &self.types.nodes[id] {
            Node::Primitive(primitive) => primitive_name(*primitive).to_string(),
            Node::String { bound } => text_type("string", *bound),
            Node::WString { bound } => text_type("wstring", *bound),
            Node::Sequence { element: of, bound } => bounded(format!("sequence<{}", element(*of)), *bound),
            Node::Map { key, element: to, bound } => {
                bounded(format!("map<{}, {}", element(*key), element(*to)), *bound)
            }
            _ => self.scoped(self.types.name(id)),
        }
    }
}

/// Returns the last part of a qualified name.
pub(super) fn simple_name(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Keywords of IDL 4.2 §7.2.4 in lower case. Identifiers collide with them regardless of case.
const KEYWORDS: [&str; 83] = [
    "abstract",
    "alias",
    "any",
    "attribute",
    "bitfield",
    "bitmask",
    "bitset",
    "boolean",
    "case",
    "char",
    "component",
    "connector",
    "const",
    "consumes",
    "context",
    "custom",
    "default",
    "double",
    "emits",
    "enum",
    "eventtype",
    "exception",
    "factory",
    "false",
    "finder",
    "fixed",
    "float",
    "getraises",
    "home",
    "import",
    "in",
    "inout",
    "int16",
    "int32",
    "int64",
    "int8",
    "interface",
    "local",
    "long",
    "manages",
    "map",
    "mirrorport",
    "module",
    "multiple",
    "native",
    "object",
    "octet",
    "oneway",
    "out",
    "port",
    "porttype",
    "primarykey",
    "private",
    "provides",
    "public",
    "publishes",
    "raises",
    "readonly",
    "sequence",
    "setraises",
    "short",
    "string",
    "struct",
    "supports",
    "switch",
    "true",
    "truncatable",
    "typedef",
    "typeid",
    "typename",
    "typeprefix",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "union",
    "unsigned",
    "uses",
    "valuebase",
    "valuetype",
    "void",
    "wchar",
    "wstring",
];

/// Returns an identifier, prefixed by an underscore if IDL would interpret it otherwise.
fn escaped(name: &str) -> Cow<'_, str> {
    let is_taken = name.starts_with('_') || KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(name));
    if is_taken { Cow::Owned(format!("_{name}")) } else { Cow::Borrowed(name) }
}

fn extensibility_annotation(extensibility: Extensibility) -> &'static str {
    match extensibility {
        Extensibility::Final => "@final ",
        Extensibility::Appendable => "@appendable ",
        Extensibility::Mutable => "@mutable ",
    }
}

fn type_annotations(extensibility: Extensibility, nested: bool) -> String {
    format!("{}{}", extensibility_annotation(extensibility), if nested { "@nested " } else { "" })
}

fn try_construct_annotation(try_construct: TryConstruct) -> &'static str {
    match try_construct {
        TryConstruct::Discard => "",
        TryConstruct::UseDefault => "@try_construct(USE_DEFAULT) ",
        TryConstruct::Trim => "@try_construct(TRIM) ",
    }
}

/// Returns the annotations of a member. `implied` is the id that the member has without `@id`.
fn member_annotations(member: &StructMember, implied: u32) -> String {
    let id = member.member.id;
    let mut text = match hash_id_annotation(member.builtin.as_deref(), &member.name, id) {
        Some(text) => text,
        None if id != implied => format!("@id({id}) "),
        None => String::new(),
    };
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
    text.push_str(try_construct_annotation(member.try_construct));
    text.push_str(&value_annotations(member.builtin.as_deref()));
    text
}

/// Returns `@hashid` if it yields the id of the member.
fn hash_id_annotation(builtin: Option<&BuiltinMember>, name: &str, id: u32) -> Option<String> {
    let hashed = builtin?.hash_id.as_deref()?;
    let is_own = hashed.is_empty();
    let gives = crate::describe::hash_id(if is_own { name } else { hashed }) == id;
    gives.then(|| if is_own { "@hashid ".to_string() } else { format!("@hashid({}) ", quoted(hashed)) })
}

/// Returns `@unit`, `@min` and `@max`, as far as IDL can express the parameter.
fn value_annotations(builtin: Option<&BuiltinMember>) -> String {
    let Some(builtin) = builtin else { return String::new() };
    let unit =
        builtin.unit.as_ref().filter(|unit| !unit.contains('\0')).map(|unit| format!("@unit({}) ", quoted(unit)));
    let limit = |name: &str, value: &Option<ParameterValue>| {
        let number = match value.as_ref()? {
            ParameterValue::Byte(number) | ParameterValue::Uint8(number) => number.to_string(),
            ParameterValue::Int8(number) => number.to_string(),
            ParameterValue::Int16(number) => number.to_string(),
            ParameterValue::Uint16(number) => number.to_string(),
            ParameterValue::Int32(number) => number.to_string(),
            ParameterValue::Uint32(number) => number.to_string(),
            ParameterValue::Int64(number) => number.to_string(),
            ParameterValue::Uint64(number) => number.to_string(),
            ParameterValue::Float32(number) if number.is_finite() => format!("{number:?}"),
            ParameterValue::Float64(number) if number.is_finite() => format!("{number:?}"),
            _ => return None,
        };
        Some(format!("@{name}({number}) "))
    };
    [unit, limit("min", &builtin.min), limit("max", &builtin.max)].into_iter().flatten().collect()
}

/// Returns a string literal.
fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            // Control characters are below 256.
            c if c.is_control() => literal.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

fn text_type(keyword: &str, bound: Option<usize>) -> String {
    match bound {
        Some(bound) => format!("{keyword}<{bound}>"),
        None => keyword.to_string(),
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
