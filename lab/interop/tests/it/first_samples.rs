//! First samples after a match, from a writer with KEEP_LAST 1, which cannot retransmit replaced
//! samples.

use std::time::Duration;

use takt_interop::peer::{Batch, Endpoint, Kind};
use takt_interop::programs::Program;

use crate::scene::Recorded;

/// Number of matches for each peer. Without buffering of DATA that precede the first HEARTBEAT, a
/// third of the matches lost a sample.
const ROUNDS: usize = 20;
const SAMPLES: u64 = 20;
const PERIOD_US: u64 = 1_000;
const SIZE: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn first_samples_of_a_keep_last_1_fast_dds_2_writer_arrive() {
    first_samples_arrive(Program::FastDds2);
}

#[test]
fn first_samples_of_a_keep_last_1_fast_dds_3_writer_arrive() {
    first_samples_arrive(Program::FastDds3);
}

fn first_samples_arrive(publisher: Program) {
    let Some(mut recorded) = Recorded::new(publisher, Program::Takt) else { return };
    for round in 0..ROUNDS {
        let received = samples_of_a_match(&mut recorded, round);
        let expected: Vec<u64> = (0..SAMPLES).collect();
        if received != expected {
            panic!("{publisher}, match {round}: {received:?}\n{}", recorded.evidence());
        }
    }
    recorded.end();
}

/// Returns the samples that a reader receives from a writer that writes as soon as both are
/// matched. The writer sends within `write`. An asynchronous writer may replace a sample in its
/// history before it is sent.
fn samples_of_a_match(recorded: &mut Recorded, round: usize) -> Vec<u64> {
    let scene = &mut recorded.scene;
    let (topic, writer, reader) = (format!("T{round}"), format!("w{round}"), format!("r{round}"));
    let endpoint = |id: &str| Endpoint::new(id, &topic, Kind::Unkeyed);
    scene.left.writer(&Endpoint { keep_last: 1, synchronous: true, ..endpoint(&writer) }).expect("created");
    scene.right.reader(&endpoint(&reader)).expect("created");
    scene.left.matched(&writer, 1).expect("matched");
    scene.right.matched(&reader, 1).expect("matched");
    scene.left.write(&writer, &Batch { period_us: PERIOD_US, ..Batch::new(SAMPLES, SIZE) }).expect("running");
    let mut received = Vec::new();
    while received.last() != Some(&(SAMPLES - 1))
        && let Ok(sample) = scene.right.sample_within(&reader, TIMEOUT)
    {
        received.push(sample.seq);
    }
    scene.left.written(&writer, TIMEOUT).expect("everything is written");
    scene.left.delete(&writer).expect("deleted");
    scene.right.delete(&reader).expect("deleted");
    received
}
