//! Plots of runs, like figures 5 and 6 of the paper.

use super::series::Series;
use crate::error::Result;
use crate::page::axis::Axis;
use crate::page::chart::{self, HEIGHT, LineStyle, Mark, Panel};

/// Maximum number of points of a line: some for each pixel column.
const POINTS_MAX: u64 = 1500;
/// Number of steps of a cumulative count per second.
const STEPS: u64 = 20;

/// Line of a plot, in pieces; samples that did not arrive separate the pieces.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Index of its color in [`COLORS`](crate::page::style::COLORS).
    pub color: usize,
    /// Points of each piece.
    pub pieces: Vec<Vec<(f64, f64)>>,
}

/// Axis titles of a plot.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Title of the x axis.
    pub x: &'static str,
    /// Title of the y axis.
    pub y: &'static str,
}

/// Returns the cumulative count of a run over time in seconds, like figure 5 of the paper.
#[must_use]
pub fn cumulative((name, color): (String, usize), series: &Series) -> Line {
    let steps = series.span_seconds() * STEPS;
    let counts = series.cumulative(1_000_000_000 / STEPS, steps);
    let point = |(count, step): (u64, u64)| (step as f64 / STEPS as f64, count as f64);
    let points = std::iter::once((0.0, 0.0)).chain(counts.into_iter().zip(1..).map(point)).collect();
    Line { name, color, pieces: vec![points] }
}

/// Returns the normalized latency of a run in ms over the sample number, like figure 6. Of the
/// samples in one pixel column, the smallest and the largest are drawn.
#[must_use]
pub fn normalised((name, color): (String, usize), series: &Series) -> Line {
    let column = |number: u64| number * POINTS_MAX / 2 / series.sent.max(1);
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut last: Option<(u64, usize)> = None;
    for (number, ns) in series.normalised() {
        let point = (number as f64, ns as f64 / 1e6);
        match (last, pieces.last_mut()) {
            (Some((before, from)), Some(piece)) if before + 1 == number => {
                let is_new = column(before) != column(number);
                let from = if is_new { piece.len() } else { from };
                piece.push(point);
                thin(piece, from);
                last = Some((number, from));
            }
            _ => {
                pieces.push(vec![point]);
                last = Some((number, 0));
            }
        }
    }
    Line { name, color, pieces }
}

/// Reduces a pixel column to two points, the smallest and the largest, in the order of their
/// numbers.
fn thin(piece: &mut Vec<(f64, f64)>, from: usize) {
    if piece.len() - from <= 2 {
        return;
    }
    let of = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let ends = [piece[from..].iter().min_by(of), piece[from..].iter().max_by(of)].map(|end| end.copied());
    if let [Some(least), Some(most)] = ends {
        piece.truncate(from);
        let (one, other) = if least.0 <= most.0 { (least, most) } else { (most, least) };
        piece.extend([one, other]);
    }
}

/// Draws lines.
///
/// # Errors
/// There is no room for the axes, which is a defect.
pub fn draw(axes: Axes, lines: &[Line]) -> Result<String> {
    let points = || lines.iter().flat_map(|line| line.pieces.iter().flatten());
    let x_max = points().map(|point| point.0).fold(1.0, f64::max);
    let (low, high) = points().fold((0.0_f64, 1.0_f64), |(low, high), point| (low.min(point.1), high.max(point.1)));
    let mark = |piece: &Vec<(f64, f64)>, color: usize| {
        let mut points = piece.clone();
        // A single sample between lost ones becomes a short line.
        points.extend(piece.last().map(|(at, value)| (at + x_max / 1000.0, *value)).filter(|_| piece.len() == 1));
        Mark::Line(points, LineStyle { color, ..LineStyle::default() })
    };
    let marks = lines.iter().flat_map(|line| line.pieces.iter().map(|piece| mark(piece, line.color))).collect();
    let panel = Panel { x: Axis::linear(axes.x, 0.0, x_max), y: Axis::linear(axes.y, low, high), marks };
    chart::draw(HEIGHT, &[panel], &[])
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn lines_break_where_samples_are_missing_and_are_thinned_elsewhere() {
        let mut cell = outcome().cells[0].clone();
        cell.series.arrivals.remove(100);
        cell.series.arrivals.remove(100);
        let line = normalised(("one".into(), 0), &cell.series);
        assert_eq!(line.pieces.len(), 2);
        assert_eq!((line.pieces[0].last(), line.pieces[1].first()), (Some(&(99.0, 0.0)), Some(&(102.0, 0.0))));
        let mut piece = vec![(0.0, 1.0), (1.0, 9.0), (2.0, 5.0), (3.0, 2.0)];
        thin(&mut piece, 1);
        assert_eq!(piece, [(0.0, 1.0), (1.0, 9.0), (3.0, 2.0)]);
    }

    #[test]
    fn drawing_is_an_svg_with_a_color_for_each_line() {
        let outcome = outcome();
        let lines: Vec<_> = outcome
            .cells
            .iter()
            .zip(0..)
            .map(|(cell, color)| cumulative(("one".into(), color), &cell.series))
            .collect();
        let svg = draw(Axes { x: "time (s)", y: "updates" }, &lines).expect("the plot can be drawn");
        assert!(svg.starts_with("<svg") && svg.contains("time (s)"), "{svg}");
        for color in crate::page::style::COLORS[..3].iter().chain(&["#33373D", "#E3E6EA"]) {
            assert!(svg.contains(color), "{color}: {svg}");
        }
    }
}
