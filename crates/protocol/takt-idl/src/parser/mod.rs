//! Recursive descent parser for IDL 4.2 §7.4.1 (core data types), §7.4.13 (extended data types),
//! §7.4.14 (anonymous types) and §7.4.15 (annotations). A name must be defined before its use.

mod aggregate;
mod annotation;
mod enumerated;
mod expression;
mod specification;
mod type_spec;

use std::collections::BTreeMap;

use takt_xtypes::Extensibility;
use takt_xtypes::definition::{Definition, DefinitionId, Definitions};

use crate::error::{Failure, Location, Result, Warnings};
use crate::lexer::{Kind, Token};
use crate::limits::{MAX_DEPTH, MAX_NAME_LEN};
use crate::symbols::{Symbol, Symbols, qualified};

/// Parser state.
pub(crate) struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    default_extensibility: Extensibility,
    pub definitions: Definitions,
    /// Position of each type declaration.
    pub positions: Vec<(DefinitionId, Location)>,
    pub warnings: Warnings,
    /// Kinds of types in forward declarations.
    forward: BTreeMap<DefinitionId, &'static str>,
    /// Number of member and typedef types so far.
    type_specs: usize,
    /// Maximum of the type of the expression if the type is unsigned, for `~`.
    complement: Option<i128>,
    symbols: Symbols,
    modules: Vec<Module>,
    scope: String,
}

/// Open module.
struct Module {
    /// `@autoid(HASH)`
    autoid_hash: bool,
    /// `@default_nested`
    default_nested: bool,
}

impl<'a> Parser<'a> {
    /// Returns a parser of tokens, the last of which is [`Kind::End`].
    pub(crate) fn new(tokens: &'a [Token], default_extensibility: Extensibility, warnings: Warnings) -> Self {
        Self {
            tokens,
            at: 0,
            depth: 0,
            default_extensibility,
            definitions: Definitions::new(),
            positions: Vec::new(),
            warnings,
            forward: BTreeMap::new(),
            type_specs: 0,
            complement: None,
            symbols: Symbols::default(),
            modules: Vec::new(),
            scope: String::new(),
        }
    }

    fn token(&self) -> &'a Token {
        // The last token is the end, and the parser never advances beyond it.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn location(&self) -> Location {
        self.token().location
    }

    fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn is_symbol(&self, symbol: char) -> bool {
        self.token().kind == Kind::Symbol(symbol)
    }

    /// Consumes a symbol if it is next.
    fn take_symbol(&mut self, symbol: char) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect_symbol(&mut self, symbol: char, after: &str) -> Result<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.unexpected(&format!("'{symbol}' {after}"))) }
    }

    /// Returns the word at this position, which may be a keyword.
    fn word(&self) -> Option<&'a str> {
        match &self.token().kind {
            Kind::Identifier { name, escaped: false } => Some(name),
            _ => None,
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.word() == Some(word);
        if found {
            self.advance();
        }
        found
    }

    fn unexpected(&self, expected: &str) -> Failure {
        self.location().failure(format!("expected {expected}, found {}", self.token().kind.describe()))
    }

    /// Parses a name that is being defined.
    fn identifier(&mut self, what: &str) -> Result<(String, Location)> {
        let location = self.location();
        match &self.token().kind {
            Kind::Identifier { name, escaped } if *escaped || !is_keyword(name) => {
                self.advance();
                Ok((name.clone(), location))
            }
            Kind::Identifier { name, .. } => Err(location.failure(format!(
                "expected {what}, found the keyword '{name}'; a name that is a keyword is written '_{name}'"
            ))),
            _ => Err(self.unexpected(what)),
        }
    }

    /// Parses `A::B` or `::A::B`. Returns its parts, and whether it begins at the global scope.
    fn scoped_name(&mut self, what: &str) -> Result<(Vec<String>, bool)> {
        let is_absolute = self.token().kind == Kind::Scope;
        if is_absolute {
            self.advance();
        }
        let mut parts = vec![self.identifier(what)?.0];
        while self.token().kind == Kind::Scope {
            self.advance();
            parts.push(self.identifier("a name after '::'")?.0);
            if parts.len() > MAX_DEPTH {
                return Err(self.location().failure(format!("a name of more than {MAX_DEPTH} parts")));
            }
        }
        Ok((parts, is_absolute))
    }

    /// Returns the qualified name and the symbol of a name.
    fn lookup(&self, name: &[String], is_absolute: bool, location: Location) -> Result<(String, Symbol)> {
        if let Some((full, symbol)) = self.symbols.find(&self.scope, name, is_absolute) {
            return Ok((full, symbol.clone()));
        }
        let text = name.join("::");
        let hint = match self.symbols.similar(&self.scope, &text) {
            Some(similar) => format!("; did you mean '{similar}'? names are case-sensitive"),
            None => String::new(),
        };
        Err(location.failure(format!("'{text}' is not defined before this{hint}")))
    }

    /// Returns the type of a symbol.
    fn type_of(symbol: &Symbol, name: &str, location: Location) -> Result<DefinitionId> {
        match symbol {
            Symbol::Type(id) => Ok(*id),
            Symbol::Module => Err(location.failure(format!("'{name}' is a module, not a type"))),
            Symbol::Constant(_) => Err(location.failure(format!("'{name}' is a constant, not a type"))),
            Symbol::Unsupported(what) => Err(location.failure(format!("'{name}' is {what}, which is not supported"))),
        }
    }

    /// Returns the qualified name of a new definition. Fails if the name exists.
    fn new_name(&self, name: &str, location: Location) -> Result<String> {
        let full = qualified(&self.scope, name);
        if full.len() > MAX_NAME_LEN {
            return Err(location.failure(format!("a qualified name of more than {MAX_NAME_LEN} octets")));
        }
        match self.symbols.get(&full) {
            Some((_, first)) => Err(location.failure(format!(
                "'{full}' is defined twice; first in line {}{}",
                first.line,
                if first.file == location.file { "" } else { " of another file" }
            ))),
            None => Ok(full),
        }
    }

    /// Declares a type of this kind, or returns the one of its forward declaration.
    fn declare(&mut self, kind: &'static str, name: &str, location: Location) -> Result<(String, DefinitionId)> {
        let full = qualified(&self.scope, name);
        if let Some((Symbol::Type(id), first)) = self.symbols.get(&full)
            && let Some(declared) = self.forward.get(id)
        {
            if *declared != kind {
                let line = first.line;
                let message = format!("'{full}' is declared as {declared} in line {line}, but is {kind} here");
                return Err(location.failure(message));
            }
            if self.definitions.get(*id).is_none() {
                return Ok((full, *id));
            }
        }
        let full = self.new_name(name, location)?;
        let id = self.definitions.declare();
        self.positions.push((id, location));
        self.symbols.insert(full.clone(), Symbol::Type(id), location);
        Ok((full, id))
    }

    fn define(&mut self, id: DefinitionId, definition: Definition) {
        self.definitions.define(id, definition);
    }

    fn warn(&mut self, location: Location, message: String) {
        self.warnings.push(location, message);
    }

    /// Runs `read` one nesting level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.location().failure(format!("more than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}

/// Reports whether the name is a keyword that would be misinterpreted as the name of a type or
/// member.
fn is_keyword(name: &str) -> bool {
    const KEYWORDS: [&str; 42] = [
        "any",
        "attribute",
        "bitfield",
        "bitmask",
        "bitset",
        "boolean",
        "case",
        "char",
        "const",
        "default",
        "double",
        "enum",
        "exception",
        "fixed",
        "float",
        "in",
        "int16",
        "int32",
        "int64",
        "int8",
        "interface",
        "local",
        "long",
        "map",
        "module",
        "native",
        "octet",
        "sequence",
        "short",
        "string",
        "struct",
        "switch",
        "typedef",
        "uint16",
        "uint32",
        "uint64",
        "uint8",
        "union",
        "unsigned",
        "void",
        "wchar",
        "wstring",
    ];
    KEYWORDS.contains(&name) || ["TRUE", "FALSE"].contains(&name)
}
