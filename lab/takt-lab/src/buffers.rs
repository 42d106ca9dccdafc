//! Default socket buffer sizes of the machine, raised while Open vSwitch opens its sockets.
//!
//! Open vSwitch sends all frames by one packet socket; frames that wait in a queueing discipline
//! are charged to it. It also has one socket for each port that it receives from. It sets the size
//! of neither, so both have the sizes of `net.core.wmem_default` and `rmem_default`, which hold for
//! all network namespaces.
//!
//! Invariant: the former values are on disk before they are changed. One process changes them at a
//! time. The lock is on the directory of all labs; the kernel releases it when the process ends.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::record::LABS;

const SETTINGS: [&str; 2] = ["/proc/sys/net/core/wmem_default", "/proc/sys/net/core/rmem_default"];

/// Former and raised value of a setting.
#[derive(Debug, Serialize, Deserialize)]
struct Change {
    path: String,
    #[serde(rename = "was")]
    former: u64,
    raised: u64,
}

/// Guard: the settings are raised while it exists.
#[derive(Debug)]
pub struct RaisedBufferSizes {
    /// Lock file; closing it releases the lock.
    _lock: File,
}

fn saved_values_path() -> PathBuf {
    Path::new(LABS).join(".buffers")
}

/// Returns the path of the file of former values while it is written.
fn draft() -> PathBuf {
    Path::new(LABS).join(".buffers.new")
}

fn read(path: &str) -> io::Result<u64> {
    fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
}

impl RaisedBufferSizes {
    /// Raises both settings to at least `send` and `receive` octets. Waits for another process that
    /// has raised them.
    pub fn new(send: u64, receive: u64) -> io::Result<Self> {
        fs::create_dir_all(LABS)?;
        let lock = File::open(LABS)?;
        lock.lock()?;
        restore()?;
        let change = |(path, wanted): (&str, u64)| {
            let former = read(path)?;
            Ok(Change { path: path.to_owned(), former, raised: former.max(wanted) })
        };
        let changes: Vec<_> = SETTINGS.into_iter().zip([send, receive]).map(change).collect::<io::Result<_>>()?;
        fs::write(draft(), serde_json::to_string(&changes).map_err(io::Error::other)?)?;
        fs::rename(draft(), saved_values_path())?;
        let raised = Self { _lock: lock };
        changes.iter().try_for_each(|change| fs::write(&change.path, change.raised.to_string()))?;
        Ok(raised)
    }

    /// Restores the settings.
    pub fn restore(self) -> io::Result<()> {
        restore()
    }
}

impl Drop for RaisedBufferSizes {
    fn drop(&mut self) {
        // After `restore` there is nothing left to restore. The next lab, which reads the file,
        // repeats a failed restoration.
        drop(restore());
    }
}

/// Restores settings that a killed process left raised. A running process that has raised them
/// restores them itself.
pub fn restore_abandoned() -> io::Result<()> {
    let lock = match File::open(LABS) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    match lock.try_lock() {
        Ok(()) => restore(),
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Restores the saved values, unless a setting was changed since. The caller holds the lock.
fn restore() -> io::Result<()> {
    if draft().exists() {
        fs::remove_file(draft())?;
    }
    let text = match fs::read_to_string(saved_values_path()) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let changes: Vec<Change> = serde_json::from_str(&text).map_err(io::Error::other)?;
    for Change { path, former, raised } in changes {
        // Only settings of this module are written, even if the file names others.
        if SETTINGS.contains(&path.as_str()) && read(&path)? == raised {
            fs::write(path, former.to_string())?;
        }
    }
    fs::remove_file(saved_values_path())
}
