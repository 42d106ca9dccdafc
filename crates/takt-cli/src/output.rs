//! Standard output and standard error of a command.
//!
//! A reader that closes standard output, as `takt ls | head -3` does, ends the command with exit code 0 and without a message.
//! A closed standard error is ignored. `print!` and `eprint!` panic in both cases. A service serves on without its events, and says so
//! on standard error ([`EventLog`]).

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use takt_bench::{Error, Result};

/// What a failed write to standard output is called.
const STANDARD_OUTPUT: &str = "write to standard output";

/// Writes to standard output, as `print!` does; a `Result`.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}

/// Writes a line to standard output, as `println!` does; a `Result`.
macro_rules! outln {
    () => { $crate::output::write(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::write_line(format_args!($($text)*)) };
}

/// Writes a line to standard error, as `eprintln!` does.
macro_rules! note {
    ($($text:tt)*) => { $crate::output::write_note(format_args!($($text)*)) };
}

/// Writes to standard error, as `eprint!` does: progress within a line.
macro_rules! progress {
    ($($text:tt)*) => { $crate::output::write_progress(format_args!($($text)*)) };
}

pub(crate) use {note, out, outln, progress};

/// Writes to standard output, and flushes it.
///
/// # Errors
/// It is closed ([`is_closed`]), or cannot be written to.
pub fn write(text: Arguments<'_>) -> Result<()> {
    if cfg!(test) {
        // The runner's own lines are on standard output. It keeps what `print!` writes from them.
        print!("{text}");
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).map_err(failed)
}

/// A failed write to standard output.
pub fn failed(source: io::Error) -> Error {
    Error::Os { op: STANDARD_OUTPUT.to_owned(), source }
}

/// The same with the end of a line.
///
/// # Errors
/// As [`write`].
pub fn write_line(text: Arguments<'_>) -> Result<()> {
    write(format_args!("{text}\n"))
}

/// Writes a line to standard error.
pub fn write_note(text: Arguments<'_>) {
    write_progress(format_args!("{text}\n"));
}

/// Writes to standard error.
pub fn write_progress(text: Arguments<'_>) {
    // A message that cannot be written has no other place to go to.
    let _ = io::stderr().lock().write_fmt(text);
}

/// Whether an error is that of standard output without a reader.
pub fn is_closed(error: &Error) -> bool {
    matches!(error, Error::Os { op, source } if op == STANDARD_OUTPUT && source.kind() == ErrorKind::BrokenPipe)
}

/// The events that a service writes to standard output. The service serves on where they cannot be written, and says when that begins.
#[derive(Debug, Default)]
pub struct EventLog {
    is_failing: bool,
}

impl EventLog {
    /// Writes a line, unless it cannot be written.
    pub fn line(&mut self, text: Arguments<'_>) {
        let result = write_line(text);
        if let Err(error) = &result
            && !self.is_failing
        {
            note!("takt: warning: {error}; events are lost, the service goes on");
        }
        self.is_failing = result.is_err();
    }
}
