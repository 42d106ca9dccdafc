//! How often something happens at most.

use serde::{Deserialize, Serialize};

/// Events of which each `period_ns` brings one on average, none more than `jitter_ns` after its time, and no two nearer than
/// `distance_ns`. A bound only: fewer may come.
///
/// MINIMUM_SEPARATION is [`Arrivals::sporadic`]. A burst of up to `n` at once, as a token bucket lets it pass, is
/// [`Arrivals::bursts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// At least 1.
    pub period_ns: u64,
    /// How much later than another an event may be, measured at its time.
    #[serde(default)]
    pub jitter_ns: u64,
    /// 0: they may come at once.
    #[serde(default)]
    pub distance_ns: u64,
}

impl Arrivals {
    /// Events that are `separation_ns` apart at least.
    pub const fn sporadic(separation_ns: u64) -> Self {
        Self { period_ns: separation_ns, jitter_ns: 0, distance_ns: 0 }
    }

    /// One event each `period_ns` in the long run, and up to `burst` at once, which count.
    pub const fn bursts(period_ns: u64, burst: u64) -> Self {
        Self { period_ns, jitter_ns: period_ns.saturating_mul(burst.saturating_sub(1)), distance_ns: 0 }
    }

    /// How many events come at most in an interval of `window_ns`, both ends included. At least 1.
    pub const fn count(&self, window_ns: u64) -> u64 {
        let by_period = window_ns.saturating_add(self.jitter_ns) / self.period_ns;
        let fewest = match window_ns.checked_div(self.distance_ns) {
            Some(by_distance) if by_distance < by_period => by_distance,
            _ => by_period,
        };
        fewest.saturating_add(1)
    }

    /// How many events can come at the same time.
    pub const fn at_once(&self) -> u64 {
        self.count(0)
    }

    /// The shortest time from an event to the `n`th after it.
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
    fn sporadic_events_are_counted_with_both_ends() {
        let arrivals = Arrivals::sporadic(10);
        assert_eq!([0, 9, 10, 19, 20].map(|window| arrivals.count(window)), [1, 1, 2, 2, 3]);
        assert_eq!([0, 1, 2].map(|n| arrivals.span(n)), [0, 10, 20]);
    }

    #[test]
    fn a_burst_comes_at_once_and_then_one_by_one() {
        let arrivals = Arrivals::bursts(10, 3);
        assert_eq!([0, 9, 10, 20].map(|window| arrivals.count(window)), [3, 3, 4, 5]);
        assert_eq!([0, 1, 2, 3, 4].map(|n| arrivals.span(n)), [0, 0, 0, 10, 20]);
    }

    #[test]
    fn distance_limits_what_jitter_allows() {
        let arrivals = Arrivals { period_ns: 100, jitter_ns: 250, distance_ns: 20 };
        assert_eq!([0, 19, 20, 40, 50, 60, 149, 150].map(|w| arrivals.count(w)), [1, 1, 2, 3, 3, 4, 4, 5]);
        assert_eq!([1, 2, 3, 4].map(|n| arrivals.span(n)), [20, 40, 60, 150]);
    }

    /// The `n`th after an event fits just into a window of its span.
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
    fn the_largest_numbers_do_not_wrap() {
        let arrivals = Arrivals { period_ns: u64::MAX, jitter_ns: u64::MAX, distance_ns: 1 };
        assert_eq!(arrivals.count(u64::MAX), 2);
        assert_eq!(Arrivals::sporadic(1).count(u64::MAX), u64::MAX);
        assert_eq!(Arrivals::sporadic(u64::MAX).span(u64::MAX), u64::MAX);
    }
}
