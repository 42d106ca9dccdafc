//! Log of the library: warnings and other records for the program's `tracing` subscriber, or else
//! for standard error as `TAKT_LOG` selects (`docs/guide/logging.md`).
//!
//! Records are queued and written by the thread `takt-log`. The first record starts the thread,
//! which has the policy SCHED_OTHER and ends when no records are left. A thread that drives a
//! participant therefore never waits for a terminal, and a subscriber never runs under a lock of
//! Takt. The data path logs nothing: writing and taking samples creates no records.
//!
//! Bounds: at most [`RECORDS_MAX`] records are queued. Further records are dropped and counted, and
//! the count is logged.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of queued records.
const RECORDS_MAX: usize = 256;
/// Idle time after which the thread ends.
const IDLE: Duration = Duration::from_millis(100);
/// Maximum time that [`flush`] waits.
const FLUSH: Duration = Duration::from_millis(200);

/// Environment variable that selects the records written to standard error.
pub(crate) const TAKT_LOG: &str = "TAKT_LOG";

/// Severity of a record. Each level includes the levels before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// A failure that concerns the user.
    Warn,
    /// Participants discovered and lost.
    Info,
    /// Endpoints matched and unmatched.
    Debug,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Warn => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

struct Record {
    level: Level,
    text: String,
}

#[derive(Default)]
struct Queue {
    records: VecDeque<Record>,
    /// Records dropped since the last one was written.
    dropped: u64,
    /// The thread is running.
    is_running: bool,
    /// Records that the thread has taken but not yet written.
    in_flight: usize,
}

#[derive(Default)]
struct Log {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Log {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No subscriber runs under this lock, so a panic of a subscriber does not poison it.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static LOG: OnceLock<Log> = OnceLock::new();

fn log() -> &'static Log {
    LOG.get_or_init(Log::default)
}

/// Default where [`TAKT_LOG`] is not set: true suppresses warnings.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Sets whether warnings are written to standard error by default: if `TAKT_LOG` is not set and the
/// program has no `tracing` subscriber. Initially they are. Intended for programs that present
/// [`warnings`](crate::Diagnostics::warnings) and
/// [`refusals`](crate::Diagnostics::refusals) to their users themselves.
pub fn warn_by_default(is_on: bool) {
    IS_QUIET.store(!is_on, Ordering::Relaxed);
}

/// Returns the level that [`TAKT_LOG`] selects; `None` if nothing is written.
fn own_level() -> Option<Level> {
    static LEVEL: OnceLock<Option<Option<Level>>> = OnceLock::new();
    let level = *LEVEL.get_or_init(|| {
        let value = std::env::var(TAKT_LOG).unwrap_or_default();
        if value.is_empty() {
            return None;
        }
        let level = parse(&value);
        if level.is_none() {
            let expected = "expected off, warn, info, debug or trace; using warn";
            queue(Record { level: Level::Warn, text: format!("{TAKT_LOG} is {value:?}; {expected}") });
        }
        Some(level.unwrap_or(Some(Level::Warn)))
    });
    let by_default = (!IS_QUIET.load(Ordering::Relaxed)).then_some(Level::Warn);
    level.unwrap_or(by_default)
}

/// Parses a level; `None` if the value is not a level.
fn parse(value: &str) -> Option<Option<Level>> {
    match value.trim().to_ascii_lowercase().as_str() {
        "warn" => Some(Some(Level::Warn)),
        "off" | "0" => Some(None),
        "info" => Some(Some(Level::Info)),
        // `trace` equals `debug`: the data path has no records.
        "debug" | "trace" => Some(Some(Level::Debug)),
        _ => None,
    }
}

/// Reports whether records of this level are written. Call it before formatting a record.
pub(crate) fn is_on(level: Level) -> bool {
    #[cfg(feature = "tracing")]
    if tracing::dispatcher::has_been_set() {
        return tracing::level_filters::LevelFilter::current() >= of_tracing(level);
    }
    own_level().is_some_and(|minimum| level <= minimum)
}

#[cfg(feature = "tracing")]
fn of_tracing(level: Level) -> tracing::Level {
    match level {
        Level::Warn => tracing::Level::WARN,
        Level::Info => tracing::Level::INFO,
        Level::Debug => tracing::Level::DEBUG,
    }
}

/// Queues a record.
#[cold]
pub(crate) fn record(level: Level, text: String) {
    if is_on(level) {
        queue(Record { level, text });
    }
}

fn queue(record: Record) {
    let log = log();
    let mut queue = log.queue();
    if queue.records.len() >= RECORDS_MAX {
        queue.dropped += 1;
        return;
    }
    queue.records.push_back(record);
    if !queue.is_running {
        let started = std::thread::Builder::new().name("takt-log".to_owned()).spawn(write_all);
        queue.is_running = started.is_ok();
    }
    log.changed.notify_all();
}

/// Waits briefly until the queued records are written, in case the program is about to end.
pub(crate) fn flush() {
    let Some(log) = LOG.get() else { return };
    let deadline = Instant::now() + FLUSH;
    let mut queue = log.queue();
    while queue.is_running && (!queue.records.is_empty() || queue.in_flight > 0) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        queue = log.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Entry point of the thread: writes records until it has been idle for [`IDLE`].
fn write_all() {
    crate::runtime::os::reset_scheduling();
    let log = log();
    let mut queue = log.queue();
    loop {
        if queue.records.is_empty() {
            let (locked, timeout) = log.changed.wait_timeout(queue, IDLE).unwrap_or_else(PoisonError::into_inner);
            queue = locked;
            if queue.records.is_empty() && timeout.timed_out() {
                queue.is_running = false;
                return;
            }
            continue;
        }
        let mut records = std::mem::take(&mut queue.records);
        let dropped = std::mem::take(&mut queue.dropped);
        if dropped > 0 {
            let text = format!("{dropped} further records were dropped: more than {RECORDS_MAX} were queued");
            records.push_back(Record { level: Level::Warn, text });
        }
        queue.in_flight = records.len();
        drop(queue);
        records.iter().for_each(write);
        queue = log.queue();
        queue.in_flight = 0;
        log.changed.notify_all();
    }
}

fn write(record: &Record) {
    #[cfg(feature = "tracing")]
    if tracing::dispatcher::has_been_set() {
        let text = &record.text;
        return match record.level {
            Level::Warn => tracing::warn!(target: "takt", "{text}"),
            Level::Info => tracing::info!(target: "takt", "{text}"),
            Level::Debug => tracing::debug!(target: "takt", "{text}"),
        };
    }
    let line = format!("takt: {}: {}\n", record.level.name(), record.text);
    // If standard error is closed, the error cannot be reported.
    drop(std::io::stderr().write_all(line.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_parses_and_other_values_yield_none() {
        assert_eq!(parse("warn"), Some(Some(Level::Warn)));
        assert_eq!(parse("off"), Some(None));
        assert_eq!(parse(" Info "), Some(Some(Level::Info)));
        assert_eq!(parse("trace"), Some(Some(Level::Debug)));
        assert_eq!(parse("loud"), None);
    }
}
