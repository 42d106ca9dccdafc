//! Parsing of file-level definitions: modules, constants, typedefs, and definitions that are not
//! types.

use takt_xtypes::definition::{AliasDefinition, Definition};

use super::annotation::Annotations;
use super::{Module, Parser};
use crate::error::Result;
use crate::lexer::Kind;
use crate::symbols::Symbol;

impl Parser<'_> {
    /// Parses all definitions up to the end.
    pub(crate) fn specification(&mut self) -> Result<()> {
        while self.token().kind != Kind::End {
            self.definition()?;
        }
        for (id, location) in &self.positions {
            if self.definitions.get(*id).is_none() {
                return Err(location.failure("the type is declared but not defined"));
            }
        }
        Ok(())
    }

    fn definition(&mut self) -> Result<()> {
        if self.is_symbol('@') && self.is_annotation_definition() {
            return self.annotation_definition();
        }
        let annotations = self.annotations()?;
        let location = self.location();
        let Some(word) = self.word() else {
            return Err(self.unexpected("a definition: module, struct, union, enum, bitmask, typedef or const"));
        };
        match word {
            "module" => return self.module(&annotations),
            "struct" => self.structure(&annotations)?,
            "union" => self.union(&annotations)?,
            "enum" => self.enumeration(&annotations)?,
            "bitmask" => self.bitmask(&annotations)?,
            "typedef" => self.typedef(&annotations)?,
            "const" => self.constant(&annotations)?,
            "bitset" => self.unsupported("a bitset", &annotations)?,
            "exception" => self.unsupported("an exception", &annotations)?,
            "native" => self.unsupported("a native type", &annotations)?,
            "interface" | "abstract" | "local" | "valuetype" | "eventtype" | "component" | "home" | "porttype"
            | "connector" | "import" | "typeid" | "typeprefix" => {
                return Err(location.failure(format!("'{word}' is not supported: only data types are supported")));
            }
            _ => {
                return Err(self.unexpected("a definition: module, struct, union, enum, bitmask, typedef or const"));
            }
        }
        self.expect_symbol(';', "after the definition")
    }

    fn module(&mut self, annotations: &Annotations) -> Result<()> {
        self.advance();
        let (name, location) = self.identifier("the name of the module")?;
        let full = crate::symbols::qualified(&self.scope, &name);
        if !matches!(self.symbols.get(&full), Some((Symbol::Module, _))) {
            self.new_name(&name, location)?;
            self.symbols.insert(full.clone(), Symbol::Module, location);
        }
        let module = self.module_annotations(annotations)?;
        self.expect_symbol('{', "after the name of the module")?;
        let outer = std::mem::replace(&mut self.scope, full);
        self.modules.push(module);
        self.nested(|parser| {
            while !parser.is_symbol('}') {
                if parser.token().kind == Kind::End {
                    return Err(parser.unexpected("'}' at the end of the module"));
                }
                parser.definition()?;
            }
            Ok(())
        })?;
        self.modules.pop();
        self.scope = outer;
        self.advance();
        // Some compilers do not require the semicolon.
        self.take_symbol(';');
        Ok(())
    }

    fn module_annotations(&mut self, annotations: &Annotations) -> Result<Module> {
        let outer = self.modules.last();
        let (mut autoid_hash, mut default_nested) =
            outer.map_or((false, false), |outer| (outer.autoid_hash, outer.default_nested));
        for annotation in annotations {
            match annotation.name.as_str() {
                "autoid" => autoid_hash = self.autoid(annotation)?,
                "default_nested" => default_nested = self.flag(annotation)?,
                _ => self.ignore(annotation, "a module"),
            }
        }
        Ok(Module { autoid_hash, default_nested })
    }

    fn typedef(&mut self, annotations: &Annotations) -> Result<()> {
        self.advance();
        annotations.iter().for_each(|annotation| self.ignore(annotation, "a typedef"));
        let of = self.type_spec()?;
        loop {
            let (name, location, of) = self.declarator(&of, "the name of the typedef")?;
            let (full, id) = self.declare("a typedef", &name, location)?;
            self.define(id, Definition::Alias(AliasDefinition { name: full, of }));
            if !self.take_symbol(',') {
                return Ok(());
            }
        }
    }

    fn constant(&mut self, annotations: &Annotations) -> Result<()> {
        self.advance();
        annotations.iter().for_each(|annotation| self.ignore(annotation, "a constant"));
        let of = self.type_spec()?;
        let (name, location) = self.identifier("the name of the constant")?;
        let full = self.new_name(&name, location)?;
        self.expect_symbol('=', "after the name of the constant")?;
        let start = self.location();
        let value = self.expression_of(&of)?;
        let value = self.value_of(&of, value, start)?;
        self.symbols.insert(full, Symbol::Constant(value), location);
        Ok(())
    }

    /// Skips a definition that is not supported as a type. Its name is recorded, so that its use
    /// has a specific error.
    fn unsupported(&mut self, what: &'static str, _annotations: &Annotations) -> Result<()> {
        self.advance();
        let (name, location) = self.identifier("a name")?;
        let full = self.new_name(&name, location)?;
        self.symbols.insert(full, Symbol::Unsupported(what), location);
        while !self.is_symbol('{') && !self.is_symbol(';') {
            if self.token().kind == Kind::End {
                return Err(self.unexpected("'{' or ';'"));
            }
            self.advance();
        }
        if self.is_symbol('{') { self.skip_braces() } else { Ok(()) }
    }

    fn is_annotation_definition(&self) -> bool {
        let next = self.tokens.get(self.at + 1).map(|token| (&token.kind, token.adjacent));
        let is_word = matches!(next, Some((Kind::Identifier { name, .. }, _)) if name == "annotation");
        is_word && matches!(self.tokens.get(self.at + 2).map(|t| &t.kind), Some(Kind::Identifier { .. }))
    }

    /// Skips `@annotation name { ... };`. Uses of the annotation have no effect, so its members are
    /// irrelevant.
    fn annotation_definition(&mut self) -> Result<()> {
        self.advance();
        self.advance();
        self.identifier("the name of the annotation")?;
        self.skip_braces()?;
        self.expect_symbol(';', "after the definition")
    }

    /// Skips from `{` to after the matching `}`.
    fn skip_braces(&mut self) -> Result<()> {
        let start = self.location();
        self.expect_symbol('{', "after the name")?;
        let mut depth = 1_usize;
        while depth > 0 {
            match self.token().kind {
                Kind::Symbol('{') => depth += 1,
                Kind::Symbol('}') => depth -= 1,
                Kind::End => return Err(start.failure("unterminated definition: expected '}'")),
                _ => {}
            }
            self.advance();
        }
        Ok(())
    }
}
