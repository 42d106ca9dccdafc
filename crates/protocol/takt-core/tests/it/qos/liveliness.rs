//! LIVELINESS: writers are alive while they, or their participants on their behalf, are asserted
//! within their lease.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::message::{Payload, Submessage};
use takt_wire::qos::*;
use takt_wire::{Duration, EntityId};

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
    let status = network.nodes[1].liveliness_changed_status(reader).expect("the reader exists");
    (status.alive_count, status.not_alive_count)
}

#[test]
fn automatic_writer_is_alive_until_its_participant_falls_silent() {
    for loss in [0, 20] {
        let mut network = Network::new(2, 110 + loss);
        network.faults.loss = loss / 4;
        let (writer, reader) = matched(&mut network, LivelinessKind::Automatic, 500);
        network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
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

/// Found by the simulation: assertions go to other participants, so local readers considered the
/// writer dead.
#[test]
fn automatic_writer_is_alive_for_readers_of_its_own_participant() {
    let mut network = Network::new(1, 114);
    let liveliness = Liveliness { kind: LivelinessKind::Automatic, lease_duration: Duration::from_millis(500) };
    let writer = network.writer(0, writer_spec("T", true, DataWriterQos { liveliness, ..keep_all_writer() }));
    let reader = network.reader(0, reader_spec("T", true, DataReaderQos { liveliness, ..keep_all_reader() }));
    network.await_match((0, writer), (0, reader));
    network.run(10_000);
    let status = network.nodes[0].liveliness_changed_status(reader).expect("the reader exists");
    assert_eq!((status.alive_count, status.not_alive_count), (1, 0));
}

#[test]
fn manual_writers_are_alive_while_the_application_asserts_them() {
    for kind in [LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic] {
        let mut network = Network::new(2, 112);
        let (writer, reader) = matched(&mut network, kind, 300);
        for _ in 0..10 {
            match kind {
                LivelinessKind::ManualByTopic => {
                    network.nodes[0].assert_writer_liveliness(network.now, writer).expect("the writer exists");
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
        network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
        network.run(100);
        assert_eq!(counts(&mut network, reader), (1, 0), "data asserts liveliness");
        network.nodes[0].delete_writer(network.now, writer).expect("the writer exists");
        network.run(100);
        assert_eq!(counts(&mut network, reader), (0, 0));
    }
}

/// DDS 1.4 §2.2.3.11: while one of them is written, all manual writers of the participant are
/// alive.
#[test]
fn write_asserts_all_manual_by_participant_writers() {
    let mut network = Network::new(2, 115);
    let (written, first) = matched(&mut network, LivelinessKind::ManualByParticipant, 300);
    let (silent, second) = matched(&mut network, LivelinessKind::ManualByParticipant, 300);
    for _ in 0..40 {
        network.write(0, written, &payload(1, 20)).expect("write accepted");
        network.run(70);
        network.take_all(1, first);
        assert_eq!(counts(&mut network, second), (2, 0), "both write to both readers");
    }
    assert_eq!(network.nodes[0].liveliness_lost_status(silent).map(|status| status.total_count), Ok(0));
    network.run(500);
    assert_eq!(counts(&mut network, second), (0, 2));
    for writer in [silent, written] {
        let status = network.nodes[0].liveliness_lost_status(writer).expect("the writer exists");
        assert_eq!((status.total_count, status.total_count_change), (1, 1), "once, not once in each lease");
    }
}

#[test]
fn lost_writer_is_reported_once_and_again_after_its_return() {
    let mut network = Network::new(1, 116);
    let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: Duration::from_millis(100) };
    let writer = network.writer(0, writer_spec("T", true, DataWriterQos { liveliness, ..keep_all_writer() }));
    network.run(1_000);
    assert!(network.events(0).contains(&Event::LivelinessLost(writer)));
    network.run(1_000);
    assert!(!network.events(0).contains(&Event::LivelinessLost(writer)));
    network.nodes[0].assert_writer_liveliness(network.now, writer).expect("the writer exists");
    network.run(99);
    assert_eq!(network.nodes[0].liveliness_lost_status(writer).map(|status| status.total_count), Ok(1));
    network.run(2);
    assert_eq!(network.nodes[0].liveliness_lost_status(writer).map(|status| status.total_count), Ok(2));
}

#[test]
fn infinite_lease_never_ends() {
    let mut network = Network::new(2, 113);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.run(3_600_000);
    assert_eq!(counts(&mut network, reader), (1, 0));
}

/// An assertion concerns the sender's own writers: no participant can assert the writers of
/// another.
#[test]
fn assertion_for_another_participant_is_counted_and_dropped() {
    use takt_wire::discovery::ParticipantMessageData;
    let mut network = Network::new(1, 117);
    let mut puppets = [8, 9].map(Puppet::new);
    let liveliness = Liveliness { kind: LivelinessKind::Automatic, lease_duration: Duration::from_millis(500) };
    let reader = network.reader(0, reader_spec("T", false, DataReaderQos { liveliness, ..keep_all_reader() }));
    let now = network.now;
    for puppet in &mut puppets {
        puppet.join(&mut network.nodes[0], now);
        let mut publication = puppet.publication(1, true);
        publication.qos.liveliness = liveliness;
        puppet.publish(&mut network.nodes[0], now, &publication);
    }
    let alive = |network: &mut Network| {
        network.nodes[0].liveliness_changed_status(reader).expect("the reader exists").alive_count
    };
    assert_eq!(alive(&mut network), 2);
    let [honest, forger] = &mut puppets;
    let assertion =
        ParticipantMessageData { prefix: honest.prefix, kind: ParticipantMessageData::KIND_AUTOMATIC, data: &[] };
    let payload = assertion.to_bytes();
    for (sender, lives, wrong) in [(forger, 0, 1), (honest, 1, 1)] {
        network.run(400);
        let now = network.now;
        sender.announce(&mut network.nodes[0], now, EntityId::P2P_MESSAGE_WRITER, Payload::Data(&payload));
        network.run(200);
        assert_eq!((alive(&mut network), network.nodes[0].counters().malformed_discovery), (lives, wrong));
    }
}

/// Regardless of the number of writes, the assertion of the other writers is sent only a few times
/// per lease.
#[test]
fn assertions_by_writes_are_sent_a_few_times_per_lease() {
    let mut now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
    let liveliness =
        Liveliness { kind: LivelinessKind::ManualByParticipant, lease_duration: Duration::from_millis(300) };
    let qos = DataWriterQos { liveliness, history: History::KeepLast(1), ..keep_all_writer() };
    let writers =
        [0, 1].map(|_| node.create_writer(now, writer_spec("T", false, qos.clone())).expect("the writer is valid"));
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    let is_assertion = |submessage: &Submessage<'_>| matches!(submessage, Submessage::Data(data) if data.writer == EntityId::P2P_MESSAGE_WRITER);
    run_alone(&mut node, &mut now, 1_000);
    let lost = node.liveliness_lost_status(writers[1]).map(|status| status.total_count);
    assert_eq!(lost, Ok(1), "no writer has written yet");
    let mut reported = 0;
    for number in 0..300 {
        let bytes = payload(number, 20);
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: None,
            destinations: &[],
            payload_len: bytes.len(),
        };
        let written = node.write(now, writers[0], &change, |slot| {
            slot.copy_from_slice(&bytes);
            Some(bytes.len())
        });
        written.expect("KEEP_LAST has room");
        reported += count(&run_alone(&mut node, &mut now, 10), is_assertion);
    }
    assert!((20..=40).contains(&reported), "in ten leases: {reported}");
    assert_eq!(node.liveliness_lost_status(writers[1]).map(|status| status.total_count), lost);
}

#[test]
fn repeated_samples_do_not_assert_a_manual_writer() {
    for reliable in [true, false] {
        let mut now = Instant(1_000_000_000);
        let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
        let reader = node.create_reader(now, reader_spec("T", false, DataReaderQos::default())).expect("it is valid");
        let mut puppet = Puppet::new(9);
        puppet.join(&mut node, now);
        let mut publication = puppet.publication(1, reliable);
        publication.qos.liveliness =
            Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: Duration::from_millis(500) };
        puppet.publish(&mut node, now, &publication);
        let writer = EntityId::user_writer(1, false);
        let bytes = payload(1, 20);
        let send = |node: &mut Participant, now, sn| {
            puppet.say(node, now, |message| {
                message.data(&data(writer, sn, Payload::Data(&bytes))).expect("it fits");
            });
        };
        let alive = |node: &mut Participant| node.liveliness_changed_status(reader).expect("it exists").alive_count;
        for sn in [1, 2, 2, 1] {
            send(&mut node, now, sn);
            run_alone(&mut node, &mut now, 200);
        }
        assert_eq!(alive(&mut node), 0, "reliable: {reliable}");
        send(&mut node, now, 3);
        assert_eq!(alive(&mut node), 1, "reliable: {reliable}");
    }
}

/// A sample is lost, a later one arrives, and the writer's lease ends before the repair arrives.
/// The writer is not alive, so it does not keep the instance alive (DDS 1.4 §2.2.2.5.1.3).
#[test]
fn repair_after_the_lease_leaves_its_instance_without_writers() {
    for is_known_instance in [true, false] {
        let mut network = Network::new(2, 118);
        let (writer, reader) = matched(&mut network, LivelinessKind::ManualByTopic, 300);
        let write = |network: &mut Network, key: u8| {
            network
                .write_key(0, writer, ChangeKind::Alive, hash(key), &payload(u32::from(key), 20))
                .expect("write accepted");
        };
        if is_known_instance {
            write(&mut network, 1);
        }
        network.run(50);
        network.take_all(1, reader);
        network.muted.push(1);
        network.keep = Some(0);
        write(&mut network, 1);
        network.run(1);
        network.keep = None;
        write(&mut network, 1);
        network.run(500);
        assert_eq!(counts(&mut network, reader), (0, 1));
        network.take_all(1, reader);
        network.muted.clear();
        network.run(500);
        assert_eq!(counts(&mut network, reader), (0, 1), "a repair does not assert liveliness");
        let states: Vec<_> = network.take_all(1, reader).into_iter().map(|(info, _)| info.instance_state).collect();
        assert_eq!(states, [InstanceState::NotAliveNoWriters; 2]);
        write(&mut network, 1);
        network.run(50);
        let (info, _) = network.take(1, reader).expect("the sample arrived");
        assert_eq!(info.instance_state, InstanceState::Alive, "its own writes assert liveliness");
        network.run(500);
        let (info, _) = network.take(1, reader).expect("the writer lapsed");
        assert_eq!((info.instance_state, info.valid_data), (InstanceState::NotAliveNoWriters, false));
    }
}
