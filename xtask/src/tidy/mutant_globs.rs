//! Check that every glob of `.cargo/mutants.toml` matches a file, so that a renamed module stays in
//! `make mutants`.
//!
//! Each alternative in braces is checked separately. Supported are `{a,b}` without nesting and `*`
//! within one path component; a glob with other syntax matches nothing here.

use toml::{Table, Value};

use super::Report;
use crate::tree::{SourceFile, SourceTree};

/// Path of the cargo-mutants configuration.
const CONFIGURATION: &str = ".cargo/mutants.toml";

/// Keys that contain globs.
const KEYS: [&str; 2] = ["examine_globs", "exclude_globs"];

pub(super) fn check(tree: &SourceTree, report: &mut Report) {
    let Some(file) = tree.file(CONFIGURATION) else { return };
    let table: Table = match file.text.parse() {
        Ok(table) => table,
        Err(error) => return report.fail("mutants", CONFIGURATION, format!("{error}")),
    };
    let globs = KEYS.into_iter().filter_map(|key| table.get(key)?.as_array()).flatten();
    for glob in globs.filter_map(Value::as_str) {
        for path in alternatives(glob) {
            if !tree.files.iter().any(|file| file.rust.is_some() && matches(&path, &file.path)) {
                let message = format!("`{path}` matches no Rust file: correct the path that was renamed or removed");
                report.fail_line("mutants", file, line_of(file, glob), message);
            }
        }
    }
}

/// Expands alternatives in braces to separate globs.
fn alternatives(glob: &str) -> Vec<String> {
    let parts = glob.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (inside, after))) = parts else {
        return vec![glob.to_owned()];
    };
    let tails = alternatives(after);
    let choices = inside.split(',');
    choices.flat_map(|choice| tails.iter().map(move |tail| format!("{before}{choice}{tail}"))).collect()
}

/// Reports whether `path` matches `glob`, component by component.
fn matches(glob: &str, path: &str) -> bool {
    let (globs, parts) = (glob.split('/'), path.split('/'));
    globs.clone().count() == parts.clone().count() && globs.zip(parts).all(|(glob, part)| part_matches(glob, part))
}

fn part_matches(glob: &str, part: &str) -> bool {
    let Some((before, after)) = glob.split_once('*') else { return glob == part };
    let Some(rest) = part.strip_prefix(before) else { return false };
    (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| part_matches(after, rest)))
}

/// Returns the line that contains `glob`, from 1.
fn line_of(file: &SourceFile, glob: &str) -> usize {
    SourceFile::lines(&file.text).find(|(_, text)| text.contains(glob)).map_or(1, |(line, _)| line)
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::{CONFIGURATION, check};

    const SOURCES: [(&str, &str); 2] =
        [("crates/a/src/reader/room.rs", "//! Room.\n"), ("crates/a/src/writer/pace.rs", "//! Pace.\n")];

    fn of(configuration: &str) -> Vec<String> {
        findings(&[SOURCES[0], SOURCES[1], (CONFIGURATION, configuration)], check)
    }

    #[test]
    fn globs_that_match_a_file_are_no_finding() {
        let globs = "examine_globs = ['crates/a/src/{reader,writer}/*.rs', 'crates/*/src/reader/r*m.rs']";
        assert_eq!(of(globs), Vec::<String>::new());
    }

    #[test]
    fn unmatched_alternative_is_a_finding_at_its_line() {
        let globs = "examine_globs = [\n  'crates/a/src/reader/{room,deadline}.rs',\n  'crates/a/src/*.rs',\n]\nexclude_globs = ['b.rs']";
        let expected =
            ["mutants .cargo/mutants.toml:2", "mutants .cargo/mutants.toml:3", "mutants .cargo/mutants.toml:5"];
        assert_eq!(of(globs), expected);
    }

    #[test]
    fn configuration_that_is_not_toml_is_a_finding() {
        assert_eq!(of("examine_globs ="), ["mutants .cargo/mutants.toml"]);
    }
}
