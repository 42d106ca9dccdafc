//! Monotonic time, supplied by the caller.

use core::time::Duration;
use takt_wire::Timestamp;

/// Nanoseconds on a monotonic clock with an arbitrary origin. Unaffected by jumps of the wall
/// clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// Returns the time `delay` later; saturates at the end of time.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    /// Returns the time since `earlier`; zero if it lies in the future.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// One point in time on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Monotonic clock.
    pub at: Instant,
    /// The wall clock.
    pub wall: Timestamp,
}
