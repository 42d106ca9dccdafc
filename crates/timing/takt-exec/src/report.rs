//! Execution time report of an executor: the file that the timing analysis reads as measured times
//! (`takt analyze --measured`).
//!
//! The file is one JSON object with these members:
//!
//! | member | content |
//! |---|---|
//! | `executor` | name of the executor |
//! | `participants` | number of participants that the executor drives |
//! | `version` | version of the middleware in the program |
//! | `machine` | `host`, `kernel`, `processor` |
//! | `jobs` | one object for each kind and priority of jobs, and one for each application job |
//!
//! An object of `jobs` has `kind`, `priority`, `count`, `p999_ns` (99.9 % quantile) and `max_ns`,
//! and `name` if it is an application job. Jobs that never ran are left out.

use std::fs;
use std::io;

use takt_schedule::{Histogram, JobClass, JobKind, Priority};

use crate::trace::Escaped;

/// Execution times of the jobs of one kind and priority, or of one name.
#[derive(Clone, Copy, Debug)]
pub struct JobStatisticsRow<'a> {
    /// Kind of the jobs.
    pub kind: JobKind,
    /// Name of the application job; `None` for other jobs.
    pub name: Option<&'a str>,
    /// Priority of the jobs.
    pub priority: Priority,
    /// Execution times in nanoseconds.
    pub durations: &'a Histogram,
}

impl<'a> From<&'a JobClass> for JobStatisticsRow<'a> {
    fn from(class: &'a JobClass) -> Self {
        Self { kind: class.kind, name: None, priority: class.priority, durations: &class.durations }
    }
}

/// Machine of a measurement. Values that the kernel does not provide are empty.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub processor: String,
}

impl Machine {
    /// Reads the values of this machine from `/proc`.
    #[must_use]
    pub fn now() -> Self {
        let [host, kernel] =
            ["hostname", "osrelease"].map(|name| read_kernel_file(&format!("/proc/sys/kernel/{name}")));
        let cpuinfo = read_kernel_file("/proc/cpuinfo");
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let processor = model.map_or("", |(_, name)| name.trim()).to_owned();
        Self { host, kernel, processor }
    }
}

/// Writes the report of an executor with this name and number of participants. `version` is that of
/// the middleware in the program.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_report<'a>(
    mut out: impl io::Write,
    (executor, participants): (&str, usize),
    version: &str,
    rows: impl IntoIterator<Item = JobStatisticsRow<'a>>,
) -> io::Result<()> {
    let Machine { host, kernel, processor } = Machine::now();
    write!(out, "{{\"executor\": \"{}\", \"participants\": {participants}, ", Escaped(executor))?;
    writeln!(out, "\"version\": \"{}\",", Escaped(version))?;
    write!(out, " \"machine\": {{\"host\": \"{}\", \"kernel\": \"{}\", ", Escaped(&host), Escaped(&kernel))?;
    write!(out, "\"processor\": \"{}\"}},\n \"jobs\": [", Escaped(&processor))?;
    let mut separator = "";
    for row in rows.into_iter().filter(|row| row.durations.count() > 0) {
        let JobStatisticsRow { kind, name, priority, durations } = row;
        write!(out, "{separator}\n  {{\"kind\": \"{kind}\", ")?;
        if let Some(name) = name {
            write!(out, "\"name\": \"{}\", ", Escaped(name))?;
        }
        let (count, p999_ns, max_ns) = (durations.count(), durations.quantile_ns(0.999), durations.max_ns());
        write!(out, "\"priority\": {priority}, \"count\": {count}, \"p999_ns\": {p999_ns}, \"max_ns\": {max_ns}}}")?;
        separator = ",";
    }
    out.write_all(b"\n ]}\n")
}

/// Returns the content of a kernel file without the newline; empty if it cannot be read.
fn read_kernel_file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_jobs_that_never_ran_are_left_out() {
        let (mut some, none) = (Histogram::new(), Histogram::new());
        [5, 7_000].into_iter().for_each(|ns| some.record(ns));
        let priority = Priority::new(-3);
        let row = |kind, name, durations| JobStatisticsRow { kind, name, priority, durations };
        let rows = [
            row(JobKind::Receive, None, &some),
            row(JobKind::Timers, None, &none),
            row(JobKind::Application, Some("a \"loop\""), &some),
        ];
        let mut out = Vec::new();
        write_report(&mut out, ("e\n", 2), "0.1", rows).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.starts_with(
                "{\"executor\": \"e\\u000a\", \"participants\": 2, \"version\": \"0.1\",\n \"machine\": {\"host\": \""
            ),
            "{text}"
        );
        let figures = "\"priority\": -3, \"count\": 2, \"p999_ns\": 7000, \"max_ns\": 7000}";
        let jobs = format!(
            "\"jobs\": [\n  {{\"kind\": \"receive\", {figures},\n  {{\"kind\": \"application\", \"name\": \"a \\\"loop\\\"\", {figures}\n ]}}\n"
        );
        assert!(text.ends_with(&jobs), "{text}");
    }
}
