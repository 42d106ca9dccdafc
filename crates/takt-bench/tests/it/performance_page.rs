//! docs/performance.md shows the committed results and nothing else.

use std::path::Path;
use takt_bench::study::directory::Results;
use takt_bench::study::report::markdown::{chart, markdown};

#[test]
fn the_page_and_the_chart_are_those_of_the_committed_results() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let results = Results::read(&documents.join("results/performance")).expect("results");
    let read = |name: &str| std::fs::read_to_string(documents.join(name)).expect("a document");
    let how = "docs/performance.md says in its head how it is generated";
    assert_eq!(read("performance.md"), markdown(&results, Some("performance.svg")).expect("a page"), "{how}");
    assert_eq!(Some(read("performance.svg")), chart(&results).expect("a chart"), "{how}");
}
