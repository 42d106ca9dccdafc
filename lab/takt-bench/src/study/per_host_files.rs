//! Separate `/dev/shm` and machine ID for each of two hosts on one machine.

use crate::error::{Error, Result};
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const MEMORY: &str = "/dev/shm";
const MACHINE_ID: &str = "/etc/machine-id";

/// Directory with a `/dev/shm` and a machine ID; dropping the value removes it.
#[derive(Debug)]
pub(super) struct PerHostFiles {
    directory: PathBuf,
}

impl PerHostFiles {
    /// # Errors
    /// The machine has no writable `/dev/shm`.
    pub fn of_two_hosts() -> Result<[Self; 2]> {
        Ok([Self::new(1)?, Self::new(2)?])
    }

    fn new(number: u32) -> Result<Self> {
        let process = std::process::id();
        let own = Self { directory: Path::new(MEMORY).join(format!("takt-bench-{process}-{number}")) };
        let make = || {
            fs::create_dir_all(own.memory())?;
            fs::write(own.machine_id(), format!("{:032x}\n", u128::from(process) << 64 | u128::from(number)))
        };
        make().map_err(|e| Error::os(own.directory.display().to_string(), e))?;
        Ok(own)
    }

    fn memory(&self) -> PathBuf {
        self.directory.join("shm")
    }

    fn machine_id(&self) -> PathBuf {
        self.directory.join("machine-id")
    }

    /// Returns the bind mounts, only over existing files: source and mount point.
    pub fn mounts(&self) -> Vec<(CString, CString)> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok(); // tidy-allow(dropped-cause): no path here has a NUL
        // The second mount hides the directory that contains both sources.
        let mounts = [(self.machine_id(), MACHINE_ID), (self.memory(), MEMORY)];
        let there = mounts.iter().filter(|(_, to)| Path::new(to).exists());
        there.filter_map(|(from, to)| Some((text(from)?, text(Path::new(to))?))).collect()
    }
}

impl Drop for PerHostFiles {
    fn drop(&mut self) {
        if let Err(why) = fs::remove_dir_all(&self.directory) {
            eprintln!("{}: {why}", self.directory.display());
        }
    }
}
