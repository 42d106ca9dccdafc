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
        /// Failed action and its target.
        action: String,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The server closed the connection.
    Closed {
        /// Method that waited for its reply.
        method: String,
    },
    /// The reply, or the awaited change, did not arrive in time.
    Timeout {
        /// Missing reply or change.
        what: String,
        /// Time waited.
        after: Duration,
    },
    /// The octets of the server are not JSON-RPC.
    Stream(StreamError),
    /// A request exceeds [`Limits::message_len`](crate::Limits::message_len).
    RequestTooLong {
        /// Method of the request.
        method: String,
        /// Length of the request, in octets.
        len: usize,
        /// Limit in octets.
        limit: usize,
    },
    /// The server refused a call as a whole.
    Refused {
        /// Refused method.
        method: String,
        /// Error text of the server.
        error: String,
    },
    /// The server did not execute the transaction. No part of it was applied.
    Transaction(Failure),
    /// A result does not have the form that RFC 7047 prescribes.
    Unexpected {
        /// Expected form, and its place.
        expected: String,
    },
    /// Monitored tables exceed [`Limits::rows`](crate::Limits::rows).
    TooManyRows {
        /// Limit in rows.
        limit: usize,
    },
}

/// Failure of an operation in a transaction (RFC 7047 §4.1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index of the operation. `None` if the commit failed.
    pub operation: Option<usize>,
    /// Kind and table of the operation, such as `insert into Bridge`. Empty if the commit failed.
    pub name: String,
    /// Error name of the server, such as `constraint violation`.
    pub error: String,
    /// Explanation of the server, possibly empty.
    pub details: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Some(index) => write!(f, "operation {index} ({}): {}", self.name, self.error)?,
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
            Self::Timeout { what, after } => write!(f, "OVSDB: timed out awaiting {what} ({} ms)", after.as_millis()),
            Self::Stream(why) => write!(f, "OVSDB: {why}"),
            Self::RequestTooLong { method, len, limit } => {
                write!(f, "OVSDB: {method} of {len} octets exceeds Limits::message_len ({limit})")
            }
            Self::Refused { method, error } => write!(f, "OVSDB: the server refused {method}: {error}"),
            Self::Transaction(failure) => write!(f, "OVSDB: the transaction was not applied: {failure}"),
            Self::Unexpected { expected } => write!(f, "OVSDB: unexpected result of the server, expected {expected}"),
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
