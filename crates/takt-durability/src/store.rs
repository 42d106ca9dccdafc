//! The file: one redb database in the store's directory. Every change of it is one transaction, synchronised to the disk when
//! [`Store::commit`] returns; a process that is killed, or a machine that stops, loses nothing older.
//!
//! | table | key | value |
//! |---|---|---|
//! | `format` | `"version"` | the version of this layout |
//! | `topics` | id | announcement of the writer that the topic was first heard of from, as RTPS puts it |
//! | `changes` | topic, number | [`Record`] |
//! | `origins` | topic, writer | the last number that came of it |
//!
//! A file that is none of these, of another version, torn or in use is refused; nothing is repaired by guessing.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use takt::{Guid, PublicationData};

use crate::record::Record;
use crate::{Error, Result};

const FORMAT: TableDefinition<'_, &str, u32> = TableDefinition::new("format");
const TOPICS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("topics");
const CHANGES: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("changes");
const ORIGINS: TableDefinition<'_, (u32, [u8; 16]), i64> = TableDefinition::new("origins");
const VERSION: u32 = 1;
/// The file's name in its directory.
const FILE: &str = "durability.redb";

/// What one commit changes.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) topics: Vec<(u32, PublicationData)>,
    pub(crate) kept: Vec<(u32, u64, Record)>,
    pub(crate) removed: Vec<(u32, u64)>,
    pub(crate) origins: BTreeMap<(u32, [u8; 16]), i64>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.topics.is_empty() && self.kept.is_empty() && self.removed.is_empty() && self.origins.is_empty()
    }
}

/// A topic as it was kept.
#[derive(Debug)]
pub(crate) struct StoredTopic {
    pub(crate) id: u32,
    pub(crate) announcement: PublicationData,
    /// In order.
    pub(crate) changes: Vec<(u64, Record)>,
    pub(crate) origins: Vec<(Guid, i64)>,
}

#[derive(Debug)]
pub(crate) struct Store {
    database: Database,
    path: PathBuf,
}

fn failure(path: &Path, what: impl Display) -> Error {
    Error::Store { path: path.to_owned(), what: what.to_string() }
}

impl Store {
    /// Opens the store of a directory, which is made if it is not there.
    ///
    /// # Errors
    /// [`Error::Store`] for a file that is no store, is damaged, of another version, or used by another process.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory).map_err(|error| failure(directory, error))?;
        let path = directory.join(FILE);
        let database = Database::create(&path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => failure(&path, "another process uses it"),
            error => failure(&path, format!("not a store, or damaged: {error}")),
        })?;
        let store = Self { database, path };
        store.check_version()?;
        Ok(store)
    }

    fn fail(&self, what: impl Display) -> Error {
        failure(&self.path, what)
    }

    fn check_version(&self) -> Result<()> {
        let transaction = self.database.begin_write().map_err(|error| self.fail(error))?;
        {
            let mut format = transaction.open_table(FORMAT).map_err(|error| self.fail(error))?;
            let version = format.get("version").map_err(|error| self.fail(error))?.map(|version| version.value());
            match version {
                Some(VERSION) => return Ok(()),
                Some(other) => return Err(self.fail(format!("version {other}; this program reads {VERSION}"))),
                None => {}
            }
            if transaction.list_tables().map_err(|error| self.fail(error))?.count() > 1 {
                return Err(self.fail("a database of something else"));
            }
            format.insert("version", VERSION).map_err(|error| self.fail(error))?;
        }
        transaction.commit().map_err(|error| self.fail(error))
    }

    /// Everything that is kept.
    pub(crate) fn load(&self) -> Result<Vec<StoredTopic>> {
        let transaction = self.database.begin_read().map_err(|error| self.fail(error))?;
        let mut topics = BTreeMap::new();
        match transaction.open_table(TOPICS) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(self.fail(error)),
            Ok(table) => {
                for entry in table.iter().map_err(|error| self.fail(error))? {
                    let (id, bytes) = entry.map_err(|error| self.fail(error))?;
                    let announcement = PublicationData::parse(bytes.value())
                        .map_err(|error| self.fail(format!("topic {}: {error}", id.value())))?;
                    let (id, changes, origins) = (id.value(), Vec::new(), Vec::new());
                    topics.insert(id, StoredTopic { id, announcement, changes, origins });
                }
            }
        }
        let changes = transaction.open_table(CHANGES).map_err(|error| self.fail(error))?;
        for entry in changes.iter().map_err(|error| self.fail(error))? {
            let (key, bytes) = entry.map_err(|error| self.fail(error))?;
            let (topic, number) = key.value();
            let record = Record::from_bytes(bytes.value());
            let Some((topic, record)) = topics.get_mut(&topic).zip(record) else {
                return Err(self.fail(format!("change {number} of topic {topic} is damaged")));
            };
            topic.changes.push((number, record));
        }
        let origins = transaction.open_table(ORIGINS).map_err(|error| self.fail(error))?;
        for entry in origins.iter().map_err(|error| self.fail(error))? {
            let (key, last) = entry.map_err(|error| self.fail(error))?;
            let (topic, writer) = key.value();
            let Some(topic) = topics.get_mut(&topic) else {
                return Err(self.fail(format!("a writer of topic {topic}, which there is not")));
            };
            topic.origins.push((Guid::from_bytes(writer), last.value()));
        }
        Ok(topics.into_values().collect())
    }

    /// Writes a batch. It is on the disk when this returns, all of it; on failure nothing is.
    pub(crate) fn commit(&self, batch: &Batch) -> Result<()> {
        let transaction = self.database.begin_write().map_err(|error| self.fail(error))?;
        {
            let mut topics = transaction.open_table(TOPICS).map_err(|error| self.fail(error))?;
            let mut changes = transaction.open_table(CHANGES).map_err(|error| self.fail(error))?;
            let mut origins = transaction.open_table(ORIGINS).map_err(|error| self.fail(error))?;
            for (id, announcement) in &batch.topics {
                topics.insert(id, announcement.to_bytes().as_slice()).map_err(|error| self.fail(error))?;
            }
            for (topic, number, record) in &batch.kept {
                changes.insert((*topic, *number), record.to_bytes().as_slice()).map_err(|error| self.fail(error))?;
            }
            // What came and gave way within one batch is removed here.
            for key in &batch.removed {
                changes.remove(key).map_err(|error| self.fail(error))?;
            }
            for (key, last) in &batch.origins {
                origins.insert(key, last).map_err(|error| self.fail(error))?;
            }
        }
        transaction.commit().map_err(|error| self.fail(error))
    }
}

#[cfg(test)]
mod tests;
