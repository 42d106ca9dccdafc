//! Errors of workloads and campaigns: of the request, the operating system, the middleware, a child
//! process, or the result.

use std::fmt;
use std::io;

/// Failure of a workload or of a campaign.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid; the text says what would be valid.
    Usage(String),
    /// A call of the operating system failed.
    Os {
        /// System call or file that failed.
        op: String,
        /// Cause.
        source: io::Error,
    },
    /// Takt returned an error.
    Dds(takt::Error),
    /// Endpoints were not matched within the given time.
    NotMatched {
        /// Expected number of readers that the local writer matches, and of writers that the local
        /// reader matches.
        wanted: crate::link::Matched,
        /// Number of readers and writers that are matched.
        found: crate::link::Matched,
        /// Time limit in seconds.
        seconds: u64,
    },
    /// An awaited event did not occur in time.
    NoAnswer {
        /// Whole text of the error: which event is missing, and since when.
        what: String,
    },
    /// The type of a topic is unknown.
    NoType {
        /// Reason.
        what: String,
        /// Remedy for the user.
        hint: &'static str,
    },
    /// A bound is violated or not proven, or a check failed.
    NotKept {
        /// Whole text of the error: which bound or check, and the reason.
        what: String,
    },
    /// Some columns of a campaign could not be measured. The table of the campaign gives the
    /// reasons.
    NotMeasured {
        /// Names of the columns, separated by commas.
        columns: String,
    },
    /// A signal requested a stop before there was a result.
    Stopped,
    /// A child process that follows the agent contract failed.
    Agent {
        /// Name of the column of the campaign.
        column: String,
        /// Reason of the failure.
        what: String,
    },
}

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns the error that the last system call left in `errno`.
    pub(crate) fn last_os(op: &str) -> Self {
        Self::os(op, io::Error::last_os_error())
    }

    /// Returns an I/O error with the call or file that caused it.
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
                "not matched after {seconds} s: {} of {} readers, {} of {} writers",
                found.readers, wanted.readers, found.writers, wanted.writers
            ),
            Self::NoAnswer { what } | Self::NotKept { what } => f.write_str(what),
            Self::NotMeasured { columns } => write!(f, "columns without a measurement: {columns}"),
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
