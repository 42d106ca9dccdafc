//! Check for forbidden text: unfinished work, disabled tests, sleeps in tests, and words that refer
//! to the machine of the author.
//!
//! The words are split in two in this file, so that it does not match itself.

use super::Report;
use crate::rust_text::find_word;
use crate::tree::{SourceFile, SourceTree};

/// Text that is searched for a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Rust code, without comments and literals.
    RustCode,
    /// The code of Rust tests.
    RustTests,
    /// Every line of a source file or script, comments included, but not of documents.
    Source,
    /// Every text file.
    Anywhere,
}

struct Word {
    rule: &'static str,
    text: &'static str,
    within: Within,
    instead: &'static str,
}

/// Beginning of the ignore reason of a test that is a process started by another test.
const ROLE: &str = "= \"role: ";

const UNFINISHED: &str = "finish it, or take it out and file it";
const LIMIT: &str = "wait with a limit: `takt_testkit::waiting::receive`";
const MACHINE: &str = "the project knows no machine but its user's";

const WORDS: &[Word] = &[
    word("unfinished", concat!("to", "do!"), Within::RustCode, UNFINISHED),
    word("unfinished", concat!("unimple", "mented!"), Within::RustCode, UNFINISHED),
    word("unfinished", concat!("FIX", "ME"), Within::Source, UNFINISHED),
    word("unfinished", concat!("XX", "X"), Within::Source, UNFINISHED),
    word("unfinished", concat!("TO", "DO"), Within::Source, UNFINISHED),
    word("debug", concat!("db", "g!"), Within::RustCode, "take it out"),
    word(
        "ignored",
        concat!("#[ig", "nore"),
        Within::RustCode,
        "a test runs, or does not exist; a role says `role: ...`",
    ),
    word("sleep", concat!("thread::", "sleep"), Within::RustTests, "wait for the condition"),
    word("wait", concat!(".recv().", "expect("), Within::RustTests, LIMIT),
    word("wait", concat!(".recv().", "unwrap("), Within::RustTests, LIMIT),
    word("skip", concat!("return epr", "intln!"), Within::RustTests, "report by `takt_testkit::not_run`"),
    word("machine", concat!("/wo", "rk/"), Within::Anywhere, MACHINE),
    word("machine", concat!("/ro", "ot/"), Within::Anywhere, MACHINE),
    word("machine", concat!("/ho", "me/"), Within::Anywhere, MACHINE),
    word("machine", concat!("bash", "_jobs"), Within::Anywhere, MACHINE),
    word("machine", concat!(".lib", "rary"), Within::Anywhere, MACHINE),
    word("machine", concat!("this ses", "sion"), Within::Anywhere, MACHINE),
    word("machine", concat!("sub", "agent"), Within::Anywhere, MACHINE),
];

const fn word(rule: &'static str, text: &'static str, within: Within, instead: &'static str) -> Word {
    Word { rule, text, within, instead }
}

/// Searches every file for every word.
pub fn check(tree: &SourceTree, report: &mut Report) {
    for file in &tree.files {
        let is_document = matches!(file.extension(), "md" | "lock" | "txt" | "json");
        for word in WORDS {
            match (&file.rust, word.within) {
                (Some(rust), Within::RustCode | Within::RustTests) => {
                    find(file, &rust.code, word, report);
                }
                (None, Within::RustCode | Within::RustTests) => {}
                (_, Within::Source) if is_document => {}
                (_, Within::Source | Within::Anywhere) => find(file, &file.text, word, report),
            }
        }
    }
}

fn find(file: &SourceFile, text: &str, word: &Word, report: &mut Report) {
    let tests_only = word.within == Within::RustTests;
    for (line, content) in SourceFile::lines(text) {
        let is_test = file.rust.as_ref().is_some_and(|r| r.is_test_line(line));
        let is_role = word.rule == "ignored" && file.text.lines().nth(line - 1).is_some_and(|line| line.contains(ROLE));
        if (is_test || !tests_only) && !is_role && find_word(content, word.text, 0).is_some() {
            let message = format!("`{}`: {}", word.text, word.instead);
            report.fail_line(word.rule, file, line, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WORDS, Within, check};
    use crate::tidy::tests::findings;

    #[test]
    fn every_word_is_found_in_its_scope() {
        for word in WORDS {
            let text = match word.within {
                Within::RustTests => format!("#[test]\nfn f() {{\n    {}(x);\n}}\n", word.text),
                _ => format!("\n\n{} ]\n", word.text),
            };
            let found = findings(&[("crates/a/src/x.rs", &text)], check);
            assert_eq!(found, [format!("{} crates/a/src/x.rs:3", word.rule)], "{}", word.text);
        }
    }

    #[test]
    fn code_words_are_allowed_in_comments_literals_and_documents() {
        for word in WORDS.iter().filter(|w| w.within == Within::RustCode) {
            let rust = format!("// {0}\nconst A: &str = \"{0}\";\n", word.text);
            let document = format!("Never write {}.\n", word.text);
            let files = [("crates/a/src/x.rs", rust.as_str()), ("a.md", document.as_str())];
            assert_eq!(findings(&files, check), Vec::<String>::new(), "{}", word.text);
        }
    }

    #[test]
    fn machine_words_are_found_in_documents_and_scripts() {
        for word in WORDS.iter().filter(|w| w.within == Within::Anywhere) {
            let text = format!("see {} there\n", word.text);
            let found = findings(&[("docs/a.md", &text), (".ci/run", &text)], check);
            assert_eq!(found, ["machine .ci/run:1", "machine docs/a.md:1"], "{}", word.text);
        }
    }

    #[test]
    fn sleep_outside_tests_is_no_finding() {
        let text = format!("fn pace() {{ {}(d); }}\n", concat!("std::thread::", "sleep"));
        assert_eq!(findings(&[("crates/a/src/x.rs", &text)], check), Vec::<String>::new());
    }

    #[test]
    fn allowance_disables_the_check_of_a_word() {
        let text = format!(
            "#[test]\nfn f() {{\n    // tidy-allow(sleep): the load is paced\n    {}(d);\n}}\n",
            concat!("thread::", "sleep")
        );
        assert_eq!(findings(&[("crates/a/src/x.rs", &text)], check), Vec::<String>::new());
    }

    #[test]
    fn process_started_by_another_test_may_be_ignored() {
        let text = concat!("#[test]\n#[ig", "nore = \"role: started by x\"]\nfn f() {}\n");
        assert_eq!(findings(&[("crates/a/tests/it/x.rs", text)], check), Vec::<String>::new());
    }

    #[test]
    fn longer_word_does_not_match() {
        let text = concat!("// mktemp takt.XX", "XX", "XX and TO", "DOS\n");
        assert_eq!(findings(&[("crates/a/src/x.rs", text)], check), Vec::<String>::new());
    }
}
