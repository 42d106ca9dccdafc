//! Limit on fragments of large samples in the queue of a network interface, on a link of 10 Mbit/s.

use takt_testkit::domain;
use takt_transport::udp::{UdpConfig, UdpTransport};
use takt_transport::{Commit, FRAGMENT_OCTETS_PER_FLUSH, FlowId, FlowSpec, Receive, Scan, Transport, TransportEvent};
use takt_wire::Locator;

use super::network::{Host, veth_pair};
use super::{open, send, until};

const FRAGMENT_LEN: usize = 1400;

/// Far more than fragments may fill of the queue.
const MUCH: usize = 400_000;

/// Returns two hosts, of which the first one sends at 10 Mbit/s.
fn slow_link() -> Option<[Host; 2]> {
    let hosts = veth_pair(1)?;
    hosts[0].limit_rate("10mbit");
    Some(hosts)
}

fn config() -> UdpConfig {
    UdpConfig { ipv6: true, ..UdpConfig::new(domain::domain()) }
}

fn destinations() -> [Locator; 2] {
    ["10.77.0.2:9", "[fd77::2]:9"].map(|address| address.parse::<std::net::SocketAddr>().expect("an address").into())
}

/// Sends fragments until their flow is blocked, or [`MUCH`] is sent. Returns the number of octets.
fn send_until_blocked(udp: &mut UdpTransport, flow: FlowId, to: Locator) -> usize {
    let (mut sent, mut unflushed) = (0, 0);
    while sent < MUCH {
        udp.loan().expect("a frame is loaned");
        let fragment = Commit { is_fragment: true, ..Commit::new(FRAGMENT_LEN, flow, std::slice::from_ref(&to)) };
        udp.commit(fragment).expect("the frame is accepted");
        (sent, unflushed) = (sent + FRAGMENT_LEN, unflushed + FRAGMENT_LEN);
        if unflushed >= FRAGMENT_OCTETS_PER_FLUSH {
            udp.flush().expect("flush succeeds");
            unflushed = 0;
            if let Some(event) = udp.poll_event() {
                assert_eq!(event, TransportEvent::Blocked(flow));
                break;
            }
        }
    }
    sent
}

/// Receives, which detects the cause of the next event, and returns the event.
fn next_event(udp: &mut UdpTransport) -> Option<TransportEvent> {
    assert!(udp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none());
    udp.poll_event()
}

#[test]
fn fragments_block_their_flow_before_they_fill_the_queue_and_other_datagrams_are_sent() {
    let Some(hosts) = slow_link() else { return };
    let _inside = hosts[0].enter();
    let mut udp = open(&config());
    let (urgent, _) = udp.open_flow(&FlowSpec { transport_priority: 46, own_port: false }).expect("a port is free");
    for to in destinations() {
        for flow in [FlowId::DEFAULT, urgent] {
            let sent = send_until_blocked(&mut udp, flow, to);
            assert!(sent < MUCH / 2, "{flow:?} to {to}: {sent} octets");
            let before = udp.status().stats.datagrams_out;
            send(&mut udp, b"small", flow, &[to]);
            assert_eq!(udp.status().stats.datagrams_out, before + 1);
            until("the queue has room", || next_event(&mut udp) == Some(TransportEvent::Unblocked(flow)));
        }
    }
    assert_eq!(udp.status().stats.send_errors.would_block, 0, "the queue takes each datagram");
}

#[test]
fn descriptors_become_readable_when_the_queue_has_room() {
    let Some(hosts) = slow_link() else { return };
    let _inside = hosts[0].enter();
    let mut udp = open(&config());
    let [to, _] = destinations();
    for _ in 0..3 {
        send_until_blocked(&mut udp, FlowId::DEFAULT, to);
        let mut polls: Vec<_> = udp
            .status()
            .descriptors
            .iter()
            .map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 })
            .collect();
        // SAFETY: `polls` has as many elements as stated.
        let ready = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, -1) };
        assert_eq!(ready, 1, "there is nothing to receive");
        assert_eq!(next_event(&mut udp), Some(TransportEvent::Unblocked(FlowId::DEFAULT)));
        assert_eq!(next_event(&mut udp), None);
    }
}

#[test]
fn fragments_are_not_limited_at_a_port_of_their_own_or_without_a_limit() {
    let Some(hosts) = slow_link() else { return };
    let _inside = hosts[0].enter();
    let [to, _] = destinations();
    let mut udp = open(&config());
    let (own, _) = udp.open_flow(&FlowSpec { own_port: true, transport_priority: 0 }).expect("a port is free");
    assert_eq!(
        send_until_blocked(&mut udp, own, to).next_multiple_of(FRAGMENT_LEN),
        MUCH.next_multiple_of(FRAGMENT_LEN)
    );
    let mut unlimited = open(&UdpConfig { fragment_queue_bytes: 0, ..config() });
    assert!(send_until_blocked(&mut unlimited, FlowId::DEFAULT, to) >= MUCH);
}

#[test]
fn flow_that_is_closed_while_it_is_blocked_leaves_no_event() {
    let Some(hosts) = slow_link() else { return };
    let _inside = hosts[0].enter();
    let mut udp = open(&config());
    let [to, _] = destinations();
    let spec = FlowSpec { transport_priority: 7, own_port: false };
    let (flow, _) = udp.open_flow(&spec).expect("a port is free");
    send_until_blocked(&mut udp, flow, to);
    udp.close_flow(flow).expect("the flow is open");
    let (again, _) = udp.open_flow(&spec).expect("a port is free");
    assert_eq!(again, flow);
    assert_eq!(next_event(&mut udp), None);
    assert!(send_until_blocked(&mut udp, again, to) > FRAGMENT_OCTETS_PER_FLUSH, "its queue is empty");
    until("the queue has room", || next_event(&mut udp) == Some(TransportEvent::Unblocked(again)));
}
