//! The test runner, `cargo xtask test`: builds all test programs, runs them, and counts what did not run.
//!
//! libtest knows passed, failed and ignored. A test that finds a precondition missing calls `takt_testkit::not_run`, which
//! appends its name and the reason to a file that this runner names; such a test counts as skipped, not as passed. A test
//! that is ignored with a reason that begins with `role` is a process that another test starts; it counts as nothing.
//!
//! Each test that a program lists must have one result, and the program's sums must be those of its results: a program that
//! aborts, exits among its tests, or prints the results of another one fails the run, with the tests that have no result.
//!
//! The last lines are what failed, what did not run and why, and `N passed, N failed, N skipped`. With `--ci`, or `CI` in the
//! environment, a skip fails the run unless `.ci/may-skip.json` allows it. A program that has not ended after 10 minutes
//! (3 hours with `TAKT_TEST_LONG`) is killed, and fails. Output of each program is kept below `target/tests/`.

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

/// The command line of `cargo xtask test`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// A skip that is not allowed fails the run.
    is_ci: bool,
    /// For cargo: packages, features, profile.
    cargo: Vec<String>,
    /// For every test program.
    libtest: Vec<String>,
}

impl Options {
    fn parse(arguments: &[&str], ci: Option<&str>) -> Self {
        let mut parts = arguments.splitn(2, |argument| *argument == "--");
        let owned = |part: Option<&[&str]>| part.unwrap_or_default().iter().map(|&one| one.to_owned()).collect();
        let (mut cargo, libtest): (Vec<String>, _) = (owned(parts.next()), owned(parts.next()));
        let wanted = cargo.iter().any(|argument| argument == "--ci");
        // Every program is run whatever becomes of the others.
        cargo.retain(|argument| argument != "--ci" && argument != "--no-fail-fast");
        let is_ci = wanted || ci.is_some_and(|value| !matches!(value, "" | "0" | "false"));
        Self { is_ci, cargo, libtest }
    }

    /// Neither packages nor tests are chosen: every entry of the list of allowed skips can be judged.
    fn is_whole(&self) -> bool {
        self.libtest.is_empty() && self.cargo.iter().any(|argument| argument == "--workspace")
    }

    /// Documentation is tested unless the command line chooses targets.
    fn has_doc_tests(&self) -> bool {
        let chooses = |argument: &String| {
            let name = argument.split('=').next().unwrap_or_default();
            ["--lib", "--bins", "--bin", "--test", "--tests", "--example", "--examples", "--all-targets"]
                .contains(&name)
        };
        !self.cargo.iter().any(chooses)
    }
}

/// Builds and runs the tests; whether all that ran passed, and all that did not run may be skipped.
///
/// # Errors
///
/// If cargo cannot be run, or the list of allowed skips is damaged. The last line is printed all the same.
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

/// Runs every program and the documentation's tests.
fn run_all(root: &Path, options: &Options) -> Result<Vec<Outcome>, String> {
    let programs = programs::build(root, &options.cargo)?;
    // A name that libtest is given would choose tests of both parts.
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
        // Under the lock, so that the output of two programs does not mix.
        print!("{}", outcome.output);
        outcomes.push(outcome);
    };
    // Of those that use the host, or networks of their own, one at a time.
    let lanes = [&[Uses::OwnNetwork, Uses::Processor][..], &[Uses::Processor], &[Uses::Host]];
    let work = |uses: &[Uses]| {
        while let Some(program) = next(uses) {
            execute(&program);
        }
    };
    std::thread::scope(|scope| {
        for uses in lanes {
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
    fn targets_that_are_chosen_leave_out_documentation() {
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
