//! Plots of runs as SVG, without fonts, scripts or files of others.
//!
//! Colours are those of a light page. [`STYLE`] has rules for a dark one, by the colours that the SVG names.

use super::outcome::Cell;
use crate::error::{Error, Result};
use plotters::prelude::*;

/// Of the drawing; the page scales it.
const SIZE: (u32, u32) = (860, 340);
/// Points that a line is drawn with at most: some for each column of the drawing.
const POINTS_MAX: u64 = 1500;
/// Steps of a cumulative count in a second.
const STEPS: u64 = 20;

/// Axes and letters; the grid.
const INK: RGBColor = RGBColor(0x33, 0x37, 0x3d);
const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);

/// Colours of lines.
pub const COLOURS: [&str; 6] = ["#1A66CC", "#D1570C", "#1B8044", "#8A3FC4", "#C2185B", "#6B7280"];

/// What a page with plots needs.
pub const STYLE: &str = r##"
figure.plot { margin: 1rem 0 1.5rem; }
figure.plot svg { width: 100%; height: auto; max-width: 860px; }
figure.plot ul { list-style: none; padding: 0; margin: 0.3rem 0; display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; font-size: 0.9rem; }
figure.plot li::before { content: ""; display: inline-block; width: 1.4em; border-top: 3px solid var(--line); margin-right: 0.4em; vertical-align: middle; }
@media (prefers-color-scheme: dark) {
  svg [stroke="#33373D"] { stroke: #c6cbd3; }
  svg [fill="#33373D"] { fill: #c6cbd3; }
  svg [stroke="#E3E6EA"] { stroke: #343941; }
  svg [stroke="#1A66CC"] { stroke: #6aa7f8; }
  svg [stroke="#D1570C"] { stroke: #f5924e; }
  svg [stroke="#1B8044"] { stroke: #53c27f; }
  svg [stroke="#8A3FC4"] { stroke: #c08af0; }
  svg [stroke="#C2185B"] { stroke: #f27aa6; }
  svg [stroke="#6B7280"] { stroke: #9aa3b0; }
  figure.plot li[style*="#1A66CC"]::before { border-color: #6aa7f8; }
  figure.plot li[style*="#D1570C"]::before { border-color: #f5924e; }
  figure.plot li[style*="#1B8044"]::before { border-color: #53c27f; }
  figure.plot li[style*="#8A3FC4"]::before { border-color: #c08af0; }
  figure.plot li[style*="#C2185B"]::before { border-color: #f27aa6; }
  figure.plot li[style*="#6B7280"]::before { border-color: #9aa3b0; }
}
"##;

/// A line of a plot, in pieces: between two pieces there are samples that did not arrive.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// The place of its colour in [`COLOURS`].
    pub colour: usize,
    /// Its points.
    pub pieces: Vec<Vec<(f64, f64)>>,
}

/// What a plot says of its axes.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Of the x axis.
    pub x: &'static str,
    /// Of the y axis.
    pub y: &'static str,
}

/// The cumulative count of a run against seconds, as figure 5 of the paper.
#[must_use]
pub fn cumulative((name, colour): (String, usize), cell: &Cell) -> Line {
    let steps = cell.series.span_seconds() * STEPS;
    let counts = cell.series.cumulative(1_000_000_000 / STEPS, steps);
    let point = |(count, step): (u64, u64)| (step as f64 / STEPS as f64, count as f64);
    let points = std::iter::once((0.0, 0.0)).chain(counts.into_iter().zip(1..).map(point)).collect();
    Line { name, colour, pieces: vec![points] }
}

/// The normalised latency of a run in ms against the number of the sample, as figure 6. Of the samples that fall into one column, the smallest and
/// the largest are drawn.
#[must_use]
pub fn normalised((name, colour): (String, usize), cell: &Cell) -> Line {
    let column = |number: u64| number * POINTS_MAX / 2 / cell.series.sent.max(1);
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut last: Option<(u64, usize)> = None;
    for (number, ns) in cell.series.normalised() {
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
    Line { name, colour, pieces }
}

/// Leaves two points of a column: the smallest and the largest, in the order of their numbers.
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
    let mut svg = String::new();
    let failed = |why: &dyn std::fmt::Display| Error::Usage(format!("a plot cannot be drawn: {why}"));
    draw_into(&mut svg, axes, lines).map_err(|why| failed(&why))?;
    Ok(svg)
}

type Drawing<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw_into<'a>(svg: &'a mut String, axes: Axes, lines: &[Line]) -> std::result::Result<(), Drawing<'a>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let points = || lines.iter().flat_map(|line| line.pieces.iter().flatten());
    let (mut x, mut y) = ((0.0, 1.0_f64), (0.0_f64, 1.0_f64));
    for (at, value) in points() {
        x.1 = x.1.max(*at);
        y = (y.0.min(*value), y.1.max(*value));
    }
    let mut chart = ChartBuilder::on(&root)
        .margin(8)
        .margin_right(20)
        .x_label_area_size(44)
        .y_label_area_size(66)
        .build_cartesian_2d(x.0..x.1, y.0..y.1 * 1.04)?;
    let text = |size: i32| ("sans-serif", size, &INK).into_text_style(&root);
    chart
        .configure_mesh()
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .label_style(text(13))
        .axis_desc_style(text(14))
        .x_desc(axes.x)
        .y_desc(axes.y)
        .x_labels(11)
        .y_labels(7)
        .x_label_formatter(&|value| grouped(*value))
        .y_label_formatter(&|value| grouped(*value))
        .draw()?;
    for line in lines {
        let style = rgb(line.colour).stroke_width(2);
        for piece in &line.pieces {
            // A single sample between lost ones is a short line.
            let end = piece.last().map(|(at, value)| (at + x.1 / 1000.0, *value));
            let points = piece.iter().copied().chain(end.filter(|_| piece.len() == 1));
            chart.draw_series(LineSeries::new(points, style))?;
        }
    }
    root.present()
}

fn rgb(place: usize) -> RGBColor {
    let octet = |at: usize| u8::from_str_radix(&COLOURS[place % COLOURS.len()][at..at + 2], 16).unwrap_or(0);
    RGBColor(octet(1), octet(3), octet(5))
}

/// A number with commas between thousands.
fn grouped(value: f64) -> String {
    if value.abs() < 10.0 && value.fract().abs() > 1e-9 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect(); // tidy-allow(dropped-cause): digits
    format!("{}{}", if value <= -0.5 { "-" } else { "" }, groups.join(","))
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
        let line = normalised(("one".into(), 0), &cell);
        assert_eq!(line.pieces.len(), 2);
        assert_eq!((line.pieces[0].last(), line.pieces[1].first()), (Some(&(99.0, 0.0)), Some(&(102.0, 0.0))));
        let mut piece = vec![(0.0, 1.0), (1.0, 9.0), (2.0, 5.0), (3.0, 2.0)];
        thin(&mut piece, 1);
        assert_eq!(piece, [(0.0, 1.0), (1.0, 9.0), (3.0, 2.0)]);
    }

    #[test]
    fn drawing_is_an_svg_with_the_colours_that_the_style_knows() {
        let outcome = outcome();
        let lines: Vec<_> =
            outcome.cells.iter().zip(0..).map(|(cell, colour)| cumulative(("one".into(), colour), cell)).collect();
        let svg = draw(Axes { x: "time (s)", y: "updates" }, &lines).expect("it can be drawn");
        assert!(svg.starts_with("<svg") && svg.contains("time (s)"), "{svg}");
        for colour in COLOURS[..3].iter().chain(&["#33373D", "#E3E6EA"]) {
            assert!(svg.contains(colour), "{colour}: {svg}");
        }
        for colour in COLOURS {
            assert!(STYLE.contains(&format!("[stroke=\"{colour}\"]")), "{colour} has none on a dark page");
        }
    }

    #[test]
    fn numbers_of_axes_are_grouped() {
        let of = |value| grouped(value);
        assert_eq!(
            [of(0.0), of(2.5), of(-20.0), of(5000.0), of(1_234_567.0)],
            ["0", "2.5", "-20", "5,000", "1,234,567"]
        );
    }
}
