//! Communication statuses: which ones have changed, and which wait sets wait for a change
//! (DDS 1.4 §2.2.4.1).

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::poll::Waker;

pub use takt_core::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LatencyExceededStatus,
    LivelinessChangedStatus, LivelinessLostStatus, MatchedStatus, SampleLostStatus, SampleRejectedReason,
    SampleRejectedStatus,
};

/// Set of statuses, with the bit values of the specification's `StatusKind`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StatusMask(u32);

impl StatusMask {
    /// No status.
    pub const NONE: Self = Self(0);
    /// Every status.
    pub const ALL: Self = Self(u32::MAX);
    /// `INCONSISTENT_TOPIC_STATUS`.
    pub const INCONSISTENT_TOPIC: Self = Self(1 << 0);
    /// `OFFERED_DEADLINE_MISSED_STATUS`.
    pub const OFFERED_DEADLINE_MISSED: Self = Self(1 << 1);
    /// `REQUESTED_DEADLINE_MISSED_STATUS`.
    pub const REQUESTED_DEADLINE_MISSED: Self = Self(1 << 2);
    /// `OFFERED_INCOMPATIBLE_QOS_STATUS`.
    pub const OFFERED_INCOMPATIBLE_QOS: Self = Self(1 << 5);
    /// `REQUESTED_INCOMPATIBLE_QOS_STATUS`.
    pub const REQUESTED_INCOMPATIBLE_QOS: Self = Self(1 << 6);
    /// `SAMPLE_LOST_STATUS`.
    pub const SAMPLE_LOST: Self = Self(1 << 7);
    /// `SAMPLE_REJECTED_STATUS`.
    pub const SAMPLE_REJECTED: Self = Self(1 << 8);
    /// `DATA_ON_READERS_STATUS`.
    pub const DATA_ON_READERS: Self = Self(1 << 9);
    /// `DATA_AVAILABLE_STATUS`.
    pub const DATA_AVAILABLE: Self = Self(1 << 10);
    /// `LIVELINESS_LOST_STATUS`.
    pub const LIVELINESS_LOST: Self = Self(1 << 11);
    /// `LIVELINESS_CHANGED_STATUS`.
    pub const LIVELINESS_CHANGED: Self = Self(1 << 12);
    /// `PUBLICATION_MATCHED_STATUS`.
    pub const PUBLICATION_MATCHED: Self = Self(1 << 13);
    /// `SUBSCRIPTION_MATCHED_STATUS`.
    pub const SUBSCRIPTION_MATCHED: Self = Self(1 << 14);
    /// Samples exceeded the reader's E2E_LATENCY or its computed bound. Extension of Takt, outside
    /// the bits of the specification.
    pub const LATENCY_EXCEEDED: Self = Self(1 << 24);

    /// Returns the bit mask of the specification.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set without the statuses in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns an iterator over the statuses of the set, each as a set of its own.
    pub(crate) fn each(self) -> impl Iterator<Item = Self> {
        (0..u32::BITS).map(|bit| Self(1 << bit)).filter(move |status| self.intersects(*status))
    }

    /// Reports whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Reports whether the set contains any status of `other`.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for StatusMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for StatusMask {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for StatusMask {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Debug for StatusMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusMask({:#x})", self.0)
    }
}

/// Status changes of one entity, and the wait sets that wait for them.
#[derive(Debug)]
pub(crate) struct Signal {
    changes: AtomicU32,
    enabled: AtomicU32,
    deleted: AtomicBool,
    /// See [`is_drained`](Self::is_drained).
    drained: AtomicBool,
    pub(crate) waiters: Waiters,
}

impl Signal {
    /// Creates a signal without changes. All statuses of its condition are enabled
    /// (DDS 1.4 §2.2.2.1.9).
    pub(crate) fn new() -> Self {
        Self {
            changes: AtomicU32::new(0),
            enabled: AtomicU32::new(StatusMask::ALL.0),
            deleted: AtomicBool::new(false),
            drained: AtomicBool::new(false),
            waiters: Waiters::new(),
        }
    }

    /// Records a change of the status and wakes the wait sets. Without wait sets it costs one
    /// atomic operation.
    pub(crate) fn raise(&self, status: StatusMask) {
        if status == StatusMask::DATA_AVAILABLE {
            self.set_drained(false);
        }
        self.changes.fetch_or(status.0, Ordering::SeqCst);
        self.waiters.wake();
    }

    /// Reports whether the last read of the reader was a take that found no sample, and
    /// `DATA_AVAILABLE` was not raised since.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Acquire)
    }

    /// Records the end of a read, or available data. Called while the lock of the state is held.
    pub(crate) fn set_drained(&self, drained: bool) {
        self.drained.store(drained, Ordering::Release);
    }

    /// Marks the entity as deleted and wakes the wait sets, which would otherwise wait forever.
    pub(crate) fn delete(&self) {
        self.deleted.store(true, Ordering::SeqCst);
        self.waiters.wake();
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::SeqCst)
    }

    /// Resets the changes of these statuses, which the application has read.
    pub(crate) fn clear(&self, statuses: StatusMask) {
        // A load is cheaper than a read-modify-write, and usually there is nothing to clear.
        if self.changes().intersects(statuses) {
            self.changes.fetch_and(!statuses.0, Ordering::SeqCst);
        }
    }

    pub(crate) fn changes(&self) -> StatusMask {
        StatusMask(self.changes.load(Ordering::SeqCst))
    }

    pub(crate) fn enabled(&self) -> StatusMask {
        StatusMask(self.enabled.load(Ordering::SeqCst))
    }

    pub(crate) fn set_enabled(&self, statuses: StatusMask) {
        self.enabled.store(statuses.0, Ordering::SeqCst);
        self.waiters.wake();
    }
}

/// Wait sets to wake when a condition may have become true.
#[derive(Debug)]
pub(crate) struct Waiters {
    list: PiMutex<Vec<Arc<Waker>>>,
    count: AtomicUsize,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { list: PiMutex::new(Vec::new()), count: AtomicUsize::new(0) }
    }

    pub(crate) fn add(&self, waker: &Arc<Waker>) {
        self.edit(|list| list.push(Arc::clone(waker)));
    }

    pub(crate) fn remove(&self, waker: &Arc<Waker>) {
        self.edit(|list| {
            if let Some(index) = list.iter().position(|known| Arc::ptr_eq(known, waker)) {
                list.swap_remove(index);
            }
        });
    }

    pub(crate) fn wake(&self) {
        if self.count.load(Ordering::SeqCst) > 0 {
            self.edit(|list| list.iter().for_each(|waker| waker.wake()));
        }
    }

    fn edit(&self, edit: impl FnOnce(&mut Vec<Arc<Waker>>)) {
        let mut list = self.list.lock().expect("the lock is not poisoned: no user code runs under it");
        edit(&mut list);
        self.count.store(list.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_changes_remain_until_cleared() {
        let signal = Signal::new();
        signal.raise(StatusMask::DATA_AVAILABLE);
        signal.raise(StatusMask::SAMPLE_LOST);
        signal.clear(StatusMask::DATA_AVAILABLE);
        assert_eq!(signal.changes(), StatusMask::SAMPLE_LOST);
        assert!(signal.enabled().intersects(StatusMask::SAMPLE_LOST));
    }

    #[test]
    fn raise_wakes_attached_waiters_only() {
        let signal = Signal::new();
        let (stays, leaves) = (Arc::new(Waker::new().expect("eventfd")), Arc::new(Waker::new().expect("eventfd")));
        signal.waiters.add(&stays);
        signal.waiters.add(&leaves);
        signal.waiters.remove(&leaves);
        signal.raise(StatusMask::SUBSCRIPTION_MATCHED);
        assert!(stays.is_signaled());
        assert!(!leaves.is_signaled());
    }
}
