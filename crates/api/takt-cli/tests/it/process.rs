//! `takt` processes under test.

use serde_json::Value;
use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;
use takt_testkit::waiting::{self, LIMIT, until};

/// Running `takt` process. Dropping it kills the process.
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

    /// Starts `takt` with these variables in its environment.
    pub fn start_in(line: &str, environment: &[(&str, String)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Self::start_command(command, line, Stdio::null())
    }

    /// Starts `takt` with this text on its standard input.
    pub fn start_with_input(line: &str, input: &str) -> Self {
        let mut takt = Self::start_with(line, Stdio::piped());
        takt.feed(input);
        takt.close_input();
        takt
    }

    /// Starts `takt` with these variables and a standard input that [`feed`](Self::feed) writes to.
    pub fn start_with_open_input(line: &str, environment: &[(&str, String)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Self::start_command(command, line, Stdio::piped())
    }

    /// Writes to the standard input of the process.
    pub fn feed(&mut self, text: &str) {
        self.process.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Closes the standard input of the process.
    pub fn close_input(&mut self) {
        drop(self.process.stdin.take());
    }

    /// Returns the lines of standard output since the last call.
    pub fn new_lines(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Returns the lines of standard error since the last call.
    pub fn new_error_lines(&self) -> Vec<String> {
        self.errors.try_iter().collect()
    }

    /// Returns the exit status if the process has ended.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().unwrap()
    }

    /// Starts `takt` by a program that runs it, such as `nice`.
    pub fn start_by(program: &str, line: &str) -> Self {
        let mut words = program.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).arg(env!("CARGO_BIN_EXE_takt"));
        Self::start_command(command, line, Stdio::null())
    }

    /// Starts `takt` without any capability, also for root.
    pub fn start_without_privileges(line: &str) -> Self {
        if has_capabilities() {
            return Self::start_by("setpriv --inh-caps=-all --bounding-set=-all", line);
        }
        Self::start(line)
    }

    /// Starts `takt` with a standard output that nothing reads.
    pub fn start_without_reader(line: &str) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Self::start_to(line, writer)
    }

    /// Starts `takt` with a standard output on a full disk.
    pub fn start_on_full_disk(line: &str) -> Self {
        Self::start_to(line, std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
    }

    /// Starts `takt` with this standard output.
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

    /// Returns the next line of standard output, or `None` at the end.
    pub fn line(&self) -> Option<String> {
        next(&self.lines)
    }

    /// Returns the next line, which must be a JSON object with this `ev`.
    pub fn event(&self, event: &str) -> Value {
        let line = self.line().unwrap_or_else(|| panic!("it ended without {event}"));
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["ev"], event, "{line}");
        value
    }

    /// Reads standard output until its lines contain all of these texts, in any order, each as
    /// often as listed.
    pub fn expect_line(&self, wanted: &[&str]) {
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

    /// Returns the remaining output and the exit status.
    pub fn finish(mut self) -> (String, ExitStatus) {
        let rest: Vec<String> = std::iter::from_fn(|| self.line()).collect();
        (rest.join("\n"), self.status())
    }

    /// Returns the remaining output as one JSON object. Asserts that the process succeeds.
    pub fn json(self) -> Value {
        let (text, status) = self.finish();
        assert!(status.success(), "{status}: {text}");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// Returns the remaining standard output, standard error and the exit code.
    pub fn ending(mut self) -> (String, String, Option<i32>) {
        let output: Vec<String> = std::iter::from_fn(|| self.line()).collect();
        let errors: Vec<String> = std::iter::from_fn(|| next(&self.errors)).collect();
        (output.join("\n"), errors.join("\n"), self.status().code())
    }

    /// Waits for a line of standard error that begins with this text.
    pub fn await_complaint(&self, beginning: &str) {
        let line = std::iter::from_fn(|| next(&self.errors)).find(|line| line.starts_with(beginning));
        assert!(line.is_some(), "it never said {beginning}");
    }

    /// Returns the next line of standard error, or `None` at the end.
    pub fn error_line(&self) -> Option<String> {
        next(&self.errors)
    }

    /// Returns the remaining standard error and the exit code.
    pub fn error_text(mut self) -> (String, Option<i32>) {
        let text: Vec<String> = std::iter::from_fn(|| next(&self.errors)).collect();
        (text.join("\n"), self.status().code())
    }

    /// Waits for the end of the process, whose streams are closed.
    fn status(&mut self) -> ExitStatus {
        waiting::wait("takt ends, whose output is closed", &mut self.process)
    }

    /// Waits until the process handles SIGTERM.
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

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

/// Reports whether this process has any capability to drop.
fn has_capabilities() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    effective.trim().bytes().any(|digit| digit != b'0')
}

/// Returns the next line, or `None` at the end.
fn next(messages: &Receiver<String>) -> Option<String> {
    match messages.recv_timeout(LIMIT) {
        Ok(line) => Some(line),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => panic!("silent for {LIMIT:?}"),
    }
}

impl Drop for Takt {
    fn drop(&mut self) {
        // The process has ended already if the test succeeded.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
