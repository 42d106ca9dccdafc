//! What became of the tests of one program: libtest's lines, and the records of tests that could not run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitStatus;
use std::time::Duration;

/// A test that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// `package::target::test`.
    pub test: String,
    /// What the machine or the run lacks.
    pub reason: String,
}

/// What failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `package::target::test`, or what is wrong with the program as a whole.
    pub what: String,
    /// Where it panicked, and the first lines of the message; empty if it printed none.
    pub why: Vec<String>,
}

/// What became of the tests of one program.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `package::target`.
    pub program: String,
    /// Tests that ran and passed.
    pub passed: usize,
    /// Tests that failed, by name where libtest printed it.
    pub failed: usize,
    /// Those that failed, and what is wrong with the program as a whole.
    pub failures: Vec<Failure>,
    /// Tests that did not run.
    pub skips: Vec<Skip>,
    /// All names that libtest printed, but those of roles.
    pub tests: Vec<String>,
    /// Processes that tests start.
    pub roles: usize,
    /// Time that it took.
    pub took: Duration,
    /// What is printed of it.
    pub output: String,
}

/// What libtest prints of one test.
enum Verdict<'a> {
    Passed,
    Failed,
    /// With the reason, or "".
    Ignored(&'a str),
}

/// Name and verdict of a line, `test NAME ... ok`. A process that a test started may have printed something in front of it.
fn verdict(line: &str) -> Option<(&str, Verdict<'_>)> {
    let (name, verdict) = line.get(line.find("test ")? + 5..)?.split_once(" ... ")?;
    let name = name.split(" - should panic").next()?;
    let verdict = match verdict {
        "ok" => Verdict::Passed,
        "FAILED" => Verdict::Failed,
        _ => Verdict::Ignored(verdict.strip_prefix("ignored")?.trim_start_matches(", ")),
    };
    Some((name, verdict))
}

/// The sums of a line, `test result: ok. 3 passed; 0 failed; 1 ignored; ...`: passed, failed.
fn sums(line: &str) -> Option<(usize, usize)> {
    let text = line.get(line.find("test result: ")?..)?;
    // tidy-allow(dropped-cause): what is not a number is another line
    let number = |word: &str| text.split(word).next()?.rsplit(' ').next()?.parse().ok();
    Some((number(" passed;")?, number(" failed;")?))
}

/// Lines of a panic's message at most, and characters of a line.
const WHY_LINES: usize = 8;
const WHY_LEN: usize = 240;

/// Where the test `name` panicked and the first lines of the message, as libtest prints them at its end.
fn panic_of(name: &str, stdout: &str) -> Vec<String> {
    let section = format!("---- {name} stdout ----");
    let own = stdout.lines().skip_while(|line| !line.starts_with(&section)).skip(1);
    let own = own.take_while(|line| !line.starts_with("---- ") && *line != "failures:");
    let from_panic = own.skip_while(|line| !line.contains("panicked at "));
    let message = from_panic.take_while(|line| !line.starts_with("stack backtrace:") && !line.starts_with("note: "));
    message.take(WHY_LINES).map(|line| line.chars().take(WHY_LEN).collect()).collect()
}

impl Outcome {
    /// Reads what a program printed and recorded.
    pub fn read(program: &str, status: ExitStatus, took: Duration, stdout: &str, stderr: &str, records: &str) -> Self {
        let mut own = Self { program: program.to_owned(), took, ..Self::default() };
        let mut passed_names = Vec::new();
        let mut sections = 0;
        for line in stdout.lines() {
            if let Some((passed, failed)) = sums(line) {
                (own.passed, own.failed, sections) = (own.passed + passed, own.failed + failed, sections + 1);
            } else if let Some((name, verdict)) = verdict(line) {
                own.take(name, &verdict, &mut passed_names);
            }
        }
        own.take_records(records, &passed_names);
        own.explain(stdout);
        let is_whole = own.failed == own.failures.len() && sections > 0;
        if !status.success() && (own.failed == 0 || !is_whole) {
            own.fail(&format!("{program} ended with {status}"));
        } else if sections == 0 {
            own.fail(&format!("{program} printed no result"));
        }
        own.output = own.shown(stdout, stderr);
        own
    }

    fn full_name(&self, test: &str) -> String {
        format!("{}::{test}", self.program)
    }

    fn fail(&mut self, what: &str) {
        self.failed += 1;
        self.failures.push(Failure { what: what.to_owned(), why: Vec::new() });
    }

    /// Adds the panics' messages to the failed tests.
    fn explain(&mut self, stdout: &str) {
        let prefix = format!("{}::", self.program);
        for failure in &mut self.failures {
            if let Some(name) = failure.what.strip_prefix(&prefix) {
                failure.why = panic_of(name, stdout);
            }
        }
    }

    fn take<'a>(&mut self, name: &'a str, verdict: &Verdict<'_>, passed: &mut Vec<&'a str>) {
        let full = self.full_name(name);
        match verdict {
            Verdict::Ignored(reason) if reason.starts_with("role") => {
                self.roles += 1;
                return;
            }
            Verdict::Ignored(reason) => {
                let reason = if reason.is_empty() { "ignored, without a reason" } else { reason };
                self.skips.push(Skip { test: full.clone(), reason: reason.to_owned() });
            }
            Verdict::Passed => passed.push(name),
            Verdict::Failed => self.failures.push(Failure { what: full.clone(), why: Vec::new() }),
        }
        self.tests.push(full);
    }

    /// Moves tests that could not run from the passed to the skipped.
    fn take_records(&mut self, records: &str, passed: &[&str]) {
        let mut by_test = BTreeMap::new();
        for (test, reason) in records.lines().filter_map(|line| line.split_once('\t')) {
            by_test.entry(test).or_insert(reason);
        }
        for (test, reason) in by_test {
            let full = self.full_name(test);
            if passed.contains(&test) {
                self.passed -= 1;
                self.skips.push(Skip { test: full, reason: reason.to_owned() });
            } else if self.failures.iter().all(|failure| failure.what != full) {
                self.fail(&format!("{full}: `not_run` was called outside of a test's thread: {reason}"));
            }
        }
    }

    /// Its lines, and what it wrote to standard error.
    fn shown(&self, stdout: &str, stderr: &str) -> String {
        let mut text = format!("\n     Running {} ({:.1} s)\n", self.program, self.took.as_secs_f64());
        for part in [stderr.trim_end(), stdout.trim_end()] {
            if !part.is_empty() {
                writeln!(text, "{part}").expect("a string takes everything");
            }
        }
        for skip in &self.skips {
            writeln!(text, "NOT RUN: {}: {}", skip.test, skip.reason).expect("a string takes everything");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    use super::{Failure, Outcome, Skip};

    const GOOD: i32 = 0;
    /// Of a test program with a failure: exit code 101.
    const BAD: i32 = 101 << 8;
    const KILLED: i32 = 9;

    fn read(status: i32, stdout: &str, records: &str) -> Outcome {
        Outcome::read("a::it", ExitStatus::from_raw(status), Duration::ZERO, stdout, "", records)
    }

    #[test]
    fn test_that_recorded_a_reason_is_skipped_and_not_passed() {
        let stdout = "running 3 tests\ntest x::one ... ok\ntest x::two ... ok\ntest three - should panic ... ok\n\n\
            test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        // The first reason counts.
        let outcome = read(GOOD, stdout, "x::two\tnot root\nx::two\tno peer\n");
        assert_eq!((outcome.passed, outcome.failed), (2, 0));
        assert_eq!(outcome.skips, [Skip { test: "a::it::x::two".into(), reason: "not root".into() }]);
        assert_eq!(outcome.tests, ["a::it::x::one", "a::it::x::two", "a::it::three"]);
        assert!(outcome.output.contains("NOT RUN: a::it::x::two: not root"), "{}", outcome.output);
    }

    #[test]
    fn failed_test_that_recorded_a_reason_is_failed() {
        let stdout =
            "test x ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let outcome = read(BAD, stdout, "x\tnot root\n");
        assert_eq!((outcome.passed, outcome.failed, outcome.skips.len()), (0, 1, 0));
        assert_eq!(outcome.failures, [Failure { what: "a::it::x".into(), why: Vec::new() }]);
    }

    #[test]
    fn failed_test_is_told_with_its_panic() {
        let stdout = "test x ... FAILED\ntest y ... FAILED\n\nfailures:\n\n---- x stdout ----\nprinted before\n\n\
            thread 'x' (7) panicked at tests/it/x.rs:3:5:\nassertion failed: a\n  left: 1\nstack backtrace:\n   0: a\n\n\
            ---- y stdout ----\n\nthread 'y' (8) panicked at tests/it/y.rs:4:5:\nno\nnote: run with `RUST_BACKTRACE=1`\n\n\
            failures:\n    x\n    y\n\n\
            test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        let outcome = read(BAD, stdout, "");
        let why: Vec<Vec<String>> = outcome.failures.into_iter().map(|failure| failure.why).collect();
        let of_x = ["thread 'x' (7) panicked at tests/it/x.rs:3:5:", "assertion failed: a", "  left: 1"];
        let of_y = ["thread 'y' (8) panicked at tests/it/y.rs:4:5:", "no"];
        assert_eq!(why, [of_x.to_vec(), of_y.to_vec()]);
    }

    #[test]
    fn role_is_not_counted_and_other_ignored_tests_are_skipped() {
        let stdout = "test victim ... ignored, role: started by others\ntest slow ... ignored, not written\ntest odd ... ignored\n\
            test result: ok. 0 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let outcome = read(GOOD, stdout, "");
        assert_eq!((outcome.passed, outcome.failed, outcome.roles), (0, 0, 1));
        let reasons: Vec<&str> = outcome.skips.iter().map(|skip| skip.reason.as_str()).collect();
        assert_eq!(reasons, ["not written", "ignored, without a reason"]);
    }

    #[test]
    fn reason_that_no_test_recorded_fails() {
        let stdout = "test x ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let outcome = read(GOOD, stdout, "main\tnot root\n");
        assert_eq!((outcome.passed, outcome.failed), (1, 1));
        assert!(outcome.failures[0].what.contains("a::it::main"), "{:?}", outcome.failures);
    }

    #[test]
    fn program_that_dies_or_prints_nothing_fails() {
        let outcome = read(KILLED, "running 2 tests\ntest x ... ok\n", "");
        assert_eq!((outcome.passed, outcome.failed), (0, 1));
        assert!(outcome.failures[0].what.contains("signal: 9"), "{:?}", outcome.failures);
        assert_eq!(read(GOOD, "", "").failed, 1);
        // After its result: an abort in a destructor.
        let stdout = "test x ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(read(6, stdout, "").failed, 1);
    }

    #[test]
    fn sections_of_doc_tests_add_up() {
        let stdout = "test crates/x/src/lib.rs - f (line 3) ... ok\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
            test crates/y/src/lib.rs - (line 9) - compile fail ... ok\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n";
        let outcome = read(GOOD, stdout, "");
        assert_eq!((outcome.passed, outcome.failed, outcome.tests.len()), (2, 0, 2));
    }
}
