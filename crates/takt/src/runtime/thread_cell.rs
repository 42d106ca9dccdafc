//! A cell that belongs to one thread: what a participant under `Runtime::Inline` lives in instead of a lock.
//!
//! Entering costs two plain loads and a store. Another thread, or a second entry while the first lasts, is
//! turned away with the reason.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static DRIVES: Cell<bool> = const { Cell::new(false) };
}

/// Identifies a thread for the lifetime of the process; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadToken(u64);

impl ThreadToken {
    /// No thread at all.
    pub(crate) const NONE: Self = Self(0);

    /// The calling thread's, which drives participants of others from now on, and calls their listeners.
    pub(crate) fn of_driving_thread() -> Self {
        DRIVES.set(true);
        Self::current()
    }

    /// Whether the calling thread is one that drives. It must not wait for another one, which may wait for it.
    pub(crate) fn drives() -> bool {
        DRIVES.get()
    }

    /// The calling thread's. Unlike `std::thread::current().id()` it costs one thread-local load.
    pub(crate) fn current() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        thread_local! {
            static TOKEN: Cell<u64> = const { Cell::new(0) };
        }
        TOKEN.with(|token| {
            if token.get() == 0 {
                token.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            Self(token.get())
        })
    }

    pub(crate) const fn of_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }
}

/// Why a cell cannot be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// It belongs to another thread.
    OtherThread,
    /// This thread is inside already.
    Reentered,
}

/// A value that only the thread which created it may touch.
pub(crate) struct ThreadCell<T> {
    owner: ThreadToken,
    /// Touched by the owner only.
    entered: Cell<bool>,
    value: UnsafeCell<T>,
}

// SAFETY: `enter` compares the calling thread with `owner`, which never changes and is never reused, before it
// touches `entered` or `value`; so all access is from one thread, however the reference is shared. `T: Send`
// since the cell may be dropped by another thread than the owner, which has exclusive access then.
unsafe impl<T: Send> Sync for ThreadCell<T> {}

impl<T> ThreadCell<T> {
    /// A cell that belongs to the calling thread.
    pub(crate) fn new(value: T) -> Self {
        Self { owner: ThreadToken::current(), entered: Cell::new(false), value: UnsafeCell::new(value) }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    pub(crate) fn enter(&self) -> Result<ThreadCellGuard<'_, T>, Denied> {
        if self.owner != ThreadToken::current() {
            return Err(Denied::OtherThread);
        }
        if self.entered.replace(true) {
            return Err(Denied::Reentered);
        }
        Ok(ThreadCellGuard { cell: self, not_send: PhantomData })
    }
}

impl<T> fmt::Debug for ThreadCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadCell").field("owner", &self.owner).finish_non_exhaustive()
    }
}

/// Access to the value for as long as it lives.
pub(crate) struct ThreadCellGuard<'a, T> {
    cell: &'a ThreadCell<T>,
    /// Dropping it touches `entered`, which only the owner may.
    not_send: PhantomData<*const ()>,
}

impl<T> Deref for ThreadCellGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this is the owning thread, and `entered` lets one guard exist at a time.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for ThreadCellGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the owning thread, one guard exists at a time, and it is borrowed exclusively.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T> Drop for ThreadCellGuard<'_, T> {
    fn drop(&mut self) {
        self.cell.entered.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_enters_again_after_leaving() {
        let cell = ThreadCell::new(1);
        *cell.enter().expect("ours") += 1;
        assert_eq!(*cell.enter().expect("ours"), 2);
    }

    #[test]
    fn entering_twice_is_denied() {
        let cell = ThreadCell::new(1);
        let guard = cell.enter().expect("ours");
        assert_eq!(cell.enter().err(), Some(Denied::Reentered));
        drop(guard);
        assert!(cell.enter().is_ok());
    }

    #[test]
    fn another_thread_is_denied() {
        let cell = ThreadCell::new(1);
        std::thread::scope(|scope| {
            let denied = scope.spawn(|| cell.enter().err());
            assert_eq!(denied.join().expect("no panic"), Some(Denied::OtherThread));
        });
        assert!(cell.enter().is_ok());
    }
}
