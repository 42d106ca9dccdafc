//! Monitoring of a participant's security files; the participant is renewed when they change.
//!
//! One thread of the process, `takt-renew`, checks the files of all participants every [`PERIOD`].
//! It starts with the first participant that has files, ends with the last, and is scheduled as an
//! ordinary thread (SCHED_OTHER). A change takes effect when two consecutive checks see the same
//! files, so that no partially written set is read.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use takt_transport::TransportError;

use super::plugin::Renewal;
use super::{SecurityConfig, enclave, properties};
use crate::log::{self, Level};
use crate::qos::Property;
use crate::runtime::engine::Engine;
use crate::runtime::os::reset_scheduling;
use crate::{Error, Result};

/// Period between two checks.
pub(crate) const PERIOD: Duration = Duration::from_secs(5);

/// Source of the documents of a participant.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Enclave directory.
    Directory(PathBuf),
    /// Properties, some of which name files.
    Properties(Property),
}

impl Source {
    /// Returns the properties, if they name a file.
    pub(crate) fn of_properties(all: &Property) -> Option<Self> {
        (!properties::files(all).is_empty()).then(|| Self::Properties(all.clone()))
    }

    fn read(&self) -> Result<SecurityConfig> {
        match self {
            Self::Directory(directory) => SecurityConfig::from_enclave(directory),
            Self::Properties(all) => {
                let none = || Error::bad_parameter("properties without dds.sec.*");
                SecurityConfig::from_properties(all)?.ok_or_else(none)
            }
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Directory(directory) => enclave::FILES.iter().map(|name| directory.join(name)).collect(),
            Self::Properties(all) => properties::files(all),
        }
    }
}

/// Metadata of a file: device, inode, length and time of the last change; `None` if the file is
/// missing.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// Participant whose files are checked for as long as this lives.
pub(crate) struct Watch {
    /// Readable label of the participant.
    label: String,
    source: Source,
    renewal: Arc<Renewal>,
    engine: Weak<Engine>,
    observed: Mutex<ObservedFiles>,
}

struct ObservedFiles {
    /// Metadata of the files in use.
    in_use: Vec<Stamp>,
    /// Metadata of the last check, if it differs.
    last_check: Option<Vec<Stamp>>,
}

impl Watch {
    /// Begins to check the files. The participant was just created from them.
    pub(crate) fn begin(
        label: String,
        source: Source,
        renewal: Arc<Renewal>,
        engine: &Arc<Engine>,
    ) -> Result<Arc<Self>> {
        let watch = Arc::new(Self::new(label, source, renewal, engine));
        let mut watched = watched();
        watched.all.push(Arc::downgrade(&watch));
        if !watched.is_running {
            let thread = thread::Builder::new().name("takt-renew".to_owned()).spawn(run);
            thread.map_err(|source| TransportError::new("start", "thread takt-renew", source))?;
            watched.is_running = true;
        }
        Ok(watch)
    }

    fn new(label: String, source: Source, renewal: Arc<Renewal>, engine: &Arc<Engine>) -> Self {
        let seen = Mutex::new(ObservedFiles { in_use: stamps(&source.files()), last_check: None });
        Self { label, source, renewal, engine: Arc::downgrade(engine), observed: seen }
    }

    /// Checks the files once. Renews the participant if they changed before the previous check and
    /// not since.
    fn check(&self) {
        let now = stamps(&self.source.files());
        let mut seen = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        if now == seen.in_use {
            seen.last_check = None;
            return;
        }
        if seen.last_check.as_ref() != Some(&now) {
            seen.last_check = Some(now);
            return;
        }
        (seen.in_use, seen.last_check) = (now, None);
        drop(seen);
        match self.source.read().and_then(|config| self.renewal.offer(&config)) {
            Ok(()) => {
                let Some(engine) = self.engine.upgrade() else { return };
                // tidy-allow(dropped-cause): it is closed, or inline: then its own thread finds the documents
                drop(engine.call(|driver, now| {
                    driver.core.renew_security(now);
                    Ok(())
                }));
            }
            Err(error) => {
                let text = format!("{}: security: changed files are not applied: {error}", self.label);
                log::record(Level::Warn, text);
            }
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |file: &PathBuf| {
        let found = fs::metadata(file).ok()?; // tidy-allow(dropped-cause): the file is not there; reading it says so
        Some((found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
    };
    files.iter().map(stamp).collect()
}

struct Watched {
    all: Vec<Weak<Watch>>,
    is_running: bool,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched { all: Vec::new(), is_running: false });

fn watched() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the thread `takt-renew`.
fn run() {
    reset_scheduling();
    loop {
        thread::sleep(PERIOD);
        let mut watched = watched();
        let all: Vec<Arc<Watch>> = watched.all.iter().filter_map(Weak::upgrade).collect();
        watched.all.retain(|one| one.strong_count() > 0);
        if watched.all.is_empty() {
            watched.is_running = false;
            return;
        }
        drop(watched);
        all.iter().for_each(|one| one.check());
    }
}
