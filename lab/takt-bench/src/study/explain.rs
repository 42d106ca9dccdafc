//! Explanation of one cell, which is one workload with one system and one value of each parameter:
//! command lines, configuration, environment, rounds, and a campaign file that measures the cell
//! again.

use super::cell::Outcome;
use super::directory::Results;
use super::file::Campaign;
use super::report::head;
use super::report::pool::{Pool, pools};
use super::report::value::{Value, number, optional};
use crate::error::{Error, Result};
use std::fmt::Write;

/// Maximum number of cell names that an error lists.
const NAMED_MAX: usize = 20;

/// Explains the cell with this name, or else the only cell whose name begins with this text.
///
/// # Errors
/// No name begins with the text, or several do and none is equal to it.
pub fn explain(results: &Results, name: &str) -> Result<String> {
    let campaign = &results.header.campaign;
    let all: Vec<Pool> = campaign.workloads.iter().flat_map(|workload| pools(results, workload)).collect();
    let exact = all.iter().find(|pool| pool.cell.to_string() == name);
    let with_prefix: Vec<&Pool> = all.iter().filter(|pool| pool.cell.to_string().starts_with(name)).collect();
    match (exact, with_prefix.as_slice()) {
        (Some(pool), _) => Ok(text(results, pool)),
        (None, [pool]) => Ok(text(results, pool)),
        (None, []) => {
            let names: Vec<String> = all.iter().map(|pool| pool.cell.to_string()).collect();
            Err(Error::Usage(format!("no name of a cell begins with {name:?}; cells:\n{}", list(&names))))
        }
        (None, several) => {
            let names: Vec<String> = several.iter().map(|pool| pool.cell.to_string()).collect();
            let count = names.len();
            let listed = list(&names);
            Err(Error::Usage(format!("the names of {count} cells begin with {name:?}; give one of them:\n{listed}")))
        }
    }
}

/// Returns a line for each name, up to [`NAMED_MAX`].
fn list(names: &[String]) -> String {
    let mut text: String = names.iter().take(NAMED_MAX).map(|name| format!("  {name}\n")).collect();
    if names.len() > NAMED_MAX {
        text.push_str(&format!("  and {} more\n", names.len() - NAMED_MAX));
    }
    text.trim_end().to_owned()
}

/// Returns the explanation.
fn text(results: &Results, pool: &Pool<'_>) -> String {
    // Writing to a String cannot fail, so the results of `writeln!` are dropped.
    let mut text = format!("cell: {}\n", pool.cell);
    for (name, fact) in head::facts(results) {
        let _ = writeln!(text, "{name}: {fact}");
    }
    if let Some((_, system)) = pool.system {
        let _ = writeln!(text, "system: {}", system.title);
        let _ = writeln!(text, "program: {} {}", system.program, system.arguments.join(" ").trim());
        let document = system.document.as_deref().map(|name| format!(", as {name} advises")).unwrap_or_default();
        let _ = writeln!(text, "profile: {:?}{document}; batches: {}", system.profile, system.batches);
    }
    let workload = results.header.campaign.workloads.iter().find(|workload| workload.name == pool.cell.workload);
    for (key, value) in workload.into_iter().flat_map(|workload| &workload.measure) {
        let _ = writeln!(text, "measure: {key}={value}");
    }
    for row in head::environment(results).rows {
        let _ = writeln!(text, "environment: {}", row.join(": "));
    }
    let commands = pool.rounds.first().copied().or_else(|| pool.failures.first().map(|(one, _)| *one));
    for command in commands.into_iter().flat_map(|measurement| &measurement.commands) {
        let _ = writeln!(text, "command: {command}");
    }
    text.push_str(&rounds(pool));
    for value in ["min", "mean", "p50", "p99", "p99.9", "max", "stdev"].map(Value::named) {
        if let Some(estimate) = pool.estimate(&value) {
            let _ = writeln!(text, "all rounds: {}: {}", value.title(false), number(estimate.value));
        }
    }
    for name in pool.figures() {
        let value = Value::Figure(name.into());
        let median = pool.estimate(&value).map(|estimate| estimate.value);
        let _ = writeln!(text, "median of rounds: {}: {}", value.title(false), optional(median));
    }
    text.push_str(&repetition(&results.header.campaign, pool));
    text
}

/// Returns a line for each round, failed ones included, in order.
fn rounds(pool: &Pool<'_>) -> String {
    let mut all: Vec<_> = pool.rounds.iter().copied().chain(pool.failures.iter().map(|(one, _)| *one)).collect();
    all.sort_by_key(|measurement| measurement.round);
    let line = |measurement: &&super::cell::Measurement| {
        let disturbance = &measurement.disturbance;
        let outcome = match &measurement.outcome {
            Outcome::Failed { why } => format!("failed: {why}"),
            Outcome::Measured(measured) => {
                let latency = measured.latency.as_ref().map(|latency| {
                    let summary = &latency.summary;
                    let raw = latency.raw.as_deref().unwrap_or("not kept");
                    format!("{} samples, mean {} us, max {} us, raw: {raw}; ", summary.count, summary.mean, summary.max)
                });
                let figures = measured.figures.iter().map(|(name, value)| format!("{name} {}", number(*value)));
                format!("{}{}", latency.unwrap_or_default(), figures.collect::<Vec<_>>().join(", "))
            }
        };
        format!(
            "round {} at {}: {outcome}; foreign {:.1} %, steal {:.1} %, load {:.2}, {} tries{}\n",
            measurement.round + 1,
            crate::page::utc(measurement.at),
            disturbance.foreign * 100.0,
            disturbance.steal * 100.0,
            disturbance.load,
            disturbance.tries,
            if disturbance.disturbed { ", disturbed" } else { "" }
        )
    };
    all.iter().map(line).collect()
}

/// Returns instructions and a campaign file that measures this cell alone.
fn repetition(campaign: &Campaign, pool: &Pool<'_>) -> String {
    let Some(workload) = campaign.workloads.iter().find(|workload| workload.name == pool.cell.workload) else {
        return String::new();
    };
    let quoted = |value: &super::parameter::Value| match value {
        super::parameter::Value::Number(number) => number.to_string(),
        super::parameter::Value::Text(text) => format!("{text:?}"),
    };
    let values = pool.cell.values.iter().map(|(name, value)| format!("{name} = [{}]", quoted(value)));
    let keys = workload.measure.iter().map(|(name, value)| format!("{name} = {}", quoted(value)));
    let kind = serde_json::to_value(workload.kind).unwrap_or_default();
    format!(
        "\nTo measure it again, save this as again.toml and run: takt bench run again.toml\n\
         name = \"again\"\ntitle = \"{}\"\nrounds = {}\n{}[[workload]]\nname = {:?}\nkind = {kind}\nsystems = [{:?}]\n\
         parameters = {{ {} }}\nmeasure = {{ {} }}\n",
        pool.cell,
        campaign.rounds,
        site(campaign),
        workload.name,
        pool.cell.system,
        values.collect::<Vec<_>>().join(", "),
        keys.collect::<Vec<_>>().join(", ")
    )
}

/// Returns the site as a line of TOML.
fn site(campaign: &Campaign) -> String {
    let value = serde_json::to_value(&campaign.site).unwrap_or_default();
    format!("site = {}\n", inline(&value))
}

/// Formats a value as an inline TOML value. Keys, strings and numbers have the same form as in
/// JSON.
fn inline(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name} = {}", inline(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Array(values) => {
            format!("[{}]", values.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::Length;
    use super::super::report::sample::results;
    use super::*;

    #[test]
    fn explanation_has_commands_rounds_and_a_campaign_for_the_cell() {
        let results = results();
        let text = explain(&results, "rtt/three/reliability=reliable,size=16").unwrap();
        for part in [
            "command: three ping size=16 addr=127.0.0.1",
            "environment: cpu.model: A & B",
            "round 1 at 2026-11-23",
            "foreign 40.0 %, steal 0.0 %, load 0.00, 3 tries, disturbed",
            "round 2 at 2026-11-23 10:26 UTC: failed: ended with <code> 3",
            "measure: count=2000",
            "raw: not kept",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let file = text.split("takt bench run again.toml\n").nth(1).unwrap();
        let campaign = Campaign::parse(file, Length::Normal).unwrap();
        assert_eq!(campaign.workloads[0].systems, ["three"]);
        assert_eq!(campaign.workloads[0].parameters.combinations().len(), 1);
        assert_eq!(campaign.workloads[0].measure, results.header.campaign.workloads[0].measure);
    }

    #[test]
    fn unique_prefix_of_a_cell_name_suffices() {
        let results = results();
        assert!(explain(&results, "rate/one").unwrap().starts_with("cell: rate/one/size=32\n"));
        let several = explain(&results, "rtt/one").unwrap_err().to_string();
        assert!(
            several.contains(
                "the names of 6 cells begin with \"rtt/one\"; give one of them:\n  rtt/one/reliability=reliable,size=16"
            ),
            "{several}"
        );
        assert!(
            explain(&results, "x")
                .unwrap_err()
                .to_string()
                .contains("no name of a cell begins with \"x\"; cells:\n  rtt")
        );
    }
}
