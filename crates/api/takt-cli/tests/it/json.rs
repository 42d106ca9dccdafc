//! `--json` of all commands that end by themselves: valid JSON, with the fields that
//! docs/reference/command-line-json.md lists.

use crate::file::File;
use crate::process::Takt;
use serde_json::Value;
use std::collections::BTreeSet;
use takt_testkit::domain::domain;

const PAGE: &str = include_str!("../../../../../docs/reference/command-line-json.md");

/// Objects whose keys are data, or the figures of a measurement, which the page does not list.
const OPEN: [&str; 11] = [
    "data",
    "key",
    "host",
    "configuration",
    "latency_us",
    "samples",
    "clock",
    "xdp",
    "stages",
    "measured",
    "protection",
];

/// System file that `takt analyze` accepts.
const SYSTEM: &str = "[[executor]]\nname = \"a\"\n[[flow]]\nname = \"f\"\nmin_separation = \"1 ms\"\n\
    stages = [{ on = \"a\", priority = 1, time = \"1 us\" }]\n";

/// Adds the keys of a value, those of open objects excepted.
fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                into.insert(key.clone());
                if !OPEN.contains(&key.as_str()) {
                    keys(value, into);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

/// Runs a command and returns the values that it prints: one document, or one a line.
fn values(line: &str) -> Vec<Value> {
    let (text, errors, code) = Takt::start(line).ending();
    assert!(matches!(code, Some(0 | 1)), "{line}: {code:?}: {errors}");
    let values = serde_json::Deserializer::from_str(&text).into_iter();
    let values: Vec<Value> = values.collect::<Result<_, _>>().unwrap_or_else(|why| panic!("{line}: {why}: {text}"));
    assert!(!values.is_empty(), "{line}: {errors}");
    values
}

/// Asserts that the page lists each key of the output.
fn check(line: &str) {
    let mut found = BTreeSet::new();
    values(line).iter().for_each(|value| keys(value, &mut found));
    let missing: Vec<&String> = found.iter().filter(|key| !PAGE.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "{line}: the page does not list {missing:?}");
}

#[test]
fn documents_of_all_commands_have_the_fields_of_the_reference() {
    let system = File::new("json-system.toml", SYSTEM);
    let lines = [
        "ls --interface lo --domain 219 --wait 0.1 --json",
        "ps --interface lo --domain 219 --wait 0.1 --json",
        "doctor --no-network --json",
        "transport ls --json",
        "transport probe lo --json",
        "lab status --json",
        "type --own ShapeType --json",
        "pub Square {} --type ShapeType --no-wait --interface lo --domain 219 --json",
        &format!("analyze {} --what-if --json", system.path()),
    ];
    lines.into_iter().for_each(check);
    // These have more fields than the page lists.
    for line in ["bench systems --json", "bench environment --json", "host inspect", "host plan"] {
        values(line);
    }
}

#[test]
fn samples_and_measurements_have_the_fields_of_the_reference() {
    let domain = domain();
    let options = format!("--interface lo --peer 127.0.0.1 --domain {domain}");
    let writer = Takt::start(&format!("pub Square {{}} --type ShapeType --rate 100 --count 1000000 {options}"));
    for command in ["echo Square", "sub Square --type ShapeType", "hz Square", "bw Square", "delay Square"] {
        check(&format!("{command} --count 20 --timeout 30 --json {options}"));
    }
    check(&format!("ls --json {options} --wait 2"));
    let rate = values(&format!("hz Square --count 50 --timeout 30 --json {options}")).pop().unwrap();
    assert!(rate["rate_hz"].as_f64().is_some() && rate["interval_us"]["max"].as_f64().is_some(), "{rate}");
    drop(writer);
    let pong = Takt::start(&format!("perf pong --domain {domain}"));
    check(&format!("perf ping --domain {domain} --samples 10 --warmup 0 --json"));
    drop(pong);
}

/// The reasons of a pair that does not match are values, not only sentences.
#[test]
fn mismatch_has_its_policy_and_both_values() {
    let domain = domain();
    let options = format!("--interface lo --peer 127.0.0.1 --domain {domain}");
    let writer = format!("pub Square {{}} --type ShapeType --rate 10 --count 100000 --no-wait {options}");
    let writer = Takt::start(&format!("{writer} --best-effort"));
    let reader = Takt::start(&format!("sub Square --type ShapeType --reliable {options}"));
    let topics = takt_testkit::waiting::until_some("both are listed", || {
        let listed = values(&format!("ls --json {options} --wait 2")).pop()?;
        let pair = listed["topics"][0]["pairs"].get(0)?.clone();
        Some(pair)
    });
    assert_eq!(topics["matched"], false);
    let mismatch = &topics["mismatches"][0];
    let [cause, policy, offered, requested] = ["cause", "policy", "offered", "requested"].map(|name| &mismatch[name]);
    assert_eq!([cause, policy, offered, requested], ["policy", "RELIABILITY", "BEST_EFFORT", "RELIABLE"], "{mismatch}");
    drop((writer, reader));
}

#[test]
fn findings_have_codes_and_facts() {
    let values = values("doctor --interface lo --peer 192.0.2.1 --wait 0.1 --json");
    let findings = values[0].as_array().unwrap();
    let silent = findings.iter().find(|finding| finding["code"] == "peer-silent");
    assert_eq!(silent.expect("no host has this address")["facts"]["peer"], "192.0.2.1");
    assert!(findings.iter().all(|finding| PAGE.contains(&format!("`{}`", finding["code"].as_str().unwrap()))));
}
