//! What is wrong with a configuration, and where.

use std::fmt;

/// The result of reading configurations.
pub type Result<T> = std::result::Result<T, ConfigError>;

/// A place in a file or in the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The file's name, or the variable's.
    pub source: String,
    /// Line, from 1; 0 where there are no lines.
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.source),
            line => write!(f, "{}:{line}", self.source),
        }
    }
}

/// Why a configuration was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where it stands.
    pub origin: Origin,
    /// Which element, as a path; empty for the whole file.
    pub element: String,
    /// What is wrong, and what was expected.
    pub what: String,
}

impl ConfigError {
    pub(crate) fn new(origin: Origin, element: impl Into<String>, what: impl Into<String>) -> Self {
        Self { origin, element: element.into(), what: what.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.element.is_empty() {
            write!(f, "{}: ", self.element)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ConfigError {}
