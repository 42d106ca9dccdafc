//! The two clocks: a monotonic clock for the protocol, and the wall clock for source timestamps.

use std::time::{SystemTime, UNIX_EPOCH};

use takt_core::Instant;
use takt_wire::{Duration, Timestamp};

use crate::{Error, Result};

/// Returns the monotonic time since boot. All participants have the same origin of time.
///
/// Calls the kernel's clock directly, which takes some 20 ns. `std::time::Instant` adds comparisons
/// that take as long again, and the data path reads the clock several times per sample.
#[inline]
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some(now) = super::simulation::now() {
        return now;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is live and writable. The call cannot fail: Linux always has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // Neither part is negative. 2^64 ns are 584 years.
    Instant(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// Validates a duration given by the application; `what` names it in the error.
///
/// # Errors
/// [`Error::BadParameter`] if it is negative.
pub(crate) fn not_negative(what: &str, duration: impl Into<Duration>) -> Result<Duration> {
    let duration = duration.into();
    match duration.is_negative() {
        true => Err(Error::bad_parameter(format!("{what} of {duration}: it must not be negative"))),
        false => Ok(duration),
    }
}

/// Validates the timeout of a blocking call.
///
/// # Errors
/// [`Error::BadParameter`] if it is negative.
pub(crate) fn timeout(timeout: impl Into<Duration>) -> Result<Duration> {
    not_negative("a timeout", timeout)
}

/// Returns the time `timeout` after `now`; `None` if the timeout is infinite.
pub(crate) fn deadline(now: Instant, timeout: Duration) -> Option<Instant> {
    timeout.as_nanos().map(|nanos| Instant(now.0.saturating_add(nanos)))
}

/// Returns the wall clock and the time that [`now`] returned when it was read. Preemption between
/// the two readings would distort their difference, and with it every timestamp derived from them.
/// The closest of up to `ATTEMPTS` readings is therefore used.
pub(crate) fn both() -> (Instant, Timestamp) {
    const ATTEMPTS: u32 = 8;
    const CLOSE_NANOS: u64 = 500;
    let mut best = reading();
    for _ in 1..ATTEMPTS {
        if best.0 <= CLOSE_NANOS {
            break;
        }
        best = best.min(reading());
    }
    let (_, moment, wall) = best;
    (moment, wall)
}

/// Reads the wall clock between two readings of [`now`]. Returns their distance in nanoseconds,
/// their midpoint, and the wall clock.
fn reading() -> (u64, Instant, Timestamp) {
    let before = now();
    let wall = wall();
    let apart = now().0 - before.0;
    (apart, Instant(before.0 + apart / 2), wall)
}

/// Returns the wall-clock time, at least that of the epoch 1970.
fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_clock_never_decreases() {
        let readings: Vec<_> = (0..1000).map(|_| now()).collect();
        assert!(readings.is_sorted());
        assert!(readings[0].0 > 0);
    }

    #[test]
    fn deadline_is_in_the_future_and_none_for_infinity() {
        assert_eq!(deadline(Instant(7), Duration::from_millis(5)), Some(Instant(5_000_007)));
        assert_eq!(deadline(Instant(u64::MAX), Duration::from_millis(5)), Some(Instant(u64::MAX)));
        assert_eq!(deadline(Instant(7), Duration::INFINITE), None);
    }

    #[test]
    fn both_clocks_are_read_at_the_same_moment() {
        let (first, earlier) = (now(), wall());
        let (moment, wall_at_moment) = both();
        assert!(first <= moment && moment <= now());
        assert!(earlier <= wall_at_moment && wall_at_moment <= wall());
    }

    #[test]
    fn wall_clock_is_after_the_year_2020() {
        assert!(wall().to_nanos() > 1_577_836_800_000_000_000);
    }
}
