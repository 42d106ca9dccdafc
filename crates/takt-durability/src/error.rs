//! What can go wrong: the store, or the DDS.

use std::fmt;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Failure of the service.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The store cannot be read or written; the file is as it was after the last commit.
    Store {
        /// The file.
        path: PathBuf,
        /// What failed.
        what: String,
    },
    /// The DDS refused.
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
