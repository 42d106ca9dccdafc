//! Sample exchange between Takt and each peer, in both directions, over the whole matrix. tshark
//! checks the capture.

use takt_interop::peer::Options;
use takt_interop::programs::Program;

use crate::exchange::{Case, cases, exchange};
use crate::scene::{Recorded, Scene};

/// Number of failures after which a matrix ends.
const ENOUGH: usize = 8;

#[test]
fn takt_and_cyclonedds_0_10_exchange_all_cases() {
    takt_and(Program::Cyclone10, Options::default(), |_| true);
}

#[test]
fn takt_and_cyclonedds_11_exchange_all_cases() {
    takt_and(Program::Cyclone11, Options::default(), |_| true);
}

#[test]
fn takt_and_fast_dds_2_exchange_all_cases() {
    takt_and(Program::FastDds2, Options::default(), |_| true);
}

#[test]
fn takt_and_fast_dds_3_exchange_all_cases() {
    takt_and(Program::FastDds3, Options::default(), |_| true);
}

#[test]
fn takt_and_takt_exchange_all_cases() {
    takt_and(Program::Takt, Options::default(), |_| true);
}

/// Runs all `wanted` cases in both directions. Returns the datagrams that bypassed the kernel of
/// Takt's host, received and sent.
pub fn takt_and(peer: Program, options: Options, wanted: fn(&Case) -> bool) -> Option<(u64, u64)> {
    let mut recorded = Recorded::with(Program::Takt, peer, options)?;
    let scene = &mut recorded.scene;
    // The kernels do not count datagrams that bypass them.
    let is_counted = options.xdp.is_none();
    let mut failures = one_way(scene, Program::Takt, peer, true, is_counted, wanted);
    failures.extend(one_way(scene, peer, Program::Takt, false, is_counted, wanted));
    let counters = scene.left.bypass_counters().expect("Takt still answers");
    if !failures.is_empty() {
        failures.push(recorded.evidence());
    }
    failures.extend(recorded.finish());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    Some(counters)
}

fn one_way(
    scene: &mut Scene,
    publisher: Program,
    subscriber: Program,
    left_publishes: bool,
    is_counted: bool,
    wanted: fn(&Case) -> bool,
) -> Vec<String> {
    let mut failures = Vec::new();
    let cases: Vec<Case> = cases(publisher, subscriber).into_iter().filter(wanted).collect();
    for (number, case) in cases.iter().enumerate() {
        if failures.len() == ENOUGH {
            failures.push(format!("{publisher} -> {subscriber}: {} cases not tried", cases.len() - number));
            break;
        }
        let side = if left_publishes { "l" } else { "r" };
        let (from, to) = match left_publishes {
            true => (&mut scene.left, &mut scene.right),
            false => (&mut scene.right, &mut scene.left),
        };
        let hosts = is_counted.then_some([&scene.network.left, &scene.network.right]);
        if let Err(why) = exchange((from, publisher), (to, subscriber), case, &format!("{side}{number}"), hosts) {
            failures.push(format!("{publisher} -> {subscriber}, {case}: {why}"));
        }
    }
    failures
}
