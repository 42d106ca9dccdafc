//! Heat maps: a value by two parameters, with a map for each system. All maps of a figure have the
//! same scale.

use super::super::rendered_figure::{FigureContext, Plot, RenderedFigure, Table};
use super::super::value::number;
use super::lines::range;
use super::table::{head_of_values, row_of_values};
use crate::error::Result;
use crate::page::axis::Axis;
use crate::page::chart::{Mark, Panel, draw};
use crate::study::parameter::Value as Parameter;

/// Opacity of the largest value; text stays readable on it.
const OPACITY_MAX: f64 = 0.5;
/// Height of a row, pixels.
const ROW: u32 = 34;

pub fn render(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    let factor = scene.factor(&scene.value);
    let rows = scene.values_of(scene.figure.by.as_ref());
    let columns = scene.values_of(scene.figure.across.as_ref());
    let title = scene.title(&scene.value);
    let values: Vec<f64> =
        scene.pools.iter().filter_map(|pool| Some(pool.estimate(&scene.value)?.value * factor)).collect();
    let (low, high) = range(&values);
    let is_logarithmic = low > 0.0;
    let shade = |value: f64| {
        let share = if is_logarithmic { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) };
        OPACITY_MAX * if share.is_finite() { 0.1 + 0.9 * share.clamp(0.0, 1.0) } else { 0.5 }
    };
    let mut figure = RenderedFigure { table: Table::new(&head_of_values(scene)), ..RenderedFigure::default() };
    for line in scene.lines() {
        let mut marks = Vec::new();
        for pool in &line {
            figure.table.rows.push(row_of_values(scene, pool, &scene.value));
            let place = |all: &[Parameter], name: Option<&String>| {
                let value = pool.cell.values.get(name?)?;
                all.iter().position(|other| other == value).map(|place| place as f64)
            };
            let y = place(&rows, scene.figure.by.as_ref()).unwrap_or(0.0);
            let x = place(&columns, scene.figure.across.as_ref()).unwrap_or(0.0);
            let Some(estimate) = pool.estimate(&scene.value) else { continue };
            let value = estimate.value * factor;
            marks.push(Mark::Rectangle([(x - 0.5, y - 0.5), (x + 0.5, y + 0.5)], 0, shade(value)));
            let star = if pool.disturbed() > 0 { " *" } else { "" };
            marks.push(Mark::TextCentered(x, y, format!("{}{star}", number(value))));
        }
        if marks.is_empty() {
            continue;
        }
        let names = |values: &[Parameter]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
        let x = Axis::of_names(scene.figure.across.as_deref().unwrap_or(""), &names(&columns));
        let y = Axis::of_names(scene.figure.by.as_deref().unwrap_or(""), &names(&rows)).reversed();
        let svg = draw(90 + ROW * rows.len().max(1) as u32, &[Panel { x, y, marks }], &[])?;
        let name = scene.name(line[0]);
        let description = format!("{title} by {} and {} for {name}.", rows.len(), columns.len());
        figure.plots.push(Plot { name, description, svg, legend: Vec::new(), has_points: false });
    }
    figure.notes.push(format!("{title}. All maps have one scale, from {} to {}.", number(low), number(high)));
    Ok(figure)
}
