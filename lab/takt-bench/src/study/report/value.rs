//! Values of reports by name: statistics of latencies, and figures.

use crate::study::cell::{Better, Measured, unit_of};

/// Percentiles of tables.
pub const PERCENTILES: [f64; 7] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];
/// Percentile of packet delay variation (RFC 5481, section 4.2, leaves the choice to the user).
pub const VARIATION: f64 = 0.999;

/// Value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Arithmetic mean of latencies.
    Mean,
    /// Minimum latency.
    Min,
    /// Maximum latency.
    Max,
    /// Standard deviation of latencies.
    Deviation,
    /// Variance of latencies, us².
    Variance,
    /// Percentile of latencies.
    Quantile(f64),
    /// Packet delay variation: a high percentile minus the minimum latency.
    Variation,
    /// Figure by name.
    Figure(String),
}

impl Value {
    /// Returns the value with this name in campaign files.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let percent = name.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
        match (name, percent) {
            ("mean", _) => Self::Mean,
            ("min", _) => Self::Min,
            ("max", _) => Self::Max,
            ("stdev", _) => Self::Deviation,
            ("variance", _) => Self::Variance,
            ("pdv", _) => Self::Variation,
            ("one-in-a-million", _) => Self::Quantile(0.999999),
            (_, Some(percent)) if percent > 0.0 && percent < 100.0 => Self::Quantile(percent / 100.0),
            _ => Self::Figure(name.into()),
        }
    }

    /// Reports whether it is a statistic of latencies.
    #[must_use]
    pub const fn is_latency(&self) -> bool {
        !matches!(self, Self::Figure(_))
    }

    /// Returns the title for people, with the unit.
    #[must_use]
    pub fn title(&self, halved: bool) -> String {
        let of = if halved { "half of the round trip, us" } else { "latency, us" };
        match self {
            Self::Mean => format!("mean {of}"),
            Self::Min => format!("smallest {of}"),
            Self::Max => format!("biggest {of}"),
            Self::Deviation => format!("standard deviation of {of}"),
            Self::Variance => format!("variance of {of}²"),
            Self::Quantile(p) => format!("p{} {of}", percent(*p)),
            Self::Variation => format!("delay variation of {of}"),
            Self::Figure(name) => match unit_of(name) {
                Some(unit) if unit.unit.is_empty() => unit.title.to_owned(),
                Some(unit) => format!("{}, {}", unit.title, unit.unit),
                None => name.clone(),
            },
        }
    }

    /// Returns the direction of improvement.
    #[must_use]
    pub fn better(&self) -> Better {
        match self {
            Self::Figure(name) => unit_of(name).map_or(Better::Lower, |unit| unit.better),
            _ => Better::Lower,
        }
    }

    /// Returns the value of one round; `None` if it has none, or too few samples.
    #[must_use]
    pub fn of_round(&self, measured: &Measured) -> Option<f64> {
        if let Self::Figure(name) = self {
            return measured.figures.get(name).copied().filter(|value| value.is_finite());
        }
        let latency = measured.latency.as_ref()?;
        let summary = &latency.summary;
        let quantile = |p: f64| {
            let distribution = crate::statistics::distribution::Distribution::of(&[&latency.buckets]);
            distribution.quantile(p).map(|ns| ns / 1e3)
        };
        match self {
            Self::Mean => Some(summary.mean),
            Self::Min => Some(summary.min),
            Self::Max => Some(summary.max),
            Self::Deviation => Some(summary.stdev),
            Self::Variance => Some(summary.stdev * summary.stdev),
            Self::Quantile(p) => quantile(*p),
            Self::Variation => quantile(VARIATION).map(|value| (value - summary.min).max(0.0)),
            Self::Figure(_) => None,
        }
    }
}

/// Formats a quantile in percent: 50, 99.9, 99.9999.
#[must_use]
pub fn percent(p: f64) -> String {
    let text = format!("{:.6}", p * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a number with four digits.
#[must_use]
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        _ if !value.is_finite() => return "n/a".into(),
        0.0 => return "0".into(),
        small if small < 1e-3 => return format!("{value:.2e}"),
        small if small < 1.0 => 4,
        small if small < 10.0 => 3,
        small if small < 100.0 => 2,
        small if small < 1000.0 => 1,
        _ => return crate::page::grouped(value),
    };
    format!("{value:.digits$}")
}

/// Formats a number, or `n/a`.
#[must_use]
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".into(), number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::cell::Latency;

    #[test]
    fn names_of_campaign_files_are_known() {
        assert_eq!(Value::named("p99.9"), Value::Quantile(99.9 / 100.0));
        assert_eq!(Value::named("one-in-a-million"), Value::Quantile(0.999999));
        assert_eq!(Value::named("pdv"), Value::Variation);
        assert_eq!(Value::named("received_hz"), Value::Figure("received_hz".into()));
        assert_eq!(Value::named("p100"), Value::Figure("p100".into()));
        assert_eq!(Value::named("received_hz").better(), Better::Higher);
        assert_eq!(Value::named("p99.9").title(true), "p99.9 half of the round trip, us");
        assert_eq!(Value::named("received_hz").title(false), "samples taken by the slowest reader, 1/s");
    }

    #[test]
    fn percentile_of_too_few_samples_is_none() {
        let latency = Latency::of((1..=500).map(|us| us * 1000).collect());
        let figures = [("lost".to_owned(), f64::NAN)].into();
        let measured = Measured { figures, latency, ..Measured::default() };
        assert_eq!(Value::named("p99.9").of_round(&measured), None);
        assert_eq!(Value::named("pdv").of_round(&measured), None);
        let [stdev, variance] = ["stdev", "variance"].map(|name| Value::named(name).of_round(&measured).unwrap());
        assert_eq!(stdev * stdev, variance);
        assert_eq!(Value::named("max").of_round(&measured), Some(500.0));
        assert_eq!(Value::named("lost").of_round(&measured), None);
        let p50 = Value::named("p50").of_round(&measured).unwrap();
        assert!((p50 - 250.0).abs() < 0.3, "{p50}");
    }

    #[test]
    fn numbers_have_four_digits() {
        let of = |value: f64| number(value);
        assert_eq!(
            [of(0.0), of(0.12345), of(1.2345), of(12.345), of(123.45), of(12345.6), of(f64::NAN), of(0.00012)],
            ["0", "0.1235", "1.234", "12.35", "123.5", "12,346", "n/a", "1.20e-4"]
        );
        assert_eq!([percent(0.5), percent(0.999), percent(0.999999)], ["50", "99.9", "99.9999"]);
    }
}
