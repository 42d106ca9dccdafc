//! Plots of sample arrivals: cumulative count and normalized latency. There is a plot for each
//! system and pair, with the first round of each cell.

use super::super::rendered_figure::{FigureContext, Plot, RenderedFigure, Table};
use super::table::{head_of_cells, row_of_cell};
use crate::error::Result;
use crate::page::chart::LineStyle;
use crate::sdn_overload::plot::{self, Axes, Line};
use crate::sdn_overload::series::Series;

const CUMULATIVE: Axes = Axes { x: "time (s)", y: "samples received" };
const NORMALISED: Axes = Axes { x: "sequence number", y: "normalized latency (ms)" };

pub fn cumulative(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    rendered(scene, CUMULATIVE, plot::cumulative)
}

pub fn normalised(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    let mut figure = rendered(scene, NORMALISED, plot::normalised)?;
    figure.notes.push("Normalized latency: arrival minus due time; lines break where samples were lost.".into());
    Ok(figure)
}

fn rendered(
    scene: &FigureContext<'_>,
    axes: Axes,
    line: fn((String, usize), &Series) -> Line,
) -> Result<RenderedFigure> {
    let mut figure = RenderedFigure { table: table(scene), ..RenderedFigure::default() };
    for pools in scene.lines() {
        let mut lines = Vec::new();
        for (color, pool) in pools.iter().enumerate() {
            let name = scene.by(pool).map_or_else(|| scene.name(pool), ToString::to_string);
            lines.extend(pool.arrivals().next().map(|series| line((name, color), series)));
        }
        if lines.is_empty() {
            continue;
        }
        let name = scene.name(pools[0]);
        figure.plots.push(Plot {
            description: format!("{} against {}, {} lines. The table has the figures.", axes.y, axes.x, lines.len()),
            svg: plot::draw(axes, &lines)?,
            legend: lines
                .iter()
                .map(|line| (LineStyle { color: line.color, ..LineStyle::default() }, line.name.clone()))
                .collect(),
            has_points: false,
            name,
        });
    }
    if figure.plots.is_empty() {
        figure.notes.push("No cell of this figure has arrivals of single samples.".into());
    } else {
        figure.notes.push("The first round of each cell.".into());
    }
    Ok(figure)
}

fn table(scene: &FigureContext<'_>) -> Table {
    let mut table = Table::new(&head_of_cells(scene));
    table.head.extend(["sent", "received", "longest gap, ms", "remarks"].map(str::to_owned));
    for pool in &scene.pools {
        let Some(series) = pool.arrivals().next() else { continue };
        let mut row = row_of_cell(scene, pool);
        row.extend([series.sent.to_string(), series.received().to_string()]);
        row.push(format!("{:.1}", series.longest_gap_ns() as f64 / 1e6));
        row.push(pool.remarks().join("; "));
        table.rows.push(row);
    }
    table
}
