//! Line of progress of a step that takes longer than two seconds.
//!
//! The line is on standard error, only if that is a terminal, and is removed when the step ends. A
//! thread writes it, so the step itself does not change. Measurements do not use it, since the
//! thread would disturb them.

use crate::output::show_progress;
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time without a line.
const QUIET: Duration = Duration::from_secs(2);
/// Time between two updates of the line.
const PERIOD: Duration = Duration::from_secs(1);

/// Runs a step and shows what it does, with the time since its begin.
pub fn during<T>(what: &str, step: impl FnOnce() -> T) -> T {
    if !stderr().is_terminal() {
        return step();
    }
    show(what, QUIET, PERIOD, show_progress, step)
}

fn show<T>(
    what: &str,
    quiet: Duration,
    period: Duration,
    mut write: impl FnMut(&str) + Send,
    step: impl FnOnce() -> T,
) -> T {
    let begin = Instant::now();
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        let shown = std::thread::Builder::new().name("takt-progress".to_owned()).spawn_scoped(scope, move || {
            let mut wait = quiet;
            while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                write(&format!("takt: {what}, {} s", begin.elapsed().as_secs()));
                wait = period;
            }
            write("");
        });
        let result = step();
        drop(ended);
        // Without the thread, the step has no line.
        drop(shown);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Returns the lines of a step that waits for the first of them, or for none.
    fn lines(is_long: bool) -> Vec<String> {
        let (lines, (shown, is_shown)) = (Mutex::new(Vec::new()), channel());
        let quiet = if is_long { Duration::ZERO } else { Duration::from_secs(3600) };
        let write = |line: &str| {
            lines.lock().expect("no panic").push(line.to_owned());
            // The receiver has gone once the step has ended.
            let _ = shown.send(());
        };
        let step = || {
            if is_long {
                is_shown.recv_timeout(Duration::from_secs(60)).expect("a line")
            }
        };
        show("analyzing", quiet, Duration::from_millis(1), write, step);
        lines.into_inner().expect("no panic")
    }

    #[test]
    fn long_step_has_a_line_that_is_removed_at_its_end() {
        let lines = lines(true);
        assert!(lines[0].starts_with("takt: analyzing, ") && lines[0].ends_with(" s"), "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some(""));
    }

    #[test]
    fn short_step_has_no_line() {
        assert_eq!(lines(false), [""]);
    }
}
