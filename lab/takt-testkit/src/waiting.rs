//! Bounded waits for a condition, a value, a message of another thread, or the end of a thread or
//! process.
//!
//! Each function panics at [`LIMIT`] and names the condition. A test that waits without a limit
//! hangs when the condition fails, and with it the whole test run. [`OnDrop`] ends the threads of a
//! scope when the closure of the scope panics.

use std::any::Any;
use std::fmt::Debug;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum wait. It is many times the duration on a busy machine, and not a time bound that a test
/// asserts.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Time for which the thread only yields, so that a condition that soon holds is noticed without
/// delay.
const SPIN_TIME: Duration = Duration::from_millis(1);

/// Waits until the condition holds.
///
/// # Panics
///
/// The condition does not hold within [`LIMIT`]. The message contains `what`, which describes the
/// condition.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    until_some(what, || condition().then_some(()));
}

/// Waits until `poll` returns a value.
///
/// # Panics
///
/// As [`until`].
#[track_caller]
pub fn until_some<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    poll_until(LIMIT, poll).unwrap_or_else(|| missed(what))
}

/// Waits until `attempt` succeeds. The panic message contains its last error.
///
/// # Panics
///
/// As [`until`].
#[track_caller]
pub fn until_ok<T, E: Debug>(what: &str, mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let mut last = None;
    let found = poll_until(LIMIT, || attempt().map_err(|seen| last = Some(seen)).ok()); // tidy-allow(dropped-cause): `last` has it
    found.unwrap_or_else(|| missed(&format!("{what}; found {last:?}")))
}

/// Returns the next message of another thread.
///
/// # Panics
///
/// No message arrives within [`LIMIT`], or the other thread has dropped its sender.
#[track_caller]
pub fn receive<T>(what: &str, messages: &Receiver<T>) -> T {
    match messages.recv_timeout(LIMIT) {
        Ok(message) => message,
        Err(RecvTimeoutError::Timeout) => missed(what),
        Err(RecvTimeoutError::Disconnected) => panic!("{what}: its thread has ended"),
    }
}

/// Reads the lines of a process's stream on a separate thread: [`receive`] has a limit, the stream
/// has none. Unreceived lines do not block the process.
pub fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // The test may already have what it needs.
            drop(sender.send(line));
        }
    });
    lines
}

/// Waits for the end of a thread; returns its result.
///
/// # Panics
///
/// The thread panicked (its panic is resumed), or has not ended within [`LIMIT`]. It then keeps
/// running.
#[track_caller]
pub fn join<T>(what: &str, thread: JoinHandle<T>) -> T {
    until(what, || thread.is_finished());
    thread.join().unwrap_or_else(|panic: Box<dyn Any + Send>| std::panic::resume_unwind(panic))
}

/// Calls a possibly blocking function on a new thread; returns its result.
///
/// # Panics
///
/// As [`join`].
#[track_caller]
pub fn within_limit<T: Send + 'static>(what: &str, call: impl FnOnce() -> T + Send + 'static) -> T {
    join(what, std::thread::spawn(call))
}

/// Waits for the end of a process.
///
/// # Panics
///
/// The process has not ended within [`LIMIT`]. It is then killed.
#[track_caller]
pub fn wait(what: &str, process: &mut Child) -> ExitStatus {
    wait_for(LIMIT, process).unwrap_or_else(|| missed(what))
}

/// Runs a program to its end; returns its output and exit status. Its standard input is that of the
/// command.
///
/// # Panics
///
/// The program cannot be started, or has not ended within [`LIMIT`]. It is then killed.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    let what = format!("{command:?} ends");
    let mut process = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [stdout, stderr] = [process.stdout.take().map(read_all), process.stderr.take().map(read_all)]
        .map(|reading| reading.expect("stdout is piped"));
    let status = wait(&what, &mut process);
    Output { status, stdout: join(&what, stdout), stderr: join(&what, stderr) }
}

/// Reads a stream to its end on a separate thread.
fn read_all(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut octets = Vec::new();
        stream.read_to_end(&mut octets).expect("a pipe can be read");
        octets
    })
}

/// Calls a closure on drop, also during a panic. In the closure of a `thread::scope` it sets the
/// flags and closes the entities for which threads of the scope wait, since the scope ends only
/// when these threads have ended.
#[must_use]
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[track_caller]
fn missed(what: &str) -> ! {
    panic!("waited {} s until: {what}", LIMIT.as_secs())
}

fn poll_until<T>(limit: Duration, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        let found = poll();
        let waited = begin.elapsed();
        if found.is_some() || waited >= limit {
            return found;
        }
        if waited < SPIN_TIME {
            std::thread::yield_now();
        } else {
            // tidy-allow(sleep): between two polls of the condition that it waits for.
            std::thread::sleep(SPIN_TIME);
        }
    }
}

fn wait_for(limit: Duration, process: &mut Child) -> Option<ExitStatus> {
    let ended = poll_until(limit, || process.try_wait().expect("the process is a child"));
    if ended.is_none() {
        process.kill().expect("the process is a child");
        process.wait().expect("the process was killed");
    }
    ended
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::{OnDrop, join, missed, output, poll_until, receive, until, until_some, wait_for};

    /// Returns the message of a panic.
    fn message(call: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("the call panics");
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a message")
    }

    #[test]
    fn wait_ends_with_its_condition_or_at_its_limit() {
        let mut polls = 0;
        until("three looks", || {
            polls += 1;
            polls == 3
        });
        assert_eq!(polls, 3);
        assert_eq!(until_some("a value", || Some(7)), 7);
        assert_eq!(poll_until(Duration::from_millis(5), || None::<()>), None);
        assert_eq!(message(|| missed("links are up")), "waited 120 s until: links are up");
    }

    #[test]
    fn panic_of_a_thread_is_reported_immediately() {
        let (sender, messages) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            drop(sender);
            panic!("on purpose");
        });
        assert_eq!(message(|| receive("a message", &messages)), "a message: its thread has ended");
        assert_eq!(message(|| join("its end", thread)), "on purpose");
    }

    #[test]
    fn process_that_does_not_end_is_killed() {
        let mut endless = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("coreutils");
        assert_eq!(wait_for(Duration::from_millis(20), &mut endless), None);
        assert!(endless.try_wait().expect("a child").is_some(), "the process was killed");
    }

    #[test]
    fn output_contains_both_streams_completely() {
        let made = output(Command::new("sh").args(["-c", "head -c 200000 /dev/zero; echo no >&2; exit 3"]));
        assert_eq!((made.stdout.len(), &made.stderr[..], made.status.code()), (200_000, &b"no\n"[..], Some(3)));
    }

    #[test]
    fn scope_whose_closure_panics_ends_its_threads() {
        let is_over = AtomicBool::new(false);
        let panic = message(|| {
            std::thread::scope(|scope| {
                let _ending = OnDrop(|| is_over.store(true, Ordering::Relaxed));
                scope.spawn(|| until("the end of the scope", || is_over.load(Ordering::Relaxed)));
                panic!("on purpose");
            })
        });
        assert_eq!(panic, "on purpose");
    }
}
