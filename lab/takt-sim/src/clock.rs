//! Clocks of a simulated host: a monotonic clock with drift, and a wall clock that is set
//! occasionally.

use takt_core::Instant;
use takt_wire::Timestamp;

/// True time in nanoseconds since the start of the world. No simulated process can read it.
pub type Nanos = u64;

/// One millisecond of true time.
pub const MILLISECOND: Nanos = 1_000_000;

/// One second of true time.
pub const SECOND: Nanos = 1_000_000_000;

/// Reading of the wall clock at the start of the world.
pub const EPOCH: i64 = 1_700_000_000_000_000_000;

/// Offset between the monotonic clocks of two hosts, which are unrelated.
const ORIGIN_STEP: u64 = 1_000 * SECOND;

/// Clocks of a host.
#[derive(Clone, Debug)]
pub struct HostClock {
    origin: u64,
    /// Rate above true time in parts per billion.
    drift_ppb: i64,
    /// Offset of the wall clock from the monotonic one in nanoseconds.
    wall_offset: i64,
}

impl HostClock {
    /// Creates the clocks of host number `host`.
    #[must_use]
    pub fn new(host: usize, drift_ppb: i64) -> Self {
        let origin = (host as u64 + 1) * ORIGIN_STEP;
        Self { origin, drift_ppb, wall_offset: EPOCH - origin as i64 }
    }

    /// Returns the reading of the monotonic clock.
    #[must_use]
    pub fn local(&self, now: Nanos) -> Instant {
        // 64 bits suffice for some hours with a drift below one thousandth.
        let ahead = match (now as i64).checked_mul(self.drift_ppb) {
            Some(product) => product / 1_000_000_000,
            None => (i128::from(now) * i128::from(self.drift_ppb) / 1_000_000_000) as i64,
        };
        Instant(self.origin + now.saturating_add_signed(ahead))
    }

    /// Returns the first time at which the monotonic clock reads `local` or more, or `now` if it
    /// already does.
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

    /// Returns the reading of the wall clock.
    #[must_use]
    pub fn wall(&self, now: Nanos) -> Timestamp {
        Timestamp::from_nanos(self.local(now).0 as i64 + self.wall_offset)
    }

    /// Sets the wall clock forward or back by this number of nanoseconds.
    pub fn set_wall(&mut self, by: i64) {
        self.wall_offset += by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_at_first_matching_local_time() {
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
    fn setting_the_wall_clock_keeps_the_monotonic_clock() {
        let mut clock = HostClock::new(0, 50);
        let (before, wall) = (clock.local(5), clock.wall(5));
        clock.set_wall(-3_600_000_000_000);
        assert_eq!(clock.local(5), before);
        assert_eq!(clock.wall(5).to_nanos(), wall.to_nanos() - 3_600_000_000_000);
    }
}
