//! `cargo xtask sim --teeth`: whether the checkers of the simulation find deliberate bugs.
//!
//! The sources are copied to `target/teeth`, where all edits of [`mutations`] are applied. That copy is built once; the
//! environment variable `TAKT_MUTATION` names the bug that is on in a process. The product has none of this.

pub mod mutations;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::{fs, thread};

use crate::tree::SourceTree;
use mutations::Mutation;

/// Seeds within which a deliberate bug must be found.
const SEEDS: u64 = 500;

/// Names the bug that is on in a process of the copy.
const VARIABLE: &str = "TAKT_MUTATION";

/// What to run.
struct Options {
    bug: Option<String>,
    seeds: u64,
    from: u64,
    jobs: usize,
}

/// Puts one deliberate bug after another into a copy of the protocol; true if a checker finds each.
pub fn run(root: &Path, arguments: &[&str]) -> Result<bool, String> {
    let options = parse(arguments)?;
    let tree = SourceTree::load(root)?;
    let all = mutations::load(&tree).map_err(|misfit| format!("{}: {}", misfit.place, misfit.message))?;
    let program = build(&tree, &all, &root.join("target/teeth"))?;
    let chosen = |mutation: &&Mutation| options.bug.as_ref().is_none_or(|name| *name == mutation.name);
    let chosen: Vec<_> = all.iter().filter(chosen).collect();
    if chosen.is_empty() {
        return Err(format!("no deliberate bug has that name; {} has their files", mutations::DIRECTORY));
    }
    let queue = Mutex::new(chosen.iter());
    let found = Mutex::new(0);
    let search = || -> Result<(), String> {
        loop {
            let next = queue.lock().map_err(|error| error.to_string())?.next();
            let Some(mutation) = next else { return Ok(()) };
            let outcome = find(&program, mutation, &options)?;
            *found.lock().map_err(|error| error.to_string())? += u64::from(outcome.is_some());
            let outcome = outcome.unwrap_or_else(|| format!("NOT FOUND within {} seeds", options.seeds));
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

/// Runs seeds with one bug on; gives the first seed that finds it, and how.
fn find(program: &Path, mutation: &Mutation, options: &Options) -> Result<Option<String>, String> {
    let mut command = Command::new(program);
    command.env(VARIABLE, &mutation.name).args(["--swarm", "--no-shrink"]);
    command.args(["--seeds", &options.seeds.to_string(), "--from", &options.from.to_string()]);
    if mutation.is_hostile {
        command.arg("--hostile");
    }
    let output = command.output().map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => Ok(None),
        Some(1) => Ok(text.lines().next().map(str::to_owned)),
        _ => Err(format!("{}: {}: {}", mutation.name, output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// Writes the copy with all bugs in it and builds its simulator; gives the program.
fn build(tree: &SourceTree, all: &[Mutation], copy: &Path) -> Result<PathBuf, String> {
    let (mut changed, misfits) = mutations::apply(tree, all);
    if !misfits.is_empty() {
        let lines: String = misfits.iter().map(|misfit| format!("\n{}: {}", misfit.place, misfit.message)).collect();
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
    for (path, text) in &changed {
        write(&copy.join(path), text)?;
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let target = copy.join("target");
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--profile", "sim", "-p", "takt-sim", "--target-dir"])
        .arg(&target)
        .current_dir(copy)
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the copy in {} does not build: a deliberate bug does not fit the code", copy.display()));
    }
    Ok(target.join("sim/takt-sim"))
}

/// The module of the copy that knows which bug is on.
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

/// Writes a file unless it is there as it should be: cargo builds again what was written.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}
