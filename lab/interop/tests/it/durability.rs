//! `takt durability` between vendors: TRANSIENT samples outlive the process of their writer, and
//! readers receive them from the service.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use takt_interop::content;
use takt_interop::network::Host;
use takt_interop::peer::{Batch, Durability, Endpoint, Kind};
use takt_interop::programs::{Program, takt};

use crate::scene::{hosts, possible, start};
use crate::tools::Background;

const WRITTEN: u64 = 30;
const KEYS: u32 = 3;
const SIZE: usize = 3000;
const TIMEOUT: Duration = Duration::from_secs(20);

fn service(host: &Host) -> Option<Background> {
    let mut command: Command = host.command(&possible(takt())?);
    command.args(["durability", "--settle", "0.2", "--interface", host.interface()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Some(Background(command.spawn().expect("the program starts")))
}

/// Returns the samples that a reader with `durability` receives after the writer's process has
/// exited: sequence numbers by key, in order of arrival.
fn outlived(publisher: Program, subscriber: Program, durability: Durability) -> Option<BTreeMap<u32, Vec<u64>>> {
    let network = hosts()?;
    let _service = service(&network.right)?;
    let mut left = start(publisher, &network.left, Default::default())?;
    let writer = Endpoint { durability: Durability::Transient, ..Endpoint::new("w", "T", Kind::NameKey) };
    left.writer(&writer).expect("created");
    left.matched("w", 1).expect("with the service");
    left.write("w", &Batch { key: 1, keys: KEYS, ..Batch::new(WRITTEN, SIZE) }).expect("running");
    left.written("w", TIMEOUT).expect("there is room");
    // The service acknowledges a sample once it has stored it.
    left.acknowledged("w", TIMEOUT).expect("acknowledged");
    drop(left);

    let mut right = start(subscriber, &network.left, Default::default())?;
    right.reader(&Endpoint { durability, ..Endpoint { id: "r".to_owned(), ..writer } }).expect("created");
    let mut received: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for number in 0..WRITTEN {
        let sample = right.sample("r").unwrap_or_else(|error| panic!("{number} of {WRITTEN}: {error}"));
        let key = sample.key.expect("valid samples have a key");
        assert_eq!(sample.hash, format!("{:016x}", content::expected_hash(SIZE, key, sample.seq)));
        received.entry(key).or_default().push(sample.seq);
    }
    Some(received)
}

fn check(publisher: Program, subscriber: Program, durability: Durability) {
    let Some(received) = outlived(publisher, subscriber, durability) else { return };
    for key in 1..=KEYS {
        let expected: Vec<u64> = (0..WRITTEN).filter(|seq| *seq % u64::from(KEYS) == u64::from(key - 1)).collect();
        assert_eq!(received[&key], expected, "{publisher} -> {subscriber}, {durability:?}");
    }
}

/// INTEROP(CycloneDDS 0.10.2, 11.0.1): a TRANSIENT reader requests no history from writers of other
/// vendors, whereas a TRANSIENT_LOCAL reader does.
#[test]
fn takt_samples_outlive_their_writer_for_cyclonedds_readers() {
    for subscriber in [Program::Cyclone10, Program::Cyclone11] {
        check(Program::Takt, subscriber, Durability::TransientLocal);
    }
}

#[test]
fn cyclonedds_samples_outlive_their_writer() {
    for publisher in [Program::Cyclone10, Program::Cyclone11] {
        check(publisher, Program::Takt, Durability::Transient);
        check(publisher, publisher, Durability::TransientLocal);
    }
}
