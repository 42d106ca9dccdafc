//! Check that the ground floor crates and the core are `no_std`, so that they use no I/O and no
//! clock.
//!
//! The attribute must be unconditional: a crate that is `no_std` only outside its tests would be
//! tested in another form than it ships. Tests use `std` through `#[cfg(test)] extern crate std`.

use super::Report;
use crate::rust_text::find_word;
use crate::tree::{SourceFile, SourceTree};

/// Crates that must be `no_std`.
const CRATES: &[&str] = &[
    "crates/protocol/takt-wire",
    "crates/transport/takt-packet",
    "crates/controller/takt-openflow",
    "crates/timing/takt-schedule",
    "crates/protocol/takt-xtypes",
    "crates/protocol/takt-core",
];

/// Checks the attribute of each crate, and that its library code does not name `std`.
pub fn check(tree: &SourceTree, report: &mut Report) {
    for directory in CRATES {
        let root = format!("{directory}/src/lib.rs");
        let code = tree.file(&root).and_then(|file| file.rust.as_ref());
        if !code.is_some_and(|rust| rust.code.contains("#![no_std]")) {
            let message = "must say #![no_std]: that is the proof of no I/O and no clock";
            report.fail("no-std", &root, message.to_owned());
        }
    }
    let guarded = |file: &&SourceFile| file.library_of().is_some_and(|c| CRATES.contains(&c));
    for file in tree.files.iter().filter(guarded) {
        let Some(rust) = &file.rust else { continue };
        for (line, code) in SourceFile::lines(&rust.code) {
            let names_std = find_word(code, "std::", 0).is_some() || find_word(code, "extern crate std", 0).is_some();
            if names_std && !rust.is_test_line(line) {
                let message = "names std: take core or alloc, or do it in `takt`".to_owned();
                report.fail_line("no-std", file, line, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CRATES, check};
    use crate::tidy::tests::findings;

    fn with(path: &str, text: &str) -> Vec<String> {
        let roots: Vec<String> = CRATES.iter().map(|c| format!("{c}/src/lib.rs")).collect();
        let mut files: Vec<(&str, &str)> =
            roots.iter().map(|root| (root.as_str(), "//! Root.\n#![no_std]\n")).collect();
        files.push((path, text));
        findings(&files, check)
    }

    #[test]
    fn attribute_must_be_present_and_unconditional() {
        assert_eq!(with("README.md", ""), Vec::<String>::new());
        let root = "crates/protocol/takt-core/src/lib.rs";
        for text in ["//! Root.\n", "//! #![no_std]\n", "#![cfg_attr(not(test), no_std)]\n"] {
            assert_eq!(with(root, text), [format!("no-std {root}")], "{text}");
        }
    }

    #[test]
    fn library_code_must_not_name_std() {
        let path = "crates/protocol/takt-wire/src/clock.rs";
        assert_eq!(with(path, "//! C.\nuse std::time;\n"), [format!("no-std {path}:2")]);
        assert_eq!(with(path, "//! C.\nextern crate std;\n"), [format!("no-std {path}:2")]);
    }

    #[test]
    fn tests_comments_and_other_crates_may_name_std() {
        let text = "//! Not std::time.\n#[cfg(test)]\nextern crate std;\n#[test]\nfn f() { std::process::id(); }\n";
        assert_eq!(with("crates/protocol/takt-wire/src/a.rs", text), Vec::<String>::new());
        assert_eq!(with("crates/api/takt/src/a.rs", "use std::time;\n"), Vec::<String>::new());
    }
}
