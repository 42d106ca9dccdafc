//! TRANSIENT_LOCAL across processes: a subscriber that starts after all writes receives the samples
//! that HISTORY keeps.

use std::collections::BTreeMap;
use std::time::Duration;

use takt_interop::content;
use takt_interop::peer::{Batch, Durability, Endpoint, Kind};
use takt_interop::programs::Program;

use crate::scene::{hosts, start};

const WRITTEN: u64 = 60;
const KEYS: u32 = 3;
const SIZE: usize = 3000;

/// Writes, then starts the process of the subscriber. Returns the received sequence numbers by key,
/// in order of arrival.
fn late(publisher: Program, subscriber: Program, keep_last: u32) -> Option<BTreeMap<u32, Vec<u64>>> {
    let network = hosts()?;
    let mut left = start(publisher, &network.left, Default::default())?;
    let endpoint =
        |id: &str| Endpoint { durability: Durability::TransientLocal, ..Endpoint::new(id, "T", Kind::NameKey) };
    left.writer(&Endpoint { keep_last, ..endpoint("w") }).expect("created");
    let batch = Batch { key: 1, keys: KEYS, ..Batch::new(WRITTEN, SIZE) };
    left.write("w", &batch).expect("running");
    left.written("w", Duration::from_secs(20)).expect("nobody holds the writer up");

    let mut right = start(subscriber, &network.right, Default::default())?;
    right.reader(&endpoint("r")).expect("created");
    let expected = if keep_last == 0 { WRITTEN } else { u64::from(keep_last * KEYS) };
    let mut received: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for number in 0..expected {
        let sample = right.sample("r").unwrap_or_else(|error| panic!("{number} of {expected}: {error}"));
        let key = sample.key.expect("valid samples have a key");
        assert_eq!(sample.hash, format!("{:016x}", content::expected_hash(SIZE, key, sample.seq)));
        received.entry(key).or_default().push(sample.seq);
    }
    left.acknowledged("w", Duration::from_secs(20)).expect("acknowledged");
    assert!(right.pending("r").iter().all(|event| !matches!(event, takt_interop::event::Event::Sample(_))));
    Some(received)
}

/// Returns the sequence numbers of instance `key` that a late joiner must receive.
fn expected(key: u32, keep_last: u32) -> Vec<u64> {
    let all: Vec<u64> = (0..WRITTEN).filter(|seq| *seq % u64::from(KEYS) == u64::from(key - 1)).collect();
    let kept = if keep_last == 0 { all.len() } else { keep_last as usize };
    all[all.len() - kept..].to_vec()
}

fn check(publisher: Program, subscriber: Program) {
    for keep_last in [0, 1, 4] {
        let Some(received) = late(publisher, subscriber, keep_last) else { return };
        for key in 1..=KEYS {
            assert_eq!(received[&key], expected(key, keep_last), "{publisher} -> {subscriber}, keep {keep_last}");
        }
    }
}

#[test]
fn late_process_receives_history_of_takt_writer() {
    for subscriber in [Program::Takt, Program::Cyclone10, Program::Cyclone11, Program::FastDds2, Program::FastDds3] {
        check(Program::Takt, subscriber);
    }
}

#[test]
fn late_takt_process_receives_history_of_other_vendors() {
    for publisher in Program::FOREIGN {
        check(publisher, Program::Takt);
    }
}
