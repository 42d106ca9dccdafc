//! `takt perf pub` and `takt perf sub` as two processes.

use crate::process::Takt;
use serde_json::{Value, json};
use takt_testkit::{not_run, require};

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
fn reliable_stream_at_maximum_rate_loses_nothing() {
    let (sent, received) = stream("--domain 111 --size 100");
    check_complete(&sent, &received);
}

#[test]
fn reliable_stream_in_the_shared_runtime_loses_nothing() {
    let (sent, received) = stream("--domain 112 --runtime shared");
    check_complete(&sent, &received);
}

#[test]
fn reliable_stream_of_fragments_loses_nothing() {
    let (sent, received) = stream("--domain 113 --size 100000");
    check_complete(&sent, &received);
    assert_eq!(sent["bytes_per_second"].as_f64().map(|b| b > 0.0), Some(true));
}

#[test]
fn best_effort_stream_keeps_its_rate() {
    let (sent, received) = stream("--domain 114 --best-effort --keep-last 1 --rate 5000");
    assert_eq!(sent["samples"]["sent"], json!(2000));
    let samples = &received["samples"];
    let of = |key: &str| samples[key].as_u64().unwrap();
    assert_eq!(of("duplicated"), 0);
    assert!(of("received") + of("lost") <= 2000 && of("received") > 0, "{samples}");
}

/// The publisher's clock is 5000 s ahead, like that of another host. The test uses a time namespace
/// and requires root.
#[test]
fn one_way_latency_between_two_clocks_has_an_uncertainty_band() {
    const AHEAD: &str = "unshare --time --monotonic 5000 --fork";
    let possible = require::time_namespaces().and_then(|()| require::program("unshare"));
    if let Err(why) = possible {
        return not_run(why);
    }
    let options = "--domain 116 --warmup 50 --json --rate 2000";
    let sub = Takt::start(&format!("perf sub --clock 127.0.0.1:17399 {options}"));
    let publisher = format!("perf pub --answer-clock 127.0.0.1:17399 --samples 2000 {options}");
    let (sent, received) = (Takt::start_by(AHEAD, &publisher).json(), sub.json());
    check_complete(&sent, &received);
    let clock = &received["clock"];
    let of = |value: &Value| value.as_f64().unwrap();
    let (offset, uncertainty) = (of(&clock["offset_us"]), of(&clock["uncertainty_us"]));
    assert!((offset - 5000e6).abs() <= uncertainty, "{clock}");
    assert!(of(&clock["echoes"]) >= 200.0 && clock["restarts"] == json!(0), "{clock}");
    // Without the clock offset, every sample would seem to be sent long after its arrival.
    assert!(of(&received["latency_us"]["max"]) > 0.0, "{received}");
    assert_eq!((&sent["clock"], &clock["answerer"]), (&Value::Null, &json!("127.0.0.1:17399")));
}

#[test]
fn clock_options_are_refused_outside_streams() {
    for line in [
        "ping --clock 127.0.0.1:1",
        "pong --answer-clock 127.0.0.1:1",
        "pub --clock 127.0.0.1:1",
        "sub --answer-clock 127.0.0.1:1",
    ] {
        let (text, code) = Takt::start(&format!("perf {line}")).error_text();
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("--answer-clock is valid only for pub"), "{text}");
    }
}
