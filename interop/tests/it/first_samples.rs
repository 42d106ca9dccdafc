//! The first samples after a match, from a writer whose history holds one sample and cannot repeat what it has replaced.

use std::time::Duration;

use takt_interop::peer::{Batch, Endpoint, Kind};
use takt_interop::programs::Program;

use crate::scene::Scene;

/// Matches for each peer: before DATA that precede the first HEARTBEAT were kept, a sample was missing in every third.
const ROUNDS: usize = 20;
const SAMPLES: u64 = 20;
/// Longer than Fast DDS needs to send a sample, so that KEEP_LAST 1 replaces none that is still to be sent.
const PERIOD_US: u64 = 1_000;
const SIZE: usize = 100;
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn first_samples_of_a_keep_last_1_fast_dds_writer_arrive() {
    for publisher in [Program::FastDds2, Program::FastDds3] {
        let Some(mut scene) = Scene::new(publisher, Program::Takt) else { return };
        for round in 0..ROUNDS {
            let topic = format!("T{round}");
            let (writer, reader) = (format!("w{round}"), format!("r{round}"));
            let keep_last_1 = Endpoint { keep_last: 1, ..Endpoint::new(&writer, &topic, Kind::Unkeyed) };
            scene.left.writer(&keep_last_1).expect("created");
            scene.right.reader(&Endpoint::new(&reader, &topic, Kind::Unkeyed)).expect("created");
            scene.left.matched(&writer, 1).expect("matched");
            scene.right.matched(&reader, 1).expect("matched");
            let batch = Batch { period_us: PERIOD_US, ..Batch::new(SAMPLES, SIZE) };
            scene.left.write(&writer, &batch).expect("running");
            for expected in 0..SAMPLES {
                let sample = scene.right.sample_within(&reader, PATIENCE);
                let sample = sample.unwrap_or_else(|why| panic!("{publisher}, match {round}: {why}"));
                assert_eq!(sample.seq, expected, "{publisher}, match {round}");
            }
            scene.left.written(&writer, PATIENCE).expect("everything is written");
            scene.left.delete(&writer).expect("deleted");
            scene.right.delete(&reader).expect("deleted");
        }
    }
}
