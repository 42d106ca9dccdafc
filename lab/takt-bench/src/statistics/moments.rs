//! Count, mean and sample variance.

use crate::stats::Summary;

/// Count, mean and variance of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample variance: divided by count - 1. 0 for one value.
    pub variance: f64,
}

impl Moments {
    /// Computes the moments of values. Returns `None` if there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        values.iter().map(|value| Self { count: 1.0, mean: *value, variance: 0.0 }).reduce(Self::merged)
    }

    /// Computes the moments of a summary, whose deviation is that of a population.
    #[must_use]
    pub fn of_summary(summary: &Summary) -> Self {
        let count = summary.count as f64;
        let variance = if count > 1.0 { summary.stdev.powi(2) * count / (count - 1.0) } else { 0.0 };
        Self { count, mean: summary.mean, variance }
    }

    /// Merges both (Chan, Golub, LeVeque: Updating Formulae, 1979).
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        let count = self.count + other.count;
        if count == 0.0 {
            return Self::default();
        }
        let distance = other.mean - self.mean;
        let squares = |of: &Self| of.variance * (of.count - 1.0).max(0.0);
        let squares = squares(&self) + squares(&other) + distance.powi(2) * self.count * other.count / count;
        let variance = if count > 1.0 { squares / (count - 1.0) } else { 0.0 };
        Self { count, mean: self.mean + distance * other.count / count, variance }
    }

    /// Returns the sample standard deviation.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.variance.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_agree_with_those_computed_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 32, variance 32 / 7.
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let moments = Moments::of(&values).unwrap();
        assert_eq!((moments.count, moments.mean), (8.0, 5.0));
        assert!((moments.variance - 32.0 / 7.0).abs() < 1e-12, "{moments:?}");
        let merged = Moments::of(&values[..3]).unwrap().merged(Moments::of(&values[3..]).unwrap());
        assert!((merged.variance - moments.variance).abs() < 1e-12, "{merged:?}");
    }

    #[test]
    fn population_summary_becomes_sample_moments() {
        let mut values = [9, 4, 5, 2, 4, 7, 5, 4].map(|us| us * 1000);
        let moments = Moments::of_summary(&Summary::of(&mut values).unwrap());
        assert!((moments.variance - 32.0 / 7.0).abs() < 1e-12, "{moments:?}");
    }

    #[test]
    fn no_values_have_no_moments_and_one_value_no_variance() {
        assert_eq!(Moments::of(&[]), None);
        assert_eq!(Moments::of(&[3.0]), Some(Moments { count: 1.0, mean: 3.0, variance: 0.0 }));
        assert_eq!(Moments::default().merged(Moments::default()), Moments::default());
        assert_eq!(Moments::of_summary(&Summary { count: 1, ..Summary::default() }).variance, 0.0);
    }
}
