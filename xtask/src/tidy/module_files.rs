//! Check that a module with submodules is `foo/mod.rs`, not `foo.rs` next to `foo/`.

use std::collections::BTreeSet;

use super::Report;
use crate::tree::SourceTree;

/// Checks that no Rust file has the name of a folder with Rust files in the same directory.
pub fn check(tree: &SourceTree, report: &mut Report) {
    let rust = || tree.files.iter().filter(|file| file.rust.is_some());
    let folders: BTreeSet<&str> =
        rust().filter_map(|file| file.path.rsplit_once('/')).map(|(folder, _)| folder).collect();
    for file in rust() {
        let folder = file.path.trim_end_matches(".rs");
        if folders.contains(folder) {
            let message = format!("its submodules are in {folder}/: move it to {folder}/mod.rs");
            report.fail("module-file", &file.path, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tests::findings;

    #[test]
    fn module_outside_the_folder_of_its_submodules_is_refused() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\n"),
            ("crates/a/src/good/mod.rs", "//! Good.\n"),
            ("crates/a/src/good/part.rs", "//! Part.\n"),
            ("crates/a/src/outside.rs", "//! Outside.\n"),
            ("crates/a/src/outside/tests.rs", "//! Tests.\n"),
            ("crates/a/src/pages.rs", "//! Module with pages.\n"),
            ("crates/a/src/pages/a.html", "<p>\n"),
            ("crates/a/tests/it.rs", "//! Tests.\n"),
        ];
        assert_eq!(findings(&files, check), ["module-file crates/a/src/outside.rs"]);
    }
}
