//! Participants that exchange RTPS directly over Ethernet, on hosts of the test's own network,
//! which requires root.

use crate::network::{Host, Network};
use crate::support::*;
use takt::qos::*;
use takt::transport::ethernet::{EthernetConfig, EthernetTransport, PacketConfig, PacketPort};
use takt::*;

/// Builds a participant in the namespace of a host.
fn build(
    host: &Host,
    change: impl FnOnce(DomainParticipantBuilder) -> DomainParticipantBuilder + Send,
) -> DomainParticipant {
    host.run(|| change(DomainParticipant::builder(0)).build().expect("participant"))
}

/// Builds a participant that has no transport except Ethernet and, optionally, shared memory.
fn by_ethernet(host: &Host, runtime: Runtime, shared_memory: bool) -> DomainParticipant {
    // A participant belongs to the thread that built it; its sockets belong to the host.
    let ethernet = host.run(|| {
        let port = PacketPort::open(&PacketConfig::new("eth0")).expect("root may open sockets of AF_PACKET");
        EthernetTransport::open(port, &EthernetConfig::new(0)).expect("an index is free")
    });
    let builder = DomainParticipant::builder(0).runtime(runtime).transport(Box::new(ethernet));
    builder.shared_memory(shared_memory).build().expect("participant")
}

fn pair_of(publisher: DomainParticipant, subscriber: DomainParticipant) -> Pair<Blob> {
    Pair::between(publisher, subscriber, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

/// Returns the number of datagrams that a participant has sent by a transport.
fn sent(participant: &DomainParticipant, transport: &str) -> u64 {
    let all = participant.diagnostics().transport_stats().expect("open");
    all.into_iter().find(|traffic| traffic.name == transport).expect("it is open").stats.datagrams_out
}

#[test]
fn hosts_without_ip_between_them_exchange_samples() {
    for runtime in RUNTIMES {
        let Some(network) = Network::new() else { return };
        let hosts = [network.host(true), network.host(true)];
        hosts.iter().for_each(|host| host.run(|| crate::network::ip("addr flush dev eth0")));
        let [publisher, subscriber] = hosts.each_ref().map(|host| by_ethernet(host, runtime, false));
        let pair = pair_of(publisher, subscriber);
        pair.exchange(100, 100);
        pair.exchange(10, 300_000);
        // Each sample is sent in fragments of the size of a frame.
        assert!(sent(&pair.publisher, "packet") > 2_000);
        let counters = pair.publisher.diagnostics().driver_counters().expect("open");
        assert_eq!((counters.unserved_destinations, counters.send_failures), (0, 0));
    }
}

#[test]
fn participants_of_one_host_and_interface_exchange_samples() {
    let Some(network) = Network::new() else { return };
    let host = network.host(true);
    for runtime in RUNTIMES {
        let [publisher, subscriber] = [(), ()].map(|()| by_ethernet(&host, runtime, false));
        let pair = pair_of(publisher, subscriber);
        pair.exchange(100, 100);
        pair.exchange(10, 300_000);
    }
}

#[test]
fn participants_of_one_host_use_shared_memory() {
    let Some(network) = Network::new() else { return };
    let host = network.host(true);
    let [publisher, subscriber] = [(), ()].map(|()| by_ethernet(&host, Runtime::Shared, true));
    let pair = pair_of(publisher, subscriber);
    let before = sent(&pair.publisher, "packet");
    pair.exchange(300, 1000);
    assert!(sent(&pair.publisher, "shm") >= 300 && sent(&pair.publisher, "packet") - before < 100);
}

#[test]
fn user_data_use_ethernet_and_discovery_uses_udp() {
    let Some(network) = Network::new() else { return };
    let hosts = [network.host(true), network.host(true)];
    let [publisher, subscriber] = hosts.each_ref().map(|host| build(host, |b| b.user_data_transports(["packet:eth0"])));
    assert!(sent(&publisher, "udp") > 0);
    let pair = pair_of(publisher, subscriber);
    let before = sent(&pair.publisher, "udp");
    pair.exchange(300, 1000);
    assert!(sent(&pair.publisher, "packet") >= 300);
    assert!(sent(&pair.publisher, "udp") - before < 100, "what discovery sends");
}

#[test]
fn all_data_use_ethernet_if_configured() {
    let Some(network) = Network::new() else { return };
    let hosts = [network.host(true), network.host(true)];
    let requested = ["packet:eth0/vlan=42/qdisc=bypass"];
    let [publisher, subscriber] =
        hosts.each_ref().map(|host| build(host, |b| b.user_data_transports(requested).discovery_transports(requested)));
    let names: Vec<_> =
        publisher.diagnostics().transport_stats().expect("open").iter().map(|traffic| traffic.name).collect();
    assert!(!names.contains(&"udp"), "{names:?}");
    let pair = pair_of(publisher, subscriber);
    pair.exchange(50, 1000);
    pair.exchange(3, 300_000);
}
