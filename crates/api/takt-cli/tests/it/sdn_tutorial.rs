//! `docs/tutorial/getting-started-sdn.md`, command by command.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use takt_testkit::waiting::{self, within_limit};
use takt_testkit::{not_run, require};

use crate::process::Takt;

const PAGE: &str = include_str!("../../../../../docs/tutorial/getting-started-sdn.md");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// Returns the code blocks of a language, in order.
fn blocks(kind: &str) -> Vec<&'static str> {
    let opening = format!("```{kind}\n");
    PAGE.split(&opening).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Creates a shell that runs lines of the page unchanged: in the clone, with `takt` in the `PATH`.
fn shell(lines: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_takt"));
    let own = program.parent().map(Path::to_path_buf);
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&others))).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", lines]).env("PATH", path).current_dir(ROOT).stdin(Stdio::null());
    command
}

/// Runs lines to completion and returns their output.
fn run(lines: &str) -> String {
    let output = waiting::output(&mut shell(lines));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{lines}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Lab of the page. Dropping the value removes it, also after a failure.
struct Tour;

impl Drop for Tour {
    fn drop(&mut self) {
        drop(waiting::output(&mut shell("takt lab down tour")));
    }
}

/// Programs of the second terminal.
struct Programs(Child);

impl Drop for Programs {
    fn drop(&mut self) {
        // The programs end with the namespaces of the lab. The shell has ended by then, or is
        // killed here.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns the words of a line without digits, which are the same in each run.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn tutorial_shows_one_admitted_pair_and_one_refused_pair() {
    if let Err(why) = require::open_vswitch().and_then(|()| require::program("bash")) {
        return not_run(why);
    }
    let commands = blocks("sh");
    let [_build, up, controller, pairs, query, down] = commands[..] else { panic!("six blocks: {commands:?}") };
    let shown = blocks("text");
    let [_picture, verdicts, explained] = shown[..] else { panic!("three blocks: {shown:?}") };
    let tour = Tour;
    assert!(run(up).contains("lab tour is up"));
    let line = controller.trim().strip_prefix("takt ").expect("it is takt");
    let absolute = line.replace("examples/", &format!("{ROOT}/examples/"));
    // The path selects the program under test instead of that of the `PATH`.
    let own: PathBuf = env!("CARGO_BIN_EXE_takt").into();
    let controller = Takt::start(&absolute.replace("-- takt", &format!("-- {}", own.display())));
    let next = || controller.line().expect("the controller goes on");
    controller.expect_line(&["flooding uses 1 links"]);
    let mut programs = Programs(shell(&format!("{pairs}wait")).stdout(Stdio::piped()).spawn().unwrap());
    let mut seen: Vec<String> = Vec::new();
    let is_decided = |seen: &[String], word: &str| seen.iter().any(|line| line.contains(word));
    while !(is_decided(&seen, "is admitted: ")
        && seen.iter().any(|line| line.contains("is refused: ") && line.contains("would take")))
    {
        seen.push(next());
    }
    for expected in verdicts.lines() {
        let expected = words(expected);
        assert!(seen.iter().any(|line| words(line) == expected), "{expected:?}: {seen:#?}");
    }
    let text = run(query);
    for expected in explained.lines().filter(|line| !line.trim().is_empty()) {
        let expected = words(expected);
        assert!(text.lines().any(|line| words(line) == expected), "{expected:?}: {text}");
    }
    let output = std::io::BufReader::new(programs.0.stdout.take().unwrap());
    within_limit("a sample of Square arrives", || {
        let mut received = output.lines().map(Result::unwrap);
        assert!(received.any(|line| line.contains("RED")), "no sample of Square");
    });
    controller.terminate();
    run(down);
    drop((programs, tour));
}
