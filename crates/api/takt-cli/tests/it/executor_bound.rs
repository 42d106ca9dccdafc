//! `takt bench executor`: short phases with little load. Whether the bound is kept depends on the
//! machine and is not tested.

use crate::process::Takt;
use serde_json::Value;
use std::process::ExitStatus;
use takt_testkit::directory::Directory;

/// Options with a period so long that a bound exists even on a machine that stalls occasionally.
const TINY: &str = "bench executor --quick --calibration 1 --margin 1 --period 100000 --samples 2000 --participants 20";

/// Runs the command and returns its output and exit status. Repeats it if the machine stalled for
/// so long that there is no bound.
fn run(arguments: &str) -> (String, ExitStatus) {
    for _ in 0..4 {
        let (text, status) = Takt::start(arguments).finish();
        if !text.is_empty() {
            return (text, status);
        }
    }
    Takt::start(arguments).finish()
}

fn json(directory: &Directory, name: &str) -> Value {
    serde_json::from_str(&directory.read(name)).unwrap()
}

fn analyze(words: &str) {
    let (text, status) = Takt::start(&format!("analyze {words}")).finish();
    assert!(status.success(), "{words}: {text}");
}

/// Returns the job classes of a phase.
fn classes(phase: &Value) -> Vec<(String, i64)> {
    let of = |class: &Value| (class["kind"].as_str().unwrap().to_owned(), class["priority"].as_i64().unwrap());
    phase["classes"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn bound_is_certified_and_all_load_arrives() {
    let directory = Directory::new("cli-bound");
    let (text, status) = run(&format!("{TINY} --format json --out {}", directory.path().display()));
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{status}: {why}: {text}"));
    assert_eq!(report, json(&directory, "report.json"));

    let (alone, measured, verdict) = (&report["alone"], &report["measurement"], &report["verdict"]);
    for phase in [alone, &report["calibration"], measured] {
        let whole = |key: &str| phase[key].as_u64().unwrap();
        assert!(whole("sent") > 0);
        assert_eq!(whole("sent"), whole("received"), "none is lost");
        assert_eq!(phase["response_us"]["count"], phase["received"]);
        assert!(whole("ran_ns") > 0 && whole("write_max_ns") > 0 && whole("response_max_ns") > 0);
        for kind in ["receive", "callback"] {
            assert!(classes(phase).contains(&(kind.into(), 46)), "{kind}: {phase}");
        }
    }
    for key in ["background_received", "slow_callbacks"] {
        assert_eq!(alone[key], 0);
        assert!(measured[key].as_u64().unwrap() > 0, "{key}");
    }
    assert!(measured["discovered"].as_u64().unwrap() >= 20, "the crowd is found");
    for class in [("receive", 0), ("callback", 0), ("callback", -10), ("timers", 0)] {
        assert!(classes(measured).contains(&(class.0.into(), class.1)), "{class:?}");
    }
    assert_eq!(verdict["is_kept"], measured["late"] == 0);
    assert_eq!(status.code(), Some(i32::from(measured["late"] != 0)));

    // `takt analyze` accepts the written files and computes the same certificate.
    assert_eq!(report["certificate"], json(&directory, "certificate.json"));
    assert_eq!(report["bound_ns"], report["certificate"]["flows"][0]["bound_ns"]);
    analyze(&format!("--verify {}", directory.text("certificate.json")));
    analyze(&format!("{} --certificate {}", directory.text("system.toml"), directory.text("again.json")));
    assert_eq!(json(&directory, "again.json"), json(&directory, "certificate.json"));
    // The bound includes the long callback.
    assert!(report["bound_ns"].as_u64().unwrap() > 5_000_000);
}

#[test]
fn long_callback_on_its_own_executor_does_not_delay_samples() {
    let directory = Directory::new("cli-aside");
    let (text, _) = run(&format!("{TINY} --aside --out {}", directory.path().display()));
    let report = json(&directory, "report.json");
    let system = &report["certificate"]["system"];
    let flows = system["flows"].as_array().unwrap();
    let slow = flows.iter().find(|flow| flow["name"] == "callback -10").unwrap();
    let resource = slow["stages"][0]["resource"].as_u64().unwrap() as usize;
    assert_eq!(system["resources"][resource]["name"], "aside");
    assert!(report["measurement"]["slow_callbacks"].as_u64().unwrap() > 0);
    for beginning in ["bound ", "response ", "critical ", "load ", "executor ", "jobs, us", "write ", "the bound is "] {
        assert!(text.lines().any(|line| line.starts_with(beginning)), "{beginning}: {text}");
    }
}

#[test]
fn margin_below_one_is_refused() {
    let (why, code) = Takt::start("bench executor --margin 0.5").error_text();
    assert_eq!((code, why.as_str()), (Some(2), "takt: margin 0.5: expected at least 1"));
}

#[cfg(feature = "security")]
#[test]
fn participants_authenticate_or_are_refused_while_encrypted_samples_flow() {
    let (text, status) = run(&format!("{TINY} --secure --format json"));
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{status}: {why}: {text}"));
    let measured = &report["measurement"];
    let whole = |key: &str| measured[key].as_u64().unwrap();
    assert_eq!(whole("sent"), whole("received"), "none is lost");
    assert!(whole("background_received") > 0);
    // The two writers are authenticated as well.
    assert!(whole("discovered") > 2, "{measured}");
    assert!(whole("refused") > 0, "{measured}");
}
