//! Names and the scopes they are in (IDL 4.2 §7.5).
//!
//! A scoped name is looked up by its first part, from the innermost module outwards; the rest is looked up where that part leads.
//! Literals of an enumeration are names of the scope of the enumeration, and also of the enumeration.

use std::collections::BTreeMap;

use takt_xtypes::definition::DefinitionId;

use crate::error::Location;
use crate::value::Value;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Symbol {
    Module,
    Type(DefinitionId),
    Constant(Value),
    /// A definition that is read, and of which no type can be made.
    Unsupported(&'static str),
}

/// All names, qualified.
#[derive(Default)]
pub(crate) struct Symbols {
    names: BTreeMap<String, (Symbol, Location)>,
    /// The names in lower case: IDL has no two names in a scope that differ by case alone.
    folded: BTreeMap<String, String>,
}

/// A name in a scope.
pub(crate) fn qualified(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}::{name}") }
}

impl Symbols {
    /// The symbol of a qualified name, and where it is defined.
    pub(crate) fn get(&self, qualified: &str) -> Option<&(Symbol, Location)> {
        self.names.get(qualified)
    }

    /// Adds or replaces a name.
    pub(crate) fn insert(&mut self, qualified: String, symbol: Symbol, location: Location) {
        self.folded.insert(qualified.to_ascii_lowercase(), qualified.clone());
        self.names.insert(qualified, (symbol, location));
    }

    /// What a scoped name stands for within a scope, and its qualified name.
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

    /// A name that is there and differs from this one, in this scope or around it, by case alone.
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
