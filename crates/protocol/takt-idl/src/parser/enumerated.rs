//! Parsing of enumerations and bitmasks.

use std::collections::BTreeSet;

use takt_xtypes::Extensibility;
use takt_xtypes::definition::{BitmaskDefinition, Definition, EnumDefinition};

use super::Parser;
use super::annotation::Annotations;
use crate::error::Result;
use crate::symbols::{Symbol, qualified};
use crate::value::Value;

impl Parser<'_> {
    pub(super) fn enumeration(&mut self, annotations: &Annotations) -> Result<()> {
        self.advance();
        let (name, location) = self.identifier("the name of the enumeration")?;
        let (full, id) = self.declare("an enumeration", &name, location)?;
        let found = self.type_annotations(annotations, "an enumeration", Some(32))?;
        let bit_bound = found.bit_bound.unwrap_or(32);
        let limit = 1_i128 << (bit_bound - 1);
        self.expect_symbol('{', "before the literals of the enumeration")?;
        let (mut literals, mut default, mut numbers) = (Vec::new(), None, BTreeSet::new());
        let mut next = 0_i128;
        loop {
            for annotation in self.annotations()? {
                match annotation.name.as_str() {
                    "value" => next = self.number(&annotation, -limit, limit - 1)?,
                    "default_literal" if default.is_some() => {
                        return Err(annotation.location.failure("two default literals of an enumeration"));
                    }
                    "default_literal" => default = Some(literals.len()),
                    _ => self.ignore(&annotation, "a literal"),
                }
            }
            let (literal, place) = self.identifier("a literal of the enumeration")?;
            let number = i32::try_from(next).ok().filter(|_| next < limit);
            let number = number.ok_or_else(|| {
                place.failure(format!("'{literal}' has the value {next}, which does not fit {bit_bound} bits"))
            })?;
            if !numbers.insert(number) {
                return Err(place.failure(format!("'{literal}' has the value {number} of another literal")));
            }
            // A literal is a name in the scope that contains the enumeration, and in the
            // enumeration.
            let outer = self.new_name(&literal, place)?;
            let value = Symbol::Constant(Value::Literal { of: id, number });
            self.symbols.insert(outer, value.clone(), place);
            self.symbols.insert(qualified(&full, &literal), value, place);
            literals.push((literal, number));
            next += 1;
            if !self.take_symbol(',') || self.is_symbol('}') {
                break;
            }
        }
        self.expect_symbol('}', "after the literals")?;
        let definition =
            EnumDefinition { name: full, extensibility: found.extensibility, bit_bound, literals, default };
        self.define(id, Definition::Enum(definition));
        Ok(())
    }

    pub(super) fn bitmask(&mut self, annotations: &Annotations) -> Result<()> {
        self.advance();
        let (name, location) = self.identifier("the name of the bitmask")?;
        let (full, id) = self.declare("a bitmask", &name, location)?;
        let found = self.type_annotations(annotations, "a bitmask", Some(64))?;
        for annotation in annotations.iter().filter(|_| found.extensibility != Extensibility::Final) {
            if ["appendable", "mutable", "extensibility"].contains(&annotation.name.as_str()) {
                let message = format!("@{} of a bitmask has no effect: a bitmask is final", annotation.name);
                self.warn(annotation.location, message);
            }
        }
        let bit_bound = found.bit_bound.unwrap_or(32);
        self.expect_symbol('{', "before the flags of the bitmask")?;
        let (mut flags, mut names, mut positions) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut next = 0_u16;
        while !self.is_symbol('}') {
            for annotation in self.annotations()? {
                match annotation.name.as_str() {
                    "position" => {
                        next = self.number(&annotation, 0, i128::from(bit_bound) - 1)?;
                    }
                    _ => self.ignore(&annotation, "a flag"),
                }
            }
            let (flag, place) = self.identifier("a flag of the bitmask")?;
            if next >= bit_bound {
                let message = format!("'{flag}' has the position {next}, but the bit bound is {bit_bound}");
                return Err(place.failure(message));
            }
            if !names.insert(flag.clone()) || !positions.insert(next) {
                return Err(place.failure(format!("'{flag}' has the name or the position {next} of another flag")));
            }
            let value = Symbol::Constant(Value::Integer(1_i128 << next));
            self.symbols.insert(qualified(&full, &flag), value, place);
            flags.push((flag, next));
            next += 1;
            if !self.take_symbol(',') {
                break;
            }
        }
        self.expect_symbol('}', "after the flags")?;
        self.define(id, Definition::Bitmask(BitmaskDefinition { name: full, bit_bound, flags }));
        Ok(())
    }
}
