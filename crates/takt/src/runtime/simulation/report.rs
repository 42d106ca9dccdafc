//! What came of many systems.

use std::collections::BTreeMap;
use std::fmt;

/// The systems of one class.
#[derive(Clone, Debug, Default)]
struct Class {
    systems: usize,
    /// Systems without a bound.
    unbounded: usize,
    /// The longest response over the bound, of each flow.
    ratios: Vec<f64>,
}

/// See the [module](self). Prints as a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Report(BTreeMap<&'static str, Class>);

impl Report {
    pub(super) fn add(&mut self, class: &'static str, ratios: Option<Vec<f64>>) {
        let class = self.0.entry(class).or_default();
        class.systems += 1;
        class.unbounded += usize::from(ratios.is_none());
        class.ratios.extend(ratios.unwrap_or_default());
    }

    /// Those of all classes, ascending.
    pub(super) fn ratios(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.0.values().flat_map(|class| &class.ratios).copied().collect();
        all.sort_by(f64::total_cmp);
        all
    }

    pub(super) fn bounded(&self) -> usize {
        self.0.values().map(|class| class.systems - class.unbounded).sum()
    }
}

/// The median of what is sorted.
pub(super) fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| class | systems | without a bound | flows | median | largest |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for (name, class) in &self.0 {
            let mut ratios = class.ratios.clone();
            ratios.sort_by(f64::total_cmp);
            let (systems, unbounded, flows) = (class.systems, class.unbounded, ratios.len());
            let (median, largest) = (median(&ratios), ratios.last().copied().unwrap_or(0.0));
            writeln!(f, "| {name} | {systems} | {unbounded} | {flows} | {median:.2} | {largest:.3} |")?;
        }
        let all = self.ratios();
        let largest = all.last().copied().unwrap_or(0.0);
        write!(f, "| all | | | {} | {:.2} | {largest:.3} |", all.len(), median(&all))
    }
}
