//! A mutex with priority inheritance: while a thread of high priority waits, the owner runs at that priority.
//!
//! The standard library's mutex does not inherit priority, so that a thread of middle priority could keep a
//! thread of high priority waiting without bound. This one is `pthread_mutex_t` with
//! `PTHREAD_PRIO_INHERIT` and `PTHREAD_MUTEX_ERRORCHECK`: locking it twice from one thread is an error and
//! no deadlock. There is no poisoning: what it protects is left consistent by each call, or the call is a bug
//! that has already ended its thread.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// The calling thread already holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reentered;

/// The bare lock. On the heap, since a `pthread_mutex_t` must not move.
struct RawPiMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a pthread mutex is made to be used from several threads; it is only touched through pthread calls.
unsafe impl Send for RawPiMutex {}
// SAFETY: as above.
unsafe impl Sync for RawPiMutex {}

impl RawPiMutex {
    fn new() -> Self {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        // SAFETY: `attributes` is initialised by the first call before the others use it, and destroyed once;
        // `mutex` is exclusively ours, at its final address, and initialised once.
        let results = unsafe {
            let init = libc::pthread_mutexattr_init(attributes.as_mut_ptr());
            let protocol = libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), libc::PTHREAD_PRIO_INHERIT);
            let kind = libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), libc::PTHREAD_MUTEX_ERRORCHECK);
            let made = libc::pthread_mutex_init(mutex.get(), attributes.as_ptr());
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
            [init, protocol, kind, made]
        };
        assert_eq!(results, [0; 4], "Linux has priority-inheriting futexes since 2.6.18");
        Self(mutex)
    }

    fn lock(&self) -> Result<(), Reentered> {
        // SAFETY: initialised in `new`, destroyed only in `drop`.
        match unsafe { libc::pthread_mutex_lock(self.0.get()) } {
            0 => Ok(()),
            libc::EDEADLK => Err(Reentered),
            other => unreachable!("locking a valid error-checking mutex returned {other}"),
        }
    }

    /// Must be called by the thread that locked it, exactly once per `lock`.
    fn unlock(&self) {
        // SAFETY: initialised in `new`, destroyed only in `drop`. Unlocking from a wrong thread is an error
        // of an error-checking mutex, not undefined behaviour.
        let result = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        debug_assert_eq!(result, 0, "the guard lives on the thread that locked");
    }
}

impl Drop for RawPiMutex {
    fn drop(&mut self) {
        // SAFETY: `&mut self` proves that no guard, which borrows the mutex, exists.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// A value behind a priority-inheriting lock.
pub(crate) struct PiMutex<T> {
    raw: RawPiMutex,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time at the value, which moves between threads that way.
unsafe impl<T: Send> Sync for PiMutex<T> {}

impl<T> PiMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { raw: RawPiMutex::new(), value: UnsafeCell::new(value) }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Waits for the lock. Uncontended it is one atomic exchange.
    pub(crate) fn lock(&self) -> Result<PiMutexGuard<'_, T>, Reentered> {
        self.raw.lock()?;
        Ok(PiMutexGuard { mutex: self, not_send: PhantomData })
    }
}

impl<T> fmt::Debug for PiMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PiMutex").finish_non_exhaustive()
    }
}

/// Access to the value for as long as it lives.
pub(crate) struct PiMutexGuard<'a, T> {
    mutex: &'a PiMutex<T>,
    /// Only the thread that locked may unlock.
    not_send: PhantomData<*const ()>,
}

impl<T> Deref for PiMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock while the guard lives.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for PiMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock while the guard lives, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for PiMutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.raw.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn one_thread_at_a_time() {
        let counter = Arc::new(PiMutex::new(0_u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || {
                    for _ in 0..10_000 {
                        *counter.lock().expect("not held") += 1;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(*counter.lock().expect("not held"), 40_000);
    }

    #[test]
    fn locking_twice_is_an_error_and_the_lock_survives_it() {
        let mutex = PiMutex::new(1);
        let guard = mutex.lock().expect("free");
        assert_eq!(mutex.lock().err(), Some(Reentered));
        drop(guard);
        assert_eq!(*mutex.lock().expect("free again"), 1);
    }

    #[test]
    fn a_panic_releases_the_lock() {
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
