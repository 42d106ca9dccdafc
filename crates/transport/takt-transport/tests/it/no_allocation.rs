//! Tests that sending and receiving never allocate; with TCP, once connections are open.

use takt_testkit::memory::allocations;
use takt_transport::shm::{ShmConfig, ShmTransport};
use takt_transport::udp::UdpConfig;
use takt_transport::{Commit, FaultConfig, FaultInjector, Faults, FlowId, FlowSpec, Payload, Receive, Scan, Transport};
use takt_wire::Locator;

use super::{loopback, open};

/// Sends and receives bursts of all kinds.
fn traffic(a: &mut impl Transport, b: &mut impl Transport, flow: FlowId, to: &[Locator]) -> usize {
    let mut received = 0;
    for round in 0..200 {
        for _ in 0..round % 70 {
            a.loan().expect("a frame is loaned")[..100].fill(1);
            a.commit(Commit::new(100, flow, to)).expect("the frame is accepted");
            a.loan().expect("a frame is loaned")[..1000].fill(2);
            a.commit(Commit::new(1000, FlowId::DEFAULT, &to[..1])).expect("the frame is accepted");
        }
        a.flush().expect("flush succeeds");
        for scan in [Scan::Hot, Scan::All] {
            while b.recv(Receive::Any(scan)).expect("receive succeeds").is_some() {
                received += 1;
            }
        }
        while a.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
    }
    received
}

#[test]
fn udp_transport_does_not_allocate() {
    let config = UdpConfig { ipv6: true, ..loopback(100) };
    let (mut a, mut b) = (open(&config), open(&config));
    let spec = FlowSpec { own_port: true, transport_priority: 46 };
    let (flow, _) = a.open_flow(&spec).expect("a port is free");
    let flows: Vec<_> = (0..6).map(|_| b.open_flow(&spec).expect("a port is free")).collect();
    let locators = b.status().locators.clone();
    let to = [
        locators.default_unicast,
        locators.metatraffic_unicast,
        locators.metatraffic_multicast,
        flows.into_iter().flat_map(|(_, locators)| locators).collect(),
        vec![Locator::INVALID],
    ]
    .concat();
    let mut received = 0;
    assert_eq!(allocations(|| received = traffic(&mut a, &mut b, flow, &to)), 0);
    assert!(received > 10_000, "{received}");
    assert!(a.status().stats.send_errors.unserved > 0);
}

#[test]
fn shared_memory_transport_does_not_allocate() {
    let open = || ShmTransport::open(&ShmConfig::default()).expect("Linux 5.14");
    let (mut a, mut b, closed) = (open(), open(), open());
    let spec = FlowSpec { own_port: true, transport_priority: 46 };
    let (flow, _) = a.open_flow(&spec).expect("a port is free");
    let (_, own) = b.open_flow(&spec).expect("a port is free");
    let locators = b.status().locators.clone();
    let unreachable = vec![Locator::INVALID, closed.status().locators.default_unicast[0]];
    drop(closed);
    let to = [locators.default_unicast, locators.metatraffic_unicast, own, unreachable].concat();
    let mut received = 0;
    // A connection is kernel memory, and one allocation when it is accepted.
    a.loan().expect("a frame is loaned");
    a.commit(Commit::new(1, FlowId::DEFAULT, &to[..1])).expect("the frame is accepted");
    while b.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
    assert_eq!(allocations(|| received = traffic(&mut a, &mut b, flow, &to)), 0);
    assert!(received > 10_000, "{received}");
    let errors = a.status().stats.send_errors;
    assert!(errors.unserved > 0 && errors.refused > 0);
    drop(a.loan_payload(10_000));
    let count = allocations(|| {
        for round in 0..1000 {
            let payload = a.loan_payload(10_000).expect("memory is available").finish(10_000);
            a.loan().expect("a frame is loaned");
            a.commit(Commit::new(4, FlowId::DEFAULT, &to[..1]).with(Payload::Loaned(&payload)))
                .expect("the frame is accepted");
            let loan =
                b.recv(Receive::Any(Scan::All)).expect("receive succeeds").and_then(|frame| frame.loan().cloned());
            assert!(loan.is_some_and(|loan| loan.is_intact()), "{round}");
        }
    });
    assert_eq!(count, 0);
}

/// On one host and between two.
#[test]
fn ethernet_transport_does_not_allocate() {
    use super::packet_conforms::open_on;
    use takt_transport::ethernet::PacketConfig;

    let Some(network) = super::network::Network::new() else { return };
    let (here, there) = (network.host(true), network.host(true));
    let config = PacketConfig::new("eth0");
    let (mut a, mut b, mut c) = (open_on(&here, &config, 0), open_on(&there, &config, 0), open_on(&here, &config, 0));
    let spec = FlowSpec { own_port: true, transport_priority: 46 };
    let (flow, _) = a.open_flow(&spec).expect("a port is free");
    let (_, own) = b.open_flow(&spec).expect("a port is free");
    let locators = b.status().locators.clone();
    let unreachable = vec![Locator::INVALID];
    let to = [locators.default_unicast, locators.metatraffic_unicast, locators.metatraffic_multicast, own, unreachable]
        .concat();
    let mut received = 0;
    assert_eq!(allocations(|| received = traffic(&mut a, &mut b, flow, &to)), 0);
    assert!(received > 10_000, "{received}");
    assert!(a.status().stats.send_errors.unserved > 0);
    let to = [c.status().locators.default_unicast.clone(), c.status().locators.metatraffic_unicast.clone()].concat();
    assert_eq!(allocations(|| received = traffic(&mut a, &mut c, flow, &to)), 0);
    assert!(received > 10_000, "{received}");
}

/// Once its connections are open.
#[test]
fn tcp_transport_does_not_allocate() {
    let (mut a, mut b) = (super::tcp_conforms::open("127.0.0.1:0"), super::tcp_conforms::open("127.0.0.1:0"));
    let to = [super::user_locator(&b), Locator::INVALID];
    traffic(&mut a, &mut b, FlowId::DEFAULT, &to);
    let mut received = 0;
    assert_eq!(allocations(|| received = traffic(&mut a, &mut b, FlowId::DEFAULT, &to)), 0);
    assert!(received > 10_000, "{received}");
}

#[test]
fn fault_injector_does_not_allocate() {
    let faults = Faults { loss: 0.1, duplication: 0.1, reorder: 0.1, hold: 5 };
    let config = FaultConfig { seed: 5, tx: faults, rx: faults };
    let open = || FaultInjector::new(open(&loopback(101)), config);
    let (mut a, mut b) = (open(), open());
    let to = [super::user_locator(&b), b.status().locators.metatraffic_unicast[0]];
    let mut received = 0;
    let count = allocations(|| received = traffic(&mut a, &mut b, FlowId::DEFAULT, &to));
    assert_eq!(count, 0);
    assert!(received > 1_000, "{received}");
}

#[test]
fn allocation_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1u8]))), 1);
}
