//! Test runner, `cargo xtask test`: builds all test programs, runs them, and counts tests that did
//! not run.
//!
//! libtest distinguishes passed, failed and ignored. A test with a missing precondition calls
//! `takt_testkit::not_run`, which appends its name and the reason to a file that this runner names;
//! such a test counts as skipped, not as passed. An ignored test whose reason begins with `role` is
//! a process that another test starts; it is not counted.
//!
//! Each test that a program lists must have one result, and the program's sums must equal those of
//! its results. A program that aborts, exits during its tests, or prints the results of another one
//! fails the run, and the tests without a result are named.
//!
//! The last lines list failures, tests that did not run with the reasons, and
//! `N passed, N failed, N skipped`. With `--ci`, or `CI` in the environment, a skip fails the run
//! unless `.ci/may-skip.json` allows it. A program that has not ended after 10 minutes (3 hours
//! with `TAKT_TEST_LONG`) is killed, and fails. The output of each program is stored in
//! `target/tests/`.

mod allowed;
mod outcome;
mod process;
mod programs;
mod summary;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use allowed::Allowances;
use outcome::Outcome;
use programs::{Program, Uses};

/// Command line options of `cargo xtask test`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Whether a skip that is not allowed fails the run.
    is_ci: bool,
    /// Arguments for cargo: packages, features, profile.
    cargo: Vec<String>,
    /// Arguments for every test program.
    libtest: Vec<String>,
}

impl Options {
    fn parse(arguments: &[&str], ci: Option<&str>) -> Self {
        let mut parts = arguments.splitn(2, |argument| *argument == "--");
        let owned = |part: Option<&[&str]>| part.unwrap_or_default().iter().map(|&one| one.to_owned()).collect();
        let (mut cargo, libtest): (Vec<String>, _) = (owned(parts.next()), owned(parts.next()));
        let wanted = cargo.iter().any(|argument| argument == "--ci");
        // Every program is run, regardless of failures of others.
        cargo.retain(|argument| argument != "--ci" && argument != "--no-fail-fast");
        let is_ci = wanted || ci.is_some_and(|value| !matches!(value, "" | "0" | "false"));
        Self { is_ci, cargo, libtest }
    }

    /// Reports whether neither packages nor tests are selected: every entry of the list of allowed
    /// skips can then be checked.
    fn is_whole(&self) -> bool {
        self.libtest.is_empty() && self.cargo.iter().any(|argument| argument == "--workspace")
    }

    /// Reports whether doctests are run: unless the command line selects targets.
    fn has_doc_tests(&self) -> bool {
        let chooses = |argument: &String| {
            let name = argument.split('=').next().unwrap_or_default();
            ["--lib", "--bins", "--bin", "--test", "--tests", "--example", "--examples", "--all-targets"]
                .contains(&name)
        };
        !self.cargo.iter().any(chooses)
    }
}

/// Builds and runs the tests; returns whether all tests that ran passed, and all others may be
/// skipped.
///
/// # Errors
///
/// Cargo cannot be run, or the list of allowed skips is malformed. The last line is printed
/// nevertheless.
pub fn run(root: &Path, arguments: &[&str]) -> Result<bool, String> {
    let options = Options::parse(arguments, std::env::var("CI").ok().as_deref());
    let outcomes = Allowances::load(root).and_then(|allowances| Ok((allowances, run_all(root, &options)?)));
    let (allowances, outcomes) = match outcomes {
        Ok(all) => all,
        Err(why) => {
            println!("\n{why}\n\n{}", summary::closing_line(&[]));
            return Err("the tests were not run".to_owned());
        }
    };
    let allowances = options.is_ci.then_some(&allowances);
    let (text, is_good) = summary::render(&outcomes, allowances, options.is_whole());
    print!("{text}");
    Ok(is_good)
}

/// Runs every program and the doctests.
fn run_all(root: &Path, options: &Options) -> Result<Vec<Outcome>, String> {
    let programs = programs::build(root, &options.cargo)?;
    // A name given to libtest would select tests of both parts.
    let programs =
        if options.libtest.is_empty() { programs.into_iter().flat_map(Program::parts).collect() } else { programs };
    let programs = Mutex::new(programs);
    let next = |uses: &[Uses]| {
        let mut programs = programs.lock().unwrap_or_else(PoisonError::into_inner);
        let at = uses.iter().find_map(|uses| programs.iter().position(|program| program.uses() == *uses))?;
        Some(programs.remove(at))
    };
    let outcomes = Mutex::new(Vec::new());
    let limit = programs::limit();
    let execute = |program: &Program| {
        let outcome = programs::execute(root, program, &options.libtest, limit);
        let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        // Printed under the lock, so that the output of two programs does not interleave.
        print!("{}", outcome.output);
        outcomes.push(outcome);
    };
    // Programs that use the host, or their own networks, run one at a time.
    let schedules = [&[Uses::OwnNetwork, Uses::Processor][..], &[Uses::Processor], &[Uses::Host]];
    let work = |uses: &[Uses]| {
        while let Some(program) = next(uses) {
            execute(&program);
        }
    };
    std::thread::scope(|scope| {
        for uses in schedules {
            scope.spawn(|| work(uses));
        }
    });
    work(&[Uses::RealTime]);
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    if options.has_doc_tests() {
        let outcome = programs::execute_doc_tests(root, &options.cargo, &options.libtest);
        print!("{}", outcome.output);
        outcomes.push(outcome);
    }
    outcomes.sort_by(|a, b| a.program.cmp(&b.program));
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn arguments_after_the_dashes_are_for_the_test_programs() {
        let options = Options::parse(&["--ci", "-p", "takt-wire", "--no-fail-fast", "--", "guid", "--exact"], None);
        assert!(options.is_ci && !options.is_whole() && options.has_doc_tests());
        assert_eq!(options.cargo, ["-p", "takt-wire"]);
        assert_eq!(options.libtest, ["guid", "--exact"]);
    }

    #[test]
    fn selected_targets_exclude_doctests() {
        for chosen in [&["--lib"][..], &["--test", "it"], &["--test=it"]] {
            assert!(!Options::parse(chosen, None).has_doc_tests(), "{chosen:?}");
        }
        assert!(Options::parse(&["--workspace", "--features", "a/b"], None).has_doc_tests());
    }

    #[test]
    fn ci_is_a_flag_or_an_environment_variable() {
        for (ci, expected) in
            [(None, false), (Some(""), false), (Some("false"), false), (Some("0"), false), (Some("true"), true)]
        {
            assert_eq!(Options::parse(&["--workspace"], ci).is_ci, expected, "{ci:?}");
        }
        assert!(Options::parse(&["--workspace"], None).is_whole());
    }
}
