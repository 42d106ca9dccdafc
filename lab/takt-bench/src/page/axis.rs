//! Axes of plots: range, scale, and labeled ticks.

use super::grouped;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// Maximum number of ticks of an axis.
const TICKS_MAX: usize = 12;

/// Axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Title along the axis.
    pub title: String,
    /// Whether the scale is logarithmic.
    pub is_logarithmic: bool,
    /// Ends of the axis in scale coordinates.
    ends: (f64, f64),
    /// Ticks: scale coordinate and label.
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Creates a linear axis from 0, or from `low` if it is below, to `high`.
    #[must_use]
    pub fn linear(title: &str, low: f64, high: f64) -> Self {
        let (low, high) = finite(low.min(0.0), high.max(0.0));
        let high = if high > low { high } else { low + 1.0 };
        let step = nice_step((high - low) / 6.0);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let ticks = (first..=last).map(|place| place as f64 * step).map(|value| (value, label(value, step))).collect();
        // Ticks beyond the ends are not drawn.
        let room = (high - low) * 0.04;
        let ends = (if low < 0.0 { low - room } else { 0.0 }, high + room);
        Self { title: title.into(), is_logarithmic: false, ends, ticks: within(ticks, ends) }
    }

    /// Creates a logarithmic axis from `low` to `high`, which are positive, with a margin.
    #[must_use]
    pub fn logarithmic(title: &str, low: f64, high: f64) -> Self {
        let low = if low.is_finite() && low > 0.0 { low } else { 1e-9 };
        let high = if high.is_finite() && high >= low { high } else { low };
        let ends = (low.log10(), high.log10());
        let margin = ((ends.1 - ends.0) * 0.04).max(0.05);
        let ends = (ends.0 - margin, ends.1 + margin);
        let decades = ends.0.floor() as i32..=ends.1.ceil() as i32;
        let factors: &[f64] = match ends.1 - ends.0 {
            decades if decades > 5.0 => &[1.0],
            decades if decades > 2.5 => &[1.0, 3.0],
            decades if decades > 1.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        };
        let tick = |decade: i32| factors.iter().map(move |factor| factor * 10f64.powi(decade));
        let ticks = decades.flat_map(tick).map(|value| (value.log10(), short(value))).collect();
        Self { title: title.into(), is_logarithmic: true, ends, ticks: thinned(within(ticks, ends)) }
    }

    /// Creates an axis with a tick for each value; the values are positive if the scale is
    /// logarithmic.
    #[must_use]
    pub fn of_values(title: &str, values: &[f64], is_logarithmic: bool) -> Self {
        let place = |value: f64| if is_logarithmic { value.log10() } else { value };
        let ticks: Vec<(f64, String)> = values.iter().map(|value| (place(*value), short(*value))).collect();
        let low = ticks.iter().map(|tick| tick.0).fold(f64::INFINITY, f64::min);
        let high = ticks.iter().map(|tick| tick.0).fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = finite(low, high);
        let margin = if high > low { (high - low) * 0.04 } else { 0.5 };
        Self { title: title.into(), is_logarithmic, ends: (low - margin, high + margin), ticks: thinned(ticks) }
    }

    /// Creates an axis with a tick for each name, at 0, 1, 2 and so on.
    #[must_use]
    pub fn of_names<S: AsRef<str>>(title: &str, names: &[S]) -> Self {
        let ticks = names.iter().enumerate().map(|(place, name)| (place as f64, name.as_ref().to_owned())).collect();
        let ends = (-0.6, names.len().max(1) as f64 - 0.4);
        Self { title: title.into(), is_logarithmic: false, ends, ticks }
    }

    /// Returns the axis with its ends exchanged.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.ends = (self.ends.1, self.ends.0);
        self
    }

    /// Returns the axis for a narrow panel, with at most three ticks.
    #[must_use]
    pub fn with_few_ticks(mut self) -> Self {
        let step = self.ticks.len().div_ceil(3).max(1);
        // Keeps the last tick.
        let last = self.ticks.len() % step;
        let skipped = (last + step - 1) % step;
        self.ticks = self.ticks.into_iter().skip(skipped).step_by(step).collect();
        self
    }

    /// Returns the scale coordinate of a value, limited to the ends.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let place = if self.is_logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        place.clamp(self.ends.0.min(self.ends.1), self.ends.0.max(self.ends.1))
    }

    /// Returns the ends in scale coordinates.
    #[must_use]
    pub const fn ends(&self) -> (f64, f64) {
        self.ends
    }

    /// Returns the number of characters of the longest label.
    #[must_use]
    pub fn longest_label(&self) -> usize {
        self.ticks.iter().map(|tick| tick.1.chars().count()).max().unwrap_or(0)
    }
}

/// Values are scale coordinates.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.ends.0) / (self.ends.1 - self.ends.0);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.ticks.iter().map(|tick| tick.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(place: &f64) -> String {
        place.to_string()
    }

    fn format_ext(&self, place: &f64) -> String {
        let is_at_place = |tick: &&(f64, String)| (tick.0 - place).abs() < 1e-9;
        self.ticks.iter().find(is_at_place).map(|tick| tick.1.clone()).unwrap_or_default()
    }
}

fn finite(low: f64, high: f64) -> (f64, f64) {
    if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) }
}

fn within(ticks: Vec<(f64, String)>, ends: (f64, f64)) -> Vec<(f64, String)> {
    ticks.into_iter().filter(|tick| (ends.0..=ends.1).contains(&tick.0)).collect()
}

/// Keeps only every second, third and so on of the ticks if there are too many.
fn thinned(ticks: Vec<(f64, String)>) -> Vec<(f64, String)> {
    let step = ticks.len().div_ceil(TICKS_MAX).max(1);
    ticks.into_iter().step_by(step).collect()
}

/// Returns the next number of 1, 2, 5, 10 and so on.
fn nice_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * decade >= least * 0.999);
    factor.unwrap_or(10.0) * decade
}

fn label(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    if digits == 0 { grouped(value) } else { format!("{value:.digits$}") }
}

/// Formats a value with few digits: 0.001, 1.5, 200, 5,000, 1e-7, 2M.
fn short(value: f64) -> String {
    let trimmed = |value: f64| {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value.abs() {
        small if small > 0.0 && small < 0.001 => format!("{value:.0e}"),
        small if small < 1000.0 => trimmed(value),
        large if large >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        _ => grouped(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn linear_axis_has_round_ticks() {
        assert_eq!(labels(&Axis::linear("", 3.0, 57.0)), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(labels(&Axis::linear("", 0.0, 0.5)), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(&Axis::linear("", -30.0, 20.0)), ["-30", "-20", "-10", "0", "10", "20"]);
    }

    #[test]
    fn logarithmic_axis_has_one_two_five_and_fewer_over_many_decades() {
        assert_eq!(labels(&Axis::logarithmic("", 10.0, 200.0)), ["10", "20", "50", "100", "200"]);
        assert_eq!(labels(&Axis::logarithmic("", 1e-6, 1.0)), ["1e-6", "1e-5", "1e-4", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(&Axis::logarithmic("", 100.0, 100.0)), ["100"]);
    }

    #[test]
    fn axis_of_values_and_names_has_a_tick_for_each() {
        assert_eq!(labels(&Axis::of_values("", &[16.0, 64.0, 16384.0], true)), ["16", "64", "16,384"]);
        let names = Axis::of_names("", &["a", "b"]);
        assert_eq!((labels(&names), names.ends()), (vec!["a", "b"], (-0.6, 1.6)));
        let many: Vec<f64> = (1..=40).map(f64::from).collect();
        assert!(Axis::of_values("", &many, false).ticks.len() <= TICKS_MAX);
    }

    #[test]
    fn empty_axis_and_axis_of_nan_have_finite_ends() {
        for axis in [
            Axis::linear("", 0.0, 0.0),
            Axis::linear("", f64::NAN, f64::INFINITY),
            Axis::logarithmic("", 0.0, f64::NAN),
            Axis::of_values("", &[], true),
            Axis::of_names::<&str>("", &[]),
        ] {
            let (low, high) = axis.ends();
            assert!(low.is_finite() && high.is_finite() && high > low, "{axis:?}");
            assert!((low..=high).contains(&axis.place(1e300)), "{axis:?}");
        }
    }
}
