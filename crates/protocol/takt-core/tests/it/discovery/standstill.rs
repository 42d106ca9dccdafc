//! Standstills: after a stop, datagrams waiting in sockets count before the leases of others end.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::qos::*;

/// Duration of a standstill: longer than the participants' lease, 20 s, and that of the writer.
const STANDSTILL_MS: u64 = 25_000;
const WRITER_LEASE_MS: u64 = 2_000;

fn matched(seed: u64) -> (Network, WriterHandle, ReaderHandle) {
    let mut network = Network::new(2, seed);
    let lease_duration = Duration::from_millis(WRITER_LEASE_MS);
    let liveliness = Liveliness { kind: LivelinessKind::Automatic, lease_duration };
    let writer_qos = DataWriterQos { liveliness, durability: Durability::TransientLocal, ..keep_all_writer() };
    let reader_qos = DataReaderQos { liveliness, durability: Durability::TransientLocal, ..keep_all_reader() };
    let writer = network.writer(0, writer_spec("T", false, writer_qos));
    let reader = network.reader(1, reader_spec("T", false, reader_qos));
    network.await_match((0, writer), (1, reader));
    (network, writer, reader)
}

/// Returns whether the reader considers the writer alive, and how many writers it has matched in
/// total.
fn view(network: &mut Network, reader: ReaderHandle) -> (u32, u32) {
    let alive = network.nodes[1].liveliness_changed_status(reader).expect("the reader exists").alive_count;
    (alive, network.nodes[1].subscription_matched_status(reader).expect("the reader exists").total_count)
}

#[test]
fn stopped_participant_loses_no_living_participant() {
    for (seed, groups_first) in [(710, true), (711, false)] {
        let (mut network, writer, reader) = matched(seed);
        for number in 0..10 {
            network.write(0, writer, &payload(number, 20)).expect("write accepted");
        }
        network.run(1_000);
        network.stop(1);
        network.run(STANDSTILL_MS);
        network.resume(1, groups_first);
        network.run(5_000);
        assert_eq!(view(&mut network, reader), (1, 1), "seed {seed}");
        assert_eq!(network.nodes[1].counters().leases_expired, 0, "seed {seed}");
        assert_eq!(network.nodes[0].counters().leases_expired, 1, "the other side could not know: seed {seed}");
        network.write(0, writer, &payload(10, 20)).expect("write accepted");
        network.run(1_000);
        assert_eq!(network.take_all(1, reader).len(), 11, "each once: seed {seed}");
    }
}

#[test]
fn stopped_participant_detects_a_lost_one_a_lease_later() {
    let (mut network, _, reader) = matched(712);
    network.stop(1);
    network.cut.push(0);
    network.run(STANDSTILL_MS);
    network.resume(1, true);
    // After a standstill there is a tenth of a second to read waiting datagrams.
    network.run(WRITER_LEASE_MS + 100);
    assert_eq!(view(&mut network, reader), (0, 1));
    network.run(20_000);
    assert_eq!(network.nodes[1].counters().leases_expired, 1);
}
