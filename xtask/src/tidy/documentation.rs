//! Check that every module begins with a `//!` comment.

use super::Report;
use crate::tree::SourceTree;

/// Checks the first line of every Rust file.
pub fn check(tree: &SourceTree, report: &mut Report) {
    for file in tree.files.iter().filter(|file| file.rust.is_some()) {
        // Inputs of compile-fail tests stand for user files, not for modules of the project.
        if file.path.contains("/tests/ui/") {
            continue;
        }
        let first = file.text.lines().find(|line| !line.trim().is_empty());
        if !first.is_some_and(|line| line.starts_with("//!")) {
            let message = "must open with `//!`: what it is, and what it deliberately is not";
            report.fail("documentation", &file.path, message.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tests::findings;

    #[test]
    fn file_without_a_leading_module_comment_fails() {
        let files = [
            ("crates/a/src/good.rs", "\n//! Good.\n#![no_std]\n"),
            ("crates/a/src/attribute.rs", "#![no_std]\n//! Late.\n"),
            ("crates/a/src/empty.rs", ""),
            ("crates/a/src/plain.rs", "// Not a module comment.\n"),
            ("crates/a/tests/ui/unknown.rs", "fn main() {}\n"),
            ("scripts/a.sh", "#!/bin/sh\n"),
        ];
        let expected = ["attribute", "empty", "plain"];
        let expected = expected.map(|n| format!("documentation crates/a/src/{n}.rs"));
        assert_eq!(findings(&files, check), expected);
    }
}
