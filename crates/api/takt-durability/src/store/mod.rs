//! Persistent store: one redb database file in the store's directory. Every commit is one
//! transaction, synchronized to the disk when [`Store::commit`] returns. After a killed process or
//! a power failure, all committed changes remain.
//!
//! | table | key | value |
//! |---|---|---|
//! | `format` | `"version"` | version of this layout |
//! | `topics` | id | RTPS-encoded announcement of the first discovered writer of the topic |
//! | `changes` | topic, number | [`Record`] |
//! | `origins` | topic, writer | last received sequence number of the writer |
//!
//! The checksum of every page is verified when the file is opened. A file that is no store, of
//! another version, torn, altered or in use is refused; nothing is repaired. Directory and file are
//! accessible to their owner only: a directory is created with mode 0700, a file with 0600. An
//! existing file gets mode 0600; an existing directory that others may write is reported.
//!
//! A full disk is no error of a commit: the database is closed, none of the batch is on the disk,
//! and the next commit opens the database again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use takt::{Guid, PublicationData};

use crate::record::Record;
use crate::{Error, Result};

const FORMAT: TableDefinition<'_, &str, u32> = TableDefinition::new("format");
const TOPICS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("topics");
const CHANGES: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("changes");
const ORIGINS: TableDefinition<'_, (u32, [u8; 16]), i64> = TableDefinition::new("origins");
/// Layout version. Version 1 had no mark for relayed changes; it is read, and rewritten as this
/// version.
const VERSION: u32 = 2;
/// Name of the file in its directory.
const FILE: &str = "durability.redb";

/// Changes of one commit.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) topics: Vec<(u32, PublicationData)>,
    pub(crate) stored: Vec<(u32, u64, Record)>,
    pub(crate) removed: Vec<(u32, u64)>,
    /// Ended topics, which are removed with all of their records.
    pub(crate) ended: Vec<u32>,
    origins: BTreeMap<(u32, [u8; 16]), i64>,
    removed_origins: BTreeSet<(u32, [u8; 16])>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { topics, stored, removed, ended, origins, removed_origins } = self;
        let is_nothing_new = topics.is_empty() && stored.is_empty() && origins.is_empty();
        is_nothing_new && removed.is_empty() && ended.is_empty() && removed_origins.is_empty()
    }

    /// Sets the last received sequence number of an original writer of a topic.
    pub(crate) fn set_origin(&mut self, topic: u32, writer: Guid, last: i64) {
        let key = (topic, writer.to_bytes());
        self.removed_origins.remove(&key);
        self.origins.insert(key, last);
    }

    /// Removes an original writer of a topic.
    pub(crate) fn remove_origin(&mut self, topic: u32, writer: Guid) {
        let key = (topic, writer.to_bytes());
        self.origins.remove(&key);
        self.removed_origins.insert(key);
    }
}

/// Topic as stored.
#[derive(Debug)]
pub(crate) struct StoredTopic {
    pub(crate) id: u32,
    pub(crate) announcement: PublicationData,
    /// Changes in order of their numbers.
    pub(crate) changes: Vec<(u64, Record)>,
    pub(crate) origins: Vec<(Guid, i64)>,
}

/// Outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// The whole batch is on the disk.
    Safe,
    /// The disk is full, and none of the batch is on it.
    NoSpace,
}

#[derive(Debug)]
pub(crate) struct Store {
    /// Open database; `None` after a commit that found the disk full.
    database: Option<Database>,
    path: PathBuf,
    remarks: Vec<String>,
}

impl Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store {}", self.path.display())
    }
}

fn failure(path: &Path, what: impl Display) -> Error {
    Error::Store { path: path.to_owned(), what: what.to_string() }
}

/// Reports whether the file system has no space, or the quota or file size limit is reached.
fn is_no_space(error: &redb::Error) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    matches!(error, redb::Error::Io(error) if kinds.contains(&error.kind()))
}

/// Creates the directory and an empty file if they are missing, accessible to the owner only.
/// Returns remarks about permissions that are too open, and whether the file is new.
fn prepare(directory: &Path, path: &Path) -> std::io::Result<(Vec<String>, bool)> {
    let mut remarks = Vec::new();
    if !directory.exists() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mode = fs::metadata(directory)?.permissions().mode() & 0o7777;
    // With the sticky bit, other users cannot replace files of the owner.
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        let directory = directory.display();
        remarks
            .push(format!("store {directory}: others may write the directory (mode {mode:04o}) and replace the store"));
    }
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok((remarks, true)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        remarks.push(format!("store {}: mode {mode:04o} changed to 0600", path.display()));
    }
    Ok((remarks, false))
}

impl Store {
    /// Opens the store of a directory, which is created if missing, and verifies it. Reads the
    /// whole file.
    ///
    /// # Errors
    /// [`Error::Store`] for a file that is no store, is damaged, of another version, or in use by
    /// another process.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        let (remarks, is_new) = prepare(directory, &path).map_err(|error| failure(directory, error))?;
        let mut store = Self { database: None, path, remarks };
        let opened = store.open_database();
        if opened.is_err() && is_new {
            // An incomplete file would be refused from then on.
            fs::remove_file(&store.path).map_err(|error| store.fail(error))?;
        }
        opened.map(|()| store)
    }

    fn open_database(&mut self) -> Result<()> {
        let verifying = Builder::new().set_check_integrity_on_open(true).create(&self.path);
        let opened = match verifying.map_err(redb::Error::from) {
            Err(error) if is_no_space(&error) => {
                let remark = format!("{self}: no space left on the disk, the checksums are not verified");
                self.remarks.push(remark);
                Database::create(&self.path).map_err(redb::Error::from)
            }
            opened => opened,
        };
        let database = opened.map_err(|error| match error {
            redb::Error::DatabaseAlreadyOpen => self.fail("another process uses the store"),
            error => self.fail(format!("not a store, or damaged: {error}")),
        })?;
        self.check_version(&database)?;
        self.database = Some(database);
        Ok(())
    }

    /// Takes the remarks about the store since the last call.
    pub(crate) fn take_remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    fn fail(&self, what: impl Display) -> Error {
        failure(&self.path, what)
    }

    fn check_version(&self, database: &Database) -> Result<()> {
        let transaction = database.begin_write().map_err(|error| self.fail(error))?;
        {
            let mut format = transaction.open_table(FORMAT).map_err(|error| self.fail(error))?;
            let version = format.get("version").map_err(|error| self.fail(error))?.map(|version| version.value());
            match version {
                Some(VERSION) => return Ok(()),
                Some(1) => {}
                Some(other) => return Err(self.fail(format!("version {other}; expected 1 or {VERSION}"))),
                None if transaction.list_tables().map_err(|error| self.fail(error))?.count() > 1 => {
                    return Err(self.fail("a database of another program"));
                }
                None => {}
            }
            format.insert("version", VERSION).map_err(|error| self.fail(error))?;
        }
        transaction.commit().map_err(|error| self.fail(error))
    }

    /// Returns all stored topics.
    pub(crate) fn load(&mut self) -> Result<Vec<StoredTopic>> {
        let topics = self.read()?;
        let records = || topics.iter().flat_map(|topic| &topic.changes);
        let payload_bytes: usize = records().map(|(_, record)| record.payload.len()).sum();
        let remark = format!("{self}: {} topics, {} changes, {payload_bytes} bytes", topics.len(), records().count());
        self.remarks.push(remark);
        Ok(topics)
    }

    fn read(&self) -> Result<Vec<StoredTopic>> {
        let Some(database) = &self.database else { return Err(self.fail("it is closed")) };
        let transaction = database.begin_read().map_err(|error| self.fail(error))?;
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
                return Err(self.fail(format!("a writer of the unknown topic {topic}")));
            };
            topic.origins.push((Guid::from_bytes(writer), last.value()));
        }
        Ok(topics.into_values().collect())
    }

    /// Commits a batch. All of it is on the disk when this returns [`Committed::Safe`]; otherwise
    /// none of it is.
    ///
    /// # Errors
    /// [`Error::Store`] for every failure except a full disk.
    pub(crate) fn commit(&mut self, batch: &Batch) -> Result<Committed> {
        let database = match self.database.take() {
            Some(database) => Ok(database),
            None => Database::open(&self.path).map_err(redb::Error::from),
        };
        match database.and_then(|database| write(&database, batch).map(|()| database)) {
            Ok(database) => {
                self.database = Some(database);
                Ok(Committed::Safe)
            }
            // After a file system error redb continues only when the file is opened again.
            Err(error) if is_no_space(&error) => Ok(Committed::NoSpace),
            Err(error) => Err(self.fail(error)),
        }
    }
}

fn write(database: &Database, batch: &Batch) -> std::result::Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut topics = transaction.open_table(TOPICS)?;
        let mut changes = transaction.open_table(CHANGES)?;
        let mut origins = transaction.open_table(ORIGINS)?;
        for (id, announcement) in &batch.topics {
            topics.insert(id, announcement.to_bytes().as_slice())?;
        }
        for (topic, number, record) in &batch.stored {
            changes.insert((*topic, *number), record.to_bytes().as_slice())?;
        }
        // Removes changes that were stored and evicted within one batch.
        for key in &batch.removed {
            changes.remove(key)?;
        }
        for (key, last) in &batch.origins {
            origins.insert(key, last)?;
        }
        for key in &batch.removed_origins {
            origins.remove(key)?;
        }
        for id in &batch.ended {
            topics.remove(id)?;
            changes.retain_in((*id, 0)..=(*id, u64::MAX), |_, _| false)?;
            origins.retain_in((*id, [0; 16])..=(*id, [u8::MAX; 16]), |_, _| false)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests;
