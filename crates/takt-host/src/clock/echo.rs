//! The offset of another clock from echoes of four times each. Pure: no clock is read, and nothing is sent.
//!
//! An echo leaves here at `sent`, arrives there at `received`, leaves there at `answered` and arrives here at `returned`. Nothing arrives
//! before it has left, so the offset, that clock minus this one, is between `answered - returned` and `received - sent`. That holds whatever
//! the ways take and however unlike they are, so the bounds of several echoes hold together: what is common to them is narrower than what
//! each says. It is as wide as the shortest way there and the shortest way back have taken together (the minimum-delay filter of NTP,
//! RFC 5905 §10, takes both from one echo). Between echoes the clocks drift apart, and the bounds widen by the greatest drift that is assumed.
//!
//! Invariant: as long as drift stays below what is assumed and no clock is stepped, the offset is within the bounds. Bounds of echoes that
//! have nothing in common say that one of the two is not so: the estimate begins anew with the last echo, and counts that.

/// The four times of an echo: the first and the last by this clock, the others by that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// When it was sent from here.
    pub sent_ns: i64,
    /// When it arrived there.
    pub received_ns: i64,
    /// When it was sent back.
    pub answered_ns: i64,
    /// When it arrived here.
    pub returned_ns: i64,
}

/// That clock minus this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// The middle of what is possible.
    pub offset_ns: i64,
    /// How far the offset can be from it, either way.
    pub uncertainty_ns: u64,
}

/// Bounds of the offset at a time of this clock.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    at_ns: i64,
    low_ns: i64,
    high_ns: i64,
}

/// See the [module](self).
#[derive(Debug, Clone)]
pub struct OffsetEstimator {
    drift_max_ppm: u32,
    bounds: Option<Bounds>,
    echoes: u64,
    restarts: u64,
    nonsense: u64,
}

impl OffsetEstimator {
    /// What two crystals drift apart at most, each by 50 parts in a million, which common ones keep.
    pub const DRIFT_MAX_PPM: u32 = 100;

    /// Knows nothing yet. `drift_max_ppm`: by how many parts in a million the clocks drift apart at most.
    pub fn new(drift_max_ppm: u32) -> Self {
        Self { drift_max_ppm, bounds: None, echoes: 0, restarts: 0, nonsense: 0 }
    }

    /// Takes an echo into account. Bounded: a few additions.
    pub fn handle_echo(&mut self, echo: Echo) {
        let away_ns = echo.returned_ns.saturating_sub(echo.sent_ns);
        let there_ns = echo.answered_ns.saturating_sub(echo.received_ns);
        // The other clock may be faster by the drift while it has the echo.
        if away_ns < 0 || there_ns < 0 || there_ns > away_ns.saturating_add(self.drift_ns(away_ns)) {
            self.nonsense += 1;
            return;
        }
        self.echoes += 1;
        // Both bounds are of the times of the echo; at its return they are wider by the drift since it was sent.
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

    /// The offset at a time of this clock; `None` before the first echo.
    pub fn offset(&self, now_ns: i64) -> Option<Offset> {
        let Bounds { low_ns, high_ns, .. } = self.widened(self.bounds?, now_ns);
        let width_ns = high_ns.abs_diff(low_ns);
        Some(Offset {
            offset_ns: low_ns.saturating_add((width_ns / 2).cast_signed()),
            uncertainty_ns: width_ns.div_ceil(2),
        })
    }

    /// Echoes that were taken into account.
    pub fn echoes(&self) -> u64 {
        self.echoes
    }

    /// How often the estimate began anew, since a clock was stepped or drifts by more than is assumed.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Echoes whose times cannot be; they are left out.
    pub fn nonsense(&self) -> u64 {
        self.nonsense
    }

    fn drift_ns(&self, time_ns: i64) -> i64 {
        let drift = i128::from(time_ns.max(0)) * i128::from(self.drift_max_ppm);
        i64::try_from((drift + 999_999) / 1_000_000).unwrap_or(i64::MAX)
    }

    /// Bounds as they are at another time.
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
    use super::*;

    const MICROSECOND: i64 = 1_000;
    const SECOND: i64 = 1_000_000_000;

    /// Numbers that look random (xorshift), from a seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: i64) -> i64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % end.unsigned_abs()).cast_signed()
        }
    }

    /// That clock at a time of this one.
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
    fn the_offset_is_always_within_the_band() {
        for seed in 1..=200_u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let world =
                World { offset_ns: random.below(2_000 * SECOND) - 1_000 * SECOND, drift_ppm: random.below(199) - 99 };
            let mut estimator = OffsetEstimator::new(100);
            assert_eq!(estimator.offset(0), None);
            let (mut now, mut floor) = (SECOND, [random.below(100 * MICROSECOND), random.below(100 * MICROSECOND)]);
            for _ in 0..200 {
                // Ways with a floor and a long tail, unlike each other, and a rest of the other side.
                let late = |random: &mut Random| {
                    let tail = random.below(20) + 1;
                    random.below(MICROSECOND * tail * tail)
                };
                let [there, back] = floor.map(|floor| floor + late(&mut random));
                let echo = world.echo(now, there, random.below(5 * MICROSECOND), back);
                estimator.handle_echo(echo);
                now = echo.returned_ns + random.below(SECOND / 2);
                let offset = estimator.offset(now).expect("there was an echo");
                let truth = world.offset_at(now);
                assert!(
                    offset.offset_ns.abs_diff(truth) <= offset.uncertainty_ns + 1,
                    "seed {seed}: {offset:?}, {truth}"
                );
                if random.below(50) == 0 {
                    floor.swap(0, 1);
                }
            }
            assert_eq!((estimator.restarts(), estimator.nonsense(), estimator.echoes()), (0, 0, 200), "seed {seed}");
        }
    }

    /// The shortest way there comes with one echo, the shortest way back with another: both count.
    #[test]
    fn the_band_is_as_wide_as_the_two_shortest_ways() {
        let world = World { offset_ns: 7 * SECOND, drift_ppm: 0 };
        let mut estimator = OffsetEstimator::new(0);
        estimator.handle_echo(world.echo(0, 10 * MICROSECOND, 0, 90 * MICROSECOND));
        assert_eq!(estimator.offset(0).map(|offset| offset.uncertainty_ns), Some(50_000));
        estimator.handle_echo(world.echo(SECOND, 90 * MICROSECOND, 0, 20 * MICROSECOND));
        let offset = estimator.offset(SECOND).expect("there were echoes");
        assert_eq!(offset.uncertainty_ns, 15_000);
        assert_eq!(offset.offset_ns, 7 * SECOND - 5_000, "the ways are unlike by 10 us, which nobody can see");
        // A worse echo says nothing new.
        estimator.handle_echo(world.echo(2 * SECOND, 500 * MICROSECOND, 0, 500 * MICROSECOND));
        assert_eq!(estimator.offset(2 * SECOND), Some(offset));
    }

    #[test]
    fn the_band_grows_with_the_time_since_the_last_echo() {
        let world = World { offset_ns: -3, drift_ppm: 0 };
        let mut estimator = OffsetEstimator::new(100);
        estimator.handle_echo(world.echo(0, 10 * MICROSECOND, 0, 10 * MICROSECOND));
        let after = |seconds: i64| estimator.offset(seconds * SECOND).expect("there was one").uncertainty_ns;
        assert!((10_000..10_010).contains(&after(0)));
        assert!((110_000..110_010).contains(&after(1)), "100 us in a second: {}", after(1));
        assert!((1_010_000..1_010_010).contains(&after(10)));
    }

    #[test]
    fn a_step_begins_anew_and_is_counted() {
        let mut estimator = OffsetEstimator::new(100);
        let way = 10 * MICROSECOND;
        estimator.handle_echo(World { offset_ns: 0, drift_ppm: 0 }.echo(0, way, 0, way));
        estimator.handle_echo(World { offset_ns: SECOND, drift_ppm: 0 }.echo(SECOND, way, 0, way));
        let offset = estimator.offset(SECOND).expect("there were echoes");
        assert!(offset.offset_ns.abs_diff(SECOND) <= offset.uncertainty_ns, "{offset:?}");
        assert_eq!(estimator.restarts(), 1);
    }

    #[test]
    fn times_that_cannot_be_are_left_out() {
        let mut estimator = OffsetEstimator::new(100);
        let echo =
            |sent_ns, received_ns, answered_ns, returned_ns| Echo { sent_ns, received_ns, answered_ns, returned_ns };
        // Back before it left; answered before it came; longer there than away.
        estimator.handle_echo(echo(10, 0, 0, 9));
        estimator.handle_echo(echo(10, 5, 4, 20));
        estimator.handle_echo(echo(10, 0, 1000, 20));
        assert_eq!((estimator.nonsense(), estimator.offset(0)), (3, None));
        // Extremes are no overflow.
        estimator.handle_echo(echo(i64::MIN, i64::MAX, i64::MAX, i64::MIN));
        estimator.handle_echo(echo(i64::MIN, i64::MIN, i64::MAX, i64::MAX));
        assert!(estimator.offset(i64::MAX).is_some());
    }
}
