//! Tests of UDP with addresses that are added and removed.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use takt_transport::udp::{InterfaceSelection, UdpConfig, UdpTransport};
use takt_transport::{Control, FlowId, Receive, Scan, Transport, TransportEvent};

use super::network::{Network, ip};
use super::{loopback, open, receive, send, user_locator};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Refreshes until the interfaces have `count` addresses.
fn refresh_until(transport: &mut UdpTransport, count: usize) {
    let since = Instant::now();
    while transport.status().interfaces.iter().map(|interface| interface.addresses.len()).sum::<usize>() != count {
        assert!(since.elapsed() < TIMEOUT, "no event arrives");
        while transport.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
        if transport.poll_event() == Some(TransportEvent::InterfacesChanged) {
            transport.control(Control::Refresh).expect("the sockets are bound to the new address");
        }
    }
}

#[test]
fn second_address_keeps_the_ports_while_a_child_process_has_copies_of_the_sockets() {
    let Some(network) = Network::new() else { return };
    let host = network.host(true);
    host.run(|| {
        let interfaces = InterfaceSelection::Named(vec!["eth0".into()]);
        let mut transport = open(&UdpConfig { interfaces, ..UdpConfig::new(0) });
        let before = user_locator(&transport);
        // Between `fork` and `exec`, a child has a copy of each socket.
        let copies: Vec<_> = transport
            .status()
            .descriptors
            .iter()
            // SAFETY: the transport has them open.
            .map(|fd| unsafe { BorrowedFd::borrow_raw(*fd) }.try_clone_to_owned().expect("a copy can be made"))
            .collect();
        let addresses = transport.status().interfaces[0].addresses.len();
        ip("addr add 10.78.1.1/24 dev eth0");
        refresh_until(&mut transport, addresses + 1);
        drop(copies);
        let at_second =
            transport.status().locators.default_unicast.iter().find(|locator| locator.address[12..] == [10, 78, 1, 1]);
        let at_second = *at_second.expect("the new address is announced");
        assert_eq!(at_second.port, before.port);
        let mut peer = open(&loopback(0));
        send(&mut peer, b"there?", FlowId::DEFAULT, &[at_second]);
        assert_eq!(receive(&mut transport).0, b"there?");
    });
}
