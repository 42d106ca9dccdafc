//! Captures of the simulated network in tshark.

use takt_interop::capture::analyze_file;
use takt_sim::capture::{Capture, Link};
use takt_sim::clock::MILLISECOND;
use takt_sim::scenario::Scenario;
use takt_sim::world;

#[test]
fn simulated_link_is_dissected_without_errors() {
    let path = std::env::temp_dir().join(format!("takt-simulated-{}.pcap", std::process::id()));
    let mut capture = Capture::create(&path, Link::All).expect("a file");
    let report = world::run(&Scenario::steady(3, 200 * MILLISECOND), &mut capture);
    assert_eq!(report.violation, None);
    let frames = capture.finish().expect("all of it is written");
    let verdict = analyze_file(&path).expect("tshark reads the capture");
    std::fs::remove_file(&path).expect("it was written");
    assert_eq!(verdict.errors, []);
    assert!(frames > 100, "only {frames} frames");
    assert_eq!(verdict.rtps.values().sum::<u64>(), frames);
    assert_eq!(verdict.rtps.len(), 3, "each host sends: {:?}", verdict.rtps.keys());
}
