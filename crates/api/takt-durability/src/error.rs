//! Errors of the durability service: store failures and DDS errors.

use std::fmt;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Failure of the service.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The store cannot be read or written; the file has the state of the last commit.
    Store {
        /// Path of the database file.
        path: PathBuf,
        /// Description of the failure.
        what: String,
    },
    /// A DDS operation failed.
    Dds(takt::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { path, what } => write!(f, "store {}: {what}", path.display()),
            Self::Dds(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store { .. } => None,
            Self::Dds(error) => Some(error),
        }
    }
}

impl From<takt::Error> for Error {
    fn from(error: takt::Error) -> Self {
        Self::Dds(error)
    }
}
