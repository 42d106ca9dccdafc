//! Lab record on disk: `/run/takt/lab/NAME/record.json`. It exists from before the first part of
//! the lab is created until after the last one is removed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::process::Process;

/// Directory that contains the directories of labs.
pub const LABS: &str = "/run/takt/lab";
const FILE: &str = "record.json";

/// Exclusive right to remove a lab. One process has it at a time; the kernel revokes it when the
/// process ends.
#[derive(Debug)]
pub struct Claim {
    /// Record of the lab.
    pub record: Record,
    /// Directory of the lab, which holds the lock.
    _directory: File,
}

/// Record of a lab; see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the lab.
    pub name: String,
    /// Process that makes the lab.
    pub builder: Process,
    /// Whether the lab is complete.
    pub is_complete: bool,
    /// Whether the lab is removed with the process that made it.
    pub is_owned: bool,
    /// Nodes of the lab (hosts and [`crate::file::SWITCHES`]), with the names of their namespaces.
    pub namespaces: Vec<(String, String)>,
    /// Names of Open vSwitch switches.
    pub switches: Vec<String>,
    /// Switches that are bridges of the kernel.
    #[serde(default)]
    pub bridges: Vec<String>,
}

impl Record {
    /// Returns the directory of a lab.
    pub fn directory(name: &str) -> PathBuf {
        Path::new(LABS).join(name)
    }

    /// Creates the lab's directory with its record, atomically.
    pub fn create(&self) -> Result<PathBuf> {
        let directory = Self::directory(&self.name);
        let Process { pid, .. } = self.builder;
        let draft = Path::new(LABS).join(format!(".{}.{pid}", self.name));
        fs::create_dir_all(LABS).map_err(Error::os(format!("create {LABS}")))?;
        let made =
            fs::create_dir(&draft).and_then(|()| self.write(&draft)).and_then(|()| fs::rename(&draft, &directory));
        made.map_err(|source| {
            // The first failure is reported, not one of the cleanup.
            drop(fs::remove_dir_all(&draft));
            match source.kind() {
                ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => Error::LabExists(self.name.clone()),
                _ => Error::Os { action: format!("create {}", directory.display()), source },
            }
        })?;
        Ok(directory)
    }

    /// Replaces the record on disk.
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

    /// Reads the record of a lab.
    pub fn read(name: &str) -> Result<Self> {
        let path = Self::directory(name).join(FILE);
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::NotFound => Error::LabNotFound(name.to_owned()),
            _ => Error::Os { action: format!("read {}", path.display()), source },
        };
        let text = fs::read_to_string(&path).map_err(failed)?;
        serde_json::from_str(&text).map_err(|why| failed(io::Error::new(ErrorKind::InvalidData, why)))
    }

    /// Waits until no other process removes the lab, and reads the record that exists then; `None`
    /// if there is none.
    pub fn claim(name: &str) -> Result<Option<Claim>> {
        let path = Self::directory(name);
        let failed = || Error::os(format!("lock {}", path.display()));
        loop {
            let directory = match File::open(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened.map_err(failed())?,
            };
            directory.lock().map_err(failed())?;
            let locked = directory.metadata().map_err(failed())?;
            match fs::metadata(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                // The lab that was waited for is gone, and another lab has its name.
                found if found.as_ref().is_ok_and(|found| found.ino() != locked.ino()) => {}
                found => {
                    found.map_err(failed())?;
                    return match Self::read(name) {
                        Err(Error::LabNotFound(_)) => Ok(None),
                        record => Ok(Some(Claim { record: record?, _directory: directory })),
                    };
                }
            }
        }
    }

    /// Returns the names of all labs.
    pub fn names() -> Vec<String> {
        let mut names = Self::names_of_directories();
        names.retain(|name| Self::directory(name).join(FILE).exists());
        names.sort();
        names
    }

    /// Returns the names of all labs, including those that a process is removing.
    pub fn names_of_directories() -> Vec<String> {
        let entries = fs::read_dir(LABS).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok()); // tidy-allow(dropped-cause): none of ours
        names.filter(|name| !name.starts_with('.')).collect()
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

    /// Removes the directory of the lab. The record is removed last, so that a killed process
    /// leaves a lab that can still be removed.
    pub fn remove(name: &str) -> Result<()> {
        let directory = Self::directory(name);
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let (path, is_directory) = (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
            if is_directory {
                remove_directory(&path)?;
            } else if entry.file_name() != FILE {
                fs::remove_file(&path).map_err(Error::os(format!("remove {}", path.display())))?;
            }
        }
        remove_directory(&directory)
    }
}

fn remove_directory(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::os(format!("remove {}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use takt_testkit::{not_run, require};

    use super::*;

    fn record(name: &str, switch: &str) -> Record {
        let switches = vec![switch.to_owned()];
        let (builder, namespaces) = (Process::own(), Vec::new());
        Record {
            name: name.to_owned(),
            builder,
            is_complete: false,
            is_owned: true,
            namespaces,
            switches,
            bridges: Vec::new(),
        }
    }

    #[test]
    fn second_claim_waits_and_finds_the_new_lab_of_that_name() {
        if let Err(why) = require::root() {
            return not_run(why);
        }
        let name = format!("test-claim-{}", std::process::id());
        record(&name, "first").create().expect("as root");
        let first = Record::claim(&name).expect("it can be read").expect("one exists");
        let (sender, receiver) = mpsc::channel();
        let second = std::thread::spawn({
            let name = name.clone();
            move || {
                let claim = Record::claim(&name).expect("it can be read");
                sender.send(claim.map(|claim| claim.record.switches)).expect("the test waits");
            }
        });
        assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err(), "it waits");
        Record::remove(&name).expect("it exists");
        record(&name, "second").create().expect("the name is free");
        drop(first);
        let found = receiver.recv_timeout(Duration::from_secs(60)).expect("it waits no longer");
        assert_eq!(found, Some(vec!["second".to_owned()]));
        second.join().expect("no panic");
        Record::remove(&name).expect("it exists");
        assert!(Record::claim(&name).expect("it can be read").is_none());
    }
}
