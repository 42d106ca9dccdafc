//! Notices that the files of a participant's security have changed, and renews the participant by them.
//!
//! One thread of the process, `takt-renew`, looks at the files of all participants every [`PERIOD`]. It begins with the
//! first participant that has files, ends with the last, and is scheduled as any other thread (SCHED_OTHER). Files count
//! when they are the same in two looks, so that a set is not read while it is written.

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
use crate::runtime::os::be_ordinary;
use crate::{Error, Result};

/// Between two looks.
pub(crate) const PERIOD: Duration = Duration::from_secs(5);

/// Where the documents of a participant come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// An enclave.
    Directory(PathBuf),
    /// Properties, some of which name files.
    Properties(Property),
}

impl Source {
    /// Properties, if they name a file.
    pub(crate) fn of_properties(all: &Property) -> Option<Self> {
        (!properties::files(all).is_empty()).then(|| Self::Properties(all.clone()))
    }

    fn read(&self) -> Result<SecurityConfig> {
        match self {
            Self::Directory(directory) => SecurityConfig::from_enclave(directory),
            Self::Properties(all) => {
                let none = || Error::BadParameter { what: "properties without dds.sec.*".to_owned() };
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

/// A file as it was: device, inode, length and time of the last change; `None` if it is not there.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// A participant whose files are looked at, for as long as this lives.
pub(crate) struct Watch {
    /// The participant for people.
    label: String,
    source: Source,
    renewal: Arc<Renewal>,
    engine: Weak<Engine>,
    seen: Mutex<Seen>,
}

struct Seen {
    /// By which the participant runs.
    taken: Vec<Stamp>,
    /// In the last look, if they differ.
    changed: Option<Vec<Stamp>>,
}

impl Watch {
    /// Has the files looked at from now on. The participant was just made from them.
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
        let seen = Mutex::new(Seen { taken: stamps(&source.files()), changed: None });
        Self { label, source, renewal, engine: Arc::downgrade(engine), seen }
    }

    /// Looks at the files once. Renews the participant if they have changed before the last look.
    fn look(&self) {
        let now = stamps(&self.source.files());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if now == seen.taken {
            seen.changed = None;
            return;
        }
        if seen.changed.as_ref() != Some(&now) {
            seen.changed = Some(now);
            return;
        }
        (seen.taken, seen.changed) = (now, None);
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
                let text = format!("{}: security: files have changed, and are not taken over: {error}", self.label);
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

/// The thread.
fn run() {
    be_ordinary();
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
        all.iter().for_each(|one| one.look());
    }
}
