//! Test programs: which there are, and how each is run.
//!
//! A program runs as `cargo test` would run it: in the directory of its package, with the variables of the package and the
//! path of the compiler's libraries. Its standard output goes to a file, so that a process which outlives its test does not
//! hold up the run.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::outcome::Outcome;
use crate::tidy::edges::cargo_metadata;

/// The file that `takt_testkit::not_run` appends to; see `takt_testkit::RECORDS_VARIABLE`.
const RECORDS_VARIABLE: &str = "TAKT_TEST_NOT_RUN";

/// Crates, and programs of others, whose tests use processor and memory alone.
const COMPUTATION: &[&str] = &[
    "takt-wire",
    "takt-packet",
    "takt-calculus",
    "takt-xtypes",
    "takt-derive",
    "takt-core",
    "takt-config",
    "takt-sim",
    "takt-testkit",
    "takt::it_alloc",
    "takt::lib",
    "xtask",
];

/// Crates whose tests use network namespaces of their own, and mostly wait for the kernel and for other programs.
const OWN_NETWORK: &[&str] = &["takt-xdp", "takt-interop", "takt-lab", "takt-sdn"];

/// What the tests of a program use. Programs of different kinds run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// Interfaces, ports and shared memory of the host: one such program at a time.
    Host,
    /// Network namespaces of their own; one such program at a time, since making these takes locks of the whole kernel.
    OwnNetwork,
    /// Processor and memory alone.
    Processor,
}

/// Doc tests, as a program.
const DOC_TESTS: &str = "doc tests";

/// One test program.
pub struct Program {
    /// The package it belongs to.
    package: String,
    /// `package::target`: the library's name, or that of the test.
    name: String,
    executable: PathBuf,
    /// Of the package.
    directory: PathBuf,
    version: String,
}

impl Program {
    /// What its tests use.
    pub fn uses(&self) -> Uses {
        let is_in = |list: &[&str]| [&self.package, &self.name].iter().any(|name| list.contains(&name.as_str()));
        if is_in(COMPUTATION) {
            Uses::Processor
        } else if is_in(OWN_NETWORK) {
            Uses::OwnNetwork
        } else {
            Uses::Host
        }
    }
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Builds the test programs that cargo's arguments choose, and lists them.
pub fn build(root: &Path, arguments: &[String]) -> Result<Vec<Program>, String> {
    let mut build = Command::new(cargo())
        .args(["test", "--locked", "--no-run", "--message-format", "json-render-diagnostics"])
        .args(arguments)
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    let messages = BufReader::new(build.stdout.take().ok_or("cargo has no output")?);
    let mut programs = Vec::new();
    let metadata = cargo_metadata(root)?;
    for line in messages.lines() {
        let line = line.map_err(|error| format!("cargo's messages cannot be read: {error}"))?;
        let message = serde_json::from_str(&line).map_err(|error| format!("cargo's message is not JSON: {error}"))?;
        programs.extend(program(&message, &metadata));
    }
    let status = build.wait().map_err(|error| format!("cannot wait for cargo: {error}"))?;
    if status.success() { Ok(programs) } else { Err(format!("cargo cannot build the tests: {status}")) }
}

/// The test program that a message of cargo tells of.
fn program(message: &Value, metadata: &Value) -> Option<Program> {
    let executable = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
    let manifest = message["manifest_path"].as_str()?;
    let package = metadata["packages"].as_array()?.iter().find(|package| package["manifest_path"] == manifest)?;
    let (name, target) = (package["name"].as_str()?, message["target"]["name"].as_str()?);
    let is_library = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "lib" || kind == "proc-macro");
    Some(Program {
        package: name.to_owned(),
        name: if is_library { format!("{name}::lib") } else { format!("{name}::{target}") },
        executable: executable.into(),
        directory: Path::new(manifest).parent()?.to_owned(),
        version: package["version"].as_str()?.to_owned(),
    })
}

/// Runs one program to its end.
pub fn execute(root: &Path, program: &Program, arguments: &[String]) -> Result<Outcome, String> {
    let is_computing = program.uses() == Uses::Processor;
    let mut command = if is_computing {
        // It gives way to what waits for times and peers.
        let mut nice = Command::new("nice");
        nice.arg(&program.executable);
        nice
    } else {
        Command::new(&program.executable)
    };
    command
        .args(arguments)
        .current_dir(&program.directory)
        .env("CARGO", cargo())
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .env("CARGO_PKG_NAME", &program.package)
        .env("CARGO_PKG_VERSION", &program.version)
        .env("RUST_TEST_THREADS", threads(is_computing).to_string())
        .env("LD_LIBRARY_PATH", library_path(&program.executable)?);
    run(root, &program.name, command)
}

/// Runs the tests in the documentation of what cargo's arguments choose.
pub fn execute_doc_tests(root: &Path, cargo_arguments: &[String], arguments: &[String]) -> Result<Outcome, String> {
    let mut command = Command::new(cargo());
    command.args(["test", "--locked", "--no-fail-fast", "--doc"]).args(cargo_arguments).arg("--").args(arguments);
    command.current_dir(root);
    run(root, DOC_TESTS, command)
}

/// Where a program finds the libraries of its build and of the compiler, which tests of procedural macros take.
fn library_path(executable: &Path) -> Result<String, String> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    let of_compiler = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let of_build = executable.parent().map(|directory| directory.display().to_string()).unwrap_or_default();
    let inherited = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let all = [of_build, of_compiler, inherited];
    Ok(all.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(":"))
}

/// Runs a prepared command, and reads what became of its tests.
fn run(root: &Path, name: &str, mut command: Command) -> Result<Outcome, String> {
    let directory = root.join("target/tests");
    let problem = |what: &Path, error| format!("{}: {error}", what.display());
    fs::create_dir_all(&directory).map_err(|error| problem(&directory, error))?;
    let file = |extension: &str| directory.join(format!("{}.{extension}", name.replace("::", ".").replace(' ', "-")));
    let (stdout, stderr, records) = (file("stdout"), file("stderr"), file("not-run"));
    let create = |path: &Path| File::create(path).map_err(|error| problem(path, error));
    create(&records)?;
    let since = Instant::now();
    let status: ExitStatus = command
        .env(RECORDS_VARIABLE, &records)
        .stdin(Stdio::null())
        .stdout(create(&stdout)?)
        .stderr(create(&stderr)?)
        .status()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    let took = since.elapsed();
    let read = |path: &Path| {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|error| problem(path, error))
    };
    Ok(Outcome::read(name, status, took, &read(&stdout)?, &read(&stderr)?, &read(&records)?))
}

/// Tests of a program that run at a time: one a processor, two if they mostly wait for others. At least two, since libtest
/// runs them on the main thread if there is one, and a test that does not run is known by the name of its thread.
fn threads(is_computing: bool) -> usize {
    let wanted = std::env::var("RUST_TEST_THREADS").ok().and_then(|text| text.parse().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    wanted.unwrap_or(if is_computing { processors } else { 2 * processors }).max(2)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Program, Uses};

    fn uses(package: &str, target: &str) -> Uses {
        let (package, name) = (package.to_owned(), format!("{package}::{target}"));
        Program { package, name, executable: PathBuf::new(), directory: PathBuf::new(), version: String::new() }.uses()
    }

    #[test]
    fn program_of_a_crate_that_no_list_names_uses_the_host() {
        assert_eq!(uses("takt-core", "it"), Uses::Processor);
        assert_eq!(uses("takt", "it_alloc"), Uses::Processor);
        assert_eq!(uses("takt", "it"), Uses::Host);
        assert_eq!(uses("takt-xdp", "it"), Uses::OwnNetwork);
        assert_eq!(uses("takt-new", "it"), Uses::Host);
    }

    #[test]
    fn tests_report_to_the_file_that_the_runner_names() {
        assert_eq!(super::RECORDS_VARIABLE, takt_testkit::RECORDS_VARIABLE);
    }
}
