//! Work tree as read by the checks: every text file of the project, read once.
//!
//! Paths are relative to the root and use `/`. Build output, version control, virtual environments
//! and untracked files that git ignores are skipped; symbolic links are not followed. For binary
//! files (not UTF-8) only the path is kept.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::rust_text::RustText;

/// Directories that contain no source of the project.
const SKIPPED_DIRECTORIES: &[&str] = &["target", ".git", ".venv", "venv", "node_modules", "corpus"];

/// In a linked work tree this is a file that contains the path of the repository.
const GIT_LINK: &str = ".git";

/// Text file.
pub struct SourceFile {
    /// Path relative to the root, with `/`.
    pub path: String,
    /// Full text.
    pub text: String,
    /// Scanned text of a Rust file.
    pub rust: Option<RustText>,
}

impl SourceFile {
    /// Creates a source file and its views; `path` is relative to the root.
    pub fn new(path: &str, text: &str) -> Self {
        let rust = path.ends_with(".rs").then(|| RustText::scan(text));
        Self { path: path.to_owned(), text: text.to_owned(), rust }
    }

    /// Returns the part of the file name after the last dot, or "".
    pub fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or("");
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Returns the directory of the crate (`crates/protocol/takt-wire`, `examples`), if the file is
    /// in its `src/`.
    pub fn library_of(&self) -> Option<&str> {
        let at = self.path.find("/src/")?;
        Some(&self.path[..at])
    }

    /// Returns the numbered lines of `text`, from 1.
    pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
        text.lines().enumerate().map(|(i, line)| (i + 1, line))
    }
}

/// All text files of the project, sorted by path.
pub struct SourceTree {
    /// Text files.
    pub files: Vec<SourceFile>,
    /// Paths of all files, binary ones included, and of their directories.
    paths: BTreeSet<String>,
}

impl SourceTree {
    /// Reads the tree at `root`.
    pub fn load(root: &Path) -> Result<Self, String> {
        let mut tree = Self { files: Vec::new(), paths: BTreeSet::new() };
        tree.visit(root, "", &ignored_paths(root))?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        tree.mark_test_modules();
        Ok(tree)
    }

    /// Returns the file at `path`, if there is one.
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Reports whether there is a file or directory at `path`.
    pub fn has_path(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    fn visit(&mut self, directory: &Path, prefix: &str, ignored: &BTreeSet<String>) -> Result<(), String> {
        let fail = |error| format!("cannot read {}: {error}", directory.display());
        for entry in fs::read_dir(directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let kind = entry.file_type().map_err(fail)?;
            let path = format!("{prefix}{name}");
            if ignored.contains(&path) {
                continue;
            }
            if kind.is_dir() && !SKIPPED_DIRECTORIES.contains(&name.as_str()) {
                self.visit(&entry.path(), &format!("{path}/"), ignored)?;
                self.paths.insert(path);
            } else if kind.is_file() && path != GIT_LINK {
                let bytes = fs::read(entry.path())
                    .map_err(|error| format!("cannot read {}: {error}", entry.path().display()))?;
                if let Ok(text) = String::from_utf8(bytes) {
                    self.files.push(SourceFile::new(&path, &text));
                }
                self.paths.insert(path);
            }
        }
        Ok(())
    }

    /// Marks whole files as tests: those in `tests/` and `benches/`, those named `tests.rs`, and
    /// those of modules declared `#[cfg(test)] mod name;`.
    fn mark_test_modules(&mut self) {
        let mut declared = Vec::new();
        for file in &self.files {
            let Some(rust) = &file.rust else { continue };
            let directory = module_directory(&file.path);
            for name in rust.test_modules() {
                declared.push(format!("{directory}/{name}.rs"));
                declared.push(format!("{directory}/{name}/"));
            }
        }
        for file in &mut self.files {
            let path = file.path.as_str();
            let by_place = path.split('/').any(|part| part == "tests" || part == "benches" || part == "tests.rs");
            let by_declaration =
                declared.iter().any(|place| path == place || (place.ends_with('/') && path.starts_with(place)));
            if let Some(rust) = &mut file.rust
                && (by_place || by_declaration)
            {
                rust.mark_all_as_test();
            }
        }
    }
}

/// Returns untracked files and directories that git ignores, relative to `root`. Outside a
/// repository, or without git, there are none: the checks then read more files, never fewer.
fn ignored_paths(root: &Path) -> BTreeSet<String> {
    let list = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
    let Ok(output) = Command::new("git").args(list).current_dir(root).output() else {
        return BTreeSet::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let paths = text.split('\0').map(|path| path.trim_end_matches('/').to_owned());
    paths.filter(|path| !path.is_empty()).collect()
}

/// Returns the directory of the submodules of the module in `path`.
fn module_directory(path: &str) -> String {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => directory.to_owned(),
        _ => format!("{directory}/{}", name.trim_end_matches(".rs")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use takt_testkit::{not_run, require};

    use crate::fixture::Fixture;

    fn git(fixture: &Fixture, arguments: &[&str]) {
        let status = Command::new("git").args(arguments).current_dir(fixture.path()).status();
        assert!(status.expect("git is installed").success(), "git {arguments:?}");
    }

    #[test]
    fn tree_skips_ignored_files_unless_they_are_tracked() {
        if let Err(why) = require::program("git") {
            return not_run(why);
        }
        let fixture = Fixture::new(&[
            (".gitignore", "/fuzz/scratch\n*.log\n"),
            ("README.md", "door"),
            ("fuzz/scratch/core.txt", "output of a run"),
            ("fuzz/run.log", "output of a run"),
            ("fuzz/kept.log", "a tracked sample"),
        ]);
        git(&fixture, &["init", "--quiet"]);
        git(&fixture, &["add", "--force", "fuzz/kept.log"]);
        let tree = fixture.tree();
        let paths: Vec<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".gitignore", "README.md", "fuzz/kept.log"]);
        assert!(!tree.has_path("fuzz/scratch") && !tree.has_path("fuzz/run.log"));
    }

    #[test]
    fn build_output_is_skipped_and_files_are_sorted() {
        let fixture = Fixture::new(&[
            ("crates/b/src/lib.rs", "//! b\n"),
            ("crates/a/src/lib.rs", "//! a\n"),
            ("target/debug/x.rs", "no"),
            (".ci/run", "#!/bin/sh\n"),
        ]);
        let tree = fixture.tree();
        let paths: Vec<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".ci/run", "crates/a/src/lib.rs", "crates/b/src/lib.rs"]);
    }

    #[test]
    fn link_file_of_a_linked_work_tree_is_skipped() {
        let fixture = Fixture::new(&[("README.md", "door"), (".git", "gitdir: /somewhere/else\n")]);
        let tree = fixture.tree();
        let paths: Vec<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["README.md"]);
        assert!(!tree.has_path(".git"));
    }

    #[test]
    fn binary_files_are_skipped() {
        let fixture = Fixture::new(&[("README.md", "door")]);
        fixture.write_bytes("picture.png", &[0xff, 0xd8, 0xfe]);
        let tree = fixture.tree();
        assert_eq!(tree.files.len(), 1);
        assert!(tree.file("README.md").is_some() && tree.has_path("picture.png"));
    }

    #[test]
    fn test_files_are_found_by_path_and_by_declaration() {
        let fixture = Fixture::new(&[
            ("crates/a/src/lib.rs", "//! a\n#[cfg(test)]\nmod testing;\npub mod cache;\n"),
            ("crates/a/src/testing.rs", "//! helpers\nfn f() {}\n"),
            ("crates/a/src/cache.rs", "//! cache\n#[cfg(test)]\nmod tests;\n"),
            ("crates/a/src/cache/tests.rs", "//! tests\nfn g() {}\n"),
            ("crates/a/tests/it/main.rs", "//! it\nfn h() {}\n"),
        ]);
        let tree = fixture.tree();
        let is_test = |path: &str| {
            let rust = tree.file(path).and_then(|file| file.rust.as_ref());
            rust.expect("fixture has the file").is_test_line(2)
        };
        assert!(is_test("crates/a/src/testing.rs"));
        assert!(is_test("crates/a/src/cache/tests.rs"));
        assert!(is_test("crates/a/tests/it/main.rs"));
        assert!(!tree.file("crates/a/src/lib.rs").expect("there").rust.as_ref().expect("rust").is_test_line(4));
    }

    #[test]
    fn extension_and_library_are_derived_from_the_path() {
        let file = super::SourceFile::new("crates/a/src/x/y.rs", "");
        assert_eq!(file.extension(), "rs");
        assert_eq!(file.library_of(), Some("crates/a"));
        let script = super::SourceFile::new(".ci/run", "");
        assert_eq!(script.extension(), "");
        assert_eq!(script.library_of(), None);
    }
}
