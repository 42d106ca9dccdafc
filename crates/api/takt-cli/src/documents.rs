//! Tests that the commands in the documentation and in the help texts exist with the options shown.

use crate::Cli;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the pages that users read.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut pages = Vec::new();
    let mut directories = vec![root.join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("the directory of the pages exists").flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.extend([root.join("README.md"), root.join("lab/interop/README.md")]);
    pages.sort();
    pages
}

/// Splits a shell line into its commands, each as a list of words. Comments and redirections are
/// removed.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut quote = None;
    for c in line.chars().chain(['\n']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            // Brackets mark an option that may be omitted.
            (None, '[' | ']') => {}
            (None, ' ' | '\n' | '|' | '&' | ';') => {
                words.extend(word.take());
                if c != ' ' {
                    all.push(std::mem::take(&mut words));
                }
            }
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    all.push(words);
    for words in &mut all {
        let end = words.iter().position(|word| word.starts_with(['>', '<']) || word == "2>").unwrap_or(words.len());
        words.truncate(end);
    }
    all
}

/// Returns the calls of `takt` in a line, including those that another program makes.
fn calls(line: &str) -> Vec<Vec<String>> {
    let is_takt = |word: &String| ["takt", "./takt", "target/release/takt"].contains(&word.as_str());
    let others = ["cargo", "cd", "git", "install", "apt"];
    let mut calls = Vec::new();
    for words in commands(line) {
        // Assignments of environment variables precede the program.
        let program = words.iter().find(|word| !word.contains('='));
        if program.is_some_and(|program| others.contains(&program.as_str())) {
            continue;
        }
        let places = words.iter().enumerate().filter(|(_, word)| is_takt(word));
        calls.extend(places.map(|(place, _)| words[place..].to_vec()));
    }
    calls
}

/// Returns the texts in backquotes that begin with `takt`. They may omit what a command requires.
fn mentions(text: &str) -> Vec<Vec<String>> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| span.starts_with("takt ") && !span.contains("...")).flat_map(calls).collect()
}

fn problem(words: &[String]) -> Option<clap::Error> {
    let error = Cli::try_parse_from(words).err()?;
    (!matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)).then_some(error)
}

/// Splits a page into the lines of its code blocks, with continuation lines joined, and the
/// remaining text.
fn parts(page: &str) -> (Vec<String>, String) {
    let (mut lines, mut text) = (Vec::new(), String::new());
    for (number, part) in page.split("```").enumerate() {
        match number % 2 {
            0 => text.push_str(part),
            _ => {
                // The language follows the backquotes, as in `rust,no_run`.
                let (language, body) = part.split_once('\n').unwrap_or_default();
                if ["", "sh", "bash", "text", "console"].contains(&language) {
                    lines.extend(body.replace("\\\n", " ").lines().map(str::to_owned));
                }
            }
        }
    }
    (lines, text)
}

#[test]
fn commands_of_the_documents_exist_with_their_options() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for path in pages() {
        let page = fs::read_to_string(&path).expect("it is a file");
        let (lines, text) = parts(&page);
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        for words in lines.iter().flat_map(|line| calls(line)) {
            checked += 1;
            wrong.extend(problem(&words).map(|why| format!("{name}: {}: {why}", words.join(" "))));
        }
        for words in mentions(&text) {
            checked += 1;
            let unknown = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand];
            let why = problem(&words).filter(|why| unknown.contains(&why.kind()));
            wrong.extend(why.map(|why| format!("{name}: {}: {why}", words.join(" "))));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 100, "{checked} commands were found");
}

#[test]
fn examples_of_the_help_can_be_run_as_printed() {
    fn visit(command: &Command, wrong: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // Two spaces separate an example from its description.
        let examples = help.lines().filter_map(|line| line.strip_prefix("  ")?.split("  ").next());
        for words in examples.filter(|line| line.starts_with("takt ")).flat_map(calls) {
            wrong.extend(problem(&words).map(|why| format!("{}: {why}", words.join(" "))));
        }
        command.get_subcommands().for_each(|one| visit(one, wrong));
    }
    let mut wrong = Vec::new();
    visit(&Cli::command(), &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn shell_line_is_split_as_a_shell_does() {
    let line =
        "takt pub A '{\"b\": \"c d\"}' --json | sudo ./takt echo A > out.json & takt ls  # who is there; takt no";
    let found =
        [vec!["takt", "pub", "A", "{\"b\": \"c d\"}", "--json"], vec!["./takt", "echo", "A"], vec!["takt", "ls"]];
    assert_eq!(calls(line), found);
    assert_eq!(calls("takt lab exec a -- takt ls").len(), 2);
    assert_eq!(calls("cargo add takt --path x"), Vec::<Vec<String>>::new());
    assert_eq!(mentions("`takt ls` and `TAKT` and `takt type X`").len(), 2);
}

/// A command with `--json` that the reference does not list has no documented shape.
#[test]
fn json_of_every_command_is_in_the_reference() {
    fn visit(command: &Command, path: &str, page: &str, missing: &mut Vec<String>) {
        let has_json = command.get_arguments().any(|one| one.get_long() == Some("json") && !one.is_hide_set());
        let takes_value = |one: &clap::Arg| one.get_long() == Some("json") && one.get_action().takes_values();
        if has_json && !command.get_arguments().any(takes_value) && !page.contains(&format!("`{path}`")) {
            missing.push(path.to_owned());
        }
        command.get_subcommands().for_each(|one| visit(one, &format!("{path} {}", one.get_name()), page, missing));
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/command-line-json.md");
    let (page, mut missing) = (fs::read_to_string(page).expect("the page exists"), Vec::new());
    visit(&Cli::command(), "takt", &page, &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}
