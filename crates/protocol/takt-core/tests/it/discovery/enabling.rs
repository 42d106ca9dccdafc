//! Entities created disabled (DDS 1.4 §2.2.2.1.1.7), and ignored entities (DDS 1.4 §2.2.2.2.1).

use crate::network::*;
use takt_core::*;
use takt_wire::qos::*;

#[test]
fn disabled_writer_is_not_announced_and_cannot_write() {
    let mut network = Network::new(2, 320);
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    let now = network.now;
    let writer = network.nodes[0].prepare_writer(now, writer_spec("T", false, keep_all_writer())).expect("it is valid");
    assert!(matches!(network.write(0, writer, &payload(1, 20)), Err(WriteError::Refused(Error::NotEnabled))));
    network.run(5_000);
    assert_eq!(network.nodes[1].discovered_publications().count(), 0);
    let now = network.now;
    let qos = DataWriterQos { durability: Durability::TransientLocal, ..keep_all_writer() };
    network.nodes[0].set_writer_qos(now, writer, qos).expect("anything may change");
    network.nodes[0].enable_writer(now, writer).expect("the participant is enabled");
    network.await_match((0, writer), (1, reader));
    let offered = network.nodes[1].discovered_publications().map(|data| data.qos.durability).next();
    assert_eq!(offered, Some(Durability::TransientLocal));
    network.write(0, writer, &payload(1, 20)).expect("it is enabled");
    network.run(50);
    assert_eq!(network.take_all(1, reader).len(), 1);
}

#[test]
fn disabled_reader_gets_nothing_until_it_is_enabled() {
    let mut network = Network::new(2, 321);
    let qos = DataWriterQos { durability: Durability::TransientLocal, ..keep_all_writer() };
    let writer = network.writer(0, writer_spec("T", true, qos));
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
    let reader = network.nodes[1].prepare_reader(reader_spec("T", true, keep_all_reader())).expect("it is valid");
    network.run(5_000);
    assert_eq!(network.nodes[0].matched_subscriptions(writer).expect("it exists"), []);
    let now = network.now;
    let qos = DataReaderQos { durability: Durability::TransientLocal, ..keep_all_reader() };
    network.nodes[1].set_reader_qos(now, reader, qos).expect("anything may change");
    network.nodes[1].enable_reader(now, reader).expect("the participant is enabled");
    network.await_match((0, writer), (1, reader));
    let complete = network.run_until(1_000, |network| network.nodes[1].has_history(reader).expect("it exists"));
    assert!(complete);
    let samples = network.take_all(1, reader);
    assert_eq!(samples.len(), 1, "what was written before it was enabled is its history");
    assert_eq!(samples[0].0.instance_handle, InstanceHandle(hash(1)), "it reads keys as before");
}

#[test]
fn endpoint_that_was_never_enabled_is_deleted_without_an_announcement() {
    let mut network = Network::new(2, 322);
    let now = network.now;
    let writer = network.nodes[0].prepare_writer(now, writer_spec("T", true, keep_all_writer())).expect("it is valid");
    let reader = network.nodes[0].prepare_reader(reader_spec("T", true, keep_all_reader())).expect("it is valid");
    network.nodes[0].delete_writer(now, writer).expect("it exists");
    network.nodes[0].delete_reader(now, reader).expect("it exists");
    assert_eq!(network.nodes[0].enable_writer(now, writer), Err(Error::AlreadyDeleted));
    assert_eq!(network.nodes[0].enable_reader(now, reader), Err(Error::AlreadyDeleted));
}

#[test]
fn disabled_participant_neither_sends_nor_receives() {
    let mut network = Network::new(1, 323);
    let silent = network.join_with(Config { is_enabled: false, ..config(1, 1500) });
    let now = network.now;
    let spec = writer_spec("T", false, keep_all_writer());
    let writer = network.nodes[silent].prepare_writer(now, spec).expect("it is valid");
    assert_eq!(network.nodes[silent].enable_writer(now, writer), Err(Error::NotEnabled));
    network.run(10_000);
    assert_eq!(network.nodes[0].discovered_participants().len(), 0);
    assert_eq!(network.nodes[silent].discovered_participants().len(), 0);
    let now = network.now;
    network.nodes[silent].enable(now);
    network.nodes[silent].enable_writer(now, writer).expect("the participant is enabled");
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    network.await_match((silent, writer), (0, reader));
}

/// Creates a matched writer at node 0 and reader at node 1, calls `act`, and returns whether they
/// still match after ten seconds.
fn matched_after(seed: u64, act: impl FnOnce(&mut Participant, Instant, takt_wire::Guid)) -> bool {
    let mut network = Network::new(2, seed);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let guid = network.nodes[0].writer_guid(writer).expect("it exists");
    let now = network.now;
    act(&mut network.nodes[1], now, guid);
    network.run(10_000);
    !network.nodes[1].matched_publications(reader).expect("it exists").is_empty()
}

#[test]
fn ignored_entities_do_not_match() {
    assert!(matched_after(330, |_, _, _| {}));
    assert!(!matched_after(331, |node, now, writer| node
        .ignore_participant(now, writer.prefix)
        .expect("write accepted")));
    assert!(!matched_after(332, |node, now, writer| node.ignore_publication(now, writer).expect("write accepted")));
    assert!(!matched_after(333, |node, now, _| node.ignore_topic(now, "T").expect("write accepted")));
    assert!(matched_after(334, |node, now, _| node.ignore_topic(now, "U").expect("write accepted")));
    assert!(matched_after(335, |node, now, writer| node.ignore_subscription(now, writer).expect("write accepted")));
}

#[test]
fn ignored_reader_gets_nothing() {
    let mut network = Network::new(2, 336);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let (now, guid) = (network.now, network.nodes[1].reader_guid(reader).expect("it exists"));
    network.nodes[0].ignore_subscription(now, guid).expect("write accepted");
    network.write(0, writer, &payload(1, 20)).expect("write accepted");
    network.run(1_000);
    assert_eq!(network.take_all(1, reader).len(), 0);
    assert_eq!(network.nodes[0].discovered_subscriptions().count(), 0);
}
