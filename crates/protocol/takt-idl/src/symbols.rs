//! Symbol table: names and their scopes (IDL 4.2 §7.5).
//!
//! The first part of a scoped name is looked up from the innermost module outwards; the other parts
//! are looked up in the scope of the first. Literals of an enumeration are names in the scope that
//! contains the enumeration, and in the enumeration.

use std::collections::BTreeMap;

use takt_xtypes::definition::DefinitionId;

use crate::error::Location;
use crate::value::Value;

/// Meaning of a name.
#[derive(Clone, Debug)]
pub(crate) enum Symbol {
    Module,
    Type(DefinitionId),
    Constant(Value),
    /// Parsed definition that cannot be represented as a type.
    Unsupported(&'static str),
}

/// All names, qualified.
#[derive(Default)]
pub(crate) struct Symbols {
    names: BTreeMap<String, (Symbol, Location)>,
    /// Names in lower case: in IDL, names in a scope must differ in more than case.
    folded: BTreeMap<String, String>,
}

/// Returns the qualified name of a name in a scope.
pub(crate) fn qualified(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}::{name}") }
}

impl Symbols {
    /// Returns the symbol of a qualified name and the position of its definition.
    pub(crate) fn get(&self, qualified: &str) -> Option<&(Symbol, Location)> {
        self.names.get(qualified)
    }

    /// Adds or replaces a name.
    pub(crate) fn insert(&mut self, qualified: String, symbol: Symbol, location: Location) {
        self.folded.insert(qualified.to_ascii_lowercase(), qualified.clone());
        self.names.insert(qualified, (symbol, location));
    }

    /// Resolves a scoped name within a scope. Returns the qualified name and the symbol.
    pub(crate) fn find(&self, scope: &str, name: &[String], is_absolute: bool) -> Option<(String, &Symbol)> {
        let (first, rest) = name.split_first()?;
        let mut scope = if is_absolute { "" } else { scope };
        loop {
            let start = qualified(scope, first);
            if self.names.contains_key(&start) {
                let full = rest.iter().fold(start, |full, part| qualified(&full, part));
                return self.names.get(&full).map(|(symbol, _)| (full, symbol));
            }
            if scope.is_empty() {
                return None;
            }
            scope = scope.rsplit_once("::").map_or("", |(outer, _)| outer);
        }
    }

    /// Returns an existing name, in this scope or an enclosing one, that differs from this one only
    /// in case.
    pub(crate) fn similar(&self, scope: &str, name: &str) -> Option<&str> {
        let mut scope = scope;
        loop {
            if let Some(found) = self.folded.get(&qualified(scope, name).to_ascii_lowercase()) {
                return Some(found);
            }
            if scope.is_empty() {
                return None;
            }
            scope = scope.rsplit_once("::").map_or("", |(outer, _)| outer);
        }
    }
}
