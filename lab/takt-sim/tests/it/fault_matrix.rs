//! Fault matrix: the committed page equals the result of the simulation.

use takt_sim::matrix::{COMMAND, DOCUMENT, Row, page};

/// Divisor of the rows in a default run. `TAKT_TEST_LONG=1` runs all rows.
const EVERY: usize = 9;

#[test]
fn committed_fault_matrix_equals_simulation() {
    let path = format!("{}/../../{DOCUMENT}", env!("CARGO_MANIFEST_DIR"));
    let committed = std::fs::read_to_string(&path).expect("it is committed");
    if std::env::var_os("TAKT_TEST_LONG").is_some_and(|value| value == "1") {
        let computed = page().expect("all promises are kept");
        let differs = computed.lines().zip(committed.lines()).find(|(computed, committed)| computed != committed);
        assert_eq!(differs, None, "{DOCUMENT} is out of date; `{COMMAND}` writes it");
        assert!(computed == committed, "{DOCUMENT} is out of date; `{COMMAND}` writes it");
    } else {
        for row in Row::all().step_by(EVERY) {
            let mut broken = Vec::new();
            let line = row.line(&mut broken);
            assert_eq!(broken, Vec::<String>::new());
            let is_there = committed.lines().any(|committed| committed == line);
            assert!(is_there, "{DOCUMENT} is out of date; `{COMMAND}` writes it. Missing:\n{line}");
        }
    }
    assert_eq!(committed.lines().filter(|line| line.contains("MB/s")).count(), Row::all().count());
}
