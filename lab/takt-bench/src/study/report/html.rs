//! HTML report: one page.

use super::pool::{Pool, pools};
use super::rendered_figure::{FigureContext, Plot, RenderedFigure, Table};
use super::{faults, forms, head, published, summary};
use crate::error::Result;
use crate::page::chart::{described, legend_key};
use crate::page::{self, escape};
use crate::study::directory::Results;
use crate::study::file::Workload;
use std::fmt::Write;

/// Returns the page of results.
///
/// # Errors
/// A plot cannot be drawn.
pub fn html(results: &Results) -> Result<String> {
    let campaign = &results.header.campaign;
    let mut body = String::from("<dl class=\"facts\">");
    for (name, text) in head::facts(results) {
        // Writing to a String cannot fail.
        let _ = write!(body, "<dt>{name}</dt><dd>{}</dd>", escape(&text));
    }
    body.push_str("</dl>\n");
    body.extend(campaign.notes.iter().map(|note| format!("<p>{}</p>\n", escape(note))));
    if let Some(summary) = summary::table(results) {
        let _ = write!(body, "<h2>Summary</h2>\n{}", table(&summary));
    }
    body.push_str(&contents(results));
    body.push_str("<h2 id=\"systems\">Systems</h2>\n");
    body.push_str(&table(&head::systems(results)));
    let missing = head::missing(results);
    if !missing.rows.is_empty() {
        let _ = write!(body, "<h3>Systems that were not measured</h3>\n{}", table(&missing));
    }
    for (number, workload) in campaign.workloads.iter().enumerate() {
        body.push_str(&section(results, workload, number)?);
    }
    body.push_str("<h2 id=\"environment\">Environment</h2>\n");
    let environment = head::environment(results);
    match environment.rows.is_empty() {
        true => body.push_str("<p>No environment was recorded.</p>\n"),
        false => body.push_str(&details("Machine, kernel and settings", &environment)),
    }
    Ok(page::page(&campaign.title, &body))
}

fn contents(results: &Results) -> String {
    let link = |(number, workload): (usize, &Workload)| {
        format!("<li><a href=\"#w{number}\">{}</a></li>", escape(&workload.name))
    };
    let workloads: String = results.header.campaign.workloads.iter().enumerate().map(link).collect();
    format!(
        "<nav aria-label=\"Contents\"><ul><li><a href=\"#systems\">Systems</a></li>{workloads}<li><a href=\"#environment\">Environment</a></li></ul></nav>\n"
    )
}

fn section(results: &Results, workload: &Workload, number: usize) -> Result<String> {
    let pools: Vec<Pool> = pools(results, workload);
    let mut text = format!(
        "<h2 id=\"w{number}\">{}</h2>\n<p class=\"facts\">{}</p>\n",
        escape(&workload.name),
        escape(&description(workload))
    );
    let faults = faults::table(results, workload);
    if !faults.rows.is_empty() {
        let _ = write!(text, "<h3>Failed, refused, missing and disturbed cells</h3>\n{}", table(&faults));
    }
    for (place, figure) in forms::figures(workload).iter().enumerate() {
        let scene = FigureContext::new(results, workload, figure, &pools);
        let id = format!("w{number}f{place}");
        let _ = writeln!(text, "<section aria-labelledby=\"{id}\">\n<h3 id=\"{id}\">{}</h3>", escape(&figure.title));
        text.push_str(&rendered_figure(&forms::render(&scene)?, &id));
        if let Some(caption) = &figure.caption {
            let _ = writeln!(text, "<p>{}</p>", escape(caption));
        }
        if let Some(published) = published::table(&scene) {
            let _ = write!(text, "<h4>The publication and this run</h4>\n{}", table(&published));
        }
        text.push_str("</section>\n");
    }
    Ok(text)
}

/// Returns kind, parameters and keys of a workload.
pub(super) fn description(workload: &Workload) -> String {
    let mut parts = vec![workload.kind.title().to_owned()];
    for (name, values) in &workload.parameters.0 {
        parts.push(format!("{name} {}", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")));
    }
    parts.extend(workload.measure.iter().map(|(key, value)| format!("{key}={value}")));
    parts.join("; ")
}

fn rendered_figure(exhibit: &RenderedFigure, id: &str) -> String {
    let mut text = String::new();
    let is_single = exhibit.plots.len() == 1;
    for (number, plot) in exhibit.plots.iter().enumerate() {
        text.push_str(&figure(plot, &format!("{id}p{number}"), !is_single));
    }
    if !exhibit.notes.is_empty() {
        let _ = writeln!(text, "<p class=\"facts\">{}</p>", escape(&exhibit.notes.join(" ")));
    }
    if !exhibit.table.rows.is_empty() {
        match exhibit.plots.is_empty() {
            true => text.push_str(&table(&exhibit.table)),
            false => text.push_str(&details("Data of the figure", &exhibit.table)),
        }
    }
    text
}

fn figure(plot: &Plot, id: &str, is_named: bool) -> String {
    let name =
        |(style, name): &(_, String)| format!("<li>{}{}</li>", legend_key(*style, plot.has_points), escape(name));
    let legend: String = plot.legend.iter().map(name).collect();
    let legend = if legend.is_empty() { legend } else { format!("<ul class=\"legend\">{legend}</ul>") };
    let caption = if is_named { format!("<figcaption>{}</figcaption>", escape(&plot.name)) } else { String::new() };
    format!(
        "<figure class=\"plot\">{caption}<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">{}</div>{legend}</figure>\n",
        escape(&plot.name),
        described(&plot.svg, id, &plot.name, &plot.description)
    )
}

fn table(table: &Table) -> String {
    page::table(&table.head, &table.rows)
}

fn details(summary: &str, content: &Table) -> String {
    format!("<details><summary>{}</summary>{}</details>\n", escape(summary), table(content))
}
