//! `takt perf transports`: two network namespaces, tiny sizes.

use crate::process::Takt;
use serde_json::Value;

/// The lines that a measurement prints, and its exit code; `None`, and why, where no namespaces can be made.
fn all_lines(options: &str) -> Option<(Vec<Value>, Option<i32>)> {
    let line = format!("perf transports --rounds 1 --samples 40 --warmup 10 --json {options}");
    let (output, status) = Takt::start(&line).finish();
    if output.is_empty() {
        let (why, _) = Takt::start(&line).complaint();
        assert!(why.contains("network namespaces"), "{why}");
        eprintln!("not tested: {why}");
        return None;
    }
    Some((output.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), status.code()))
}

/// The same without real-time priority; all columns have succeeded, or the kernel has no AF_XDP.
fn lines(options: &str) -> Option<Vec<Value>> {
    let (lines, code) = all_lines(&format!("--fifo 0 {options}"))?;
    let failed = of(&lines, "failed");
    if failed.iter().any(|failure| failure["why"].to_string().contains("AF_XDP")) {
        eprintln!("not tested: {failed:?}");
        return None;
    }
    assert_eq!((failed, code), (vec![], Some(0)));
    Some(lines)
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

#[test]
fn a_column_that_fails_is_told_and_the_others_are_measured() {
    let options =
        "--fifo 0 --columns takt-udp-spin,silent,absent --peer silent=/bin/false --peer absent=/nonexistent/agent";
    let Some((lines, code)) = all_lines(&format!("--only trips,rate {options}")) else { return };
    assert_eq!(code, Some(1));
    for part in ["trip", "rate"] {
        let measured = of(&lines, part);
        assert_eq!(measured.len(), 1, "{lines:?}");
        assert_eq!(measured[0]["column"], "takt-udp-spin");
    }
    let failed = of(&lines, "failed");
    assert_eq!(failed.len(), 4);
    for failure in failed {
        let why = failure["why"].as_str().unwrap();
        let expected = match failure["column"].as_str() {
            Some("silent") => "ended without \"ready\", exit status: 1",
            _ => "start /nonexistent/agent",
        };
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn tcp_is_measured_alone_and_beside() {
    let Some((lines, code)) = all_lines("--only tcp --columns takt-xdp-generic") else { return };
    if let Some(failure) =
        of(&lines, "failed").into_iter().find(|failure| failure["why"].to_string().contains("iperf3"))
    {
        assert!(failure["why"].to_string().contains("No such file"), "{failure}");
        eprintln!("not tested: {failure}");
        return;
    }
    assert_eq!(code, Some(0), "{lines:?}");
    let rates: Vec<(&str, bool)> = of(&lines, "tcp")
        .iter()
        .map(|cell| (cell["column"].as_str().unwrap(), cell["gigabits_per_second"].as_f64().unwrap() > 0.0))
        .collect();
    assert_eq!(rates, [("alone", true), ("takt-xdp-generic", true)]);
}

/// With real-time priority where two cores and permissions allow it, as the columns are measured. Plain memif is not among them: its
/// first datagrams are lost until DPDK's own thread has had its turn.
#[cfg(feature = "dpdk")]
#[test]
fn ports_of_dpdk_are_columns() {
    let columns = "raw-dpdk-packet-spin,takt-dpdk-packet-spin,takt-dpdk-ethernet-spin,takt-dpdk-memif-spin";
    let Some((lines, code)) = all_lines(&format!("--only trips --columns {columns}")) else { return };
    assert_eq!((of(&lines, "failed"), code), (vec![], Some(0)));
    let trips = of(&lines, "trip");
    assert_eq!(trips.len(), 4);
    for trip in trips {
        assert_eq!((&trip["lost"], &trip["latency_us"]["count"]), (&Value::from(0), &Value::from(40)), "{trip}");
    }
}
