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

    /// The same, with these variables in its environment.
    pub fn start_in(line: &str, environment: &[(&str, String)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Self::start_command(command, line, Stdio::null())
    }

    /// The same, with something on its standard input.
    pub fn start_with_input(line: &str, input: &str) -> Self {
        let mut takt = Self::start_with(line, Stdio::piped());
        takt.process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        takt
    }

    /// The same, by a program that runs it, such as `nice`.
    pub fn start_by(program: &str, line: &str) -> Self {
        let mut words = program.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).arg(env!("CARGO_BIN_EXE_takt"));
        Self::start_command(command, line, Stdio::null())
    }

    /// The same without any capability, also for root.
    pub fn start_without_privileges(line: &str) -> Self {
        if has_capabilities() {
            return Self::start_by("setpriv --inh-caps=-all --bounding-set=-all", line);
        }
        Self::start(line)
    }

    /// The same, with a standard output that nothing reads.
    pub fn start_without_reader(line: &str) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Self::start_to(line, writer)
    }

    /// The same, with a standard output on a full disk.
    pub fn start_on_full_disk(line: &str) -> Self {
        Self::start_to(line, std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
    }

    /// The same, with this standard output.
    fn start_to(line: &str, output: impl Into<Stdio>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
        let command = command.args(line.split_whitespace()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.stdout(output).spawn().unwrap();
        let errors = listen(process.stderr.take().unwrap());
        Self { process, lines: channel().1, errors }
    }

    fn start_with(line: &str, stdin: Stdio) -> Self {
        Self::start_command(Command::new(env!("CARGO_BIN_EXE_takt")), line, stdin)
    }

    fn start_command(mut command: Command, line: &str, stdin: Stdio) -> Self {
        let mut process = command
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

    /// Next line that it says on standard error; `None` at the end.
    pub fn error_line(&self) -> Option<String> {
        next(&self.errors)
    }

    /// What else it said on standard error, and its exit code.
    pub fn complaint(mut self) -> (String, Option<i32>) {
        let text: Vec<String> = std::iter::from_fn(|| next(&self.errors)).collect();
        (text.join("\n"), self.process.wait().unwrap().code())
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

/// Whether this process has any capability to lose.
fn has_capabilities() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    effective.trim().bytes().any(|digit| digit != b'0')
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
