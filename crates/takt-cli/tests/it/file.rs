//! Files for the time of a test.

use std::path::PathBuf;

/// A file that goes with its handle.
pub struct File(pub PathBuf);

impl File {
    /// One of this text, whose name is this test program's alone.
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
