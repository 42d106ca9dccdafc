//! Journal of former values, written to disk before a setting is changed.
//!
//! Each entry is one line of JSON, appended and synchronized before the setting is changed. If a
//! setting has several entries, the first contains its original value and the last the value that
//! was set. An entry with `is_forgotten` removes the earlier entries of its setting. An incomplete
//! last line belongs to a setting that was not changed. It is removed before the next entry is
//! appended. Only one process at a time has a journal open.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::namespace;
use crate::setting::Setting;

/// Setting and its value before any change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerValue {
    /// Changed setting.
    pub setting: Setting,
    /// Original value.
    pub value: String,
    /// Value that was set. `None` if any value is to be replaced: another change reset the setting,
    /// or its restoration has begun.
    pub set: Option<String>,
    /// Network namespace of the entry, if the setting differs between namespaces.
    pub namespace: Option<u64>,
}

impl FormerValue {
    pub(crate) fn new(setting: &Setting, value: &str, set: Option<&str>) -> Self {
        let namespace = if setting.is_of_network() { namespace::own() } else { None };
        Self { setting: setting.clone(), value: value.to_owned(), set: set.map(str::to_owned), namespace }
    }

    pub(crate) fn is_of_same_setting(&self, other: &Self) -> bool {
        self.setting == other.setting && self.namespace == other.namespace
    }
}

/// Line of the journal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalLine {
    #[serde(rename = "knob")]
    setting: Setting,
    value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<u64>,
    #[serde(rename = "is_forgotten", default, skip_serializing_if = "std::ops::Not::not")]
    is_removed: bool,
}

impl JournalLine {
    fn new(former: &FormerValue, is_removed: bool) -> Self {
        let FormerValue { setting, value, set, namespace } = former.clone();
        Self { setting, value, set, namespace, is_removed }
    }

    fn line(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self).map_err(io::Error::other)? + "\n")
    }

    fn enter(self, former_values: &mut Vec<FormerValue>) {
        let Self { setting, value, set, namespace, is_removed } = self;
        let former = FormerValue { setting, value, set, namespace };
        let index = former_values.iter().position(|recorded| recorded.is_of_same_setting(&former));
        match index {
            Some(index) if is_removed => drop(former_values.remove(index)),
            Some(index) => former_values[index].set = former.set,
            None if is_removed => {}
            None => former_values.push(former),
        }
    }
}

/// Journal file, see the [module](self).
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Length of all complete lines, in octets.
    len: u64,
    /// Whether an incomplete line follows.
    is_torn: bool,
    former_values: Vec<FormerValue>,
}

impl Journal {
    /// Default path. Like the settings, it does not survive a reboot.
    pub const PATH: &str = "/run/takt/host.journal";

    /// Opens the journal, or creates an empty one.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it open, `InvalidData` for an invalid complete line, and
    /// errors of the file system.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        loop {
            let mut file = File::options().read(true).append(true).create(true).open(&path)?;
            file.try_lock().map_err(|e| match e {
                fs::TryLockError::WouldBlock => {
                    io::Error::new(io::ErrorKind::WouldBlock, "another process has locked the journal")
                }
                fs::TryLockError::Error(e) => e,
            })?;
            // The previous holder may have removed the file meanwhile.
            if !is_same(&file, &path)? {
                continue;
            }
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            file.set_len(whole as u64)?;
            let mut former_values = Vec::new();
            for line in text[..whole].lines() {
                let note: JournalLine =
                    serde_json::from_str(line).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
                note.enter(&mut former_values);
            }
            return Ok(Self { path, file, len: whole as u64, is_torn: false, former_values });
        }
    }

    /// Returns the former values in the order of the changes.
    pub fn former_values(&self) -> &[FormerValue] {
        &self.former_values
    }

    /// Records the present values of settings and the values to set. The original value of a
    /// setting with an earlier entry is kept.
    pub(crate) fn record(&mut self, former_values: &[FormerValue]) -> io::Result<()> {
        self.append(former_values, false)
    }

    /// Removes the entries of settings that have their original values again.
    pub(crate) fn remove(&mut self, former_values: &[FormerValue]) -> io::Result<()> {
        self.append(former_values, true)
    }

    fn append(&mut self, former_values: &[FormerValue], is_removed: bool) -> io::Result<()> {
        let notes = || former_values.iter().map(|former| JournalLine::new(former, is_removed));
        let lines: String = notes().map(|note| note.line()).collect::<io::Result<_>>()?;
        if self.is_torn {
            self.file.set_len(self.len)?;
            self.is_torn = false;
        }
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_all());
        if let Err(why) = written {
            // A line that follows an incomplete one would be unreadable.
            self.is_torn = self.file.set_len(self.len).is_err();
            return Err(why);
        }
        // The directory entry of the file has to be synchronized once.
        if let Some(directory) = self.path.parent().filter(|_| self.len == 0) {
            File::open(directory)?.sync_all()?;
        }
        self.len += lines.len() as u64;
        notes().for_each(|note| note.enter(&mut self.former_values));
        Ok(())
    }

    /// Keeps only the values that remain to be restored. Removes the file if there are none.
    pub(crate) fn keep(self, former_values: Vec<FormerValue>) -> io::Result<()> {
        if former_values.is_empty() {
            return fs::remove_file(&self.path);
        }
        let text: String =
            former_values.iter().map(|former| JournalLine::new(former, false).line()).collect::<io::Result<_>>()?;
        let temporary = self.path.with_extension("new");
        fs::write(&temporary, text)?;
        File::open(&temporary)?.sync_all()?;
        fs::rename(&temporary, &self.path)
    }
}

impl Drop for Journal {
    /// Unlocks explicitly, since a child between `fork` and `exec` shares the file and would keep
    /// the lock.
    fn drop(&mut self) {
        let unlocked = self.file.unlock();
        debug_assert!(unlocked.is_ok(), "an open file can be unlocked");
    }
}

/// Reports whether an open file is the one at a path.
fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let own = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())))
}
