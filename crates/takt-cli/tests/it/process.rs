//! A `takt` process under test.

use serde_json::Value;
use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;
use takt_testkit::waiting::{self, LIMIT, until};

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
        takt.feed(input);
        takt.close_input();
        takt
    }

    /// The same, with these variables and a standard input that [`feed`](Self::feed) writes to.
    pub fn start_with_open_input(line: &str, environment: &[(&str, String)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Self::start_command(command, line, Stdio::piped())
    }

    /// Writes to its standard input.
    pub fn feed(&mut self, text: &str) {
        self.process.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Ends its standard input.
    pub fn close_input(&mut self) {
        drop(self.process.stdin.take());
    }

    /// The lines of its output since the last call.
    pub fn new_lines(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// The lines that it said on standard error since the last call.
    pub fn new_error_lines(&self) -> Vec<String> {
        self.errors.try_iter().collect()
    }

    /// How it ended, if it has.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().unwrap()
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
        let errors = waiting::lines(process.stderr.take().unwrap());
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
        let lines = waiting::lines(process.stdout.take().unwrap());
        let errors = waiting::lines(process.stderr.take().unwrap());
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

    /// Reads its output until lines have said all of this, in any order, each as often as it stands here.
    pub fn says(&self, wanted: &[&str]) {
        let (mut missing, begin) = (wanted.to_vec(), Instant::now());
        while !missing.is_empty() {
            assert!(begin.elapsed() < waiting::LIMIT, "it does not say {missing:?}");
            let line = self.line().unwrap_or_else(|| panic!("it ended and did not say {missing:?}"));
            let mut found = Vec::new();
            missing.retain(|wanted| {
                let is_new = line.contains(wanted) && !found.contains(wanted);
                found.extend(is_new.then_some(*wanted));
                !is_new
            });
        }
    }

    /// All that is left of its output, and how it ended.
    pub fn finish(mut self) -> (String, ExitStatus) {
        let rest: Vec<String> = std::iter::from_fn(|| self.line()).collect();
        (rest.join("\n"), self.status())
    }

    /// All that is left of its output, which is one JSON object; it ended well.
    pub fn json(self) -> Value {
        let (text, status) = self.finish();
        assert!(status.success(), "{status}: {text}");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// All that is left of its output, what it said on standard error, and its exit code.
    pub fn ending(mut self) -> (String, String, Option<i32>) {
        let output: Vec<String> = std::iter::from_fn(|| self.line()).collect();
        let errors: Vec<String> = std::iter::from_fn(|| next(&self.errors)).collect();
        (output.join("\n"), errors.join("\n"), self.status().code())
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
        (text.join("\n"), self.status().code())
    }

    /// How it ends: its streams are closed.
    fn status(&mut self) -> ExitStatus {
        waiting::wait("takt ends, whose output is closed", &mut self.process)
    }

    /// Waits until it handles SIGTERM.
    pub fn await_signal_handler(&self) {
        const SIGTERM: u32 = 15;
        until("takt handles SIGTERM", || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
            u64::from_str_radix(caught, 16).unwrap() >> (SIGTERM - 1) & 1 == 1
        });
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

/// Next line; `None` at the end.
fn next(messages: &Receiver<String>) -> Option<String> {
    match messages.recv_timeout(LIMIT) {
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
