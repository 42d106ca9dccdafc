//! `takt perf compare`: campaigns in which each column runs this build of `takt`. Each test has
//! domains of its own, since a campaign uses 16 of them in turn.

use crate::file::File;
use crate::process::Takt;
use serde_json::Value;
use std::process::Command;

/// Options of a campaign of a few seconds.
const SMALL: &str = "--rounds 2 --samples 100 --warmup 10";

#[test]
fn columns_alternate_and_every_cell_is_measured() {
    let line = format!("perf compare {SMALL} --size 16,512 --domain 130 --json");
    let json = Takt::start(&line).json();
    let column = |value: &Value| value["column"].as_str().unwrap().to_string();
    let cells: Vec<String> = json["cells"].as_array().unwrap().iter().map(column).collect();
    let twice = |name: &str| [name.to_string(), name.to_string()];
    let round = ["raw-udp", "takt", "raw-udp-spin", "takt-spin"].map(twice).concat();
    assert_eq!(cells[..8], round, "the first round measures both sizes of each column");
    let mut rotated = round.clone();
    rotated.rotate_left(2);
    assert_eq!(cells[8..], rotated, "the second round begins with the next column");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert_eq!(row["rounds"], 2, "{row}");
        assert_eq!(row["lost"], 0, "{row}");
        assert!(row["p50"].as_f64().unwrap() > 0.0 && row["ratio"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert_eq!(json["plan"]["interface"], "lo");
    assert!(json["host"]["kernel"].is_string());
}

#[test]
fn other_programs_are_columns_and_are_named_in_the_table() {
    // A script that runs `takt perf agent` stands for a program of another system: it follows the
    // agent contract.
    let directory = std::env::temp_dir().join(format!("takt-peers-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let script = directory.join("other");
    let text = format!("#!/bin/sh\nexec {} perf agent \"$@\"\n", env!("CARGO_BIN_EXE_takt"));
    // `install` writes the script, since a file that is open for writing cannot be executed. A file
    // that this process opens is also open in a child that another test starts, until that child
    // calls exec.
    let text = File::new("other.sh", &text);
    let installed = Command::new("install").args(["-m", "755", &text.path()]).arg(&script).status();
    assert!(installed.unwrap().success());
    let line = format!(
        "perf compare {SMALL} --block --domain 150 --peers {} --peer tuned={},transport=shared",
        directory.display(),
        script.display()
    );
    let (table, status) = Takt::start(&line).finish();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(status.success(), "{table}");
    let names: Vec<&str> = table.lines().skip(2).map(|l| l.split('|').nth(2).unwrap().trim()).collect();
    assert_eq!(names, ["raw-udp", "takt", "other", "tuned"]);
}

#[test]
fn failed_column_is_named() {
    let line = format!("perf compare {SMALL} --block --domain 170 --peer broken=/bin/false");
    let (text, code) = Takt::start(&line).error_text();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("column broken: pong: ended without \"ready\""), "{text}");
}
