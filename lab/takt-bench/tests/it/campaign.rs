//! Tests of campaigns with shell-script agents: rounds, repetition, failures and resumption.

use crate::scene::Scene;
use std::collections::BTreeSet;
use takt_bench::study::cell::{Measurement, Outcome};
use takt_bench::study::directory::Results;
use takt_bench::study::run::{Progress, Request, run};

/// Agent that follows the contract for round trips of two sizes: 3 values each, of 1, 2 and 3 us.
/// It counts its runs in a file next to it.
pub const AGENT: &str = r#"#!/bin/sh
echo "$1" >> "$0.runs"
for argument in "$@"; do case "$argument" in out=*) out=${argument#out=} ;; sizes=*) sizes=${argument#sizes=} ;; esac; done
case "$1" in
pong) echo '{"ev":"ready"}'; exec sleep 60 ;;
ping) echo '{"ev":"ready"}'
  for size in $(echo "${sizes:-16}" | tr , ' '); do
    printf '\350\003\0\0\0\0\0\0\320\007\0\0\0\0\0\0\270\013\0\0\0\0\0\0' >> "$out"
    echo '{"ev":"result","role":"ping","size":'$size',"got":3,"lost":0,"cpu_s":0.000003,"wall_s":1,"nvcsw":3,"nivcsw":0,"listening":1}'
  done
  echo '{"ev":"done"}'; exec sleep 60 ;;
esac
"#;

/// Agent that fails with an error text.
const BROKEN: &str =
    "#!/bin/sh\necho \"$1\" >> \"$0.runs\"\necho '{\"ev\":\"error\",\"what\":\"no license\"}'\nexit 1\n";

/// Creates a scene with two agents, and a system without an agent.
fn scene() -> Scene {
    let scene = Scene::new(&[("good", AGENT), ("broken", BROKEN)]);
    scene.add_system("absent", &scene.directory.text("absent"));
    scene
}

fn request(scene: &Scene, rounds: u32, systems: &str, resumes: bool) -> Request {
    let text = format!(
        "name = 'x'\ntitle = 'x'\nrounds = {rounds}\nforeign-max = 1.0\n[[workload]]\nname = 'rtt'\n\
         kind = 'round-trip'\nsystems = {systems}\n\
         parameters = {{ size = [16, 64], reliability = ['best-effort', 'reliable'] }}\n\
         measure = {{ warmup = 0, count = 3 }}"
    );
    Request { resumes, ..scene.request(&text) }
}

/// Returns how often the agent of this name was started in a role.
fn starts(scene: &Scene, name: &str, role: &str) -> usize {
    let text = scene.directory.read(&format!("{name}.runs"));
    text.lines().filter(|line| *line == role).count()
}

fn texts(measurements: &[Measurement]) -> BTreeSet<String> {
    measurements.iter().map(|measurement| format!("{} {}", measurement.cell, measurement.round)).collect()
}

#[test]
fn every_cell_is_measured_once_per_round_and_keeps_its_times() {
    let scene = scene();
    let mut refused = 0;
    run(&request(&scene, 2, "['good']", false), &mut |progress| {
        refused += usize::from(matches!(progress, Progress::Refused(_)));
    })
    .expect("the campaign runs");
    let results = Results::read(&scene.results()).expect("the results exist");
    let cells = ["reliability=best-effort,size=16", "reliability=best-effort,size=64"];
    let expected = cells.iter().flat_map(|cell| [0, 1].map(|round| format!("rtt/good/{cell} {round}")));
    assert_eq!(texts(&results.measurements), expected.collect());
    assert_eq!(
        (refused, starts(&scene, "good", "ping")),
        (2, 2),
        "both sizes share a start; reliable ones are refused"
    );
    for measurement in &results.measurements {
        let Outcome::Measured(measured) = &measurement.outcome else { panic!("{measurement:?}") };
        let latency = measured.latency.as_ref().expect("round trips were measured");
        assert_eq!((latency.summary.count, latency.summary.min, latency.summary.max), (3, 1.0, 3.0));
        assert_eq!(measured.figures["cpu_us"], 1.0);
        let raw = std::fs::read(scene.results().join(latency.raw.as_ref().expect("raw data"))).expect("exists");
        assert_eq!(raw.len(), 24);
        assert!(measurement.commands[0].contains(" ping ") && measurement.commands[1].contains(" pong "));
    }
}

#[test]
fn failing_system_is_left_out_after_two_rounds_and_missing_one_is_reported() {
    let scene = scene();
    let mut missing = Vec::new();
    run(&request(&scene, 4, "['good', 'broken', 'absent']", false), &mut |progress| {
        if let Progress::Missing(one) = progress {
            missing.push(one.clone());
        }
    })
    .expect("the campaign runs");
    let results = Results::read(&scene.results()).expect("the results exist");
    assert_eq!(missing, results.header.missing);
    assert_eq!(missing.len(), 1);
    assert!(missing[0].why.contains("does not exist"), "{}", missing[0].why);
    let failures: Vec<&str> = results
        .measurements
        .iter()
        .filter_map(|measurement| match &measurement.outcome {
            Outcome::Failed { why } => Some(why.as_str()),
            Outcome::Measured(_) => None,
        })
        .collect();
    assert_eq!(failures.len(), 8, "two sizes in four rounds");
    assert!(failures.iter().all(|why| why.contains("no license")), "{failures:?}");
    let skipped = |why: &&&str| why.matches("skipped after 2 failures").count() == 1;
    assert_eq!(failures.iter().filter(skipped).count(), 4, "each says so once: {failures:?}");
    assert_eq!(starts(&scene, "broken", "pong"), 2, "the agent is started in only two rounds");
    assert_eq!(starts(&scene, "good", "ping"), 4);
}

#[test]
fn resumed_campaign_measures_only_the_remaining_cells() {
    let scene = scene();
    run(&request(&scene, 2, "['good']", false), &mut |_| {}).expect("the campaign runs");
    let name = scene.results().join("measurements.jsonl");
    let text = std::fs::read_to_string(&name).expect("the file exists");
    let kept: Vec<&str> = text.lines().take(2).collect();
    std::fs::write(&name, format!("{}\n{{\"cell\":", kept.join("\n"))).expect("the file is writable");
    run(&request(&scene, 2, "['good']", true), &mut |_| {}).expect("the campaign resumes");
    let results = Results::read(&scene.results()).expect("the results exist");
    assert_eq!((results.measurements.len(), texts(&results.measurements).len()), (4, 4));
    assert_eq!(starts(&scene, "good", "ping"), 3, "one of the starts remained");
    let other = run(&request(&scene, 3, "['good']", true), &mut |_| {}).expect_err("another campaign");
    assert!(other.to_string().contains("another campaign"), "{other}");
}
