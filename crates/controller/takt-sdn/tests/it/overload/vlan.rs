//! Tests of a pair with a contract in a VLAN, with an untagged flood of twice the link's rate.

use takt_testkit::lab_text::CLASSES;
use takt_testkit::{not_run, require};

use super::station::Station;
use super::{Outcome, SAMPLES, SEPARATION, network, run_with, two_switches};

/// Asserts that the Open vSwitch puts all samples into the queue of the link that their DSCP
/// selects, after their tag.
fn assert_classed(outcome: &Outcome) {
    let text = &outcome.counters;
    assert!(text.contains("dl_vlan=5"), "an entry matches the VLAN\n{text}");
    let of_link = text.lines().filter_map(|line| line.strip_prefix("west-3 "));
    let sent = |line: &str| {
        let (class, rest) = line.split_once(": ")?;
        let frames = rest.split(' ').next()?.parse::<u32>().expect("a number of frames");
        (class != "other").then_some(frames)
    };
    let classed: u32 = of_link.filter_map(sent).sum();
    assert!(classed >= SAMPLES, "{classed} frames in classes\n{text}");
}

#[test]
fn admitted_pair_in_a_vlan_loses_no_sample_under_a_flood_of_twice_the_link() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let open = Station::open_in_vlan;
    let outcome = run_with("vlan", &two_switches(CLASSES), Some(network()), SEPARATION, open);
    outcome.assert_overload();
    assert!(outcome.lost.is_empty(), "{:?} of {SAMPLES}\n{}", outcome.lost, outcome.counters);
    assert_classed(&outcome);
}

#[test]
fn pair_in_a_vlan_without_admission_loses_samples_under_the_same_flood() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run_with("vlan-mixed", &two_switches(CLASSES), None, SEPARATION, Station::open_in_vlan);
    outcome.assert_overload();
    assert!(!outcome.lost.is_empty(), "{}", outcome.counters);
}
