//! Configuration errors and their origin.

use std::fmt;

/// Result of reading configurations.
pub type Result<T> = std::result::Result<T, ConfigError>;

/// Position in a file or in the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Name of the file or of the variable.
    pub source: String,
    /// Line, from 1. 0 if the source has no lines.
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

/// Reason why a configuration was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Position of the error.
    pub origin: Origin,
    /// Path of the element. Empty for the whole file.
    pub element: String,
    /// Description of the error and of the expected value.
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
