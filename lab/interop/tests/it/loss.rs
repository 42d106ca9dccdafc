//! RELIABLE KEEP_ALL over a link that loses, duplicates and reorders datagrams in both directions.
//! Every sample arrives once, in order, with correct content.
//!
//! `TAKT_TEST_LONG=1` sends 100,000 samples of 100 B and 200 samples of 1 MB at each loss rate,
//! instead of the short default.

use std::time::Duration;

use takt_interop::content;
use takt_interop::event::Event;
use takt_interop::impairment::Impairment;
use takt_interop::peer::{Batch, Endpoint, Kind, Options};
use takt_interop::programs::Program;

use crate::scene::Scene;

/// Maximum time between two samples. A link with 30 % loss is slow, but makes progress.
const TIMEOUT: Duration = Duration::from_secs(60);
/// First sequence number of the warm-up samples, which are written before the impairment starts.
const WARM_UP: u64 = 1 << 32;

fn batches() -> [Batch; 2] {
    match takt_testkit::is_full_length() {
        true => [Batch::new(100_000, 100), Batch::new(200, 1 << 20)],
        false => [Batch::new(2_000, 100), Batch::new(4, 1 << 20)],
    }
}

#[test]
fn takt_to_takt_survives_loss() {
    survives(Program::Takt, Program::Takt, Options::default(), &[1, 10, 30]);
}

#[test]
fn takt_to_cyclonedds_survives_loss() {
    survives(Program::Takt, Program::Cyclone11, Options::default(), &[1, 10, 30]);
}

#[test]
fn cyclonedds_to_takt_survives_loss() {
    survives(Program::Cyclone11, Program::Takt, Options::default(), &[1, 10, 30]);
}

/// Sends one stream after the other at each loss rate. Returns the datagrams that Takt's
/// participants received and sent past their kernels.
pub fn survives(
    publisher: Program,
    subscriber: Program,
    options: Options,
    loss_percent: &[u32],
) -> Option<Vec<(u64, u64)>> {
    let mut counters = Vec::new();
    for loss_percent in loss_percent {
        for batch in batches() {
            let mut scene = Scene::with(publisher, subscriber, options)?;
            let label = format!("{publisher} -> {subscriber}, {loss_percent} %, {} of {} B", batch.count, batch.size);
            stream(&mut scene, *loss_percent, &batch, &label);
            for (program, peer) in [(publisher, &mut scene.left), (subscriber, &mut scene.right)] {
                if program == Program::Takt {
                    counters.push(peer.bypass_counters().expect("Takt still answers"));
                }
            }
        }
    }
    Some(counters)
}

fn stream(scene: &mut Scene, loss_percent: u32, batch: &Batch, label: &str) {
    let Scene { left, right, network } = scene;
    left.writer(&Endpoint::new("w", "T", Kind::Unkeyed)).expect("created");
    right.reader(&Endpoint::new("r", "T", Kind::Unkeyed)).expect("created");
    left.matched("w", 1).expect("matched");
    right.matched("r", 1).expect("matched");
    warm_up(left, right);

    // A stream has at least a hundred datagrams, so that some are duplicated and some delayed with
    // near certainty.
    let impairment = Impairment { loss_percent, duplicate_percent: 10, late_percent: 10, ..Impairment::default() };
    network.impair(impairment).expect("the kernel has a packet filter");
    left.write("w", batch).expect("running");
    let mut expected = 0;
    while expected < batch.count {
        let sample = right.sample_within("r", TIMEOUT).unwrap_or_else(|error| panic!("{label}: {expected}: {error}"));
        if sample.seq >= WARM_UP {
            continue;
        }
        assert_eq!(sample.seq, expected, "{label}");
        let hash = content::expected_hash(batch.size, 0, expected);
        assert_eq!((sample.len, sample.hash), (batch.size, format!("{hash:016x}")), "{label}: sample {expected}");
        expected += 1;
    }
    left.written("w", TIMEOUT).unwrap_or_else(|error| panic!("{label}: {error}"));
    left.acknowledged("w", TIMEOUT).unwrap_or_else(|error| panic!("{label}: {error}"));
    let counters = network.impairment_counters().expect("rules");
    assert!(counters.dropped > 0, "{label}: the link lost nothing of the data");
    assert!(
        counters.duplicated > 0 && counters.late > 0,
        "{label}: the link neither repeated nor delayed: {counters:?}"
    );
    network.clear_impairment().expect("the rules go");
    let surplus = right.pending("r");
    assert!(surplus.iter().all(|event| !matches!(event, Event::Sample(_))), "{label}: {surplus:?}");
}

/// Writes until a sample arrives; see `exchange.rs`: a peer may report a match before it delivers
/// samples.
fn warm_up(left: &mut takt_interop::peer::Peer, right: &mut takt_interop::peer::Peer) {
    for attempt in 0.. {
        left.write("w", &Batch { first: WARM_UP + attempt, ..Batch::new(1, 16) }).expect("running");
        left.written("w", TIMEOUT).expect("the link is good");
        if right.sample_within("r", Duration::from_millis(500)).is_ok() {
            return;
        }
        assert!(attempt < 10, "nothing arrives over a good link");
    }
}
