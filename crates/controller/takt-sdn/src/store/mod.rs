//! Persistent state of a controller, and the file that stores it.
//!
//! [`Controller::records`](crate::controller::Controller::records) returns the persistent state as
//! JSON records by key; [`Controller::restore`](crate::controller::Controller::restore) restores
//! it. The [`Store`] writes the changes since the last call in one transaction of a redb database.
//! It does so in a thread of its own, so that the controller never waits for a disk. Changes of the
//! last moments before a kill ([`INTERVAL`] and one transaction) may be lost.

mod file;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

pub use file::{Store, StoreError};

/// Minimum interval between two comparisons of the records.
pub const INTERVAL: Duration = Duration::from_millis(50);

/// Records by key: the kind, a slash, and the subject.
pub type Records = BTreeMap<String, Vec<u8>>;

/// Records to write and keys to remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// New and changed records.
    pub put: Vec<(String, Vec<u8>)>,
    /// Keys of removed records.
    pub removed: Vec<String>,
}

impl Changes {
    /// Returns the changes from `before` to `after`.
    pub fn between(before: &Records, after: &Records) -> Self {
        let put = after.iter().filter(|(key, value)| before.get(*key) != Some(*value));
        let put: Vec<(String, Vec<u8>)> = put.map(|(key, value)| (key.clone(), value.clone())).collect();
        let removed = before.keys().filter(|key| !after.contains_key(*key)).cloned().collect();
        Self { put, removed }
    }

    /// Reports whether there is no change.
    pub fn is_empty(&self) -> bool {
        self.put.is_empty() && self.removed.is_empty()
    }
}

pub(crate) fn record(into: &mut Records, key: String, value: &impl Serialize) {
    // Only maps with non-string keys cannot be serialized; records contain none.
    if let Ok(octets) = serde_json::to_vec(value) {
        into.insert(key, octets);
    }
}

/// Iterates over the records of a kind, by key without the kind.
pub(crate) fn of_kind<'a>(records: &'a Records, kind: &str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let start = format!("{kind}/");
    let all = records.range(start.clone()..).take_while({
        let start = start.clone();
        move |(key, _)| key.starts_with(&start)
    });
    all.map(move |(key, value)| (&key[start.len()..], value.as_slice()))
}
