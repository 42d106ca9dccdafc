//! PUBLICATION_MATCHED: a reader is counted once its participant knows the writer, so that later
//! samples also arrive at best-effort readers.

use crate::network::*;
use takt_core::*;
use takt_wire::qos::*;

fn best_effort_pair(network: &mut Network) -> (WriterHandle, ReaderHandle) {
    let qos = DataWriterQos { reliability: best_effort(), ..DataWriterQos::default() };
    let writer = network.writer(0, writer_spec("T", false, qos));
    let reader = network.reader(1, reader_spec("T", false, DataReaderQos::default()));
    (writer, reader)
}

fn readers(network: &mut Network, writer: WriterHandle) -> u32 {
    network.nodes[0].publication_matched_status(writer).expect("the writer exists").current_count
}

#[test]
fn match_is_counted_when_the_readers_participant_has_acknowledged_the_writer() {
    let mut counted = 0;
    for seed in 0..60 {
        let mut network = Network::new(2, seed);
        network.faults = Faults { loss: 10, duplication: 5, reordering: 30 };
        // Both participants know each other before the endpoints are created.
        network.run(3_000);
        let begin = network.now;
        let (writer, reader) = best_effort_pair(&mut network);
        assert!(network.run_until(10_000, |network| readers(network, writer) == 1), "seed {seed}");
        if network.now.since(begin) >= std::time::Duration::from_millis(900) {
            continue;
        }
        counted += 1;
        let writers = network.nodes[1].matched_publications(reader).expect("the reader exists");
        assert_eq!(writers.len(), 1, "seed {seed}: the writer counts a reader that does not know it");
    }
    assert!(counted > 30, "{counted} of 60 were matched in time");
}

#[test]
fn match_is_counted_after_a_second_when_nothing_is_acknowledged() {
    let mut network = Network::new(2, 1);
    network.run(3_000);
    let (writer, _reader) = best_effort_pair(&mut network);
    // The subscription arrives; from then on nothing leaves the reader's participant.
    assert!(network.run_until(10_000, |network| network.nodes[0].discovered_subscriptions().count() == 1));
    network.cut = vec![1];
    assert_eq!(readers(&mut network, writer), 0);
    assert_eq!(network.nodes[0].matched_subscriptions(writer).expect("it exists"), []);
    network.run(900);
    assert_eq!(readers(&mut network, writer), 0);
    network.run(200);
    assert_eq!(readers(&mut network, writer), 1);
    assert!(network.events(0).contains(&Event::PublicationMatched(writer)));
}

#[test]
fn reader_deleted_before_it_was_counted_changes_no_status() {
    let mut network = Network::new(2, 2);
    network.run(3_000);
    let (writer, _reader) = best_effort_pair(&mut network);
    assert!(network.run_until(10_000, |network| network.nodes[0].discovered_subscriptions().count() == 1));
    assert_eq!(readers(&mut network, writer), 0);
    let now = network.now;
    network.nodes[0].ignore_participant(now, prefix(1)).expect("write accepted");
    network.run(3_000);
    let status = network.nodes[0].publication_matched_status(writer).expect("the writer exists");
    assert_eq!((status.total_count, status.current_count), (0, 0));
    assert!(!network.events(0).contains(&Event::PublicationMatched(writer)));
}

#[test]
fn endpoints_of_one_participant_are_counted_at_once() {
    let mut network = Network::new(1, 3);
    let qos = DataWriterQos { reliability: best_effort(), ..DataWriterQos::default() };
    let writer = network.writer(0, writer_spec("T", false, qos));
    network.reader(0, reader_spec("T", false, DataReaderQos::default()));
    assert_eq!(readers(&mut network, writer), 1);
}
