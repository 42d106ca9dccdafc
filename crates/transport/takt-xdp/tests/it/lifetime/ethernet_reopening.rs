//! Tests of [`XdpPort`] when interfaces and processes come and go, and with several participants at
//! an interface.

use takt_transport::ethernet::{EthernetConfig, EthernetTransport, FramePort};
use takt_transport::{Control, Receive, Scan, Transport, TransportError, TransportEvent, readiness};
use takt_xdp::{Mode, XdpPort, XdpPortConfig};

use super::process_kills::{Copy, MARK, await_detached, interface, round};
use crate::datagrams::{TIMEOUT, message, receive, send, user};
use crate::exchange::ethernet::by_packet;
use crate::network::{Host, create_veth_pair, ip, wire};

type Xdp = EthernetTransport<XdpPort>;

/// Opens the transport with this configuration.
fn open(host: &Host, config: &XdpPortConfig) -> Result<Xdp, TransportError> {
    host.run(|| EthernetTransport::open(XdpPort::open(config)?, &EthernetConfig::new(0)))
}

/// Sends a message in each direction. Returns how many frames AF_XDP carried, out and in.
fn exchange(xdp: &mut Xdp, other: &mut impl Transport) -> (u64, u64) {
    let before = (xdp.port().stats().in_place_out, xdp.port().received_by_xdp());
    let (at_xdp, at_other) = (user(xdp), user(other));
    for n in 0..10 {
        send(xdp, &message(n, 300), at_other);
        assert_eq!(receive(other), message(n, 300));
        send(other, &message(n, 300), at_xdp);
        assert_eq!(receive(xdp), message(n, 300));
    }
    (xdp.port().stats().in_place_out - before.0, xdp.port().received_by_xdp() - before.1)
}

/// Waits for changes of the interface, and refreshes, until the condition holds.
fn refresh_until(host: &Host, xdp: &mut Xdp, until: impl Fn(&Xdp) -> bool) {
    while !until(xdp) {
        assert!(readiness::wait(xdp.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"), "no event arrives");
        while xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
        if xdp.poll_event() == Some(TransportEvent::InterfacesChanged) {
            host.run(|| xdp.control(Control::Refresh)).expect("interfaces can be followed");
        }
    }
}

#[test]
fn recreated_interface_has_a_queue_again() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some(hosts) = wire(1) else { return };
        let [here, there] = &hosts;
        let config = XdpPortConfig { mode: Some(mode), ..XdpPortConfig::new("eth0") };
        let mut xdp = open(here, &config).expect("AF_XDP can be opened");
        assert_eq!(exchange(&mut xdp, &mut by_packet(there, None)), (10, 10));
        for _ in 0..2 {
            let index = xdp.port().interface().index;
            here.run(|| ip("link del eth0"));
            create_veth_pair(&hosts, 1);
            refresh_until(here, &mut xdp, |xdp| {
                let now = xdp.port().interface().index;
                now != index && now != 0 && interface(here).contains("xdp")
            });
            assert_eq!(exchange(&mut xdp, &mut by_packet(there, None)), (10, 10), "{mode:?}");
        }
        drop(xdp);
        await_detached(here);
    }
}

#[test]
fn each_participant_of_an_interface_has_its_own_queue_and_frames() {
    let Some([here, there]) = wire(2) else { return };
    let config = XdpPortConfig::new("eth0");
    let mut all = Vec::new();
    for _ in 0..2 {
        all.push(open(&here, &config).expect("AF_XDP can be opened"));
    }
    let why = open(&here, &config).map(drop).expect_err("both queues are taken").to_string();
    assert!(why.contains("AF_XDP on eth0"), "{why}");
    assert_ne!(user(&all[0]), user(&all[1]), "each has its port");
    let mut other = by_packet(&there, None);
    for xdp in &mut all {
        let (out, _) = exchange(xdp, &mut other);
        assert_eq!(out, 10);
    }
    for xdp in &mut all {
        assert!(xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none(), "not for this receiver");
    }
    // Between the two, on one host.
    let [first, second] = &mut all[..] else { unreachable!("two transports were opened") };
    let (at_first, at_second) = (user(first), user(second));
    send(first, &message(7, 300), at_second);
    assert_eq!(receive(second), message(7, 300));
    send(second, &message(8, 300), at_first);
    assert_eq!(receive(first), message(8, 300));
    all.pop();
    open(&here, &config).expect("a queue is free again");
}

/// Role of a copy: owns a port until it is killed. Does nothing in the test itself.
#[test]
#[ignore = "role: started by other tests"]
fn victim() {
    if round().is_none() {
        return;
    }
    let mut port = EthernetTransport::open(
        XdpPort::open(&XdpPortConfig::new("eth0")).expect("the test opened one before"),
        &EthernetConfig::new(0),
    )
    .expect("the port is not in use");
    println!("\n{MARK}open");
    loop {
        while port.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
        readiness::wait(port.status().descriptors, None).expect("wait succeeds");
    }
}

#[test]
fn killed_process_leaves_nothing_of_its_port() {
    let Some([here, there]) = wire(1) else { return };
    let config = XdpPortConfig::new("eth0");
    drop(open(&here, &config).expect("AF_XDP can be opened"));
    for round in 1..=5 {
        let mut victim = Copy::start(&here, "lifetime::ethernet_reopening::victim", round);
        assert_eq!(victim.next_line(), "open", "round {round}");
        assert!(interface(&here).contains("xdp"), "the program is there");
        open(&here, &config).map(drop).expect_err("the only queue is taken");
        victim.kill();
        await_detached(&here);
        let mut xdp = open(&here, &config).expect("the queue and the port are free");
        assert_eq!(exchange(&mut xdp, &mut by_packet(&there, None)), (10, 10));
    }
}
