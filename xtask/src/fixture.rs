//! A small work tree in a directory of its own, removed when dropped: what the checks are tested on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::tree::SourceTree;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A directory with the given files.
pub struct Fixture {
    root: PathBuf,
}

impl Fixture {
    /// Writes `files`, pairs of relative path and text.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("takt-xtask-{}-{number}", std::process::id());
        let fixture = Self { root: std::env::temp_dir().join(name) };
        for (path, text) in files {
            fixture.write_bytes(path, text.as_bytes());
        }
        fixture
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes one more file.
    pub fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.root.join(path);
        let directory = path.parent().expect("the path is below the root");
        fs::create_dir_all(directory).expect("the temporary directory is writable");
        fs::write(path, bytes).expect("the temporary directory is writable");
    }

    /// The tree as the checks see it.
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
