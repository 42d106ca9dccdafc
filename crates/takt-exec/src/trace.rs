//! Trace of the last jobs in memory, and its export for the trace viewers of Chrome and Perfetto.

use alloc::boxed::Box;
use alloc::vec;
#[cfg(feature = "std")]
use std::io;

use crate::jobs::{JobKind, Run};
use crate::priority::Priority;

/// Run of a job in 24 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Start time in nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// Execution time in nanoseconds, saturated at some 4.3 s.
    pub duration_ns: u32,
    /// Owner of the job; see [`Run::owner`].
    pub owner: u32,
    /// Kind of the job.
    pub kind: JobKind,
    /// Priority of the job.
    pub priority: Priority,
}

impl TraceRecord {
    pub(crate) fn of(run: &Run) -> Self {
        let Run { kind, priority, owner, began_ns, .. } = *run;
        Self { began_ns, duration_ns: run.duration_ns().try_into().unwrap_or(u32::MAX), owner, kind, priority }
    }
}

/// Ring buffer of the last jobs. The newest job overwrites the oldest.
#[derive(Clone, Debug)]
pub struct Trace {
    records: Box<[TraceRecord]>,
    /// Number of jobs ever recorded.
    count: u64,
}

impl Trace {
    /// Returns a trace of the last `jobs` jobs, at least one.
    #[must_use]
    pub fn new(jobs: usize) -> Self {
        let none =
            TraceRecord { began_ns: 0, duration_ns: 0, owner: 0, kind: JobKind::Receive, priority: Priority::NORMAL };
        Self { records: vec![none; jobs.max(1)].into_boxed_slice(), count: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, record: TraceRecord) {
        let index = self.count % self.records.len() as u64;
        self.records[index as usize] = record;
        self.count += 1;
    }

    /// Returns the records from the oldest to the newest.
    pub fn records(&self) -> impl Iterator<Item = &TraceRecord> {
        let capacity = self.records.len() as u64;
        let first = self.count.saturating_sub(capacity);
        (first..self.count).map(move |number| &self.records[(number % capacity) as usize])
    }

    /// Returns the number of overwritten records.
    #[must_use]
    pub fn overwritten(&self) -> u64 {
        self.count.saturating_sub(self.records.len() as u64)
    }
}

/// Writes jobs in Chrome's trace event format, which `chrome://tracing` and Perfetto read: complete
/// events (`"ph":"X"`), times in microseconds. `thread` is the name of the thread; `name_of` names
/// each job.
///
/// # Errors
/// Fails if writing to `out` fails.
#[cfg(feature = "std")]
pub fn write_chrome<'a, N: std::fmt::Display>(
    mut out: impl io::Write,
    thread: &str,
    records: impl IntoIterator<Item = &'a TraceRecord>,
    name_of: impl Fn(&TraceRecord) -> N,
) -> io::Result<()> {
    let pid = std::process::id();
    write!(out, r#"{{"displayTimeUnit":"ns","traceEvents":[{{"ph":"M","name":"thread_name","pid":{pid},"tid":1,"#)?;
    write!(out, r#""args":{{"name":"{}"}}}}"#, Escaped(thread))?;
    for record in records {
        let TraceRecord { began_ns, duration_ns, kind, priority, .. } = *record;
        let name = name_of(record).to_string();
        write!(out, ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":1,\"cat\":\"{kind}\",\"name\":\"{}\",", Escaped(&name))?;
        write!(out, "\"ts\":{}.{:03},", began_ns / 1000, began_ns % 1000)?;
        write!(out, "\"dur\":{}.{:03},\"args\":{{\"priority\":{priority}}}}}", duration_ns / 1000, duration_ns % 1000)?;
    }
    out.write_all(b"]}\n")
}

/// Text escaped for a JSON string.
#[cfg(feature = "std")]
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

#[cfg(feature = "std")]
impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                _ if character.is_control() => write!(f, "\\u{:04x}", u32::from(character))?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn record(began_ns: u64) -> TraceRecord {
        let (kind, priority) = (JobKind::Timers, Priority::new(-3));
        TraceRecord::of(&Run { kind, priority, owner: 2, began_ns, ended_ns: began_ns + 1_500 })
    }

    #[test]
    fn newest_records_overwrite_the_oldest() {
        let mut trace = Trace::new(3);
        assert_eq!(trace.records().count(), 0);
        (1..=5).for_each(|began_ns| trace.push(record(began_ns)));
        let began: Vec<_> = trace.records().map(|record| record.began_ns).collect();
        assert_eq!((began.as_slice(), trace.overwritten()), (&[3, 4, 5][..], 2));
    }

    #[test]
    fn duration_of_a_long_job_saturates() {
        let run = Run { began_ns: 0, ended_ns: u64::MAX, kind: JobKind::Receive, priority: Priority::MAX, owner: 0 };
        assert_eq!(TraceRecord::of(&run).duration_ns, u32::MAX);
    }

    #[cfg(feature = "std")]
    #[test]
    fn chrome_trace_has_the_expected_format() {
        let mut out = Vec::new();
        write_chrome(&mut out, "takt \"rx\"", &[record(1_234_567)], |record| format!("a\n{}", record.owner))
            .expect("memory");
        let text = String::from_utf8(out).expect("text");
        let pid = std::process::id();
        assert_eq!(
            text,
            format!(
                "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{pid},\"tid\":1,\
                 \"args\":{{\"name\":\"takt \\\"rx\\\"\"}}}},\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":1,\"cat\":\"timers\",\
                 \"name\":\"a\\u000a2\",\"ts\":1234.567,\"dur\":1.500,\"args\":{{\"priority\":-3}}}}]}}\n"
            )
        );
    }
}
