//! Warnings and other records of the library, for people: to the program's `tracing` subscriber, else to standard error as
//! `TAKT_LOG` says (`docs/logging.md`).
//!
//! A record is queued where it arises and written by the thread `takt-log`, which is started when there is a record, is scheduled as
//! any other thread (SCHED_OTHER), and ends when there is nothing left to write. So no thread that drives a participant ever waits for
//! a terminal, and no subscriber runs under a lock of Takt. Nothing is recorded on the data path: no sample that is written or taken
//! leads here.
//!
//! Bounds: [`RECORDS_MAX`] records wait; further ones are dropped and counted, and the count is written.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Records that wait to be written.
const RECORDS_MAX: usize = 256;
/// The thread ends when there was nothing to write for so long.
const IDLE: Duration = Duration::from_millis(100);
/// How long [`flush`] waits at most.
const FLUSH: Duration = Duration::from_millis(200);

/// The variable that says what is written to standard error.
pub(crate) const TAKT_LOG: &str = "TAKT_LOG";

/// How important a record is; each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Something does not work that the user may expect to.
    Warn,
    /// Participants come and go.
    Info,
    /// Endpoints are matched and unmatched.
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
    /// Records that found no room since the last one that was written.
    dropped: u64,
    /// The thread runs.
    is_running: bool,
    /// Records that the thread has taken and not written yet.
    in_flight: usize,
}

#[derive(Default)]
struct Log {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Log {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A subscriber that panics does so in the thread that writes, outside this lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static LOG: OnceLock<Log> = OnceLock::new();

fn log() -> &'static Log {
    LOG.get_or_init(Log::default)
}

/// What holds where [`TAKT_LOG`] is not set.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Whether warnings are written to standard error if the variable `TAKT_LOG` is not set and the program has no `tracing` subscriber; they
/// are by default. For programs that tell their users themselves what [`warnings`](crate::DomainParticipant::warnings) and
/// [`refusals`](crate::DomainParticipant::refusals) say.
pub fn warn_by_default(is_on: bool) {
    IS_QUIET.store(!is_on, Ordering::Relaxed);
}

/// What [`TAKT_LOG`] says: the least important level that is written, `None` for nothing.
fn own_level() -> Option<Level> {
    static LEVEL: OnceLock<Option<Option<Level>>> = OnceLock::new();
    let level = *LEVEL.get_or_init(|| {
        let value = std::env::var(TAKT_LOG).unwrap_or_default();
        if value.is_empty() {
            return None;
        }
        let level = parse(&value);
        if level.is_none() {
            let expected = "off, warn, info, debug or trace is expected, and warn is taken";
            queue(Record { level: Level::Warn, text: format!("{TAKT_LOG} is {value:?}; {expected}") });
        }
        Some(level.unwrap_or(Some(Level::Warn)))
    });
    let by_default = (!IS_QUIET.load(Ordering::Relaxed)).then_some(Level::Warn);
    level.unwrap_or(by_default)
}

/// The level of a value; `None` if it is none of them.
fn parse(value: &str) -> Option<Option<Level>> {
    match value.trim().to_ascii_lowercase().as_str() {
        "warn" => Some(Some(Level::Warn)),
        "off" | "0" => Some(None),
        "info" => Some(Some(Level::Info)),
        // There is nothing below the level of matches: the data path has no records.
        "debug" | "trace" => Some(Some(Level::Debug)),
        _ => None,
    }
}

/// Whether a record of this level is wanted. Ask before making one.
pub(crate) fn is_on(level: Level) -> bool {
    #[cfg(feature = "tracing")]
    if tracing::dispatcher::has_been_set() {
        return tracing::level_filters::LevelFilter::current() >= of_tracing(level);
    }
    own_level().is_some_and(|least| level <= least)
}

#[cfg(feature = "tracing")]
fn of_tracing(level: Level) -> tracing::Level {
    match level {
        Level::Warn => tracing::Level::WARN,
        Level::Info => tracing::Level::INFO,
        Level::Debug => tracing::Level::DEBUG,
    }
}

/// Has a record written.
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

/// Waits a moment for what was recorded to be written: a program may end now.
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

/// The thread: writes until there was nothing to write for a moment.
fn write_all() {
    crate::runtime::os::be_ordinary();
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
            let text = format!("{dropped} further records were dropped: more than {RECORDS_MAX} were waiting");
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
    // Where standard error is closed there is nobody to say it to.
    drop(std::io::stderr().write_all(line.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_and_anything_else_is_none() {
        assert_eq!(parse("warn"), Some(Some(Level::Warn)));
        assert_eq!(parse("off"), Some(None));
        assert_eq!(parse(" Info "), Some(Some(Level::Info)));
        assert_eq!(parse("trace"), Some(Some(Level::Debug)));
        assert_eq!(parse("loud"), None);
    }
}
