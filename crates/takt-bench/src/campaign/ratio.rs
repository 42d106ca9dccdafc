//! Ratios of two columns, within rounds and then over rounds.

use crate::stats::{median, spread};
use serde::Serialize;

/// A figure of one column in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The column.
    pub column: String,
    /// Round, from 0.
    pub round: usize,
    /// The figure.
    pub value: f64,
}

/// How one column compares with another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Which figure.
    pub figure: &'static str,
    /// Whose.
    pub column: String,
    /// Divided by whose.
    pub to: String,
    /// Rounds in which both have one.
    pub rounds: usize,
    /// Median over the rounds.
    pub ratio: f64,
    /// Smallest and biggest.
    pub ratio_spread: (f64, f64),
    /// Median of the differences.
    pub difference: f64,
}

/// The ratio of two columns; `None` if no round has both.
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
    fn a_ratio_is_within_a_round() {
        let figures =
            [figure("a", 0, 2.0), figure("b", 0, 4.0), figure("a", 1, 6.0), figure("b", 1, 8.0), figure("a", 2, 1.0)];
        let found = ratio("mean", &figures, "a", "b").unwrap();
        assert_eq!((found.rounds, found.ratio, found.ratio_spread), (2, 0.625, (0.5, 0.75)));
        assert_eq!(found.difference, -2.0);
        assert_eq!(ratio("mean", &figures, "a", "c"), None);
    }
}
