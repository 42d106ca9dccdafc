//! `takt bench isolation`: three network namespaces and small counts. The command removes them
//! however it ends.

use crate::file::File;
use crate::process::Takt;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use takt_testkit::{not_run, require};

const TINY: &str = "bench isolation --seed 7 --rounds 1 --flows 2 --line-rate 20 --sizes 64";

/// Returns the lines that precede the first cell.
fn begun(takt: &Takt) -> Vec<String> {
    let lines = std::iter::repeat_with(|| takt.error_line().expect("it begins"));
    lines.take_while(|line| !line.starts_with("round 1 of 1, 1 of ")).collect()
}

/// Checks that network namespaces can be created and that iperf3 is installed.
fn possible() -> Result<(), String> {
    require::network_namespaces().and_then(|()| require::program("iperf3"))
}

/// Returns the network namespaces with the process ID in their names.
fn namespaces(process: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("takt.isolation-{process}."))).collect()
}

/// Returns the running children of a process.
fn children(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Returns the processes that still exist.
fn alive(processes: &[String]) -> Vec<&String> {
    processes.iter().filter(|process| Path::new("/proc").join(process).exists()).collect()
}

#[test]
fn every_cell_is_measured_and_every_table_is_complete() {
    if let Err(why) = possible() {
        return not_run(why);
    }
    let file = File::new("isolation.json", "");
    let takt = Takt::start(&format!("{TINY} --samples 60 --out {}", file.path()));
    let process = takt.id();
    let lines = begun(&takt);
    assert_eq!(lines[0], "seed 7");
    let (text, status) = takt.finish();
    assert!(status.success(), "{text}");
    assert_eq!(namespaces(process), Vec::<String>::new());

    let outcome: Value = serde_json::from_str(&std::fs::read_to_string(&file.0).unwrap()).unwrap();
    let cells = outcome["cells"].as_array().unwrap();
    let missing = outcome["not_here"].as_array().unwrap();
    assert!(missing.iter().all(|missing| !missing["why"].as_str().unwrap().is_empty()), "{missing:?}");
    // There are two configurations with and without interference, and each available measure alone
    // and left out.
    assert_eq!(cells.len(), 4 + 2 * (7 - missing.len()), "{missing:?}");
    for cell in cells {
        let name = cell["configuration"].as_str().unwrap();
        let counted = |key: &str| -> u64 { cell[key].as_array().unwrap().iter().map(|b| b[1].as_u64().unwrap()).sum() };
        let whole = |key: &str| cell[key].as_u64().unwrap();
        assert_eq!(whole("sent"), 60);
        assert_eq!(counted("one_way") + whole("lost_one_way"), 60, "{name}");
        assert_eq!(counted("round_trip") + whole("lost_round_trip"), 60, "{name}");
        assert!(whole("lost_round_trip") >= whole("lost_one_way"), "{name}");
        assert_eq!(counted("lateness"), 60, "{name}");
        if !cell["interfered"].as_bool().unwrap() {
            assert_eq!(whole("lost_round_trip"), 0, "{name}");
        }
        assert!(cell["link_megabits"][1].as_f64().unwrap() > 0.0, "{name}");
    }
    let of = |key: &str| outcome[key].as_array().unwrap();
    assert!(
        of("summaries").iter().any(|summary| summary["way"] == "one_way" && summary["latency_us"]["p99.9"].is_f64())
    );
    assert!(of("comparisons").iter().any(|one| one["own"][0] == "isolated" && one["effect"]["ratio"].is_f64()));

    // The same tables are made from the file, in either form.
    let again =
        |format: &str| Takt::start(&format!("bench isolation --from {} --format {format}", file.path())).finish();
    assert_eq!(again("text").0, text.trim_end());
    let (markdown, status) = again("markdown");
    assert!(status.success());
    for title in ["### Table I: baseline, us", "### Table II: isolated, us", "### Ablation", "### Not available"] {
        assert!(markdown.contains(title), "{title}: {markdown}");
    }
    let rows = |begin: &str| markdown.lines().filter(|line| line.starts_with(begin)).count();
    // Three latencies of each of four cells, and four ratios.
    assert_eq!(rows("| 64 B"), 12 + 4);
    assert_eq!(rows("| alone-"), 7 - missing.len());
    assert_eq!(rows("| without-"), 7 - missing.len());
}

#[test]
fn interrupted_bench_leaves_nothing_behind() {
    if let Err(why) = possible() {
        return not_run(why);
    }
    let takt = Takt::start(&format!("{TINY} --samples 1000000 --only ablation"));
    let process = takt.id();
    begun(&takt);
    assert_eq!(namespaces(process).len(), 3);
    // Two measuring processes and both ends of iperf3.
    let started = std::iter::repeat_with(|| children(process)).find(|started| started.len() >= 4).unwrap();
    // The terminal sends SIGINT to all of them. One of the children may just have ended.
    for pid in std::iter::once(&process.to_string()).chain(&started) {
        let output = Command::new("kill").args(["-INT", pid]).output().unwrap();
        let is_gone = String::from_utf8_lossy(&output.stderr).contains("No such process");
        assert!(output.status.success() || (is_gone && *pid != process.to_string()), "{output:?}");
    }
    let (why, code) = takt.error_text();
    assert_eq!((code, why.as_str()), (Some(130), "takt: stopped by a signal"));
    assert_eq!(namespaces(process), Vec::<String>::new());
    assert_eq!(alive(&started), Vec::<&String>::new());
}

#[test]
fn next_bench_removes_the_lab_of_a_killed_bench() {
    if let Err(why) = possible() {
        return not_run(why);
    }
    let line = format!("{TINY} --samples 1000000 --only ablation");
    let takt = Takt::start(&line);
    let process = takt.id();
    begun(&takt);
    takt.signal("KILL");
    takt.ending();
    assert_eq!(namespaces(process).len(), 3, "it could not remove them");
    let next = Takt::start(&line);
    begun(&next);
    assert_eq!(namespaces(process), Vec::<String>::new());
    assert_eq!(namespaces(next.id()).len(), 3);
    let own = next.id();
    next.signal("INT");
    next.ending();
    assert_eq!(namespaces(own), Vec::<String>::new());
}
