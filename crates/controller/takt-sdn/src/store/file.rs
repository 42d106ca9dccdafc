//! Store file: a redb database that only its owner can read.

use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::{Changes, Records};

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
/// Version of the records; records of other versions are not read.
const FORMAT: u64 = 1;

/// Error of a store that cannot be used.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    why: String,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use the store {}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for StoreError {}

/// An open store.
#[derive(Debug)]
pub struct Store {
    sender: Option<SyncSender<Changes>>,
    thread: Option<JoinHandle<()>>,
    /// Records that are stored or being written.
    saved: Records,
    failure: Arc<Mutex<Option<String>>>,
}

fn load(database: &Database) -> Result<Records, redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut about = transaction.open_table(ABOUT)?;
        let format = about.get("format")?.map(|value| value.value());
        let mut records = transaction.open_table(RECORDS)?;
        if format != Some(FORMAT) {
            about.insert("format", FORMAT)?;
            records.retain(|_, _| false)?;
        }
    }
    transaction.commit()?;
    let transaction = database.begin_read()?;
    let table = transaction.open_table(RECORDS)?;
    let mut records = Records::new();
    for entry in table.iter()? {
        let (key, value) = entry?;
        records.insert(key.value().to_owned(), value.value().to_vec());
    }
    Ok(records)
}

fn write(database: &Database, changes: &Changes) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(RECORDS)?;
        for key in &changes.removed {
            table.remove(key.as_str())?;
        }
        for (key, value) in &changes.put {
            table.insert(key.as_str(), value.as_slice())?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Writes changes until the channel is closed or a transaction fails.
fn keep(database: &Database, changes: &Receiver<Changes>, failure: &Mutex<Option<String>>) {
    for changes in changes {
        if let Err(error) = write(database, &changes) {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            return;
        }
    }
}

impl Store {
    /// Opens or creates a store, and reads its records.
    ///
    /// # Errors
    /// The file cannot be opened, is not a store, or is in use by another controller.
    pub fn open(path: &Path) -> Result<(Self, Records), StoreError> {
        let fail = |why: String| StoreError { path: path.to_owned(), why };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let file = file.map_err(|error: io::Error| fail(error.to_string()))?;
        let backend = FileBackend::new(file).map_err(|error| fail(error.to_string()))?;
        let database = redb::Builder::new().create_with_backend(backend).map_err(|error| fail(error.to_string()))?;
        let records = load(&database).map_err(|error| fail(error.to_string()))?;
        // One change may wait while another is written.
        let (sender, receiver) = sync_channel(1);
        let failure = Arc::new(Mutex::new(None));
        let of_thread = Arc::clone(&failure);
        let thread = Builder::new().name("takt-sdn-store".to_owned());
        let thread = thread.spawn(move || keep(&database, &receiver, &of_thread));
        let thread = thread.map_err(|error| fail(error.to_string()))?;
        let store = Self { sender: Some(sender), thread: Some(thread), saved: records.clone(), failure };
        Ok((store, records))
    }

    /// Writes the changes to these records. Returns false, without any effect, while two changes
    /// wait to be written.
    pub fn save(&mut self, records: Records) -> bool {
        let changes = Changes::between(&self.saved, &records);
        let Some(sender) = self.sender.as_ref().filter(|_| !changes.is_empty()) else { return true };
        match sender.try_send(changes) {
            Ok(()) => self.saved = records,
            Err(TrySendError::Full(_)) => return false,
            Err(TrySendError::Disconnected(_)) => self.sender = None,
        }
        true
    }

    /// Writes the changes to these records, and waits until they are stored.
    pub fn finish(&mut self, records: Records) {
        let changes = Changes::between(&self.saved, &records);
        if let Some(sender) = self.sender.take().filter(|_| !changes.is_empty()) {
            // A failed thread has recorded the reason.
            let _ = sender.send(changes);
        }
        self.wait();
    }

    fn wait(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // A failed thread has recorded the reason.
            let _ = thread.join();
        }
    }

    /// Returns the reason why the store has failed, once.
    pub fn take_failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Store {
    /// Waits until all changes are stored.
    fn drop(&mut self) {
        self.wait();
    }
}
