//! Errors and warnings with a position in a file.

use std::fmt;

use crate::limits::MAX_WARNINGS;

/// Position in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// File name as it was given.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Error that refuses a text, or warning about a part without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Position.
    pub position: Position,
    /// Description of the problem and of what was expected.
    pub message: String,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column } = self;
        write!(f, "{file}:{line}:{column}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.message)
    }
}

impl std::error::Error for Diagnostic {}

/// Position of a token, with the file as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Location {
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

/// Error that ends parsing.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub location: Location,
    pub message: String,
}

/// Warnings about parts that have no effect.
#[derive(Default)]
pub(crate) struct Warnings {
    list: Vec<Failure>,
    /// Number of warnings that are not in the list, and the position of the first of them.
    omitted: Option<(usize, Location)>,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Location {
    /// Returns an error at this position.
    pub(crate) fn failure(self, message: impl Into<String>) -> Failure {
        Failure { location: self, message: message.into() }
    }
}

impl Warnings {
    pub(crate) fn push(&mut self, location: Location, message: String) {
        if self.list.len() < MAX_WARNINGS {
            self.list.push(location.failure(message));
        } else {
            self.omitted.get_or_insert((0, location)).0 += 1;
        }
    }

    /// Returns all kept warnings and the number of omitted ones.
    pub(crate) fn into_list(self) -> Vec<Failure> {
        let mut list = self.list;
        list.extend(self.omitted.map(|(count, first)| first.failure(format!("{count} more warnings from here on"))));
        list
    }
}
