//! Results of the tests of one program, from the output of libtest and the records of tests that
//! could not run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitStatus;
use std::time::Duration;

/// Test that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// `package::target::test`.
    pub test: String,
    /// Missing precondition on the machine or in the run.
    pub reason: String,
}

/// Failure of a test or program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `package::target::test`, or a problem of the whole program.
    pub what: String,
    /// Location of the panic, and the first lines of its message; empty if there are none.
    pub why: Vec<String>,
}

/// End of a program, with its output.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Exit status of the process.
    pub status: ExitStatus,
    /// Running time.
    pub took: Duration,
    /// Stacks of its threads if it was killed after its time limit.
    pub stacks: Option<&'a str>,
    /// Standard output of libtest.
    pub stdout: &'a str,
    /// Standard error.
    pub stderr: &'a str,
    /// Records written by `takt_testkit::not_run`.
    pub records: &'a str,
}

/// Results of the tests of one program.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `package::target`.
    pub program: String,
    /// Tests that ran and passed.
    pub passed: usize,
    /// Tests that failed, and problems of the whole program.
    pub failures: Vec<Failure>,
    /// Tests that did not run.
    pub skips: Vec<Skip>,
    /// All test names that libtest printed, except those of roles.
    pub tests: Vec<String>,
    /// Number of tests that are processes started by other tests.
    pub roles: usize,
    /// Running time.
    pub took: Duration,
    /// Text that is printed.
    pub output: String,
}

/// Result that libtest prints for one test.
#[derive(Clone, Copy)]
enum Verdict<'a> {
    Passed,
    Failed,
    /// Ignored, with the reason, or "".
    Ignored(&'a str),
}

/// Parses name and verdict of a line, `test NAME ... ok`. A process that a test started may have
/// printed text before it.
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

/// Parses the sums of a line, `test result: ok. 3 passed; 0 failed; 1 ignored; ...`: passed,
/// failed, ignored.
fn sums(line: &str) -> Option<[usize; 3]> {
    let text = line.get(line.find("test result: ")?..)?;
    // tidy-allow(dropped-cause): what is not a number is another line
    let number = |word: &str| text.split(word).next()?.rsplit(' ').next()?.parse().ok();
    Some([number(" passed;")?, number(" failed;")?, number(" ignored;")?])
}

/// Parses the name in a line, `test NAME has been running for over 60 seconds`.
fn slow(line: &str) -> Option<&str> {
    Some(line.get(line.find("test ")? + 5..)?.split_once(" has been running for over ")?.0)
}

/// Maximum number of lines of a panic message, and maximum number of characters of a line.
const WHY_LINES: usize = 8;
const WHY_LEN: usize = 240;

/// Returns the location and the first lines of the message of the panic in test `name`, from the
/// end of libtest's output.
fn panic_of(name: &str, stdout: &str) -> Vec<String> {
    let section = format!("---- {name} stdout ----");
    let own = stdout.lines().skip_while(|line| !line.starts_with(&section)).skip(1);
    let own = own.take_while(|line| !line.starts_with("---- ") && *line != "failures:");
    let from_panic = own.skip_while(|line| !line.contains("panicked at "));
    let message = from_panic.take_while(|line| !line.starts_with("stack backtrace:") && !line.starts_with("note: "));
    message.take(WHY_LINES).map(|line| line.chars().take(WHY_LEN).collect()).collect()
}

impl Outcome {
    /// Evaluates the output and records of a program. `listed` has the test names from `--list`;
    /// each must have one result. It is `None` for doctests, which cannot be listed.
    pub fn read(program: &str, listed: Option<&[String]>, end: &End<'_>) -> Self {
        let mut own = Self { program: program.to_owned(), took: end.took, ..Self::default() };
        let verdicts: Vec<(&str, Verdict<'_>)> = end.stdout.lines().filter_map(verdict).collect();
        for (name, verdict) in &verdicts {
            own.take(name, verdict, end.stdout);
        }
        let without_result: Vec<&str> = missing(listed, &verdicts, end.stdout);
        own.take_records(end.records, &verdicts, &without_result);
        own.check_results(listed, &verdicts, end.stdout);
        own.check_end(end, &without_result);
        own.output = own.shown(end);
        own
    }

    /// Returns the outcome of a program that could not be run.
    pub fn not_started(program: &str, why: &str) -> Self {
        let mut own = Self { program: program.to_owned(), ..Self::default() };
        own.fail(why);
        own
    }

    fn full_name(&self, test: &str) -> String {
        format!("{}::{test}", self.program)
    }

    fn fail(&mut self, what: &str) {
        self.failures.push(Failure { what: what.to_owned(), why: Vec::new() });
    }

    fn take(&mut self, name: &str, verdict: &Verdict<'_>, stdout: &str) {
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
            Verdict::Passed => self.passed += 1,
            Verdict::Failed => self.failures.push(Failure { what: full.clone(), why: panic_of(name, stdout) }),
        }
        self.tests.push(full);
    }

    /// Moves tests that could not run from passed to skipped.
    fn take_records(&mut self, records: &str, verdicts: &[(&str, Verdict<'_>)], without_result: &[&str]) {
        let mut by_test = BTreeMap::new();
        for (test, reason) in records.lines().filter_map(|line| line.split_once('\t')) {
            by_test.entry(test).or_insert(reason);
        }
        for (test, reason) in by_test {
            let full = self.full_name(test);
            let mut results = verdicts.iter().filter(|(name, _)| *name == test).map(|(_, verdict)| verdict);
            match results.next() {
                Some(Verdict::Passed) => {
                    self.passed -= 1;
                    self.skips.push(Skip { test: full, reason: reason.to_owned() });
                }
                Some(Verdict::Failed) => {}
                None if without_result.contains(&test) => {}
                _ => self.fail(&format!("{full}: `not_run` was called outside of a test's thread: {reason}")),
            }
        }
    }

    /// Checks the results against the sums that libtest prints and the names that it lists:
    /// processes started by tests cannot add results.
    fn check_results(&mut self, listed: Option<&[String]>, verdicts: &[(&str, Verdict<'_>)], stdout: &str) {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, _) in verdicts {
            *count.entry(name).or_default() += 1;
        }
        for (name, count) in count.into_iter().filter(|_| listed.is_some()) {
            let full = self.full_name(name);
            if listed.is_some_and(|listed| listed.iter().all(|one| one != name)) {
                self.fail(&format!("{full} has a result and is not listed"));
            } else if count > 1 {
                self.fail(&format!("{full} has {count} results"));
            }
        }
        let mut expected = [0; 3];
        for sums in stdout.lines().filter_map(sums) {
            expected = std::array::from_fn(|at| expected[at] + sums[at]);
        }
        let is = |of: fn(&Verdict<'_>) -> bool| verdicts.iter().filter(|(_, verdict)| of(verdict)).count();
        let found = [
            is(|verdict| matches!(verdict, Verdict::Passed)),
            is(|verdict| matches!(verdict, Verdict::Failed)),
            is(|verdict| matches!(verdict, Verdict::Ignored(_))),
        ];
        let has_ended = stdout.lines().any(|line| sums(line).is_some());
        if has_ended && found != expected {
            let text =
                |[passed, failed, ignored]: [usize; 3]| format!("{passed} passed, {failed} failed, {ignored} ignored");
            self.fail(&format!("{} printed the sums {}, and results of {}", self.program, text(expected), text(found)));
        }
    }

    /// Checks that the program ended on its own, after its last test, with the exit code of its
    /// results.
    fn check_end(&mut self, end: &End<'_>, without_result: &[&str]) {
        let has_ended = end.stdout.lines().any(|line| sums(line).is_some());
        let has_failed_tests = end.stdout.lines().filter_map(sums).any(|[_, failed, _]| failed > 0);
        let is_of_failed_tests = has_failed_tests && end.status.code() == Some(FAILED);
        let what = if end.stacks.is_some() {
            format!("{} was killed after {:.0} s", self.program, end.took.as_secs_f64())
        } else if !end.status.success() && !is_of_failed_tests {
            format!("{} ended with {}", self.program, end.status)
        } else if !has_ended {
            format!("{} printed no result", self.program)
        } else if !without_result.is_empty() {
            format!("{} ended before its last test", self.program)
        } else {
            return;
        };
        let began: Vec<&str> = end.stdout.lines().filter_map(slow).collect();
        let text = |name: &&str| {
            let end = if began.contains(name) { "had not ended" } else { "has no result" };
            format!("{} {end}", self.full_name(name))
        };
        let why = without_result.iter().map(text).collect();
        self.failures.push(Failure { what, why });
    }

    /// Returns its output lines, and its standard error.
    fn shown(&self, end: &End<'_>) -> String {
        let mut text = format!("\n     Running {} ({:.1} s)\n", self.program, self.took.as_secs_f64());
        for part in [end.stderr.trim_end(), end.stdout.trim_end(), end.stacks.unwrap_or_default().trim_end()] {
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

/// Exit code of libtest when a test failed.
const FAILED: i32 = 101;

/// Returns tests without a result: from the list, or without a list, those that libtest reported as
/// slow.
fn missing<'a>(listed: Option<&'a [String]>, verdicts: &[(&str, Verdict<'_>)], stdout: &'a str) -> Vec<&'a str> {
    let names: Vec<&str> = match listed {
        Some(listed) => listed.iter().map(String::as_str).collect(),
        None => stdout.lines().filter_map(slow).collect(),
    };
    names.into_iter().filter(|name| verdicts.iter().all(|(ended, _)| ended != name)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    use super::{End, Failure, Outcome, Skip};

    const GOOD: i32 = 0;
    /// Exit status of a test program with a failure: exit code 101.
    const BAD: i32 = 101 << 8;
    const KILLED: i32 = 9;

    fn end<'a>(status: i32, stdout: &'a str, records: &'a str) -> End<'a> {
        let status = ExitStatus::from_raw(status);
        End { status, took: Duration::ZERO, stacks: None, stdout, stderr: "", records }
    }

    /// Evaluates an output without a list of the tests.
    fn read(status: i32, stdout: &str, records: &str) -> Outcome {
        Outcome::read("a::it", None, &end(status, stdout, records))
    }

    fn read_listed(listed: &[&str], status: i32, stdout: &str) -> Outcome {
        let listed: Vec<String> = listed.iter().map(|&name| name.to_owned()).collect();
        Outcome::read("a::it", Some(&listed), &end(status, stdout, ""))
    }

    #[test]
    fn test_that_recorded_a_reason_is_skipped_and_not_passed() {
        let stdout = "running 3 tests\ntest x::one ... ok\ntest x::two ... ok\ntest three - should panic ... ok\n\n\
            test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        // The first reason counts.
        let outcome = read(GOOD, stdout, "x::two\tnot root\nx::two\tno peer\n");
        assert_eq!((outcome.passed, outcome.failures.len()), (2, 0));
        assert_eq!(outcome.skips, [Skip { test: "a::it::x::two".into(), reason: "not root".into() }]);
        assert_eq!(outcome.tests, ["a::it::x::one", "a::it::x::two", "a::it::three"]);
        assert!(outcome.output.contains("NOT RUN: a::it::x::two: not root"), "{}", outcome.output);
    }

    #[test]
    fn failed_test_that_recorded_a_reason_is_failed() {
        let stdout =
            "test x ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let outcome = read(BAD, stdout, "x\tnot root\n");
        assert_eq!((outcome.passed, outcome.failures.len(), outcome.skips.len()), (0, 1, 0));
        assert_eq!(outcome.failures, [Failure { what: "a::it::x".into(), why: Vec::new() }]);
    }

    #[test]
    fn failed_test_is_reported_with_its_panic() {
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
        assert_eq!((outcome.passed, outcome.failures.len(), outcome.roles), (0, 0, 1));
        let reasons: Vec<&str> = outcome.skips.iter().map(|skip| skip.reason.as_str()).collect();
        assert_eq!(reasons, ["not written", "ignored, without a reason"]);
    }

    #[test]
    fn reason_that_no_test_recorded_fails() {
        let stdout = "test x ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let outcome = read(GOOD, stdout, "main\tnot root\n");
        assert_eq!((outcome.passed, outcome.failures.len()), (1, 1));
        assert!(outcome.failures[0].what.contains("a::it::main"), "{:?}", outcome.failures);
    }

    #[test]
    fn program_that_is_killed_or_prints_nothing_fails() {
        let outcome = read(KILLED, "running 2 tests\ntest x ... ok\n", "");
        assert_eq!((outcome.passed, outcome.failures.len()), (1, 1));
        assert!(outcome.failures[0].what.contains("signal: 9"), "{:?}", outcome.failures);
        assert_eq!(read(GOOD, "", "").failures.len(), 1);
        // An abort in a destructor occurs after the result.
        let stdout = "test x ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(read(6, stdout, "").failures.len(), 1);
    }

    #[test]
    fn program_killed_after_a_skipped_test_names_the_tests_without_result() {
        let outcome = read(KILLED, "running 2 tests\ntest x ... ok\n", "x\tnot root\n");
        assert_eq!((outcome.passed, outcome.failures.len(), outcome.skips.len()), (0, 1, 1));
        let listed = ["x", "y"].map(str::to_owned);
        let records = "y\tnot root\n";
        let outcome = Outcome::read("a::it", Some(&listed), &end(KILLED, "test x ... ok\n", records));
        assert_eq!(outcome.failures.len(), 1, "{:?}", outcome.failures);
        assert_eq!(outcome.failures[0].why, ["a::it::y has no result"]);
    }

    #[test]
    fn result_of_no_listed_test_fails() {
        let sums = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let twice = format!("test x ... ok\ntest x ... ok\n{sums}");
        assert_eq!(what(&read_listed(&["x"], GOOD, &twice)), ["a::it::x has 2 results"]);
        let foreign = format!("test x ... ok\ntest y ... ok\n{sums}");
        assert_eq!(what(&read_listed(&["x"], GOOD, &foreign)), ["a::it::y has a result and is not listed"]);
    }

    #[test]
    fn sums_without_their_results_fail() {
        let own = "test x ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let of_a_child = "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let outcome = read_listed(&["x"], GOOD, &format!("{of_a_child}{own}"));
        let expected =
            "a::it printed the sums 8 passed, 0 failed, 0 ignored, and results of 1 passed, 0 failed, 0 ignored";
        assert_eq!((outcome.passed, what(&outcome)), (1, vec![expected]));
    }

    #[test]
    fn program_that_exits_with_success_before_its_last_test_fails() {
        let sums = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let outcome = read_listed(&["x", "y"], GOOD, &format!("test x ... ok\n{sums}"));
        assert_eq!(what(&outcome), ["a::it ended before its last test"]);
        assert_eq!(outcome.failures[0].why, ["a::it::y has no result"]);
    }

    #[test]
    fn killed_program_names_its_unfinished_tests() {
        let slow = |name: &str| format!("test {name} has been running for over 60 seconds\n");
        let stdout = format!("{}{}test x ... ok\n", slow("x"), slow("y"));
        let killed = End { stacks: Some("Thread 1"), ..end(KILLED, &stdout, "") };
        for listed in [None, Some(&["x", "y", "z"].map(str::to_owned)[..])] {
            let outcome = Outcome::read("a::it", listed, &killed);
            assert_eq!(what(&outcome), ["a::it was killed after 0 s"]);
            let all = ["a::it::y had not ended", "a::it::z has no result"];
            assert_eq!(outcome.failures[0].why, all[..listed.map_or(1, |_| 2)]);
            assert!(outcome.output.ends_with("Thread 1\n"), "{}", outcome.output);
        }
    }

    fn what(outcome: &Outcome) -> Vec<&str> {
        outcome.failures.iter().map(|failure| failure.what.as_str()).collect()
    }

    #[test]
    fn sections_of_doc_tests_add_up() {
        let stdout = "test crates/x/src/lib.rs - f (line 3) ... ok\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
            test crates/y/src/lib.rs - (line 9) - compile fail ... ok\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n";
        let outcome = read(GOOD, stdout, "");
        assert_eq!((outcome.passed, outcome.failures.len(), outcome.tests.len()), (2, 0, 2));
    }
}
