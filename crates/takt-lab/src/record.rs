//! The record of a lab on disk, from before anything of it is made until all of it is removed: `/run/takt/lab/NAME/record.json`.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::process::Process;

/// Where labs have their directories.
pub const LABS: &str = "/run/takt/lab";
const FILE: &str = "record.json";

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The lab's name.
    pub name: String,
    /// The process that makes it.
    pub builder: Process,
    /// It is complete.
    pub is_complete: bool,
    /// It goes with the process that made it.
    pub is_owned: bool,
    /// Places of the lab, which are hosts and [`crate::file::SWITCHES`], and names of namespaces.
    pub namespaces: Vec<(String, String)>,
    /// Switches.
    pub switches: Vec<String>,
}

impl Record {
    /// The directory of a lab.
    pub fn directory(name: &str) -> PathBuf {
        Path::new(LABS).join(name)
    }

    /// Makes the lab's directory with its record, both or none.
    pub fn create(&self) -> Result<PathBuf> {
        let directory = Self::directory(&self.name);
        let Process { pid, .. } = self.builder;
        let draft = Path::new(LABS).join(format!(".{}.{pid}", self.name));
        fs::create_dir_all(LABS).map_err(Error::os(format!("make {LABS}")))?;
        let made =
            fs::create_dir(&draft).and_then(|()| self.write(&draft)).and_then(|()| fs::rename(&draft, &directory));
        made.map_err(|source| {
            // The first cause counts.
            drop(fs::remove_dir_all(&draft));
            match source.kind() {
                ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => Error::Exists(self.name.clone()),
                _ => Error::Os { action: format!("make {}", directory.display()), source },
            }
        })?;
        Ok(directory)
    }

    /// Replaces the record.
    pub fn update(&self) -> Result<()> {
        let directory = Self::directory(&self.name);
        self.write(&directory).map_err(Error::os(format!("write the record in {}", directory.display())))
    }

    fn write(&self, directory: &Path) -> io::Result<()> {
        let (path, draft) = (directory.join(FILE), directory.join("record.new"));
        let mut file = File::create(&draft)?;
        file.write_all(serde_json::to_string_pretty(self).map_err(io::Error::other)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(draft, path)
    }

    /// The record of a lab.
    pub fn read(name: &str) -> Result<Self> {
        let path = Self::directory(name).join(FILE);
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::NotFound => Error::NotThere(name.to_owned()),
            _ => Error::Os { action: format!("read {}", path.display()), source },
        };
        let text = fs::read_to_string(&path).map_err(failed)?;
        serde_json::from_str(&text).map_err(|why| failed(io::Error::new(ErrorKind::InvalidData, why)))
    }

    /// Names of all labs.
    pub fn names() -> Vec<String> {
        let entries = fs::read_dir(LABS).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries
            .filter(|entry| entry.path().join(FILE).exists())
            .filter_map(|entry| entry.file_name().into_string().ok()) // tidy-allow(dropped-cause): none of ours
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        names
    }

    /// Removes the drafts of processes that were killed before they had a record.
    pub fn remove_drafts() -> Result<()> {
        for entry in fs::read_dir(LABS).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(draft) = name.strip_prefix('.') else { continue };
            let builder = draft.rsplit_once('.').and_then(|(_, pid)| pid.parse().ok()); // tidy-allow(dropped-cause): none of ours
            if builder.is_some_and(|pid| Process::of(pid).is_none()) {
                remove_directory(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes the directory of the lab, with its record.
    pub fn remove(name: &str) -> Result<()> {
        remove_directory(&Self::directory(name))
    }
}

fn remove_directory(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::os(format!("remove {}", path.display()))),
    }
}
