//! Test programs: discovery, partition and execution.
//!
//! A program runs as under `cargo test`: in the directory of its package, with the variables of the
//! package and the path of the compiler's libraries. Its standard output is a file, so that a
//! process that outlives its test does not block the run.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::outcome::{End, Outcome};
use super::process;
use crate::tidy::edges::cargo_metadata;

/// Environment variable with the file to which `takt_testkit::not_run` appends; see
/// `takt_testkit::RECORDS_VARIABLE`.
const RECORDS_VARIABLE: &str = "TAKT_TEST_NOT_RUN";

/// Crates, and programs of other crates, whose tests use only processor and memory.
const COMPUTATION: &[&str] = &[
    "takt-wire",
    "takt-packet",
    "takt-calculus",
    "takt-schedule",
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

/// Crates whose tests use their own network namespaces, and mostly wait for the kernel and for
/// other programs.
const OWN_NETWORK: &[&str] = &["takt-xdp", "takt-interop", "takt-lab", "takt-sdn"];

/// Modules of a program whose tests run separately from the others of the program, with the
/// resources that they use. `overload` tests overload their own networks with switches and threads
/// of real-time priority: other tests get no processor time meanwhile. `soak` has its own network.
const APART: &[(&str, &str, Uses)] = &[
    ("takt-cli::it", "overload", Uses::RealTime),
    ("takt-sdn::it", "overload", Uses::RealTime),
    ("takt-cli::it", "soak", Uses::OwnNetwork),
];

/// Returns the time limit of a program: three times the running time of the slowest one on a busy
/// machine, in a normal or a full-length run.
pub fn limit() -> Duration {
    let is_long = std::env::var_os("TAKT_TEST_LONG").is_some();
    Duration::from_secs(if is_long { 3 * 60 * 60 } else { 10 * 60 })
}

/// Resources that the tests of a program use. Programs of different kinds run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// Interfaces, ports and shared memory of the host: one such program at a time.
    Host,
    /// Own network namespaces; one such program at a time, since creating namespaces takes locks of
    /// the whole kernel.
    OwnNetwork,
    /// Processor and memory only.
    Processor,
    /// Processors at real-time priority: one such test at a time, after all others have ended.
    RealTime,
}

/// Part of the tests of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    All,
    /// Tests of a module of [`APART`].
    Module {
        name: &'static str,
        uses: Uses,
    },
    /// All tests except those of such modules.
    Others,
}

/// Target name of doctests.
const DOC_TESTS: &str = "doc tests";

/// Test program, or a part of its tests.
#[derive(Clone)]
pub struct Program {
    part: Part,
    /// Package of the program.
    package: String,
    /// `package::target`: the name of the library or of the test target.
    name: String,
    executable: PathBuf,
    /// Directory of the package.
    directory: PathBuf,
    version: String,
}

impl Program {
    /// Splits the program if some of its tests run separately.
    pub fn parts(self) -> Vec<Self> {
        let mut parts: Vec<Part> = self.apart().map(|(name, uses)| Part::Module { name, uses }).collect();
        parts.push(if parts.is_empty() { Part::All } else { Part::Others });
        parts.into_iter().map(|part| Self { part, ..self.clone() }).collect()
    }

    /// Returns its modules that run separately.
    fn apart(&self) -> impl Iterator<Item = (&'static str, Uses)> {
        APART.iter().filter(|(program, ..)| *program == self.name).map(|&(_, module, uses)| (module, uses))
    }

    /// Returns the arguments that select the tests of its part.
    fn arguments(&self) -> Vec<String> {
        match self.part {
            Part::All => Vec::new(),
            Part::Module { name, .. } => vec![format!("{name}::")],
            Part::Others => self.apart().flat_map(|(module, _)| ["--skip".to_owned(), format!("{module}::")]).collect(),
        }
    }

    /// Returns the name of its output files.
    fn output(&self) -> String {
        match self.part {
            Part::Module { name, .. } => format!("{}.{name}", self.name),
            Part::All | Part::Others => self.name.clone(),
        }
    }

    /// Returns the resources that its tests use.
    pub fn uses(&self) -> Uses {
        let is_in = |list: &[&str]| [&self.package, &self.name].iter().any(|name| list.contains(&name.as_str()));
        if let Part::Module { uses, .. } = self.part {
            uses
        } else if is_in(COMPUTATION) {
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

/// Returns a cargo command with the environment of a shell. `cargo xtask` has the variables of the
/// package `xtask`. Build scripts that watch these, and everything that depends on them, would be
/// rebuilt whenever `cargo test` and `cargo xtask test` alternate.
fn cargo_command() -> Command {
    let mut command = Command::new(cargo());
    let is_of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_of_package)) {
        command.env_remove(name);
    }
    command
}

/// Builds the test programs that cargo's arguments select, and lists them.
pub fn build(root: &Path, arguments: &[String]) -> Result<Vec<Program>, String> {
    let mut build = cargo_command()
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
    if !status.success() {
        return Err(format!("cargo cannot build the tests: {status}"));
    }
    distinct(&programs).map(|()| programs)
}

/// Checks that program names are unique: equal names would share output files and test names.
fn distinct(programs: &[Program]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    match programs.iter().find(|program| !names.insert(program.name.as_str())) {
        Some(twice) => Err(format!("two test programs are called {}: rename the target of one", twice.name)),
        None => Ok(()),
    }
}

/// Returns the test program that a cargo message describes.
fn program(message: &Value, metadata: &Value) -> Option<Program> {
    let executable = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
    let manifest = message["manifest_path"].as_str()?;
    let package = metadata["packages"].as_array()?.iter().find(|package| package["manifest_path"] == manifest)?;
    let (name, target) = (package["name"].as_str()?, message["target"]["name"].as_str()?);
    let is_library = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "lib" || kind == "proc-macro");
    Some(Program {
        part: Part::All,
        package: name.to_owned(),
        name: if is_library { format!("{name}::lib") } else { format!("{name}::{target}") },
        executable: executable.into(),
        directory: Path::new(manifest).parent()?.to_owned(),
        version: package["version"].as_str()?.to_owned(),
    })
}

/// Runs a program to its end, or kills it after the time `limit`. A program that cannot be run has
/// failed.
pub fn execute(root: &Path, program: &Program, arguments: &[String], limit: Duration) -> Outcome {
    let attempt = || {
        let listed = list(root, program, arguments)?;
        let mut command = command(program)?;
        command.args(program.arguments()).args(arguments);
        run(root, &program.name, &program.output(), Some(&listed), command, limit)
    };
    attempt().unwrap_or_else(|why: String| Outcome::not_started(&program.name, &why))
}

/// Returns the command of a program without arguments.
fn command(program: &Program) -> Result<Command, String> {
    let uses = program.uses();
    let mut command = if uses == Uses::Processor {
        // Niced, so that it yields to tests that wait for times and peers.
        let mut nice = Command::new("nice");
        nice.arg(&program.executable);
        nice
    } else {
        Command::new(&program.executable)
    };
    command
        .current_dir(&program.directory)
        .env("CARGO", cargo())
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .env("CARGO_PKG_NAME", &program.package)
        .env("CARGO_PKG_VERSION", &program.version)
        .env("RUST_TEST_THREADS", threads(uses).to_string())
        .env("LD_LIBRARY_PATH", library_path(&program.executable)?);
    Ok(command)
}

/// Lists the tests that a program will run, ignored ones included.
fn list(root: &Path, program: &Program, arguments: &[String]) -> Result<Vec<String>, String> {
    let mut command = command(program)?;
    command.args(program.arguments()).args(arguments).args(["--list", "--format", "terse"]);
    let files = Files::create(root, &format!("{}.list", program.output()))?;
    let end = files.run(&mut command, limit()).map_err(|error| format!("cannot run {}: {error}", program.name))?;
    if !end.status.success() {
        return Err(format!("{} cannot list its tests: {}", program.name, end.status));
    }
    let text = Files::read(&files.stdout)?;
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Runs the doctests that cargo's arguments select.
pub fn execute_doc_tests(root: &Path, cargo_arguments: &[String], arguments: &[String]) -> Outcome {
    let mut command = cargo_command();
    command.args(["test", "--locked", "--no-fail-fast", "--doc"]).args(cargo_arguments).arg("--").args(arguments);
    command.current_dir(root);
    let outcome = run(root, DOC_TESTS, DOC_TESTS, None, command, limit());
    outcome.unwrap_or_else(|why| Outcome::not_started(DOC_TESTS, &why))
}

/// Returns the library path of a program: the libraries of its build and of the compiler, which
/// tests of procedural macros need.
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

/// Output files of one run, in `target/tests`.
struct Files {
    stdout: PathBuf,
    stderr: PathBuf,
    /// Records of `takt_testkit::not_run`.
    records: PathBuf,
}

impl Files {
    /// Creates empty files called `name`.
    fn create(root: &Path, name: &str) -> Result<Self, String> {
        let directory = root.join("target/tests");
        fs::create_dir_all(&directory).map_err(|error| problem(&directory, error))?;
        let create = |extension: &str| {
            let path = directory.join(format!("{}.{extension}", name.replace("::", ".").replace(' ', "-")));
            File::create(&path).map(|_| path.clone()).map_err(|error| problem(&path, error))
        };
        Ok(Self { stdout: create("stdout")?, stderr: create("stderr")?, records: create("not-run")? })
    }

    fn run(&self, command: &mut Command, limit: Duration) -> std::io::Result<process::End> {
        command.env(RECORDS_VARIABLE, &self.records).stdin(Stdio::null());
        command.stdout(File::create(&self.stdout)?).stderr(File::create(&self.stderr)?);
        process::wait(&mut command.spawn()?, limit)
    }

    fn read(path: &Path) -> Result<String, String> {
        let bytes = fs::read(path).map_err(|error| problem(path, error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn problem(what: &Path, error: std::io::Error) -> String {
    format!("{}: {error}", what.display())
}

/// Runs a prepared command, and evaluates its test results. Its output is stored in files called
/// `output`.
fn run(
    root: &Path,
    name: &str,
    output: &str,
    listed: Option<&[String]>,
    mut command: Command,
    limit: Duration,
) -> Result<Outcome, String> {
    let files = Files::create(root, output)?;
    let since = Instant::now();
    let end = files.run(&mut command, limit).map_err(|error| format!("cannot run {name}: {error}"))?;
    let end = End {
        status: end.status,
        took: since.elapsed(),
        stacks: end.stacks.as_deref(),
        stdout: &Files::read(&files.stdout)?,
        stderr: &Files::read(&files.stderr)?,
        records: &Files::read(&files.records)?,
    };
    Ok(Outcome::read(name, listed, &end))
}

/// Returns the number of concurrent tests of a program: one per processor, two if they mostly wait
/// for others, but at least two. With one thread libtest runs tests on the main thread, and a test
/// that does not run is identified by the name of its thread. Tests that overload networks exclude
/// each other (`takt_testkit::overload::lock`).
fn threads(uses: Uses) -> usize {
    let wanted = std::env::var("RUST_TEST_THREADS").ok().and_then(|text| text.parse().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let usual = match uses {
        Uses::RealTime => 2,
        Uses::Processor => processors,
        Uses::Host | Uses::OwnNetwork => 2 * processors,
    };
    wanted.unwrap_or(usual).max(2)
}

#[cfg(test)]
mod tests;
