//! What was there before, on disk before it is changed.
//!
//! One line of JSON for each note, appended and synchronised before the knob is touched. Of several notes of one knob the first
//! says what it was, the last what it was set to. A note that is marked as forgotten ends those before it. A line that was cut
//! off belongs to a knob that was not touched; it is removed before the next one is appended. One process has a journal at a time.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::knob::Knob;
use crate::namespace;

/// A knob and what it was before anything was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    /// Which one.
    pub knob: Knob,
    /// Its value.
    pub value: String,
    /// What it was set to. None if any value is to be replaced: a change reset it that was not one of its own, or it is being
    /// restored already.
    pub set: Option<String>,
    /// The network namespace that it was noted in, if it is another knob in each.
    pub namespace: Option<u64>,
}

impl Former {
    pub(crate) fn new(knob: &Knob, value: &str, set: Option<&str>) -> Self {
        let namespace = if knob.is_of_network() { namespace::own() } else { None };
        Self { knob: knob.clone(), value: value.to_owned(), set: set.map(str::to_owned), namespace }
    }

    pub(crate) fn is_of_same_knob(&self, other: &Self) -> bool {
        self.knob == other.knob && self.namespace == other.namespace
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    knob: Knob,
    value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_forgotten: bool,
}

impl Note {
    fn new(former: &Former, is_forgotten: bool) -> Self {
        let Former { knob, value, set, namespace } = former.clone();
        Self { knob, value, set, namespace, is_forgotten }
    }

    fn line(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self).map_err(io::Error::other)? + "\n")
    }

    fn enter(self, formers: &mut Vec<Former>) {
        let Self { knob, value, set, namespace, is_forgotten } = self;
        let former = Former { knob, value, set, namespace };
        let place = formers.iter().position(|noted| noted.is_of_same_knob(&former));
        match place {
            Some(place) if is_forgotten => drop(formers.remove(place)),
            Some(place) => formers[place].set = former.set,
            None if is_forgotten => {}
            None => formers.push(former),
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Octets of whole lines.
    len: u64,
    /// Whether a part of a line follows them.
    is_torn: bool,
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
            let mut formers = Vec::new();
            for line in text[..whole].lines() {
                let note: Note =
                    serde_json::from_str(line).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
                note.enter(&mut formers);
            }
            return Ok(Self { path, file, len: whole as u64, is_torn: false, formers });
        }
    }

    /// What was there, in the order in which it was changed.
    pub fn formers(&self) -> &[Former] {
        &self.formers
    }

    /// Writes down what knobs are and will be set to. The value of a knob that was noted before stays.
    pub(crate) fn note(&mut self, formers: &[Former]) -> io::Result<()> {
        self.append(formers, false)
    }

    /// These are as they were: the notes of them end.
    pub(crate) fn forget(&mut self, formers: &[Former]) -> io::Result<()> {
        self.append(formers, true)
    }

    fn append(&mut self, formers: &[Former], is_forgotten: bool) -> io::Result<()> {
        let notes = || formers.iter().map(|former| Note::new(former, is_forgotten));
        let lines: String = notes().map(|note| note.line()).collect::<io::Result<_>>()?;
        if self.is_torn {
            self.file.set_len(self.len)?;
            self.is_torn = false;
        }
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_all());
        if let Err(why) = written {
            // A line behind a part of one would be none.
            self.is_torn = self.file.set_len(self.len).is_err();
            return Err(why);
        }
        // The file's own name, the first time.
        if let Some(directory) = self.path.parent().filter(|_| self.len == 0) {
            File::open(directory)?.sync_all()?;
        }
        self.len += lines.len() as u64;
        notes().for_each(|note| note.enter(&mut self.formers));
        Ok(())
    }

    /// Keeps only what is still to be restored; nothing left, there is no journal.
    pub(crate) fn keep(self, formers: Vec<Former>) -> io::Result<()> {
        if formers.is_empty() {
            return fs::remove_file(&self.path);
        }
        let text: String = formers.iter().map(|former| Note::new(former, false).line()).collect::<io::Result<_>>()?;
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
