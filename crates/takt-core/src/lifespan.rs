//! When a sample is of no use any more (LIFESPAN, DDS 1.4 §2.2.3.16).
//!
//! A sample expires its writer's lifespan after its source time stamp, or after its arrival if it has none. Both sides go
//! by their own wall clock, so lifespans need clocks that agree. What ends an instance does not expire.

use crate::cache::ChangeKind;
use takt_wire::{Duration, Timestamp};

/// Samples that one call removes; the next call goes on.
pub(crate) const EXPIRED_PER_CALL: usize = 64;

/// A moment of the wall clock in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Expiry(i64);

impl Expiry {
    pub(crate) const NEVER: Self = Self(i64::MAX);

    /// When a change expires that was written at `source`, and is looked at first at `now`.
    pub(crate) fn of(kind: ChangeKind, lifespan: Duration, source: Timestamp, now: Timestamp) -> Self {
        let Some(lifespan) = lifespan.as_nanos().filter(|_| kind == ChangeKind::Alive) else { return Self::NEVER };
        if source.is_infinite() {
            return Self::NEVER;
        }
        let source = if source.is_invalid() { now } else { source };
        Self(source.to_nanos().saturating_add_unsigned(lifespan))
    }

    pub(crate) fn is_past(self, now: Timestamp) -> bool {
        self != Self::NEVER && self.0 <= now.to_nanos()
    }

    /// Nanoseconds until then, zero if it is past.
    pub(crate) fn nanos_from(self, now: Timestamp) -> u64 {
        u64::try_from(self.0.saturating_sub(now.to_nanos())).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp { seconds: 1_000, fraction: 0 };

    fn at(seconds: u32) -> Timestamp {
        Timestamp { seconds, fraction: 0 }
    }

    #[test]
    fn a_sample_expires_its_lifespan_after_it_was_written() {
        let expiry = Expiry::of(ChangeKind::Alive, Duration::from_secs(10), at(995), NOW);
        assert_eq!(expiry, Expiry(1_005_000_000_000));
        assert_eq!(expiry.nanos_from(NOW), 5_000_000_000);
        assert!(!expiry.is_past(at(1_004)) && expiry.is_past(at(1_005)) && expiry.is_past(at(2_000)));
        assert_eq!(expiry.nanos_from(at(2_000)), 0);
    }

    #[test]
    fn without_a_source_time_stamp_it_lives_from_its_arrival() {
        let expiry = Expiry::of(ChangeKind::Alive, Duration::from_secs(10), Timestamp::INVALID, NOW);
        assert!(!expiry.is_past(at(1_009)) && expiry.is_past(at(1_010)));
    }

    #[test]
    fn what_has_no_end_never_expires() {
        let last = Timestamp { seconds: u32::MAX, fraction: 0 };
        for expiry in [
            Expiry::of(ChangeKind::Alive, Duration::INFINITE, at(995), NOW),
            Expiry::of(ChangeKind::Disposed, Duration::ZERO, at(995), NOW),
            Expiry::of(ChangeKind::Alive, Duration::ZERO, Timestamp::INFINITE, NOW),
        ] {
            assert_eq!(expiry, Expiry::NEVER);
            assert!(!expiry.is_past(last));
        }
    }
}
