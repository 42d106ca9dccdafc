//! Bootstrap confidence intervals by resampling of rounds (percentile bootstrap; Efron 1979).
//!
//! A resample draws as many rounds as there are, with replacement. Whole rounds are drawn, since
//! samples within one depend on each other. With few rounds the intervals are too narrow;
//! docs/guide/bench-report.md has the simulated coverage.

use super::Interval;

/// Number of resamples for an interval.
pub const RESAMPLES: usize = 2_000;
/// Fixed seed, so that a report is the same each time.
const SEED: u64 = 0x7461_6b74;

/// Multiplicity of each round in each resample.
#[derive(Clone, Debug)]
pub struct Resamples {
    weights: Vec<Vec<u32>>,
}

impl Resamples {
    /// Draws resamples of `rounds` rounds. `stream` makes resamples independent that are combined.
    #[must_use]
    pub fn new(rounds: usize, stream: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(SEED ^ (stream << 32));
        let mut draw = || {
            let mut weights = vec![0; rounds];
            (0..rounds).for_each(|_| weights[random.usize(..rounds)] += 1);
            weights
        };
        Self { weights: if rounds == 0 { Vec::new() } else { (0..RESAMPLES).map(|_| draw()).collect() } }
    }

    /// Returns the value of a statistic in each resample. The statistic receives the multiplicities
    /// of the rounds.
    #[must_use]
    pub fn values(&self, statistic: impl Fn(&[u32]) -> f64) -> Vec<f64> {
        self.weights.iter().map(|weights| statistic(weights)).collect()
    }
}

/// Returns the 95 % interval of resampled values. Returns `None` if there are none, or one is not
/// finite.
#[must_use]
pub fn interval(mut values: Vec<f64>) -> Option<Interval> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let at = |p: f64| values[((values.len() - 1) as f64 * p).round() as usize];
    Some(Interval { low: at(0.025), high: at(0.975) })
}

/// Returns the median of values with these multiplicities; NaN if there are none.
#[must_use]
pub fn weighted_median(values: &[f64], weights: &[u32]) -> f64 {
    let mut drawn: Vec<f64> =
        values.iter().zip(weights).flat_map(|(value, weight)| (0..*weight).map(|_| *value)).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    if drawn.is_empty() { f64::NAN } else { crate::stats::median(&drawn) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64], weights: &[u32]) -> f64 {
        let sum: f64 = values.iter().zip(weights).map(|(value, weight)| value * f64::from(*weight)).sum();
        sum / f64::from(weights.iter().sum::<u32>())
    }

    #[test]
    fn each_resample_has_as_many_rounds_as_there_are() {
        let resamples = Resamples::new(5, 0);
        assert_eq!(resamples.values(|weights| f64::from(weights.iter().sum::<u32>())), vec![5.0; RESAMPLES]);
        assert_eq!(Resamples::new(0, 0).values(|_| 1.0), Vec::<f64>::new());
        let first = |stream| Resamples::new(5, stream).values(|weights| f64::from(weights[0]));
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn interval_of_a_mean_agrees_with_the_normal_one_when_there_are_many_rounds() {
        let mut random = fastrand::Rng::with_seed(1);
        let values: Vec<f64> = (0..200).map(|_| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0).collect();
        let found = interval(Resamples::new(200, 0).values(|weights| mean(&values, weights))).unwrap();
        let moments = crate::statistics::moments::Moments::of(&values).unwrap();
        let half = 1.96 * moments.deviation() / 200f64.sqrt();
        assert!((found.low - (moments.mean - half)).abs() < 0.2 * half, "{found:?}, {moments:?}");
        assert!((found.high - (moments.mean + half)).abs() < 0.2 * half, "{found:?}, {moments:?}");
    }

    #[test]
    fn interval_of_one_round_is_a_point_and_of_none_is_none() {
        let one = interval(Resamples::new(1, 0).values(|weights| mean(&[4.0], weights)));
        assert_eq!(one, Some(Interval { low: 4.0, high: 4.0 }));
        assert_eq!(interval(Vec::new()), None);
        assert_eq!(interval(vec![1.0, f64::NAN]), None);
    }

    #[test]
    fn median_counts_each_value_as_often_as_it_was_drawn() {
        assert_eq!(weighted_median(&[1.0, 2.0, 9.0], &[1, 1, 1]), 2.0);
        assert_eq!(weighted_median(&[1.0, 2.0, 9.0], &[0, 1, 2]), 9.0);
        assert!(weighted_median(&[1.0], &[0]).is_nan());
    }
}
