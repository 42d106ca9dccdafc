//! How big a difference is, and how sure that is: ratios within rounds, with confidence intervals by the bootstrap.
//!
//! A round has each configuration once, so a ratio within a round compares what was measured within minutes of each other. The figure is
//! the median of these ratios; its interval of 95 % comes from resampling whole rounds with replacement (the percentile bootstrap).
//! The effect size is Cliff's delta over all pairs of rounds: the share of pairs in which the one is greater less the share in which it is
//! smaller, from -1 (always smaller) to 1 (always greater).

use crate::stats::median;
use serde::Serialize;

/// Rounds from which on an interval is told: fewer have nothing to resample.
pub const ROUNDS_MIN: usize = 3;
const RESAMPLES: usize = 10_000;
/// What lies outside the interval, on each side.
const TAIL: f64 = 0.025;

/// How one configuration compares with another in one figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Rounds that have both.
    pub rounds: usize,
    /// Median over the rounds of the ratio within the round.
    pub ratio: f64,
    /// Its interval of 95 %; `None` of fewer than [`ROUNDS_MIN`] rounds.
    pub interval: Option<(f64, f64)>,
    /// Cliff's delta.
    pub delta: f64,
}

/// Compares figures, in pairs of the same round. `None` if there is no pair.
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

/// Numbers from a seed (xorshift64*), for orders and resamples.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same numbers for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Never 0, of which nothing else would come; neighbouring seeds far apart.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// One below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (number as usize) % bound
    }

    /// Puts things in a random order.
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
    fn a_ratio_is_within_its_round_and_its_interval_covers_it() {
        let pairs = [(10.0, 100.0), (40.0, 200.0), (9.0, 90.0), (12.0, 100.0), (11.0, 100.0)];
        let found = effect(&pairs, 7).unwrap();
        assert_eq!((found.rounds, found.ratio, found.delta), (5, 0.11, -1.0));
        let (low, high) = found.interval.unwrap();
        assert!((0.1 - 1e-9..=0.11).contains(&low) && (0.11..=0.2 + 1e-9).contains(&high), "{low} {high}");
        assert_eq!(effect(&pairs, 7), Some(found), "the same seed gives the same interval");
    }

    #[test]
    fn few_rounds_have_no_interval_and_none_no_effect() {
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
    fn a_shuffle_keeps_all_and_depends_on_the_seed() {
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
