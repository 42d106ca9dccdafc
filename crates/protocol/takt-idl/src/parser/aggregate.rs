//! Parser of IDL structs and unions, with their forward declarations.

use std::collections::BTreeSet;

use takt_xtypes::definition::{
    CaseDefinition, Definition, DefinitionId, MemberDefinition, StructDefinition, TypeSpec, UnionDefinition,
};
use takt_xtypes::dynamic::MAX_NESTING;

use super::Parser;
use super::annotation::{Annotations, Container, member_id};
use super::expression::range;
use crate::error::{Location, Result};
use crate::lexer::Kind;
use crate::symbols::{Symbol, qualified};
use crate::value::Value;

impl Parser<'_> {
    pub(super) fn structure(&mut self, annotations: &Annotations) -> Result<()> {
        self.advance();
        let (name, location) = self.identifier("the name of the struct")?;
        if self.is_symbol(';') {
            return self.forward("a struct", &name, location, annotations);
        }
        let base = if self.take_symbol(':') { Some(self.base()?) } else { None };
        let (full, id) = self.declare("a struct", &name, location)?;
        let found = self.type_annotations(annotations, "a struct", None)?;
        self.expect_symbol('{', "before the members of the struct")?;
        let mut next = base.map_or(0, |base| self.next_id(base));
        let (mut members, mut names, mut ids) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        while !self.take_symbol('}') {
            let before = self.annotations()?;
            let member_annotations = self.member_annotations(&before, Container::Struct)?;
            let of = self.type_spec()?;
            loop {
                let (name, location, of) = self.declarator(&of, "the name of the member")?;
                self.check_limits(&member_annotations, &of)?;
                let id = member_id(&member_annotations, &name, found.autoid_hash, next);
                next = id.saturating_add(1);
                if !names.insert(name.clone()) {
                    return Err(location.failure(format!("two members named '{name}'")));
                }
                if !ids.insert(id) {
                    return Err(location.failure(format!("'{name}' has the id {id} of another member")));
                }
                members.push(MemberDefinition {
                    name,
                    id,
                    hash_id: member_annotations.hash_id.clone(),
                    values: member_annotations.values.clone(),
                    key: member_annotations.key,
                    must_understand: member_annotations.must_understand,
                    optional: member_annotations.optional,
                    external: member_annotations.external,
                    try_construct: member_annotations.try_construct,
                    of,
                });
                if !self.take_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(';', "after the member")?;
        }
        let definition = StructDefinition {
            name: full,
            extensibility: found.extensibility,
            nested: found.nested,
            autoid_hash: found.autoid_hash,
            base,
            members,
        };
        self.define(id, Definition::Struct(definition));
        Ok(())
    }

    /// Parses `struct S;` or `union U;`.
    fn forward(&mut self, kind: &'static str, name: &str, location: Location, annotations: &Annotations) -> Result<()> {
        annotations.iter().for_each(|annotation| self.ignore(annotation, "a declaration"));
        let full = qualified(&self.scope, name);
        if !matches!(self.symbols.get(&full), Some((Symbol::Type(id), _)) if self.is_of_kind(*id, kind)) {
            let (_, id) = self.declare(kind, name, location)?;
            self.forward.insert(id, kind);
        }
        Ok(())
    }

    /// Reports whether the defined type is of the kind of a forward declaration.
    fn is_of_kind(&self, id: DefinitionId, kind: &str) -> bool {
        match self.definitions.get(id) {
            Some(Definition::Struct(_)) => kind == "a struct",
            Some(Definition::Union(_)) => kind == "a union",
            _ => false,
        }
    }

    fn base(&mut self) -> Result<DefinitionId> {
        let location = self.location();
        let (name, is_absolute) = self.scoped_name("the struct to inherit from")?;
        let (full, symbol) = self.lookup(&name, is_absolute, location)?;
        let id = Self::type_of(&symbol, &full, location)?;
        match self.definitions.resolve(&TypeSpec::Named(id)) {
            Some(TypeSpec::Named(of)) if matches!(self.definitions.get(*of), Some(Definition::Struct(_))) => Ok(id),
            None => Err(location.failure(format!("'{full}' is declared but not yet defined"))),
            _ => Err(location.failure(format!("'{full}' is not a struct"))),
        }
    }

    /// Returns the id of the first member of a derived struct: one more than that of the last
    /// inherited member.
    fn next_id(&self, base: DefinitionId) -> u32 {
        let mut base = Some(base);
        // Deeper nesting is refused when type identifiers are computed.
        for _ in 0..MAX_NESTING {
            let Some(id) = base else { break };
            let spec = TypeSpec::Named(id);
            let Some(TypeSpec::Named(resolved)) = self.definitions.resolve(&spec) else { break };
            let Some(Definition::Struct(structure)) = self.definitions.get(*resolved) else { break };
            if let Some(last) = structure.members.last() {
                return last.id.saturating_add(1);
            }
            base = structure.base;
        }
        0
    }

    pub(super) fn union(&mut self, annotations: &Annotations) -> Result<()> {
        self.advance();
        let (name, location) = self.identifier("the name of the union")?;
        if self.is_symbol(';') {
            return self.forward("a union", &name, location, annotations);
        }
        if !self.take_word("switch") {
            return Err(self.unexpected("switch after the name of the union"));
        }
        self.expect_symbol('(', "after switch")?;
        let mut key = false;
        for annotation in self.annotations()? {
            match annotation.name.as_str() {
                "key" => key = self.flag(&annotation)?,
                _ => self.ignore(&annotation, "a discriminator"),
            }
        }
        let discriminator = self.discriminator()?;
        self.expect_symbol(')', "after the type of the discriminator")?;
        let (full, id) = self.declare("a union", &name, location)?;
        let found = self.type_annotations(annotations, "a union", None)?;
        self.expect_symbol('{', "before the cases of the union")?;
        let cases = self.cases(&discriminator, found.autoid_hash)?;
        let definition = UnionDefinition {
            name: full,
            extensibility: found.extensibility,
            nested: found.nested,
            autoid_hash: found.autoid_hash,
            key,
            discriminator,
            cases,
        };
        self.define(id, Definition::Union(definition));
        Ok(())
    }

    fn discriminator(&mut self) -> Result<TypeSpec> {
        let location = self.location();
        let of = self.type_spec()?;
        let has_number = match self.definitions.resolve(&of) {
            Some(TypeSpec::Boolean | TypeSpec::Char | TypeSpec::WChar) => true,
            Some(TypeSpec::Named(id)) => matches!(self.definitions.get(*id), Some(Definition::Enum(_))),
            Some(other) => range(other).is_some(),
            None => false,
        };
        if has_number {
            return Ok(of);
        }
        Err(location.failure("a discriminator must be an integer, a character, a boolean, an octet or an enumeration"))
    }

    fn cases(&mut self, discriminator: &TypeSpec, autoid_hash: bool) -> Result<Vec<CaseDefinition>> {
        let (mut cases, mut names, mut ids) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let (mut all_labels, mut has_default) = (BTreeSet::new(), false);
        // The discriminator has the id 0.
        let mut next = 1_u32;
        while !self.take_symbol('}') {
            let start = self.location();
            let (labels, default) = self.labels(discriminator)?;
            if let Some(label) = labels.iter().find(|label| !all_labels.insert(**label)) {
                return Err(start.failure(format!("two cases with the label {label}")));
            }
            if default && std::mem::replace(&mut has_default, true) {
                return Err(start.failure("two default cases"));
            }
            let before = self.annotations()?;
            let annotations = self.member_annotations(&before, Container::Union)?;
            let of = self.type_spec()?;
            let (name, location, of) = self.declarator(&of, "the name of the case's member")?;
            self.check_limits(&annotations, &of)?;
            let id = member_id(&annotations, &name, autoid_hash, next);
            next = id.saturating_add(1);
            if !names.insert(name.clone()) {
                return Err(location.failure(format!("two cases named '{name}'")));
            }
            if !ids.insert(id) {
                return Err(location.failure(format!("'{name}' has the id {id} of another case")));
            }
            self.expect_symbol(';', "after the case")?;
            cases.push(CaseDefinition {
                name,
                id,
                hash_id: annotations.hash_id,
                values: annotations.values,
                labels,
                default,
                external: annotations.external,
                try_construct: annotations.try_construct,
                of,
            });
        }
        Ok(cases)
    }

    /// Parses `case 1: case 2: default:`.
    fn labels(&mut self, discriminator: &TypeSpec) -> Result<(Vec<i32>, bool)> {
        let (mut labels, mut default, mut count) = (Vec::new(), false, 0);
        loop {
            if self.take_word("default") {
                default = true;
            } else if self.take_word("case") {
                labels.push(self.label(discriminator)?);
            } else if count == 0 {
                return Err(self.unexpected("case or default"));
            } else {
                return Ok((labels, default));
            }
            self.expect_symbol(':', "after the label")?;
            count += 1;
        }
    }

    fn label(&mut self, discriminator: &TypeSpec) -> Result<i32> {
        let location = self.location();
        if let Some(number) = self.literal_label(discriminator)? {
            return Ok(number);
        }
        let value = self.expression_of(discriminator)?;
        // A number is also a valid label of an enumeration: `to_idl` prints it if no literal has
        // this value.
        let is_enumeration = matches!(self.definitions.resolve(discriminator), Some(TypeSpec::Named(_)));
        let of = if is_enumeration && matches!(value, Value::Integer(_)) { &TypeSpec::Int32 } else { discriminator };
        let number = match self.value_of(of, value, location)? {
            Value::Integer(number) => number,
            Value::Boolean(value) => i128::from(value),
            Value::Character(value) => i128::from(value),
            Value::Literal { number, .. } => i128::from(number),
            value => return Err(location.failure(format!("{} is not a label", value.describe()))),
        };
        i32::try_from(number)
            .map_err(|_| location.failure(format!("the label {number} exceeds the 32 bits that XTypes allows")))
    }

    /// Parses an unscoped literal of the discriminator's enumeration; `None` if there is no such
    /// literal.
    fn literal_label(&mut self, discriminator: &TypeSpec) -> Result<Option<i32>> {
        let Some(TypeSpec::Named(id)) = self.definitions.resolve(discriminator) else { return Ok(None) };
        let Some(Definition::Enum(enumeration)) = self.definitions.get(*id) else { return Ok(None) };
        let next = self.tokens.get(self.at + 1).map(|token| &token.kind);
        let (Kind::Identifier { name, .. }, Some(Kind::Symbol(':'))) = (&self.token().kind, next) else {
            return Ok(None);
        };
        let found = self.symbols.get(&qualified(&enumeration.name, name));
        let Some((Symbol::Constant(Value::Literal { number, .. }), _)) = found else {
            if self.symbols.find(&self.scope, std::slice::from_ref(name), false).is_some() {
                return Ok(None);
            }
            let message = format!("'{name}' is not a literal of {}", enumeration.name);
            return Err(self.location().failure(message));
        };
        let number = *number;
        self.advance();
        Ok(Some(number))
    }
}
