//! Parts of a report: plots with their legends, and tables. A form creates them, a format writes
//! them.

use super::pool::Pool;
use super::value::Value;
use crate::page::chart::LineStyle;
use crate::study::directory::Results;
use crate::study::file::{Figure, Kind, Workload};
use crate::study::parameter::{Value as Parameter, Values};
use std::collections::BTreeSet;

/// Maximum number of lines of one plot of distributions. Further cells are in further plots with
/// the same axes.
pub const LINES_MAX: usize = 8;

/// Plot with its legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Short name of the content.
    pub name: String,
    /// Description for screen readers.
    pub description: String,
    /// SVG text.
    pub svg: String,
    /// Style and name of each line.
    pub legend: Vec<(LineStyle, String)>,
    /// Whether the lines have points.
    pub has_points: bool,
}

/// Table of text fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Column names.
    pub head: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table with these columns.
    #[must_use]
    pub fn new<S: AsRef<str>>(head: &[S]) -> Self {
        Self { head: head.iter().map(|name| name.as_ref().to_owned()).collect(), rows: Vec::new() }
    }
}

/// Rendered figure of a campaign file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderedFigure {
    /// Plots; if empty, the table is the figure.
    pub plots: Vec<Plot>,
    /// Data of the figure.
    pub table: Table,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Figure with the cells that it shows.
pub struct FigureContext<'a> {
    /// All results.
    pub results: &'a Results,
    /// Workload of the figure.
    pub workload: &'a Workload,
    /// Figure of the campaign file.
    pub figure: &'a Figure,
    /// Cells that were measured in at least one round.
    pub pools: Vec<&'a Pool<'a>>,
    /// Value that the figure shows.
    pub value: Value,
    /// Parameters that distinguish its cells, other than the system, `by` and `across`.
    rest: Vec<String>,
}

impl<'a> FigureContext<'a> {
    /// Creates the context of a figure from these cells.
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

    /// Reports whether round trips are halved.
    #[must_use]
    pub fn is_halved(&self) -> bool {
        self.figure.halved && self.workload.kind == Kind::RoundTrip
    }

    /// Returns the factor by which a value is multiplied.
    #[must_use]
    pub fn factor(&self, value: &Value) -> f64 {
        if self.is_halved() && value.is_latency() { 0.5 } else { 1.0 }
    }

    /// Returns the title of a value.
    #[must_use]
    pub fn title(&self, value: &Value) -> String {
        value.title(self.is_halved() && value.is_latency())
    }

    /// Returns a cell's value of the parameter of the x axis or of the rows.
    #[must_use]
    pub fn by<'b>(&self, pool: &'b Pool<'_>) -> Option<&'b Parameter> {
        pool.cell.values.get(self.figure.by.as_ref()?)
    }

    /// Returns the values of a parameter in the order of the campaign file.
    #[must_use]
    pub fn values_of(&self, name: Option<&String>) -> Vec<Parameter> {
        let there = |value: &&Parameter| {
            self.pools.iter().any(|pool| name.and_then(|name| pool.cell.values.get(name)) == Some(value))
        };
        let all = name.and_then(|name| self.workload.parameters.0.get(name));
        all.into_iter().flatten().filter(there).cloned().collect()
    }

    /// Returns the parameters that distinguish the cells of a system, as text; empty if there are
    /// none.
    #[must_use]
    pub fn rest(&self, pool: &Pool<'_>) -> String {
        let text = |name: &String| Some(format!("{name} {}", pool.cell.values.get(name)?));
        self.rest.iter().filter_map(text).collect::<Vec<_>>().join(", ")
    }

    /// Returns the name of a line: system, distinguishing parameters, and the mark of a system that
    /// batches.
    #[must_use]
    pub fn name(&self, pool: &Pool<'_>) -> String {
        let rest = self.rest(pool);
        let comma = if rest.is_empty() { "" } else { ", " };
        format!("{}{}{comma}{rest}", pool.title(), if pool.batches() { " (batches)" } else { "" })
    }

    /// Returns the name with `by` and the mark of a disturbed cell.
    #[must_use]
    pub fn full_name(&self, pool: &Pool<'_>) -> String {
        let by = self.figure.by.iter().chain(&self.figure.across);
        let by = by.filter_map(|name| Some(format!(", {name} {}", pool.cell.values.get(name)?))).collect::<String>();
        format!("{}{by}{}", self.name(pool), if pool.disturbed() > 0 { " *" } else { "" })
    }

    /// Returns the cells by line, in the order of systems.
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

    /// Returns the style of a cell's line: the color is that of the system, the dash that of the
    /// other parameters.
    #[must_use]
    pub fn line_style(&self, pool: &Pool<'_>, line: usize) -> LineStyle {
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
        LineStyle { color: system, dash: system / 6 + rest, shape: line }
    }

    /// Returns the notes on the figure as a whole.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_halved() {
            notes.push(
                "Round trips are halved, as an estimate of one way. Neither direction was measured separately.".into(),
            );
        }
        if self.figure.halved && !self.is_halved() {
            notes.push("The figure asks for halved round trips. These are not round trips, and are not halved.".into());
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
