//! `takt perf pub` and `takt perf sub` as two processes.

use crate::process::Takt;
use serde_json::{Value, json};

/// Runs a stream and returns the reports of both sides.
fn stream(options: &str) -> (Value, Value) {
    let options = format!("--warmup 50 --json {options}");
    let sub = Takt::start(&format!("perf sub {options}"));
    let publisher = Takt::start(&format!("perf pub --samples 2000 {options}")).json();
    (publisher, sub.json())
}

fn check_complete(sent: &Value, received: &Value) {
    assert_eq!(sent["samples"]["sent"], json!(2000));
    assert_eq!(received["samples"]["received"], json!(2000));
    for wrong in ["lost", "duplicated", "out_of_order"] {
        assert_eq!(received["samples"][wrong], json!(0), "{wrong}");
    }
    assert_eq!(received["latency_us"]["count"], json!(2000));
    assert_eq!(received["measured"], "one_way");
    assert!(received["samples_per_second"].as_f64().unwrap() > 0.0);
}

#[test]
fn reliable_as_fast_as_possible() {
    let (sent, received) = stream("--domain 111 --size 100");
    check_complete(&sent, &received);
}

#[test]
fn reliable_in_the_shared_runtime() {
    let (sent, received) = stream("--domain 112 --runtime shared");
    check_complete(&sent, &received);
}

#[test]
fn reliable_with_fragments() {
    let (sent, received) = stream("--domain 113 --size 100000");
    check_complete(&sent, &received);
    assert_eq!(sent["bytes_per_second"].as_f64().map(|b| b > 0.0), Some(true));
}

#[test]
fn best_effort_at_a_rate() {
    let (sent, received) = stream("--domain 114 --best-effort --keep-last 1 --rate 5000");
    assert_eq!(sent["samples"]["sent"], json!(2000));
    let samples = &received["samples"];
    let of = |key: &str| samples[key].as_u64().unwrap();
    assert_eq!(of("duplicated"), 0);
    assert!(of("received") + of("lost") <= 2000 && of("received") > 0, "{samples}");
}
