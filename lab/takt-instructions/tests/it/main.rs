//! Test that the recorded counts hold for the shipped code: the check runs in a release build.

use std::path::Path;
use std::process::Command;

use takt_testkit::not_run;

#[test]
fn data_path_takes_as_many_instructions_as_recorded() {
    if !cfg!(target_arch = "x86_64") {
        return not_run("the recorded counts are of x86-64");
    }
    if let Err(error) = Command::new("valgrind").arg("--version").output() {
        return not_run(format!("cannot run valgrind: {error}"));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(root)
        .args(["run", "--release", "--locked", "--quiet", "-p", "takt-instructions", "--", "check"])
        .output()
        .expect("cargo is installed");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print!("{text}");
    assert!(output.status.success(), "{text}");
}
