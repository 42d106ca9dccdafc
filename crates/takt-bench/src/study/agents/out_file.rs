//! Latencies that an agent leaves in a file, on this machine or on another one.

use crate::error::{Error, Result};
use crate::study::ssh::Ssh;
use std::path::{Path, PathBuf};

/// Longest list of latencies that is read from an agent.
const TIMES_LEN_MAX: u64 = 1 << 30;

/// A file for latencies that is gone afterwards.
pub(super) struct OutFile<'a> {
    path: PathBuf,
    /// The machine that has it; `None`: this one.
    far: Option<(&'a Ssh, usize)>,
}

impl<'a> OutFile<'a> {
    pub(super) fn new(path: &Path, far: Option<(&'a Ssh, usize)>) -> Self {
        let file = Self { path: path.into(), far };
        // An earlier process may have left it.
        file.remove();
        file
    }

    /// The key of the contract.
    pub(super) fn argument(&self) -> String {
        format!("out={}", self.path.display())
    }

    /// All latencies, ns; none if the agent wrote no file.
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
            // It is not there if the agent failed before it wrote.
            None => drop(std::fs::remove_file(&self.path)),
        }
    }
}

impl Drop for OutFile<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}
