//! The two clocks: a monotonic one that the protocol runs by, and the wall clock for source timestamps.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use takt_core::Instant;
use takt_wire::{Duration, Timestamp};

/// Monotonic time since the process first asked. One origin for all participants. Costs some 20 ns.
pub(crate) fn now() -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    let elapsed = ORIGIN.get_or_init(std::time::Instant::now).elapsed();
    // 2^64 ns are 584 years.
    Instant(elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos()))
}

/// The moment `timeout` from now; `None` never comes.
pub(crate) fn deadline(timeout: Duration) -> Option<Instant> {
    timeout.as_nanos().map(|nanos| Instant(now().0.saturating_add(nanos)))
}

/// Wall-clock time; before 1970 it is the epoch.
pub(crate) fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_lie_ahead_and_infinity_has_none() {
        let before = now();
        let ahead = deadline(Duration::from_millis(5)).expect("finite");
        assert!(ahead.0 >= before.0 + 5_000_000);
        assert_eq!(deadline(Duration::INFINITE), None);
    }

    #[test]
    fn the_wall_clock_is_past_the_year_2020() {
        assert!(wall().to_nanos() > 1_577_836_800_000_000_000);
    }
}
