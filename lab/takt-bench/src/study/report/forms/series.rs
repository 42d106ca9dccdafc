//! Time series of latencies: samples in their order with a vertical histogram, for each cell. All
//! plots of a figure have the same latency axis.

use super::super::pool::Pool;
use super::super::rendered_figure::{FigureContext, Plot, RenderedFigure, Table};
use super::super::value::{Value, number, optional};
use super::lines::range;
use crate::error::Result;
use crate::page::axis::Axis;
use crate::page::chart::{LineStyle, Mark, Panel, WIDTH, draw};
use crate::study::cell::Span;

/// Maximum number of spans of a plot.
const SPANS: usize = 600;
/// Number of bins of the histogram.
const BINS: usize = 40;
/// Height of a plot, and width of its histogram, pixels.
const HEIGHT: u32 = 230;
const HISTOGRAM: u32 = 210;
/// Smallest share that the histogram shows.
const SHARE_MIN: f64 = 1e-7;

pub fn render(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    let factor = scene.factor(&Value::Mean) / 1e3;
    let mut table = Table::new(&["system", "samples", "rounds", "smallest, us", "mean, us", "biggest, us", "remarks"]);
    let with_latencies: Vec<&Pool> =
        scene.pools.iter().filter(|pool| pool.distribution().count() > 0).copied().collect();
    let ends = with_latencies.iter().flat_map(|pool| [pool.distribution().min(), pool.distribution().max()]);
    let (low, high) = range(&ends.flatten().map(|ns| (ns as f64 * factor).max(1e-3)).collect::<Vec<_>>());
    let (mut plots, mut notes) = (Vec::new(), Vec::new());
    for pool in with_latencies {
        let us = |value: &Value| optional(pool.estimate(value).map(|one| one.value * scene.factor(value)));
        let name = scene.full_name(pool);
        let count = pool.distribution().count();
        table.rows.push(vec![
            name.clone(),
            count.to_string(),
            pool.rounds.len().to_string(),
            us(&Value::Min),
            us(&Value::Mean),
            us(&Value::Max),
            pool.remarks().join("; "),
        ]);
        let y = Axis::logarithmic(if scene.is_halved() { "half, us" } else { "us" }, low, high);
        let svg = draw(
            HEIGHT,
            &[
                series(pool, &y, factor, scene.line_style(pool, 0).color),
                histogram(pool, y, factor, scene.line_style(pool, 0).color),
            ],
            &[WIDTH - HISTOGRAM],
        )?;
        let description = format!(
            "{count} samples of {} rounds in their order, mean {} us, biggest {} us, with the histogram of all at the right.",
            pool.rounds.len(),
            us(&Value::Mean),
            us(&Value::Max)
        );
        plots.push(Plot { name, description, svg, legend: Vec::new(), has_points: false });
    }
    if plots.is_empty() {
        notes.push("No cell of this figure has latencies.".into());
    } else {
        notes.push(format!(
            "Area: from the smallest to the biggest of neighboring samples; line: their mean; vertical lines: new \
             rounds. All plots share one axis, from {} to {} us.",
            number(low),
            number(high)
        ));
    }
    Ok(RenderedFigure { plots, table, notes })
}

/// Returns the panel with the series of all rounds, one after the other.
fn series(pool: &Pool<'_>, y: &Axis, factor: f64, color: usize) -> Panel {
    let spans: usize = pool.latencies().map(|latency| latency.series.len()).sum();
    let joined = spans.div_ceil(SPANS).max(1);
    let (mut at, mut marks, mut borders) = (0.0, Vec::new(), Vec::new());
    for latency in pool.latencies() {
        borders.push(at);
        let (mut upper, mut lower, mut mean) = (Vec::new(), Vec::new(), Vec::new());
        for span in latency.series.chunks(joined).map(join) {
            let us = |ns: u64| (ns as f64 * factor).max(1e-3);
            for end in [at, at + span.count as f64] {
                upper.push((end, us(span.max)));
                lower.push((end, us(span.min)));
            }
            mean.push((at + span.count as f64 / 2.0, us(span.mean)));
            at += span.count as f64;
        }
        lower.reverse();
        upper.extend(lower);
        marks.push(Mark::Area(upper, color));
        marks.push(Mark::Line(mean, LineStyle { color, ..LineStyle::default() }));
    }
    let ends = y.ends();
    let upright = |x: &f64| {
        let line = vec![(*x, 10f64.powf(ends.0)), (*x, 10f64.powf(ends.1))];
        Mark::Line(line, LineStyle { color: 5, dash: 2, shape: 0 })
    };
    marks.extend(borders.iter().skip(1).map(upright));
    Panel { x: Axis::linear("sample", 0.0, at.max(1.0)), y: y.clone(), marks }
}

fn join(spans: &[Span]) -> Span {
    let count: u64 = spans.iter().map(|span| span.count).sum();
    let weighted = |span: &Span| u128::from(span.mean) * u128::from(span.count);
    Span {
        count,
        min: spans.iter().map(|span| span.min).min().unwrap_or(0),
        mean: u64::try_from(spans.iter().map(weighted).sum::<u128>() / u128::from(count.max(1))).unwrap_or(u64::MAX),
        max: spans.iter().map(|span| span.max).max().unwrap_or(0),
    }
}

/// Returns the panel with the shares of samples by latency, on the axis of the series.
fn histogram(pool: &Pool<'_>, mut y: Axis, factor: f64, color: usize) -> Panel {
    let (low, high) = y.ends();
    let edges: Vec<f64> = (0..=BINS).map(|bin| 10f64.powf(low + (high - low) * bin as f64 / BINS as f64)).collect();
    let ns: Vec<f64> = edges.iter().map(|us| us / factor).collect();
    let shares = pool.distribution().bins(&ns);
    let least = (1.0 / pool.distribution().count().max(1) as f64).max(SHARE_MIN);
    let bar = |(pair, share): (&[f64], &f64)| {
        (*share > 0.0).then(|| Mark::Rectangle([(least / 2.0, pair[0]), (share.max(least), pair[1])], color, 0.75))
    };
    let marks = edges.windows(2).zip(&shares).filter_map(bar).collect();
    y.title.clear();
    let x = Axis::logarithmic("share of samples", least / 2.0, 1.0).with_few_ticks();
    Panel { x, y, marks }
}
