//! Effect sizes: ratios within rounds, with bootstrap confidence intervals, and Cliff's delta.
//!
//! A round has each configuration once, so a ratio within a round compares measurements made within
//! minutes of each other. The effect is the median of these ratios. Its 95 % interval comes from
//! resampling whole rounds with replacement (the percentile bootstrap). The effect size is Cliff's
//! delta over all pairs of rounds: the share of pairs in which the first is greater minus the share
//! in which it is smaller, from -1 (always smaller) to 1 (always greater).

use crate::stats::median;
use serde::Serialize;

/// Minimum number of rounds for an interval: fewer cannot be resampled.
pub const ROUNDS_MIN: usize = 3;
const RESAMPLES: usize = 10_000;
/// Probability outside the interval, on each side.
const TAIL: f64 = 0.025;

/// Comparison of one configuration with another in one figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Number of rounds that have both configurations.
    pub rounds: usize,
    /// Median over the rounds of the ratio within the round.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` with fewer than [`ROUNDS_MIN`] rounds.
    pub interval: Option<(f64, f64)>,
    /// Cliff's delta.
    pub delta: f64,
}

/// Compares figures, in pairs of the same round. Returns `None` if there is no pair.
#[must_use]
pub fn effect(pairs: &[(f64, f64)], seed: u64) -> Option<Effect> {
    let ratios: Vec<f64> = pairs.iter().filter(|(_, to)| *to > 0.0).map(|(own, to)| own / to).collect();
    (!ratios.is_empty()).then(|| Effect {
        rounds: ratios.len(),
        ratio: median(&ratios),
        interval: (ratios.len() >= ROUNDS_MIN).then(|| interval(&ratios, seed)),
        delta: delta(pairs),
    })
}

fn interval(ratios: &[f64], seed: u64) -> (f64, f64) {
    let mut random = Random::new(seed);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let resample: Vec<f64> = ratios.iter().map(|_| ratios[random.below(ratios.len())]).collect();
            median(&resample)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let at = |p: f64| medians[((RESAMPLES - 1) as f64 * p).round() as usize];
    (at(TAIL), at(1.0 - TAIL))
}

fn delta(pairs: &[(f64, f64)]) -> f64 {
    let signs = pairs.iter().flat_map(|(own, _)| pairs.iter().map(move |(_, to)| own.total_cmp(to) as i32));
    f64::from(signs.sum::<i32>()) / (pairs.len() * pairs.len()) as f64
}

/// Pseudo-random number generator (xorshift64*) for orders and resamples.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator; the same seed gives the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // The state must not be 0, which yields only 0; the multiplication spreads neighboring
        // seeds.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (number as usize) % bound
    }

    /// Shuffles a slice.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for index in (1..things.len()).rev() {
            things.swap(index, self.below(index + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_covers_the_median_of_ratios_within_rounds() {
        let pairs = [(10.0, 100.0), (40.0, 200.0), (9.0, 90.0), (12.0, 100.0), (11.0, 100.0)];
        let found = effect(&pairs, 7).unwrap();
        assert_eq!((found.rounds, found.ratio, found.delta), (5, 0.11, -1.0));
        let (low, high) = found.interval.unwrap();
        assert!((0.1 - 1e-9..=0.11).contains(&low) && (0.11..=0.2 + 1e-9).contains(&high), "{low} {high}");
        assert_eq!(effect(&pairs, 7), Some(found), "the same seed gives the same interval");
    }

    #[test]
    fn few_rounds_have_no_interval_and_no_round_has_no_effect() {
        assert_eq!(effect(&[(2.0, 1.0), (4.0, 1.0)], 1).unwrap().interval, None);
        assert_eq!(effect(&[], 1), None);
        assert_eq!(effect(&[(1.0, 0.0)], 1), None);
    }

    #[test]
    fn equal_figures_have_no_effect() {
        let found = effect(&[(5.0, 5.0), (6.0, 6.0), (5.0, 5.0)], 1).unwrap();
        assert_eq!((found.ratio, found.delta), (1.0, 0.0));
        assert_eq!(found.interval, Some((1.0, 1.0)));
    }

    #[test]
    fn shuffle_keeps_all_elements_and_depends_on_the_seed() {
        let order = |seed| {
            let mut things: Vec<u32> = (0..20).collect();
            Random::new(seed).shuffle(&mut things);
            things
        };
        assert_eq!(order(3), order(3));
        assert_ne!(order(3), order(4));
        let mut sorted = order(3);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<u32>>());
    }
}
