//! Endpoints restricted to some locator kinds, and participants on Ethernet without IP.

use crate::network::*;
use takt_core::*;
use takt_wire::Locator;

fn mac(node: usize) -> Locator {
    Locator::takt_ethernet([2, 0, 0, 0, 0, node as u8 + 1], 7411)
}

/// Hardware address of the discovery group.
const GROUP_MAC: [u8; 6] = [1, 0, 0x5e, 0x7f, 0, 1];

const ETHERNET: LocatorKinds = LocatorKinds::NONE.with(Locator::KIND_TAKT_ETHERNET);
const UDP: LocatorKinds = LocatorKinds::NONE.with(Locator::KIND_UDP_V4);
const MESSAGE_MAX: usize = 1492;

/// Returns an Ethernet interface without IP.
fn without_ip() -> Interface {
    Interface { name: "eth1".into(), addresses: Vec::new(), mtu: 1500, loopback: false }
}

/// Creates two nodes with UDP and Ethernet; discovery uses UDP, and user data `default_unicast`.
fn with_both(default_unicast: impl Fn(usize) -> Vec<Locator>) -> Network {
    let mut network = Network::new(0, 3);
    for node in 0..2 {
        let mut config = config(node, 1500);
        config.locators.default_unicast = default_unicast(node);
        config.interfaces.push(without_ip());
        network.join_with(config);
        network.further.push((node, mac(node)));
    }
    network
}

fn sent_to(network: &Network, to: Locator) -> usize {
    network.sent_to.get(&to).copied().unwrap_or_default()
}

fn exchange(network: &mut Network, writer: WriterHandle, reader: ReaderHandle) {
    for number in 0..5 {
        network.write(0, writer, &payload(number, 5_000)).expect("write accepted");
    }
    let mut taken = Vec::new();
    let arrived = network.run_until(5_000, |network| {
        taken.extend(network.take_all(1, reader).into_iter().map(|(_, bytes)| bytes));
        taken.len() == 5
    });
    assert!(arrived, "{} of 5", taken.len());
    assert_eq!(taken, (0..5).map(|number| payload(number, 5_000)).collect::<Vec<_>>());
}

#[test]
fn participants_match_and_exchange_samples_on_ethernet_without_ip() {
    let mut network = Network::new(0, 3);
    for node in 0..2 {
        let mut config = config(node, 1500);
        config.interfaces[0].addresses.clear();
        config.has_udp = false;
        config.locators.metatraffic_unicast = vec![mac(node)];
        config.locators.default_unicast = vec![mac(node)];
        config.initial_peers = vec![Locator::takt_ethernet(GROUP_MAC, 7400)];
        network.join_with(config);
        network.addresses[node] = mac(node);
    }
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    exchange(&mut network, writer, reader);
    assert!(network.longest <= MESSAGE_MAX && network.longest > MESSAGE_MAX - 200, "{}", network.longest);
    assert!(network.sent_to.keys().all(|to| to.mac().is_some()), "{:?}", network.sent_to.keys());
}

#[test]
fn user_data_use_ethernet_while_discovery_uses_udp() {
    let mut network = with_both(|node| vec![mac(node)]);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let before = [0, 1].map(|node| sent_to(&network, address(node)));
    assert!(before[0] > 0 && before[1] > 0);
    exchange(&mut network, writer, reader);
    // Samples travel in one direction, acknowledgments in the other.
    assert!(sent_to(&network, mac(1)) >= 20 && sent_to(&network, mac(0)) >= 1, "{:?}", network.sent_to);
    assert_eq!([0, 1].map(|node| sent_to(&network, address(node))), before, "discovery has nothing to say meanwhile");
}

#[test]
fn endpoint_is_reached_only_by_its_locator_kinds() {
    for (kinds, there, elsewhere) in [(ETHERNET, mac(1), address(1)), (UDP, address(1), mac(1))] {
        let mut network = with_both(|node| vec![address(node), mac(node)]);
        let (now, spec) = (network.now, writer_spec("T", false, keep_all_writer()));
        let writer = network.nodes[0].prepare_writer(now, spec).expect("the writer is valid");
        network.nodes[0].restrict_writer_locators(writer, kinds).expect("it is there");
        network.nodes[0].enable_writer(now, writer).expect("it is there");
        let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
        network.await_match((0, writer), (1, reader));
        let before = sent_to(&network, elsewhere);
        exchange(&mut network, writer, reader);
        assert!(sent_to(&network, there) >= 20, "{:?}", network.sent_to);
        assert_eq!(sent_to(&network, elsewhere), before);
    }
}

#[test]
fn endpoint_without_a_common_locator_kind_is_refused_as_unreachable() {
    let mut network = with_both(|node| vec![mac(node)]);
    let (now, spec) = (network.now, reader_spec("T", false, keep_all_reader()));
    let reader = network.nodes[1].prepare_reader(spec).expect("the reader is valid");
    network.nodes[1].restrict_reader_locators(reader, FlowTag(3), UDP).expect("it is there");
    network.nodes[1].enable_reader(now, reader).expect("it is there");
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    network.run(3_000);
    assert!(network.nodes[1].matched_publications(reader).expect("it exists").is_empty());
    let reasons: Vec<_> = network.nodes[1].refusals().map(|refusal| refusal.reason.clone()).collect();
    assert_eq!(reasons, [RefusalReason::Unreachable]);
    assert_eq!(network.nodes[0].matched_subscriptions(writer).expect("it exists").len(), 1, "that one has a path");
}

#[test]
fn acknowledgments_use_the_flow_of_their_reader() {
    let mut network = with_both(|node| vec![address(node)]);
    let (now, spec) = (network.now, reader_spec("T", false, keep_all_reader()));
    let reader = network.nodes[1].prepare_reader(spec).expect("the reader is valid");
    network.nodes[1].restrict_reader_locators(reader, FlowTag(7), LocatorKinds::ALL).expect("it is there");
    network.nodes[1].enable_reader(now, reader).expect("it is there");
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    network.await_match((0, writer), (1, reader));
    exchange(&mut network, writer, reader);
    network.run(1_000);
    let by_others = network.sent_by.keys().filter(|flow| ![FlowTag(0), FlowTag(7)].contains(flow)).count();
    assert!(network.sent_by.get(&FlowTag(7)).is_some_and(|count| *count >= 1), "{:?}", network.sent_by);
    assert_eq!(by_others, 0);
}
