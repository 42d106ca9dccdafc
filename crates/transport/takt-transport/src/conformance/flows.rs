//! Conformance of flows: own ports, priorities, closing.

use std::collections::BTreeSet;
use std::time::Instant;

use super::{Marked, TIMEOUT, assert_nothing_before, commit, first, receive, send};
use crate::{Commit, Control, FlowId, FlowSpec, Receive, Scan, Transport};

const OWN_PORT: FlowSpec = FlowSpec { own_port: true, transport_priority: 0 };

/// A flow with its own port sends from it and receives at it.
pub fn flow_has_its_own_port<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    b.control(Control::ReportSources).expect("sources are reported");
    let at_b = first(&b.status().locators.default_unicast);
    let (one, at_one) = a.open_flow(&OWN_PORT).expect("a port is free");
    let (two, at_two) = a.open_flow(&OWN_PORT).expect("a port is free");
    let (at_one, at_two) = (first(&at_one), first(&at_two));
    let at_default = first(&a.status().locators.default_unicast);
    assert!(one != two && one != FlowId::DEFAULT && two != FlowId::DEFAULT);
    assert!(at_one != at_two && at_one != at_default && at_two != at_default);
    for (n, (flow, at)) in (0..).zip([(one, at_one), (two, at_two), (FlowId::DEFAULT, at_default)]) {
        assert_eq!(a.source_of(flow, &at_b), Some(at));
        commit(&mut a, &marked, n, 64, flow, &[at_b]);
        a.flush().expect("flush succeeds");
        let (number, _, meta) = receive(&mut b, &marked, Scan::All);
        assert_eq!((number, meta.source), (n, at), "the flow sends from its own port");
        send(&mut b, &marked, n, at);
        let (number, _, meta) = receive(&mut a, &marked, Scan::All);
        assert_eq!((number, meta.flow), (n, flow), "the flow receives at its own port");
        assert_eq!(meta.local.port, at.port);
    }
}

/// A flow without own port and priority is the default flow, however often it is opened.
pub fn flow_without_requirements_is_the_default_flow<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    for transport_priority in [0, -1, i32::MIN] {
        let spec = FlowSpec { own_port: false, transport_priority };
        let (flow, locators) = a.open_flow(&spec).expect("the flow is opened");
        assert_eq!((flow, locators.len()), (FlowId::DEFAULT, 0));
    }
    for _ in 0..4 {
        a.close_flow(FlowId::DEFAULT).expect("closing the default flow has no effect");
    }
    let to = first(&b.status().locators.default_unicast);
    send(&mut a, &marked, 1, to);
    assert_eq!(receive(&mut b, &marked, Scan::All).0, 1);
}

/// Closing a flow sends what is queued; afterwards the flow is unknown.
pub fn closed_flow_is_removed<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    let back = first(&a.status().locators.default_unicast);
    for n in 0..50 {
        let (flow, at) = a.open_flow(&OWN_PORT).expect("a port is free");
        commit(&mut a, &marked, n, 64, flow, &[to]);
        // Sent to the flow but never received: the datagram is dropped with the flow.
        send(&mut b, &marked, 7000, first(&at));
        a.close_flow(flow).expect("the flow is open");
        assert_eq!(receive(&mut b, &marked, Scan::All).0, n);
        assert!(a.close_flow(flow).is_err(), "closed twice");
        a.loan().expect("a frame is loaned");
        assert!(a.commit(Commit::new(64, flow, &[to])).is_err(), "an unknown flow is refused");
    }
    assert!(a.close_flow(FlowId(999)).is_err(), "never opened");
    assert_nothing_before(&mut b, &mut a, &marked, back);
    assert_nothing_before(&mut a, &mut b, &marked, to);
}

/// A priority does not change delivery; a flow that was opened twice must be closed twice.
pub fn urgent_flows_are_delivered<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    for (n, transport_priority) in (0..).zip([1, 46, 63, i32::MAX]) {
        let spec = FlowSpec { own_port: false, transport_priority };
        let (flow, locators) = a.open_flow(&spec).expect("a port is free");
        assert!(locators.is_empty(), "a flow without a port has no locator");
        let (again, _) = a.open_flow(&spec).expect("a port is free");
        a.close_flow(again).expect("the flow is open");
        commit(&mut a, &marked, n, 64, flow, &[to]);
        a.flush().expect("flush succeeds");
        assert_eq!(receive(&mut b, &marked, Scan::All).0, n);
        a.close_flow(flow).expect("the flow is open");
        assert!(a.close_flow(flow).is_err(), "closed as often as opened");
    }
    drop((a, b));
    urgent_datagrams_come_first(open);
}

/// Urgent datagrams that arrive behind a flood are returned first, by urgency and FIFO within a
/// flow. No datagram of the flood is lost or duplicated.
fn urgent_datagrams_come_first<T: Transport>(open: impl Fn() -> T) {
    const FLOOD: u32 = 100;
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let mut open_flow = |own_port, transport_priority| {
        let (flow, at) = b.open_flow(&FlowSpec { own_port, transport_priority }).expect("a port is free");
        (flow, first(&at))
    };
    let [(log, to_log), (steering, to_steering), (brake, to_brake)] = [0, 30, 46].map(|p| open_flow(true, p));
    let user = first(&b.status().locators.default_unicast);
    // Completes one-time work, so that it does not disturb the rounds.
    send(&mut a, &marked, 9000, user);
    assert_eq!(receive(&mut b, &marked, Scan::All).0, 9000);
    for round in 0..3 {
        for n in 0..FLOOD {
            send(&mut a, &marked, n, if n % 3 == 0 { to_log } else { user });
        }
        for (n, to) in (1000..).zip([to_steering, to_brake, to_steering, to_brake, to_brake]) {
            send(&mut a, &marked, n, to);
        }
        // The call takes no other datagram.
        for (n, flow) in [(1001, brake), (1003, brake), (1004, brake)] {
            let above = if n == 1003 { 45 } else { 30 };
            assert_eq!(receive_urgent(&mut b, &marked, above), (n, flow), "round {round}");
        }
        assert!(b.recv(Receive::Urgent { above: 30 }).expect("receive succeeds").is_none());
        let (n, _, meta) = receive(&mut b, &marked, Scan::All);
        assert_eq!((n, meta.flow), (1000, steering), "before what is not urgent");
        assert_eq!(receive_urgent(&mut b, &marked, 0), (1002, steering));
        assert!(b.recv(Receive::Urgent { above: 0 }).expect("receive succeeds").is_none());
        let mut order = [Vec::new(), Vec::new()];
        for _ in 0..FLOOD {
            let (n, _, meta) = receive(&mut b, &marked, Scan::All);
            assert!(meta.flow == log || meta.flow == FlowId::DEFAULT);
            order[usize::from(meta.flow == log)].push(n);
        }
        let expected = [false, true].map(|is_log| (0..FLOOD).filter(|n| (n % 3 == 0) == is_log).collect::<Vec<_>>());
        assert_eq!(order, expected);
    }
    b.close_flow(brake).expect("the flow is open");
    b.close_flow(steering).expect("the flow is open");
    send(&mut a, &marked, 1, to_brake);
    send(&mut a, &marked, 2, to_log);
    let (n, _, meta) = receive(&mut b, &marked, Scan::All);
    assert_eq!((n, meta.flow), (2, log), "datagrams of a closed flow are not urgent");
    assert_nothing_before(&mut a, &mut b, &marked, user);
}

/// Waits for the next datagram above this urgency and returns its number and flow.
fn receive_urgent(transport: &mut impl Transport, marked: &Marked, above: i32) -> (u32, FlowId) {
    let since = Instant::now();
    loop {
        let frame = transport.recv(Receive::Urgent { above }).expect("receive succeeds");
        if let Some(found) = frame.map(|frame| (marked.number(&frame), frame.meta.flow)) {
            return (found.0.expect("only expected datagrams arrive"), found.1);
        }
        assert!(since.elapsed() < TIMEOUT, "nothing urgent arrives");
        std::thread::yield_now();
    }
}

/// Both scans receive the datagrams of many flows.
pub fn datagrams_of_many_flows_are_all_received<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let flows: Vec<_> = (0..40).map(|_| b.open_flow(&OWN_PORT).expect("a port is free")).collect();
    for scan in [Scan::All, Scan::Hot] {
        for (n, (_, at)) in (0..).zip(&flows) {
            commit(&mut a, &marked, n, 64, FlowId::DEFAULT, &[first(at)]);
        }
        a.flush().expect("flush succeeds");
        let received: BTreeSet<FlowId> = flows
            .iter()
            .map(|_| {
                let (n, _, meta) = receive(&mut b, &marked, scan);
                assert_eq!(flows[n as usize].0, meta.flow);
                meta.flow
            })
            .collect();
        assert_eq!(received.len(), flows.len());
    }
}
