//! End-to-end tests of the test runner: exit code and last line, for a workspace with one small
//! crate.

use std::process::Command;

use takt_testkit::directory::Directory;

const GOOD: &str = "#[test]\nfn good() { assert_eq!(1 + 1, 2); }\n";
/// Test that reports like `takt_testkit::not_run`.
const SKIPPED: &str = r#"
#[test]
fn skipped() {
    let path = std::env::var_os("TAKT_TEST_NOT_RUN").expect("the runner names a file");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("the file is there");
    std::io::Write::write_all(&mut file, b"skipped\tno such device\n").expect("there is room");
}
"#;
const ALLOWED: &str = r#"[{"tests": "small::lib::skipped", "because": "no such *", "reason": "the machine has none"}]"#;

/// Runs the tests of a crate with these sources. Returns the exit code and the output.
fn run(sources: &str, may_skip: &str, options: &[&str]) -> (Option<i32>, String) {
    let manifest = "[package]\nname = \"small\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n";
    let lock = "version = 4\n\n[[package]]\nname = \"small\"\nversion = \"0.0.0\"\n";
    let files =
        [("Cargo.toml", manifest), ("Cargo.lock", lock), ("src/lib.rs", sources), (".ci/may-skip.json", may_skip)];
    let directory = Directory::with("runner", &files);
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["test", "--root"])
        .arg(directory.path())
        .args(options)
        .arg("--lib")
        .env_remove("CI")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .expect("the binary runs");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[track_caller]
fn assert_ends(sources: &str, may_skip: &str, options: &[&str], code: i32, last: &str) {
    let (found, text) = run(sources, may_skip, options);
    assert_eq!((found, text.lines().last()), (Some(code), Some(last)), "{text}");
}

#[test]
fn runner_succeeds_when_all_tests_pass() {
    assert_ends(GOOD, "[]", &["--ci"], 0, "1 passed, 0 failed, 0 skipped");
}

#[test]
fn runner_fails_when_a_test_fails() {
    let sources = format!("{GOOD}#[test]\nfn bad() {{ assert_eq!(1, 2); }}\n");
    assert_ends(&sources, "[]", &[], 1, "1 passed, 1 failed, 0 skipped");
}

#[test]
fn runner_fails_when_a_program_ends_during_its_tests() {
    let sources = format!("{GOOD}#[test]\nfn bad() {{ std::process::exit(0); }}\n");
    let (code, text) = run(&sources, "[]", &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(!text.contains(" 0 failed"), "{text}");
}

#[test]
fn runner_reports_that_nothing_ran_when_the_tests_do_not_compile() {
    assert_ends("#[test]\nfn bad() { 1 }\n", "[]", &[], 2, "0 passed, 0 failed, 0 skipped");
}

#[test]
fn runner_counts_a_test_that_could_not_run_and_fails_on_ci_unless_it_may_be_skipped() {
    let both = format!("{GOOD}{SKIPPED}");
    let last = "1 passed, 0 failed, 1 skipped";
    assert_ends(&both, "[]", &[], 0, last);
    assert_ends(&both, "[]", &["--ci"], 1, last);
    assert_ends(&both, ALLOWED, &["--ci"], 0, last);
    assert_ends(SKIPPED, ALLOWED, &["--ci"], 1, "0 passed, 0 failed, 1 skipped");
}
