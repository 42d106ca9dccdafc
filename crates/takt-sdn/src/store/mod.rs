//! What a controller keeps beyond its own life, and the file that holds it.
//!
//! [`Controller::records`](crate::controller::Controller::records) gives everything that is to be kept, as records of JSON under a key;
//! [`Controller::restore`](crate::controller::Controller::restore) takes it back. The [`Store`] writes what changed since the last time in one
//! transaction of a redb database, in a thread of its own, so that the controller waits for no disk. What changed in the last moments before a
//! kill ([`INTERVAL`] and one transaction) may be missing.

mod file;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

pub use file::{Store, StoreError};

/// Between two looks at what changed, at least.
pub const INTERVAL: Duration = Duration::from_millis(50);

/// Records by key: the kind, a slash, and what it is about.
pub type Records = BTreeMap<String, Vec<u8>>;

/// Records to put, and keys to remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Records that are new, or others than before.
    pub put: Vec<(String, Vec<u8>)>,
    /// Records that are no more.
    pub removed: Vec<String>,
}

impl Changes {
    /// What leads from some records to others.
    pub fn between(before: &Records, after: &Records) -> Self {
        let put = after.iter().filter(|(key, value)| before.get(*key) != Some(*value));
        let put: Vec<(String, Vec<u8>)> = put.map(|(key, value)| (key.clone(), value.clone())).collect();
        let removed = before.keys().filter(|key| !after.contains_key(*key)).cloned().collect();
        Self { put, removed }
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.put.is_empty() && self.removed.is_empty()
    }
}

pub(crate) fn record(into: &mut Records, key: String, value: &impl Serialize) {
    // Maps with keys that are no text are the only values that cannot be written; there are none.
    if let Ok(octets) = serde_json::to_vec(value) {
        into.insert(key, octets);
    }
}

/// The records of a kind, by key without the kind.
pub(crate) fn of_kind<'a>(records: &'a Records, kind: &str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let start = format!("{kind}/");
    let all = records.range(start.clone()..).take_while({
        let start = start.clone();
        move |(key, _)| key.starts_with(&start)
    });
    all.map(move |(key, value)| (&key[start.len()..], value.as_slice()))
}
