//! `takt bench sdn-overload`: short runs between switches that the command creates.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use takt_testkit::directory::Directory;
use takt_testkit::{not_run, overload, require};

use crate::process::Takt;

const SHORT: &str = "bench sdn-overload --quick --categories best-effort --line-rate 20 --json";

fn lost(cell: &Value) -> u64 {
    cell["sent"].as_u64().unwrap() - cell["received"].as_u64().unwrap()
}

#[test]
fn overload_loses_samples_without_the_controller_and_none_with_it() {
    let _lock = overload::lock();
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let directory = Directory::new("overload");
    let outcome = Takt::start(&format!("{SHORT} --seconds 2 --out {}", directory.path().display())).json();
    let cells = outcome["cells"].as_array().unwrap();
    let conditions: Vec<_> = cells.iter().map(|cell| cell["condition"].to_string()).collect();
    assert_eq!(conditions, ["\"idle\"", "{\"overload\":1400}", "{\"controlled\":1400}"]);
    assert!(cells.iter().all(|cell| cell["sent"] == 400), "{conditions:?}");
    assert!(lost(&cells[1]) > 0, "the overload is twice the link");
    assert_eq!(lost(&cells[2]), 0, "the pair is admitted: {}", cells[2]["lost_range"]);
    assert!(cells[2]["bound_ns"].as_u64().is_some_and(|bound_ns| bound_ns > 0) && cells[1]["bound_ns"].is_null());

    // The JSON file has the same content, and the page can be generated from it.
    let written: Value = serde_json::from_str(&directory.read("overload.json")).unwrap();
    assert_eq!(written, outcome);
    let arrivals: usize = cells.iter().map(|cell| cell["received"].as_u64().unwrap() as usize).sum();
    assert_eq!(directory.read("overload.csv").lines().count(), 1 + arrivals);
    let page = directory.read("report.html");
    std::fs::remove_file(directory.file("report.html")).unwrap();
    let json = directory.file("overload.json");
    let again =
        Takt::start(&format!("bench sdn-overload --from {} --out {}", json.display(), directory.path().display()));
    let (text, status) = again.finish();
    assert!(status.success() && text.contains("overload of 1400 B, controller"), "{text}");
    assert_eq!(directory.read("report.html"), page);
    assert!(page.contains("With the controller 0 of 400 samples were lost"), "{page}");
}

/// Returns the peer program of CycloneDDS 11, or the reason why it is missing.
fn cyclone() -> Result<PathBuf, String> {
    let peers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../lab/interop/peers");
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-s", "-C", peers, "paths"]).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let output = make.output().map_err(|why| format!("make: {why}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let program = PathBuf::from(text.lines().next().unwrap_or_default()).join("peer-cyclone11");
    let missing = || format!("{} is missing: make -C lab/interop/peers cyclone11", program.display());
    if program.is_file() { Ok(program) } else { Err(missing()) }
}

/// With a second reader, CycloneDDS sends samples by multicast. Both readers are behind the
/// overloaded link.
#[test]
fn cyclonedds_multicast_loses_samples_without_the_controller_and_none_with_it() {
    let _lock = overload::lock();
    let program = match require::open_vswitch().and_then(|()| cyclone()) {
        Ok(program) => program,
        Err(why) => return not_run(why),
    };
    let words = "bench sdn-overload --quick --line-rate 20 --seconds 4 --switches 2 --readers 2 --without-takt --json";
    let outcome = Takt::start(&format!("{words} --peer cyclonedds={}", program.display())).json();
    let cells = outcome["cells"].as_array().unwrap();
    let of =
        |condition: &str| -> Vec<&Value> { cells.iter().filter(|cell| cell["condition"][condition] == 1400).collect() };
    let [without, with] = [of("overload"), of("controlled")];
    assert_eq!((without.len(), with.len()), (4, 4), "best effort and reliable, one for each reader");
    for cell in without {
        assert!(lost(cell) > 0, "{} {}: the overload is twice the link", cell["category"], cell["reader"]);
    }
    for cell in with {
        let range = &cell["lost_range"];
        assert_eq!(lost(cell), 0, "{} {}: both pairs are admitted: {range}", cell["category"], cell["reader"]);
    }
}

#[test]
fn ring_reports_the_cost_of_a_failed_link() {
    let _lock = overload::lock();
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = Takt::start(&format!("{SHORT} --ring --seconds 6")).json();
    let cells = outcome["cells"].as_array().unwrap();
    let conditions: Vec<_> = cells.iter().map(|cell| cell["condition"].to_string()).collect();
    assert_eq!(conditions, ["\"idle\"", "{\"controlled\":1400}", "{\"failed\":1400}"]);
    assert_eq!((lost(&cells[0]), lost(&cells[1])), (0, 0), "both links are there");
    let arrivals = cells[2]["series"]["arrivals"].as_array().unwrap();
    let last = arrivals.last().unwrap()[0].as_u64().unwrap();
    assert_eq!(last, 1199, "samples arrive by the other way after the failure");
    // A flow leaves its old path before it takes the new one. Meanwhile a sample may arrive by
    // best-effort forwarding.
    let range = &cells[2]["lost_range"];
    let (Some(first), Some(last)) = (range[0].as_u64(), range[1].as_u64()) else { return };
    assert!(first >= 590, "sample {first} is lost before the link fails");
    assert!(2 * lost(&cells[2]) > last - first, "one stretch of losses, {first} to {last}, not {}", lost(&cells[2]));
    assert!(cells[2]["outage_us"].as_f64() >= Some(0.0), "samples arrive before and after: {}", cells[2]["outage_us"]);
}

#[test]
fn missing_open_vswitch_is_named_with_its_package() {
    if let Err(why) = require::root() {
        return not_run(why);
    }
    let (text, code) = Takt::start_in(SHORT, &[("PATH", "/nonexistent".to_owned())]).error_text();
    assert!(text.contains("Open vSwitch") && text.contains("openvswitch-switch"), "{text}");
    assert_ne!(code, Some(0));
}

#[test]
fn invalid_options_are_refused_with_the_expected_form() {
    for (option, expected) in [
        ("--backgrounds 59", "60 to 1514"),
        ("--peer fastdds", "NAME=PROGRAM"),
        ("--categories fast", "reliable-DEPTH"),
        ("--ring --switches 2", "cannot be used with"),
    ] {
        let (text, code) = Takt::start(&format!("bench sdn-overload {option}")).error_text();
        assert!(text.contains(expected) && code == Some(2), "{option}: {text}");
    }
}
