//! Arrival bounds of events: period, jitter and minimum distance.

use serde::{Deserialize, Serialize};

/// Arrival bound of events: one per `period_ns` on average, each at most `jitter_ns` late, with at
/// least `distance_ns` between two. It is an upper bound; fewer events may arrive.
///
/// MINIMUM_SEPARATION is [`Arrivals::sporadic`]. A token bucket with bursts of up to `n` events is
/// [`Arrivals::bursts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Period in nanoseconds, at least 1.
    pub period_ns: u64,
    /// Maximum delay of an event after its nominal time, in nanoseconds.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Minimum distance of events in nanoseconds. With 0, they may arrive simultaneously.
    #[serde(default)]
    pub distance_ns: u64,
}

impl Arrivals {
    /// Returns the bound of events with a minimum separation of `separation_ns`.
    pub const fn sporadic(separation_ns: u64) -> Self {
        Self { period_ns: separation_ns, jitter_ns: 0, distance_ns: 0 }
    }

    /// Returns the bound of events with a long-term period of `period_ns` and bursts of up to
    /// `burst` events.
    pub const fn bursts(period_ns: u64, burst: u64) -> Self {
        Self { period_ns, jitter_ns: period_ns.saturating_mul(burst.saturating_sub(1)), distance_ns: 0 }
    }

    /// Returns the maximum number of events in a closed interval of `window_ns`. At least 1.
    pub const fn count(&self, window_ns: u64) -> u64 {
        let by_period = window_ns.saturating_add(self.jitter_ns) / self.period_ns;
        let fewest = match window_ns.checked_div(self.distance_ns) {
            Some(by_distance) if by_distance < by_period => by_distance,
            _ => by_period,
        };
        fewest.saturating_add(1)
    }

    /// Returns the maximum number of simultaneous events.
    pub const fn at_once(&self) -> u64 {
        self.count(0)
    }

    /// Returns the minimum time from an event to the `n`th event after it.
    pub const fn span(&self, n: u64) -> u64 {
        let by_period = n.saturating_mul(self.period_ns).saturating_sub(self.jitter_ns);
        let by_distance = n.saturating_mul(self.distance_ns);
        if by_period > by_distance { by_period } else { by_distance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sporadic_events_are_counted_in_closed_intervals() {
        let arrivals = Arrivals::sporadic(10);
        assert_eq!([0, 9, 10, 19, 20].map(|window| arrivals.count(window)), [1, 1, 2, 2, 3]);
        assert_eq!([0, 1, 2].map(|n| arrivals.span(n)), [0, 10, 20]);
    }

    #[test]
    fn burst_arrives_at_once_and_then_one_event_per_period() {
        let arrivals = Arrivals::bursts(10, 3);
        assert_eq!([0, 9, 10, 20].map(|window| arrivals.count(window)), [3, 3, 4, 5]);
        assert_eq!([0, 1, 2, 3, 4].map(|n| arrivals.span(n)), [0, 0, 0, 10, 20]);
    }

    #[test]
    fn distance_limits_bursts_from_jitter() {
        let arrivals = Arrivals { period_ns: 100, jitter_ns: 250, distance_ns: 20 };
        assert_eq!([0, 19, 20, 40, 50, 60, 149, 150].map(|w| arrivals.count(w)), [1, 1, 2, 3, 3, 4, 4, 5]);
        assert_eq!([1, 2, 3, 4].map(|n| arrivals.span(n)), [20, 40, 60, 150]);
    }

    /// The span of `n` events is the smallest window with `n` + 1 events.
    #[test]
    fn count_and_span_are_inverse() {
        for (period_ns, jitter_ns, distance_ns) in [(7, 0, 0), (7, 3, 0), (7, 30, 2), (7, 30, 0), (1, 0, 0)] {
            let arrivals = Arrivals { period_ns, jitter_ns, distance_ns };
            for n in 0..50 {
                let span = arrivals.span(n);
                assert!(arrivals.count(span) > n, "{arrivals:?} {n}");
                assert!(span == 0 || arrivals.count(span - 1) <= n, "{arrivals:?} {n}");
            }
        }
    }

    #[test]
    fn largest_numbers_do_not_overflow() {
        let arrivals = Arrivals { period_ns: u64::MAX, jitter_ns: u64::MAX, distance_ns: 1 };
        assert_eq!(arrivals.count(u64::MAX), 2);
        assert_eq!(Arrivals::sporadic(1).count(u64::MAX), u64::MAX);
        assert_eq!(Arrivals::sporadic(u64::MAX).span(u64::MAX), u64::MAX);
    }
}
