//! Tests of workloads with networks of their own; shell scripts are their processes.

use crate::scene::{Scene, measured, system};
use std::os::unix::fs::PermissionsExt;
use takt_testkit::{not_run, require};

/// Script for the roles of `isolation`: one-way latency 0.5 us, round trips 1 and 2 us. It keeps
/// the plans of pings.
const ISOLATION: &str = r#"#!/bin/sh
case "$1" in
probe) echo '{"ev":"result","missing":{"measure":"af-xdp","why":"a shell has none"}}'; echo '{"ev":"done"}' ;;
ping) echo "$2" >> "$0.plans"; echo '{"ev":"matched"}'; read -r line
  echo '{"ev":"result","latencies":[[1000,2],[2000,1]],"received":3,"sent":4,"lateness":[[7000,4]],"refused":0}' ;;
pong) echo '{"ev":"ready"}'; read -r line
  echo '{"ev":"result","latencies":[[500,4]],"received":4,"background":0,"background_lost":0,"callbacks":0,"discovered":1}' ;;
esac
exec sleep 60
"#;

/// Script for the roles of `sdn-overload`, like the programs of lab/interop/peers: of ten samples
/// the fourth is lost.
const OVERLOAD: &str = r#"#!/bin/sh
echo '{"ev":"ready"}'; read -r line; echo '{"ev":"matched","current":1}'
case "$1" in
overload-publish) read -r line; echo '{"ev":"done","command":"write"}' ;;
overload-subscribe)
  for n in 0 1 2 4 5 6 7 8 9; do
    echo '{"ev":"sample","seq":'$n',"stamp_ns":'$((n * 5000000))',"received_ns":'$((n * 5000000 + n * 1000))'}'
  done ;;
esac
exec sleep 60
"#;

/// Creates a scene with one program for experiments.
fn scene(agent: &str) -> Scene {
    let scene = Scene::new(&[]);
    let path = scene.directory.write("side", agent);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("the test owns the file");
    let entry = system("side", &scene.directory.text("side")).replace("except = ", "experiment = true\n# ");
    scene.directory.write("systems.toml", &entry);
    scene
}

#[test]
fn isolation_measures_both_ways_in_one_start_and_the_paper_baseline() {
    for missing in [require::network_namespaces(), require::root()] {
        if let Err(why) = missing {
            return not_run(why);
        }
    }
    let scene = scene(ISOLATION);
    let text = "name = 'x'\ntitle = 'x'\nrounds = 1\nforeign-max = 1.0\n[[workload]]\nname = 'c'\nkind = 'isolation'\n\
                systems = ['side']\nparameters = { configuration = ['paper-baseline'], size = [64], interference = ['off'], \
                way = ['one-way', 'round-trip'] }\nmeasure = { count = 4, warmup = 0, fifo = 99 }\n";
    let (results, refused) = scene.run(text);
    assert_eq!(refused, [] as [&str; 0]);
    let of = |way: &str| {
        let found = results.measurements.iter().find(|one| one.cell.values["way"].to_string() == way);
        measured(found.expect("the cell was measured")).clone()
    };
    let (one_way, round_trip) = (of("one-way"), of("round-trip"));
    let count = |measured: &takt_bench::study::cell::Measured| measured.latency.as_ref().map(|one| one.summary.count);
    assert_eq!((count(&one_way), count(&round_trip)), (Some(4), Some(3)));
    assert_eq!((one_way.figures["lost"], round_trip.figures["lost"]), (0.0, 1.0));
    assert!((round_trip.figures["late_max_us"] - 7.0).abs() < 0.1, "{:?}", round_trip.figures);
    let plans = scene.directory.read("side.plans");
    assert_eq!(plans.lines().count(), 1, "one start gives both ways");
    let plan: serde_json::Value = serde_json::from_str(plans.trim()).expect("the plan is JSON");
    let measures = serde_json::json!(["executor-priorities", "fifo", "affinity"]);
    assert_eq!((&plan["participant"]["measures"], &plan["fifo"]), (&measures, &serde_json::json!(99)));
    let commands = &results.measurements[0].commands;
    assert!(commands.iter().any(|line| line.contains("a shell has none")), "{commands:?}");
}

#[test]
fn overload_keeps_the_arrivals_of_single_samples() {
    for missing in [require::network_namespaces(), require::root(), require::program("ovs-vsctl")] {
        if let Err(why) = missing {
            return not_run(why);
        }
    }
    let scene = scene(OVERLOAD);
    let text = "name = 'x'\ntitle = 'x'\nrounds = 1\nforeign-max = 1.0\n[[workload]]\nname = 'd'\nkind = 'sdn-overload'\n\
                systems = ['side']\nparameters = { category = ['best-effort'], size = [100], condition = ['idle'] }\n\
                measure = { secs = 1 }\n[[workload.figure]]\nform = 'normalised'\ntitle = 'F'\nby = 'condition'\n\
                [[workload.figure]]\nform = 'cumulative'\ntitle = 'G'\nby = 'condition'\n";
    let (results, _) = scene.run(text);
    let found = measured(&results.measurements[0]);
    let arrivals = found.arrivals.as_ref().expect("the arrivals are kept");
    assert_eq!((arrivals.sent, arrivals.received()), (200, 9));
    assert_eq!(found.figures["lost"], 191.0);
    // Sample n arrives n us late.
    assert!((found.latency.as_ref().expect("nine arrived").summary.max - 9.0).abs() < 1e-9);
    let page = takt_bench::study::report::html::html(&results).expect("the plot can be drawn");
    assert!(page.contains("normalized latency (ms)") && page.contains("samples received"));
}

#[test]
fn experiment_systems_and_agent_systems_refuse_each_others_workloads() {
    let scene = scene(ISOLATION);
    scene.add_system("agent", &scene.directory.text("side"));
    let text = "name = 'x'\ntitle = 'x'\nrounds = 1\n[[workload]]\nname = 'a'\nkind = 'isolation'\nsystems = ['agent']\n\
                [[workload]]\nname = 'b'\nkind = 'round-trip'\nsystems = ['side']\n";
    let (results, refused) = scene.run(text);
    assert_eq!(results.measurements, []);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(
        refused[0].contains("does not support isolation") && refused[1].contains("supports only isolation"),
        "{refused:?}"
    );
}
