//! Tests that docs/performance.md and committed reports show exactly the committed results.

use std::path::Path;
use takt_bench::study::directory::Results;
use takt_bench::study::report::markdown::{chart, markdown};

#[test]
fn performance_page_and_chart_show_the_committed_results() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let results = Results::read(&documents.join("results/performance")).expect("results");
    let read = |name: &str| std::fs::read_to_string(documents.join(name)).expect("a document");
    let how = "docs/performance.md says in its head how it is generated";
    assert_eq!(read("performance.md"), markdown(&results, Some("performance.svg")).expect("a page"), "{how}");
    assert_eq!(Some(read("performance.svg")), chart(&results).expect("a chart"), "{how}");
}

#[test]
fn committed_reports_show_their_results() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let mut reports = 0;
    for entry in std::fs::read_dir(&directory).expect("a directory") {
        let results = entry.expect("an entry").path();
        let report = results.join("report.md");
        if !report.exists() {
            continue;
        }
        let text = std::fs::read_to_string(&report).expect("a report");
        let found = Results::read(&results).expect("results");
        let how = format!("takt bench report {} --markdown {}", results.display(), report.display());
        assert!(text == markdown(&found, None).expect("a report"), "{} is not of its results: {how}", report.display());
        reports += 1;
    }
    assert!(reports > 0, "no report in {}", directory.display());
}
