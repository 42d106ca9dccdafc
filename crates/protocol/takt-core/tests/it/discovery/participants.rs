//! Discovery: participants find each other, match, refuse with a reason, and detect departures.

use crate::network::*;
use crate::puppet::{Puppet, run_alone};
use takt_core::*;
use takt_wire::EntityId;
use takt_wire::compat::PolicyId;
use takt_wire::qos::*;

#[test]
fn ten_participants_find_each_other() {
    let mut network = Network::new(10, 1);
    let all = network.run_until(5_000, |n| n.nodes.iter().all(|node| node.discovered_participants().len() == 9));
    assert!(all, "all participants are discovered");
}

#[test]
fn discovery_survives_heavy_loss() {
    let mut network = Network::new(4, 2);
    network.faults = Faults { loss: 30, duplication: 10, reordering: 20 };
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let readers: Vec<_> = (1..4).map(|node| network.reader(node, reader_spec("T", false, keep_all_reader()))).collect();
    for (i, reader) in readers.iter().enumerate() {
        network.await_match((0, writer), (i + 1, *reader));
    }
    let all = network.run_until(20_000, |n| n.nodes[0].matched_subscriptions(writer).is_ok_and(|list| list.len() == 3));
    assert!(all);
}

#[test]
fn silent_participant_is_lost_after_its_lease() {
    let mut network = Network::new(2, 3);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.cut.push(0);
    network.run(15_000);
    assert_eq!(network.nodes[1].discovered_participants().len(), 1, "the lease of 20 s still runs");
    network.run(10_000);
    assert!(network.nodes[1].discovered_participants().is_empty());
    assert!(network.nodes[1].matched_publications(reader).expect("the reader exists").is_empty());
    assert!(network.events(1).iter().any(|event| matches!(event, Event::ParticipantLost(_))));
    network.cut.clear();
    network.await_match((0, writer), (1, reader));
}

#[test]
fn participant_is_lost_at_once_after_its_farewell() {
    let mut network = Network::new(2, 4);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.nodes[0].shutdown();
    assert!(network.run_until(100, |n| n.nodes[1].discovered_participants().is_empty()));
}

/// Announcements use several paths, which do not preserve their order.
#[test]
fn announcement_older_than_a_farewell_does_not_rediscover_its_participant() {
    let mut node = Participant::new(config(0, 1500), Instant(0)).expect("a good configuration");
    let mut peer = Puppet::new(1);
    let mut now = Instant(0);
    peer.join(&mut node, now);
    peer.leave(&mut node, now);
    peer.spdp_sn.set(1);
    peer.announce_itself(&mut node, now);
    assert!(node.discovered_participants().is_empty(), "a ghost");
    assert_eq!(node.counters().stale_announcements, 1);
    run_alone(&mut node, &mut now, 10_000);
    peer.announce_itself(&mut node, now);
    assert_eq!(node.discovered_participants().len(), 1, "a forged farewell does not exclude a participant permanently");
}

#[test]
fn deleted_endpoint_is_unmatched_and_a_new_one_matches() {
    let mut network = Network::new(2, 5);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.nodes[0].delete_writer(network.now, writer).expect("the writer exists");
    assert!(network.run_until(1_000, |n| n.nodes[1].matched_publications(reader).is_ok_and(|list| list.is_empty())));
    assert_eq!(network.nodes[0].delete_writer(network.now, writer), Err(Error::AlreadyDeleted));
    let again = network.writer(0, writer_spec("T", false, keep_all_writer()));
    network.await_match((0, again), (1, reader));
    network.nodes[1].delete_reader(network.now, reader).expect("the reader exists");
    assert!(network.run_until(1_000, |n| n.nodes[0].matched_subscriptions(again).is_ok_and(|list| list.is_empty())));
    let status = network.nodes[0].publication_matched_status(again).expect("the writer exists");
    assert_eq!((status.total_count, status.current_count), (1, 0));
}

#[test]
fn refusal_names_policies_types_and_partitions() {
    let mut network = Network::new(2, 6);
    let best_effort = DataWriterQos { reliability: best_effort(), ..DataWriterQos::default() };
    let writer = network.writer(0, writer_spec("T", false, best_effort));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    let mut other_type = reader_spec("U", false, keep_all_reader());
    other_type.type_name = "Other".into();
    network.reader(1, other_type);
    network.writer(0, writer_spec("U", false, keep_all_writer()));
    let mut elsewhere = reader_spec("V", false, keep_all_reader());
    elsewhere.subscriber.partition = Partition { names: vec!["kitchen".into()] };
    network.reader(1, elsewhere);
    network.writer(0, writer_spec("V", false, keep_all_writer()));
    network.run(2_000);
    for node in 0..2 {
        let reasons: Vec<String> = network.nodes[node].refusals().map(ToString::to_string).collect();
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.contains("RELIABILITY")), "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.contains("'Other'")), "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.contains("kitchen")), "{reasons:?}");
    }
    let offered = network.nodes[0].offered_incompatible_qos_status(writer).expect("the writer exists");
    let requested = network.nodes[1].requested_incompatible_qos_status(reader).expect("the reader exists");
    assert_eq!((offered.total_count, offered.last_policy), (1, Some(PolicyId::Reliability)));
    assert_eq!((requested.total_count, requested.last_policy), (1, Some(PolicyId::Reliability)));
    assert!(network.events(0).contains(&Event::OfferedIncompatibleQos(writer)));
    assert!(network.events(1).contains(&Event::RequestedIncompatibleQos(reader)));
}

#[test]
fn unicast_peers_need_no_multicast() {
    let mut network = Network::new(0, 7);
    // The first node knows the second; the second has no peers.
    let mut first = config(0, 1500);
    first.initial_peers = vec![address(1)];
    let mut second = config(1, 1500);
    second.initial_peers = Vec::new();
    network.join_with(first);
    network.join_with(second);
    assert!(network.run_until(1_000, |n| n.nodes.iter().all(|node| node.discovered_participants().len() == 1)));
    network.run(60_000);
    assert!(network.nodes.iter().all(|node| node.discovered_participants().len() == 1), "leases are renewed");
}

#[test]
fn endpoints_of_one_participant_match_each_other() {
    let mut network = Network::new(1, 8);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (0, reader));
    network.write(0, writer, &payload(7, 100)).expect("write accepted");
    network.run(100);
    assert_eq!(network.take(0, reader).map(|(_, bytes)| bytes), Some(payload(7, 100)));
}

#[test]
fn participant_without_announcements_stays_while_its_data_arrive() {
    let mut now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("valid configuration");
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    for _ in 0..6 {
        run_alone(&mut node, &mut now, 10_000);
        let heartbeat = puppet.heartbeat(EntityId::SEDP_PUB_WRITER, 1, 0);
        puppet.say(&mut node, now, |message| message.heartbeat(&heartbeat).expect("it fits"));
    }
    assert_eq!(node.discovered_participants().len(), 1);
    run_alone(&mut node, &mut now, 19_000);
    assert_eq!(node.discovered_participants().len(), 1, "the lease of 20 s began with its last word");
    run_alone(&mut node, &mut now, 2_000);
    assert_eq!(node.discovered_participants().len(), 0);
}

/// INTEROP(Fast DDS 2.9.1): the end of an endpoint is announced by its key hash alone, without a
/// payload.
#[test]
fn endpoint_is_removed_by_its_key_hash_without_a_payload() {
    let mut network = Network::new(1, 85);
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    let now = network.now;
    let node = &mut network.nodes[0];
    let mut puppet = Puppet::new(9);
    puppet.join(node, now);
    puppet.publish(node, now, &puppet.publication(1, true));
    assert_eq!(node.matched_publications(reader).expect("the reader exists").len(), 1);
    let mut inline = takt_wire::inline_qos::InlineQosBuilder::<64>::new();
    inline.key_hash(puppet.publication(1, true).guid.to_bytes()).expect("it fits");
    inline.status_info(3).expect("it fits");
    let inline_qos = inline.finish().expect("it fits").to_vec();
    let heartbeat = puppet.heartbeat(takt_wire::EntityId::SEDP_PUB_WRITER, 1, 2);
    puppet.say(node, now, |message| {
        message.heartbeat(&heartbeat).expect("it fits");
        let deletion = crate::puppet::data(takt_wire::EntityId::SEDP_PUB_WRITER, 2, takt_wire::Payload::None);
        message.data(&takt_wire::DataEmit { inline_qos: Some(&inline_qos), ..deletion }).expect("it fits");
    });
    assert_eq!(node.matched_publications(reader).expect("the reader exists"), []);
}
