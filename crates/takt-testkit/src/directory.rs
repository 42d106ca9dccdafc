//! A directory of a test's own for temporary files, which is removed with its value.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory below that for temporary files. Its name has the process and a number: no other value has it.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// An empty directory, whose name begins with `takt-` and `name`.
    ///
    /// # Panics
    ///
    /// If it cannot be created, as [`write`](Self::write) if a file cannot.
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("takt-{name}-{}-{number}", process::id()));
        // A process with this identifier may have been killed before.
        drop(fs::remove_dir_all(&path));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// The same with files: their paths in it and their texts.
    pub fn with(name: &str, files: &[(&str, &str)]) -> Self {
        let directory = Self::new(name);
        for (path, text) in files {
            directory.write(path, text);
        }
        directory
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it.
    pub fn file(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The same as text, for a command line.
    pub fn text(&self, path: &str) -> String {
        self.file(path).display().to_string()
    }

    /// Writes a file, and makes the directories that it is in; its path.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.file(path);
        let parent = path.parent().expect("it is in this directory");
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// The text of a file.
    pub fn read(&self, path: &str) -> String {
        let path = self.file(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A file that stays in the temporary directory fails no test.
        drop(fs::remove_dir_all(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::Directory;

    #[test]
    fn directory_has_its_files_until_it_is_dropped() {
        let (one, other) = (Directory::with("same", &[("a/b.txt", "text")]), Directory::new("same"));
        assert_eq!((&*one.read("a/b.txt"), other.file("a").exists()), ("text", false));
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().is_dir());
    }
}
