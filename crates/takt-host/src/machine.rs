//! Where knobs are read and set.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::ethtool;
use crate::knob::Knob;

/// A machine: this one, or a tree of files that looks like one.
#[derive(Debug, Clone)]
pub struct Machine {
    root: PathBuf,
}

impl Default for Machine {
    fn default() -> Self {
        Self { root: "/".into() }
    }
}

impl Machine {
    /// Files below `root` in place of this machine's. Its interfaces are this machine's nonetheless.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where a file of the machine is.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A knob's value, without what surrounds it.
    ///
    /// # Errors
    /// `NotFound` if this kernel or driver has it not; `Unsupported` if the driver says so; what else the kernel says.
    pub fn read(&self, knob: &Knob) -> io::Result<String> {
        let text = match knob {
            Knob::File(path) => fs::read_to_string(self.path(path))?,
            Knob::Ethtool(interface, parameter) => ethtool::read(interface, *parameter)?.to_string(),
        };
        Ok(knob.normal(&text))
    }

    /// Sets a knob, and looks whether it is so.
    ///
    /// # Errors
    /// As of [`read`](Self::read); a value that was taken and is not there.
    pub fn write(&self, knob: &Knob, value: &str) -> io::Result<()> {
        match knob {
            Knob::File(path) => {
                // Not truncated, not created: it is the kernel's.
                let mut file = fs::File::options().write(true).open(self.path(path))?;
                io::Write::write_all(&mut file, value.as_bytes())?;
                if self.root != Path::new("/") {
                    file.set_len(value.len() as u64)?;
                }
            }
            Knob::Ethtool(interface, parameter) => {
                let wrong = |e| io::Error::new(io::ErrorKind::InvalidInput, e);
                ethtool::write(interface, *parameter, value.parse().map_err(wrong)?)?;
            }
        }
        let found = self.read(knob)?;
        if found != knob.normal(value) {
            return Err(io::Error::other(format!("afterwards it is {found:?}")));
        }
        Ok(())
    }

    /// Whether the kernel lets anybody set it: the mode of a file says so, such as of an interrupt that the driver has placed itself.
    pub(crate) fn is_settable(&self, knob: &Knob) -> bool {
        match knob {
            Knob::File(path) => fs::metadata(self.path(path)).is_ok_and(|file| file.permissions().mode() & 0o222 != 0),
            Knob::Ethtool(..) => true,
        }
    }

    /// Names in a directory, sorted as numbers where they end in one; none if it is not there.
    pub(crate) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| {
            let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
            (head.to_owned(), name[head.len()..].parse::<u64>().unwrap_or(0), name.clone())
        });
        names
    }
}
