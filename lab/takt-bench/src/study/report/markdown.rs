//! Markdown report: the tables, for inclusion in documents.

use super::html::description;
use super::pool::pools;
use super::rendered_figure::{FigureContext, Table};
use super::{faults, forms, head, published, summary};
use crate::error::Result;
use crate::page::chart::{alone, described};
use crate::study::directory::Results;
use crate::study::file::{Figure, Workload};
use std::fmt::Write;

/// Returns the tables of results. `chart` is the address of an image that comes first.
///
/// # Errors
/// A plot, which is created with its table, cannot be drawn.
pub fn markdown(results: &Results, chart: Option<&str>) -> Result<String> {
    let campaign = &results.header.campaign;
    let mut text = format!("# {}\n\n", plain(&campaign.title));
    if let Some(chart) = chart {
        let name = first_figure(results).map(|(_, figure)| figure.title).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(text, "![{}]({chart})\n\n", plain(&name));
    }
    if let Some(summary) = summary::table(results) {
        text.push_str(&table(&summary));
    }
    for (name, fact) in head::facts(results) {
        let _ = writeln!(text, "- {name}: {}", plain(&fact));
    }
    text.push('\n');
    text.extend(campaign.notes.iter().map(|note| format!("{}\n\n", plain(note))));
    let _ = write!(text, "## Systems\n\n{}", table(&head::systems(results)));
    let missing = head::missing(results);
    if !missing.rows.is_empty() {
        let _ = write!(text, "Systems that were not measured:\n\n{}", table(&missing));
    }
    for workload in &campaign.workloads {
        let pools = pools(results, workload);
        let _ = write!(text, "## {}\n\n{}\n\n", plain(&workload.name), plain(&description(workload)));
        let faults = faults::table(results, workload);
        if !faults.rows.is_empty() {
            let _ = write!(text, "Failed, refused, missing and disturbed cells:\n\n{}", table(&faults));
        }
        for figure in &forms::figures(workload) {
            let scene = FigureContext::new(results, workload, figure, &pools);
            let exhibit = forms::render(&scene)?;
            let _ = write!(text, "### {}\n\n", plain(&figure.title));
            if !exhibit.table.rows.is_empty() {
                text.push_str(&table(&exhibit.table));
            }
            let notes = exhibit.notes.iter().chain(&figure.caption).map(|note| plain(note));
            let _ = write!(text, "{}\n\n", notes.collect::<Vec<_>>().join(" "));
            if let Some(published) = published::table(&scene) {
                text.push_str(&table(&published));
            }
        }
    }
    Ok(format!("{}\n", text.trim_end()))
}

/// Returns the first plot of results as a standalone image; `None` if no figure has a plot.
///
/// # Errors
/// The plot cannot be drawn.
pub fn chart(results: &Results) -> Result<Option<String>> {
    let Some((workload, figure)) = first_figure(results) else { return Ok(None) };
    let pools = pools(results, workload);
    let exhibit = forms::render(&FigureContext::new(results, workload, &figure, &pools))?;
    Ok(exhibit.plots.first().map(|plot| alone(&described(&plot.svg, "chart", &plot.name, &plot.description))))
}

fn first_figure(results: &Results) -> Option<(&Workload, Figure)> {
    let workload = results.header.campaign.workloads.first()?;
    forms::figures(workload).into_iter().next().map(|figure| (workload, figure))
}

fn table(table: &Table) -> String {
    let line = |fields: &[String]| format!("| {} |\n", fields.iter().map(|f| plain(f)).collect::<Vec<_>>().join(" | "));
    let mut text = line(&table.head);
    let _ = writeln!(text, "|{}", "---|".repeat(table.head.len()));
    text.extend(table.rows.iter().map(|row| line(row)));
    text.push('\n');
    text
}

/// Escapes text for Markdown.
fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '<' | '*' | '_' | '`' | '[' | '\\' => safe.extend(['\\', letter]),
            '\n' | '\r' => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}
