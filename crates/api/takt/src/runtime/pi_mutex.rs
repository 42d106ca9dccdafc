//! Mutex with priority inheritance: while a thread of higher priority waits, the owner runs at that
//! priority.
//!
//! The standard library's mutex does not inherit priority, so a thread of medium priority could
//! block a thread of high priority without bound. This mutex is a priority-inheriting futex. The
//! futex word holds the owner's thread id. Acquiring and releasing it without contention take one
//! atomic exchange each; the kernel does the rest (`FUTEX_LOCK_PI`, `FUTEX_UNLOCK_PI`). A
//! `pthread_mutex_t` with `PTHREAD_PRIO_INHERIT` does the same with ten times the instructions.
//!
//! Locking it twice from one thread is an error, not a deadlock. There is no poisoning: each call
//! leaves the protected value consistent, and a call that does not is a bug that has already ended
//! its thread. The child of a `fork` must not use mutexes of its parent but may create its own.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;

use super::clock;
use super::os::{Linux, Os, Word};

/// Reason why the lock was not acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockError {
    /// The calling thread already holds the lock, or a cycle of waiting threads would arise
    /// (EDEADLK).
    Reentered,
    /// The kernel has no memory to register the waiter (ENOMEM).
    OutOfMemory,
}

/// Lock without a value: zero while free, else the owner's thread id, with `FUTEX_WAITERS` set by
/// the kernel.
struct RawPiMutex<O: Os>(O::Word);

impl<O: Os> RawPiMutex<O> {
    fn new() -> Self {
        Self(O::Word::new(0))
    }

    /// Acquires the lock. Returns the waiting time in nanoseconds; 0 if the lock was free.
    #[inline]
    fn lock(&self) -> Result<u64, LockError> {
        match self.0.compare_exchange(0, O::thread_id(), Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(0),
            Err(word) => self.lock_contended(word),
        }
    }

    #[cold]
    fn lock_contended(&self, word: u32) -> Result<u64, LockError> {
        if word & !O::Word::WAITERS == O::thread_id() {
            return Err(LockError::Reentered);
        }
        let began = clock::now();
        while let Err(error) = self.0.lock_pi() {
            match error.raw_os_error() {
                // The owner is about to exit, or a signal arrived.
                Some(libc::EAGAIN | libc::EINTR) => {}
                Some(libc::EDEADLK) => return Err(LockError::Reentered),
                Some(libc::ENOMEM) => return Err(LockError::OutOfMemory),
                _ => unreachable!("the owner lives and the futex word is ours: {error}"),
            }
        }
        // The kernel's changes of the word are full barriers. This load makes that known to the
        // compiler and synchronizes with the previous owner.
        self.0.load(Ordering::Acquire);
        // Report at least 1 ns, since 0 means that there was no wait.
        Ok(clock::now().0.saturating_sub(began.0).max(1))
    }

    /// Releases the lock. Must be called exactly once per `lock`, by the thread that locked.
    #[inline]
    fn unlock(&self) {
        if self.0.compare_exchange(O::thread_id(), 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.unlock_contended();
        }
    }

    #[cold]
    fn unlock_contended(&self) {
        // Counterpart of the load in `lock_contended` for the compiler. The word does not change.
        self.0.fetch_add(0, Ordering::Release);
        let result = self.0.unlock_pi();
        debug_assert!(result.is_ok(), "the guard lives on the thread that locked: {result:?}");
    }
}

/// Value protected by a priority-inheriting lock.
pub(crate) struct PiMutex<T, O: Os = Linux> {
    raw: RawPiMutex<O>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives one thread at a time access to the value, which may thereby move between
// threads.
unsafe impl<T: Send, O: Os> Sync for PiMutex<T, O> {}

impl<T> PiMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self::with_os(value)
    }
}

impl<T, O: Os> PiMutex<T, O> {
    /// Creates a mutex on any implementation of [`Os`].
    pub(crate) fn with_os(value: T) -> Self {
        Self { raw: RawPiMutex::new(), value: UnsafeCell::new(value) }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Waits for the lock. Takes one atomic exchange if the lock is free.
    pub(crate) fn lock(&self) -> Result<PiMutexGuard<'_, T, O>, LockError> {
        let waited_ns = self.raw.lock()?;
        Ok(PiMutexGuard { mutex: self, waited_ns, not_send: PhantomData })
    }
}

#[cfg(debug_assertions)]
impl<T> PiMutex<T> {
    /// Locks the mutex if it is free.
    pub(crate) fn try_lock(&self) -> Option<PiMutexGuard<'_, T>> {
        let locked = self.raw.0.compare_exchange(0, Linux::thread_id(), Ordering::Acquire, Ordering::Relaxed);
        locked.ok().map(|_| PiMutexGuard { mutex: self, waited_ns: 0, not_send: PhantomData })
    }
}

impl<T, O: Os> fmt::Debug for PiMutex<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PiMutex").finish_non_exhaustive()
    }
}

/// Guard of an access to the value.
pub(crate) struct PiMutexGuard<'a, T, O: Os = Linux> {
    mutex: &'a PiMutex<T, O>,
    waited_ns: u64,
    /// Only the thread that locked may unlock.
    not_send: PhantomData<*const ()>,
}

impl<T, O: Os> PiMutexGuard<'_, T, O> {
    /// Returns the time in nanoseconds that the caller has waited for the lock; 0 if it was free.
    #[inline]
    pub(crate) fn waited_ns(&self) -> u64 {
        self.waited_ns
    }
}

impl<T, O: Os> Deref for PiMutexGuard<'_, T, O> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock while the guard lives.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T, O: Os> DerefMut for PiMutexGuard<'_, T, O> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock while the guard lives, and the guard is borrowed
        // exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T, O: Os> Drop for PiMutexGuard<'_, T, O> {
    fn drop(&mut self) {
        self.mutex.raw.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn mutex_excludes_concurrent_threads() {
        let counter = Arc::new(PiMutex::new(0_u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || {
                    for _ in 0..50_000 {
                        *counter.lock().expect("not held") += 1;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(*counter.lock().expect("not held"), 200_000);
        assert_eq!(counter.raw.0.load(Ordering::SeqCst), 0, "free after all");
    }

    #[test]
    fn waiter_gets_the_lock_when_the_owner_releases_it() {
        let mutex = PiMutex::new(1);
        let guard = mutex.lock().expect("free");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| *mutex.lock().expect("not held by this thread"));
            while mutex.raw.0.load(Ordering::SeqCst) & libc::FUTEX_WAITERS == 0 {
                std::thread::yield_now();
            }
            drop(guard);
            assert_eq!(waiter.join().expect("no panic"), 1);
        });
    }

    #[test]
    fn relocking_is_an_error_and_the_lock_remains_usable() {
        let mutex = PiMutex::new(1);
        let guard = mutex.lock().expect("free");
        assert_eq!(mutex.lock().err(), Some(LockError::Reentered));
        drop(guard);
        assert_eq!(*mutex.lock().expect("free again"), 1);
    }

    /// Lets two threads contend for a new lock, in the child of a `fork`.
    fn contend() -> u32 {
        let mutex = PiMutex::new(1);
        let guard = mutex.lock().expect("free");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| *mutex.lock().expect("not held by this thread"));
            while mutex.raw.0.load(Ordering::SeqCst) & libc::FUTEX_WAITERS == 0 {
                std::thread::yield_now();
            }
            drop(guard);
            waiter.join().expect("no panic")
        })
    }

    #[test]
    fn forked_child_can_create_locks() {
        assert_eq!(contend(), 1, "caches the id of this thread");
        // SAFETY: the child makes a lock and a thread, as glibc permits, and ends without
        // returning.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: these calls have no memory of ours; the alarm ends a child that hangs.
            unsafe {
                libc::alarm(30);
                libc::_exit(i32::from(contend() != 1));
            }
        }
        assert!(child > 0, "{}", std::io::Error::last_os_error());
        let mut status = 0;
        // SAFETY: `status` is live and writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child ended well");
    }

    #[test]
    fn panic_releases_the_lock() {
        let mutex = Arc::new(PiMutex::new(5));
        let inner = Arc::clone(&mutex);
        let result = std::thread::spawn(move || {
            let _guard = inner.lock().expect("free");
            panic!("on purpose");
        })
        .join();
        assert!(result.is_err());
        assert_eq!(*mutex.lock().expect("released while unwinding"), 5);
    }
}
