//! Checks of this repository, through which `cargo test` enforces the project rules.

mod runner;

use std::process::Command;

use xtask::{tidy, workspace_root};

#[test]
fn repository_passes_tidy() {
    let report = tidy::run(&workspace_root()).expect("the work tree is readable");
    assert_eq!(report.failure_count(), 0, "\n{report}");
}

#[test]
fn command_line_prints_its_usage() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output();
        output.expect("the binary runs")
    };
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("conformance --check"));
    for wrong in [&[][..], &["tidier"], &["conformance", "--chek"]] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
