//! `takt perf ping` and `takt perf pong` as two processes.

use crate::process::Takt;
use serde_json::{Value, json};

const SAMPLES: u64 = 300;

/// Runs a pair of processes and returns the report of the pinging side. A round trip is given up
/// after a second, which happens on a loaded machine. In that case the pair runs again, and a loss
/// in the last attempt counts as a failure.
fn pair(options: &str) -> Value {
    const ATTEMPTS: usize = 5;
    let is_whole = |report: &Value| report["latency_us"]["count"] == json!(SAMPLES);
    (1..ATTEMPTS).map(|_| attempt(options)).find(is_whole).unwrap_or_else(|| attempt(options))
}

fn attempt(options: &str) -> Value {
    let options = format!("--samples {SAMPLES} --warmup 20 --json {options}");
    let pong = Takt::start(&format!("perf pong {options}"));
    let report = Takt::start(&format!("perf ping {options}")).json();
    let answers = pong.json();
    assert_eq!(answers["samples"]["sent"], json!(SAMPLES + 20));
    assert_eq!(answers["configuration"]["role"], "pong");
    report
}

fn check(report: &Value) {
    assert_eq!(report["latency_us"]["count"], json!(SAMPLES));
    let samples = &report["samples"];
    assert_eq!((&samples["sent"], &samples["received"]), (&json!(SAMPLES), &json!(SAMPLES)));
    for wrong in ["lost", "duplicated", "out_of_order"] {
        assert_eq!(samples[wrong], json!(0), "{wrong}");
    }
    let figure = |key: &str| report["latency_us"][key].as_f64().unwrap();
    let order = ["min", "p50", "p90", "p99", "p99.9", "p99.99", "max"].map(figure);
    assert!(order.is_sorted() && order[0] > 0.0, "{order:?}");
    assert_eq!(report["measured"], "round_trip");
}

#[test]
fn inline_runtime_blocks_and_calls_a_listener() {
    check(&pair("--domain 101"));
}

#[test]
fn inline_runtime_blocks_in_a_waitset() {
    check(&pair("--domain 102 --waitset"));
}

#[test]
fn inline_runtime_spins_and_polls() {
    check(&pair("--domain 103 --spin --poll"));
}

#[test]
fn inline_runtime_spins_and_calls_a_listener() {
    check(&pair("--domain 104 --spin --size 1000"));
}

#[test]
fn shared_runtime_calls_a_listener() {
    check(&pair("--domain 105 --runtime shared"));
}

#[test]
fn shared_runtime_notifies_a_waitset() {
    check(&pair("--domain 106 --runtime shared --waitset"));
}

#[test]
fn round_trips_complete_with_keep_last_one() {
    check(&pair("--domain 107 --keep-last 1"));
}

#[test]
fn payload_of_many_fragments_completes_round_trips() {
    check(&pair("--domain 108 --size 300000"));
}

#[test]
fn open_loop_sends_at_its_rate() {
    let report = pair("--domain 109 --rate 1000");
    check(&report);
    assert_eq!(report["configuration"]["rate_hz"], json!(1000.0));
    let wall = report["wall_seconds"].as_f64().unwrap();
    assert!(wall >= (SAMPLES - 1) as f64 * 1e-3, "{wall} s is faster than the rate");
}
