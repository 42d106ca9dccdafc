//! The two clocks: a monotonic one that the protocol runs by, and the wall clock for source timestamps.

use std::time::{SystemTime, UNIX_EPOCH};

use takt_core::Instant;
use takt_wire::{Duration, Timestamp};

use crate::{Error, Result};

/// Monotonic time since the machine started: one origin for all participants.
///
/// The kernel's own reading, which takes some 20 ns, without the comparisons of `std::time::Instant` that take as long
/// again: the data path reads it several times per sample.
#[inline]
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some(now) = super::simulation::now() {
        return now;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is live and writable. The call cannot fail: Linux always has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // Neither part is ever negative, and 2^64 ns are 584 years.
    Instant(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// A duration that the application gives for `what`.
///
/// # Errors
/// [`Error::BadParameter`] if it is negative.
pub(crate) fn not_negative(what: &str, duration: impl Into<Duration>) -> Result<Duration> {
    let duration = duration.into();
    match duration.is_negative() {
        true => Err(Error::BadParameter { what: format!("{what} of {duration}: it must not be negative") }),
        false => Ok(duration),
    }
}

/// A time limit that the application gives for a call that waits.
///
/// # Errors
/// [`Error::BadParameter`] if it is negative.
pub(crate) fn timeout(timeout: impl Into<Duration>) -> Result<Duration> {
    not_negative("a timeout", timeout)
}

/// The moment `timeout` after `now`; `None` never comes.
pub(crate) fn deadline(now: Instant, timeout: Duration) -> Option<Instant> {
    timeout.as_nanos().map(|nanos| Instant(now.0.saturating_add(nanos)))
}

/// Both clocks at one moment: the wall clock, and what [`now`] said when it was read. A thread that is suspended between
/// the two readings would set them apart by as long, and every time stamp made from them with it; so the closest of
/// some readings counts.
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

/// The wall clock, the middle of the readings of [`now`] around it, and how far in nanoseconds those are apart.
fn reading() -> (u64, Instant, Timestamp) {
    let before = now();
    let wall = wall();
    let apart = now().0 - before.0;
    (apart, Instant(before.0 + apart / 2), wall)
}

/// Wall-clock time; before 1970 it is the epoch.
fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_run_backwards() {
        let readings: Vec<_> = (0..1000).map(|_| now()).collect();
        assert!(readings.is_sorted());
        assert!(readings[0].0 > 0);
    }

    #[test]
    fn deadlines_lie_ahead_and_infinity_has_none() {
        assert_eq!(deadline(Instant(7), Duration::from_millis(5)), Some(Instant(5_000_007)));
        assert_eq!(deadline(Instant(u64::MAX), Duration::from_millis(5)), Some(Instant(u64::MAX)));
        assert_eq!(deadline(Instant(7), Duration::INFINITE), None);
    }

    #[test]
    fn both_clocks_are_read_between_two_readings_of_each() {
        let (first, earlier) = (now(), wall());
        let (moment, wall_at_moment) = both();
        assert!(first <= moment && moment <= now());
        assert!(earlier <= wall_at_moment && wall_at_moment <= wall());
    }

    #[test]
    fn the_wall_clock_is_past_the_year_2020() {
        assert!(wall().to_nanos() > 1_577_836_800_000_000_000);
    }
}
