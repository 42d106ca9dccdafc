//! Results as CSV (RFC 4180): one row per measurement, and one per cell with its percentiles.

use super::pool::pools;
use super::value::{PERCENTILES, Value, percent};
use crate::study::cell::{Measurement, Outcome, UNITS};
use crate::study::directory::Results;
use std::collections::BTreeSet;

/// CSV files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csv {
    /// Contents of `measurements.csv`.
    pub measurements: String,
    /// Contents of `percentiles.csv`.
    pub percentiles: String,
}

/// Returns the CSV files of results.
#[must_use]
pub fn csv(results: &Results) -> Csv {
    let parameters: BTreeSet<&String> =
        results.measurements.iter().flat_map(|measurement| measurement.cell.values.keys()).collect();
    Csv { measurements: measurements(results, &parameters), percentiles: percentiles(results, &parameters) }
}

const SUMMARY: [&str; 12] = [
    "count",
    "min_us",
    "mean_us",
    "p50_us",
    "p90_us",
    "p99_us",
    "p99.9_us",
    "p99.99_us",
    "p99.999_us",
    "p99.9999_us",
    "max_us",
    "stdev_us",
];

fn measurements(results: &Results, parameters: &BTreeSet<&String>) -> String {
    let mut figures: BTreeSet<String> = UNITS.iter().map(|unit| unit.name.to_owned()).collect();
    figures.extend(results.measurements.iter().filter_map(measured).flat_map(|one| one.figures.keys().cloned()));
    let mut head: Vec<String> = ["workload", "system"].map(str::to_owned).to_vec();
    head.extend(parameters.iter().map(ToString::to_string));
    head.extend(
        ["round", "turn", "at", "outcome", "why", "disturbed", "foreign", "steal", "load", "tries"].map(str::to_owned),
    );
    head.extend(SUMMARY.map(str::to_owned));
    head.extend(figures.iter().cloned());
    let mut text = line(&head);
    for measurement in &results.measurements {
        let cell = &measurement.cell;
        let mut row = vec![cell.workload.clone(), cell.system.clone()];
        row.extend(parameters.iter().map(|name| cell.values.get(*name).map(ToString::to_string).unwrap_or_default()));
        row.extend([measurement.round.to_string(), measurement.turn.to_string(), measurement.at.to_string()]);
        match &measurement.outcome {
            Outcome::Measured(_) => row.extend(["measured".into(), String::new()]),
            Outcome::Failed { why } => row.extend(["failed".into(), why.clone()]),
        }
        let disturbance = &measurement.disturbance;
        row.push(disturbance.disturbed.to_string());
        row.extend([disturbance.foreign, disturbance.steal, disturbance.load].map(|share| share.to_string()));
        row.push(disturbance.tries.to_string());
        row.extend(summary(measurement));
        let figure = |name: &String| measured(measurement).and_then(|one| one.figures.get(name)).copied();
        row.extend(figures.iter().map(|name| finite(figure(name))));
        text.push_str(&line(&row));
    }
    text
}

fn measured(measurement: &Measurement) -> Option<&crate::study::cell::Measured> {
    match &measurement.outcome {
        Outcome::Measured(measured) => Some(measured),
        Outcome::Failed { .. } => None,
    }
}

/// Returns the summary fields, with percentiles only where there are enough samples.
fn summary(measurement: &Measurement) -> Vec<String> {
    let Some(measured) = measured(measurement).filter(|one| one.latency.is_some()) else {
        return vec![String::new(); SUMMARY.len()];
    };
    let count = measured.latency.as_ref().map_or(0, |latency| latency.summary.count);
    let of = |value: Value| finite(value.of_round(measured));
    let mut row = vec![count.to_string(), of(Value::Min), of(Value::Mean)];
    row.extend(PERCENTILES.map(|p| of(Value::Quantile(p))));
    row.extend([of(Value::Max), of(Value::Deviation)]);
    row
}

fn percentiles(results: &Results, parameters: &BTreeSet<&String>) -> String {
    let mut head: Vec<String> = ["workload", "system"].map(str::to_owned).to_vec();
    head.extend(parameters.iter().map(ToString::to_string));
    head.extend(
        ["rounds", "disturbed", "count", "min_us", "mean_us", "max_us", "stdev_us", "pdv_us"].map(str::to_owned),
    );
    for p in PERCENTILES.map(percent) {
        head.extend([format!("p{p}_us"), format!("p{p}_low_us"), format!("p{p}_high_us")]);
    }
    let mut text = line(&head);
    for workload in &results.header.campaign.workloads {
        for pool in pools(results, workload).iter().filter(|pool| pool.distribution().count() > 0) {
            let cell = pool.cell;
            let mut row = vec![cell.workload.clone(), cell.system.clone()];
            row.extend(
                parameters.iter().map(|name| cell.values.get(*name).map(ToString::to_string).unwrap_or_default()),
            );
            row.extend([pool.rounds.len().to_string(), pool.disturbed().to_string()]);
            row.push(pool.distribution().count().to_string());
            for value in [Value::Min, Value::Mean, Value::Max, Value::Deviation, Value::Variation] {
                row.push(finite(pool.estimate(&value).map(|one| one.value)));
            }
            for p in PERCENTILES {
                let estimate = pool.estimate(&Value::Quantile(p));
                let interval = estimate.as_ref().and_then(|one| one.interval);
                row.push(finite(estimate.map(|one| one.value)));
                row.extend([finite(interval.map(|one| one.low)), finite(interval.map(|one| one.high))]);
            }
            text.push_str(&line(&row));
        }
    }
    text
}

fn finite(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

fn line(fields: &[String]) -> String {
    let quoted = |field: &String| match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.clone(),
    };
    format!("{}\r\n", fields.iter().map(quoted).collect::<Vec<_>>().join(","))
}
