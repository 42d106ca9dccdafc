//! Tests that overload a network, one at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps the overload of other tests away: switches and floods of several have real-time priority, and take the processors from one another.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
