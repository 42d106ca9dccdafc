//! Report on the simulation of many systems.

use std::collections::BTreeMap;
use std::fmt;

use super::system::ANY;

/// Results of one class of systems.
#[derive(Clone, Debug, Default)]
struct Class {
    systems: usize,
    /// Number of systems without a bound.
    unbounded: usize,
    /// Longest response of each flow as a fraction of its bound.
    ratios: Vec<f64>,
}

/// Results of all classes. Displays as a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Report(BTreeMap<&'static str, Class>);

impl Report {
    pub(super) fn add(&mut self, class: &'static str, ratios: Option<Vec<f64>>) {
        let class = self.0.entry(class).or_default();
        class.systems += 1;
        class.unbounded += usize::from(ratios.is_none());
        class.ratios.extend(ratios.unwrap_or_default());
    }

    /// Returns the ratios of the selected classes in ascending order.
    pub(super) fn ratios(&self, meant: impl Fn(&str) -> bool) -> Vec<f64> {
        let classes = self.0.iter().filter(|(name, _)| meant(name));
        let mut ratios: Vec<f64> = classes.flat_map(|(_, class)| &class.ratios).copied().collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }

    /// Returns the number of systems without a bound.
    pub(super) fn unbounded(&self) -> usize {
        self.0.values().map(|class| class.unbounded).sum()
    }
}

/// Returns the median of sorted values.
pub(super) fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| class | systems | without a bound | flows | median | largest |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        let mut row = |name: &str, meant: &dyn Fn(&str) -> bool| {
            let classes = || self.0.iter().filter(|(name, _)| meant(name)).map(|(_, class)| class);
            let (systems, unbounded): (usize, usize) =
                (classes().map(|class| class.systems).sum(), classes().map(|class| class.unbounded).sum());
            let ratios = self.ratios(meant);
            let (flows, median, largest) = (ratios.len(), median(&ratios), ratios.last().copied().unwrap_or(0.0));
            writeln!(f, "| {name} | {systems} | {unbounded} | {flows} | {median:.2} | {largest:.3} |")
        };
        for name in self.0.keys() {
            row(name, &|class| class == *name)?;
        }
        row("adversarial", &|class| class != ANY)?;
        row("all", &|_| true)
    }
}
