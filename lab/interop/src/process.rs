//! Processes of peers and tools, with limits on run time, line length and amount of output.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum length of a line in octets. The rest of a longer line is skipped. Samples are printed as
/// length and hash, so that the longest line of the protocol has less than 1 KiB.
pub const LINE_MAX: usize = 64 << 10;
/// Maximum number of octets kept of each output stream of a command. The rest is read and
/// discarded.
const OUTPUT_MAX: usize = 256 << 20;
/// Time limit of a command that exits by itself. The slowest one fetches packages and builds a
/// peer.
const COMMAND_TIME: Duration = Duration::from_secs(300);
/// Polling interval of the exit of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a command to completion and returns its output. Its standard input stays as configured.
///
/// # Errors
/// The command cannot be started, or has not exited after 300 s. It is then killed.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    output_of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// Waits for a running process, whose output streams are both piped, and returns its output.
pub(crate) fn output_of(mut child: Child) -> io::Result<Output> {
    drop(child.stdin.take());
    let stdout = child.stdout.take().map(read_all);
    let stderr = child.stderr.take().map(read_all);
    let status = end(&mut child, COMMAND_TIME)?;
    Ok(Output { status, stdout: read(stdout)?, stderr: read(stderr)? })
}

/// Waits until a process has exited.
///
/// # Errors
/// The process has not exited within `limit`. It is then killed.
pub(crate) fn end(child: &mut Child, limit: Duration) -> io::Result<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            let what = format!("it had not ended after {} s, and was killed", limit.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, what));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Reads a stream to its end on a separate thread, so that the process does not block. Keeps the
/// first `OUTPUT_MAX` octets.
fn read_all(mut stream: impl Read + Send + 'static) -> JoinHandle<io::Result<Vec<u8>>> {
    thread::spawn(move || {
        let mut octets = Vec::new();
        stream.by_ref().take(OUTPUT_MAX as u64).read_to_end(&mut octets)?;
        io::copy(&mut stream, &mut io::sink())?;
        Ok(octets)
    })
}

/// Returns the octets read, within the time limit of a command. A child process of the command may
/// keep the stream open.
fn read(reading: Option<JoinHandle<io::Result<Vec<u8>>>>) -> io::Result<Vec<u8>> {
    let Some(reading) = reading else { return Ok(Vec::new()) };
    let deadline = Instant::now() + COMMAND_TIME;
    while !reading.is_finished() {
        if Instant::now() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds its output open"));
        }
        thread::sleep(POLL_INTERVAL);
    }
    reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A line of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A complete line without its line ending. Invalid UTF-8 is replaced.
    Whole(String),
    /// Beginning of a line that is longer than [`LINE_MAX`].
    TooLong(String),
}

/// Returns the lines of a stream until it ends or fails.
pub(crate) fn lines(stream: impl Read) -> impl Iterator<Item = Line> {
    let mut reader = BufReader::new(stream);
    std::iter::from_fn(move || line(&mut reader))
}

fn line(reader: &mut impl BufRead) -> Option<Line> {
    let mut octets = Vec::new();
    // tidy-allow(dropped-cause): a stream that fails has ended
    let len = reader.by_ref().take(LINE_MAX as u64 + 1).read_until(b'\n', &mut octets).ok()?;
    if len == 0 {
        return None;
    }
    let is_ended = octets.last() == Some(&b'\n');
    if is_ended {
        octets.pop();
    }
    octets.truncate(LINE_MAX);
    let text = String::from_utf8_lossy(&octets).into_owned();
    if is_ended || len <= LINE_MAX {
        return Some(Line::Whole(text));
    }
    // tidy-allow(dropped-cause): as above; what was read of the line is reported
    reader.skip_until(b'\n').ok();
    Some(Line::TooLong(text))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::{LINE_MAX, Line, end, lines, output};

    #[test]
    fn line_beyond_the_limit_is_truncated_and_the_next_one_is_complete() {
        let text = format!("{}\n{}\nshort\nlast", "a".repeat(LINE_MAX), "b".repeat(10 * LINE_MAX));
        let lines: Vec<Line> = lines(text.as_bytes()).collect();
        let [whole, long, short, last] = &lines[..] else { panic!("{} lines", lines.len()) };
        assert_eq!(*whole, Line::Whole("a".repeat(LINE_MAX)));
        assert_eq!(*long, Line::TooLong("b".repeat(LINE_MAX)));
        assert_eq!([short, last], [&Line::Whole("short".into()), &Line::Whole("last".into())]);
    }

    #[test]
    fn process_that_does_not_end_is_killed() {
        let mut endless = Command::new("cat").stdin(Stdio::piped()).spawn().expect("coreutils");
        let error = end(&mut endless, Duration::from_millis(20)).expect_err("it waits for input");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(endless.try_wait().expect("a child").is_some(), "it was killed");
    }

    #[test]
    fn command_output_contains_both_streams() {
        let made =
            output(Command::new("sh").args(["-c", "head -c 200000 /dev/zero; echo no >&2; exit 3"])).expect("sh");
        assert_eq!((made.stdout.len(), &made.stderr[..], made.status.code()), (200_000, &b"no\n"[..], Some(3)));
    }
}
