//! What was there before, on disk before it is changed.
//!
//! One line of JSON for each knob, appended and synchronised before the knob is touched. A line that was cut off belongs to a knob
//! that was not touched. Who holds a journal has it alone.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::knob::Knob;
use crate::namespace;

/// A knob and what it was before anything was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Former {
    /// Which one.
    pub knob: Knob,
    /// Its value.
    pub value: String,
    /// The network namespace that it was noted in, if it is another knob in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u64>,
}

impl Former {
    pub(crate) fn new(knob: &Knob, value: &str) -> Self {
        let namespace = if knob.is_of_network() { namespace::own() } else { None };
        Self { knob: knob.clone(), value: value.to_owned(), namespace }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    formers: Vec<Former>,
}

impl Journal {
    /// Where it is unless somebody says otherwise. It does not outlive the machine's running, nor do the knobs.
    pub const PATH: &str = "/run/takt/host.journal";

    /// Opens the journal, which is empty if there was none.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it; `InvalidData` for a whole line that makes no sense; what else the file system says.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        loop {
            let mut file = File::options().read(true).append(true).create(true).open(&path)?;
            file.try_lock().map_err(|e| match e {
                fs::TryLockError::WouldBlock => {
                    io::Error::new(io::ErrorKind::WouldBlock, "another process has the journal")
                }
                fs::TryLockError::Error(e) => e,
            })?;
            // Who had it may have removed it meanwhile.
            if !is_same(&file, &path)? {
                continue;
            }
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            file.set_len(whole as u64)?;
            let parse =
                |line: &str| serde_json::from_str(line).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e));
            let formers = text[..whole].lines().map(parse).collect::<io::Result<_>>()?;
            return Ok(Self { path, file, formers });
        }
    }

    /// What was there, in the order in which it was changed.
    pub fn formers(&self) -> &[Former] {
        &self.formers
    }

    /// Writes down what a knob is, unless that was done before.
    pub(crate) fn note(&mut self, knob: &Knob, value: &str) -> io::Result<()> {
        let former = Former::new(knob, value);
        let is_same = |noted: &Former| noted.knob == former.knob && noted.namespace == former.namespace;
        if self.formers.iter().any(is_same) {
            return Ok(());
        }
        let line = serde_json::to_string(&former).map_err(io::Error::other)? + "\n";
        self.file.write_all(line.as_bytes())?;
        self.file.sync_all()?;
        // The file's own name, the first time.
        if let Some(directory) = self.path.parent().filter(|_| self.formers.is_empty()) {
            File::open(directory)?.sync_all()?;
        }
        self.formers.push(former);
        Ok(())
    }

    /// Keeps only what is still to be restored; nothing left, there is no journal.
    pub(crate) fn keep(self, formers: Vec<Former>) -> io::Result<()> {
        if formers.is_empty() {
            return fs::remove_file(&self.path);
        }
        let lines = formers.iter().map(|former| serde_json::to_string(former).map_err(io::Error::other));
        let text: String = lines.map(|line| line.map(|line| line + "\n")).collect::<io::Result<_>>()?;
        let beside = self.path.with_extension("new");
        fs::write(&beside, text)?;
        File::open(&beside)?.sync_all()?;
        fs::rename(&beside, &self.path)
    }
}

impl Drop for Journal {
    /// A child between `fork` and `exec` has the file too, and would have the lock.
    fn drop(&mut self) {
        let unlocked = self.file.unlock();
        debug_assert!(unlocked.is_ok(), "an open file can be unlocked");
    }
}

/// Whether an open file is the one at a path.
fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let own = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())))
}
