//! Expiry of samples (LIFESPAN, DDS 1.4 §2.2.3.16).
//!
//! A sample expires its writer's lifespan after its source timestamp, or after its arrival if it
//! has none. Writer and reader use their own wall clocks, so lifespans need synchronized clocks.
//! Dispose and unregister changes do not expire.

use crate::cache::ChangeKind;
use takt_wire::{Duration, Timestamp};

/// Maximum number of samples that one call removes; the next call continues.
pub(crate) const EXPIRED_PER_CALL: usize = 64;

/// Wall-clock time of an expiry, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Expiry(i64);

impl Expiry {
    pub(crate) const NEVER: Self = Self(i64::MAX);

    /// Returns the expiry of a change that was written at `source` and is first handled at `now`.
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

    /// Returns the nanoseconds until the expiry; zero if it is past.
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
    fn sample_expires_its_lifespan_after_its_source_timestamp() {
        let expiry = Expiry::of(ChangeKind::Alive, Duration::from_secs(10), at(995), NOW);
        assert_eq!(expiry, Expiry(1_005_000_000_000));
        assert_eq!(expiry.nanos_from(NOW), 5_000_000_000);
        assert!(!expiry.is_past(at(1_004)) && expiry.is_past(at(1_005)) && expiry.is_past(at(2_000)));
        assert_eq!(expiry.nanos_from(at(2_000)), 0);
    }

    #[test]
    fn sample_without_source_timestamp_expires_its_lifespan_after_its_arrival() {
        let expiry = Expiry::of(ChangeKind::Alive, Duration::from_secs(10), Timestamp::INVALID, NOW);
        assert!(!expiry.is_past(at(1_009)) && expiry.is_past(at(1_010)));
    }

    #[test]
    fn infinite_lifespans_and_disposals_never_expire() {
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
