//! Takt and each peer, both ways, through the whole matrix, recorded and judged by tshark.

use takt_interop::capture::Capture;
use takt_interop::programs::Program;

use crate::exchange::{cases, exchange};
use crate::scene::{Scene, hosts, possible, remarks, start};

/// After so many failures the rest of a matrix teaches nothing new.
const ENOUGH: usize = 8;

#[test]
fn takt_and_cyclonedds_0_10() {
    takt_and(Program::Cyclone10);
}

#[test]
fn takt_and_cyclonedds_11() {
    takt_and(Program::Cyclone11);
}

#[test]
fn takt_and_fast_dds() {
    takt_and(Program::FastDds);
}

#[test]
fn takt_and_takt() {
    takt_and(Program::Takt);
}

fn takt_and(peer: Program) {
    let Some(network) = hosts() else { return };
    let Some(capture) = possible(Capture::start(&network.left)) else { return };
    let Some(left) = start(Program::Takt, &network.left, Default::default()) else { return };
    let Some(right) = start(peer, &network.right, Default::default()) else { return };
    let mut scene = Scene { left, right, network };

    let mut failures = one_way(&mut scene, Program::Takt, peer, true);
    failures.extend(one_way(&mut scene, peer, Program::Takt, false));
    let Scene { left, right, network } = scene;
    for (program, running) in [("Takt", left), ("the peer", right)] {
        if let Err(error) = running.quit() {
            failures.push(format!("{program} does not end: {error}"));
        }
    }
    failures.extend(remarks(&capture.judge().expect("tshark reads the capture"), &network, [Program::Takt, peer]));
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn one_way(scene: &mut Scene, publisher: Program, subscriber: Program, left_publishes: bool) -> Vec<String> {
    let mut failures = Vec::new();
    let cases = cases(publisher, subscriber);
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
        if let Err(why) = exchange((from, publisher), (to, subscriber), case, &format!("{side}{number}")) {
            failures.push(format!("{publisher} -> {subscriber}, {case}: {why}"));
        }
    }
    failures
}
