//! Printing of random types as text, with random choices among equivalent forms of IDL.

use takt_testkit::Random;
use takt_xtypes::Extensibility;
use takt_xtypes::definition::{
    Definition, DefinitionId, Definitions, EnumDefinition, Limit, MemberDefinition, StructDefinition, TryConstruct,
    TypeSpec, UnionDefinition, ValueAnnotations,
};

use super::generator::RandomTypes;

/// Prints the types as one file, in their order.
pub fn print(types: &RandomTypes, seed: u64) -> String {
    let mut printer = Printer {
        definitions: &types.definitions,
        random: Random(seed ^ 0x7e87),
        text: String::new(),
        scope: String::new(),
        constants: Vec::new(),
        is_nested_by_default: false,
    };
    for (index, id) in types.order.iter().enumerate() {
        let definition = types.definitions.get(*id).expect("it is defined");
        let later = &types.order[index..];
        let is_forward = |part: &DefinitionId| later.contains(part) && (part != id || index % 2 == 0);
        let forward: Vec<DefinitionId> = definition.parts().into_iter().filter(is_forward).collect();
        forward.into_iter().for_each(|part| printer.declare(part));
        if printer.random.one_in(6) {
            printer.declare(*id);
        }
        printer.in_module(definition);
    }
    printer.text
}

/// Returns the last part of a qualified name.
pub fn simple_name(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

struct Printer<'a> {
    definitions: &'a Definitions,
    random: Random,
    text: String,
    /// Open module, followed by `::`.
    scope: String,
    /// Constants that the definition uses, to be printed before it.
    constants: Vec<String>,
    /// True if the open module has `@default_nested`.
    is_nested_by_default: bool,
}

impl Printer<'_> {
    /// Prints a forward declaration, if the kind of type has one.
    fn declare(&mut self, id: DefinitionId) {
        let definition = self.definitions.get(id).expect("it is defined");
        let word = match definition {
            Definition::Struct(_) => "struct",
            Definition::Union(_) => "union",
            _ => return,
        };
        let (modules, name) = definition.name().rsplit_once("::").unwrap_or(("", definition.name()));
        let modules: Vec<&str> = modules.split("::").filter(|module| !module.is_empty()).collect();
        modules.iter().for_each(|module| self.text += &format!("module {module} {{\n"));
        self.text += &format!("{word} {name};\n");
        self.text += &"};\n".repeat(modules.len());
    }

    /// Prints a definition in its module, which is opened for it only.
    fn in_module(&mut self, definition: &Definition) {
        let scope = definition.name().rsplit_once("::").map_or("", |(scope, _)| scope);
        let modules: Vec<&str> = scope.split("::").filter(|module| !module.is_empty()).collect();
        self.scope = if scope.is_empty() { String::new() } else { format!("{scope}::") };
        self.is_nested_by_default = !modules.is_empty() && self.random.one_in(5);
        for (depth, module) in modules.iter().enumerate() {
            let is_innermost = depth + 1 == modules.len();
            let annotation = if is_innermost && self.is_nested_by_default { "@default_nested " } else { "" };
            self.text += &format!("{annotation}module {module} {{\n");
        }
        let before = std::mem::take(&mut self.text);
        self.definition(definition);
        let text = std::mem::replace(&mut self.text, before);
        self.text += &self.constants.concat();
        self.constants.clear();
        self.text += &text;
        self.text += &"};\n".repeat(modules.len());
    }

    /// Returns a positive number in digits, as an expression, or as a constant that is printed
    /// before the definition.
    fn number(&mut self, number: u32) -> String {
        match self.random.below(10) {
            0 => format!("{number:#x}"),
            1 => format!("{} - {}", u64::from(number) + 3, 3),
            2 => format!("({number} * 4) / 2 >> 1"),
            3 | 4 => {
                let expression = if self.random.one_in(3) { format!("{number} | 0") } else { number.to_string() };
                let word = ["unsigned long", "long", "uint32"][self.random.below(3)];
                let name = format!("C{}", self.random.next());
                self.constants.push(format!("const {word} {name} = {expression};\n"));
                if self.random.one_in(2) { format!("::{}{name}", self.scope) } else { name }
            }
            _ => number.to_string(),
        }
    }

    /// INTEROP(CycloneDDS 0.10.2): idlc finds a constant in an annotation only by its qualified
    /// name.
    fn number_of_annotation(&mut self, number: u32) -> String {
        let text = self.number(number);
        if text.starts_with('C') { format!("::{}{text}", self.scope) } else { text }
    }

    /// Returns `@nested` or `@topic`, if the type needs or may have it.
    fn nested(&mut self, is_nested: bool) -> &'static str {
        match (is_nested, self.is_nested_by_default) {
            (true, false) => ["@nested ", "@nested(TRUE) "][self.random.below(2)],
            (true, true) => ["", "@nested "][self.random.below(2)],
            (false, true) => ["@nested(FALSE) ", "@topic "][self.random.below(2)],
            (false, false) => ["", "", "@nested(FALSE) ", "@topic "][self.random.below(4)],
        }
    }
    fn definition(&mut self, definition: &Definition) {
        match definition {
            Definition::Struct(structure) => self.structure(structure),
            Definition::Union(union) => self.union(union),
            Definition::Enum(enumeration) => self.enumeration(enumeration),
            Definition::Bitmask(bitmask) => {
                let flags: Vec<String> =
                    bitmask.flags.iter().map(|(name, position)| format!("  @position({position}) {name}")).collect();
                let name = simple_name(&bitmask.name);
                let is_implied = bitmask.bit_bound == 32 && self.random.one_in(2);
                let bound = if is_implied { String::new() } else { format!("@bit_bound({}) ", bitmask.bit_bound) };
                self.text += &format!("{bound}bitmask {name} {{\n{}\n}};\n", flags.join(",\n"));
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
        let nested = self.nested(structure.nested);
        let sequential = ["", "", "", "@autoid(SEQUENTIAL) "][self.random.below(4)];
        let autoid = if structure.autoid_hash { "@autoid(HASH) " } else { sequential };
        let base = structure.base.map_or(String::new(), |base| format!(" : {}", self.name(base)));
        self.text += &format!("{nested}{extensibility}{autoid}struct {}{base} {{\n", simple_name(&structure.name));
        let mut next = structure.base.map(|base| self.next_id(base)).unwrap_or(0);
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
        let mut texts = Vec::new();
        match &member.hash_id {
            Some(name) if name.is_empty() => texts.push("@hashid".to_owned()),
            Some(name) => texts.push(format!("@hashid(\"{name}\")")),
            None if is_implied && !self.random.one_in(6) => {}
            None => texts.push(format!("@id({})", self.number_of_annotation(member.id))),
        }
        for (holds, word) in [
            (member.key, "@key"),
            (member.optional, "@optional"),
            (member.external, "@external"),
            (member.must_understand, "@must_understand"),
        ] {
            if holds {
                texts.push(format!("{word}{}", ["", "(TRUE)"][self.random.below(2)]));
            }
        }
        texts.extend(try_construct(member.try_construct));
        texts.extend(values(&member.values));
        if !member.optional && self.random.one_in(6) {
            texts.extend(default_value(&member.of));
        }
        let at = self.random.below(texts.len() + 1);
        texts.rotate_left(at);
        texts.push(self.declarator(&member.of, &member.name));
        self.text += &format!("  {};\n", texts.join(" "));
    }

    /// Returns the id after the last member of a struct, or of its base.
    fn next_id(&self, id: DefinitionId) -> u32 {
        match self.definitions.get(id) {
            Some(Definition::Struct(structure)) => match structure.members.last() {
                Some(last) => last.id + 1,
                None => structure.base.map_or(0, |base| self.next_id(base)),
            },
            _ => 0,
        }
    }

    fn union(&mut self, union: &UnionDefinition) {
        let extensibility = self.extensibility(union.extensibility);
        let nested = self.nested(union.nested);
        let key = if union.key { "@key " } else { "" };
        let discriminator = self.type_name(&union.discriminator);
        let name = simple_name(&union.name);
        let autoid = if union.autoid_hash { "@autoid(HASH) " } else { "" };
        self.text += &format!("{extensibility}{nested}{autoid}union {name} switch ({key}{discriminator}) {{\n");
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
            // Compilers differ in the numbering of cases without an id.
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
            let value_text = if *value == next { String::new() } else { format!("@value({value}) ") };
            next = value + 1;
            let default = if of.default == Some(index) { "@default_literal " } else { "" };
            let comma = if index + 1 == of.literals.len() { "" } else { "," };
            self.text += &format!("  {default}{value_text}{literal}{comma}\n");
        }
        self.text += "};\n";
    }

    fn declarator(&mut self, of: &TypeSpec, name: &str) -> String {
        // A leading underscore is not part of the name.
        let escape = if self.random.one_in(12) { "_" } else { "" };
        let TypeSpec::Array { element, dimensions } = of else {
            return format!("{} {escape}{name}", self.type_name(of));
        };
        let dimensions: String = dimensions.iter().map(|dimension| format!("[{}]", self.number(*dimension))).collect();
        let name = format!("{escape}{name}");
        format!("{} {name}{dimensions}", self.type_name(element))
    }

    /// Returns the name of a type from the global scope, or from the open module.
    fn name(&mut self, id: DefinitionId) -> String {
        let name = self.definitions.get(id).expect("it is defined").name();
        match name.strip_prefix(&self.scope) {
            Some(name) if !name.contains("::") && self.random.one_in(2) => name.to_owned(),
            _ => format!("::{name}"),
        }
    }

    /// Returns a bound. Parentheses separate `>>` in an expression from the closing bracket.
    fn bound(&mut self, bound: u32) -> String {
        format!("({})", self.number(bound))
    }

    fn bound_suffix(&mut self, bound: u32) -> String {
        if bound == 0 { String::new() } else { format!(", {}", self.bound(bound)) }
    }

    fn type_name(&mut self, of: &TypeSpec) -> String {
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
            TypeSpec::String { bound: 0 } => ["string"; 2],
            TypeSpec::WString { bound: 0 } => ["wstring"; 2],
            TypeSpec::String { bound } => return format!("string<{}>", self.bound(*bound)),
            TypeSpec::WString { bound } => return format!("wstring<{}>", self.bound(*bound)),
            TypeSpec::Sequence { element, bound, .. } => {
                return format!("sequence<{}{} >", self.type_name(element), self.bound_suffix(*bound));
            }
            TypeSpec::Map { key, element, bound } => {
                let (key, element) = (self.type_name(key), self.type_name(element));
                return format!("map<{key}, {element}{} >", self.bound_suffix(*bound));
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

/// Returns `@default`, which is not part of a type. INTEROP(CycloneDDS 0.10.2): idlc refuses it for
/// types that are not primitive, and for optional members.
fn default_value(of: &TypeSpec) -> Option<String> {
    let value = match of {
        TypeSpec::Boolean => "TRUE",
        TypeSpec::Octet | TypeSpec::Uint16 | TypeSpec::Uint32 | TypeSpec::Uint64 => "7",
        TypeSpec::Int16 | TypeSpec::Int32 | TypeSpec::Int64 => "-7",
        TypeSpec::Float | TypeSpec::Double => "1.5",
        TypeSpec::Char => "'c'",
        TypeSpec::String { .. } => "\"text\"",
        _ => return None,
    };
    Some(format!("@default({value})"))
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
