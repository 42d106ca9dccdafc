//! JSON report of pooled results.

use super::pool::{Pool, pools};
use super::value::{PERCENTILES, Value, percent};
use crate::error::{Error, Result};
use crate::statistics::Interval;
use crate::study::directory::{Missing, Results};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Document<'a> {
    title: &'a str,
    build: &'a str,
    command: &'a [String],
    environment: &'a serde_json::Value,
    missing: &'a [Missing],
    cells: Vec<Cell>,
}

#[derive(Serialize)]
struct Cell {
    cell: String,
    workload: String,
    system: String,
    values: BTreeMap<String, crate::study::parameter::Value>,
    batches: bool,
    rounds: usize,
    disturbed: usize,
    failures: Vec<String>,
    samples: u64,
    /// Statistics of latencies in us, and figures, by name.
    statistics: BTreeMap<String, Statistic>,
}

#[derive(Serialize)]
struct Statistic {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<Interval>,
    rounds: Vec<f64>,
}

/// Returns the JSON document of results.
///
/// # Errors
/// The document cannot be serialized, which is a defect.
pub fn json(results: &Results) -> Result<String> {
    let header = &results.header;
    let pooled = header.campaign.workloads.iter().flat_map(|workload| pools(results, workload));
    let document = Document {
        title: &header.campaign.title,
        build: &header.build,
        command: &header.command,
        environment: &results.environment,
        missing: &header.missing,
        cells: pooled.map(|pool| cell(&pool)).collect(),
    };
    let text = serde_json::to_string_pretty(&document).map_err(|e| Error::os("results as JSON", e.into()))?;
    Ok(text + "\n")
}

fn cell(pool: &Pool<'_>) -> Cell {
    let mut values: Vec<(String, Value)> =
        ["min", "mean", "max", "stdev", "pdv"].map(|name| (format!("{name}_us"), Value::named(name))).to_vec();
    values.extend(PERCENTILES.map(|p| (format!("p{}_us", percent(p)), Value::Quantile(p))));
    values.extend(pool.figures().into_iter().map(|name| (name.to_owned(), Value::Figure(name.into()))));
    let statistic = |(name, value): (String, Value)| {
        let estimate = pool.estimate(&value)?;
        Some((name, Statistic { value: estimate.value, interval: estimate.interval, rounds: estimate.rounds }))
    };
    let failure = |(measurement, why): &(&crate::study::cell::Measurement, &str)| {
        format!("round {}: {why}", measurement.round + 1)
    };
    Cell {
        cell: pool.cell.to_string(),
        workload: pool.cell.workload.clone(),
        system: pool.cell.system.clone(),
        values: pool.cell.values.clone(),
        batches: pool.batches(),
        rounds: pool.rounds.len(),
        disturbed: pool.disturbed(),
        failures: pool.failures.iter().map(failure).collect(),
        samples: pool.distribution().count(),
        statistics: values.into_iter().filter_map(statistic).collect(),
    }
}
