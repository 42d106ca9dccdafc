//! The tables of a report as Markdown, for documents.

use super::exhibit::{Scene, Table};
use super::html::description;
use super::pool::pools;
use super::{faults, forms, head, published};
use crate::error::Result;
use crate::study::directory::Results;
use std::fmt::Write;

/// The tables of results.
///
/// # Errors
/// A plot, which is made with its table, cannot be drawn.
pub fn markdown(results: &Results) -> Result<String> {
    let campaign = &results.header.campaign;
    let mut text = format!("# {}\n\n", plain(&campaign.title));
    for (name, fact) in head::facts(results) {
        // Writing to a String cannot fail.
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
            let scene = Scene::new(results, workload, figure, &pools);
            let exhibit = forms::exhibit(&scene)?;
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

fn table(table: &Table) -> String {
    let line = |fields: &[String]| format!("| {} |\n", fields.iter().map(|f| plain(f)).collect::<Vec<_>>().join(" | "));
    let mut text = line(&table.head);
    let _ = writeln!(text, "|{}", "---|".repeat(table.head.len()));
    text.extend(table.rows.iter().map(|row| line(row)));
    text.push('\n');
    text
}

/// Text that Markdown shows as it is.
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
