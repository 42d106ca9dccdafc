//! Tests that datagrams of urgent flows are received before earlier ones in a ring, sent by the
//! kernel's UDP. The conformance suite covers that urgent calls take no other datagram, and that
//! order is kept.

use takt_transport::udp::UdpTransport;
use takt_transport::{FlowId, FlowSpec, Receive, Scan, Transport, readiness};
use takt_wire::Locator;
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::datagrams::{TIMEOUT, message, send, user};
use crate::network::Network;

fn urgent(transport: &mut XdpTransport, transport_priority: i32) -> (FlowId, Locator) {
    let (flow, locators) =
        transport.open_flow(&FlowSpec { own_port: true, transport_priority }).expect("a port is free");
    (flow, *locators.first().expect("a flow with a port is reached by it"))
}

/// Returns the flow of the next datagram.
fn next(transport: &mut XdpTransport) -> Option<FlowId> {
    transport.recv(Receive::Any(Scan::All)).expect("receive succeeds").map(|frame| frame.meta.flow)
}

#[test]
fn most_urgent_of_a_ring_comes_first_and_nothing_is_lost() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some(network) = Network::new() else { return };
        let (here, there) = (network.host(false), network.host(false));
        let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
        let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let default = user(&xdp);
        let (brake, to_brake) = here.run(|| urgent(&mut xdp, 46));
        let (steering, to_steering) = here.run(|| urgent(&mut xdp, 30));
        // The first datagram resolves the hardware address, and is awaited so that all others are
        // in the ring.
        send(&mut udp, &message(0, 100), default);
        assert!(readiness::wait(xdp.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"));
        assert_eq!(next(&mut xdp), Some(FlowId::DEFAULT));
        for _ in 0..100 {
            send(&mut udp, &message(1, 100), default);
        }
        for to in [to_steering, to_brake, to_steering] {
            send(&mut udp, &message(2, 100), to);
        }
        let before = xdp.counters().datagrams_in;
        let first = xdp.recv(Receive::Urgent { above: 30 }).expect("receive succeeds").map(|frame| frame.meta.flow);
        assert_eq!(first, Some(brake), "{mode:?}");
        assert_eq!([next(&mut xdp), next(&mut xdp)], [Some(steering); 2]);
        assert!(xdp.recv(Receive::Urgent { above: 0 }).expect("receive succeeds").is_none());
        let mut rest = 0;
        while let Some(flow) = next(&mut xdp) {
            assert_eq!(flow, FlowId::DEFAULT);
            rest += 1;
        }
        assert_eq!((rest, xdp.counters().datagrams_in - before), (100, 103), "by AF_XDP, all of them");
        // Datagrams that were taken from the ring and wait when their flow is closed.
        for to in [default, to_steering, to_steering, default] {
            send(&mut udp, &message(3, 100), to);
        }
        assert!(xdp.recv(Receive::Urgent { above: 46 }).expect("receive succeeds").is_none());
        xdp.close_flow(steering).expect("the flow is open");
        xdp.close_flow(brake).expect("the flow is open");
        assert_eq!(
            [next(&mut xdp), next(&mut xdp), next(&mut xdp)],
            [Some(FlowId::DEFAULT), Some(FlowId::DEFAULT), None]
        );
    }
}

/// The kernel's sockets receive what this host sends to itself. A caller sleeps if neither call
/// finds a datagram.
#[test]
fn urgent_datagrams_from_the_kernel_are_found_before_a_sleep() {
    let Some(network) = Network::new() else { return };
    let here = network.host(false);
    let config = XdpConfig { mode: Some(Mode::Native), ..XdpConfig::new(0, "eth0") };
    let mut udp = here.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
    let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
    let (brake, to_brake) = here.run(|| urgent(&mut xdp, 46));
    for number in 0..300 {
        send(&mut udp, &message(number, 100), to_brake);
        assert!(readiness::wait(xdp.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"));
        assert!(xdp.recv(Receive::NotUrgent(Scan::All)).expect("receive succeeds").is_none(), "{number}");
        let found = xdp.recv(Receive::Urgent { above: 0 }).expect("receive succeeds").map(|frame| frame.meta.flow);
        assert_eq!(found, Some(brake), "{number}");
    }
    assert_eq!(xdp.counters().datagrams_in, 0, "none arrive through AF_XDP");
}
