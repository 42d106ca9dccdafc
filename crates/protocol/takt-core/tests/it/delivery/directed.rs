//! Directed writes: they reach exactly the named readers (RTPS 2.5 §8.7.4).

use crate::network::*;
use takt_core::*;
use takt_wire::Guid;
use takt_wire::qos::*;

/// Writes a sample of `len` octets to the given readers only.
fn direct(network: &mut Network, writer: WriterHandle, readers: &[Guid], number: u32, len: usize) {
    let bytes = payload(number, len);
    let change = NewChange {
        kind: ChangeKind::Alive,
        key_hash: [0; 16],
        source_timestamp: None,
        destinations: readers,
        payload_len: bytes.len(),
    };
    let now = network.now;
    let written = network.nodes[0].write(now, writer, &change, |slot| {
        slot.copy_from_slice(&bytes);
        Some(bytes.len())
    });
    assert!(written.is_ok(), "{written:?}");
}

fn reader_qos(is_reliable: bool, durability: Durability) -> DataReaderQos {
    let reliability = if is_reliable { reliable() } else { best_effort() };
    DataReaderQos { reliability, durability, ..keep_all_reader() }
}

fn numbers(network: &mut Network, node: usize, reader: ReaderHandle) -> Vec<u32> {
    let taken = network.take_all(node, reader);
    taken.iter().map(|(_, bytes)| u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"))).collect()
}

/// Kinds of the writer and of its readers.
const KINDS: [(bool, bool, Durability); 6] = [
    (true, true, Durability::Volatile),
    (true, false, Durability::Volatile),
    (false, false, Durability::Volatile),
    (true, true, Durability::TransientLocal),
    (true, false, Durability::TransientLocal),
    (false, false, Durability::TransientLocal),
];

fn writer_qos(is_reliable: bool, durability: Durability) -> DataWriterQos {
    let reliability = if is_reliable { reliable() } else { best_effort() };
    DataWriterQos { reliability, durability, ..keep_all_writer() }
}

#[test]
fn directed_sample_reaches_only_the_named_reader_of_any_kind() {
    for (writer_reliable, readers_reliable, durability) in KINDS {
        let mut network = Network::new(4, 910);
        let writer = network.writer(0, writer_spec("T", false, writer_qos(writer_reliable, durability)));
        let spec = || reader_spec("T", false, reader_qos(readers_reliable, durability));
        let early: Vec<_> = (1..3).map(|node| network.reader(node, spec())).collect();
        network.await_match((0, writer), (1, early[0]));
        network.await_match((0, writer), (2, early[1]));
        network.run(200);
        let chosen = network.nodes[2].reader_guid(early[1]).expect("the reader exists");
        network.write(0, writer, &payload(0, 32)).expect("write accepted");
        direct(&mut network, writer, &[chosen], 1, 32);
        network.write(0, writer, &payload(2, 32)).expect("write accepted");
        direct(&mut network, writer, &[chosen], 3, 40_000);
        network.run(500);
        let late = network.reader(3, spec());
        network.await_match((0, writer), (3, late));
        network.run(500);
        network.write(0, writer, &payload(4, 32)).expect("write accepted");
        network.run(500);
        let what = (writer_reliable, readers_reliable, durability);
        assert_eq!(numbers(&mut network, 1, early[0]), [0, 2, 4], "{what:?}");
        assert_eq!(numbers(&mut network, 2, early[1]), [0, 1, 2, 3, 4], "{what:?}");
        let of_late: &[u32] = if durability == Durability::Volatile { &[4] } else { &[0, 2, 4] };
        assert_eq!(numbers(&mut network, 3, late), of_late, "{what:?}");
    }
}

#[test]
fn directed_sample_reaches_a_named_reader_that_matches_later() {
    for is_reliable in [true, false] {
        let mut network = Network::new(3, 911);
        let durability = Durability::TransientLocal;
        let writer = network.writer(0, writer_spec("T", false, writer_qos(is_reliable, durability)));
        let late = network.reader(1, reader_spec("T", false, reader_qos(is_reliable, durability)));
        let other = network.reader(2, reader_spec("T", false, reader_qos(is_reliable, durability)));
        let chosen = network.nodes[1].reader_guid(late).expect("the reader exists");
        direct(&mut network, writer, &[chosen], 1, 32);
        network.write(0, writer, &payload(2, 32)).expect("write accepted");
        network.await_match((0, writer), (1, late));
        network.await_match((0, writer), (2, other));
        network.run(500);
        assert_eq!(numbers(&mut network, 1, late), [1, 2], "reliable: {is_reliable}");
        assert_eq!(numbers(&mut network, 2, other), [2], "reliable: {is_reliable}");
    }
}

#[test]
fn directed_samples_of_a_burst_reach_a_best_effort_reader_in_order() {
    for len in [20, 3_000] {
        let mut network = Network::new(2, 912);
        let writer = network.writer(0, writer_spec("T", false, writer_qos(true, Durability::Volatile)));
        let reader = network.reader(1, reader_spec("T", false, reader_qos(false, Durability::Volatile)));
        network.await_match((0, writer), (1, reader));
        let chosen = network.nodes[1].reader_guid(reader).expect("the reader exists");
        for number in 0..1_500 {
            direct(&mut network, writer, &[chosen], number, len);
        }
        network.run(1_000);
        assert_eq!(numbers(&mut network, 1, reader), (0..1_500).collect::<Vec<_>>(), "{len} octets");
    }
}

#[test]
fn best_effort_reader_does_not_count_directed_and_replaced_samples_as_lost() {
    for (writer_reliable, durability) in [
        (true, Durability::Volatile),
        (false, Durability::Volatile),
        (true, Durability::TransientLocal),
        (false, Durability::TransientLocal),
    ] {
        let mut network = Network::new(4, 913);
        let history = History::KeepLast(1);
        let qos = DataWriterQos { history, ..writer_qos(writer_reliable, durability) };
        let writer = network.writer(0, writer_spec("T", true, qos));
        let spec = || reader_spec("T", true, reader_qos(false, durability));
        let early: Vec<_> = (1..3).map(|node| network.reader(node, spec())).collect();
        network.await_match((0, writer), (1, early[0]));
        network.await_match((0, writer), (2, early[1]));
        network.run(1_500);
        let chosen = network.nodes[2].reader_guid(early[1]).expect("the reader exists");
        let write = |network: &mut Network, key: u8| {
            network.write_key(0, writer, ChangeKind::Alive, hash(key), &payload(key.into(), 20)).expect("room");
            network.run(1);
        };
        // The samples 1, 3, 5 and 9 of these remain.
        [7, 1, 2, 1, 3, 2, 2, 2, 4].into_iter().for_each(|key| write(&mut network, key));
        for key in [5, 6, 5, 5] {
            direct(&mut network, writer, &[chosen], key, 32);
            network.run(1);
        }
        [2, 1].into_iter().for_each(|key| write(&mut network, key));
        let late = network.reader(3, spec());
        network.await_match((0, writer), (3, late));
        network.run(1_500);
        [1, 1, 2].into_iter().for_each(|key| write(&mut network, key));
        for (node, reader) in [(1, early[0]), (2, early[1]), (3, late)] {
            let lost = network.nodes[node].sample_lost_status(reader).expect("the reader exists").total_count;
            assert_eq!(lost, 0, "node {node}, {writer_reliable}, {durability:?}");
        }
        // Samples lost in the network count as lost.
        network.cut = vec![1];
        [1, 2, 3].into_iter().for_each(|key| write(&mut network, key));
        network.cut = vec![];
        write(&mut network, 1);
        let lost = network.nodes[1].sample_lost_status(early[0]).expect("the reader exists").total_count;
        assert_eq!(lost, 3, "{writer_reliable}, {durability:?}");
    }
}

#[test]
fn directed_sample_asserts_its_manual_writer_at_other_readers() {
    for kind in [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant] {
        for is_reliable in [true, false] {
            let mut network = Network::new(3, 915);
            let liveliness = Liveliness { kind, lease_duration: takt_wire::Duration::from_millis(300) };
            let qos = DataWriterQos { liveliness, ..writer_qos(true, Durability::Volatile) };
            let writer = network.writer(0, writer_spec("T", false, qos));
            let spec = || reader_spec("T", false, reader_qos(is_reliable, Durability::Volatile));
            let readers = [1, 2].map(|node| network.reader(node, spec()));
            for (node, reader) in [1, 2].into_iter().zip(readers) {
                network.await_match((0, writer), (node, reader));
            }
            let chosen = network.nodes[2].reader_guid(readers[1]).expect("the reader exists");
            for number in 0..20 {
                direct(&mut network, writer, &[chosen], number, 32);
                network.run(200);
                for (node, reader) in [1, 2].into_iter().zip(readers) {
                    let status = network.nodes[node].liveliness_changed_status(reader).expect("the reader exists");
                    let counts = (status.alive_count, status.not_alive_count);
                    assert_eq!(counts, (1, 0), "{kind:?}, reliable {is_reliable}, node {node}, sample {number}");
                }
            }
            assert!(network.take_all(1, readers[0]).is_empty(), "all samples are for the other reader");
            network.run(700);
            let status = network.nodes[1].liveliness_changed_status(readers[0]).expect("the reader exists");
            assert_eq!((status.alive_count, status.not_alive_count), (0, 1), "{kind:?}: the lease ends");
        }
    }
}
