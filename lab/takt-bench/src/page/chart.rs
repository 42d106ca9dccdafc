//! Plot rendering to SVG. A plot has one or more panels side by side; marks are in values, not in
//! pixels.

use super::axis::Axis;
use super::escape;
use super::style::{COLORS, GRID, INK, color};
use crate::error::{Error, Result};
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width of a plot in pixels; the page scales it.
pub const WIDTH: u32 = 860;
/// Height of a plot of lines in pixels.
pub const HEIGHT: u32 = 340;
/// Font size. Plotters divides it by 1.24.
const LETTERS: i32 = 15;
/// Dash patterns of lines: length and gap; the first is solid.
const DASHES: [(u32, u32); 4] = [(0, 0), (10, 5), (3, 4), (18, 6)];
/// Number of point shapes.
const SHAPES: usize = 5;

/// Color, dash and point shape of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineStyle {
    /// Index of the color in [`COLORS`], modulo its length.
    pub color: usize,
    /// Index of the dash pattern, modulo their number.
    pub dash: usize,
    /// Index of the point shape, modulo their number.
    pub shape: usize,
}

/// Drawn element of a panel.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// Line through points.
    Line(Vec<(f64, f64)>, LineStyle),
    /// Points without a line.
    Points(Vec<(f64, f64)>, LineStyle),
    /// Filled area between points.
    Area(Vec<(f64, f64)>, usize),
    /// Rectangle between two corners, with an opacity.
    Rectangle([(f64, f64); 2], usize, f64),
    /// Vertical interval: x, low, high.
    VerticalInterval(f64, f64, f64, usize),
    /// Horizontal interval: y, low, high.
    HorizontalInterval(f64, f64, f64),
    /// Text to the right of a position.
    TextRight(f64, f64, String),
    /// Text centered at a position.
    TextCentered(f64, f64, String),
}

/// Panel: two axes and the marks between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Marks, from back to front.
    pub marks: Vec<Mark>,
}

type Drawn<'a> = std::result::Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;
type Context<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// Draws panels side by side. `columns` are the left edges of all panels but the first.
///
/// # Errors
/// There is no room for the axes, which is a defect.
pub fn draw(height: u32, panels: &[Panel], columns: &[u32]) -> Result<String> {
    let mut svg = String::new();
    let failed = |why: &dyn std::fmt::Display| Error::Usage(format!("a plot cannot be drawn: {why}"));
    draw_into(&mut svg, height, panels, columns).map_err(|why| failed(&why))?;
    Ok(svg)
}

/// Wraps a drawing with a name and a description for screen readers. `id` is unique in the page.
#[must_use]
pub fn described(svg: &str, id: &str, name: &str, description: &str) -> String {
    let (name, description) = (escape(name), escape(description));
    match svg.split_once('>') {
        Some((open, rest)) => format!(
            "{open} role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{name}</title><desc id=\"{id}-d\">{description}</desc>{rest}"
        ),
        None => svg.to_owned(),
    }
}

/// Returns a drawing as a standalone file, with a background, since it is also shown on dark pages.
#[must_use]
pub fn alone(svg: &str) -> String {
    let background = "<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>";
    match svg.split_once('>') {
        Some((open, rest)) => format!("{open}>{background}{rest}"),
        None => svg.to_owned(),
    }
}

/// Returns the legend key of a line style, as SVG.
#[must_use]
pub fn legend_key(style: LineStyle, has_points: bool) -> String {
    let color = COLORS[style.color % COLORS.len()];
    let (dash, gap) = DASHES[style.dash % DASHES.len()];
    let dashes = if dash == 0 { String::new() } else { format!(" stroke-dasharray=\"{dash} {gap}\"") };
    let shape = match style.shape % SHAPES {
        _ if !has_points => String::new(),
        0 => format!("<circle cx=\"19\" cy=\"6\" r=\"4\" fill=\"{color}\"/>"),
        1 => format!("<rect x=\"15\" y=\"2\" width=\"8\" height=\"8\" fill=\"{color}\"/>"),
        2 => format!("<polygon points=\"19,1 24,10 14,10\" fill=\"{color}\"/>"),
        3 => format!("<path d=\"M15 2 L23 10 M23 2 L15 10\" stroke=\"{color}\" stroke-width=\"2\"/>"),
        _ => format!("<polygon points=\"19,1 24,6 19,11 14,6\" fill=\"{color}\"/>"),
    };
    format!(
        "<svg viewBox=\"0 0 38 12\" aria-hidden=\"true\"><line x1=\"1\" y1=\"6\" x2=\"37\" y2=\"6\" stroke=\"{color}\" stroke-width=\"2\"{dashes}/>{shape}</svg>"
    )
}

fn draw_into<'a>(svg: &'a mut String, height: u32, panels: &[Panel], columns: &[u32]) -> Drawn<'a> {
    let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    let areas = root.split_by_breakpoints(columns, [0; 0]);
    for (panel, area) in panels.iter().zip(&areas) {
        draw_panel(panel, area)?;
    }
    root.present()
}

fn draw_panel<'b>(panel: &Panel, area: &DrawingArea<SVGBackend<'b>, plotters::coord::Shift>) -> Drawn<'b> {
    let title = |axis: &Axis| if axis.title.is_empty() { 0 } else { 22 };
    let labels_of_y = 14 + panel.y.longest_label() as u32 * 7 + title(&panel.y);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(20)
        .x_label_area_size(if panel.x.longest_label() == 0 { 8 } else { 28 } + title(&panel.x))
        .y_label_area_size(if panel.y.longest_label() == 0 { 8 } else { labels_of_y })
        .build_cartesian_2d(panel.x.clone(), panel.y.clone())?;
    let text = ("sans-serif", LETTERS, &INK).into_text_style(area);
    chart
        .configure_mesh()
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .label_style(text.clone())
        .axis_desc_style(text)
        .x_desc(panel.x.title.as_str())
        .y_desc(panel.y.title.as_str())
        .draw()?;
    for mark in &panel.marks {
        draw_mark(&mut chart, panel, mark)?;
    }
    Ok(())
}

fn draw_mark<'b>(chart: &mut Context<'_, 'b>, panel: &Panel, mark: &Mark) -> Drawn<'b> {
    let at = |x: f64, y: f64| (panel.x.place(x), panel.y.place(y));
    let places = |points: &[(f64, f64)]| points.iter().map(|point| at(point.0, point.1)).collect::<Vec<_>>();
    let text = |h: HPos| ("sans-serif", LETTERS).into_font().color(&INK).pos(Pos::new(h, VPos::Center));
    match mark {
        Mark::Line(points, line_style) => {
            let style = color(line_style.color).stroke_width(2);
            match DASHES[line_style.dash % DASHES.len()] {
                (0, _) => chart.draw_series([PathElement::new(places(points), style)]).map(drop),
                (dash, gap) => chart.draw_series([DashedPathElement::new(places(points), dash, gap, style)]).map(drop),
            }
        }
        Mark::Points(points, line_style) => {
            places(points).into_iter().try_for_each(|place| draw_point(chart, place, *line_style))
        }
        Mark::Area(points, place) => {
            chart.draw_series([Polygon::new(places(points), color(*place).mix(0.3))]).map(drop)
        }
        Mark::Rectangle([low, high], place, opacity) => {
            let corners = [at(low.0, low.1), at(high.0, high.1)];
            chart.draw_series([Rectangle::new(corners, color(*place).mix(*opacity).filled())]).map(drop)
        }
        Mark::VerticalInterval(x, low, high, place) => {
            let path = vec![at(*x, *low), at(*x, *high)];
            chart.draw_series([PathElement::new(path, color(*place).stroke_width(1))])?;
            let caps = [at(*x, *low), at(*x, *high)].map(|end| {
                EmptyElement::at(end) + PathElement::new(vec![(-4, 0), (4, 0)], color(*place).stroke_width(1))
            });
            chart.draw_series(caps).map(drop)
        }
        Mark::HorizontalInterval(y, low, high) => {
            let path = vec![at(*low, *y), at(*high, *y)];
            chart.draw_series([PathElement::new(path, INK.stroke_width(1))])?;
            let caps = [at(*low, *y), at(*high, *y)]
                .map(|end| EmptyElement::at(end) + PathElement::new(vec![(0, -4), (0, 4)], INK.stroke_width(1)));
            chart.draw_series(caps).map(drop)
        }
        Mark::TextRight(x, y, words) => {
            let element = EmptyElement::at(at(*x, *y)) + Text::new(words.clone(), (8, 0), text(HPos::Left));
            chart.draw_series([element]).map(drop)
        }
        Mark::TextCentered(x, y, words) => {
            chart.draw_series([Text::new(words.clone(), at(*x, *y), text(HPos::Center))]).map(drop)
        }
    }
}

fn draw_point<'b>(chart: &mut Context<'_, 'b>, point: (f64, f64), line_style: LineStyle) -> Drawn<'b> {
    let style = color(line_style.color).filled();
    match line_style.shape % SHAPES {
        0 => chart.draw_series([Circle::new(point, 4, style)]).map(drop),
        1 => chart.draw_series([EmptyElement::at(point) + Rectangle::new([(-4, -4), (4, 4)], style)]).map(drop),
        2 => chart.draw_series([TriangleMarker::new(point, 5, style)]).map(drop),
        3 => chart.draw_series([Cross::new(point, 4, color(line_style.color).stroke_width(2))]).map(drop),
        _ => {
            let corners = vec![(0, -5), (5, 0), (0, 5), (-5, 0)];
            chart.draw_series([EmptyElement::at(point) + Polygon::new(corners, style)]).map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(marks: Vec<Mark>) -> Panel {
        Panel { x: Axis::linear("seconds", 0.0, 10.0), y: Axis::logarithmic("us <b>", 1.0, 1000.0), marks }
    }

    #[test]
    fn each_mark_is_in_the_drawing() {
        let style = |place| LineStyle { color: place, dash: place, shape: place };
        let marks = vec![
            Mark::Line(vec![(1.0, 1.0), (9.0, 900.0)], style(0)),
            Mark::Line(vec![(1.0, 1.0), (9.0, 900.0)], style(1)),
            Mark::Points(vec![(2.0, 10.0), (3.0, f64::NAN)], style(3)),
            Mark::Area(vec![(1.0, 1.0), (2.0, 2.0), (2.0, 1.0)], 4),
            Mark::Rectangle([(1.0, 1.0), (2.0, 5.0)], 5, 0.5),
            Mark::VerticalInterval(1.0, 1.0, 2.0, 2),
            Mark::HorizontalInterval(10.0, 1.0, 2.0),
            Mark::TextRight(1.0, 1.0, "beside <i>".into()),
            Mark::TextCentered(1.0, 1.0, "around".into()),
        ];
        let svg = draw(HEIGHT, &[panel(marks)], &[]).unwrap();
        for part in ["seconds", "us &lt;b&gt;", "beside &lt;i&gt;", "around", "opacity=\"0.5\"", "<polygon", "1,000"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        for color in COLORS {
            assert!(svg.contains(color), "{color}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn panels_are_side_by_side() {
        let one = draw(HEIGHT, &[panel(Vec::new())], &[]).unwrap();
        let two = draw(HEIGHT, &[panel(Vec::new()), panel(Vec::new())], &[600]).unwrap();
        assert_eq!((one.matches("seconds").count(), two.matches("seconds").count()), (1, 2));
    }

    #[test]
    fn drawing_has_name_and_description() {
        let svg = described("<svg a=\"1\"><g/></svg>", "f1", "a < b", "two");
        assert!(svg.starts_with("<svg a=\"1\" role=\"img\" aria-labelledby=\"f1-t f1-d\"><title id=\"f1-t\">a &lt; b"));
        assert!(svg.ends_with("<desc id=\"f1-d\">two</desc><g/></svg>"), "{svg}");
    }

    #[test]
    fn keys_differ_by_more_than_their_color() {
        let keys: std::collections::BTreeSet<String> = (0..5)
            .map(|number| legend_key(LineStyle { color: 0, dash: 0, shape: number }, true))
            .chain((1..4).map(|number| legend_key(LineStyle { color: 0, dash: number, shape: 0 }, true)))
            .collect();
        assert_eq!(keys.len(), 8);
    }
}
