//! Access to a participant's state under both runtimes: guarded by a lock or bound to a thread.

use std::ops::{Deref, DerefMut};

use super::pi_mutex::{LockError, PiMutex, PiMutexGuard};
use super::thread_cell::{Denied, ThreadCell, ThreadCellGuard};
use crate::{Error, Result, Runtime};

/// Value that one caller at a time can access.
#[derive(Debug)]
pub(crate) enum Guarded<T> {
    /// Guarded by a lock, under [`Runtime::Shared`].
    Locked(PiMutex<T>),
    /// Bound to a thread, under [`Runtime::Inline`].
    Owned(ThreadCell<T>),
}

impl<T> Guarded<T> {
    pub(crate) fn new(runtime: Runtime, value: T) -> Self {
        match runtime {
            Runtime::Shared => Self::Locked(PiMutex::new(value)),
            Runtime::Inline => Self::Owned(ThreadCell::new(value)),
        }
    }

    /// Returns the value without entering, which requires exclusive access.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        match self {
            Self::Locked(mutex) => mutex.get_mut(),
            Self::Owned(cell) => cell.get_mut(),
        }
    }

    /// Waits for the lock, or checks that the calling thread is the owner.
    pub(crate) fn enter(&self) -> Result<Guard<'_, T>> {
        const REENTERED: Error = Error::IllegalOperation {
            what: "called from within another call on the same participant (a closure or a type's own code)",
        };
        match self {
            Self::Locked(mutex) => mutex.lock().map(Guard::Locked).map_err(|error| match error {
                LockError::Reentered => REENTERED,
                LockError::OutOfMemory => Error::OutOfResources { limit: "kernel memory for a lock", value: 0 },
            }),
            Self::Owned(cell) => cell.enter().map(Guard::Owned).map_err(|denied| match denied {
                Denied::Reentered => REENTERED,
                Denied::OtherThread => Error::IllegalOperation {
                    what: "a participant under Runtime::Inline belongs to the thread that built it",
                },
            }),
        }
    }
}

#[cfg(debug_assertions)]
impl<T> Guarded<T> {
    /// Enters if the lock is free.
    pub(crate) fn try_enter(&self) -> Option<Guard<'_, T>> {
        match self {
            Self::Locked(mutex) => mutex.try_lock().map(Guard::Locked),
            Self::Owned(cell) => cell.enter().map(Guard::Owned).ok(),
        }
    }
}

/// Guard of an access to the value.
pub(crate) enum Guard<'a, T> {
    Locked(PiMutexGuard<'a, T>),
    Owned(ThreadCellGuard<'a, T>),
}

impl<T> Guard<'_, T> {
    /// Returns the time in nanoseconds that the caller has waited for the lock.
    #[inline]
    pub(crate) fn waited_ns(&self) -> u64 {
        match self {
            Self::Locked(guard) => guard.waited_ns(),
            Self::Owned(_) => 0,
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Locked(guard) => guard,
            Self::Owned(guard) => guard,
        }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Self::Locked(guard) => guard,
            Self::Owned(guard) => guard,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reentry_is_an_error_under_both_runtimes_and_leaves_the_value_usable() {
        for runtime in [Runtime::Shared, Runtime::Inline] {
            let guarded = Guarded::new(runtime, 7);
            let first = guarded.enter().expect("free");
            assert!(matches!(guarded.enter(), Err(Error::IllegalOperation { .. })), "{runtime:?}");
            drop(first);
            assert_eq!(*guarded.enter().expect("free again"), 7);
        }
    }

    #[test]
    fn second_thread_enters_under_shared_runtime_only() {
        for (runtime, allowed) in [(Runtime::Shared, true), (Runtime::Inline, false)] {
            let guarded = Guarded::new(runtime, 7);
            std::thread::scope(|scope| {
                let entered = scope.spawn(|| guarded.enter().is_ok());
                assert_eq!(entered.join().expect("no panic"), allowed, "{runtime:?}");
            });
        }
    }
}
