//! What can go wrong in a measurement. Kinds: a wrong request, the machine, the middleware, a child process.

use std::fmt;
use std::io;

/// Failure of a workload or of a campaign.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The request makes no sense; the text says what would.
    Usage(String),
    /// The operating system refused; `op` names the call or the file.
    Os {
        /// System call or file that failed.
        op: String,
        /// The cause.
        source: io::Error,
    },
    /// The DDS refused.
    Dds(takt::Error),
    /// Nobody answered: endpoints were not matched within the time given.
    NotMatched {
        /// Readers (of our writer) and writers (of our reader) that were wanted.
        wanted: crate::link::Matched,
        /// Those that were found.
        found: crate::link::Matched,
        /// How long it waited.
        seconds: u64,
    },
    /// Nobody did what was waited for in time.
    NoAnswer {
        /// What was.
        what: String,
    },
    /// The type of a topic cannot be learned.
    NoType {
        /// Why not.
        what: String,
        /// What can be done instead.
        hint: &'static str,
    },
    /// A bound is not kept, or not proven.
    NotKept {
        /// Which, and why.
        what: String,
    },
    /// Some columns of a campaign could not be measured; its table says why.
    NotMeasured {
        /// Their names.
        columns: String,
    },
    /// A signal asked this process to stop before it had a result.
    Stopped,
    /// A child process that follows the agent contract failed.
    Agent {
        /// Column of the campaign.
        column: String,
        /// What happened.
        what: String,
    },
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The error that the last system call left in `errno`.
    pub(crate) fn last_os(op: &str) -> Self {
        Self::os(op, io::Error::last_os_error())
    }

    /// An I/O error with the call or file it came from.
    pub fn os(op: impl Into<String>, source: io::Error) -> Self {
        Self::Os { op: op.into(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => f.write_str(what),
            Self::Os { op, source } => write!(f, "{op}: {source}"),
            Self::Dds(error) => write!(f, "{error}"),
            Self::NotMatched { wanted, found, seconds } => write!(
                f,
                "not matched after {seconds} s: {} of {} readers, {} of {} writers found",
                found.readers, wanted.readers, found.writers, wanted.writers
            ),
            Self::NoAnswer { what } | Self::NotKept { what } => f.write_str(what),
            Self::NotMeasured { columns } => write!(f, "not measured: {columns}"),
            Self::NoType { what, hint } => write!(f, "the type is not available: {what}\n{hint}"),
            Self::Stopped => f.write_str("stopped by a signal"),
            Self::Agent { column, what } => write!(f, "column {column}: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Os { source, .. } => Some(source),
            Self::Dds(error) => Some(error),
            _ => None,
        }
    }
}

impl From<takt_lab::Error> for Error {
    fn from(error: takt_lab::Error) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<takt::Error> for Error {
    fn from(error: takt::Error) -> Self {
        Self::Dds(error)
    }
}
