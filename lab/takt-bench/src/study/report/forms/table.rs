//! Table of all figures of a workload, by system and parameters; and rows that other forms share.

use super::super::pool::Pool;
use super::super::rendered_figure::{FigureContext, RenderedFigure, Table};
use super::super::value::{Value, number, optional, percent};
use std::collections::BTreeSet;

/// Statistics of latencies in the table.
const LATENCIES: [Value; 8] = [
    Value::Min,
    Value::Mean,
    Value::Quantile(0.5),
    Value::Quantile(0.99),
    Value::Quantile(0.999),
    Value::Max,
    Value::Deviation,
    Value::Variation,
];

pub fn render(scene: &FigureContext<'_>) -> RenderedFigure {
    let figures: BTreeSet<&str> = scene.pools.iter().flat_map(|pool| pool.figures()).collect();
    let has_latencies = scene.pools.iter().any(|pool| pool.distribution().count() > 0);
    let mut values: Vec<Value> = if has_latencies { LATENCIES.to_vec() } else { Vec::new() };
    values.extend(figures.into_iter().map(|name| Value::Figure(name.into())));
    if !scene.figure.values.is_empty() {
        values = scene.figure.values.iter().map(|name| Value::named(name)).collect();
    }
    let mut table = Table::new(&head_of_cells(scene));
    table.head.push("rounds".into());
    table.head.extend(values.iter().map(|value| match value {
        Value::Quantile(p) => format!("p{}, us", percent(*p)),
        other => scene.title(other),
    }));
    table.head.push("remarks".into());
    for pool in &scene.pools {
        let mut row = row_of_cell(scene, pool);
        row.push(pool.rounds.len().to_string());
        row.extend(
            values.iter().map(|value| optional(pool.estimate(value).map(|one| one.value * scene.factor(value)))),
        );
        row.push(pool.remarks().join("; "));
        table.rows.push(row);
    }
    let notes = vec![
        "Latencies are those of all samples, figures are medians of rounds. n/a: not measured, or too few samples."
            .into(),
    ];
    RenderedFigure { table, notes, ..RenderedFigure::default() }
}

/// Returns the columns that name a cell.
pub fn head_of_cells(scene: &FigureContext<'_>) -> Vec<String> {
    let mut head = vec!["system".to_owned()];
    head.extend(parameters(scene).into_iter().cloned());
    head
}

/// Returns the fields of a cell in the columns of [`head_of_cells`].
pub fn row_of_cell(scene: &FigureContext<'_>, pool: &Pool<'_>) -> Vec<String> {
    let star = if pool.disturbed() > 0 { " *" } else { "" };
    let batches = if pool.batches() { " (batches)" } else { "" };
    let mut row = vec![format!("{}{batches}{star}", pool.title())];
    let value = |name: &String| pool.cell.values.get(name).map(ToString::to_string).unwrap_or_default();
    row.extend(parameters(scene).into_iter().map(value));
    row
}

/// Returns the parameters that distinguish the cells of the figure.
fn parameters<'a>(scene: &FigureContext<'a>) -> Vec<&'a String> {
    let is_fixed = |name: &String| scene.figure.filter.contains_key(name);
    let all = scene.workload.parameters.0.iter();
    all.filter(|(name, values)| values.len() > 1 && !is_fixed(name)).map(|(name, _)| name).collect()
}

/// Returns the columns of one value with its rounds.
pub fn head_of_values(scene: &FigureContext<'_>) -> Vec<String> {
    let mut head = head_of_cells(scene);
    head.push(scene.title(&scene.value));
    head.extend(["95 % interval", "rounds from", "to", "rounds", "remarks"].map(str::to_owned));
    head
}

/// Returns the fields of a cell in the columns of [`head_of_values`].
pub fn row_of_values(scene: &FigureContext<'_>, pool: &Pool<'_>, value: &Value) -> Vec<String> {
    let factor = scene.factor(value);
    let mut row = row_of_cell(scene, pool);
    match pool.estimate(value) {
        None => row.extend(["n/a", "", "", ""].map(str::to_owned)),
        Some(estimate) => {
            let interval = estimate.interval.map(|interval| interval.scaled(factor));
            let ends = crate::stats::spread(&estimate.rounds);
            row.push(number(estimate.value * factor));
            row.push(interval.map_or_else(
                || "one round".into(),
                |interval| format!("{} to {}", number(interval.low), number(interval.high)),
            ));
            row.extend([number(ends.0 * factor), number(ends.1 * factor)]);
        }
    }
    row.extend([pool.rounds.len().to_string(), pool.remarks().join("; ")]);
    row
}
