//! Deliberate bugs, each a file in `lab/takt-sim/mutations/` with edits of the sources.
//!
//! A file names the guarantee that the bug breaks, describes the bug, and lists the edits. An edit
//! replaces a snippet of one source file. In the replacement, `BUG` is true while this bug is
//! active; one build contains all bugs.
//!
//! # Invariants
//! - A snippet occurs exactly once in its file. White space is ignored, so that the formatter may
//!   wrap it.
//! - Edits do not overlap.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::tree::SourceTree;

/// Directory of the mutation files.
pub const DIRECTORY: &str = "lab/takt-sim/mutations/";

/// Placeholder in an edit for "this bug is active".
const SWITCH: &str = "BUG";

/// Deliberate bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// File name without the extension.
    pub name: String,
    /// Guarantee of `docs/design/simulation.md` that the bug breaks.
    pub guarantee: String,
    /// Description of the bug.
    pub bug: String,
    /// Simulation that must find the bug.
    pub world: World,
    /// Edits that introduce the bug.
    pub edits: Vec<Edit>,
}

/// Simulation that must find a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Random protocol worlds.
    Protocol,
    /// Random protocol worlds with a hostile host.
    Hostile,
    /// Domains with DDS Security.
    Secured,
    /// The simulated executor, in the tests of `takt`.
    Executor,
}

/// Edit of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Source file, relative to the root.
    pub file: String,
    /// Snippet to replace; occurs once.
    pub find: String,
    /// Replacement.
    pub replace: String,
}

/// Problem with a file of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutationError {
    /// Path of the mutation file.
    pub place: String,
    /// Description of the problem and its remedy.
    pub message: String,
}

/// Loads all deliberate bugs of the tree, by name.
pub fn load(tree: &SourceTree) -> Result<Vec<Mutation>, MutationError> {
    let files = tree.files.iter().filter(|file| file.path.starts_with(DIRECTORY) && file.extension() == "toml");
    let parsed = files.map(|file| {
        let name = file.path[DIRECTORY.len()..].trim_end_matches(".toml");
        parse(name, &file.text).map_err(|message| MutationError { place: file.path.clone(), message })
    });
    parsed.collect()
}

fn parse(name: &str, text: &str) -> Result<Mutation, String> {
    let table: Table = text.parse().map_err(|error| format!("{error}"))?;
    if let Some(key) = table.keys().find(|key| !["promise", "bug", "world", "edit"].contains(&key.as_str())) {
        return Err(format!("unknown key '{key}'; 'promise', 'bug', 'world' and 'edit' are known"));
    }
    let world = match table.get("world").map(|world| world.as_str().unwrap_or_default()) {
        None => World::Protocol,
        Some("hostile") => World::Hostile,
        Some("secured") => World::Secured,
        Some("executor") => World::Executor,
        Some(_) => return Err("the worlds to name are 'hostile', 'secured' and 'executor'".to_owned()),
    };
    let edits = table.get("edit").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let edits: Vec<_> = edits.iter().filter_map(Value::as_table).map(edit).collect::<Result<_, _>>()?;
    if !edits.iter().any(|edit| edit.replace.contains(SWITCH)) {
        return Err(format!("no edit has '{SWITCH}', which is true while the bug is on"));
    }
    Ok(Mutation { name: name.to_owned(), guarantee: word(&table, "promise")?, bug: word(&table, "bug")?, world, edits })
}

fn edit(table: &Table) -> Result<Edit, String> {
    Ok(Edit { file: word(table, "file")?, find: word(table, "find")?, replace: word(table, "replace")? })
}

fn word(table: &Table, key: &str) -> Result<String, String> {
    let text = table.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    text.map(str::to_owned).ok_or(format!("'{key}' is missing or no text"))
}

/// Applies all edits at once; returns the changed files, and the edits that do not apply.
pub fn apply(tree: &SourceTree, mutations: &[Mutation]) -> (BTreeMap<String, String>, Vec<MutationError>) {
    let mut misfits = Vec::new();
    let mut by_file: BTreeMap<&str, Vec<Replacement>> = BTreeMap::new();
    for (number, mutation) in mutations.iter().enumerate() {
        for edit in &mutation.edits {
            match locate(tree, edit) {
                Ok((start, end)) => {
                    let text = edit.replace.replace(SWITCH, &format!("crate::mutation::is_on({number})"));
                    by_file.entry(&edit.file).or_default().push(Replacement { start, end, text, by: &mutation.name });
                }
                Err(message) => misfits.push(MutationError { place: place_of(&mutation.name), message }),
            }
        }
    }
    let mut changed = BTreeMap::new();
    for (path, mut replacements) in by_file {
        replacements.sort_by_key(|replacement| replacement.start);
        for pair in replacements.windows(2).filter(|pair| pair[1].start < pair[0].end) {
            let message = format!("an edit of {path} overlaps one of '{}'; choose another snippet", pair[0].by);
            misfits.push(MutationError { place: place_of(pair[1].by), message });
        }
        if misfits.is_empty() {
            let original = tree.file(path).map_or("", |file| file.text.as_str());
            changed.insert(path.to_owned(), replaced(original, &replacements));
        }
    }
    (changed, misfits)
}

fn place_of(name: &str) -> String {
    format!("{DIRECTORY}{name}.toml")
}

struct Replacement<'a> {
    start: usize,
    end: usize,
    text: String,
    by: &'a str,
}

fn replaced(original: &str, replacements: &[Replacement]) -> String {
    let mut text = String::new();
    let mut from = 0;
    for Replacement { start, end, text: new, .. } in replacements {
        text.push_str(&original[from..*start]);
        text.push_str(new);
        from = *end;
    }
    text.push_str(&original[from..]);
    text
}

/// Returns the byte range of an edit's snippet in its file.
fn locate(tree: &SourceTree, edit: &Edit) -> Result<(usize, usize), String> {
    let Edit { file, find, .. } = edit;
    let library = file.split_once("/src/").map(|(library, _)| format!("{library}/src/lib.rs"));
    if library.is_none_or(|library| tree.file(&library).is_none()) {
        return Err(format!("{file} is not in the 'src' of a library"));
    }
    let Some(source) = tree.file(file) else { return Err(format!("{file} does not exist")) };
    let dense = |text: &str| text.char_indices().filter(|(_, c)| !c.is_whitespace()).collect::<Vec<_>>();
    let (code, wanted) = (dense(&source.text), dense(find));
    let is_snippet = |window: &&[(usize, char)]| window.iter().map(|it| it.1).eq(wanted.iter().map(|it| it.1));
    let mut places = code.windows(wanted.len()).filter(is_snippet);
    match (places.next(), places.count()) {
        (Some([(start, _), .., (end, last)]), 0) => Ok((*start, end + last.len_utf8())),
        (None, _) => Err(format!(
            "the snippet does not occur in {file}: {find}\nThe code has changed: write the edit for the code as it is now. \
             Delete the mutation only if the mistake cannot be made any more."
        )),
        (_, more) => Err(format!("the snippet occurs {} times in {file}: {find}\nMake it longer.", more + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    const LIB: &str = "//! A.\nfn f(a: u32) -> u32 {\n    if a > 1 {\n        return 2;\n    }\n    a\n}\n";

    fn mutation(find: &str, replace: &str) -> String {
        format!(
            "promise = 'p'\nbug = 'b'\n[[edit]]\nfile = 'crates/a/src/lib.rs'\nfind = '{find}'\nreplace = '{replace}'\n"
        )
    }

    fn applied(files: &[(&str, &str)]) -> (BTreeMap<String, String>, Vec<MutationError>) {
        let files: Vec<_> =
            files.iter().map(|(name, text)| (format!("{DIRECTORY}{name}.toml"), (*text).to_owned())).collect();
        let mut all = vec![("crates/a/src/lib.rs", LIB)];
        all.extend(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        let tree = Fixture::new(&all).tree();
        apply(&tree, &load(&tree).expect("all mutations parse"))
    }

    #[test]
    fn edits_of_several_bugs_share_one_copy() {
        let (one, two) = (mutation("a > 1 {", "a > 1 && !BUG {"), mutation("return 2;", "if !BUG { return 2; }"));
        let (changed, misfits) = applied(&[("one", &one), ("two", &two)]);
        assert_eq!(misfits, []);
        let text = &changed["crates/a/src/lib.rs"];
        assert!(text.contains("if a > 1 && !crate::mutation::is_on(0) {"), "{text}");
        assert!(text.contains("if !crate::mutation::is_on(1) { return 2; }"), "{text}");
    }

    #[test]
    fn snippet_matches_when_the_code_is_wrapped_differently() {
        let (changed, misfits) = applied(&[("one", &mutation("if a>1 { return 2;", "if BUG { return 2;"))]);
        assert_eq!((changed.len(), misfits), (1, Vec::new()));
    }

    #[test]
    fn missing_ambiguous_or_overlapping_snippet_is_reported() {
        let what = |files: &[(&str, &str)]| applied(files).1.iter().map(|it| it.message.clone()).collect::<String>();
        assert!(what(&[("one", &mutation("b > 1", "BUG"))]).contains("does not occur in crates/a/src/lib.rs"));
        assert!(what(&[("one", &mutation("u32", "BUG"))]).contains("occurs 2 times"));
        let overlapping = [("one", &*mutation("a > 1 {", "BUG {")), ("two", &*mutation("if a > 1", "if BUG"))];
        assert!(what(&overlapping).contains("overlaps one of"));
    }

    #[test]
    fn file_with_missing_or_unknown_fields_is_refused() {
        let refusal = |text: &str| parse("x", text).expect_err("it is refused");
        assert!(refusal("promise = 'p'\nbug = 'b'\n").contains("no edit has 'BUG'"));
        assert!(refusal(&mutation("a", "b")).contains("no edit has 'BUG'"));
        assert!(refusal(&mutation("a", "BUG").replace("promise = 'p'", "")).contains("'promise' is missing"));
        assert!(refusal(&format!("seeds = 3\n{}", mutation("a", "BUG"))).contains("unknown key 'seeds'"));
        assert!(refusal("edit =").contains("TOML"));
        assert!(
            refusal(&format!("world = 'other'\n{}", mutation("a", "BUG")))
                .contains("'hostile', 'secured' and 'executor'")
        );
    }
}
