//! Style of comments, as far as a program can check it: width, openings, and words that hide the
//! subject of a sentence.
//!
//! The rules hold for all crates except [`NOT_HELD`]. Code blocks, and comment lines with a table,
//! a link or a `tidy-allow`, may be wider. Words in backticks are exempt.

use super::Report;
use crate::rust_text::find_word;
use crate::tree::{SourceFile, SourceTree};

/// Maximum width of a line with a comment, in columns, indentation included.
const WIDTH_MAX: usize = 100;

/// Directories that are exempt, since their doc comments are texts of `--help`.
const NOT_HELD: &[&str] = &["crates/api/takt-cli/src/"];

/// Openings of comments that name no entity of the field.
const OPENINGS: &[&str] = &["Who ", "Whoever ", "Nobody ", "What ", "Whatever "];

/// Words that hide an entity of the field.
const WORDS: &[&str] = &["whoever", "nobody", "anew", "parted"];

const INSTEAD: &str = "name the entity: the writer, the participant, the kernel";

/// Checks the comments of Rust files.
pub fn check(tree: &SourceTree, report: &mut Report) {
    for file in &tree.files {
        if !NOT_HELD.iter().any(|directory| file.path.starts_with(directory)) {
            check_file(file, report);
        }
    }
}

fn check_file(file: &SourceFile, report: &mut Report) {
    let Some(rust) = &file.rust else { return };
    let mut is_code = false;
    for ((number, comment), line) in SourceFile::lines(&rust.comments).zip(file.text.lines()) {
        let Some(text) = body(comment) else {
            is_code = false;
            continue;
        };
        let is_fence = text.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence {
            continue;
        }
        let is_free = ["|", "http", "tidy-allow"].iter().any(|mark| text.contains(mark));
        let width = line.chars().count();
        if width > WIDTH_MAX && !is_free {
            report.fail_line("width", file, number, format!("{width} columns, at most {WIDTH_MAX}"));
        }
        if let Some(opening) = OPENINGS.iter().find(|opening| text.starts_with(**opening)) {
            report.fail_line("opening", file, number, format!("`{}`: {INSTEAD}", opening.trim()));
        }
        let prose: String = text.split('`').step_by(2).collect();
        for word in WORDS.iter().filter(|word| find_word(&prose, word, 0).is_some()) {
            report.fail_line("word", file, number, format!("`{word}`: {INSTEAD}"));
        }
    }
}

/// Returns the text of a comment line; `None` if the line has no comment.
fn body(line: &str) -> Option<&str> {
    let text = line.trim().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tests::findings;

    fn found(text: &str) -> Vec<String> {
        findings(&[("crates/a/src/x.rs", text), ("crates/api/takt-cli/src/x.rs", text)], check)
    }

    #[test]
    fn wide_comment_is_found_where_the_rules_hold() {
        let wide = format!("//! {}\n", "word ".repeat(20));
        assert_eq!(found(&wide), ["width crates/a/src/x.rs:1"]);
        assert_eq!(found(&format!("//! {}\n", "| word ".repeat(20))), [""; 0], "a table");
        assert_eq!(found(&format!("const A: &str = \"{}\";\n", "word ".repeat(20))), [""; 0], "no comment");
        let code = format!("/// ```\n/// {}\n/// ```\n", "word ".repeat(20));
        assert_eq!(found(&code), [""; 0], "code");
    }

    #[test]
    fn opening_and_word_without_a_subject_are_found() {
        let text = "//! Who waits.\n\n/// A writer that nobody reads.\nfn f() {}\n";
        assert_eq!(found(text), ["opening crates/a/src/x.rs:1", "word crates/a/src/x.rs:3"]);
        assert_eq!(found("//! A writer of the user `nobody`.\nconst A: &str = \"nobody\";\n"), [""; 0]);
    }

    #[test]
    fn allowance_with_a_reason_lifts_a_rule() {
        assert_eq!(found("// tidy-allow(word): the user of that name\n/// Runs as nobody.\n"), [""; 0]);
    }
}
