//! Project rules that the compiler does not check, each a function from the tree to a [`Report`].
//!
//! A rule that checks lines can be disabled for one line by a comment on it or on the line above,
//! with the reason: `tidy-allow(sleep): the workload is one sample a millisecond`. The rules on
//! whole files (edges, sizes, documentation, `no_std`) have no such exception.

mod doctests;
mod documentation;
pub mod edges;
mod errors;
mod links;
mod module_files;
mod mutant_globs;
mod mutations;
mod no_std;
mod policy_tests;
mod prose;
mod sizes;
mod words;

use std::fmt;
use std::path::Path;

use crate::conformance;
use crate::tree::{SourceFile, SourceTree};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Reported, but does not fail the check.
    Warning,
    /// Fails the check.
    Failure,
}

/// Violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// Name of the rule, as used in `tidy-allow`.
    pub rule: &'static str,
    /// Path of the file, or crate for a rule about edges.
    pub place: String,
    /// Line number from 1, if the finding concerns one line.
    pub line: Option<usize>,
    /// Description of the problem and its remedy.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Failure => "error",
        };
        write!(f, "{severity}[{}] {}", self.rule, self.place)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Findings of the checks.
#[derive(Default)]
pub struct Report {
    /// Findings in the order of the rules, then of the files.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Adds a failure about a whole file or crate.
    pub fn fail(&mut self, rule: &'static str, place: &str, message: String) {
        self.push(Severity::Failure, rule, place, None, message);
    }

    /// Adds a warning about a file, or a line in it.
    pub fn warn(&mut self, rule: &'static str, place: &str, line: Option<usize>, message: String) {
        self.push(Severity::Warning, rule, place, line, message);
    }

    /// Adds a failure about one line, unless a `tidy-allow` comment disables the rule there.
    pub fn fail_line(&mut self, rule: &'static str, file: &SourceFile, line: usize, message: String) {
        if !is_allowed(rule, file, line) {
            self.push(Severity::Failure, rule, &file.path, Some(line), message);
        }
    }

    /// Returns the number of findings that fail the check.
    pub fn failure_count(&self) -> usize {
        let failures = self.findings.iter().filter(|f| f.severity == Severity::Failure);
        failures.count()
    }

    fn push(&mut self, severity: Severity, rule: &'static str, place: &str, line: Option<usize>, message: String) {
        self.findings.push(Finding { severity, rule, place: place.to_owned(), line, message });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let failure_count = self.failure_count();
        let warning_count = self.findings.len() - failure_count;
        writeln!(f, "tidy: {failure_count} errors, {warning_count} warnings")
    }
}

/// Runs every rule on the workspace at `root`.
pub fn run(root: &Path) -> Result<Report, String> {
    let tree = SourceTree::load(root)?;
    let metadata = edges::cargo_metadata(root)?;
    let mut report = Report::default();
    edges::check(&metadata, &mut report)?;
    check_sources(&tree, &mut report);
    report.findings.extend(conformance::check(&tree).findings);
    Ok(report)
}

fn check_sources(tree: &SourceTree, report: &mut Report) {
    sizes::check(tree, report);
    words::check(tree, report);
    documentation::check(tree, report);
    doctests::check(tree, report);
    errors::check(tree, report);
    links::check(tree, report);
    no_std::check(tree, report);
    module_files::check(tree, report);
    mutations::check(tree, report);
    mutant_globs::check(tree, report);
    policy_tests::check(tree, report);
    prose::check(tree, report);
}

/// Reports whether line `line` of `file`, or the one above, has `tidy-allow(rule): reason`.
fn is_allowed(rule: &str, file: &SourceFile, line: usize) -> bool {
    let mark = format!("tidy-allow({rule}): ");
    let above = line.saturating_sub(2);
    let near = file.text.lines().skip(above).take(line - above);
    near.into_iter().any(|text| {
        let reason = text.split_once(&mark).map_or("", |(_, reason)| reason);
        !reason.trim().is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::{Report, Severity, check_sources};
    use crate::fixture::Fixture;
    use crate::tree::SourceFile;

    /// Returns the findings of `check` on `files`, as `rule place:line`.
    pub(super) fn findings(files: &[(&str, &str)], check: fn(&crate::tree::SourceTree, &mut Report)) -> Vec<String> {
        let fixture = Fixture::new(files);
        let mut report = Report::default();
        check(&fixture.tree(), &mut report);
        let name = |f: &super::Finding| match f.line {
            Some(line) => format!("{} {}:{line}", f.rule, f.place),
            None => format!("{} {}", f.rule, f.place),
        };
        report.findings.iter().map(name).collect()
    }

    #[test]
    fn clean_tree_has_no_finding() {
        let files = [
            ("crates/protocol/takt-wire/src/lib.rs", "//! Wire.\n#![no_std]\npub mod a;\n"),
            ("crates/protocol/takt-wire/src/a.rs", "//! A.\npub fn f() {}\n"),
            ("crates/transport/takt-packet/src/lib.rs", "//! Packets.\n#![no_std]\n"),
            ("crates/controller/takt-openflow/src/lib.rs", "//! OpenFlow.\n#![no_std]\n"),
            ("crates/timing/takt-schedule/src/lib.rs", "//! Jobs.\n#![no_std]\n"),
            ("crates/protocol/takt-xtypes/src/lib.rs", "//! Types.\n#![no_std]\n"),
            ("crates/protocol/takt-core/src/lib.rs", "//! Core.\n#![no_std]\n"),
            ("README.md", "# Door\n"),
        ];
        assert_eq!(findings(&files, check_sources), Vec::<String>::new());
    }

    #[test]
    fn allowance_requires_the_rule_and_a_reason() {
        let text = "// tidy-allow(sleep): paced workload\nhere\n\n// tidy-allow(sleep):\nhere\n";
        let file = SourceFile::new("x.rs", text);
        let mut report = Report::default();
        report.fail_line("sleep", &file, 2, "lifted".into());
        report.fail_line("sleep", &file, 1, "lifted on the line itself".into());
        report.fail_line("unwrap", &file, 2, "another rule".into());
        report.fail_line("sleep", &file, 5, "no reason".into());
        let lines: Vec<_> = report.findings.iter().map(|f| f.line).collect();
        assert_eq!(lines, [Some(2), Some(5)]);
    }

    #[test]
    fn report_counts_and_prints_findings() {
        let mut report = Report::default();
        report.fail("size", "a.rs", "too long".into());
        report.warn("size", "b.rs", Some(3), "look twice".into());
        assert_eq!(report.failure_count(), 1);
        assert_eq!(report.findings[1].severity, Severity::Warning);
        let text = report.to_string();
        assert!(text.contains("error[size] a.rs: too long"));
        assert!(text.contains("warning[size] b.rs:3: look twice"));
        assert!(text.ends_with("tidy: 1 errors, 1 warnings\n"));
    }
}
