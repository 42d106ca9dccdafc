//! Writers live as long as they, or their participants for them, show themselves within their lease.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::qos::*;

fn matched(network: &mut Network, kind: LivelinessKind, lease_ms: u64) -> (WriterHandle, ReaderHandle) {
    let liveliness = Liveliness { kind, lease_duration: Duration::from_millis(lease_ms) };
    let writer_qos = DataWriterQos { liveliness, ..keep_all_writer() };
    let reader_qos = DataReaderQos { liveliness, ..keep_all_reader() };
    let writer = network.writer(0, writer_spec("T", true, writer_qos));
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    (writer, reader)
}

fn counts(network: &mut Network, reader: ReaderHandle) -> (u32, u32) {
    let status = network.nodes[1].liveliness_changed_status(reader).expect("the reader lives");
    (status.alive_count, status.not_alive_count)
}

#[test]
fn an_automatic_writer_lives_without_writing_until_its_participant_falls_silent() {
    for loss in [0, 20] {
        let mut network = Network::new(2, 110 + loss);
        network.faults.loss = loss / 4;
        let (writer, reader) = matched(&mut network, LivelinessKind::Automatic, 500);
        network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("there is room");
        network.run(10_000);
        assert_eq!(counts(&mut network, reader), (1, 0));
        assert_eq!(network.take_all(1, reader).len(), 1);
        network.cut.push(0);
        network.run(490);
        network.events(1);
        network.run(200);
        assert_eq!(counts(&mut network, reader), (0, 1), "half a second is over");
        assert!(network.events(1).contains(&Event::LivelinessChanged(reader)));
        let (info, _) = network.take(1, reader).expect("the instance lost its writer");
        assert_eq!(info.instance_state, InstanceState::NotAliveNoWriters);
        network.cut.clear();
        network.run(2_000);
        assert_eq!(counts(&mut network, reader), (1, 0), "it came back");
    }
}

/// Found by the simulation: assertions go to other participants, so the own readers took the writer for dead.
#[test]
fn an_automatic_writer_lives_for_readers_of_its_own_participant_too() {
    let mut network = Network::new(1, 114);
    let liveliness = Liveliness { kind: LivelinessKind::Automatic, lease_duration: Duration::from_millis(500) };
    let writer = network.writer(0, writer_spec("T", true, DataWriterQos { liveliness, ..keep_all_writer() }));
    let reader = network.reader(0, reader_spec("T", true, DataReaderQos { liveliness, ..keep_all_reader() }));
    network.await_match((0, writer), (0, reader));
    network.run(10_000);
    let status = network.nodes[0].liveliness_changed_status(reader).expect("the reader lives");
    assert_eq!((status.alive_count, status.not_alive_count), (1, 0));
}

#[test]
fn manual_writers_live_as_long_as_the_application_says_so() {
    for kind in [LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic] {
        let mut network = Network::new(2, 112);
        let (writer, reader) = matched(&mut network, kind, 300);
        for _ in 0..10 {
            match kind {
                LivelinessKind::ManualByTopic => {
                    network.nodes[0].assert_writer_liveliness(network.now, writer).expect("the writer lives");
                }
                _ => {
                    let now = network.now;
                    network.nodes[0].assert_liveliness(now);
                }
            }
            network.run(200);
            assert_eq!(counts(&mut network, reader), (1, 0), "{kind:?}");
        }
        network.run(400);
        assert_eq!(counts(&mut network, reader), (0, 1), "{kind:?}");
        network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("there is room");
        network.run(100);
        assert_eq!(counts(&mut network, reader), (1, 0), "data is a sign of life");
        network.nodes[0].delete_writer(network.now, writer).expect("the writer lives");
        network.run(100);
        assert_eq!(counts(&mut network, reader), (0, 0));
    }
}

/// DDS 1.4 §2.2.3.11: as long as one of them is written, all manual writers of the participant live.
#[test]
fn one_writer_by_participant_asserts_the_others() {
    let mut network = Network::new(2, 115);
    let (written, first) = matched(&mut network, LivelinessKind::ManualByParticipant, 300);
    let (silent, second) = matched(&mut network, LivelinessKind::ManualByParticipant, 300);
    for _ in 0..40 {
        network.write(0, written, &payload(1, 20)).expect("there is room");
        network.run(70);
        network.take_all(1, first);
        assert_eq!(counts(&mut network, second), (2, 0), "both write to both readers");
    }
    assert_eq!(network.nodes[0].liveliness_lost_status(silent).map(|status| status.total_count), Ok(0));
    network.run(500);
    assert_eq!(counts(&mut network, second), (0, 2));
    for writer in [silent, written] {
        let status = network.nodes[0].liveliness_lost_status(writer).expect("the writer lives");
        assert_eq!((status.total_count, status.total_count_change), (1, 1), "once, not once in each lease");
    }
}

#[test]
fn a_lost_writer_is_told_once_and_again_after_it_came_back() {
    let mut network = Network::new(1, 116);
    let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: Duration::from_millis(100) };
    let writer = network.writer(0, writer_spec("T", true, DataWriterQos { liveliness, ..keep_all_writer() }));
    network.run(1_000);
    assert!(network.events(0).contains(&Event::LivelinessLost(writer)));
    network.run(1_000);
    assert!(!network.events(0).contains(&Event::LivelinessLost(writer)));
    network.nodes[0].assert_writer_liveliness(network.now, writer).expect("the writer lives");
    network.run(99);
    assert_eq!(network.nodes[0].liveliness_lost_status(writer).map(|status| status.total_count), Ok(1));
    network.run(2);
    assert_eq!(network.nodes[0].liveliness_lost_status(writer).map(|status| status.total_count), Ok(2));
}

#[test]
fn an_infinite_lease_never_ends() {
    let mut network = Network::new(2, 113);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.run(3_600_000);
    assert_eq!(counts(&mut network, reader), (1, 0));
}
