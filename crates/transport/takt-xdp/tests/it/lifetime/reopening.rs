//! Tests of interfaces that go down or are deleted, and come back. Meanwhile, the kernel carries
//! all datagrams.

use std::time::Duration;

use takt_transport::udp::UdpTransport;
use takt_transport::{Control, Receive, Scan, Transport, TransportEvent, readiness};
use takt_xdp::{Mode, Queues, XdpConfig, XdpTransport};

use super::process_kills::{await_detached, interface};
use crate::datagrams::{TIMEOUT, message, receive, send, user};
use crate::network::{Host, create_veth_pair, ip, wire};

const MODES: [Mode; 2] = [Mode::Native, Mode::Generic];

/// Waits for changes of interfaces, and refreshes, until the condition holds.
pub fn refresh_until(host: &Host, xdp: &mut XdpTransport, until: impl Fn(&XdpTransport) -> bool) {
    while !until(xdp) {
        assert!(readiness::wait(xdp.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"), "no event arrives");
        while xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
        if xdp.poll_event() == Some(TransportEvent::InterfacesChanged) {
            host.run(|| xdp.control(Control::Refresh)).expect("interfaces can be followed");
        }
    }
}

pub fn is_open(xdp: &XdpTransport) -> bool {
    !xdp.status().interfaces.is_empty() && !xdp.status().locators.default_unicast.is_empty()
}

/// Asserts that no descriptor stays readable once all changes were read.
fn stays_asleep(xdp: &mut XdpTransport) {
    let quiet = (0..1000).any(|_| {
        while xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
        !readiness::wait(xdp.status().descriptors, Some(Duration::ZERO)).expect("wait succeeds")
    });
    assert!(quiet, "the descriptor is always readable");
}

/// Sends messages in both directions. Returns how many datagrams AF_XDP carried, out and in.
pub fn exchange(xdp: &mut XdpTransport, udp: &mut UdpTransport) -> (u64, u64) {
    let before = xdp.counters();
    let (at_xdp, at_udp) = (user(xdp), user(udp));
    for n in 0..10 {
        send(xdp, &message(n, 300), at_udp);
        assert_eq!(receive(udp), message(n, 300));
        send(udp, &message(n, 300), at_xdp);
        assert_eq!(receive(xdp), message(n, 300));
    }
    let now = xdp.counters();
    (now.datagrams_out - before.datagrams_out, now.datagrams_in - before.datagrams_in)
}

#[test]
fn interface_is_used_again_after_it_was_down() {
    for mode in MODES {
        let Some([here, there]) = wire(1) else { return };
        let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
        let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        assert_eq!(exchange(&mut xdp, &mut udp), (10, 10));
        let at_udp = user(&udp);
        here.run(|| ip("link set eth0 down"));
        refresh_until(&here, &mut xdp, |xdp| !is_open(xdp));
        let out = xdp.counters().datagrams_out;
        send(&mut xdp, &message(0, 300), at_udp);
        assert_eq!(xdp.counters().datagrams_out, out, "an interface that is down sends nothing");
        here.run(|| ip("link set eth0 up"));
        here.run(|| ip("neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 nud permanent dev eth0"));
        refresh_until(&here, &mut xdp, is_open);
        while xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
        assert_eq!(exchange(&mut xdp, &mut udp), (10, 10));
    }
}

#[test]
fn recreated_interface_is_opened_again() {
    for mode in MODES {
        let Some(hosts) = wire(2) else { return };
        let [here, there] = &hosts;
        let queues = Queues::All;
        let config = XdpConfig { mode: Some(mode), queues, ..XdpConfig::new(0, "eth0") };
        let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let before = xdp.capabilities().max_message_len;
        for _ in 0..2 {
            here.run(|| ip("link del eth0"));
            refresh_until(here, &mut xdp, |xdp| !is_open(xdp));
            stays_asleep(&mut xdp);
            // The content of the loaned frame is kept.
            xdp.loan().expect("a frame is loaned")[..300].copy_from_slice(&message(77, 300));
            create_veth_pair(&hosts, 2);
            refresh_until(here, &mut xdp, |xdp| is_open(xdp) && xdp.report().queues.len() == 2);
            assert!(interface(here).contains("xdp"), "the filter is there again");
            assert_eq!(
                (xdp.capabilities().max_message_len, &xdp.loan().expect("a frame is loaned")[..300]),
                (before, &message(77, 300)[..])
            );
            let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
            assert_eq!(exchange(&mut xdp, &mut udp), (10, 10));
        }
        drop(xdp);
        await_detached(here);
    }
}

#[test]
fn recreated_interface_without_a_free_queue_is_left_to_the_kernel_with_a_warning() {
    let Some(hosts) = wire(1) else { return };
    let [here, there] = &hosts;
    let config = XdpConfig::new(0, "eth0");
    let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
    here.run(|| ip("link del eth0"));
    refresh_until(here, &mut xdp, |xdp| !is_open(xdp));
    create_veth_pair(&hosts, 1);
    let other = here.run(|| XdpTransport::open(&config)).expect("its only queue is free");
    refresh_until(here, &mut xdp, is_open);
    let warned =
        xdp.status().warnings.iter().any(|warning| warning.what.contains("eth0") && warning.what.contains("taken"));
    assert!(warned, "{:?}", xdp.status().warnings);
    let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
    assert_eq!(exchange(&mut xdp, &mut udp), (0, 0), "all traffic uses kernel sockets");
    drop(other);
    // The next change triggers another attempt.
    here.run(|| ip("addr add 10.77.1.1/24 dev eth0"));
    refresh_until(here, &mut xdp, |xdp| xdp.status().interfaces[0].addresses.len() == 2);
    assert!(!xdp.status().warnings.iter().any(|warning| warning.what.contains("taken")), "{:?}", xdp.status().warnings);
    assert_eq!(exchange(&mut xdp, &mut udp), (10, 10));
}
