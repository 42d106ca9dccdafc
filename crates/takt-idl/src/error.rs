//! Errors and warnings with a place in a file.

use std::fmt;

use crate::limits::MAX_WARNINGS;

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
}

/// A text that is not read, or a part of it that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub place: Place,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column } = self;
        write!(f, "{file}:{line}:{column}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for Diagnostic {}

/// Where a token stands, with the file as its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Location {
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

/// What stops reading.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub location: Location,
    pub message: String,
}

/// Parts that have no effect.
#[derive(Default)]
pub(crate) struct Warnings {
    list: Vec<Failure>,
    /// How many are not in the list, and where the first of them is.
    omitted: Option<(usize, Location)>,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Location {
    /// What is wrong here.
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

    /// All that are kept, and how many are not.
    pub(crate) fn into_list(self) -> Vec<Failure> {
        let mut list = self.list;
        list.extend(self.omitted.map(|(count, first)| first.failure(format!("{count} more warnings from here on"))));
        list
    }
}
