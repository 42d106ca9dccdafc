//! Tests of machine flows, content filters and durability services, with shell-script agents.

use crate::roles::{AGENT_OF_ALL, run};
use crate::scene::{Scene, measured};

const MIX: &str = "[[workload]]\nname = 'm'\nkind = 'mix'\nsystems = ['all']\nparameters = { machine = ['lift', 'door'] }\n\
                   measure = { warm_s = 0, secs = 1 }\n[workload.machines]\n\
                   lift = [{ flow = 'car', size = 64, rate = 100, sources = 3, reliability = 'best-effort' },\n\
                   { flow = 'alarm', size = 32, rate = 10, burst = 5, reliability = 'best-effort' }]\n\
                   door = [{ flow = 'car', size = 16, rate = 1, reliability = 'best-effort' }]\n";

#[test]
fn mix_starts_a_pair_for_each_flow_of_a_machine_and_measures_each() {
    let (scene, results, refused) = run(MIX);
    let cells: Vec<String> = results.measurements.iter().map(|one| one.cell.to_string()).collect();
    let mut sorted = cells.clone();
    sorted.sort();
    let expected = ["flow=alarm,machine=lift", "flow=car,machine=door", "flow=car,machine=lift"];
    assert_eq!(sorted, expected.map(|values| format!("m/all/{values}")), "a door has no alarm");
    assert_eq!(refused, Vec::<String>::new());
    for measurement in &results.measurements {
        let measured = measured(measurement);
        assert_eq!(measured.latency.as_ref().map(|latency| latency.summary.count), Some(3));
        assert_eq!(measured.figures["lost"], 10.0);
    }
    let calls = scene.directory.read("all.calls");
    let domain = |part: &str| {
        let call = |role: &str| {
            let call = calls.lines().find(|call| call.starts_with(role) && call.contains(part)).expect(part);
            call.split(' ').find_map(|word| word.strip_prefix("domain=")?.parse::<u32>().ok())
        };
        // The last value of a key takes precedence.
        let last = |role: &str| {
            let call = calls.lines().find(|call| call.starts_with(role) && call.contains(part)).expect(part);
            call.split(' ').rev().find_map(|word| word.strip_prefix("domain=")?.parse::<u32>().ok()).expect(part)
        };
        assert_eq!(last("load "), last("sub "), "both processes of a flow");
        (last("load "), call("load "))
    };
    let (car, of_job) = domain("rate=300 rel=besteffort size=64");
    let (alarm, _) = domain("batch=5 rate=10 rel=besteffort size=32");
    assert_eq!((Some(car), Some(alarm)), (of_job, of_job.map(|of_job| of_job + 1)), "each flow has a domain");
    let page = takt_bench::study::report::html::html(&results).expect("the value can be serialized");
    assert!(page.contains("alarm"), "the report has the flows");
    assert!(!page.contains("not measured it yet"), "and misses none that there is not");
}

#[test]
fn mix_is_refused_as_a_whole_if_a_system_cannot_carry_one_of_its_flows() {
    let reliable = MIX.replacen("reliability = 'best-effort' },\n", "reliability = 'reliable' },\n", 1);
    assert_ne!(reliable, MIX);
    let (_scene, results, refused) = run(&reliable);
    assert_eq!(results.measurements.len(), 1, "the door");
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|one| one.ends_with("never reliable")), "{refused:?}");
}

#[test]
fn mix_with_a_broken_machine_names_the_rule() {
    let head = "name = 'x'\ntitle = 'x'\nrounds = 1\n";
    let cases = [
        ("['lift', 'door']", "['lift', 'boat']", "machines has no boat; expected one of door, lift"),
        ("{ machine = ['lift', 'door'] }", "{ history = ['all'] }", "parameters need machine"),
        ("'alarm'", "'car'", "two flows car"),
        ("rate = 100", "rate = 400_000", "1200000 samples a second"),
        ("size = 64", "size = 8", "size = 8: expected 16 to"),
        ("burst = 5", "burst = 11", "burst = 11"),
        ("'mix'", "'stream'", "machines are allowed only in workloads of the kind mix"),
        ("burst = 5", "bursts = 5", "unknown field `bursts`"),
    ];
    for (old, new, expected) in cases {
        assert!(MIX.contains(old), "{old}");
        let text = format!("{head}{}", MIX.replacen(old, new, 1));
        let error = takt_bench::study::file::Campaign::parse(&text, takt_bench::study::file::Length::Normal)
            .expect_err(new)
            .to_string();
        assert!(error.contains(expected), "{new}: {error}");
    }
}

#[test]
fn filter_counts_passed_samples_and_agents_without_filters_are_unsupported() {
    let (scene, results, refused) = run("[[workload]]\nname = 'f'\nkind = 'filter'\nsystems = ['all', 'few']\n\
         parameters = { pass-percent = [10], rate = [1000], reliability = ['best-effort'] }\nmeasure = { warm_s = 0 }");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].ends_with("unsupported: its agent has no role load, pick"), "{refused:?}");
    let figures = &measured(&results.measurements[0]).figures;
    assert_eq!((figures["received_hz"], figures["lost"], figures["delivered_percent"]), (99.0, 1.0, 99.0));
    assert_eq!((figures["writer_cpu_percent"], figures["reader_cpu_percent"]), (50.0, 25.0));
    assert!(figures.contains_key("wire_octets"), "{figures:?}");
    let calls = scene.directory.read("all.calls");
    for role in ["load ", "pick "] {
        let call = calls.lines().find(|call| call.starts_with(role)).expect(role);
        assert!(call.contains("pass_percent=10") && call.contains("type=numbered"), "{call}");
    }
}

#[test]
fn writer_ends_before_the_reader_starts_with_a_durability_service() {
    let text = "[[workload]]\nname = 'd'\nkind = 'late-join'\nsystems = ['SYSTEM']\n\
                parameters = { samples = [100], durability = ['KIND'], reliability = ['best-effort'] }";
    let order = |kind: &str| {
        let (scene, results, _) = run(&text.replace("SYSTEM", "all").replace("KIND", kind));
        assert_eq!(measured(&results.measurements[0]).figures["lost"], 1.0);
        let calls = scene.directory.read("all.calls");
        let starts_role = |call: &&str| !call.starts_with("end") && !call.starts_with("info");
        assert!(calls.lines().filter(starts_role).all(|call| call.contains(&format!("durability={kind}"))), "{calls}");
        let roles = calls.lines().map(|call| call.split(" domain").next().unwrap_or_default().to_owned());
        roles.filter(|role| role != "info").collect::<Vec<_>>()
    };
    assert_eq!(order("persistent"), ["keep", "hold", "end of hold", "join", "end of keep"]);
    assert_eq!(order("transient-local"), ["hold", "join", "end of hold"]);
    let keepless = AGENT_OF_ALL.replace(",keep\"", "\"");
    assert_ne!(keepless, AGENT_OF_ALL);
    let scene = Scene::new(&[("none", &keepless)]);
    let head = "name = 'x'\ntitle = 'x'\nrounds = 1\nforeign-max = 1.0\n";
    let text = text.replace("SYSTEM", "none").replace("'KIND'", "'transient-local', 'transient'");
    let (results, refused) = scene.run(&format!("{head}{text}"));
    assert_eq!((results.measurements.len(), refused.len()), (1, 1), "{refused:?}");
    assert!(refused[0].ends_with("unsupported: its agent has no role keep"), "{refused:?}");
}
