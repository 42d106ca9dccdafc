//! One way into a participant's state for both runtimes: behind a lock, or bound to a thread.

use std::ops::{Deref, DerefMut};

use super::pi_mutex::{LockError, PiMutex, PiMutexGuard};
use super::thread_cell::{Denied, ThreadCell, ThreadCellGuard};
use crate::{Error, Result, Runtime};

/// A value that is entered by one caller at a time.
#[derive(Debug)]
pub(crate) enum Guarded<T> {
    /// [`Runtime::Shared`].
    Locked(PiMutex<T>),
    /// [`Runtime::Inline`].
    Owned(ThreadCell<T>),
}

impl<T> Guarded<T> {
    pub(crate) fn new(runtime: Runtime, value: T) -> Self {
        match runtime {
            Runtime::Shared => Self::Locked(PiMutex::new(value)),
            Runtime::Inline => Self::Owned(ThreadCell::new(value)),
        }
    }

    /// Access without entering, when nobody else can be inside.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        match self {
            Self::Locked(mutex) => mutex.get_mut(),
            Self::Owned(cell) => cell.get_mut(),
        }
    }

    /// Waits for the lock, or checks that this is the owning thread.
    pub(crate) fn enter(&self) -> Result<Guard<'_, T>> {
        const REENTERED: Error = Error::IllegalOperation {
            what: "called from within another call on the same participant (a closure or a type's own code)",
        };
        match self {
            Self::Locked(mutex) => mutex.lock().map(Guard::Locked).map_err(|error| match error {
                LockError::Reentered => REENTERED,
                LockError::OutOfMemory => Error::OutOfResources { limit: "memory of the kernel for a lock", value: 0 },
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

/// Access to the value for as long as it lives.
pub(crate) enum Guard<'a, T> {
    Locked(PiMutexGuard<'a, T>),
    Owned(ThreadCellGuard<'a, T>),
}

impl<T> Guard<'_, T> {
    /// How long the caller has waited for it.
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
    fn both_runtimes_refuse_reentry_and_recover() {
        for runtime in [Runtime::Shared, Runtime::Inline] {
            let guarded = Guarded::new(runtime, 7);
            let first = guarded.enter().expect("free");
            assert!(matches!(guarded.enter(), Err(Error::IllegalOperation { .. })), "{runtime:?}");
            drop(first);
            assert_eq!(*guarded.enter().expect("free again"), 7);
        }
    }

    #[test]
    fn a_second_thread_enters_shared_only() {
        for (runtime, allowed) in [(Runtime::Shared, true), (Runtime::Inline, false)] {
            let guarded = Guarded::new(runtime, 7);
            std::thread::scope(|scope| {
                let entered = scope.spawn(|| guarded.enter().is_ok());
                assert_eq!(entered.join().expect("no panic"), allowed, "{runtime:?}");
            });
        }
    }
}
