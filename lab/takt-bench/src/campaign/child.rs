//! Agent process of a driver: started on its core, read line by line, stopped by SIGTERM.

use super::column::Column;
use crate::error::{Error, Result};
use crate::machine::{bind_to_cpu, set_fifo};
use crate::signal::stopped;
use serde_json::Value;
use std::ffi::{CStr, CString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Maximum time between SIGTERM and SIGKILL.
const STOP_LIMIT: Duration = Duration::from_secs(3);
/// Maximum time for an agent on another machine to end, which takes a round trip through ssh.
const FAR_STOP_LIMIT: Duration = Duration::from_secs(8);
const STOP_STEP: Duration = Duration::from_millis(5);
/// Interval between checks whether a signal has requested a stop.
pub(crate) const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time until the last line on standard error arrives after standard output has ended.
const LAST_OUTPUT_LIMIT: Duration = Duration::from_millis(500);

/// Core, priority, namespace and mounts of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placement {
    /// Core that the process is bound to; `None`: any.
    pub cpu: Option<usize>,
    /// `SCHED_FIFO` priority; `None`: not set.
    pub fifo: Option<u8>,
    /// Path of the network namespace; `None`: that of this process.
    pub namespace: Option<CString>,
    /// Bind mounts: source and mount point.
    pub mounts: Vec<(CString, CString)>,
}

/// A running agent. Dropping it kills it.
pub(crate) struct Child<'a> {
    column: &'a Column,
    role: &'static str,
    process: std::process::Child,
    lines: Receiver<Value>,
    /// Last line of standard error, available once that has ended.
    last_output: Receiver<String>,
}

impl<'a> Child<'a> {
    /// Starts the agent of `column` in a role.
    pub fn start(column: &'a Column, role: &'static str, arguments: &[String], placement: Placement) -> Result<Self> {
        let mut command = Command::new(&column.program);
        command
            .args(&column.prefix)
            .arg(role)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        place(&mut command, placement);
        let mut process = command.spawn().map_err(|e| Error::os(format!("start {}", column.program.display()), e))?;
        let output = process.stdout.take().expect("standard output is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
                // Lines that are not JSON are output of the middleware. The receiver is gone once
                // the child is dropped.
                if let Ok(value) = serde_json::from_str(&line)
                    && sender.send(value).is_err()
                {
                    break;
                }
            }
        });
        let errors = process.stderr.take().expect("standard error is piped");
        let (sender, last_output) = channel();
        std::thread::spawn(move || {
            // The receiver is gone if the child was dropped.
            drop(sender.send(last_line(errors)));
        });
        Ok(Self { column, role, process, lines, last_output })
    }

    /// Writes a line to the agent's standard input.
    pub fn write_line(&mut self, line: &str) -> Result<()> {
        let input = self.process.stdin.as_mut().expect("standard input is piped");
        writeln!(input, "{line}").map_err(|e| Error::os(format!("send {line} to the {}", self.role), e))
    }

    /// Waits for a line with this `ev`.
    pub fn wait_for(&mut self, event: &str, limit: Duration) -> Result<Value> {
        self.wait_until(event, limit, |line| line["ev"] == event)
    }

    /// Waits for a line that satisfies `is_it`; `what` names it in the error.
    pub fn wait_until(&mut self, what: &str, limit: Duration, is_it: impl Fn(&Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + limit;
        loop {
            let line = self.next_line(what, deadline)?;
            if is_it(&line) {
                return Ok(line);
            }
        }
    }

    /// Returns the lines that have arrived and that no call waited for.
    pub fn pending(&mut self) -> Vec<Value> {
        self.lines.try_iter().collect()
    }

    /// Returns all `result` lines up to a line with this `ev`.
    pub fn results_until(&mut self, event: &str, limit: Duration) -> Result<Vec<Value>> {
        let deadline = Instant::now() + limit;
        let mut results = Vec::new();
        loop {
            let line = self.next_line(event, deadline)?;
            if line["ev"] == event {
                return Ok(results);
            }
            if line["ev"] == "result" {
                results.push(line);
            }
        }
    }

    fn next_line(&mut self, awaited: &str, deadline: Instant) -> Result<Value> {
        let received = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(STOP_CHECK_INTERVAL)) {
                _ if stopped() => return Err(Error::Stopped),
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                received => break received,
            }
        };
        let what = match received {
            Ok(line) if line["ev"] == "error" => line["what"].as_str().unwrap_or("an error without a text").to_owned(),
            Ok(line) => return Ok(line),
            Err(RecvTimeoutError::Timeout) => format!("no \"{awaited}\" in time"),
            Err(RecvTimeoutError::Disconnected) => {
                let words = self.last_output.recv_timeout(LAST_OUTPUT_LIMIT).unwrap_or_default();
                // The output has ended, so the process has ended or is about to.
                let status = self.stop()?;
                self.column.exit_reason(awaited, status, &words)
            }
        };
        Err(self.column.failure(format!("{}: {what}", self.role)))
    }

    /// Requests an end, waits, and kills the agent after the limit, or at once if a signal has
    /// requested a stop.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        let failure = |e| Error::os("wait for an agent", e);
        let limit = if self.column.host.is_some() {
            drop(self.process.stdin.take());
            FAR_STOP_LIMIT
        } else {
            self.signal(libc::SIGTERM);
            STOP_LIMIT
        };
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && !stopped() {
            if let Some(status) = self.process.try_wait().map_err(failure)? {
                return Ok(status);
            }
            std::thread::sleep(STOP_STEP);
        }
        self.process.kill().map_err(failure)?;
        self.process.wait().map_err(failure)
    }

    fn signal(&mut self, signal: libc::c_int) {
        if let Ok(None) = self.process.try_wait() {
            // SAFETY: takes no pointer. The process has not been waited for, so its ID has not been
            // reused.
            unsafe { libc::kill(self.process.id() as libc::pid_t, signal) };
        }
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        if self.process.kill().is_ok() {
            let _ = self.process.wait();
        }
    }
}

/// Configures a command to run at its placement and to end with the process that starts it.
pub(crate) fn place(command: &mut Command, placement: Placement) {
    // SAFETY: between fork and exec only async-signal-safe system calls are made; no allocation, no
    // lock.
    unsafe { command.pre_exec(move || prepare(&placement)) };
}

/// Returns the last nonempty line of a stream, at the end of the stream.
fn last_line(stream: impl Read) -> String {
    let mut last = String::new();
    for line in BufReader::new(stream).split(b'\n').map_while(std::io::Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if !line.trim().is_empty() {
            last = line.trim().into();
        }
    }
    last
}

/// Prepares the child between fork and exec: it is killed when the driver ends, and takes its
/// placement.
fn prepare(placement: &Placement) -> std::io::Result<()> {
    // SAFETY: takes no pointer.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    if let Some(path) = &placement.namespace {
        enter(path)?;
    }
    bind_mounts(&placement.mounts)?;
    placement.cpu.map_or(Ok(()), bind_to_cpu)?;
    placement.fifo.map_or(Ok(()), set_fifo)
}

/// Moves this thread to a network namespace. Makes only system calls.
fn enter(path: &CStr) -> std::io::Result<()> {
    // SAFETY: the path ends with a NUL.
    let namespace = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    // SAFETY: an invalid descriptor is refused by the kernel; a valid one is closed by exec.
    match unsafe { libc::setns(namespace, libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Bind-mounts files in a new mount namespace, if there are any mounts. Makes only system calls.
fn bind_mounts(mounts: &[(CString, CString)]) -> std::io::Result<()> {
    let checked = |code: libc::c_int| if code == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    let mount = |from: *const libc::c_char, to: &CStr, flags| {
        // SAFETY: each text ends with a NUL, or is null where the kernel reads none.
        checked(unsafe { libc::mount(from, to.as_ptr(), std::ptr::null(), flags, std::ptr::null()) })
    };
    if mounts.is_empty() {
        return Ok(());
    }
    // SAFETY: no pointers.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    mount(std::ptr::null(), c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    mounts.iter().try_for_each(|(from, to)| mount(from.as_ptr(), to, libc::MS_BIND))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Placement = Placement { cpu: Some(0), fifo: None, namespace: None, mounts: Vec::new() };
    const LIMIT: Duration = Duration::from_secs(20);

    /// Returns a column whose agent is a shell script.
    fn shell(script: &str) -> Column {
        Column { prefix: vec!["-c".into(), script.into()], ..Column::parse("sh=/bin/sh").unwrap() }
    }

    #[test]
    fn json_lines_are_read_and_other_output_is_ignored() {
        let column = shell(
            r#"echo hello; echo '{"ev":"ready"}'; echo '{"ev":"result","got":1}'; echo '{"ev":"done"}'; exec sleep 60"#,
        );
        let mut child = Child::start(&column, "ping", &[], HERE).unwrap();
        child.wait_for("ready", LIMIT).unwrap();
        let results = child.results_until("done", LIMIT).unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!(results[0]["got"], 1);
        assert!(!child.stop().unwrap().success());
    }

    #[test]
    fn failure_names_its_column_and_role() {
        let column = shell(r#"echo '{"ev":"error","what":"not matched"}'"#);
        let mut child = Child::start(&column, "ping", &[], HERE).unwrap();
        let error = child.wait_for("ready", LIMIT).unwrap_err();
        assert_eq!(error.to_string(), "column sh: ping: not matched");
    }

    #[test]
    fn end_without_the_awaited_line_is_an_error() {
        let column = shell("true");
        let mut child = Child::start(&column, "pong", &[], HERE).unwrap();
        let error = child.wait_for("ready", LIMIT).unwrap_err().to_string();
        assert!(error.contains("ended without \"ready\""), "{error}");
    }

    #[test]
    fn missing_program_is_named_in_the_error() {
        let column = Column::parse("ghost=/nonexistent/agent").unwrap();
        let error = Child::start(&column, "pong", &[], HERE).err().unwrap();
        assert!(error.to_string().contains("/nonexistent/agent"), "{error}");
    }
}
