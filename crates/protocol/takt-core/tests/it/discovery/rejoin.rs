//! A reader that loses a writer and rediscovers it, while the writer kept its match
//! (RTPS 2.5 §8.3.8.1): only one of two leases ends in an outage.

use crate::network::*;
use crate::puppet::*;
use std::time::Duration;
use takt_core::*;
use takt_wire::message::{AckNack, Submessage};
use takt_wire::qos::*;
use takt_wire::{EntityId, SequenceNumber, SequenceNumberSet};

/// Lease of the writer's participant, whose announcements are sent ten times as often.
const LEASE_MS: u64 = 1_000;

/// Creates a writer at node 0 and a reader at node 1. Node 1 loses node 0 earlier than the other
/// way round.
fn pair(seed: u64, offered: Durability, requested: Durability) -> (Network, WriterHandle, ReaderHandle) {
    let mut network = Network::new(0, seed);
    let mut impatient = config(0, 1500);
    impatient.lease_duration = Duration::from_millis(LEASE_MS);
    impatient.announcement_period = Duration::from_millis(LEASE_MS / 10);
    network.join_with(impatient);
    network.join_with(config(1, 1500));
    let writer_qos = DataWriterQos { durability: offered, ..keep_all_writer() };
    let reader_qos = DataReaderQos { durability: requested, ..keep_all_reader() };
    let writer = network.writer(0, writer_spec("T", false, writer_qos));
    let reader = network.reader(1, reader_spec("T", false, reader_qos));
    network.await_match((0, writer), (1, reader));
    (network, writer, reader)
}

/// Returns how many samples there are to take, apart from instance state changes.
fn take(network: &mut Network, reader: ReaderHandle) -> usize {
    network.take_all(1, reader).iter().filter(|(info, _)| info.valid_data).count()
}

/// Writes samples, each of which is acknowledged, and makes the reader lose the writer.
fn write_and_disconnect(network: &mut Network, writer: WriterHandle, reader: ReaderHandle, count: u32) {
    for number in 0..count {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
        assert!(network.run_until(1_000, |n| n.nodes[0].is_acknowledged(writer, None) == Ok(true)));
    }
    assert_eq!(take(network, reader), count as usize);
    network.cut.push(0);
    let is_unmatched = |n: &mut Network| n.nodes[1].matched_publications(reader).expect("the reader exists").is_empty();
    assert!(network.run_until(2 * LEASE_MS, is_unmatched));
    network.cut.clear();
    let met = |n: &mut Network| !n.nodes[1].matched_publications(reader).expect("the reader exists").is_empty();
    assert!(network.run_until(2 * LEASE_MS, met));
    let readers = network.nodes[0].matched_subscriptions(writer).expect("the writer exists");
    let unmatched = network.events(0).iter().filter(|event| **event == Event::PublicationMatched(writer)).count();
    assert_eq!((readers.len(), unmatched), (1, 1), "the writer has missed no reader");
}

/// The writer assumed that the reader had all that it requested again, so it sent no heartbeat. A
/// reader whose requests were lost waits for one.
#[test]
fn rediscovering_reader_gets_the_history_under_loss() {
    for datagrams in 0..12 {
        let (mut network, writer, reader) = pair(92, Durability::TransientLocal, Durability::TransientLocal);
        write_and_disconnect(&mut network, writer, reader, 20);
        network.keep = Some(datagrams);
        network.run(LEASE_MS / 2);
        network.keep = None;
        let mut taken = 0;
        let all = network.run_until(2 * LEASE_MS, |n| {
            taken += take(n, reader);
            taken == 20
        });
        assert!(all, "{taken} of 20 after {datagrams} datagrams");
    }
}

/// The writer assumed that the reader had received a heartbeat, and the reader treated everything
/// covered by the next one as history.
#[test]
fn rediscovering_volatile_reader_gets_later_samples() {
    for datagrams in 0..6 {
        let (mut network, writer, reader) = pair(93, Durability::TransientLocal, Durability::Volatile);
        write_and_disconnect(&mut network, writer, reader, 20);
        network.keep = Some(datagrams);
        for number in 20..40 {
            network.write(0, writer, &payload(number, 20)).expect("write accepted");
            network.run(LEASE_MS / 40);
        }
        network.keep = None;
        let mut taken = Vec::new();
        let all = network.run_until(2 * LEASE_MS, |n| {
            taken.extend(n.take_all(1, reader).into_iter().filter(|(info, _)| info.valid_data));
            taken.last().is_some_and(|(_, bytes)| *bytes == payload(39, 20))
        });
        assert!(all, "{} taken after {datagrams} datagrams", taken.len());
        assert!(
            taken.iter().any(|(_, bytes)| *bytes == payload(20, 20)),
            "{} after {datagrams} datagrams",
            taken.len()
        );
    }
}

/// Other implementations restart their counts with each match. A repetition from the network
/// belongs to no new match.
#[test]
fn acknowledgments_with_restarted_counts_are_accepted_and_repetitions_are_not() {
    let mut now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("valid configuration");
    let handle = node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("created");
    let writer = node.writer_guid(handle).expect("the writer exists").entity_id;
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    puppet.subscribe(&mut node, now, &puppet.subscription(1, true));
    run_alone(&mut node, &mut now, 100);
    let (kind, key_hash) = (ChangeKind::Alive, [0; 16]);
    let change = NewChange { kind, key_hash, source_timestamp: None, destinations: &[], payload_len: 12 };
    for _ in 0..3 {
        node.write(now, handle, &change, |slot| Some(slot.len())).expect("write accepted");
    }
    outgoing(&mut node, now);
    let requests = |node: &mut Participant, now: Instant, count: i32, missing: &[i64]| {
        let mut reader_sn_state = SequenceNumberSet::new(SequenceNumber(2));
        missing.iter().for_each(|sn| assert!(reader_sn_state.insert(SequenceNumber(*sn))));
        let reader = EntityId::user_reader(1, false);
        let acknack = AckNack { reader, writer, reader_sn_state, count, is_final: true };
        puppet.say(node, now, |message| message.acknack(&acknack).expect("it fits"));
        let sent = outgoing(node, now);
        self::count(&sent, |submessage| matches!(submessage, Submessage::Data(data) if data.writer == writer))
    };
    assert_eq!(requests(&mut node, now, 100, &[]), 0);
    assert_eq!(requests(&mut node, now, 1, &[2, 3]), 0, "it is from before");
    run_alone(&mut node, &mut now, 600);
    assert_eq!(requests(&mut node, now, 1, &[2, 3]), 2);
    assert_eq!(requests(&mut node, now, 1, &[2, 3]), 0, "it is repeated");
}

/// A participant receives another one that does not receive it. Each announcement causes a
/// challenge, which is lost, and challenges become rarer. Once the other one receives the
/// participant, it answers, which causes a challenge at most 320 ms after the last one.
#[test]
fn endpoints_match_within_an_announcement_period_and_320_ms_after_a_one_way_partition() {
    let period = Duration::from_millis(500);
    let delay_of = |step: u64| {
        let mut network = Network::new(0, 1);
        for node in 0..2 {
            network.join_with(Config { announcement_period: period, ..config(node, 1500) });
        }
        let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
        let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
        network.muted = vec![0];
        network.run(10_000 + step * 100);
        network.muted.clear();
        let end_of_outage = network.now;
        network.await_match((0, writer), (1, reader));
        network.now.since(end_of_outage)
    };
    let longest = (0..16).map(delay_of).max().expect("there are delays");
    assert!(longest < period + Duration::from_millis(350), "{longest:?}");
}
