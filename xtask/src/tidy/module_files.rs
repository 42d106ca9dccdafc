//! Check of the one place of a module with submodules: `foo/mod.rs`, not `foo.rs` beside `foo/`.

use std::collections::BTreeSet;

use super::Report;
use crate::tree::SourceTree;

/// Modules beside their folder that have yet to move.
const PENDING: &[&str] = &["crates/takt-core/src/cache/pool.rs"];

/// Checks that no Rust file lies beside a folder of its name with Rust files.
pub fn check(tree: &SourceTree, report: &mut Report) {
    let rust = || tree.files.iter().filter(|file| file.rust.is_some());
    let folders: BTreeSet<&str> =
        rust().filter_map(|file| file.path.rsplit_once('/')).map(|(folder, _)| folder).collect();
    for file in rust().filter(|file| !PENDING.contains(&file.path.as_str())) {
        let folder = file.path.trim_end_matches(".rs");
        if folders.contains(folder) {
            let message = format!("lies beside the folder of its submodules: move it to {folder}/mod.rs");
            report.fail("module-file", &file.path, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tests::findings;

    #[test]
    fn module_beside_its_folder_is_refused() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\n"),
            ("crates/a/src/good/mod.rs", "//! Good.\n"),
            ("crates/a/src/good/part.rs", "//! Part.\n"),
            ("crates/a/src/beside.rs", "//! Beside.\n"),
            ("crates/a/src/beside/tests.rs", "//! Tests.\n"),
            ("crates/a/src/pages.rs", "//! Module with pages.\n"),
            ("crates/a/src/pages/a.html", "<p>\n"),
            ("crates/a/tests/it.rs", "//! Tests.\n"),
        ];
        assert_eq!(findings(&files, check), ["module-file crates/a/src/beside.rs"]);
    }
}
