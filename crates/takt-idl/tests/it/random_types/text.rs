//! Random types as text: the same thing said in the ways that IDL has for it.

use takt_testkit::Random;
use takt_xtypes::Extensibility;
use takt_xtypes::definition::{
    Definition, DefinitionId, Definitions, EnumDefinition, Limit, MemberDefinition, StructDefinition, TryConstruct,
    TypeSpec, UnionDefinition, ValueAnnotations,
};

use super::generator::RandomTypes;

/// The types as one file, in their order.
pub fn print(types: &RandomTypes, seed: u64) -> String {
    let mut printer = Printer { definitions: &types.definitions, random: Random(seed ^ 0x7e87), text: String::new() };
    for id in &types.order {
        let definition = types.definitions.get(*id).expect("it is defined");
        let modules: Vec<&str> = definition.name().split("::").collect();
        let modules = &modules[..modules.len() - 1];
        modules.iter().for_each(|module| printer.text += &format!("module {module} {{\n"));
        printer.definition(definition);
        printer.text += &"};\n".repeat(modules.len());
    }
    printer.text
}

/// The last part of a qualified name.
pub fn simple_name(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

struct Printer<'a> {
    definitions: &'a Definitions,
    random: Random,
    text: String,
}

impl Printer<'_> {
    fn definition(&mut self, definition: &Definition) {
        match definition {
            Definition::Struct(structure) => self.structure(structure),
            Definition::Union(union) => self.union(union),
            Definition::Enum(enumeration) => self.enumeration(enumeration),
            Definition::Bitmask(bitmask) => {
                let flags: Vec<String> =
                    bitmask.flags.iter().map(|(name, position)| format!("  @position({position}) {name}")).collect();
                let (bound, name) = (bitmask.bit_bound, simple_name(&bitmask.name));
                self.text += &format!("@bit_bound({bound}) bitmask {name} {{\n{}\n}};\n", flags.join(",\n"));
            }
            Definition::Alias(alias) => {
                let declarator = self.declarator(&alias.of, simple_name(&alias.name));
                self.text += &format!("typedef {declarator};\n");
            }
        }
    }

    fn extensibility(&mut self, extensibility: Extensibility) -> String {
        let word = match extensibility {
            Extensibility::Final => "final",
            Extensibility::Appendable => "appendable",
            Extensibility::Mutable => "mutable",
        };
        match self.random.below(3) {
            0 => format!("@extensibility({}) ", word.to_uppercase()),
            _ => format!("@{word} "),
        }
    }

    fn structure(&mut self, structure: &StructDefinition) {
        let extensibility = self.extensibility(structure.extensibility);
        let nested = if structure.nested { "@nested " } else { "" };
        let autoid = if structure.autoid_hash { "@autoid(HASH) " } else { "" };
        let base = structure.base.map_or(String::new(), |base| format!(" : {}", self.name(base)));
        self.text += &format!("{nested}{extensibility}{autoid}struct {}{base} {{\n", simple_name(&structure.name));
        let mut next = structure.base.map(|base| self.ids_behind(base)).unwrap_or(0);
        for member in &structure.members {
            let is_implied = if structure.autoid_hash {
                member.id == takt_xtypes::describe::hash_id(&member.name)
            } else {
                member.id == next
            };
            next = member.id + 1;
            self.member(member, is_implied);
        }
        self.text += "};\n";
    }

    fn member(&mut self, member: &MemberDefinition, is_implied: bool) {
        let mut said = Vec::new();
        match &member.hash_id {
            Some(name) if name.is_empty() => said.push("@hashid".to_owned()),
            Some(name) => said.push(format!("@hashid(\"{name}\")")),
            None if is_implied && !self.random.one_in(6) => {}
            None => said.push(format!("@id({})", member.id)),
        }
        for (holds, word) in [
            (member.key, "@key"),
            (member.optional, "@optional"),
            (member.external, "@external"),
            (member.must_understand, "@must_understand"),
        ] {
            if holds {
                said.push(format!("{word}{}", ["", "(TRUE)"][self.random.below(2)]));
            }
        }
        said.extend(try_construct(member.try_construct));
        said.extend(values(&member.values));
        let at = self.random.below(said.len() + 1);
        said.rotate_left(at);
        said.push(self.declarator(&member.of, &member.name));
        self.text += &format!("  {};\n", said.join(" "));
    }

    /// The id that follows the last member of a struct, or of the struct that it inherits from.
    fn ids_behind(&self, id: DefinitionId) -> u32 {
        match self.definitions.get(id) {
            Some(Definition::Struct(structure)) => match structure.members.last() {
                Some(last) => last.id + 1,
                None => structure.base.map_or(0, |base| self.ids_behind(base)),
            },
            _ => 0,
        }
    }

    fn union(&mut self, union: &UnionDefinition) {
        let extensibility = self.extensibility(union.extensibility);
        let nested = if union.nested { "@nested " } else { "" };
        let discriminator = self.type_name(&union.discriminator);
        let name = simple_name(&union.name);
        let autoid = if union.autoid_hash { "@autoid(HASH) " } else { "" };
        self.text += &format!("{extensibility}{nested}{autoid}union {name} switch ({discriminator}) {{\n");
        for case in &union.cases {
            for label in &case.labels {
                self.text += &format!("  case {}:\n", self.label(&union.discriminator, *label));
            }
            if case.default {
                self.text += "  default:\n";
            }
            let external = if case.external { "@external " } else { "" };
            let other: String = try_construct(case.try_construct)
                .into_iter()
                .chain(values(&case.values))
                .map(|text| text + " ")
                .collect();
            let declarator = self.declarator(&case.of, &case.name);
            // Compilers number the cases without an id in different ways.
            self.text += &format!("    @id({}) {external}{other}{declarator};\n", case.id);
        }
        self.text += "};\n";
    }

    fn label(&self, discriminator: &TypeSpec, label: i32) -> String {
        match self.definitions.resolve(discriminator) {
            Some(TypeSpec::Boolean) => ["FALSE", "TRUE"][label as usize].to_owned(),
            Some(TypeSpec::Char) => format!("'{}'", label as u8 as char),
            Some(TypeSpec::WChar) => format!("L'{}'", label as u8 as char),
            Some(TypeSpec::Named(id)) => match self.definitions.get(*id) {
                Some(Definition::Enum(of)) => {
                    let (literal, _) = of.literals.iter().find(|(_, value)| *value == label).expect("a literal");
                    of.name.rsplit_once("::").map_or(literal.clone(), |(scope, _)| format!("{scope}::{literal}"))
                }
                _ => panic!("an enumeration"),
            },
            _ => label.to_string(),
        }
    }

    fn enumeration(&mut self, of: &EnumDefinition) {
        let extensibility = self.extensibility(of.extensibility);
        let bound = if of.bit_bound == 32 { String::new() } else { format!("@bit_bound({}) ", of.bit_bound) };
        self.text += &format!("{bound}{extensibility}enum {} {{\n", simple_name(&of.name));
        let mut next = 0;
        for (index, (literal, value)) in of.literals.iter().enumerate() {
            let value_said = if *value == next { String::new() } else { format!("@value({value}) ") };
            next = value + 1;
            let default = if of.default == Some(index) { "@default_literal " } else { "" };
            let comma = if index + 1 == of.literals.len() { "" } else { "," };
            self.text += &format!("  {default}{value_said}{literal}{comma}\n");
        }
        self.text += "};\n";
    }

    fn declarator(&mut self, of: &TypeSpec, name: &str) -> String {
        let TypeSpec::Array { element, dimensions } = of else { return format!("{} {name}", self.type_name(of)) };
        let dimensions: String = dimensions.iter().map(|dimension| format!("[{dimension}]")).collect();
        format!("{} {name}{dimensions}", self.type_name(element))
    }

    fn name(&self, id: DefinitionId) -> String {
        format!("::{}", self.definitions.get(id).expect("it is defined").name())
    }

    fn type_name(&mut self, of: &TypeSpec) -> String {
        let bounded = |bound: u32| if bound == 0 { String::new() } else { format!(", {bound}") };
        let text = |word: &str, bound: u32| if bound == 0 { word.to_owned() } else { format!("{word}<{bound}>") };
        let words: [&str; 2] = match of {
            TypeSpec::Boolean => ["boolean"; 2],
            TypeSpec::Octet => ["octet"; 2],
            TypeSpec::Int8 => ["int8"; 2],
            TypeSpec::Uint8 => ["uint8"; 2],
            TypeSpec::Int16 => ["short", "int16"],
            TypeSpec::Uint16 => ["unsigned short", "uint16"],
            TypeSpec::Int32 => ["long", "int32"],
            TypeSpec::Uint32 => ["unsigned long", "uint32"],
            TypeSpec::Int64 => ["long long", "int64"],
            TypeSpec::Uint64 => ["unsigned long long", "uint64"],
            TypeSpec::Float => ["float"; 2],
            TypeSpec::Double => ["double"; 2],
            TypeSpec::Char => ["char"; 2],
            TypeSpec::WChar => ["wchar"; 2],
            TypeSpec::String { bound } => return text("string", *bound),
            TypeSpec::WString { bound } => return text("wstring", *bound),
            TypeSpec::Sequence { element, bound, .. } => {
                return format!("sequence<{}{} >", self.type_name(element), bounded(*bound));
            }
            TypeSpec::Map { key, element, bound } => {
                let (key, element) = (self.type_name(key), self.type_name(element));
                return format!("map<{key}, {element}{} >", bounded(*bound));
            }
            TypeSpec::Array { .. } => panic!("an array is the type of a declarator"),
            TypeSpec::Named(id) => return self.name(*id),
        };
        words[self.random.below(2)].to_owned()
    }
}

fn try_construct(of: TryConstruct) -> Option<String> {
    match of {
        TryConstruct::Discard => None,
        TryConstruct::UseDefault => Some("@try_construct(USE_DEFAULT)".to_owned()),
        TryConstruct::Trim => Some("@try_construct(TRIM)".to_owned()),
    }
}

fn values(of: &ValueAnnotations) -> Vec<String> {
    let number = |limit: Limit| match limit {
        Limit::Integer(number) => number.to_string(),
        Limit::Float(number) => format!("{number:?}"),
    };
    let unit = of.unit.as_ref().map(|unit| format!("@unit(\"{unit}\")"));
    let limits = match (of.min, of.max) {
        (Some(min), Some(max)) => Some(format!("@range(min = {}, max = {})", number(min), number(max))),
        (Some(min), None) => Some(format!("@min({})", number(min))),
        (None, max) => max.map(|max| format!("@max({})", number(max))),
    };
    unit.into_iter().chain(limits).collect()
}
