//! Mutation test of the simulation, `cargo xtask sim --teeth`: checks that the simulation's
//! checkers find deliberate bugs.
//!
//! The sources are copied to `target/teeth`, where all edits of [`mutations`] are applied. The copy
//! is built once for the protocol simulator and once for the simulated executor. The environment
//! variable `TAKT_MUTATION` names the active bug of a process. The product contains none of this.

pub mod mutations;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::{fs, io, thread};

use crate::tree::SourceTree;
use mutations::{Mutation, World};

/// Number of seeds within which a deliberate bug must be found.
const SEEDS: u64 = 500;

/// Tests of `takt` that simulate the executor.
const EXECUTOR_TESTS: &str = "runtime::simulation";

/// Environment variable that names the active bug in a process of the copy.
const VARIABLE: &str = "TAKT_MUTATION";

/// Command line options.
struct Options {
    bug: Option<String>,
    seeds: u64,
    from: u64,
    jobs: usize,
}

/// Activates one deliberate bug after another; returns true if a checker finds each.
pub fn run(root: &Path, arguments: &[&str]) -> Result<bool, String> {
    let options = parse(arguments)?;
    let tree = SourceTree::load(root)?;
    let all = mutations::load(&tree).map_err(|error| format!("{}: {}", error.place, error.message))?;
    let copy = root.join("target/teeth");
    write_copy(&tree, &all, &copy)?;
    let chosen = |mutation: &&Mutation| options.bug.as_ref().is_none_or(|name| *name == mutation.name);
    let chosen: Vec<_> = all.iter().filter(chosen).collect();
    if chosen.is_empty() {
        return Err(format!("no deliberate bug has that name; {} has their files", mutations::DIRECTORY));
    }
    let simulates = chosen.iter().any(|mutation| mutation.world != World::Executor);
    let program = if simulates { Some(build_simulator(&copy)?) } else { None };
    let queue = Mutex::new(chosen.iter());
    let found = Mutex::new(0);
    let search = || -> Result<(), String> {
        loop {
            let next = queue.lock().map_err(|error| error.to_string())?.next();
            let Some(mutation) = next else { return Ok(()) };
            let outcome = match &program {
                Some(program) if mutation.world != World::Executor => find(program, mutation, &options)?,
                _ => find_in_executor(&copy, mutation)?,
            };
            *found.lock().map_err(|error| error.to_string())? += u64::from(outcome.is_some());
            let outcome = outcome.unwrap_or_else(|| match mutation.world {
                World::Executor => "NOT FOUND in the simulated systems".to_owned(),
                World::Protocol | World::Hostile | World::Secured => {
                    format!("NOT FOUND within {} seeds", options.seeds)
                }
            });
            println!("{}: {outcome}", mutation.name);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs).map(|_| scope.spawn(search)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a search panicked".to_owned())?)
    })?;
    let found = *found.lock().map_err(|error| error.to_string())?;
    println!("{found} of {} deliberate bugs found", chosen.len());
    Ok(found == chosen.len() as u64)
}

fn parse(arguments: &[&str]) -> Result<Options, String> {
    let mut options =
        Options { bug: None, seeds: SEEDS, from: 0, jobs: thread::available_parallelism().map_or(1, usize::from) };
    let mut arguments = arguments.iter();
    while let Some(&argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
            text.parse().map_err(|_| format!("'{text}' is no number"))
        }
        match argument {
            "--teeth" => {}
            "--bug" => options.bug = Some((*value()?).to_owned()),
            "--seeds" => options.seeds = number(value()?)?,
            "--from" => options.from = number(value()?)?,
            "--jobs" => options.jobs = number::<usize>(value()?)?.max(1),
            _ => {
                return Err(format!(
                    "'{argument}' is unknown; --teeth takes --bug NAME, --seeds N, --from S and --jobs N"
                ));
            }
        }
    }
    Ok(options)
}

/// Runs seeds with one active bug; returns the first seed that finds it, and the finding.
fn find(program: &Path, mutation: &Mutation, options: &Options) -> Result<Option<String>, String> {
    let mut command = Command::new(program);
    command.env(VARIABLE, &mutation.name).args(["--swarm", "--no-shrink"]);
    command.args(["--seeds", &options.seeds.to_string(), "--from", &options.from.to_string()]);
    match mutation.world {
        World::Hostile => _ = command.arg("--hostile"),
        World::Secured => _ = command.arg("--secured"),
        World::Protocol | World::Executor => {}
    }
    let output = command.output().map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => Ok(None),
        Some(1) => Ok(text.lines().next().map(str::to_owned)),
        _ => Err(format!("{}: {}: {}", mutation.name, output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// Runs the simulated executor with one active bug; returns the finding.
fn find_in_executor(copy: &Path, mutation: &Mutation) -> Result<Option<String>, String> {
    let mut command = cargo(copy, "test");
    command
        .args(["-p", "takt", "--lib", "--", EXECUTOR_TESTS])
        .env(VARIABLE, &mutation.name)
        .env("RUST_BACKTRACE", "0");
    let output = command.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let has_run = text.lines().any(|line| line.starts_with("running ") && line != "running 0 tests");
    if !has_run {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: the tests {EXECUTOR_TESTS} do not run: {errors}", mutation.name));
    }
    if output.status.success() {
        return Ok(None);
    }
    let mut lines =
        text.lines().skip_while(|line| !line.contains("' panicked at ") && !line.contains(") panicked at "));
    let message = lines.nth(1).unwrap_or("a test fails");
    Ok(Some(message.trim_end_matches(": Plan {").to_owned()))
}

/// Writes the copy with all bugs.
fn write_copy(tree: &SourceTree, all: &[Mutation], copy: &Path) -> Result<(), String> {
    let (mut changed, errors) = mutations::apply(tree, all);
    if !errors.is_empty() {
        let lines: String = errors.iter().map(|error| format!("\n{}: {}", error.place, error.message)).collect();
        return Err(format!("some deliberate bugs do not fit the code:{lines}"));
    }
    let libraries: BTreeSet<_> =
        changed.keys().filter_map(|path| path.split_once("/src/")).map(|(it, _)| it.to_owned()).collect();
    for library in libraries {
        let path = format!("{library}/src/lib.rs");
        let original = changed.get(&path).map(String::as_str).or(tree.file(&path).map(|file| file.text.as_str()));
        let text = format!("{}\nmod mutation;\n", original.unwrap_or_default());
        changed.insert(path, text);
        changed.insert(format!("{library}/src/mutation.rs"), switch(all));
    }
    for file in &tree.files {
        changed.entry(file.path.clone()).or_insert_with(|| file.text.clone());
    }
    let is_known = |path: &Path| {
        path.strip_prefix(copy).ok().and_then(Path::to_str).is_some_and(|path| changed.contains_key(path))
    };
    remove_others(copy, &copy.join("target"), &is_known)
        .map_err(|error| format!("cannot remove old files of {}: {error}", copy.display()))?;
    for (path, text) in &changed {
        write(&copy.join(path), text)?;
    }
    Ok(())
}

/// Removes the files below a directory that are not known, and the directories that they leave
/// empty. `kept` is left as it is.
fn remove_others(directory: &Path, kept: &Path, is_known: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && path != kept {
            remove_others(&path, kept, is_known)?;
            if fs::read_dir(&path)?.next().is_none() {
                fs::remove_dir(&path)?;
            }
        } else if path != kept && !is_known(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Builds the protocol simulator; returns the path of the program.
fn build_simulator(copy: &Path) -> Result<PathBuf, String> {
    let mut command = cargo(copy, "build");
    let status = command.args(["--profile", "sim", "-p", "takt-sim"]).status();
    if !status.map_err(|error| format!("cannot run cargo: {error}"))?.success() {
        return Err(format!("the copy in {} does not build: a deliberate bug does not fit the code", copy.display()));
    }
    Ok(copy.join("target/sim/takt-sim"))
}

/// Returns a cargo command that runs in the copy.
fn cargo(copy: &Path, subcommand: &str) -> Command {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args([subcommand, "--quiet", "--locked", "--target-dir"]).arg(copy.join("target")).current_dir(copy);
    command
}

/// Returns the source of the module that selects the active bug.
fn switch(all: &[Mutation]) -> String {
    let names: String = all.iter().fold(String::new(), |mut names, mutation| {
        write!(names, "{:?}, ", mutation.name).expect("a string takes everything");
        names
    });
    format!(
        "//! Which deliberate bug is on.\n\
         extern crate std;\n\
         const NAMES: &[&str] = &[{names}];\n\
         static ON: std::sync::LazyLock<Option<usize>> = std::sync::LazyLock::new(|| {{\n    \
             let name = std::env::var(\"{VARIABLE}\").ok()?;\n    \
             Some(NAMES.iter().position(|it| *it == name).expect(\"a deliberate bug has this name\"))\n\
         }});\n\
         pub(crate) fn is_on(number: usize) -> bool {{\n    *ON == Some(number)\n}}\n"
    )
}

/// Writes a file only if its content differs: cargo rebuilds written files.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::remove_others;
    use crate::fixture::Fixture;

    #[test]
    fn copy_loses_the_files_that_the_sources_lost() {
        let fixture = Fixture::new(&[("a/new.rs", ""), ("a/old.rs", ""), ("b/c/old.rs", ""), ("target/x", "")]);
        let root = fixture.path();
        remove_others(root, &root.join("target"), &|path| path.ends_with("a/new.rs")).expect("own files");
        let left = ["a/new.rs", "a/old.rs", "b", "target/x"].map(|path| root.join(path).exists());
        assert_eq!(left, [true, false, false, true]);
    }
}
