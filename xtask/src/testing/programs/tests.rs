//! Tests of the program schedule, and of test programs that end in ways that libtest does not
//! report.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{Part, Program, Uses, distinct, execute};
use crate::fixture::Fixture;
use crate::testing::outcome::Outcome;
use crate::testing::summary;
use crate::workspace_root;

fn uses(package: &str, target: &str) -> Uses {
    let (package, name) = (package.to_owned(), format!("{package}::{target}"));
    program(package, name).uses()
}

fn program(package: String, name: String) -> Program {
    let (executable, directory) = (PathBuf::new(), PathBuf::new());
    Program { part: Part::All, package, name, executable, directory, version: String::new() }
}

#[test]
fn modules_listed_as_apart_run_separately_from_their_program() {
    let parts = |package: &str, name: &str| program(package.into(), name.into()).parts();
    let uses: Vec<_> = parts("takt-cli", "takt-cli::it").iter().map(|part| (part.arguments(), part.uses())).collect();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let expected = [
        (words("overload::"), Uses::RealTime),
        (words("soak::"), Uses::OwnNetwork),
        (words("--skip overload:: --skip soak::"), Uses::Host),
    ];
    assert_eq!(uses, expected);
    let uses: Vec<_> = parts("takt-sdn", "takt-sdn::it").iter().map(Program::uses).collect();
    assert_eq!(uses, [Uses::RealTime, Uses::OwnNetwork]);
    assert_eq!(parts("takt-cli", "takt-cli::takt").iter().map(|part| part.part).collect::<Vec<_>>(), [Part::All]);
}

#[test]
fn listed_crates_use_what_their_list_says_and_others_the_host() {
    assert_eq!(uses("takt-core", "it"), Uses::Processor);
    assert_eq!(uses("takt", "it_alloc"), Uses::Processor);
    assert_eq!(uses("takt", "it"), Uses::Host);
    assert_eq!(uses("takt-xdp", "it"), Uses::OwnNetwork);
    assert_eq!(uses("takt-sdn", "it"), Uses::OwnNetwork);
    assert_eq!(uses("takt-sdn", "lib"), Uses::OwnNetwork);
    assert_eq!(uses("takt-new", "it"), Uses::Host);
}

#[test]
fn records_variable_equals_that_of_the_testkit() {
    assert_eq!(super::RECORDS_VARIABLE, takt_testkit::RECORDS_VARIABLE);
}

#[test]
fn programs_with_equal_names_are_refused() {
    let programs = ["it", "lib", "it"].map(|target| program("a".into(), format!("a::{target}")));
    assert_eq!(distinct(&programs[..2]), Ok(()));
    assert!(distinct(&programs).is_err_and(|why| why.contains("two test programs are called a::it")));
}

/// Test programs that, except for `works`, end early or print invalid output, each in a different
/// way.
const BAD_TESTS: &str = r#"
    use std::io::Write;
    fn print(octets: &[u8]) { std::io::stdout().write_all(octets).unwrap(); }
    #[test] fn works() {}
    #[test] fn aborts() { std::process::abort() }
    #[test] fn exits() { std::process::exit(0) }
    #[test] fn hangs() { loop { std::thread::park() } }
    #[test] fn prints_sums() { print(b"\xff\0test result: ok. 9 passed; 0 failed; 0 ignored;\n") }
    #[test] fn repeats_a_result() { print(b"test works ... ok\n") }
"#;

/// Returns the outcome of a program with these two of [`BAD_TESTS`]. The run fails.
fn of_bad_tests(names: [&str; 2], limit: Duration) -> Outcome {
    let fixture = Fixture::new(&[("bad.rs", BAD_TESTS)]);
    let executable = fixture.path().join("bad");
    let mut compiler = Command::new("rustc");
    compiler.args(["--test", "--edition", "2024", "-o"]).arg(&executable).arg(fixture.path().join("bad.rs"));
    let compiled =
        compiler.current_dir(workspace_root()).output().expect("rustc is installed, since it built these tests");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let directory = fixture.path().to_owned();
    let program = Program { executable, directory, ..program("a".into(), "a::it".into()) };
    let outcome = execute(fixture.path(), &program, &names.map(str::to_owned), limit);
    let outcomes = [outcome, Outcome { passed: 1, ..Outcome::default() }];
    assert!(!summary::render(&outcomes, None, false).1, "{outcomes:?}");
    outcomes.into_iter().next().expect("there are two")
}

/// Returns the failures of a program that runs two of [`BAD_TESTS`].
fn faults(names: [&str; 2]) -> Vec<(String, Vec<String>)> {
    let outcome = of_bad_tests(names, Duration::from_secs(600));
    outcome.failures.into_iter().map(|failure| (failure.what, failure.why)).collect()
}

#[test]
fn program_that_aborts_fails_and_its_test_is_named() {
    let faults = faults(["works", "aborts"]);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].0.starts_with("a::it ended with signal: 6"), "{faults:?}");
    assert!(faults[0].1.iter().any(|why| why == "a::it::aborts has no result"), "{faults:?}");
}

#[test]
fn program_that_exits_with_success_during_its_tests_fails_and_its_test_is_named() {
    let faults = faults(["works", "exits"]);
    assert_eq!((faults.len(), &faults[0].0[..]), (1, "a::it printed no result"));
    assert!(faults[0].1.iter().any(|why| why == "a::it::exits has no result"), "{faults:?}");
}

#[test]
fn program_that_hangs_is_killed_and_its_test_is_named() {
    let outcome = of_bad_tests(["works", "hangs"], Duration::from_millis(100));
    assert_eq!(outcome.failures.len(), 1, "{:?}", outcome.failures);
    assert!(outcome.failures[0].what.starts_with("a::it was killed after "), "{:?}", outcome.failures);
    assert!(outcome.failures[0].why.iter().any(|why| why == "a::it::hangs has no result"), "{:?}", outcome.failures);
}

#[test]
fn program_that_prints_other_sums_than_its_own_fails() {
    let faults = faults(["works", "prints_sums"]);
    let expected =
        "a::it printed the sums 11 passed, 0 failed, 0 ignored, and results of 2 passed, 0 failed, 0 ignored";
    assert_eq!(faults, [(expected.to_owned(), vec![])]);
}

#[test]
fn program_that_prints_the_result_of_a_test_twice_fails() {
    let faults = faults(["works", "repeats_a_result"]);
    assert!(faults.iter().any(|(what, _)| what == "a::it::works has 2 results"), "{faults:?}");
}

#[test]
fn program_that_cannot_be_started_fails() {
    let fixture = Fixture::new(&[("empty", "")]);
    let directory = fixture.path().to_owned();
    let program = Program { executable: "/no/such/program".into(), directory, ..program("a".into(), "a::it".into()) };
    let outcome = execute(fixture.path(), &program, &[], Duration::from_secs(600));
    assert_eq!(outcome.failures.len(), 1);
    assert!(outcome.failures[0].what.starts_with("cannot run a::it: "), "{:?}", outcome.failures);
}
