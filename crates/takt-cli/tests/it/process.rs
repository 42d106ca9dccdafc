//! A `takt` process under test.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Time after which a silent process counts as hung.
const LIMIT: Duration = Duration::from_secs(90);

/// A running `takt`; dropping it kills it.
pub struct Takt {
    process: Child,
    lines: Receiver<String>,
    errors: Receiver<String>,
}

impl Takt {
    /// Starts `takt` with the words of `line` as arguments.
    pub fn start(line: &str) -> Self {
        Self::start_with(line, Stdio::null())
    }

    /// The same, with something on its standard input.
    pub fn start_with_input(line: &str, input: &str) -> Self {
        let mut takt = Self::start_with(line, Stdio::piped());
        takt.process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        takt
    }

    fn start_with(line: &str, stdin: Stdio) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_takt"))
            .args(line.split_whitespace())
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = listen(process.stdout.take().unwrap());
        let errors = listen(process.stderr.take().unwrap());
        Self { process, lines, errors }
    }

    /// Next line of its output; `None` at the end.
    pub fn line(&self) -> Option<String> {
        next(&self.lines)
    }

    /// Next line, which is a JSON object with this `ev`.
    pub fn event(&self, event: &str) -> Value {
        let line = self.line().unwrap_or_else(|| panic!("it ended without {event}"));
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["ev"], event, "{line}");
        value
    }

    /// All that is left of its output, and how it ended.
    pub fn finish(mut self) -> (String, ExitStatus) {
        let rest: Vec<String> = std::iter::from_fn(|| self.line()).collect();
        (rest.join("\n"), self.process.wait().unwrap())
    }

    /// All that is left of its output, which is one JSON object; it ended well.
    pub fn json(self) -> Value {
        let (text, status) = self.finish();
        assert!(status.success(), "{status}: {text}");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// Waits until it says something on standard error that begins so.
    pub fn await_complaint(&self, beginning: &str) {
        let line = std::iter::from_fn(|| next(&self.errors)).find(|line| line.starts_with(beginning));
        assert!(line.is_some(), "it never said {beginning}");
    }

    /// What else it said on standard error, and its exit code.
    pub fn complaint(mut self) -> (String, Option<i32>) {
        let text: Vec<String> = std::iter::from_fn(|| next(&self.errors)).collect();
        (text.join("\n"), self.process.wait().unwrap().code())
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let id = self.process.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(status.success());
    }
}

/// The lines of a stream, from a thread of its own.
fn listen(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    lines
}

/// Next line; `None` at the end.
fn next(lines: &Receiver<String>) -> Option<String> {
    match lines.recv_timeout(LIMIT) {
        Ok(line) => Some(line),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => panic!("silent for {LIMIT:?}"),
    }
}

impl Drop for Takt {
    fn drop(&mut self) {
        // It has ended already if the test went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
