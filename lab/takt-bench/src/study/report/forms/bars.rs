//! Bar charts: a value by system, with a horizontal bar for each, grouped by a parameter.

use super::super::pool::Pool;
use super::super::rendered_figure::{FigureContext, Plot, RenderedFigure, Table};
use super::super::value::number;
use super::lines::{LOGARITHMIC_FROM, range};
use super::table::{head_of_values, row_of_values};
use crate::error::Result;
use crate::page::axis::Axis;
use crate::page::chart::{Mark, Panel, draw};

/// Height of a bar with its gap, pixels.
const ROW: u32 = 25;
/// Maximum number of characters of a name.
const LETTERS_MAX: usize = 44;
/// Definition of bars and error bars, for the report.
pub const RULE: &str =
    "Latencies are those of all samples, figures are medians of rounds. Error bars: smallest and biggest round.";

/// Bar, or heading of a group.
pub struct Bar {
    /// Name to the left of the bar.
    pub name: String,
    /// Value with the ends of its error bar; `None`: a heading.
    pub value: Option<(f64, f64, f64)>,
    /// Text to the right of the bar.
    pub text: String,
    /// Index of its color.
    pub color: usize,
}

pub fn render(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    let factor = scene.factor(&scene.value);
    let (mut bars, mut table) = (Vec::new(), Table::new(&head_of_values(scene)));
    for (heading, pools) in groups(scene) {
        bars.extend(heading.map(|name| Bar { name, value: None, text: String::new(), color: 0 }));
        for pool in pools {
            table.rows.push(row_of_values(scene, pool, &scene.value));
            let Some(estimate) = pool.estimate(&scene.value) else { continue };
            let (low, high) = estimate.range();
            let value = estimate.value * factor;
            let name = format!("{}{}", scene.name(pool), if pool.disturbed() > 0 { " *" } else { "" });
            let color = scene.line_style(pool, 0).color;
            bars.push(Bar { name, value: Some((value, low * factor, high * factor)), text: number(value), color });
        }
    }
    let title = scene.title(&scene.value);
    match plot(scene, &title, &bars)? {
        Some(plot) => Ok(RenderedFigure { plots: vec![plot], table, notes: vec![RULE.into()] }),
        None => {
            let note = format!("No cell has this value, or enough samples for it: {title}.");
            Ok(RenderedFigure { plots: Vec::new(), table, notes: vec![note] })
        }
    }
}

/// Groups the cells by the value of `by`, with a heading if there is more than one value.
pub fn groups<'a>(scene: &'a FigureContext<'a>) -> Vec<(Option<String>, Vec<&'a Pool<'a>>)> {
    let by = scene.values_of(scene.figure.by.as_ref());
    if by.len() < 2 {
        return vec![(None, scene.pools.clone())];
    }
    let name = scene.figure.by.as_deref().unwrap_or_default();
    let group = |value| {
        let pools = scene.pools.iter().filter(|pool| scene.by(pool) == Some(value)).copied().collect();
        (Some(format!("{name} {value}")), pools)
    };
    by.iter().map(group).collect()
}

/// Draws a plot of bars. Returns `None` if there are none.
///
/// # Errors
/// The plot cannot be drawn.
pub fn plot(scene: &FigureContext<'_>, title: &str, bars: &[Bar]) -> Result<Option<Plot>> {
    let values: Vec<f64> =
        bars.iter().filter_map(|bar| bar.value).flat_map(|(value, low, high)| [value, low, high]).collect();
    if values.is_empty() {
        return Ok(None);
    }
    let (low, high) = range(&values);
    let is_logarithmic = low > 0.0 && high / low >= LOGARITHMIC_FROM * 2.0;
    // Leaves room for the text to the right of the longest bar.
    let x = if is_logarithmic {
        Axis::logarithmic(title, low / 1.3, high * (high / low).powf(0.12))
    } else {
        Axis::linear(title, low * 1.05, high * 1.2)
    };
    let base = if is_logarithmic { 10f64.powf(x.ends().0) } else { 0.0 };
    let mut marks = Vec::new();
    for (place, bar) in bars.iter().enumerate() {
        let Some((value, low, high)) = bar.value else { continue };
        let at = place as f64;
        marks.push(Mark::Rectangle([(base.min(value), at - 0.36), (base.max(value), at + 0.36)], bar.color, 0.75));
        if low < high {
            marks.push(Mark::HorizontalInterval(at, low, high));
        }
        marks.push(Mark::TextRight(value.max(high).max(if is_logarithmic { 0.0 } else { base }), at, bar.text.clone()));
    }
    let name =
        |bar: &Bar| if bar.value.is_none() { format!("{}:", shortened(&bar.name)) } else { shortened(&bar.name) };
    let names: Vec<String> = bars.iter().map(name).collect();
    let panel = Panel { x, y: Axis::of_names("", &names).reversed(), marks };
    let svg = draw(80 + ROW * bars.len() as u32, &[panel], &[])?;
    let description = format!(
        "{} bars of {title}, from {} to {}. The table has all values.",
        bars.iter().filter(|bar| bar.value.is_some()).count(),
        number(low),
        number(high)
    );
    Ok(Some(Plot { name: scene.figure.title.clone(), description, svg, legend: Vec::new(), has_points: false }))
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LETTERS_MAX {
        return name.to_owned();
    }
    name.chars().take(LETTERS_MAX - 1).chain(['…']).collect()
}
