//! Parts of a report: plots with their legends, and tables. A form makes them, a format writes them.

use super::pool::Pool;
use super::value::Value;
use crate::page::chart::Look;
use crate::study::directory::Results;
use crate::study::file::{Figure, Kind, Workload};
use crate::study::parameter::{Value as Parameter, Values};
use std::collections::BTreeSet;

/// Lines of one plot of distributions. More cells are in further plots with the same axes.
pub const LINES_MAX: usize = 8;

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it shows.
    pub name: String,
    /// The same in more words, for those who do not see it.
    pub description: String,
    /// The SVG.
    pub svg: String,
    /// Lines by name.
    pub legend: Vec<(Look, String)>,
    /// Whether lines have points.
    pub has_points: bool,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of columns.
    pub head: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// With these columns.
    #[must_use]
    pub fn new<S: AsRef<str>>(head: &[S]) -> Self {
        Self { head: head.iter().map(|name| name.as_ref().to_owned()).collect(), rows: Vec::new() }
    }
}

/// What a figure of a campaign file becomes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exhibit {
    /// Plots; none: the table is the figure.
    pub plots: Vec<Plot>,
    /// The data.
    pub table: Table,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// A figure with the cells that it shows.
pub struct Scene<'a> {
    /// All results.
    pub results: &'a Results,
    /// The workload.
    pub workload: &'a Workload,
    /// The figure.
    pub figure: &'a Figure,
    /// Cells that were measured in at least one round.
    pub pools: Vec<&'a Pool<'a>>,
    /// Its value.
    pub value: Value,
    /// Parameters that tell its cells apart, besides the system, `by` and `across`.
    rest: Vec<String>,
}

impl<'a> Scene<'a> {
    /// The figure of these cells.
    #[must_use]
    pub fn new(results: &'a Results, workload: &'a Workload, figure: &'a Figure, pools: &'a [Pool<'a>]) -> Self {
        let is_shown = |pool: &&Pool<'_>| {
            let has = |(name, value): (&String, &Parameter)| pool.cell.values.get(name) == Some(value);
            !pool.rounds.is_empty() && figure.filter.iter().all(has)
        };
        let pools: Vec<&Pool> = pools.iter().filter(is_shown).collect();
        let named = figure.value.as_deref().map(Value::named);
        let has_latencies = pools.iter().any(|pool| pool.distribution().count() > 0);
        let first_figure = || pools.iter().flat_map(|pool| pool.figures()).next().unwrap_or("mean").to_owned();
        let value = named.unwrap_or_else(|| if has_latencies { Value::Mean } else { Value::Figure(first_figure()) });
        let mut rest = Vec::new();
        for name in workload.parameters.0.keys() {
            let values: BTreeSet<_> = pools.iter().filter_map(|pool| pool.cell.values.get(name)).collect();
            if values.len() > 1 && figure.by.as_ref() != Some(name) && figure.across.as_ref() != Some(name) {
                rest.push(name.clone());
            }
        }
        Self { results, workload, figure, pools, value, rest }
    }

    /// Whether round trips are halved.
    #[must_use]
    pub fn is_halved(&self) -> bool {
        self.figure.halved && self.workload.kind == Kind::RoundTrip
    }

    /// What a value is multiplied with.
    #[must_use]
    pub fn factor(&self, value: &Value) -> f64 {
        if self.is_halved() && value.is_latency() { 0.5 } else { 1.0 }
    }

    /// The title of a value.
    #[must_use]
    pub fn title(&self, value: &Value) -> String {
        value.title(self.is_halved() && value.is_latency())
    }

    /// The parameter of the x axis or of rows of a cell.
    #[must_use]
    pub fn by<'b>(&self, pool: &'b Pool<'_>) -> Option<&'b Parameter> {
        pool.cell.values.get(self.figure.by.as_ref()?)
    }

    /// Values of a parameter in the order of the campaign file.
    #[must_use]
    pub fn values_of(&self, name: Option<&String>) -> Vec<Parameter> {
        let there = |value: &&Parameter| {
            self.pools.iter().any(|pool| name.and_then(|name| pool.cell.values.get(name)) == Some(value))
        };
        let all = name.and_then(|name| self.workload.parameters.0.get(name));
        all.into_iter().flatten().filter(there).cloned().collect()
    }

    /// Parameters that tell the cells of a system apart, as text; empty if there are none.
    #[must_use]
    pub fn rest(&self, pool: &Pool<'_>) -> String {
        let text = |name: &String| Some(format!("{name} {}", pool.cell.values.get(name)?));
        self.rest.iter().filter_map(text).collect::<Vec<_>>().join(", ")
    }

    /// Name of a line: system and what tells its cells apart, and the mark of a system that batches.
    #[must_use]
    pub fn name(&self, pool: &Pool<'_>) -> String {
        let rest = self.rest(pool);
        let comma = if rest.is_empty() { "" } else { ", " };
        format!("{}{}{comma}{rest}", pool.title(), if pool.batches() { " (batches)" } else { "" })
    }

    /// The same with `by` and the mark of a disturbed cell.
    #[must_use]
    pub fn full_name(&self, pool: &Pool<'_>) -> String {
        let by = self.figure.by.iter().chain(&self.figure.across);
        let by = by.filter_map(|name| Some(format!(", {name} {}", pool.cell.values.get(name)?))).collect::<String>();
        format!("{}{by}{}", self.name(pool), if pool.disturbed() > 0 { " *" } else { "" })
    }

    /// Cells by line, in the order of systems.
    #[must_use]
    pub fn lines(&self) -> Vec<Vec<&'a Pool<'a>>> {
        let mut lines: Vec<Vec<&'a Pool<'a>>> = Vec::new();
        let same = |one: &Pool<'_>, other: &Pool<'_>| {
            let rest = |pool: &Pool<'_>| -> Values {
                let of = |name: &String| Some((name.clone(), pool.cell.values.get(name)?.clone()));
                self.rest.iter().filter_map(of).collect()
            };
            one.cell.system == other.cell.system && rest(one) == rest(other)
        };
        for pool in &self.pools {
            match lines.iter_mut().find(|line| same(line[0], pool)) {
                Some(line) => line.push(pool),
                None => lines.push(vec![pool]),
            }
        }
        lines
    }

    /// How the line of a cell looks: the colour is that of the system, the dash that of the other parameters.
    #[must_use]
    pub fn look(&self, pool: &Pool<'_>, line: usize) -> Look {
        let systems: BTreeSet<usize> = self.pools.iter().map(|pool| pool.place()).collect();
        let system = systems.iter().position(|place| *place == pool.place()).unwrap_or(0);
        let mut rests: Vec<String> = Vec::new();
        for other in &self.pools {
            let rest = self.rest(other);
            if !rests.contains(&rest) {
                rests.push(rest);
            }
        }
        let rest = rests.iter().position(|rest| *rest == self.rest(pool)).unwrap_or(0);
        Look { colour: system, dash: system / 6 + rest, shape: line }
    }

    /// What the figure as a whole needs to have said.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_halved() {
            notes.push(
                "Round trips are halved, as an estimate of one way. Neither direction was measured alone.".into(),
            );
        }
        if self.figure.halved && !self.is_halved() {
            notes.push("The figure asks for halved round trips. These are no round trips, and are not halved.".into());
        }
        if self.pools.iter().any(|pool| pool.disturbed() > 0) {
            notes.push("* At least one round was disturbed by foreign processes or by the hypervisor.".into());
        }
        let batches: BTreeSet<bool> = self.pools.iter().map(|pool| pool.batches()).collect();
        if batches.len() == 2 {
            notes.push(
                "(batches): the writer puts several samples into a packet by itself. Compare it with others that batch.".into(),
            );
        }
        notes
    }
}
