//! Standard output and standard error of a command.
//!
//! A reader that closes standard output, as `takt ls | head -3` does, ends the command with exit
//! code 0 and without a message. A closed standard error is ignored. `print!` and `eprint!` would
//! panic in both cases. A service continues without its event log, and reports that on standard
//! error ([`EventLog`]).

use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use takt_bench::{Error, Result};

/// Beginning of a line, and the control sequence that removes the line.
const CLEAR_LINE: &str = "\r\u{1b}[K";

/// Whether the last line of standard error is a line of progress.
static IS_PROGRESS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Operation named in the error of a failed write to standard output.
const STANDARD_OUTPUT: &str = "write to standard output";

/// Writes to standard output like `print!`, but returns a `Result`.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}

/// Writes a line to standard output like `println!`, but returns a `Result`.
macro_rules! outln {
    () => { $crate::output::write(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::write_line(format_args!($($text)*)) };
}

/// Writes a line to standard error like `eprintln!`, without panicking.
macro_rules! note {
    ($($text:tt)*) => { $crate::output::write_note(format_args!($($text)*)) };
}

/// Writes progress within a line to standard error if that is a terminal.
macro_rules! progress {
    ($($text:tt)*) => { $crate::output::write_progress(format_args!($($text)*)) };
}

pub(crate) use {note, out, outln, progress};

/// Writes to standard output and flushes it.
///
/// # Errors
/// Standard output is closed ([`is_closed`]) or cannot be written.
pub fn write(text: Arguments<'_>) -> Result<()> {
    if cfg!(test) {
        // The test runner also writes to standard output. It captures `print!` only.
        print!("{text}");
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).map_err(failed)
}

/// Returns the error of a failed write to standard output.
pub fn failed(source: io::Error) -> Error {
    Error::Os { op: STANDARD_OUTPUT.to_owned(), source }
}

/// Writes a line to standard output and flushes it.
///
/// # Errors
/// Same as [`write`].
pub fn write_line(text: Arguments<'_>) -> Result<()> {
    write(format_args!("{text}\n"))
}

/// Writes a line to standard error, in place of a line of progress.
pub fn write_note(text: Arguments<'_>) {
    let clear = if IS_PROGRESS_SHOWN.swap(false, Ordering::Relaxed) { CLEAR_LINE } else { "" };
    // There is no other place for a message that cannot be written.
    let _ = io::stderr().lock().write_fmt(format_args!("{clear}{text}\n"));
}

/// Writes progress within a line to standard error if that is a terminal.
pub fn write_progress(text: Arguments<'_>) {
    if io::stderr().is_terminal() {
        // As above.
        let _ = io::stderr().lock().write_fmt(text);
    }
}

/// Shows a line of progress on standard error, in place of the last one. An empty text removes it.
pub fn show_progress(text: &str) {
    let is_shown = !text.is_empty();
    if IS_PROGRESS_SHOWN.swap(is_shown, Ordering::Relaxed) || is_shown {
        write_progress(format_args!("{CLEAR_LINE}{text}"));
    }
}

/// Reports whether the error is that of standard output without a reader.
pub fn is_closed(error: &Error) -> bool {
    matches!(error, Error::Os { op, source } if op == STANDARD_OUTPUT && source.kind() == ErrorKind::BrokenPipe)
}

/// Log of the events that a service writes to standard output. If writing fails, the service
/// continues and reports the first failure.
#[derive(Debug, Default)]
pub struct EventLog {
    is_failing: bool,
}

impl EventLog {
    /// Writes a line, unless an earlier write failed.
    pub fn line(&mut self, text: Arguments<'_>) {
        let result = write_line(text);
        if let Err(error) = &result
            && !self.is_failing
        {
            note!("takt: warning: {error}; events are lost, the service continues");
        }
        self.is_failing = result.is_err();
    }
}
