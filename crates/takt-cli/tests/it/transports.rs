//! `takt perf transports`: two network namespaces, tiny sizes.

use crate::process::Takt;
use serde_json::Value;

/// The lines that a measurement prints; `None`, and why, where no namespaces can be made.
fn lines(options: &str) -> Option<Vec<Value>> {
    let line = format!("perf transports --rounds 1 --samples 40 --warmup 10 --fifo 0 --json {options}");
    let (output, status) = Takt::start(&line).finish();
    if !status.success() {
        let (why, _) = Takt::start(&line).complaint();
        assert!(why.contains("network namespaces") || why.contains("AF_XDP"), "{why}");
        eprintln!("not tested: {why}");
        return None;
    }
    Some(output.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn of<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["ev"] == event).collect()
}

#[test]
fn round_trips_and_their_ratios_are_lines() {
    let Some(lines) = lines("--only trips --columns raw-xdp-spin,takt-udp-spin,takt-xdp-spin") else { return };
    let trips = of(&lines, "trip");
    let columns: Vec<&str> = trips.iter().map(|trip| trip["column"].as_str().unwrap()).collect();
    assert_eq!(columns, ["raw-xdp-spin", "takt-udp-spin", "takt-xdp-spin"]);
    for trip in trips {
        assert_eq!((&trip["lost"], &trip["latency_us"]["count"]), (&Value::from(0), &Value::from(40)), "{trip}");
    }
    let ratios = of(&lines, "ratio");
    let is = |ratio: &&&Value, figure: &str, to: &str| {
        ratio["column"] == "takt-xdp-spin" && ratio["figure"] == figure && ratio["to"] == to
    };
    for to in ["takt-udp-spin", "raw-xdp-spin"] {
        for figure in ["mean", "p99.99"] {
            let ratio = ratios.iter().find(|ratio| is(ratio, figure, to)).expect("it is printed");
            assert!(ratio["ratio"].as_f64().unwrap() > 0.0, "{ratio}");
        }
    }
}

#[test]
fn streams_are_counted_where_they_arrive() {
    let Some(lines) = lines("--only rate --columns takt-xdp-generic-spin,takt-xdp-generic-spin-batch") else { return };
    let rates = of(&lines, "rate");
    assert_eq!(rates.len(), 2);
    for rate in rates {
        assert!(rate["received_hz"].as_f64().unwrap() > 0.0 && rate["lost"] == 0, "{rate}");
        assert_eq!(rate["size"], 32);
    }
}
