//! What can go wrong around a peer program.

use std::io;
use std::process::{Command, Output, Stdio};

use crate::process;

/// `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why something with peers, namespaces or captures did not work.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// This machine lacks a program, a package or a privilege; the text says which and what helps.
    Unavailable(String),
    /// The network cannot be made, or is not what it is taken for.
    Network(takt_lab::Error),
    /// A command ran and failed.
    Command {
        /// The command line.
        command: String,
        /// What it printed.
        output: String,
    },
    /// The operating system refused.
    Io {
        /// What was tried.
        op: String,
        /// Its answer.
        source: io::Error,
    },
    /// Something did not happen while we waited.
    Timeout {
        /// Who was waited for.
        peer: String,
        /// What was waited for.
        awaited: String,
        /// The last lines that the peer printed to standard error, and events that nobody asked for.
        context: String,
    },
    /// A peer program reported that a command failed, or ended.
    Peer {
        /// Which one.
        peer: String,
        /// What it said.
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
    /// What the machine or this user lacks is told from networks that are wrong.
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
                write!(f, "{peer}: waited in vain for {awaited}")?;
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

/// Runs `command` to its end, for 300 s at most; what it printed to standard output.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = process::output(command.stdin(Stdio::null())).map_err(Error::io(format!("cannot run `{shown}`")))?;
    checked(shown, &output)
}

/// Standard output of a command that has ended, or why it failed.
pub(crate) fn checked(command: String, output: &Output) -> Result<String> {
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let reason = if complaint.trim().is_empty() { &printed } else { complaint.as_ref() };
    Err(Error::Command { command, output: format!("{}: {reason}", output.status) })
}

/// The command line of `command`, for messages.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
