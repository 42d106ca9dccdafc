//! Forms of figures and tables. Each form creates plots and a table with their data.

mod arrivals;
mod bars;
mod distribution;
mod gains;
mod heat_map;
mod lines;
mod series;
mod statistics;
mod t_test;
mod table;

use super::rendered_figure::{FigureContext, RenderedFigure};
use crate::error::Result;
use crate::study::file::{Figure, Form, Workload};
pub use gains::gain_of;

/// Returns the figures of a workload. A workload without figures has a table of all values.
#[must_use]
pub fn figures(workload: &Workload) -> Vec<Figure> {
    if !workload.figures.is_empty() {
        return workload.figures.clone();
    }
    vec![Figure {
        form: Form::Table,
        title: "All figures".into(),
        filter: Default::default(),
        value: None,
        values: Vec::new(),
        bin_us: None,
        by: None,
        across: None,
        baseline: None,
        halved: false,
        published: Vec::new(),
        caption: None,
    }]
}

/// Creates a figure in its form.
///
/// # Errors
/// A plot cannot be drawn.
pub fn render(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    if scene.pools.is_empty() {
        let notes = vec!["No cell of this figure was measured.".into()];
        return Ok(RenderedFigure { notes, ..RenderedFigure::default() });
    }
    let mut figure = match scene.figure.form {
        Form::Lines => lines::render(scene)?,
        Form::Bars => bars::render(scene)?,
        Form::Series => series::render(scene)?,
        Form::Histogram => distribution::histogram(scene)?,
        Form::Ecdf => distribution::ecdf(scene)?,
        Form::HeatMap => heat_map::render(scene)?,
        Form::Gains => gains::render(scene)?,
        Form::Statistics => statistics::statistics(scene),
        Form::TTest => t_test::render(scene),
        Form::Percentiles => statistics::percentiles(scene),
        Form::Table => table::render(scene),
        Form::Cumulative => arrivals::cumulative(scene)?,
        Form::Normalised => arrivals::normalised(scene)?,
    };
    figure.notes.extend(scene.notes());
    Ok(figure)
}
