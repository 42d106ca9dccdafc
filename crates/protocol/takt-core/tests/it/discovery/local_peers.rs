//! Shared-memory locators of participants on this host: the path is requested from the driver,
//! and its answer applies.

use crate::network::*;
use std::net::Ipv4Addr;
use takt_core::*;
use takt_wire::Locator;

/// Address shared by node 0 and node 1.
fn on_one_host(node: usize) -> Locator {
    Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 1), 7411 + node as u16)
}

fn memory(node: usize, port: u32) -> Locator {
    Locator { kind: Locator::KIND_TAKT_SHM, port, address: [node as u8 + 1; 16] }
}

/// Creates two nodes at these addresses; those in `with_memory` also have a shared-memory locator.
fn network(at: fn(usize) -> Locator, with_memory: &[usize]) -> Network {
    let mut network = Network::new(0, 5);
    for node in 0..2 {
        let mut config = config(node, 1500);
        let ip = at(node).ip().expect("the address is IPv4");
        config.interfaces[0].addresses = vec![(ip, 24)];
        config.locators.metatraffic_unicast = vec![at(node)];
        config.locators.default_unicast = vec![at(node)];
        if with_memory.contains(&node) {
            config.locators.default_unicast.push(memory(node, 2));
        }
        network.join_with(config);
        network.addresses[node] = at(node);
    }
    network
}

/// Returns the locators to which the driver is requested to open a path.
fn requested_locators(network: &mut Network, node: usize) -> Vec<Locator> {
    let events = network.events(node).into_iter();
    events.filter_map(|event| if let Event::LocalPeerAnnounced(at) = event { Some(at) } else { None }).collect()
}

fn matched(network: &mut Network, own_port: bool) -> (WriterHandle, ReaderHandle) {
    let unicast = if own_port { vec![on_one_host(1), memory(1, 20)] } else { vec![] };
    let reader = ReaderSpec { unicast, ..reader_spec("T", false, keep_all_reader()) };
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader);
    network.await_match((0, writer), (1, reader));
    (writer, reader)
}

/// Writes one more sample; returns whether it arrives.
fn is_delivered(network: &mut Network, (writer, reader): (WriterHandle, ReaderHandle), number: u32) -> bool {
    network.write(0, writer, &payload(number, 100)).expect("write accepted");
    network.run_until(2_000, |network| {
        let taken: Vec<_> = network.take_all(1, reader).into_iter().map(|(_, bytes)| bytes).collect();
        assert!(taken.is_empty() || taken == [payload(number, 100)], "once and in order");
        !taken.is_empty()
    })
}

/// The network of these tests has no shared memory, so datagrams to it are lost until the route
/// changes.
#[test]
fn shared_memory_is_used_while_the_driver_confirms_it() {
    for own_port in [false, true] {
        let mut network = network(on_one_host, &[0, 1]);
        let pair = matched(&mut network, own_port);
        assert_eq!(requested_locators(&mut network, 0), [memory(1, 2)], "once");
        assert!(is_delivered(&mut network, pair, 0), "nothing changes before the answer");
        network.nodes[0].handle_local_peer(network.now, &memory(1, 2), true);
        assert!(!is_delivered(&mut network, pair, 1), "it goes to the memory");
        network.nodes[0].handle_local_peer(network.now, &memory(1, 7), false);
        let arrived = network.run_until(2_000, |network| !network.take_all(1, pair.1).is_empty());
        assert!(arrived, "the port means nothing, and what was lost is repaired");
        assert!(is_delivered(&mut network, pair, 2));
        assert_eq!((requested_locators(&mut network, 0), network.nodes[0].counters().refused_locators), (vec![], 0));
    }
}

/// A path costs memory and descriptors: none is opened to participants without matched endpoints.
#[test]
fn path_is_requested_only_after_a_match() {
    let mut network = network(on_one_host, &[0, 1]);
    network.writer(0, writer_spec("T", false, keep_all_writer()));
    network.reader(1, reader_spec("another", false, keep_all_reader()));
    network.run(10_000);
    assert_eq!(network.nodes[0].discovered_participants().len(), 1, "they have found each other");
    assert_eq!((requested_locators(&mut network, 0), requested_locators(&mut network, 1)), (vec![], vec![]));
    let pair = matched(&mut network, false);
    assert_eq!(
        (requested_locators(&mut network, 0), requested_locators(&mut network, 1)),
        (vec![memory(1, 2)], vec![memory(0, 2)])
    );
    network.nodes[0].handle_local_peer(network.now, &memory(1, 2), true);
    assert!(!is_delivered(&mut network, pair, 0), "it goes to the memory");
}

/// The writer may use nothing but shared memory.
#[test]
fn endpoints_that_only_shared_memory_connects_match_once_it_is_open() {
    let mut network = network(on_one_host, &[0, 1]);
    network.reader(1, ReaderSpec { unicast: vec![memory(1, 20)], ..reader_spec("T", false, keep_all_reader()) });
    let spec = writer_spec("T", false, keep_all_writer());
    let now = network.now;
    let writer = network.nodes[0].prepare_writer(now, spec).expect("the writer is valid");
    let only_memory = LocatorKinds::NONE.with(Locator::KIND_TAKT_SHM);
    network.nodes[0].restrict_writer_locators(writer, only_memory).expect("the writer exists");
    network.nodes[0].enable_writer(now, writer).expect("the writer exists");
    network.run(5_000);
    let matched = |network: &mut Network| {
        network.nodes[0].publication_matched_status(writer).expect("the writer exists").current_count
    };
    assert_eq!((matched(&mut network), network.nodes[0].refusals_total()), (0, 0), "the answer is missing");
    assert_eq!(requested_locators(&mut network, 0), [memory(1, 2)]);
    let now = network.now;
    network.nodes[0].handle_local_peer(now, &memory(1, 2), false);
    let reason = network.nodes[0].refusals().map(|refusal| refusal.reason.clone()).next();
    assert_eq!((matched(&mut network), reason), (0, Some(RefusalReason::Unreachable)));
    network.nodes[0].handle_local_peer(now, &memory(1, 2), true);
    assert_eq!((matched(&mut network), network.nodes[0].refusals_total()), (1, 1));
    assert_eq!(network.nodes[0].destinations(writer).expect("the writer exists"), [memory(1, 20)]);
}

/// The driver has detected the end of node 1's process: node 0 removes it at once, and its earlier
/// announcements do not rediscover it.
#[test]
fn participant_is_lost_at_once_when_its_process_ends() {
    let mut network = network(on_one_host, &[0, 1]);
    let reader = network.reader(0, reader_spec("U", true, keep_all_reader()));
    let writer = network.writer(1, writer_spec("U", true, keep_all_writer()));
    network.await_match((1, writer), (0, reader));
    network.write_key(1, writer, ChangeKind::Alive, [7; 16], &payload(0, 50)).expect("write accepted");
    assert!(network.run_until(2_000, |network| !network.take_all(0, reader).is_empty()));
    let now = network.now;
    network.nodes[0].handle_local_peer_end(now, &memory(1, 2));
    assert_eq!(network.nodes[0].discovered_participants().len(), 1, "no participant was reached there");
    network.nodes[0].handle_local_peer(network.now, &memory(1, 2), true);
    network.nodes[0].handle_local_peer_end(now, &memory(1, 9));
    let node = &network.nodes[0];
    assert_eq!((node.discovered_participants().len(), node.counters().local_peers_ended), (0, 1));
    let events = network.events(0);
    assert!(events.iter().any(|event| matches!(event, Event::ParticipantLost(_))), "{events:?}");
    let alive = network.nodes[0].liveliness_changed_status(reader).expect("it exists").alive_count;
    let matched = network.nodes[0].subscription_matched_status(reader).expect("it exists").current_count;
    assert_eq!((alive, matched), (0, 0));
    let states: Vec<_> = network.take_all(0, reader).into_iter().map(|(info, _)| info.instance_state).collect();
    assert_eq!(states, [InstanceState::NotAliveNoWriters]);
    // The node continues to announce itself here, as datagrams in transit would.
    network.run(5_000);
    assert_eq!(network.nodes[0].discovered_participants().len(), 0);
    assert!(network.nodes[0].counters().stale_announcements > 0);
}

#[test]
fn path_is_requested_only_for_participants_on_this_host() {
    for (at, with_memory) in [(address as fn(usize) -> Locator, &[0, 1][..]), (on_one_host, &[1]), (on_one_host, &[0])]
    {
        let mut network = network(at, with_memory);
        let pair = matched(&mut network, false);
        assert_eq!(requested_locators(&mut network, 0), []);
        network.nodes[0].handle_local_peer(network.now, &memory(1, 2), true);
        assert!(is_delivered(&mut network, pair, 0), "nobody asked");
        assert_eq!(network.nodes[0].counters().refused_locators, 0);
    }
}

/// Its transport has closed and another one has opened: the path is requested again.
#[test]
fn path_is_requested_again_when_the_locator_changes() {
    let mut network = network(on_one_host, &[0, 1]);
    let pair = matched(&mut network, false);
    assert_eq!(requested_locators(&mut network, 0), [memory(1, 2)]);
    network.nodes[0].handle_local_peer(network.now, &memory(1, 2), true);
    let interfaces = config(0, 1500).interfaces;
    let locators = Locators {
        metatraffic_unicast: vec![on_one_host(1)],
        default_unicast: vec![on_one_host(1), memory(6, 2)],
        ..Locators::default()
    };
    assert!(network.nodes[1].handle_interfaces(network.now, interfaces, locators));
    assert!(is_delivered(&mut network, pair, 0), "the old path is closed");
    assert_eq!(requested_locators(&mut network, 0), [memory(6, 2)]);
}
