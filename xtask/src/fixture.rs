//! Temporary work tree for tests of the checks, removed on drop.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::tree::SourceTree;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Directory with the given files.
pub struct Fixture {
    root: PathBuf,
}

impl Fixture {
    /// Creates a directory with `files`, pairs of relative path and text.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("takt-xtask-{}-{number}", std::process::id());
        let fixture = Self { root: std::env::temp_dir().join(name) };
        for (path, text) in files {
            fixture.write_bytes(path, text.as_bytes());
        }
        fixture
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes another file.
    pub fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.root.join(path);
        let directory = path.parent().expect("the path is below the root");
        fs::create_dir_all(directory).expect("the temporary directory is writable");
        fs::write(path, bytes).expect("the temporary directory is writable");
    }

    /// Loads the tree as the checks do.
    pub fn tree(&self) -> SourceTree {
        SourceTree::load(&self.root).expect("the fixture is readable")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("cannot remove {}: {error}", self.root.display());
        }
    }
}
