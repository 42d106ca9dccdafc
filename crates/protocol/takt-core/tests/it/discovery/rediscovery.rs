//! Rediscovery after a one-sided loss: one participant loses another that does not notice
//! (RTPS 2.5 §8.5.4.2).

use crate::network::*;
use crate::puppet::*;
use core::time::Duration;
use takt_core::*;
use takt_wire::message::{AckNack, Gap, MessageView, Payload, Submessage};
use takt_wire::qos::{DataWriterQos, UserData};
use takt_wire::{EntityId, SequenceNumber, SequenceNumberSet};

/// Returns a network in which node 0 removes node 1 after a second of silence, and node 1 keeps
/// node 0 for an hour.
fn network_with_short_lease() -> Network {
    let mut network = Network::new(0, 40);
    for (node, lease_s) in [(0, 3_600), (1, 2)] {
        let lease_duration = Duration::from_secs(lease_s);
        let announcement_period = Duration::from_millis(500);
        network.join_with(Config { lease_duration, announcement_period, ..config(node, 1500) });
    }
    network
}

/// Makes node 0 lose node 1. Node 1 cannot receive the effects of `meanwhile`.
fn lose_participant(network: &mut Network, meanwhile: impl FnOnce(&mut Network)) {
    network.cut = vec![1];
    network.run(5_000);
    assert!(network.nodes[0].discovered_participants().is_empty());
    assert_eq!(network.nodes[1].discovered_participants().len(), 1);
    meanwhile(network);
    network.cut.clear();
}

fn writers_of(network: &mut Network, reader: ReaderHandle) -> (u32, u32) {
    let status = network.nodes[1].subscription_matched_status(reader).expect("the reader exists");
    (status.current_count, status.total_count)
}

/// Found by the simulation, seed 2667.
#[test]
fn endpoint_deletion_is_detected_by_a_participant_that_was_lost_meanwhile() {
    for is_first in [false, true] {
        let mut network = network_with_short_lease();
        let names = if is_first { ["Gone", "Stays"] } else { ["Stays", "Gone"] };
        let writers = names.map(|topic| network.writer(0, writer_spec(topic, false, keep_all_writer())));
        let readers = names.map(|topic| network.reader(1, reader_spec(topic, false, keep_all_reader())));
        for (writer, reader) in writers.into_iter().zip(readers) {
            network.await_match((0, writer), (1, reader));
        }
        network.run(1_000);
        let (deleted, remaining) = if is_first { (0, 1) } else { (1, 0) };
        lose_participant(&mut network, |network| {
            network.nodes[0].delete_writer(network.now, writers[deleted]).expect("it exists")
        });
        network.run(5_000);
        assert_eq!(writers_of(&mut network, readers[deleted]), (0, 1), "{is_first}");
        assert_eq!(writers_of(&mut network, readers[remaining]), (1, 1), "{is_first}: it never went");
        network.write(0, writers[remaining], &payload(1, 20)).expect("write accepted");
        network.run(100);
        assert_eq!(network.take_all(1, readers[remaining]).len(), 1);
    }
}

#[test]
fn deletion_of_the_only_endpoint_is_detected_by_a_participant_that_was_lost_meanwhile() {
    let mut network = network_with_short_lease();
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    let writer = network.writer(1, writer_spec("T", false, keep_all_writer()));
    network.await_match((1, writer), (0, reader));
    network.run(1_000);
    lose_participant(&mut network, |network| network.nodes[0].delete_reader(network.now, reader).expect("it exists"));
    network.run(5_000);
    let status = network.nodes[1].publication_matched_status(writer).expect("the writer exists");
    assert_eq!((status.current_count, status.total_count), (0, 1));
}

/// Its acknowledgments are new to the writer, regardless of earlier counts.
#[test]
fn acknowledgments_of_a_rediscovering_reader_are_accepted_at_once() {
    let mut network = network_with_short_lease();
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    let writer = network.writer(1, writer_spec("T", false, keep_all_writer()));
    network.await_match((1, writer), (0, reader));
    for number in 0..500 {
        network.write(1, writer, &payload(number, 20)).expect("write accepted");
        network.run(50);
    }
    assert_eq!(network.take_all(0, reader).len(), 500);
    lose_participant(&mut network, |_| {});
    network.run(1_000);
    let taken = network.take_all(0, reader);
    assert!(taken.iter().all(|(info, _)| !info.valid_data), "it was notified that its writer had left");
    network.write(1, writer, &payload(500, 20)).expect("write accepted");
    network.run(1_000);
    assert_eq!(network.take_all(0, reader).len(), 1);
    assert_eq!(network.nodes[1].is_acknowledged(writer, None), Ok(true));
}

/// Sends the next GAP and HEARTBEAT of a SEDP writer, for
/// [`announcement_replaced_while_the_history_is_sent_ends_no_match`].
fn announce(puppet: &mut Puppet, node: &mut Participant, gap_end: i64, (first, last): (i64, i64)) {
    let gap = Gap {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SEDP_PUB_WRITER,
        gap_start: SequenceNumber(2),
        gap_list: SequenceNumberSet::new(SequenceNumber(gap_end)),
    };
    let heartbeat = puppet.heartbeat(EntityId::SEDP_PUB_WRITER, first, last);
    puppet.say(node, START, |message| {
        message.gap(&gap).expect("it fits");
        message.heartbeat(&heartbeat).expect("it fits");
    });
}

const START: Instant = Instant(1_000_000_000);

/// Announcement 3 replaced 2 before 2 was sent. While the reader requests 3 again, 4 replaces it.
/// The writer sends 4 a moment later.
#[test]
fn announcement_replaced_while_the_history_is_sent_ends_no_match() {
    for is_sent in [true, false] {
        let mut node = Participant::new(config(0, 1500), START).expect("the configuration is valid");
        let reader = node.create_reader(START, reader_spec("T", false, keep_all_reader())).expect("reader is valid");
        let mut puppet = Puppet::new(9);
        puppet.join(&mut node, START);
        puppet.publish(&mut node, START, &puppet.publication(1, true));
        let send = |puppet: &mut Puppet, node: &mut Participant, sn: i64| {
            let payload = puppet.publication(1, true).to_bytes();
            let heartbeat = puppet.heartbeat(EntityId::SEDP_PUB_WRITER, sn, sn);
            puppet.say(node, START, |message| {
                message.data(&data(EntityId::SEDP_PUB_WRITER, sn, Payload::Data(&payload))).expect("it fits");
                message.heartbeat(&heartbeat).expect("it fits");
            });
        };
        let status = |node: &mut Participant| {
            let status = node.subscription_matched_status(reader).expect("the reader exists");
            (status.current_count, status.total_count)
        };
        assert_eq!(status(&mut node), (1, 1));
        send(&mut puppet, &mut node, 3);
        announce(&mut puppet, &mut node, 3, (3, 3));
        announce(&mut puppet, &mut node, 3, (3, 3));
        announce(&mut puppet, &mut node, 4, (4, 4));
        assert_eq!(status(&mut node), (1, 1), "the writer has not mentioned it once");
        if is_sent {
            send(&mut puppet, &mut node, 4);
        } else {
            announce(&mut puppet, &mut node, 5, (5, 4));
        }
        assert_eq!(status(&mut node), (u32::from(is_sent), 1));
    }
}

/// Returns the heartbeats of the writer of publications that a participant sends now without data:
/// the first and the last number.
fn lone_heartbeats(node: &mut Participant) -> Vec<(i64, i64)> {
    let (mut frame, mut found) = (vec![0; 65_507], Vec::new());
    while let Some(transmit) = node.poll_transmit(START, &mut frame) {
        let message = MessageView::parse(&frame[..transmit.len]).expect("what we send is well formed");
        let submessages: Vec<_> = message.submessages().map(|it| it.expect("what we send is well formed")).collect();
        if submessages.iter().any(|submessage| matches!(submessage, Submessage::Data(_))) {
            continue;
        }
        found.extend(submessages.iter().filter_map(|submessage| match submessage {
            Submessage::Heartbeat(it) if it.writer == EntityId::SEDP_PUB_WRITER => Some((it.first_sn.0, it.last_sn.0)),
            _ => None,
        }));
    }
    found
}

/// Without it the requesting participant would consider the endpoint deleted.
#[test]
fn heartbeat_covers_announcements_about_to_be_sent() {
    let mut node = Participant::new(config(0, 1500), START).expect("the configuration is valid");
    let writer = node.create_writer(START, writer_spec("T", false, keep_all_writer())).expect("the writer is valid");
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, START);
    lone_heartbeats(&mut node);
    let to = node.guid().prefix;
    let acknack = AckNack {
        reader: EntityId::SEDP_PUB_READER,
        writer: EntityId::SEDP_PUB_WRITER,
        reader_sn_state: SequenceNumberSet::new(SequenceNumber(1)),
        count: 1,
        is_final: false,
    };
    puppet.say(&mut node, START, |message| {
        message.info_destination(to).expect("it fits");
        message.acknack(&acknack).expect("it fits");
    });
    let qos = DataWriterQos { user_data: UserData(vec![1]), ..keep_all_writer() };
    node.set_writer_qos(START, writer, qos).expect("USER_DATA may change");
    let found = lone_heartbeats(&mut node);
    assert!(!found.is_empty() && found.iter().all(|(first, last)| first <= last), "{found:?}");
}
