//! HTML report of the SDN overload experiment: plots, tables and the paper's numbers.

use super::Condition;
use super::category::Category;
use super::outcome::{COLUMNS, Cell, HEAD, Outcome, row};
use super::paper::{Comparison, compare};
use super::plot::{Axes, Line, cumulative, draw, normalised};
use crate::error::Result;
use crate::page::chart::{LineStyle, described, legend_key};
use crate::page::{escape, page, table, utc};
use std::fmt::Write;

const CUMULATIVE: Axes = Axes { x: "time (s)", y: "updates received" };
const NORMALISED: Axes = Axes { x: "sequence number", y: "normalized latency (ms)" };

/// Returns a plot with its legend and caption.
///
/// # Errors
/// The plot cannot be drawn.
pub fn figure(axes: Axes, lines: &[Line], caption: &str) -> Result<String> {
    let name = |line: &Line| {
        let key = legend_key(LineStyle { color: line.color, ..LineStyle::default() }, false);
        format!("<li>{key}{}</li>", escape(&line.name))
    };
    let legend: String = lines.iter().map(name).collect();
    let id: String = caption.chars().filter(char::is_ascii_alphanumeric).collect();
    let svg = described(&draw(axes, lines)?, &id, caption, &format!("{} against {}", axes.y, axes.x));
    let caption = escape(caption);
    Ok(format!(
        "<figure class=\"plot\"><div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"plot\">{svg}</div><ul class=\"legend\">{legend}</ul><figcaption>{caption}</figcaption></figure>\n"
    ))
}

/// Returns the table of runs, in the order of pairs.
#[must_use]
pub fn runs<'a>(cells: impl Iterator<Item = &'a Cell>) -> String {
    let rows: Vec<[String; COLUMNS]> = cells.map(row).collect();
    table(&HEAD, &rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>())
}

/// Returns a sentence on whether the runs under the controller lost samples.
fn verdict(cells: &[&Cell]) -> String {
    let protected: Vec<_> =
        cells.iter().filter(|cell| matches!(cell.run.condition, Condition::Controlled(_))).collect();
    if protected.is_empty() {
        return String::new();
    }
    let lost: u64 = protected.iter().map(|cell| cell.lost()).sum();
    let sent: u64 = protected.iter().map(|cell| cell.sent).sum();
    let p99 = protected.iter().filter_map(|cell| Some(cell.normalised.as_ref()?.p99)).fold(0.0, f64::max);
    let class = if lost == 0 && p99 < 1000.0 { "good" } else { "bad" };
    format!(
        "<p class=\"{class}\"><strong>With the controller {lost} of {sent} samples were lost; p99 of the normalized \
         latency is {:.2} ms in the worst of {} runs.</strong></p>\n",
        p99 / 1000.0,
        protected.len()
    )
}

/// Returns the page of an outcome.
///
/// # Errors
/// A plot cannot be drawn.
pub fn report(outcome: &Outcome) -> Result<String> {
    let mut body = format!(
        "<p class=\"facts\"><code>{}</code><br>Takt {}, {} build; {}; load average before {}; {}</p>\n\
         <p>The experiment of Choi, King and Lee, &quot;OpenFlow makes DDS really real-time&quot; (2016): a sample each {} ms, and twice the rate of \
         the link from another host, one second on, one second off.</p>\n",
        escape(&outcome.command),
        escape(&outcome.version),
        outcome.build,
        escape(&outcome.machine),
        escape(&outcome.load_average),
        utc(outcome.began),
        outcome.plan.period_ns as f64 / 1e6,
    );
    for program in outcome.programs() {
        let cells: Vec<&Cell> = outcome.cells.iter().filter(|cell| cell.run.program == program).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(body, "<h2>{}</h2>", escape(program));
        body.push_str(&verdict(&cells));
        body.push_str("<h3>The paper compared with this run</h3>\n");
        body.push_str(&comparisons(&compare(outcome, program)));
        for octets in &outcome.plan.backgrounds {
            body.push_str(&figures(&cells, *octets)?);
        }
        body.push_str("<h3>All runs</h3>\n");
        let mut sorted = cells.clone();
        let order = |cell: &Cell| {
            (cell.run.category.is_reliable(), cell.run.category.depth().unwrap_or(u32::MAX), cell.run.size)
        };
        sorted.sort_by_key(|cell| order(cell));
        body.push_str(&runs(sorted.into_iter()));
    }
    body.push_str(
        "<p class=\"facts\">lost: of all samples; p50, p99, max: normalized latency; one-way: from write to arrival; late: lateness of the writer; \
         network: from the interface of the writer's host to that of the reader's; bound: of that time, by the controller; \
         above: samples above the bound; unexplained: of these, not explained by stalled processors; behind: samples behind the idle run, in the worst second.</p>\n",
    );
    Ok(page("A pair under an overload of its link", &body))
}

fn comparisons(comparisons: &[Comparison]) -> String {
    let row = |one: &Comparison| {
        vec![one.what.to_owned(), one.paper.to_owned(), one.here.clone().unwrap_or_else(|| "not measured".to_owned())]
    };
    table(&["", "paper", "here"], &comparisons.iter().map(row).collect::<Vec<_>>())
}

/// Returns the color index of a condition.
fn color(condition: Condition) -> usize {
    match condition {
        Condition::Controlled(_) => 0,
        Condition::Overload(_) => 1,
        Condition::Failed(_) => 2,
        Condition::Idle => 5,
    }
}

/// Returns the plots under an overload of such frames: two like figure 5, and one like figure 6 for
/// each pair.
fn figures(cells: &[&Cell], octets: usize) -> Result<String> {
    let name = |cell: &Cell| {
        let condition = match cell.run.condition {
            Condition::Idle => "idle",
            Condition::Overload(_) => "overload",
            Condition::Controlled(_) => "overload, controller",
            Condition::Failed(_) => "overload, controller, failed link",
        };
        let reader = if cell.run.reader > 1 { format!(", reader {}", cell.run.reader) } else { String::new() };
        format!("{}, {} B{reader}, {condition}", cell.run.category, cell.run.size)
    };
    let is_of = |cell: &&&Cell| cell.run.condition.frame_len().is_none_or(|len| len == octets);
    let mut text = format!("<h3>Overload in frames of {octets} B</h3>\n");
    for (kind, is_reliable) in [("best effort", false), ("reliable", true)] {
        let of_kind: Vec<&&Cell> =
            cells.iter().filter(is_of).filter(|cell| cell.run.category.is_reliable() == is_reliable).collect();
        // One idle run and one with the controller, as in the paper, with the largest samples:
        // their lines coincide.
        let is_shown = |cell: &&&&Cell| {
            let most = of_kind.iter().map(|other| (other.run.size, other.run.category.depth() == Some(1))).max();
            matches!(cell.run.condition, Condition::Overload(_) | Condition::Failed(_))
                || Some((cell.run.size, cell.run.category.depth() == Some(1))) == most
        };
        let mut harmed = [1, 3, 4, 2].into_iter().cycle();
        let color = |cell: &Cell, harmed: &mut dyn Iterator<Item = usize>| match cell.run.condition {
            Condition::Overload(_) => harmed.next().unwrap_or(1),
            of_others => color(of_others),
        };
        let shown = of_kind.iter().filter(is_shown);
        let lines: Vec<Line> =
            shown.map(|cell| cumulative((name(cell), color(cell, &mut harmed)), &cell.series)).collect();
        if lines.is_empty() {
            continue;
        }
        let caption = format!("Cumulative updates against time, {kind}, frames of {octets} B (figure 5 of the paper)");
        text.push_str(&figure(CUMULATIVE, &lines, &caption)?);
    }
    let mut pairs: Vec<(Category, usize)> = Vec::new();
    for cell in cells.iter().filter(is_of) {
        if !pairs.contains(&(cell.run.category, cell.run.size)) {
            pairs.push((cell.run.category, cell.run.size));
        }
    }
    for pair in pairs {
        let of_pair = cells.iter().filter(is_of).filter(|cell| (cell.run.category, cell.run.size) == pair);
        let mut of_pair: Vec<_> = of_pair.collect();
        // The largest line first, so that the others are drawn over it.
        of_pair.sort_by_key(|cell| !matches!(cell.run.condition, Condition::Overload(_)));
        let lines: Vec<Line> =
            of_pair.into_iter().map(|cell| normalised((name(cell), color(cell.run.condition)), &cell.series)).collect();
        let caption = format!("Normalized latency, {}, samples of {} B (figure 6 of the paper)", pair.0, pair.1);
        text.push_str(&figure(NORMALISED, &lines, &caption)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn page_is_self_contained_with_plots_tables_and_paper_numbers() {
        let mut outcome = outcome();
        outcome.plan.backgrounds = vec![1400];
        outcome.command = "takt bench <script>".into();
        let page = report(&outcome).expect("the plot can be drawn");
        assert_eq!(page.matches("role=\"img\"").count(), 2, "figures 5 and 6 of one pair");
        for part in ["figure 5 of the paper", "figure 6 of the paper", "30 of 400 lost", "prefers-color-scheme: dark"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.contains("With the controller 0 of 400 samples were lost"), "{page}");
        assert!(!page.contains("<script") && page.contains("takt bench &lt;script&gt;"));
        let outside = ["src=", "@import", "url(", "<link"].iter().find(|word| page.contains(**word));
        assert_eq!(outside, None);
    }
}
