//! Reports and comparisons of results directories.

use crate::process::Takt;
use std::path::Path;
use takt_bench::study::cell::{Cell, Disturbance, Latency, Measured, Measurement, Outcome};
use takt_bench::study::directory::{Directory, Header};
use takt_bench::study::file::{Campaign, Length};

const CAMPAIGN: &str = "name = 'x'\ntitle = 'Round trips'\nrounds = 3\n[[workload]]\nname = 'rtt'\nkind = 'round-trip'\n\
    systems = ['a']\nparameters = { size = [16] }\n[[workload.figure]]\nform = 'bars'\ntitle = 'Median'\nvalue = 'p50'";

/// Writes results of three rounds around this latency.
fn write_results(path: &Path, latency_us: u64) {
    let header = Header {
        campaign: Campaign::parse(CAMPAIGN, Length::Normal).expect("the rules are kept"),
        length: Length::Normal,
        systems: Vec::new(),
        missing: Vec::new(),
        roles: Default::default(),
        build: "0".into(),
        command: Vec::new(),
    };
    let values = [("size".to_owned(), takt_bench::study::parameter::Value::Number(16))].into();
    let cell = Cell { workload: "rtt".into(), system: "a".into(), values };
    let measurement = |round: u32| Measurement {
        cell: cell.clone(),
        round,
        turn: 0,
        at: 1,
        disturbance: Disturbance::default(),
        commands: vec!["a ping size=16".into()],
        outcome: Outcome::Measured(Box::new(Measured {
            figures: Default::default(),
            latency: Latency::of((0..2000).map(|n| latency_us * 1000 + n + u64::from(round)).collect()),
            arrivals: None,
        })),
    };
    let mut directory = Directory::create(path, &header, &serde_json::Value::Null).expect("it is new");
    directory.append(&[measurement(0), measurement(1), measurement(2)]).expect("there is room");
}

#[test]
fn results_are_written_as_files_compared_and_explained() {
    let scratch = takt_testkit::directory::Directory::new("results");
    let path = |name: &str| scratch.file(name);
    write_results(&path("before"), 50);
    write_results(&path("after"), 80);
    let (before, after) = (scratch.text("before"), scratch.text("after"));

    let (text, status) = Takt::start(&format!("bench report {before}")).finish();
    assert!(status.success() && text.contains("### Median"), "{text}");
    let (page, csv) = (path("report.html"), path("csv"));
    let line = format!("bench report {before} --html {} --csv {}", page.display(), csv.display());
    assert!(Takt::start(&line).finish().1.success());
    assert!(std::fs::read_to_string(page).expect("it was written").contains("<svg"));
    assert!(csv.join("percentiles.csv").is_file() && csv.join("measurements.csv").is_file());

    assert!(Takt::start(&format!("bench compare {before} {before}")).finish().1.success());
    let (text, code) = Takt::start(&format!("bench compare {before} {after}")).error_text();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("values are worse by more than 5 %"), "{text}");
    let (text, status) = Takt::start(&format!("bench compare {before} {after} --threshold 100 --json")).finish();
    assert!(status.success() && text.contains("\"verdict\": \"equal\""), "{text}");

    let (text, status) = Takt::start(&format!("bench explain {before} rtt")).finish();
    assert!(status.success() && text.contains("command: a ping size=16"), "{text}");
    let (text, code) = Takt::start(&format!("bench explain {before} nothing")).error_text();
    assert_eq!(code, Some(2), "{text}");
    let (text, code) = Takt::start("bench report /nowhere").error_text();
    assert!(code == Some(1) && text.contains("/nowhere/campaign.json"), "{text}");
}
