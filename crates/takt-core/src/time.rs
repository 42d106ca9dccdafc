//! Monotonic time as the caller tells it.

use core::time::Duration;
use takt_wire::Timestamp;

/// Nanoseconds on a monotonic clock with an arbitrary origin. Unaffected by jumps of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// The moment `delay` later; saturates at the end of time.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// One moment by both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Monotonic.
    pub at: Instant,
    /// The wall clock.
    pub wall: Timestamp,
}
