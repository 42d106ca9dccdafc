//! Parsing of member types: primitive types, strings, collections, names; and declarators.

use takt_xtypes::definition::TypeSpec;

use super::Parser;
use crate::error::{Location, Result};
use crate::limits::{MAX_DIMENSIONS, MAX_TYPE_SPECS};
use crate::value::Value;

impl Parser<'_> {
    /// Parses a type.
    pub(super) fn type_spec(&mut self) -> Result<TypeSpec> {
        self.nested(Self::type_spec_here)
    }

    fn type_spec_here(&mut self) -> Result<TypeSpec> {
        let location = self.location();
        let Some(word) = self.word() else { return self.named_type(location) };
        let simple = match word {
            "boolean" => TypeSpec::Boolean,
            "octet" => TypeSpec::Octet,
            "char" => TypeSpec::Char,
            "wchar" => TypeSpec::WChar,
            "int8" => TypeSpec::Int8,
            "uint8" => TypeSpec::Uint8,
            "short" | "int16" => TypeSpec::Int16,
            "uint16" => TypeSpec::Uint16,
            "int32" => TypeSpec::Int32,
            "uint32" => TypeSpec::Uint32,
            "int64" => TypeSpec::Int64,
            "uint64" => TypeSpec::Uint64,
            "float" => TypeSpec::Float,
            "double" => TypeSpec::Double,
            "unsigned" => return self.unsigned(),
            "long" => return self.long(location),
            "string" => return self.string(|bound| TypeSpec::String { bound }),
            "wstring" => return self.string(|bound| TypeSpec::WString { bound }),
            "sequence" => return self.sequence(),
            "map" => return self.map(),
            "any" | "fixed" | "void" | "Object" => {
                return Err(location.failure(format!("the type '{word}' is not supported")));
            }
            "struct" | "union" | "enum" => {
                let message = format!("a {word} must be defined on its own, not inside another definition");
                return Err(location.failure(message));
            }
            _ => return self.named_type(location),
        };
        self.advance();
        Ok(simple)
    }

    fn unsigned(&mut self) -> Result<TypeSpec> {
        self.advance();
        if self.take_word("short") {
            return Ok(TypeSpec::Uint16);
        }
        if !self.take_word("long") {
            return Err(self.unexpected("short or long after unsigned"));
        }
        Ok(if self.take_word("long") { TypeSpec::Uint64 } else { TypeSpec::Uint32 })
    }

    fn long(&mut self, location: Location) -> Result<TypeSpec> {
        self.advance();
        if self.word() == Some("double") {
            return Err(location.failure("the type 'long double' is not supported"));
        }
        Ok(if self.take_word("long") { TypeSpec::Int64 } else { TypeSpec::Int32 })
    }

    fn string(&mut self, make: impl FnOnce(u32) -> TypeSpec) -> Result<TypeSpec> {
        self.advance();
        if !self.take_symbol('<') {
            return Ok(make(0));
        }
        let bound = self.bound()?;
        self.expect_symbol('>', "after the bound")?;
        Ok(make(bound))
    }

    fn sequence(&mut self) -> Result<TypeSpec> {
        self.advance();
        self.expect_symbol('<', "after sequence")?;
        let external = self.element_annotations()?;
        let element = Box::new(self.type_spec()?);
        let bound = self.collection_bound()?;
        Ok(TypeSpec::Sequence { element, external, bound })
    }

    fn map(&mut self) -> Result<TypeSpec> {
        self.advance();
        self.expect_symbol('<', "after map")?;
        let key = Box::new(self.type_spec()?);
        self.expect_symbol(',', "after the type of the keys")?;
        let element = Box::new(self.type_spec()?);
        let bound = self.collection_bound()?;
        Ok(TypeSpec::Map { key, element, bound })
    }

    /// Parses the annotations of an element. Reports whether it is external.
    fn element_annotations(&mut self) -> Result<bool> {
        let mut external = false;
        for annotation in self.annotations()? {
            match annotation.name.as_str() {
                "external" => external = self.flag(&annotation)?,
                _ => self.ignore(&annotation, "an element"),
            }
        }
        Ok(external)
    }

    /// Parses `>` or `, BOUND>`.
    fn collection_bound(&mut self) -> Result<u32> {
        let bound = if self.take_symbol(',') { self.bound()? } else { 0 };
        self.expect_symbol('>', "after the type of the elements")?;
        Ok(bound)
    }

    /// Parses a positive number within the brackets of a type, where `>>` is not an operator. The
    /// largest number bounds nothing and means unbounded in type objects of CycloneDDS 11, so it is
    /// read as unbounded.
    fn bound(&mut self) -> Result<u32> {
        let location = self.location();
        let value = self.bound_expression()?;
        positive(&value, location).map(|bound| if bound == u32::MAX { 0 } else { bound })
    }

    fn named_type(&mut self, location: Location) -> Result<TypeSpec> {
        let (name, is_absolute) = self.scoped_name("a type")?;
        let (full, symbol) = self.lookup(&name, is_absolute, location)?;
        Ok(TypeSpec::Named(Self::type_of(&symbol, &full, location)?))
    }

    /// Parses a name with dimensions: `name`, `name[2][3]`.
    pub(super) fn declarator(&mut self, of: &TypeSpec, what: &str) -> Result<(String, Location, TypeSpec)> {
        let (name, location) = self.identifier(what)?;
        let mut dimensions = Vec::new();
        while self.take_symbol('[') {
            let start = self.location();
            if dimensions.len() >= MAX_DIMENSIONS {
                return Err(start.failure(format!("more than {MAX_DIMENSIONS} dimensions")));
            }
            let value = self.expression()?;
            dimensions.push(positive(&value, start)?);
            self.expect_symbol(']', "after the dimension")?;
        }
        self.type_specs += count(of);
        if self.type_specs > MAX_TYPE_SPECS {
            let message = format!("more than {MAX_TYPE_SPECS} types of members and typedefs, with those within them");
            return Err(location.failure(message));
        }
        if dimensions.is_empty() {
            return Ok((name, location, of.clone()));
        }
        Ok((name, location, TypeSpec::Array { element: Box::new(of.clone()), dimensions }))
    }
}

/// Returns the number of types that a type consists of, itself included.
fn count(of: &TypeSpec) -> usize {
    // The recursion is limited by the nesting depth of a text.
    1 + match of {
        TypeSpec::Sequence { element, .. } | TypeSpec::Array { element, .. } => count(element),
        TypeSpec::Map { key, element, .. } => count(key) + count(element),
        _ => 0,
    }
}

/// Returns a bound or dimension, which must be positive.
fn positive(value: &Value, location: Location) -> Result<u32> {
    match value {
        Value::Integer(number) if *number > 0 && *number <= i128::from(u32::MAX) => Ok(*number as u32),
        value => Err(location.failure(format!("expected a positive 32-bit number, not {}", value.describe()))),
    }
}
