//! Temporary directory of a test, removed on drop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Subdirectory of the directory for temporary files. Its name contains the process id and a
/// counter, so it is unique.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// Creates an empty directory whose name begins with `takt-` and `name`.
    ///
    /// # Panics
    ///
    /// The directory cannot be created; [`write`](Self::write) panics likewise.
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("takt-{name}-{}-{number}", process::id()));
        // An earlier process with this id may have been killed before its cleanup.
        drop(fs::remove_dir_all(&path));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// Creates a directory with files, given by their relative paths and texts.
    pub fn with(name: &str, files: &[(&str, &str)]) -> Self {
        let directory = Self::new(name);
        for (path, text) in files {
            directory.write(path, text);
        }
        directory
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in the directory.
    pub fn file(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// Returns the path of a file as text, for a command line.
    pub fn text(&self, path: &str) -> String {
        self.file(path).display().to_string()
    }

    /// Writes a file and creates its parent directories; returns its path.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.file(path);
        let parent = path.parent().expect("the path is in this directory");
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Returns the text of a file.
    pub fn read(&self, path: &str) -> String {
        let path = self.file(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A file that remains in the temporary directory must not fail a test.
        drop(fs::remove_dir_all(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::Directory;

    #[test]
    fn directory_keeps_its_files_until_it_is_dropped() {
        let (one, other) = (Directory::with("same", &[("a/b.txt", "text")]), Directory::new("same"));
        assert_eq!((&*one.read("a/b.txt"), other.file("a").exists()), ("text", false));
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().is_dir());
    }
}
