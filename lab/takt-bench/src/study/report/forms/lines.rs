//! Line charts: a value over a parameter, with one line for each system and with error bars that
//! show the spread of rounds.

use super::super::pool::Pool;
use super::super::rendered_figure::{FigureContext, Plot, RenderedFigure, Table};
use super::super::value::number;
use super::table::{head_of_values, row_of_values};
use crate::error::Result;
use crate::page::axis::Axis;
use crate::page::chart::{LineStyle, Mark, Panel, draw};
use crate::study::parameter::Value as Parameter;

/// Minimum ratio of the largest to the smallest value for a logarithmic axis.
pub const LOGARITHMIC_FROM: f64 = 12.0;

/// Maximum number of lines in one plot. Further lines are in further plots with the same axes.
const LINES_MAX: usize = 10;

/// Height of a plot in pixels.
const HEIGHT: u32 = 400;

/// Line of a system.
struct Line {
    style: LineStyle,
    name: String,
    marks: Vec<Mark>,
}

/// Draws the figure and lists its values in a table.
///
/// # Errors
/// The plot cannot be drawn.
pub fn render(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    let by = scene.values_of(scene.figure.by.as_ref());
    let mut figure = RenderedFigure { table: Table::new(&head_of_values(scene)), ..RenderedFigure::default() };
    let (mut lines, mut extents) = (Vec::new(), Vec::new());
    for (index, pools) in scene.lines().into_iter().enumerate() {
        figure.table.rows.extend(pools.iter().map(|pool| row_of_values(scene, pool, &scene.value)));
        let style = scene.line_style(pools[0], index);
        let marks = marks(scene, &pools, &by, style, &mut extents);
        if !marks.is_empty() {
            lines.push(Line { style, name: scene.name(pools[0]), marks });
        }
    }
    let title = scene.title(&scene.value);
    if lines.is_empty() {
        figure.notes.push(format!("No cell has this value, or enough samples for it: {title}."));
        return Ok(figure);
    }
    figure.notes.push(super::bars::RULE.into());
    let (low, high) = range(&extents);
    let x = axis_of(scene.figure.by.as_deref().unwrap_or(""), &by);
    let parts = lines.len().div_ceil(LINES_MAX);
    for (part, shown) in lines.chunks(LINES_MAX).enumerate() {
        let marks = shown.iter().flat_map(|line| line.marks.clone()).collect();
        let panel = Panel { x: x.clone(), y: value_axis(&title, low, high), marks };
        let description = format!(
            "{} lines of {title} against {}, from {} to {}. The table has all values.",
            shown.len(),
            scene.figure.by.as_deref().unwrap_or("nothing"),
            number(low),
            number(high)
        );
        let title = &scene.figure.title;
        figure.plots.push(Plot {
            name: if parts == 1 { title.clone() } else { format!("{title}, part {}", part + 1) },
            description,
            svg: draw(HEIGHT, &[panel], &[])?,
            legend: shown.iter().map(|line| (line.style, line.name.clone())).collect(),
            has_points: true,
        });
    }
    Ok(figure)
}

/// Returns the marks of one line: error bars, asterisks at disturbed cells, the line and its
/// points. The result is empty if no cell has the value. Adds all values and the ends of error bars
/// to `extents`.
fn marks(
    scene: &FigureContext<'_>,
    pools: &[&Pool<'_>],
    by: &[Parameter],
    style: LineStyle,
    extents: &mut Vec<f64>,
) -> Vec<Mark> {
    let factor = scene.factor(&scene.value);
    let (mut marks, mut points) = (Vec::new(), Vec::new());
    for pool in pools {
        let Some(estimate) = pool.estimate(&scene.value) else { continue };
        let at = scene.by(pool).map_or(0.0, |value| position(value, by));
        let (low, high) = estimate.range();
        let (value, low, high) = (estimate.value * factor, low * factor, high * factor);
        extents.extend([value, low, high]);
        if estimate.rounds.len() > 1 {
            marks.push(Mark::VerticalInterval(at, low, high, style.color));
        }
        if pool.disturbed() > 0 {
            marks.push(Mark::TextRight(at, high, "*".into()));
        }
        points.push((at, value));
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    if !points.is_empty() {
        marks.extend([Mark::Line(points.clone(), style), Mark::Points(points, style)]);
    }
    marks
}

/// Returns an axis for values from `low` to `high`. It is logarithmic if both are positive and
/// their ratio is at least [`LOGARITHMIC_FROM`]; otherwise it is linear and contains 0.
pub fn value_axis(title: &str, low: f64, high: f64) -> Axis {
    if low > 0.0 && high / low >= LOGARITHMIC_FROM {
        Axis::logarithmic(title, low, high)
    } else {
        Axis::linear(title, low, high)
    }
}

/// Returns minimum and maximum of the finite values; 0 and 1 if there are none.
pub fn range(values: &[f64]) -> (f64, f64) {
    let finite = values.iter().filter(|value| value.is_finite());
    let fold = |range: Option<(f64, f64)>, value: &f64| match range {
        None => Some((*value, *value)),
        Some((low, high)) => Some((low.min(*value), high.max(*value))),
    };
    finite.fold(None, fold).unwrap_or((0.0, 1.0))
}

/// Returns the axis of a parameter: numbers at their value, texts at equal distances.
fn axis_of(title: &str, values: &[Parameter]) -> Axis {
    let numbers = |value: &Parameter| match value {
        Parameter::Number(number) => Some(*number as f64),
        Parameter::Text(_) => None,
    };
    match values.iter().map(numbers).collect::<Option<Vec<f64>>>() {
        Some(numbers) if !numbers.is_empty() => {
            let (low, high) = range(&numbers);
            Axis::of_values(title, &numbers, low > 0.0 && high / low >= LOGARITHMIC_FROM)
        }
        _ => {
            let names: Vec<String> = values.iter().map(ToString::to_string).collect();
            Axis::of_names(title, &names)
        }
    }
}

/// Returns the position of a parameter's value on the axis of [`axis_of`].
fn position(value: &Parameter, all: &[Parameter]) -> f64 {
    match value {
        Parameter::Number(number) if all.iter().all(|value| matches!(value, Parameter::Number(_))) => *number as f64,
        _ => all.iter().position(|other| other == value).unwrap_or(0) as f64,
    }
}
