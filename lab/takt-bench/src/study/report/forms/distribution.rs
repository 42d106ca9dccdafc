//! Distributions of latencies: histograms, and the tail of the empirical distribution function.
//! Both axes are logarithmic.

use super::super::pool::Pool;
use super::super::rendered_figure::{FigureContext, LINES_MAX, Plot, RenderedFigure, Table};
use super::super::value::{Value, number, optional, percent};
use super::lines::range;
use crate::error::Result;
use crate::page::axis::Axis;
use crate::page::chart::{HEIGHT, LineStyle, Mark, Panel, draw};

/// Number of bins per decade.
const BINS: f64 = 20.0;
/// Maximum number of bins of a fixed width.
const BINS_MAX: usize = 100_000;
/// Number of steps of a tail per decade, of latencies and of shares.
const STEPS: f64 = 60.0;
/// Percentiles of the table.
const PERCENTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// Pieces of a curve, and its end.
type Curve = (Vec<Vec<(f64, f64)>>, (f64, f64));

pub fn histogram(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    let curve = |pool: &Pool<'_>, factor: f64, (low, high): (f64, f64)| -> Curve {
        let edges = edges(scene.figure.bin_us, low, high);
        let ns: Vec<f64> = edges.iter().map(|us| us / factor).collect();
        let least = 0.5 / pool.distribution().count().max(1) as f64;
        let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
        for (pair, share) in edges.windows(2).zip(pool.distribution().bins(&ns)).filter(|(_, share)| *share > 0.0) {
            let step = [(pair[0], share), (pair[1], share)];
            match pieces.last_mut().filter(|piece| piece.last().is_some_and(|last| last.0 == pair[0])) {
                Some(piece) => piece.extend(step),
                None => pieces.push([[(pair[0], least)].as_slice(), step.as_slice()].concat()),
            }
        }
        for piece in &mut pieces {
            piece.extend(piece.last().map(|last| (last.0, least)));
        }
        let max = pool.distribution().max().unwrap_or(0) as f64 * factor;
        (pieces, (max, least))
    };
    let mut figure = plots(scene, "share of samples", curve)?;
    let bins =
        scene.figure.bin_us.map_or_else(|| format!("{BINS} bins for each decade"), |us| format!("Bins of {us} us"));
    figure.notes.push(format!("{bins}; empty ones are left out. Points: the biggest latency of each cell."));
    Ok(figure)
}

/// Returns the edges of bins of a fixed width, or of [`BINS`] per decade. Latencies beyond
/// [`BINS_MAX`] bins are all in the last one.
fn edges(width_us: Option<u32>, low: f64, high: f64) -> Vec<f64> {
    match width_us.map(|us| f64::from(us.max(1))) {
        Some(width) => {
            let first = (low / width).floor();
            let bins = ((high / width).floor() - first + 1.0).min(BINS_MAX as f64) as usize;
            let mut edges: Vec<f64> = (0..=bins).map(|bin| ((first + bin as f64) * width).max(low / 2.0)).collect();
            if let Some(last) = edges.last_mut() {
                *last = last.max(high);
            }
            edges
        }
        None => {
            let bins = ((high / low).log10() * BINS).ceil().max(1.0) as usize;
            (0..=bins).map(|bin| low * 10f64.powf(bin as f64 / BINS)).collect()
        }
    }
}

pub fn ecdf(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    let curve = |pool: &Pool<'_>, factor: f64, _: (f64, f64)| -> Curve {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut before = 1.0;
        for (ns, share) in pool.distribution().tail() {
            let us = (ns as f64 * factor).max(1e-3);
            let is_far = points.last().is_none_or(|last| {
                (us / last.0).log10() > 1.0 / STEPS || (last.1 / share.max(1e-12)).log10() > 1.0 / STEPS
            });
            if is_far {
                points.push((us, before));
                if share > 0.0 {
                    points.push((us, share));
                }
            }
            before = share;
        }
        let max = pool.distribution().max().unwrap_or(0) as f64 * factor;
        let last = points.last().map_or(1.0, |point| point.1);
        points.push((max, last));
        (vec![points], (max, last))
    };
    let mut figure = plots(scene, "share of samples above (1 - F)", curve)?;
    figure.notes.push(
        "Each curve ends at its biggest latency. The last decade of a curve rests on fewer than ten samples.".into(),
    );
    Ok(figure)
}

fn plots(
    scene: &FigureContext<'_>,
    title: &str,
    curve: impl Fn(&Pool<'_>, f64, (f64, f64)) -> Curve,
) -> Result<RenderedFigure> {
    let factor = scene.factor(&Value::Mean) / 1e3;
    let pools: Vec<&Pool> = scene.pools.iter().filter(|pool| pool.distribution().count() > 0).copied().collect();
    let ends = pools.iter().flat_map(|pool| [pool.distribution().min(), pool.distribution().max()]);
    let (low, high) = range(&ends.flatten().map(|ns| (ns as f64 * factor).max(1e-3)).collect::<Vec<_>>());
    let count = pools.iter().map(|pool| pool.distribution().count()).max().unwrap_or(1);
    let mut figure = RenderedFigure { table: table(scene, &pools), ..RenderedFigure::default() };
    if pools.is_empty() {
        figure.notes.push("No cell of this figure has latencies.".into());
        return Ok(figure);
    }
    for (number_of_plot, shown) in pools.chunks(LINES_MAX).enumerate() {
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        for (index, pool) in shown.iter().enumerate() {
            let style = LineStyle { color: index, dash: index, shape: index };
            let (pieces, end) = curve(pool, factor, (low, high * 1.001));
            marks.extend(pieces.into_iter().map(|piece| Mark::Line(piece, style)));
            marks.push(Mark::Points(vec![end], style));
            legend.push((style, scene.full_name(pool)));
        }
        let latency = if scene.is_halved() { "half of the round trip, us" } else { "latency, us" };
        let y = Axis::logarithmic(title, 0.4 / count as f64, 1.0);
        let svg = draw(HEIGHT + 40, &[Panel { x: Axis::logarithmic(latency, low, high), y, marks }], &[])?;
        let name = match pools.len() <= LINES_MAX {
            true => scene.figure.title.clone(),
            false => format!("{}, part {}", scene.figure.title, number_of_plot + 1),
        };
        let description = format!(
            "{title} against latency for {} cells, from {} to {} us. The table has percentiles.",
            shown.len(),
            number(low),
            number(high)
        );
        figure.plots.push(Plot { name, description, svg, legend, has_points: true });
    }
    Ok(figure)
}

fn table(scene: &FigureContext<'_>, pools: &[&Pool<'_>]) -> Table {
    let mut head = vec!["system".to_owned(), "samples".to_owned(), "smallest, us".to_owned()];
    head.extend(PERCENTILES.map(|p| format!("p{}, us", percent(p))));
    head.extend(["biggest, us".to_owned(), "remarks".to_owned()]);
    let row = |pool: &&Pool<'_>| {
        let us = |value: &Value| optional(pool.estimate(value).map(|one| one.value * scene.factor(value)));
        let mut row = vec![scene.full_name(pool), pool.distribution().count().to_string(), us(&Value::Min)];
        row.extend(PERCENTILES.map(|p| us(&Value::Quantile(p))));
        row.extend([us(&Value::Max), pool.remarks().join("; ")]);
        row
    };
    Table { head, rows: pools.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::edges;

    #[test]
    fn fixed_width_bins_begin_at_multiples_and_cover_the_maximum() {
        assert_eq!(edges(Some(10), 73.0, 115.0), [70.0, 80.0, 90.0, 100.0, 110.0, 120.0]);
        assert_eq!(edges(Some(10), 3.0, 15.0)[0], 1.5, "a logarithmic axis has no 0");
        assert_eq!(edges(Some(1), 1.0, 1e9).last(), Some(&1e9));
        assert_eq!(edges(None, 1.0, 10.0).len(), 21);
    }
}
