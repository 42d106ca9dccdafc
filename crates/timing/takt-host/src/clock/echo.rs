//! Offset of a remote clock, estimated from echoes with four timestamps each. The module reads no
//! clock and sends nothing.
//!
//! An echo leaves this host at `sent`, arrives at the remote host at `received`, leaves it at
//! `answered` and returns at `returned`. The offset is the remote clock minus the local clock.
//! Since no message arrives before it was sent, the offset is between `answered - returned` and
//! `received - sent`.
//!
//! These bounds hold for any delay and any asymmetry of the paths, so that several echoes narrow
//! them: the offset lies in their intersection. Its width is the sum of the shortest delays of both
//! directions. The minimum-delay filter of NTP (RFC 5905 §10) takes both delays from one echo.
//! Between echoes the clocks drift apart, and the bounds widen by the assumed maximum drift.
//!
//! Invariant: the offset is within the bounds as long as the drift does not exceed the assumed
//! maximum and no clock is stepped. If the bounds of two echoes are disjoint, one of these
//! conditions is violated. The estimate then restarts with the last echo, and the restart is
//! counted.

/// Timestamps of an echo. The first and the last are of the local clock, the others of the remote
/// clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Time at which the request was sent.
    pub sent_ns: i64,
    /// Time at which the request arrived at the remote host.
    pub received_ns: i64,
    /// Time at which the remote host answered.
    pub answered_ns: i64,
    /// Time at which the answer arrived.
    pub returned_ns: i64,
}

/// Remote clock minus local clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// Midpoint of the possible range.
    pub offset_ns: i64,
    /// Largest deviation from the midpoint in either direction.
    pub uncertainty_ns: u64,
}

/// Bounds of the offset at a time of the local clock.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    at_ns: i64,
    low_ns: i64,
    high_ns: i64,
}

/// Estimator of the offset, see the [module](self).
#[derive(Debug, Clone)]
pub struct OffsetEstimator {
    drift_max_ppm: u32,
    bounds: Option<Bounds>,
    echoes: u64,
    restarts: u64,
    invalid_echoes: u64,
}

impl OffsetEstimator {
    /// Maximum drift between two common crystals, each with a tolerance of 50 ppm.
    pub const DRIFT_MAX_PPM: u32 = 100;

    /// Creates an estimator without echoes. `drift_max_ppm` is the maximum drift between the
    /// clocks, in ppm.
    pub fn new(drift_max_ppm: u32) -> Self {
        Self { drift_max_ppm, bounds: None, echoes: 0, restarts: 0, invalid_echoes: 0 }
    }

    /// Adds an echo. The cost is bounded: a few additions.
    pub fn handle_echo(&mut self, echo: Echo) {
        let away_ns = echo.returned_ns.saturating_sub(echo.sent_ns);
        let there_ns = echo.answered_ns.saturating_sub(echo.received_ns);
        // The remote clock may run faster by the drift while it holds the echo.
        if away_ns < 0 || there_ns < 0 || there_ns > away_ns.saturating_add(self.drift_ns(away_ns)) {
            self.invalid_echoes += 1;
            return;
        }
        self.echoes += 1;
        // Both bounds result from the timestamps of the echo. At its return they are wider by the
        // drift since it was sent.
        let drift_ns = self.drift_ns(away_ns);
        let new = Bounds {
            at_ns: echo.returned_ns,
            low_ns: echo.answered_ns.saturating_sub(echo.returned_ns).saturating_sub(drift_ns),
            high_ns: echo.received_ns.saturating_sub(echo.sent_ns).saturating_add(drift_ns),
        };
        let known = self.bounds.map(|bounds| self.widened(bounds, new.at_ns));
        let both = known.map(|known| Bounds {
            at_ns: new.at_ns,
            low_ns: known.low_ns.max(new.low_ns),
            high_ns: known.high_ns.min(new.high_ns),
        });
        self.bounds = match both {
            Some(both) if both.low_ns <= both.high_ns => Some(both),
            Some(_) => {
                self.restarts += 1;
                Some(new)
            }
            None => Some(new),
        };
    }

    /// Returns the offset at a time of the local clock. `None` before the first echo.
    pub fn offset(&self, now_ns: i64) -> Option<Offset> {
        let Bounds { low_ns, high_ns, .. } = self.widened(self.bounds?, now_ns);
        let width_ns = high_ns.abs_diff(low_ns);
        Some(Offset {
            offset_ns: low_ns.saturating_add((width_ns / 2).cast_signed()),
            uncertainty_ns: width_ns.div_ceil(2),
        })
    }

    /// Returns the number of echoes used.
    pub fn echoes(&self) -> u64 {
        self.echoes
    }

    /// Returns the number of restarts, each caused by a stepped clock or by excessive drift.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Returns the number of echoes with impossible timestamps, which are ignored.
    pub fn invalid_echoes(&self) -> u64 {
        self.invalid_echoes
    }

    fn drift_ns(&self, time_ns: i64) -> i64 {
        let drift = i128::from(time_ns.max(0)) * i128::from(self.drift_max_ppm);
        i64::try_from((drift + 999_999) / 1_000_000).unwrap_or(i64::MAX)
    }

    /// Returns the bounds at another time.
    fn widened(&self, bounds: Bounds, now_ns: i64) -> Bounds {
        let drift_ns = self.drift_ns(i64::try_from(now_ns.abs_diff(bounds.at_ns)).unwrap_or(i64::MAX));
        Bounds {
            at_ns: now_ns,
            low_ns: bounds.low_ns.saturating_sub(drift_ns),
            high_ns: bounds.high_ns.saturating_add(drift_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use takt_testkit::Random;

    use super::*;

    const MICROSECOND: i64 = 1_000;
    const SECOND: i64 = 1_000_000_000;

    /// Returns a number from 0 to `end`, which is not included.
    fn below(random: &mut Random, end: i64) -> i64 {
        (random.next() % end.unsigned_abs()).cast_signed()
    }

    /// Remote clock as a function of the local clock.
    struct World {
        offset_ns: i64,
        drift_ppm: i64,
    }

    impl World {
        fn offset_at(&self, now_ns: i64) -> i64 {
            self.offset_ns + i64::try_from(i128::from(now_ns) * i128::from(self.drift_ppm) / 1_000_000).expect("small")
        }

        fn echo(&self, sent_ns: i64, there_ns: i64, rest_ns: i64, back_ns: i64) -> Echo {
            let that = |now_ns: i64| now_ns + self.offset_at(now_ns);
            let (received, answered) = (sent_ns + there_ns, sent_ns + there_ns + rest_ns);
            let returned_ns = answered + back_ns;
            Echo { sent_ns, received_ns: that(received), answered_ns: that(answered), returned_ns }
        }
    }

    #[test]
    fn offset_is_always_within_the_band() {
        for seed in 1..=200_u64 {
            let mut random = Random(seed);
            let world = World {
                offset_ns: below(&mut random, 2_000 * SECOND) - 1_000 * SECOND,
                drift_ppm: below(&mut random, 199) - 99,
            };
            let mut estimator = OffsetEstimator::new(100);
            assert_eq!(estimator.offset(0), None);
            let (mut now, mut floor) =
                (SECOND, [below(&mut random, 100 * MICROSECOND), below(&mut random, 100 * MICROSECOND)]);
            for _ in 0..200 {
                // Path delays have a minimum and a long tail and are asymmetric. The remote host
                // holds the echo for some time.
                let late = |random: &mut Random| {
                    let tail = below(random, 20) + 1;
                    below(random, MICROSECOND * tail * tail)
                };
                let [there, back] = floor.map(|floor| floor + late(&mut random));
                let echo = world.echo(now, there, below(&mut random, 5 * MICROSECOND), back);
                estimator.handle_echo(echo);
                now = echo.returned_ns + below(&mut random, SECOND / 2);
                let offset = estimator.offset(now).expect("an echo was received");
                let truth = world.offset_at(now);
                assert!(
                    offset.offset_ns.abs_diff(truth) <= offset.uncertainty_ns + 1,
                    "seed {seed}: {offset:?}, {truth}"
                );
                if below(&mut random, 50) == 0 {
                    floor.swap(0, 1);
                }
            }
            assert_eq!(
                (estimator.restarts(), estimator.invalid_echoes(), estimator.echoes()),
                (0, 0, 200),
                "seed {seed}"
            );
        }
    }

    /// One echo has the shortest delay there, another one the shortest delay back. Both contribute.
    #[test]
    fn band_is_as_wide_as_the_two_shortest_delays() {
        let world = World { offset_ns: 7 * SECOND, drift_ppm: 0 };
        let mut estimator = OffsetEstimator::new(0);
        estimator.handle_echo(world.echo(0, 10 * MICROSECOND, 0, 90 * MICROSECOND));
        assert_eq!(estimator.offset(0).map(|offset| offset.uncertainty_ns), Some(50_000));
        estimator.handle_echo(world.echo(SECOND, 90 * MICROSECOND, 0, 20 * MICROSECOND));
        let offset = estimator.offset(SECOND).expect("echoes were received");
        assert_eq!(offset.uncertainty_ns, 15_000);
        assert_eq!(offset.offset_ns, 7 * SECOND - 5_000, "the paths differ by 10 us, which is not measurable");
        // An echo with longer delays adds no information.
        estimator.handle_echo(world.echo(2 * SECOND, 500 * MICROSECOND, 0, 500 * MICROSECOND));
        assert_eq!(estimator.offset(2 * SECOND), Some(offset));
    }

    #[test]
    fn band_widens_with_the_time_since_the_last_echo() {
        let world = World { offset_ns: -3, drift_ppm: 0 };
        let mut estimator = OffsetEstimator::new(100);
        estimator.handle_echo(world.echo(0, 10 * MICROSECOND, 0, 10 * MICROSECOND));
        let after = |seconds: i64| estimator.offset(seconds * SECOND).expect("an echo was received").uncertainty_ns;
        assert!((10_000..10_010).contains(&after(0)));
        assert!((110_000..110_010).contains(&after(1)), "100 us in a second: {}", after(1));
        assert!((1_010_000..1_010_010).contains(&after(10)));
    }

    #[test]
    fn clock_step_restarts_the_estimate_and_is_counted() {
        let mut estimator = OffsetEstimator::new(100);
        let one_way = 10 * MICROSECOND;
        estimator.handle_echo(World { offset_ns: 0, drift_ppm: 0 }.echo(0, one_way, 0, one_way));
        estimator.handle_echo(World { offset_ns: SECOND, drift_ppm: 0 }.echo(SECOND, one_way, 0, one_way));
        let offset = estimator.offset(SECOND).expect("echoes were received");
        assert!(offset.offset_ns.abs_diff(SECOND) <= offset.uncertainty_ns, "{offset:?}");
        assert_eq!(estimator.restarts(), 1);
    }

    #[test]
    fn impossible_timestamps_are_ignored() {
        let mut estimator = OffsetEstimator::new(100);
        let echo =
            |sent_ns, received_ns, answered_ns, returned_ns| Echo { sent_ns, received_ns, answered_ns, returned_ns };
        // Returned before it was sent; answered before it was received; held longer than it was
        // away.
        estimator.handle_echo(echo(10, 0, 0, 9));
        estimator.handle_echo(echo(10, 5, 4, 20));
        estimator.handle_echo(echo(10, 0, 1000, 20));
        assert_eq!((estimator.invalid_echoes(), estimator.offset(0)), (3, None));
        // Extreme values do not overflow.
        estimator.handle_echo(echo(i64::MIN, i64::MAX, i64::MAX, i64::MIN));
        estimator.handle_echo(echo(i64::MIN, i64::MIN, i64::MAX, i64::MAX));
        assert!(estimator.offset(i64::MAX).is_some());
    }
}
