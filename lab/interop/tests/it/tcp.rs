//! TCP alone, between hosts of which only one listens. Takt uses the TCP format of CycloneDDS.
//!
//! INTEROP(CycloneDDS 11): the PyPI package is built without TCP.

use std::net::SocketAddr;
use std::time::Duration;

use takt_interop::content;
use takt_interop::peer::{Batch, Durability, Endpoint, Kind, Options, Peer, Tcp};
use takt_interop::programs::Program;

use crate::scene::{hosts, start};

const PORT: u16 = 7400;
const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn takt_connects_to_cyclonedds_0_10() {
    exchange(Program::Cyclone10, Program::Takt);
}

#[test]
fn cyclonedds_0_10_connects_to_takt() {
    exchange(Program::Takt, Program::Cyclone10);
}

#[test]
fn takt_connects_to_takt() {
    exchange(Program::Takt, Program::Takt);
}

/// Exchanges small and large samples in both directions at once.
fn exchange(listens: Program, connects: Program) {
    let Some(network) = hosts() else { return };
    let with = |tcp| Options { tcp: Some(tcp), ..Options::default() };
    let at = SocketAddr::from((network.left.address(), PORT));
    let Some(mut left) = start(listens, &network.left, with(Tcp::Listen(PORT))) else { return };
    let Some(mut right) = start(connects, &network.right, with(Tcp::Connect(at))) else { return };
    let endpoint = |id: &str, topic: &str| Endpoint {
        durability: Durability::TransientLocal,
        ..Endpoint::new(id, topic, Kind::Unkeyed)
    };
    left.writer(&endpoint("w", "Forth")).expect("created");
    right.reader(&endpoint("r", "Forth")).expect("created");
    right.writer(&endpoint("w", "Back")).expect("created");
    left.reader(&endpoint("r", "Back")).expect("created");
    for peer in [&mut left, &mut right] {
        peer.matched("w", 1).expect("matched");
        peer.matched("r", 1).expect("matched");
    }
    let mut first = 0;
    for (count, size) in [(500, 100), (50, 10_000), (4, 1 << 20)] {
        let batch = Batch { first, ..Batch::new(count, size) };
        left.write("w", &batch).expect("running");
        right.write("w", &batch).expect("running");
        for peer in [&mut left, &mut right] {
            expect(peer, "r", &batch);
        }
        for peer in [&mut left, &mut right] {
            peer.written("w", TIMEOUT).expect("written");
            peer.acknowledged("w", TIMEOUT).expect("acknowledged");
        }
        first += count;
    }
    left.quit().expect("it ends");
    right.quit().expect("it ends");
}

/// Checks that all samples of a batch arrive at a reader.
pub fn expect(peer: &mut Peer, reader: &str, batch: &Batch) {
    for seq in batch.first..batch.first + batch.count {
        let sample = peer.sample_within(reader, TIMEOUT).unwrap_or_else(|error| panic!("{batch:?}: {seq}: {error}"));
        let hash = content::expected_hash(batch.size, 0, seq);
        assert_eq!((sample.seq, sample.len, sample.hash), (seq, batch.size, format!("{hash:016x}")));
    }
}
