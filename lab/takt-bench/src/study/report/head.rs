//! Head of a report: campaign, systems and environment.

use super::rendered_figure::Table;
use crate::study::directory::Results;
use crate::study::file::site::Switch;
use crate::study::file::{Length, Site};
use crate::study::system::{Class, Profile};
use serde_json::Value;

/// Returns the facts of the campaign, as pairs of a name and a text.
#[must_use]
pub fn facts(results: &Results) -> Vec<(&'static str, String)> {
    let header = &results.header;
    let length = match header.length {
        Length::Quick => "quick: a smoke test, not for conclusions",
        Length::Normal => "as in the campaign file",
        Length::Paper => "as long as in the publication",
    };
    let mut facts = Vec::new();
    if let Some(source) = &header.campaign.source {
        facts.push(("source", source.clone()));
    }
    facts.push(("build", header.build.clone()));
    facts.push(("command", header.command.join(" ")));
    facts.push((
        "length",
        format!("{length}; {} rounds, each job once a round, in random order", header.campaign.rounds),
    ));
    facts.push(("site", site(&header.campaign.site)));
    let times = results.measurements.iter().map(|measurement| measurement.at);
    if let (Some(first), Some(last)) = (times.clone().min(), times.max()) {
        facts.push(("measured", format!("{} to {}", crate::page::utc(first), crate::page::utc(last))));
    }
    facts.push(("measurements", results.measurements.len().to_string()));
    facts
}

fn site(site: &Site) -> String {
    match site {
        Site::Loopback => "one host, loopback of a network namespace".into(),
        Site::Link => "two hosts at the ends of one virtual link".into(),
        Site::Lab(lab) => {
            let parts = [
                lab.file.as_ref().map(|file| format!("takt lab, {}", file.display())),
                lab.rate.as_ref().map(|rate| format!("link of {rate}")),
                lab.queue.map(|frames| format!("queue of {frames} frames")),
                lab.switch.map(|switch| match switch {
                    Switch::Bridge => "switch: a bridge of the kernel".to_owned(),
                    Switch::OpenVswitch => "switch: Open vSwitch".to_owned(),
                }),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            format!("two hosts of a network on one machine; {}", parts.join(", "))
        }
        Site::Ssh(ssh) => {
            let [one, other] = &ssh.hosts;
            let clocks = if ssh.clock.is_some() { "one clock" } else { "two clocks" };
            format!("two machines over ssh, {one} measures and {other} answers; {clocks}")
        }
    }
}

/// Returns the table of the measured systems.
#[must_use]
pub fn systems(results: &Results) -> Table {
    let mut table =
        Table::new(&["system", "name", "class", "profile", "transport", "batches", "program", "version", "document"]);
    for system in &results.header.systems {
        let class = match system.class {
            Class::Dds => "DDS",
            Class::Middleware => "middleware",
            Class::Platform => "platform",
            Class::Limit => "limit",
        };
        let profile = match system.profile {
            Profile::Default => "default",
            Profile::Tuned => "tuned",
        };
        let program = std::iter::once(&system.program).chain(&system.arguments).map(String::as_str);
        table.rows.push(vec![
            system.title.clone(),
            system.name.clone(),
            class.into(),
            profile.into(),
            system.transport.clone(),
            if system.batches { "yes" } else { "no" }.into(),
            program.collect::<Vec<_>>().join(" "),
            version(results, &system.name, &system.program),
            system.document.clone().unwrap_or_else(|| "none".into()),
        ]);
    }
    table
}

/// Returns the version in the environment, by name of the system or of its program.
fn version(results: &Results, name: &str, program: &str) -> String {
    let versions = &results.environment["versions"];
    let found = [name, program].iter().find_map(|key| versions.get(key)).or_else(|| results.environment.get(program));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.get("version").and_then(Value::as_str).unwrap_or("not recorded").to_owned(),
        None if program == "takt" => results.header.build.clone(),
        None => "not recorded".into(),
    }
}

/// Returns the table of systems that were not measured, with reasons.
#[must_use]
pub fn missing(results: &Results) -> Table {
    let mut table = Table::new(&["system", "reason"]);
    table.rows.extend(results.header.missing.iter().map(|one| vec![one.system.clone(), one.why.clone()]));
    table
}

/// Returns the flattened environment: names such as `cpu.model`, with a text.
#[must_use]
pub fn environment(results: &Results) -> Table {
    let mut table = Table::new(&["item", "value"]);
    flatten("", &results.environment, &mut table.rows);
    table
}

fn flatten(name: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let dot = if name.is_empty() { "" } else { "." };
                flatten(&format!("{name}{dot}{field}"), value, rows);
            }
        }
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            for (index, value) in values.iter().enumerate() {
                flatten(&format!("{name}[{index}]"), value, rows);
            }
        }
        Value::Array(values) => {
            rows.push(vec![name.to_owned(), values.iter().map(text).collect::<Vec<_>>().join(", ")]);
        }
        Value::Null if name.is_empty() => {}
        value => rows.push(vec![name.to_owned(), text(value)]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
