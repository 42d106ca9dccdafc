//! IDL 4.2 parser: reads text into [`Definitions`], which yield type objects and dynamic types.
//!
//! [`Idl::read`] reads a file and its includes, [`Idl::parse`] a text. [`Idl::type_information`]
//! returns the type objects of one of its types. [`ros2`] does the same for ROS 2 message files.
//!
//! Supported are modules, structs with inheritance, unions, enumerations, bitmasks, typedefs,
//! constants, sequences, arrays, maps, strings and all basic types except `long double`, with the
//! annotations of XTypes 1.3 §7.3.1.2 (`parser`). The output of
//! [`DynamicType::to_idl`](takt_xtypes::dynamic::DynamicType::to_idl) parses to a type with the
//! same type identifier.
//!
//! Invariants:
//! - A refused text yields an error with file, line, column and the expected input. A part without
//!   effect yields a warning.
//! - Parsing is bounded by [`limits`], and never panics.
//! - A type without an annotation has the extensibility of [`Options::default_extensibility`].
//!
//! Not supported: interfaces and value types (refused); bitsets, exceptions, `any`, `fixed`,
//! `long double` (refused where they are used); macros with parameters; default values of members;
//! generated code.
//!
//! DEVIATION(IDL 4.2 §7.2.3): names that differ only in case are different names, and keywords are
//! case-sensitive.

#![forbid(unsafe_code)]

mod error;
mod files;
mod lexer;
pub mod limits;
mod parser;
mod preprocessor;
pub mod ros2;

mod symbols;
mod value;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use takt_xtypes::Extensibility;
use takt_xtypes::definition::{Definition, DefinitionId, Definitions};
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::{TypeInformation, TypeRegistry};

pub use error::{Diagnostic, Position};

use error::{Failure, Location};
use files::{FileSystem, Files, NoFiles};
use parser::Parser;

/// Options of parsing.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directories of included files, in order. The directory of the including file is searched
    /// first.
    pub include: Vec<PathBuf>,
    /// Extensibility of structs, unions and enumerations without an annotation. Appendable by
    /// XTypes 1.3 §7.3.3.1.
    pub default_extensibility: Extensibility,
}

/// Parsed types of a text.
#[derive(Clone, Debug)]
pub struct Idl {
    definitions: Definitions,
    /// Position of each declaration.
    positions: Vec<(DefinitionId, Position)>,
    warnings: Vec<Diagnostic>,
}

impl Default for Options {
    fn default() -> Self {
        Self { include: Vec::new(), default_extensibility: Extensibility::Appendable }
    }
}

impl Idl {
    /// Reads a file and its includes.
    ///
    /// # Errors
    /// Fails if a file cannot be read, is not valid IDL, uses an unsupported feature, or exceeds
    /// one of the [`limits`].
    pub fn read(path: &Path, options: &Options) -> Result<Self, Diagnostic> {
        let name = path.display().to_string();
        let text = files::read(path).map_err(|error| Diagnostic {
            position: Position { file: name.clone(), line: 1, column: 1 },
            message: format!("cannot read the file: {error}"),
        })?;
        Self::with_files(&name, &text, options, &mut FileSystem { directories: &options.include })
    }

    /// Parses a text that includes no file. `name` is the file name in errors.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does.
    pub fn parse(name: &str, text: &str, options: &Options) -> Result<Self, Diagnostic> {
        Self::with_files(name, text, options, &mut NoFiles)
    }

    fn with_files(name: &str, text: &str, options: &Options, source: &mut dyn Files) -> Result<Self, Diagnostic> {
        let preprocessed = preprocessor::run(name, text, source);
        let files = &preprocessed.files;
        if let Some(failure) = preprocessed.failure {
            return Err(diagnostic(failure, files));
        }
        let mut parser = Parser::new(&preprocessed.tokens, options.default_extensibility, preprocessed.warnings);
        parser.specification().map_err(|failure| diagnostic(failure, files))?;
        Ok(Self {
            definitions: parser.definitions,
            positions: parser.positions.into_iter().map(|(id, location)| (id, position(location, files))).collect(),
            warnings: parser.warnings.into_list().into_iter().map(|warning| diagnostic(warning, files)).collect(),
        })
    }

    /// Returns the warnings about parts without effect. Beyond [`limits::MAX_WARNINGS`], the last
    /// one is the number of the omitted ones.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns all types.
    #[must_use]
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Returns the qualified names of all structs and unions, in the order of the text.
    #[must_use]
    pub fn type_names(&self) -> Vec<&str> {
        self.aggregated().map(|(_, name)| name).collect()
    }

    /// Returns the names of the probable topic types: structs and unions that are not `@nested` and
    /// not part of another struct or union.
    #[must_use]
    pub fn topic_type_names(&self) -> Vec<&str> {
        let containers = self.containers();
        let is_topic = |id: &DefinitionId| match self.definitions.get(*id) {
            Some(Definition::Struct(structure)) => !structure.nested,
            Some(Definition::Union(union)) => !union.nested,
            _ => false,
        };
        let is_part = |id: &DefinitionId| containers.get(id).is_some_and(|container| *container != Some(*id));
        self.aggregated().filter(|(id, _)| is_topic(id) && !is_part(id)).map(|(_, name)| name).collect()
    }

    /// Returns the containing struct or union of each type; `None` if there are several.
    fn containers(&self) -> BTreeMap<DefinitionId, Option<DefinitionId>> {
        let mut containers = BTreeMap::new();
        let (aliases, others): (Vec<_>, Vec<_>) =
            self.definitions.iter().partition(|(_, of)| matches!(of, Definition::Alias(_)));
        others.into_iter().for_each(|(id, of)| add_container(&mut containers, of, Some(id)));
        // A typedef follows the types that it uses, so its containers are complete when it is
        // processed.
        for (id, of) in aliases.into_iter().rev() {
            if let Some(&container) = containers.get(&id) {
                add_container(&mut containers, of, container);
            }
        }
        containers
    }

    fn aggregated(&self) -> impl Iterator<Item = (DefinitionId, &str)> {
        let is_aggregated = |of: &Definition| matches!(of, Definition::Struct(_) | Definition::Union(_));
        self.definitions.iter().filter(move |(_, of)| is_aggregated(of)).map(|(id, of)| (id, of.name()))
    }

    /// Returns the type information of the type with this qualified name. Adds its type objects to
    /// `registry`.
    ///
    /// # Errors
    /// Fails if there is no struct, union or typedef of such a type with that name, or if the type
    /// is contradictory or exceeds a limit.
    pub fn type_information(&self, name: &str, registry: &mut TypeRegistry) -> Result<TypeInformation, Diagnostic> {
        let wanted = name.trim_start_matches("::");
        let Some((id, _)) = self.definitions.iter().find(|(_, definition)| definition.name() == wanted) else {
            let file = self.positions.last().map_or_else(String::new, |(_, position)| position.file.clone());
            let position = Position { file, line: 1, column: 1 };
            let message = format!("no type {wanted}; defined types: {}", list(&self.type_names()));
            return Err(Diagnostic { position, message });
        };
        let position = self.positions.iter().find(|(of, _)| *of == id).map(|(_, position)| position.clone());
        let refused = |error: takt_xtypes::type_object::TypeError| Diagnostic {
            position: position.clone().unwrap_or(Position { file: String::new(), line: 1, column: 1 }),
            message: format!("{wanted}: {error}"),
        };
        let information = self.definitions.type_information(id, registry).map_err(refused)?;
        DynamicType::new(&information.complete.type_id, registry).map_err(refused)?;
        Ok(information)
    }
}

/// Adds a container to the parts of a type; `None` means several containers.
fn add_container(
    containers: &mut BTreeMap<DefinitionId, Option<DefinitionId>>,
    of: &Definition,
    container: Option<DefinitionId>,
) {
    for part in of.parts() {
        let known = containers.entry(part).or_insert(container);
        *known = known.filter(|_| *known == container);
    }
}

/// Formats names for a message.
fn list(names: &[&str]) -> String {
    const MOST: usize = 12;
    match names {
        [] => "none".to_owned(),
        names if names.len() > MOST => format!("{} and {} more", names[..MOST].join(", "), names.len() - MOST),
        names => names.join(", "),
    }
}

fn position(location: Location, files: &[String]) -> Position {
    let file = files.get(location.file as usize).cloned().unwrap_or_default();
    Position { file, line: location.line, column: location.column }
}

fn diagnostic(failure: Failure, files: &[String]) -> Diagnostic {
    Diagnostic { position: position(failure.location, files), message: failure.message }
}
