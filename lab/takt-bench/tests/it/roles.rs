//! Tests of workloads with the further roles of the contract, with shell-script agents.

use crate::campaign::AGENT;
use crate::scene::{Scene, measured};
use takt_testkit::{not_run, require};

/// Agent with the further roles. Its `sub` receives samples with latencies of 1, 2 and 700 ms.
pub const AGENT_OF_ALL: &str = r#"#!/bin/sh
echo "$*" >> "$0.calls"
for argument in "$@"; do case "$argument" in out=*) out=${argument#out=} ;; esac; done
case "$1" in
info) echo '{"ev":"info","peer":"shell","version":"1","roles":"load,sub,pick,crowd,seek,hold,join,keep"}'; exit ;;
load) echo '{"ev":"ready"}'; echo '{"ev":"matched"}'; sleep ${LOAD_SECONDS:-0}
  echo '{"ev":"result","role":"load","n":1000,"wall_s":1,"cpu_s":0.5,"fails":0,"total":1000}' ;;
sub) echo '{"ev":"ready"}'
  [ -z "$out" ] || printf '\100\102\017\0\0\0\0\0\200\204\036\0\0\0\0\0\0\047\271\051\0\0\0\0' > "$out"
  echo '{"ev":"result","role":"sub","id":0,"n":990,"bytes":15840,"wall_s":1,"cpu_s":0.25,"span":1000,"total":990}' ;;
pick) echo '{"ev":"ready"}'
  echo '{"ev":"result","role":"sub","id":0,"n":99,"bytes":1584,"wall_s":1,"cpu_s":0.25,"span":1000,"total":99}' ;;
crowd) echo '{"ev":"ready"}'
  echo '{"ev":"result","role":"crowd","bare_kib":100,"participants_kib":400,"endpoints_kib":80,"instances_kib":1000,"resident_kib":2000,"private_kib":1500}' ;;
seek) echo '{"ev":"ready"}'; echo '{"ev":"matched","main_ms":1,"init_ms":3,"match_ms":9}' ;;
keep|hold) trap 'echo "end of $1" >> "$0.calls"; exit' TERM; echo '{"ev":"ready"}'; sleep 60 & wait ;;
join) echo '{"ev":"ready"}'; echo '{"ev":"result","role":"join","n":99,"first_ms":4.5,"last_ms":7.5}' ;;
esac
exec sleep 60
"#;

pub fn run(text: &str) -> (Scene, takt_bench::study::directory::Results, Vec<String>) {
    let scene = Scene::new(&[("all", AGENT_OF_ALL), ("few", AGENT)]);
    let head = "name = 'x'\ntitle = 'x'\nrounds = 1\nforeign-max = 1.0\n";
    let (results, refused) = scene.run(&format!("{head}{text}"));
    (scene, results, refused)
}

#[test]
fn open_loop_measures_load_and_an_agent_without_that_role_is_unsupported() {
    let (scene, results, refused) = run("[[workload]]\nname = 'w'\nkind = 'open-loop'\nsystems = ['all', 'few']\n\
         parameters = { rate = [1000, 2000], reliability = ['best-effort'] }\nmeasure = { warm_s = 0 }");
    assert_eq!(results.measurements.len(), 2);
    for measurement in &results.measurements {
        let measured = measured(measurement);
        assert_eq!(measured.latency.as_ref().map(|latency| latency.summary.count), Some(3));
        assert_eq!((measured.figures["lost"], measured.figures["writer_cpu_percent"]), (10.0, 50.0));
        assert!(measurement.commands[0].contains(" load ") && measurement.commands[0].contains("rate="));
    }
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|one| one.ends_with("unsupported: its agent has no role load")), "{refused:?}");
    assert!(!scene.directory.read("few.runs").contains("load"), "the agent is never started in that role");
    let page = takt_bench::study::report::html::html(&results).expect("the value can be serialized");
    assert!(page.contains("<td>unsupported</td>"), "the report lists them");
}

#[test]
fn discovery_measures_time_and_traffic_and_memory_of_each_part() {
    let (_scene, results, _) = run("[[workload]]\nname = 'd'\nkind = 'discovery'\nsystems = ['all']\n\
         parameters = { participants = [10], endpoints = [2], reliability = ['best-effort'] }\n\
         [[workload]]\nname = 'm'\nkind = 'memory'\nsystems = ['all']\n\
         parameters = { participants = [4], endpoints = [10], instances = [1000], reliability = ['best-effort'] }");
    let of = |name: &str| {
        let found = results.measurements.iter().find(|one| one.cell.workload == name).expect("the cell was measured");
        (measured(found).figures.clone(), found.commands.clone())
    };
    let (discovery, commands) = of("d");
    assert_eq!((discovery["match_ms"], discovery["init_ms"]), (9.0, 2.0));
    assert!(discovery["all_datagrams"] >= discovery["newcomer_datagrams"], "{discovery:?}");
    assert!(commands[0].contains(" seek ") && commands[0].contains("participants=10"), "{commands:?}");
    let (memory, _) = of("m");
    let each = ["each_participant_kib", "each_endpoint_kib", "each_instance_octets"].map(|name| memory[name]);
    assert_eq!(each, [100.0, 2.0, 1024.0]);
}

#[test]
fn crowds_join_and_leave_during_churn() {
    let (scene, results, _) = run("[[workload]]\nname = 'c'\nkind = 'churn'\nsystems = ['all']\n\
         parameters = { participants = [0, 5], rate = [100], reliability = ['best-effort'] }\n\
         measure = { warm_s = 0, secs = 2 }");
    let calls = scene.directory.read("all.calls");
    let visits = calls.lines().filter(|call| call.starts_with("crowd ")).count();
    for measurement in &results.measurements {
        let expected = if measurement.cell.values["participants"].to_string() == "0" { 0 } else { 5 * visits };
        assert_eq!(measured(measurement).figures["comings"], expected as f64);
        assert!(measured(measurement).latency.is_some());
    }
    assert!(
        visits > 1 && !calls.lines().any(|call| call.starts_with("crowd ") && call.contains("participants=0")),
        "{calls}"
    );
}

#[test]
fn late_join_counts_missing_samples() {
    let (scene, results, _) = run("[[workload]]\nname = 'l'\nkind = 'late-join'\nsystems = ['all']\n\
         parameters = { samples = [100], reliability = ['best-effort'] }");
    let figures = &measured(&results.measurements[0]).figures;
    assert_eq!((figures["first_sample_ms"], figures["last_sample_ms"], figures["lost"]), (4.5, 7.5, 1.0));
    let calls = scene.directory.read("all.calls");
    assert!(calls.lines().any(|call| call.starts_with("hold ") && call.contains("count=100")), "{calls}");
}

#[test]
fn link_is_down_during_a_partition() {
    for missing in [require::network_namespaces(), require::root()] {
        if let Err(why) = missing {
            return not_run(why);
        }
    }
    // The writer checks whether its host reaches the other one.
    let watching = AGENT_OF_ALL.replace(
        "sleep ${LOAD_SECONDS:-0}",
        "for n in $(seq 60); do ping -c 1 -W 0.1 10.79.0.2 >/dev/null 2>&1 && echo up || echo down; sleep 0.05; done > \"$0.link\"",
    );
    let scene = Scene::new(&[("all", &watching)]);
    let (results, _) = scene.run(
        "name = 'x'\ntitle = 'x'\nrounds = 1\nforeign-max = 1.0\n[site]\nkind = 'lab'\nswitch = 'bridge'\n[[workload]]\n\
         name = 'p'\nkind = 'partition'\nsystems = ['all']\n\
         parameters = { rate = [100], outage-ms = [600], reliability = ['best-effort'] }\nmeasure = { warm_s = 0, secs = 4 }",
    );
    let figures = &measured(&results.measurements[0]).figures;
    assert_eq!(figures["recovery_ms"], 100.0, "700 ms less 600");
    let link = scene.directory.read("all.link");
    let mut states: Vec<&str> = link.lines().collect();
    states.dedup();
    assert_eq!(states, ["up", "down", "up"], "{link}");
}

#[test]
fn partition_without_a_switch_is_refused() {
    let text = "name = 'x'\ntitle = 'x'\nrounds = 1\n[[workload]]\nname = 'p'\nkind = 'partition'\nsystems = ['a']";
    let parse = |text: &str| takt_bench::study::file::Campaign::parse(text, takt_bench::study::file::Length::Normal);
    assert!(parse(text).expect_err("loopback").to_string().contains("with a switch"));
}

#[test]
fn link_drops_frames_during_loss() {
    for missing in [require::network_namespaces(), require::root()] {
        if let Err(why) = missing {
            return not_run(why);
        }
    }
    let pinging = |name: &str| {
        format!("ping -q -c 1000 -i 0.002 -W 1 10.79.0.2 | sed -n 's/.* \\([0-9]*\\) received.*/\\1/p' > \"$0.{name}\"")
    };
    let wait = "sleep ${LOAD_SECONDS:-0}";
    let watching = AGENT_OF_ALL
        .replace("load) echo", &format!("load) {}; echo", pinging("before")))
        .replace(wait, &pinging("meanwhile"));
    let scene = Scene::new(&[("all", &watching)]);
    let (results, _) = scene.run(
        "name = 'x'\ntitle = 'x'\nrounds = 1\nforeign-max = 1.0\n[site]\nkind = 'lab'\nswitch = 'bridge'\n[[workload]]\n\
         name = 'p'\nkind = 'loss'\nsystems = ['all']\n\
         parameters = { rate = [100], loss-percent = [10], reliability = ['best-effort'] }\nmeasure = { warm_s = 0, secs = 4 }",
    );
    let figures = &measured(&results.measurements[0]).figures;
    let received = |name: &str| scene.directory.read(&format!("all.{name}")).trim().parse::<u32>().expect("a number");
    assert_eq!(received("before"), 1000);
    // Each direction loses a tenth: of 1,000 round trips 810 are left, with a standard deviation of
    // 12.
    let meanwhile = received("meanwhile");
    assert!((700..900).contains(&meanwhile), "{meanwhile}");
    assert!((5.0..15.0).contains(&figures["dropped_percent"]), "{figures:?}");
    // The agent reports 10 of 1,000 samples as lost.
    let repaired = 100.0 * (1.0 - 1.0 / figures["dropped_percent"]);
    assert!((figures["repaired_percent"] - repaired).abs() < 1e-6, "{figures:?}");
    assert_eq!(figures["late_percent"], 100.0 / 3.0, "700 ms of 1, 2 and 700");
}

#[test]
fn loss_above_its_limit_or_without_a_switch_is_refused() {
    let parse = |site: &str, percent: &str| {
        let text = format!(
            "name = 'x'\ntitle = 'x'\nrounds = 1\n{site}[[workload]]\nname = 'p'\nkind = 'loss'\nsystems = ['a']\n\
             parameters = {{ loss-percent = [{percent}] }}"
        );
        takt_bench::study::file::Campaign::parse(&text, takt_bench::study::file::Length::Normal)
    };
    let site = "[site]\nkind = 'lab'\nswitch = 'bridge'\n";
    assert!(parse(site, "1, '0.1', 50").is_ok());
    assert!(parse("", "1").expect_err("loopback").to_string().contains("with a switch"));
    for percent in ["51", "'all'", "'-1'"] {
        assert!(parse(site, percent).expect_err(percent).to_string().contains("0 to 50"), "{percent}");
    }
}
