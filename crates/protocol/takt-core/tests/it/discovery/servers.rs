//! Discovery servers: clients that know only a server discover each other, and continue without it.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::discovery::ParticipantData;
use takt_wire::message::{InfoSource, Payload};
use takt_wire::{EntityId, Locator};

/// Returns a client of these servers without multicast.
fn client(node: usize, servers: &[usize]) -> Config {
    let servers: Vec<Locator> = servers.iter().map(|server| address(*server)).collect();
    Config { initial_peers: servers.clone(), servers, ..config(node, 1500) }
}

/// Returns a server that has other servers as peers.
fn server(node: usize, others: &[usize]) -> Config {
    Config { is_server: true, ..client(node, others) }
}

fn world(configs: impl IntoIterator<Item = Config>) -> Network {
    let mut network = Network::new(0, 1);
    for config in configs {
        network.join_with(config);
    }
    network
}

/// Creates a writer and a reader at two nodes, and checks that a sample arrives.
fn assert_talk(network: &mut Network, from: usize, to: usize, topic: &str) {
    let writer = network.writer(from, writer_spec(topic, false, keep_all_writer()));
    let reader = network.reader(to, reader_spec(topic, false, keep_all_reader()));
    network.await_match((from, writer), (to, reader));
    network.write(from, writer, &payload(7, 100)).expect("write accepted");
    let mut taken = Vec::new();
    assert!(network.run_until(1_000, |network| {
        taken.extend(network.take(to, reader));
        !taken.is_empty()
    }));
    assert_eq!(taken[0].1, payload(7, 100));
}

fn knows(network: &Network, node: usize, other: usize) -> bool {
    network.nodes[node].discovered_participants().iter().any(|data| data.guid.prefix == prefix(other))
}

#[test]
fn clients_of_a_topic_match_and_continue_without_the_server() {
    let mut network = world([server(0, &[]), client(1, &[0]), client(2, &[0]), client(3, &[0])]);
    assert_talk(&mut network, 1, 2, "T");
    let server_data = network.nodes[0].counters().data_sent;
    network.run(30_000);
    assert!(!knows(&network, 3, 1) && !knows(&network, 3, 2), "what shares no topic is not introduced");
    assert!(knows(&network, 0, 3));
    // Their matches continue without the server, new endpoints included.
    network.cut.push(0);
    network.run(30_000);
    assert!(!knows(&network, 1, 0), "its lease is over");
    assert_talk(&mut network, 2, 1, "U");
    assert_eq!(network.nodes[0].counters().data_sent, server_data, "no user data went through the server");
}

#[test]
fn restarted_server_is_used_again() {
    let mut network = world([server(0, &[]), client(1, &[0]), client(2, &[0])]);
    network.run(5_000);
    // The server is killed, and restarted with another identity at the same address.
    let mut config = server(0, &[]);
    config.guid_prefix.0[4] = 9;
    network.nodes[0] = Participant::new(config, network.now).expect("the configuration is valid");
    network.run(6_000);
    assert_talk(&mut network, 1, 2, "T");
}

#[test]
fn clients_are_introduced_when_one_of_two_servers_fails() {
    for dead in [0, 1] {
        // Some clients know only one of the servers.
        let mut network = world([
            server(0, &[1]),
            server(1, &[0]),
            client(2, &[0, 1]),
            client(3, &[0, 1]),
            client(4, &[0]),
            client(5, &[1]),
        ]);
        assert_talk(&mut network, 2, 3, "T");
        assert_talk(&mut network, 4, 5, "U");
        network.cut.push(dead);
        assert_talk(&mut network, 3, 2, "V");
        network.run(40_000);
        let late = network.join_with(client(6, &[0, 1]));
        assert_talk(&mut network, late, 2, "W");
        assert_talk(&mut network, 5, late, "X");
    }
}

#[test]
fn clients_match_again_after_a_partition_longer_than_the_lease() {
    let mut network = world([server(0, &[]), client(1, &[0]), client(2, &[0])]);
    assert_talk(&mut network, 1, 2, "T");
    network.cut = vec![1];
    network.run(60_000);
    assert!(!knows(&network, 2, 1) && !knows(&network, 0, 1));
    network.cut = vec![0];
    // The server is not needed: both store the other's address.
    network.run(6_000);
    assert!(knows(&network, 1, 2) && knows(&network, 2, 1));
}

#[test]
fn introductions_arrive_under_loss() {
    for seed in 1..10 {
        let mut network = Network::new(0, seed);
        network.faults = Faults { loss: 25, duplication: 10, reordering: 10 };
        for config in [server(0, &[1]), server(1, &[0]), client(2, &[0]), client(3, &[1])] {
            network.join_with(config);
        }
        let writer = network.writer(2, writer_spec("T", false, keep_all_writer()));
        let reader = network.reader(3, reader_spec("T", false, keep_all_reader()));
        let matched = network.run_until(60_000, |network| {
            !network.nodes[2].matched_subscriptions(writer).expect("the writer exists").is_empty()
                && !network.nodes[3].matched_publications(reader).expect("the reader exists").is_empty()
        });
        assert!(matched, "seed {seed}");
    }
}

/// Forwards the announcement of a participant that is outside this network.
fn introduce(puppet: &Puppet, participant: &ParticipantData, node: &mut Participant, now: Instant) {
    let announcement = participant.to_bytes();
    puppet.say(node, now, |message| {
        let source = InfoSource {
            version: participant.protocol_version,
            vendor: participant.vendor_id,
            prefix: participant.guid.prefix,
        };
        message.info_source(&source).expect("it fits");
        message.data(&data(EntityId::SPDP_WRITER, 1, Payload::Data(&announcement))).expect("it fits");
    });
}

/// Returns a participant on another network, which is plausible only if a server introduces it.
fn far_away() -> ParticipantData {
    let mut puppet = Puppet::new(9);
    puppet.address = Locator::udp_v4([192, 0, 2, 9].into(), 7410);
    puppet.default_address = puppet.address;
    puppet.announcement()
}

fn sent_to(node: &mut Participant, now: Instant, to: Locator) -> usize {
    let sent = outgoing(node, now);
    sent.iter().filter(|(destinations, _)| destinations.contains(&to)).map(|(_, bytes)| bytes.len() + 28).sum()
}

#[test]
fn introductions_are_accepted_only_from_a_configured_validated_server() {
    let now = Instant(1_000_000_000);
    let participant = far_away();
    let at = participant.metatraffic_unicast[0];
    // The cases: configured or not, announced as a server or not, validated or not.
    for (named, serves, validated) in
        [(true, true, true), (false, true, true), (true, false, true), (true, true, false)]
    {
        let servers: &[usize] = if named { &[5] } else { &[6] };
        let mut node = Participant::new(client(0, servers), now).expect("the configuration is valid");
        let mut puppet = Puppet::new(5);
        puppet.serves_discovery = serves;
        if validated {
            puppet.join(&mut node, now);
        } else {
            puppet.announce_itself(&mut node, now);
        }
        outgoing(&mut node, now);
        introduce(&puppet, &participant, &mut node, now);
        let accepted = named && serves && validated;
        assert_eq!(node.counters().introductions_received, u64::from(accepted));
        assert_eq!(sent_to(&mut node, now, at) > 0, accepted, "{named} {serves} {validated}");
    }
}

#[test]
fn traffic_to_an_introduced_address_is_bounded() {
    let mut now = Instant(1_000_000_000);
    let mut node = Participant::new(client(0, &[5]), now).expect("the configuration is valid");
    let mut puppet = Puppet::new(5);
    puppet.serves_discovery = true;
    puppet.join(&mut node, now);
    outgoing(&mut node, now);
    let participant = far_away();
    let at = participant.metatraffic_unicast[0];
    let (mut received, mut sent) = (0, 0);
    for _ in 0..50 {
        introduce(&puppet, &participant, &mut node, now);
        received += participant.to_bytes().len() + 68;
        sent += sent_to(&mut node, now, at);
        let later = run_alone(&mut node, &mut now, 100);
        sent += later.iter().filter(|(to, _)| to.contains(&at)).map(|(_, bytes)| bytes.len() + 28).sum::<usize>();
    }
    assert!(sent > 0 && sent <= AMPLIFICATION_MAX * received, "{sent} for {received}");
    assert_eq!(node.remote_state_size().on_probation, 1);
}

/// An introduction neither renews a lease nor changes an address.
#[test]
fn introduction_does_not_affect_a_known_participant() {
    let mut now = Instant(1_000_000_000);
    let mut node = Participant::new(client(0, &[5]), now).expect("the configuration is valid");
    let mut puppet = Puppet::new(5);
    puppet.serves_discovery = true;
    puppet.join(&mut node, now);
    let mut other = Puppet::new(7);
    other.join(&mut node, now);
    assert_eq!(node.discovered_participants().len(), 2);
    let mut forged = other.announcement();
    forged.metatraffic_unicast = far_away().metatraffic_unicast;
    for _ in 0..30 {
        introduce(&puppet, &forged, &mut node, now);
        puppet.announce_itself(&mut node, now);
        run_alone(&mut node, &mut now, 1_000);
    }
    let known = node.discovered_participants();
    assert!(known.iter().all(|data| data.guid.prefix != other.prefix || data.metatraffic_unicast != [other.address]));
    assert_eq!(node.counters().leases_expired, 1);
}

#[test]
fn configured_server_is_silent_until_it_answers_and_after_its_lease() {
    let mut network = world([server(0, &[]), client(1, &[0, 7])]);
    assert_eq!(network.nodes[1].silent_servers(), [address(0), address(7)]);
    assert!(network.run_until(10_000, |network| network.nodes[1].silent_servers() == [address(7)]));
    network.cut.push(0);
    network.run(60_000);
    assert_eq!(network.nodes[1].silent_servers(), [address(0), address(7)]);
}
