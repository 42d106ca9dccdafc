//! What an executor's jobs took, as a file for the timing analysis (`takt analyze --measured`).
//!
//! One JSON object: `executor`, `participants` (how many it drives), `version`, `machine` (`host`, `kernel`, `processor`), and `jobs`, each with `kind`, `name` if it is one of
//! the application, `priority`, `count`, and `p999_ns` and `max_ns` in nanoseconds. What never ran is left out.

use std::fs;
use std::io;

use crate::histogram::Histogram;
use crate::jobs::{JobClass, JobKind};
use crate::priority::Priority;
use crate::trace::Escaped;

/// The jobs of one kind and priority, or of one name.
#[derive(Clone, Copy, Debug)]
pub struct JobAccount<'a> {
    /// What they do.
    pub kind: JobKind,
    /// Which job of the application it is.
    pub name: Option<&'a str>,
    /// How urgent they are.
    pub priority: Priority,
    /// How long they took.
    pub durations: &'a Histogram,
}

impl<'a> From<&'a JobClass> for JobAccount<'a> {
    fn from(class: &'a JobClass) -> Self {
        Self { kind: class.kind, name: None, priority: class.priority, durations: &class.durations }
    }
}

/// The machine that something was measured on. What the kernel does not tell is empty.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// The release of its kernel.
    pub kernel: String,
    /// The model of its processors.
    pub processor: String,
}

impl Machine {
    /// This one, as it is now.
    #[must_use]
    pub fn now() -> Self {
        let [host, kernel] = ["hostname", "osrelease"].map(|name| told(&format!("/proc/sys/kernel/{name}")));
        let cpuinfo = told("/proc/cpuinfo");
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let processor = model.map_or("", |(_, name)| name.trim()).to_owned();
        Self { host, kernel, processor }
    }
}

/// Writes the accounts of the executor of this name, which drives so many participants. `version` is that of the program's middleware.
///
/// # Errors
/// Those of `out`.
pub fn write_accounts<'a>(
    mut out: impl io::Write,
    (executor, participants): (&str, usize),
    version: &str,
    accounts: impl IntoIterator<Item = JobAccount<'a>>,
) -> io::Result<()> {
    let Machine { host, kernel, processor } = Machine::now();
    write!(out, "{{\"executor\": \"{}\", \"participants\": {participants}, ", Escaped(executor))?;
    writeln!(out, "\"version\": \"{}\",", Escaped(version))?;
    write!(out, " \"machine\": {{\"host\": \"{}\", \"kernel\": \"{}\", ", Escaped(&host), Escaped(&kernel))?;
    write!(out, "\"processor\": \"{}\"}},\n \"jobs\": [", Escaped(&processor))?;
    let mut separator = "";
    for account in accounts.into_iter().filter(|account| account.durations.count() > 0) {
        let JobAccount { kind, name, priority, durations } = account;
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

/// What the kernel tells, without the end of the line; empty if it does not.
fn told(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_what_never_ran_is_left_out() {
        let (mut some, none) = (Histogram::new(), Histogram::new());
        [5, 7_000].into_iter().for_each(|ns| some.record(ns));
        let priority = Priority::new(-3);
        let account = |kind, name, durations| JobAccount { kind, name, priority, durations };
        let accounts = [
            account(JobKind::Receive, None, &some),
            account(JobKind::Timers, None, &none),
            account(JobKind::Application, Some("a \"loop\""), &some),
        ];
        let mut out = Vec::new();
        write_accounts(&mut out, ("e\n", 2), "0.1", accounts).expect("memory");
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
