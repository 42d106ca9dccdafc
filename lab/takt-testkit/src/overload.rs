//! Mutual exclusion of tests that overload a network.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks out the overload of other tests: switches and floods of several tests have real-time
/// priority, and would compete for the processors.
pub fn lock() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
