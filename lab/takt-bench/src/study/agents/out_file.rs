//! File of latencies that an agent writes, on this machine or on another one.

use crate::error::{Error, Result};
use crate::study::ssh::Ssh;
use std::path::{Path, PathBuf};

/// Maximum length in bytes of the latencies that are read from an agent.
const TIMES_LEN_MAX: u64 = 1 << 30;

/// Temporary file for latencies; dropping the value removes it.
pub(super) struct OutFile<'a> {
    path: PathBuf,
    /// Machine and side that hold the file; `None`: this machine.
    far: Option<(&'a Ssh, usize)>,
}

impl<'a> OutFile<'a> {
    pub(super) fn new(path: &Path, far: Option<(&'a Ssh, usize)>) -> Self {
        let file = Self { path: path.into(), far };
        // An earlier process may have left the file.
        file.remove();
        file
    }

    /// Returns the key of the contract.
    pub(super) fn argument(&self) -> String {
        format!("out={}", self.path.display())
    }

    /// Reads all latencies, ns; none if the agent wrote no file.
    pub(super) fn read(&self) -> Result<Vec<u64>> {
        let bytes = match self.far {
            Some((ssh, side)) => ssh.read(side, &self.path, TIMES_LEN_MAX + 1)?,
            None if !self.path.exists() => Vec::new(),
            None => self.read_here()?,
        };
        if bytes.len() as u64 > TIMES_LEN_MAX {
            let text = format!("{}: more than {TIMES_LEN_MAX} octets of times", self.path.display());
            return Err(Error::Usage(text));
        }
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Ok(bytes.chunks_exact(8).map(number).collect())
    }

    fn read_here(&self) -> Result<Vec<u8>> {
        use std::io::Read;
        let failure = |e| Error::os(self.path.display().to_string(), e);
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&self.path).map_err(failure)?;
        file.take(TIMES_LEN_MAX + 1).read_to_end(&mut bytes).map_err(failure)?;
        Ok(bytes)
    }

    fn remove(&self) {
        match self.far {
            Some((ssh, side)) => ssh.remove(side, &self.path),
            // The file is missing if the agent failed before it wrote.
            None => drop(std::fs::remove_file(&self.path)),
        }
    }
}

impl Drop for OutFile<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}
