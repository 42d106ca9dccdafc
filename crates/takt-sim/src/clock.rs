//! A host's clocks: a monotonic one that runs too fast or too slow, and a wall clock that is set now and then.

use takt_core::Instant;
use takt_wire::Timestamp;

/// True time in nanoseconds since the world began. Nobody inside the world can read it.
pub type Nanos = u64;

/// One millisecond of true time.
pub const MILLISECOND: Nanos = 1_000_000;

/// One second of true time.
pub const SECOND: Nanos = 1_000_000_000;

/// The wall clock's reading when the world begins.
pub const EPOCH: i64 = 1_700_000_000_000_000_000;

/// Two hosts' monotonic clocks have nothing to do with one another.
const ORIGIN_STEP: u64 = 1_000 * SECOND;

/// A host's clocks.
#[derive(Clone, Debug)]
pub struct HostClock {
    origin: u64,
    /// How much faster than true time, in parts per billion.
    drift_ppb: i64,
    /// How far the wall clock is ahead of the monotonic one, in nanoseconds.
    wall_offset: i64,
}

impl HostClock {
    /// The clock of host number `host`.
    #[must_use]
    pub fn new(host: usize, drift_ppb: i64) -> Self {
        let origin = (host as u64 + 1) * ORIGIN_STEP;
        Self { origin, drift_ppb, wall_offset: EPOCH - origin as i64 }
    }

    /// What the monotonic clock shows.
    #[must_use]
    pub fn local(&self, now: Nanos) -> Instant {
        // In 64 bits for some hours of any drift below a thousandth.
        let ahead = match (now as i64).checked_mul(self.drift_ppb) {
            Some(product) => product / 1_000_000_000,
            None => (i128::from(now) * i128::from(self.drift_ppb) / 1_000_000_000) as i64,
        };
        Instant(self.origin + now.saturating_add_signed(ahead))
    }

    /// The first moment at which the monotonic clock shows `local` or more; now if it does already.
    #[must_use]
    pub fn when(&self, local: Instant, now: Nanos) -> Nanos {
        let since = local.0.saturating_sub(self.origin);
        let scale = 1_000_000_000 + self.drift_ppb;
        let ahead = match (since as i64).checked_mul(self.drift_ppb) {
            Some(product) => product / scale,
            None => (i128::from(since) * i128::from(self.drift_ppb) / i128::from(scale)) as i64,
        };
        let mut moment = since.saturating_add_signed(-ahead).saturating_sub(2).max(now);
        while self.local(moment) < local {
            moment += 1;
        }
        moment
    }

    /// What the wall clock shows.
    #[must_use]
    pub fn wall(&self, now: Nanos) -> Timestamp {
        Timestamp::from_nanos(self.local(now).0 as i64 + self.wall_offset)
    }

    /// Somebody sets the wall clock.
    pub fn set_wall(&mut self, by: i64) {
        self.wall_offset += by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_at_the_first_moment_of_the_local_clock() {
        for drift in [-200_000, -1, 0, 37, 200_000] {
            let clock = HostClock::new(3, drift);
            for wait in [0, 1, 999, SECOND, 3_600 * SECOND] {
                let due = Instant(clock.local(0).0 + wait);
                let moment = clock.when(due, 0);
                assert!(clock.local(moment) >= due);
                assert!(moment == 0 || clock.local(moment - 1) < due, "drift {drift}, wait {wait}");
            }
        }
    }

    #[test]
    fn setting_the_wall_clock_leaves_the_monotonic_one_alone() {
        let mut clock = HostClock::new(0, 50);
        let (before, wall) = (clock.local(5), clock.wall(5));
        clock.set_wall(-3_600_000_000_000);
        assert_eq!(clock.local(5), before);
        assert_eq!(clock.wall(5).to_nanos(), wall.to_nanos() - 3_600_000_000_000);
    }
}
