//! The commands and the program of the README, executed in a new crate outside the repository.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use takt_testkit::not_run;

use crate::{Program, domain_0, program_in};

const README: &str = include_str!("../../../README.md");

/// Directory that is removed when this is dropped.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Runs shell commands in a directory.
fn run(directory: &Path, commands: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", commands]).current_dir(directory).env_remove("CARGO_TARGET_DIR");
    let output = shell.output().expect("there is a shell");
    assert!(output.status.success(), "{commands}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the command of the README with this beginning.
fn command(beginning: &str) -> &'static str {
    let found = README.lines().find(|line| line.starts_with(beginning));
    found.unwrap_or_else(|| panic!("the README has no command {beginning}"))
}

#[test]
fn program_of_the_readme_runs_in_a_crate_outside_the_repository() {
    if std::env::var_os("TAKT_TEST_LONG").is_none() {
        return not_run("at full length only (TAKT_TEST_LONG=1)");
    }
    let directory = Directory(std::env::temp_dir().join(format!("takt-newcomer-{}", std::process::id())));
    fs::create_dir_all(&directory.0).expect("a directory");
    // The README expects the clone beside the new crate's directory.
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    symlink(clone, directory.0.join("takt")).expect("a link");
    run(&directory.0, command("cargo new hello"));
    let own = directory.0.join("hello");
    run(&own, command("cargo add takt"));
    fs::write(own.join("src/main.rs"), program_in(README)).expect("a program");
    run(&own, "cargo build");
    let _domain = domain_0();
    let program = own.join("target/debug/hello");
    let program = program.to_str().expect("text");
    let mut subscriber = Program::start(program, &[]);
    let publisher = Program::start(program, &["publish"]);
    let promised = command("cargo run -- publish").split_once("# the subscriber prints ").expect("a promise").1;
    assert_eq!(subscriber.next_line(), promised);
    publisher.finish();
}
