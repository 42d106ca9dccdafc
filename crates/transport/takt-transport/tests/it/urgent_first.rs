//! Tests that datagrams of urgent flows are received before earlier ones of other flows.

use takt_transport::{FlowId, FlowSpec, Receive, Scan, Transport};
use takt_wire::Locator;

use super::{loopback, open, own_loopback, send};

fn urgent(transport: &mut impl Transport, transport_priority: i32) -> (FlowId, Locator) {
    let (flow, locators) =
        transport.open_flow(&FlowSpec { own_port: true, transport_priority }).expect("a port is free");
    (flow, *locators.first().expect("a flow with a port is reached by it"))
}

/// Returns the first octet of the next datagram, and its flow.
fn next(transport: &mut impl Transport, scan: Scan) -> Option<(u8, FlowId)> {
    let frame = transport.recv(Receive::Any(scan)).expect("receive succeeds")?;
    Some((frame[0], frame.meta.flow))
}

fn next_urgent(transport: &mut impl Transport, above: i32) -> Option<(u8, FlowId)> {
    let frame = transport.recv(Receive::Urgent { above }).expect("receive succeeds")?;
    Some((frame[0], frame.meta.flow))
}

#[test]
fn most_urgent_datagram_comes_first() {
    let (mut from, mut to) = (open(&loopback(66)), open(&loopback(66)));
    let default = to.status().locators.default_unicast[0];
    let (brake, to_brake) = urgent(&mut to, 46);
    let (steering, to_steering) = urgent(&mut to, 30);
    for (number, destination) in [(1, default), (2, to_steering), (3, to_steering), (4, to_brake), (5, default)] {
        send(&mut from, &[number], FlowId::DEFAULT, &[destination]);
    }
    let order: Vec<_> = std::iter::from_fn(|| next(&mut to, Scan::All)).collect();
    let default = FlowId::DEFAULT;
    assert_eq!(order, [(4, brake), (2, steering), (3, steering), (1, default), (5, default)]);
}

#[test]
fn urgent_datagram_overtakes_those_already_taken_from_the_kernel() {
    let (mut from, mut to) = (open(&loopback(67)), open(&loopback(67)));
    let default = to.status().locators.default_unicast[0];
    let (brake, to_brake) = urgent(&mut to, 46);
    (0..100).for_each(|number| send(&mut from, &[number], FlowId::DEFAULT, &[default]));
    // The transport receives in batches by now.
    (0..10).for_each(|number| assert_eq!(next(&mut to, Scan::All), Some((number, FlowId::DEFAULT))));
    send(&mut from, &[200], FlowId::DEFAULT, &[to_brake]);
    assert_eq!(next_urgent(&mut to, 0), Some((200, brake)));
    send(&mut from, &[201], FlowId::DEFAULT, &[to_brake]);
    assert_eq!(next(&mut to, Scan::Hot), Some((201, brake)));
    let rest: Vec<_> = std::iter::from_fn(|| next(&mut to, Scan::All)).map(|(number, _)| number).collect();
    assert_eq!(rest, (10..100).collect::<Vec<_>>(), "no loss, in order");
}

#[test]
fn flood_of_urgent_datagrams_lets_others_pass() {
    let (mut from, mut to) = (open(&loopback(77)), open(&loopback(77)));
    let default = to.status().locators.default_unicast[0];
    let (brake, to_brake) = urgent(&mut to, 46);
    send(&mut from, &[1], FlowId::DEFAULT, &[default]);
    let mut urgent_before = 0;
    // Each received datagram is followed by another, so that an urgent one is always pending.
    send(&mut from, &[0], FlowId::DEFAULT, &[to_brake]);
    while next(&mut to, Scan::All).expect("a datagram is always queued").1 == brake {
        urgent_before += 1;
        assert!(urgent_before < 100, "no other datagram arrives");
        send(&mut from, &[0], FlowId::DEFAULT, &[to_brake]);
    }
    assert!(urgent_before >= 8, "{urgent_before} is not first");
    send(&mut from, &[0], FlowId::DEFAULT, &[to_brake]);
    let urgent: Vec<_> = std::iter::from_fn(|| next(&mut to, Scan::All)).collect();
    assert!(
        !urgent.is_empty() && urgent.iter().all(|(_, flow)| *flow == brake),
        "a datagram without predecessors is not queued"
    );
}

#[test]
fn recv_not_urgent_returns_no_urgent_datagrams() {
    let config = own_loopback();
    let (mut from, mut to) = (open(&config), open(&config));
    let default = to.status().locators.default_unicast[0];
    let (brake, to_brake) = urgent(&mut to, 46);
    for (number, destination) in [(1, to_brake), (2, default), (3, to_brake), (4, default)] {
        send(&mut from, &[number], FlowId::DEFAULT, &[destination]);
    }
    let mut order = Vec::new();
    while let Some(frame) = to.recv(Receive::NotUrgent(Scan::All)).expect("receive succeeds") {
        order.push((frame[0], frame.meta.flow));
    }
    assert_eq!(order, [(2, FlowId::DEFAULT), (4, FlowId::DEFAULT)]);
    assert_eq!([next_urgent(&mut to, 0), next_urgent(&mut to, 0)], [Some((1, brake)), Some((3, brake))]);
}

#[test]
fn datagrams_below_the_requested_urgency_stay_queued() {
    let (mut from, mut to) = (open(&loopback(68)), open(&loopback(68)));
    let default = to.status().locators.default_unicast[0];
    let (steering, to_steering) = urgent(&mut to, 30);
    assert_eq!(next_urgent(&mut to, 0), None);
    send(&mut from, &[1], FlowId::DEFAULT, &[default]);
    send(&mut from, &[2], FlowId::DEFAULT, &[to_steering]);
    assert_eq!(next_urgent(&mut to, 30), None);
    assert_eq!(next_urgent(&mut to, 29), Some((2, steering)));
    assert_eq!(next_urgent(&mut to, 0), None);
    assert_eq!(next(&mut to, Scan::All), Some((1, FlowId::DEFAULT)));
}

#[test]
fn own_port_without_priority_is_not_urgent() {
    let (mut from, mut to) = (open(&loopback(69)), open(&loopback(69)));
    let (flow, locator) = urgent(&mut to, 0);
    send(&mut from, &[1], FlowId::DEFAULT, &[locator]);
    assert_eq!(next_urgent(&mut to, 0), None);
    assert_eq!(next(&mut to, Scan::All), Some((1, flow)));
}

#[test]
fn closed_urgent_flow_is_removed() {
    let (mut from, mut to) = (open(&loopback(70)), open(&loopback(70)));
    let (brake, to_brake) = urgent(&mut to, 46);
    let (steering, to_steering) = urgent(&mut to, 30);
    to.close_flow(brake).expect("the flow is open");
    send(&mut from, &[1], FlowId::DEFAULT, &[to_brake]);
    send(&mut from, &[2], FlowId::DEFAULT, &[to_steering]);
    assert_eq!(next_urgent(&mut to, 0), Some((2, steering)));
    to.close_flow(steering).expect("the flow is open");
    assert_eq!((next_urgent(&mut to, 0), next(&mut to, Scan::All)), (None, None));
}
