//! Errors of peer programs, networks and captures.

use std::io;
use std::process::{Command, Output, Stdio};

use crate::process;

/// `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a peer, a network namespace or a capture.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// This machine lacks a program, a package or a privilege. The text names it and the remedy.
    Unavailable(String),
    /// The network cannot be created, or differs from its description.
    Network(takt_lab::Error),
    /// A command ran and failed.
    Command {
        /// Command line.
        command: String,
        /// Output of the command.
        output: String,
    },
    /// An operation of the operating system failed.
    Io {
        /// Description of the operation.
        op: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An awaited event did not happen in time.
    Timeout {
        /// Name of the peer.
        peer: String,
        /// Description of the awaited event.
        awaited: String,
        /// Last lines that the peer printed to standard error, and events that were not awaited.
        context: String,
    },
    /// A peer program exited or reported that a command failed.
    Peer {
        /// Name of the peer.
        peer: String,
        /// Reason that the peer reported.
        what: String,
    },
}

impl Error {
    pub(crate) fn io(op: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let op = op.into();
        move |source| Self::Io { op, source }
    }
}

impl From<takt_lab::Error> for Error {
    /// Distinguishes a missing privilege or program from an invalid network.
    fn from(error: takt_lab::Error) -> Self {
        match error {
            takt_lab::Error::NotRoot | takt_lab::Error::Os { .. } => Self::Unavailable(error.to_string()),
            error => Self::Network(error),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unavailable(what) => write!(f, "{what}"),
            Self::Network(error) => write!(f, "{error}"),
            Self::Command { command, output } => write!(f, "`{command}` failed: {}", output.trim()),
            Self::Io { op, source } => write!(f, "{op}: {source}"),
            Self::Timeout { peer, awaited, context } => {
                write!(f, "{peer}: timed out while waiting for {awaited}")?;
                if !context.is_empty() {
                    write!(f, "\n{context}")?;
                }
                Ok(())
            }
            Self::Peer { peer, what } => write!(f, "{peer}: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Network(error) => Some(error),
            _ => None,
        }
    }
}

/// Runs `command` to completion, for at most 300 s, and returns its standard output.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = process::output(command.stdin(Stdio::null())).map_err(Error::io(format!("cannot run `{shown}`")))?;
    checked(shown, &output)
}

/// Returns the standard output of a command that has exited, or an error if it failed.
pub(crate) fn checked(command: String, output: &Output) -> Result<String> {
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let reason = if errors.trim().is_empty() { &printed } else { errors.as_ref() };
    Err(Error::Command { command, output: format!("{}: {reason}", output.status) })
}

/// Returns the command line of `command`, for messages.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
