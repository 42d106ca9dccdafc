//! Conditions that a [`WaitSet`](crate::WaitSet) waits for (DDS 1.4 §2.2.2.1.7 to §2.2.2.1.9).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use takt_core::{ReaderHandle, Selector};

use crate::Result;
use crate::query::BoundQuery;
use crate::runtime::engine::Engine;
use crate::status::{Signal, StatusMask, Waiters};

/// Condition that is true while an enabled status of its entity has changed since the application
/// last read it.
///
/// The next `read` or `take` on the reader resets `DATA_AVAILABLE`, even if it does not return all
/// samples. Take until no samples are left, or wait for a [`ReadCondition`]. Every other status is
/// reset when the application reads it. Enable only statuses that the application reads: any other
/// ends every later wait immediately.
#[derive(Clone)]
pub struct StatusCondition {
    pub(crate) signal: Arc<Signal>,
    pub(crate) engine: Arc<Engine>,
}

impl StatusCondition {
    /// Returns the enabled statuses: those that make the condition true. Initially all are enabled.
    #[must_use]
    pub fn enabled_statuses(&self) -> StatusMask {
        self.signal.enabled()
    }

    /// Sets the statuses that make the condition true. All conditions of one entity share this
    /// mask.
    pub fn set_enabled_statuses(&self, statuses: StatusMask) {
        self.signal.set_enabled(statuses);
    }

    /// Reports whether the condition is true now.
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

/// Condition that is true while its reader holds samples of the selected states. Created by
/// [`AnyDataReader::read_condition`](crate::AnyDataReader::read_condition).
#[derive(Clone)]
pub struct ReadCondition {
    pub(crate) signal: Arc<Signal>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) reader: ReaderHandle,
    pub(crate) selector: Selector,
    /// Content filter, if this is the condition of a [`QueryCondition`](crate::QueryCondition).
    pub(crate) query: Option<Arc<BoundQuery>>,
}

impl ReadCondition {
    /// Returns the sample, view and instance states that the condition selects.
    #[must_use]
    pub fn selector(&self) -> Selector {
        self.selector
    }

    /// Reports whether the condition is true now. It is false once the reader is deleted.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`](crate::Error::IllegalOperation) from a second thread under
    /// `Runtime::Inline`.
    pub fn trigger_value(&self) -> Result<bool> {
        let query = self.query.as_ref().map(|query| query.snapshot());
        let result = self.engine.inspect(|driver| {
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

/// Condition that the application sets and resets, from any thread and under either runtime.
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
    /// Creates a condition that is false.
    #[must_use]
    pub fn new() -> Self {
        Self { inner: Arc::new(Guard { value: AtomicBool::new(false), waiters: Waiters::new() }) }
    }

    /// Sets the trigger value. `true` ends the waits of all wait sets that contain the condition.
    pub fn set_trigger_value(&self, value: bool) {
        self.inner.value.store(value, Ordering::SeqCst);
        if value {
            self.inner.waiters.wake();
        }
    }

    /// Reports whether the condition is true now.
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

/// Any condition that can be attached to a wait set. Two values are equal if they refer to the same
/// condition.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Condition on statuses of an entity.
    Status(StatusCondition),
    /// Condition on samples of a reader.
    Read(ReadCondition),
    /// Condition that the application controls.
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

    /// Reports whether the entity of the condition is deleted, so that the condition cannot become
    /// true again.
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
