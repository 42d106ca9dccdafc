//! Conditions: what a [`WaitSet`](crate::WaitSet) can wait for (DDS 1.4 §2.2.2.1.7 to §2.2.2.1.9).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use takt_core::{ReaderHandle, Selector};

use crate::Result;
use crate::query::BoundQuery;
use crate::runtime::engine::Engine;
use crate::status::{Signal, StatusMask, Waiters};

/// True while an enabled status of its entity has changed and the application has not seen it.
///
/// `DATA_AVAILABLE` goes with the next `read` or `take` on the reader, whether that returned all samples or not: so
/// take until there are none, or wait for a [`ReadCondition`]. The other statuses go when they are read, so enable only
/// those that are: one that is not would end every wait at once.
#[derive(Clone)]
pub struct StatusCondition {
    pub(crate) signal: Arc<Signal>,
    pub(crate) engine: Arc<Engine>,
}

impl StatusCondition {
    /// The statuses that make it true; all, to begin with.
    #[must_use]
    pub fn enabled_statuses(&self) -> StatusMask {
        self.signal.enabled()
    }

    /// Chooses the statuses that make it true. All conditions of one entity share the choice.
    pub fn set_enabled_statuses(&self, statuses: StatusMask) {
        self.signal.set_enabled(statuses);
    }

    /// Whether it is true now.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        self.signal.changes().intersects(self.signal.enabled())
    }
}

impl fmt::Debug for StatusCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusCondition").field("changes", &self.signal.changes()).finish_non_exhaustive()
    }
}

/// True while its reader holds samples that it asks for. Made by
/// [`AnyDataReader::read_condition`](crate::AnyDataReader::read_condition).
#[derive(Clone)]
pub struct ReadCondition {
    pub(crate) signal: Arc<Signal>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) reader: ReaderHandle,
    pub(crate) selector: Selector,
    /// What it asks of the content, if it is a [`QueryCondition`](crate::QueryCondition).
    pub(crate) query: Option<Arc<BoundQuery>>,
}

impl ReadCondition {
    /// The samples that it is about.
    #[must_use]
    pub fn selector(&self) -> Selector {
        self.selector
    }

    /// Whether it is true now; false once the reader is deleted.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`](crate::Error::IllegalOperation) from a second thread under `Runtime::Inline`.
    pub fn trigger_value(&self) -> Result<bool> {
        let query = self.query.as_ref().map(|query| query.snapshot());
        let result = self.engine.look(|driver| {
            Ok(match &query {
                Some(query) => driver.core.has_samples_where(self.reader, &self.selector, &**query)?,
                None => driver.core.has_samples(self.reader, &self.selector)?,
            })
        });
        match result {
            Err(crate::Error::AlreadyDeleted) => Ok(false),
            result => result,
        }
    }
}

impl fmt::Debug for ReadCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCondition").field("selector", &self.selector).finish_non_exhaustive()
    }
}

/// True while the application says so. May be set from any thread, under either runtime.
#[derive(Clone, Debug)]
pub struct GuardCondition {
    inner: Arc<Guard>,
}

#[derive(Debug)]
struct Guard {
    value: AtomicBool,
    waiters: Waiters,
}

impl GuardCondition {
    /// A condition that is false.
    #[must_use]
    pub fn new() -> Self {
        Self { inner: Arc::new(Guard { value: AtomicBool::new(false), waiters: Waiters::new() }) }
    }

    /// Makes it true, which ends waits, or false again.
    pub fn set_trigger_value(&self, value: bool) {
        self.inner.value.store(value, Ordering::SeqCst);
        if value {
            self.inner.waiters.wake();
        }
    }

    /// Whether it is true now.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        self.inner.value.load(Ordering::SeqCst)
    }
}

impl Default for GuardCondition {
    fn default() -> Self {
        Self::new()
    }
}

/// Any condition, as a wait set knows it. Two are equal if they stand for the same thing.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Statuses of an entity.
    Status(StatusCondition),
    /// Samples of a reader.
    Read(ReadCondition),
    /// The application's own.
    Guard(GuardCondition),
}

impl Condition {
    pub(crate) fn waiters(&self) -> &Waiters {
        match self {
            Self::Status(condition) => &condition.signal.waiters,
            Self::Read(condition) => &condition.signal.waiters,
            Self::Guard(condition) => &condition.inner.waiters,
        }
    }

    pub(crate) fn engine(&self) -> Option<&Arc<Engine>> {
        match self {
            Self::Status(condition) => Some(&condition.engine),
            Self::Read(condition) => Some(&condition.engine),
            Self::Guard(_) => None,
        }
    }

    /// Its entity is no more, so it will not become true.
    pub(crate) fn is_deleted(&self) -> bool {
        match self {
            Self::Status(condition) => condition.signal.is_deleted(),
            Self::Read(condition) => condition.signal.is_deleted(),
            Self::Guard(_) => false,
        }
    }

    pub(crate) fn is_true(&self) -> Result<bool> {
        match self {
            Self::Status(condition) => Ok(condition.trigger_value()),
            Self::Read(condition) => condition.trigger_value(),
            Self::Guard(condition) => Ok(condition.trigger_value()),
        }
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Status(a), Self::Status(b)) => Arc::ptr_eq(&a.signal, &b.signal),
            (Self::Read(a), Self::Read(b)) => {
                let query = |of: &ReadCondition| of.query.as_ref().map(Arc::as_ptr);
                Arc::ptr_eq(&a.signal, &b.signal) && a.selector == b.selector && query(a) == query(b)
            }
            (Self::Guard(a), Self::Guard(b)) => Arc::ptr_eq(&a.inner, &b.inner),
            _ => false,
        }
    }
}

impl Eq for Condition {}

impl From<&StatusCondition> for Condition {
    fn from(condition: &StatusCondition) -> Self {
        Self::Status(condition.clone())
    }
}

impl From<StatusCondition> for Condition {
    fn from(condition: StatusCondition) -> Self {
        Self::Status(condition)
    }
}

impl From<&ReadCondition> for Condition {
    fn from(condition: &ReadCondition) -> Self {
        Self::Read(condition.clone())
    }
}

impl From<ReadCondition> for Condition {
    fn from(condition: ReadCondition) -> Self {
        Self::Read(condition)
    }
}

impl From<&GuardCondition> for Condition {
    fn from(condition: &GuardCondition) -> Self {
        Self::Guard(condition.clone())
    }
}

impl From<GuardCondition> for Condition {
    fn from(condition: GuardCondition) -> Self {
        Self::Guard(condition)
    }
}
