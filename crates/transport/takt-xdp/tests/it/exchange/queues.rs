//! Tests of one participant with several queues.

use takt_transport::udp::UdpTransport;
use takt_transport::{Commit, FlowId, FlowSpec, Receive, Scan, Transport, readiness};
use takt_xdp::{Mode, Queues, XdpConfig, XdpTransport};

use crate::datagrams::{TIMEOUT, message, receive, user};
use crate::network::wire;

/// Sends one datagram of a flow.
fn send_by(xdp: &mut XdpTransport, flow: FlowId, bytes: &[u8], to: takt_wire::Locator) {
    xdp.loan().expect("a frame is loaned")[..bytes.len()].copy_from_slice(bytes);
    xdp.commit(Commit::new(bytes.len(), flow, &[to])).expect("the frame is accepted");
    xdp.flush().expect("flush succeeds");
}

/// Opens flows of four priorities; the first is the default flow.
fn flows(xdp: &mut XdpTransport) -> [FlowId; 4] {
    [0, 20, 40, 60].map(|transport_priority| {
        xdp.open_flow(&FlowSpec { own_port: false, transport_priority }).expect("a flow can be opened").0
    })
}

#[test]
fn all_queues_send_and_receive_in_both_modes() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some([here, there]) = wire(4) else { return };
        let config = XdpConfig { queues: Queues::All, mode: Some(mode), ..XdpConfig::new(0, "eth0") };
        let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        assert_eq!(xdp.report().queues, [0, 1, 2, 3]);
        let (at_xdp, at_udp) = (user(&xdp), user(&udp));
        let flows = here.run(|| flows(&mut xdp));
        for round in 0..100 {
            send_by(&mut xdp, flows[round % 4], &message(round, 200), at_udp);
            assert_eq!(receive(&mut udp), message(round, 200));
            udp.loan().expect("a frame is loaned")[..200].copy_from_slice(&message(round, 200));
            udp.commit(Commit::new(200, FlowId::DEFAULT, &[at_xdp])).expect("the frame is accepted");
            udp.flush().expect("flush succeeds");
            assert_eq!(receive(&mut xdp), message(round, 200));
        }
        let counters = xdp.counters();
        assert_eq!((counters.datagrams_in, counters.datagrams_out, counters.in_place_out), (100, 100, 100));
    }
}

#[test]
fn priority_of_a_flow_selects_the_queue() {
    // In native mode, a frame arrives at the queue of the same number at the other end of a wire.
    let Some([here, there]) = wire(4) else { return };
    let mode = Some(Mode::Native);
    let config = XdpConfig { queues: Queues::All, mode, ..XdpConfig::new(0, "eth0") };
    let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
    let flows = here.run(|| flows(&mut xdp));
    for queue in 0..4 {
        let config = XdpConfig { queues: Queues::These(vec![queue]), mode, ..XdpConfig::new(0, "eth0") };
        let mut one = there.run(|| XdpTransport::open(&config)).expect("the transport opened before");
        for (n, flow) in flows.into_iter().enumerate() {
            send_by(&mut xdp, flow, &message(n, 64), user(&one));
            assert_eq!(receive(&mut one), message(n, 64), "over either path");
            let by_af_xdp = one.counters().datagrams_in;
            assert_eq!(by_af_xdp, u64::from(n >= queue as usize), "flow {n}, queue {queue}");
        }
    }
}

#[test]
fn queues_are_received_from_round_robin() {
    let Some([here, there]) = wire(2) else { return };
    let config = XdpConfig { queues: Queues::All, mode: Some(Mode::Native), ..XdpConfig::new(0, "eth0") };
    let mut sender = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
    let mut receiver = there.run(|| XdpTransport::open(&config)).expect("the transport opened before");
    let to = user(&receiver);
    let urgent = here.run(|| sender.open_flow(&FlowSpec { own_port: false, transport_priority: 63 }));
    let urgent = urgent.expect("a flow can be opened").0;
    for n in 0..100 {
        send_by(&mut sender, FlowId::DEFAULT, &message(n, 64), to);
    }
    for n in 100..103 {
        send_by(&mut sender, urgent, &message(n, 64), to);
    }
    // All datagrams are in their rings before the first receive: the last one sent woke the last
    // queue.
    while !readiness::wait(receiver.status().descriptors, Some(TIMEOUT)).expect("wait succeeds") {}
    let mut order = Vec::new();
    while order.len() < 103 {
        if let Some(frame) = receiver.recv(Receive::Any(Scan::Taken)).expect("receive succeeds") {
            let n = (0..103).find(|n| message(*n, 64) == *frame).expect("the frame was sent");
            order.push(n);
        }
    }
    let mut urgent: Vec<usize> = (0..103).filter(|at| order[*at] >= 100).collect();
    urgent.sort_unstable();
    assert!(urgent[2] - urgent[0] == 4, "every second datagram: {order:?}");
    order.retain(|n| *n < 100);
    assert!(order.is_sorted(), "each queue keeps its order");
}
