//! Cell that belongs to one thread. It holds a participant's state under `Runtime::Inline`, in
//! place of a lock.
//!
//! Entering costs two plain loads and a store. Entering from another thread, or again during an
//! access, fails with the reason.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static DRIVES: Cell<bool> = const { Cell::new(false) };
}

/// Identifies a thread for the lifetime of the process. Tokens are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadToken(u64);

impl ThreadToken {
    /// Token of no thread.
    pub(crate) const NONE: Self = Self(0);

    /// Marks the calling thread as one that drives participants and calls their listeners, and
    /// returns its token.
    pub(crate) fn of_driving_thread() -> Self {
        DRIVES.set(true);
        Self::current()
    }

    /// Reports whether the calling thread is a driving thread. Such a thread must not wait for
    /// another one, which may wait for it.
    pub(crate) fn drives() -> bool {
        DRIVES.get()
    }

    /// Returns the token of the calling thread. Costs one thread-local load, unlike
    /// `std::thread::current().id()`.
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

/// Reason why a cell cannot be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The cell belongs to another thread.
    OtherThread,
    /// This thread is already accessing the cell.
    Reentered,
}

/// Value that only the creating thread may access.
pub(crate) struct ThreadCell<T> {
    owner: ThreadToken,
    /// Accessed by the owner only.
    entered: Cell<bool>,
    value: UnsafeCell<T>,
}

// SAFETY: `enter` compares the calling thread with `owner`, which never changes and is never
// reused, before it accesses `entered` or `value`. All access is therefore from one thread, even if
// the reference is shared. `T: Send` is required because another thread may drop the cell, with
// exclusive access.
unsafe impl<T: Send> Sync for ThreadCell<T> {}

impl<T> ThreadCell<T> {
    /// Creates a cell that belongs to the calling thread.
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

/// Guard of an access to the value.
pub(crate) struct ThreadCellGuard<'a, T> {
    cell: &'a ThreadCell<T>,
    /// Dropping the guard accesses `entered`, which only the owner may do.
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
        // SAFETY: this is the owning thread, one guard exists at a time, and it is borrowed
        // exclusively.
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
    fn owner_can_reenter_after_leaving() {
        let cell = ThreadCell::new(1);
        *cell.enter().expect("ours") += 1;
        assert_eq!(*cell.enter().expect("ours"), 2);
    }

    #[test]
    fn nested_entry_is_denied() {
        let cell = ThreadCell::new(1);
        let guard = cell.enter().expect("ours");
        assert_eq!(cell.enter().err(), Some(Denied::Reentered));
        drop(guard);
        assert!(cell.enter().is_ok());
    }

    #[test]
    fn entry_from_another_thread_is_denied() {
        let cell = ThreadCell::new(1);
        std::thread::scope(|scope| {
            let denied = scope.spawn(|| cell.enter().err());
            assert_eq!(denied.join().expect("no panic"), Some(Denied::OtherThread));
        });
        assert!(cell.enter().is_ok());
    }
}
