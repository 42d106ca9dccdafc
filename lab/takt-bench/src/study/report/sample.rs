//! Synthetic results for tests.

use crate::study::cell::{Cell, Disturbance, Latency, Measured, Measurement, Outcome};
use crate::study::directory::{Header, Missing, Results};
use crate::study::file::{Campaign, Length};
use crate::study::system::System;
use std::collections::BTreeMap;

/// Campaign with a figure in each form.
pub const CAMPAIGN: &str = r#"
name = "sample"
title = "Round trips & streams <synthetic>"
source = "No publication: synthetic values"
notes = ["Values are made from a formula. They describe no system."]
rounds = 3
[[summary]]
what = "Round trip of 16 B"
workload = "rtt"
where = { size = 16, reliability = "reliable" }
value = "p50"
system = "two"
beside = ["three", "one", "four"]
limit = "one"
[[summary]]
what = "Rate"
workload = "rate"
value = "received_hz"
system = "one"
beside = ["two", "three"]
[[workload]]
name = "rtt"
kind = "round-trip"
systems = ["one", "two", "three"]
parameters = { size = [16, 256, 4096], reliability = ["reliable", "best-effort"] }
measure = { warmup = 100, count = 2000 }
[[workload.figure]]
form = "lines"
title = "Lines"
value = "mean"
by = "size"
halved = true
caption = "A caption <of> lines."
paper = [{ system = "One", at = "16 B, reliable", value = "147 us" }, { system = "Nobody", value = "1 us" }]
[[workload.figure]]
form = "bars"
title = "Bars"
value = "p99"
by = "size"
where = { reliability = "reliable" }
[[workload.figure]]
form = "series"
title = "Series"
where = { reliability = "reliable", size = 16 }
[[workload.figure]]
form = "histogram"
title = "Histogram"
where = { reliability = "reliable", size = 16 }
[[workload.figure]]
form = "ecdf"
title = "Ecdf"
where = { reliability = "reliable", size = 16 }
[[workload.figure]]
form = "heat-map"
title = "Heat map"
value = "p99"
by = "reliability"
across = "size"
[[workload.figure]]
form = "gains"
title = "Gains"
baseline = "two"
where = { reliability = "reliable", size = 16 }
paper = [{ system = "Old product", here = ["one"], value = "+30 %" }, { system = "Old product", here = ["five"], value = "+3 %" }]
[[workload.figure]]
form = "statistics"
title = "Statistics"
where = { reliability = "reliable" }
paper = [{ system = "One", at = "16 B", value = "min 1, max 9, mean 3, stdev 2 us" }]
[[workload.figure]]
form = "t-test"
title = "Tests"
by = "size"
where = { reliability = "reliable" }
[[workload.figure]]
form = "percentiles"
title = "Percentiles"
where = { reliability = "reliable", size = 16 }
[[workload]]
name = "rate"
kind = "stream"
systems = ["one", "two", "three"]
parameters = { size = [32] }
[[workload.figure]]
form = "bars"
title = "Rates"
value = "received_hz"
[[workload.figure]]
form = "gains"
title = "Gains of rates"
value = "received_hz"
baseline = "two"
[[workload.figure]]
form = "table"
title = "Table"
"#;

/// Returns a system with this name.
pub fn system(name: &str, title: &str, batches: bool) -> System {
    let value = serde_json::json!({
        "name": name, "title": title, "program": name, "class": "dds", "profile": "default", "transport": "udp",
        "batches": batches, "except": ["type=complex: it has no such type"],
    });
    serde_json::from_value(value).unwrap()
}

/// Returns a measurement of latencies around `mean_ns`, in a round.
pub fn latencies(cell: &Cell, round: u32, mean_ns: u64, count: u64) -> Measurement {
    let mut random = fastrand::Rng::with_seed(mean_ns ^ (u64::from(round) << 20));
    let drift = 1.0 + f64::from(round) * 0.01;
    let one = |_| {
        let tail = if random.u32(0..200) == 0 { random.f64() * 8.0 } else { 0.0 };
        let spread: f64 = (0..4).map(|_| random.f64()).sum::<f64>() / 4.0 - 0.5;
        (mean_ns as f64 * drift * (1.0 + 0.3 * spread + tail)) as u64
    };
    let latency = Latency::of((0..count).map(one).collect());
    let figures = BTreeMap::from([("cpu_us".to_owned(), mean_ns as f64 / 2e3), ("lost".to_owned(), 0.0)]);
    measurement(cell, round, Outcome::Measured(Box::new(Measured { figures, latency, ..Measured::default() })))
}

/// Returns a measurement with an outcome.
pub fn measurement(cell: &Cell, round: u32, outcome: Outcome) -> Measurement {
    Measurement {
        cell: cell.clone(),
        round,
        turn: 0,
        at: 1_795_429_508 + u64::from(round) * 60,
        disturbance: Disturbance { foreign: 0.01, tries: 1, ..Disturbance::default() },
        commands: vec![format!("{} ping size=16 addr=127.0.0.1", cell.system), format!("{} pong", cell.system)],
        outcome,
    }
}

/// Returns results without measurements for systems with these names, titles and batching.
pub fn empty(systems: &[(&str, &str, bool)]) -> Results {
    Results {
        header: Header {
            campaign: Campaign::parse(CAMPAIGN, Length::Normal).unwrap(),
            length: Length::Normal,
            systems: systems.iter().map(|(name, title, batches)| system(name, title, *batches)).collect(),
            missing: vec![Missing { system: "four".into(), why: "it is not built: make <all>".into() }],
            roles: Default::default(),
            build: "0.1.0 (abc), release".into(),
            command: ["takt", "bench", "run", "sample.toml"].map(str::to_owned).to_vec(),
        },
        environment: serde_json::json!({"kernel": "6.1", "cpu": {"model": "A & B", "cores": [0, 1]}}),
        measurements: Vec::new(),
    }
}

/// Returns results of three systems: the third batches, was disturbed once, and failed once.
pub fn results() -> Results {
    let mut results = empty(&[("one", "One", false), ("two", "Two <2>", false), ("three", "Three", true)]);
    let campaign = results.header.campaign.clone();
    for (place, system) in ["one", "two", "three"].into_iter().enumerate() {
        for workload in &campaign.workloads {
            for (number, values) in workload.parameters.combinations().into_iter().enumerate() {
                let cell = Cell { workload: workload.name.clone(), system: system.into(), values };
                for round in 0..campaign.rounds {
                    let mean = 30_000 * (place as u64 + 2) + 9_000 * number as u64;
                    let rate = 1e5 * (place + 1) as f64 + 1e3 * f64::from(round);
                    let figures = BTreeMap::from([("received_hz".to_owned(), rate)]);
                    results.measurements.push(match workload.name.as_str() {
                        "rtt" => latencies(&cell, round, mean, 2000),
                        _ => measurement(
                            &cell,
                            round,
                            Outcome::Measured(Box::new(Measured { figures, latency: None, ..Measured::default() })),
                        ),
                    });
                }
            }
        }
    }
    let mut third = results.measurements.iter_mut().filter(|one| one.cell.system == "three");
    let first = third.next().unwrap();
    first.disturbance = Disturbance { foreign: 0.4, disturbed: true, tries: 3, ..Disturbance::default() };
    third.next().unwrap().outcome = Outcome::Failed { why: "ended with <code> 3".into() };
    results
}

/// Returns results of `count` systems.
pub fn of_systems(count: usize) -> Results {
    let names: Vec<(String, String)> =
        (0..count).map(|number| (format!("s{number}"), format!("System number {number}"))).collect();
    let systems: Vec<(&str, &str, bool)> =
        names.iter().map(|(name, title)| (name.as_str(), title.as_str(), false)).collect();
    let mut results = empty(&systems);
    for workload in &mut results.header.campaign.workloads {
        workload.systems = names.iter().map(|(name, _)| name.clone()).collect();
    }
    let workload = results.header.campaign.workloads[0].clone();
    for (place, (name, _)) in names.iter().enumerate() {
        for values in workload.parameters.combinations() {
            let cell = Cell { workload: workload.name.clone(), system: name.clone(), values };
            results.measurements.push(latencies(&cell, 0, 20_000 + 5_000 * place as u64, 200));
        }
    }
    results
}
