//! Ratios of two columns: first within each round, then over the rounds.

use crate::stats::{median, spread};
use serde::Serialize;

/// Value of one column in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the column.
    pub column: String,
    /// Index of the round, from 0.
    pub round: usize,
    /// Value.
    pub value: f64,
}

/// Comparison of one column with another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Name of the compared quantity.
    pub figure: &'static str,
    /// Name of the column in the numerator.
    pub column: String,
    /// Name of the column in the denominator.
    pub to: String,
    /// Number of rounds in which both columns have a value.
    pub rounds: usize,
    /// Median of the ratios over the rounds.
    pub ratio: f64,
    /// Smallest and biggest ratio.
    pub ratio_spread: (f64, f64),
    /// Median of the differences.
    pub difference: f64,
}

/// Returns the ratio of two columns; `None` if no round has both.
#[must_use]
pub fn ratio(name: &'static str, figures: &[Figure], column: &str, to: &str) -> Option<Ratio> {
    let of = |wanted: &str, round: usize| {
        figures.iter().find(|figure| figure.column == wanted && figure.round == round).map(|figure| figure.value)
    };
    let own = figures.iter().filter(|figure| figure.column == column);
    let pairs: Vec<(f64, f64)> = own.filter_map(|own| Some((own.value, of(to, own.round)?))).collect();
    let ratios: Vec<f64> = pairs.iter().map(|(own, other)| own / other).collect();
    let differences: Vec<f64> = pairs.iter().map(|(own, other)| own - other).collect();
    (!pairs.is_empty()).then(|| Ratio {
        figure: name,
        column: column.into(),
        to: to.into(),
        rounds: pairs.len(),
        ratio: median(&ratios),
        ratio_spread: spread(&ratios),
        difference: median(&differences),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(column: &str, round: usize, value: f64) -> Figure {
        Figure { column: column.into(), round, value }
    }

    #[test]
    fn ratio_uses_only_rounds_that_have_both_columns() {
        let figures =
            [figure("a", 0, 2.0), figure("b", 0, 4.0), figure("a", 1, 6.0), figure("b", 1, 8.0), figure("a", 2, 1.0)];
        let found = ratio("mean", &figures, "a", "b").unwrap();
        assert_eq!((found.rounds, found.ratio, found.ratio_spread), (2, 0.625, (0.5, 0.75)));
        assert_eq!(found.difference, -2.0);
        assert_eq!(ratio("mean", &figures, "a", "c"), None);
    }
}
