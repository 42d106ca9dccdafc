//! Temporary files of tests.

use std::path::PathBuf;

/// Temporary file. It is removed when the value is dropped.
pub struct File(pub PathBuf);

impl File {
    /// Creates a file with this content. Its name is unique to this test process.
    pub fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("takt-cli-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("the temporary directory can be written");
        Self(path)
    }

    pub fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}
