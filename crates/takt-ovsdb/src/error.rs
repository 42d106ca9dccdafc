//! Errors of the client, and of operations that the server refused.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::stream::StreamError;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Failure of a connection, a call or a transaction.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The socket failed.
    Io {
        /// The action that failed, and its target.
        action: String,
        /// The cause.
        source: io::Error,
    },
    /// The server closed the connection.
    Closed {
        /// The method that waited for its reply.
        method: String,
    },
    /// The reply, or the change that was waited for, did not come in time.
    Timeout {
        /// The missing reply or change.
        what: String,
        /// The time waited.
        after: Duration,
    },
    /// The server sent what is no JSON-RPC.
    Stream(StreamError),
    /// A request exceeds [`Limits::message_len`](crate::Limits::message_len).
    RequestTooLong {
        /// Its method.
        method: String,
        /// Its length in octets.
        len: usize,
        /// The limit.
        limit: usize,
    },
    /// The server refused a call as a whole.
    Refused {
        /// The method.
        method: String,
        /// The server's words.
        error: String,
    },
    /// The server did not execute a transaction. Nothing of it was applied.
    Transaction(Failure),
    /// A result does not have the form that RFC 7047 prescribes.
    Unexpected {
        /// The form that was expected, and where.
        expected: String,
    },
    /// Monitored tables exceed [`Limits::rows`](crate::Limits::rows).
    TooManyRows {
        /// The limit.
        limit: usize,
    },
}

/// The operation at which a transaction failed (RFC 7047 §4.1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its place in the transaction; `None` if the transaction failed when it was committed.
    pub operation: Option<usize>,
    /// The operation's kind and table, such as `insert into Bridge`; empty at the commit.
    pub name: String,
    /// The server's word, such as `constraint violation`.
    pub error: String,
    /// The server's explanation; may be empty.
    pub details: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Some(place) => write!(f, "operation {place} ({}): {}", self.name, self.error)?,
            None => write!(f, "commit: {}", self.error)?,
        }
        if self.details.is_empty() { Ok(()) } else { write!(f, ": {}", self.details) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, source } => write!(f, "OVSDB: {action}: {source}"),
            Self::Closed { method } => {
                write!(f, "OVSDB: the server closed the connection before its reply to {method}")
            }
            Self::Timeout { what, after } => write!(f, "OVSDB: {what} did not come within {} ms", after.as_millis()),
            Self::Stream(why) => write!(f, "OVSDB: {why}"),
            Self::RequestTooLong { method, len, limit } => {
                write!(f, "OVSDB: {method} of {len} octets exceeds Limits::message_len ({limit})")
            }
            Self::Refused { method, error } => write!(f, "OVSDB: the server refused {method}: {error}"),
            Self::Transaction(failure) => write!(f, "OVSDB: the transaction was not applied: {failure}"),
            Self::Unexpected { expected } => write!(f, "OVSDB: the server's result is not as expected: {expected}"),
            Self::TooManyRows { limit } => {
                write!(f, "OVSDB: the monitored tables exceed Limits::rows ({limit}); monitor fewer tables")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Stream(why) => Some(why),
            _ => None,
        }
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}
