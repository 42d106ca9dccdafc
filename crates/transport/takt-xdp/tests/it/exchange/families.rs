//! Tests of IPv6 and of tagged frames.

use takt_transport::udp::{UdpConfig, UdpTransport};
use takt_transport::{Commit, FlowSpec, Receive, Scan, Transport};
use takt_wire::Locator;
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::datagrams::{message, receive, send};
use crate::network::wire;

const MODES: [Mode; 2] = [Mode::Native, Mode::Generic];

/// Makes a configuration for IPv4 and IPv6.
fn both(mode: Mode) -> XdpConfig {
    let config = XdpConfig::new(0, "eth0");
    XdpConfig { mode: Some(mode), udp: UdpConfig { ipv6: true, ..config.udp }, ..config }
}

/// Returns the user locator of this kind.
fn user(transport: &impl Transport, kind: i32) -> Locator {
    let all = &transport.status().locators.default_unicast;
    let of_kind = all.iter().filter(|locator| locator.kind == kind);
    let global = |locator: &&Locator| locator.address[..2] != [0xfe, 0x80];
    *of_kind.clone().find(global).expect("an address of the family")
}

#[test]
fn af_xdp_carries_both_families_in_both_directions() {
    for mode in MODES {
        let Some([here, there]) = wire(1) else { return };
        let config = both(mode);
        let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let most = xdp.capabilities().max_message_len;
        assert_eq!(most, 1500 - 48);
        let sizes = [4, 5, 17, 18, 64, 333, most];
        for kind in [Locator::KIND_UDP_V4, Locator::KIND_UDP_V6] {
            let (at_xdp, at_udp) = (user(&xdp, kind), user(&udp, kind));
            for (n, len) in sizes.into_iter().enumerate() {
                send(&mut xdp, &message(n, len), at_udp);
                assert_eq!(receive(&mut udp), message(n, len), "the kernel accepts checksums and lengths");
                send(&mut udp, &message(n, len), at_xdp);
                assert_eq!(receive(&mut xdp), message(n, len), "{len} octets");
            }
            // In fragments, which have an extension header.
            send(&mut udp, &message(7, 20_000), at_xdp);
            assert_eq!(receive(&mut xdp), message(7, 20_000));
        }
        let (counters, count) = (xdp.counters(), 2 * sizes.len() as u64);
        assert_eq!((counters.datagrams_out, counters.datagrams_in), (count, count), "{counters:?}");
        assert_eq!((counters.by_kernel_out, counters.damaged, counters.malformed), (0, 0, 0));
    }
}

#[test]
fn one_datagram_reaches_both_families_unchanged() {
    let Some([here, there]) = wire(1) else { return };
    let config = both(Mode::Native);
    let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
    let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
    let to = [Locator::KIND_UDP_V6, Locator::KIND_UDP_V4].map(|kind| user(&udp, kind));
    for n in 0..20 {
        xdp.loan().expect("a frame is loaned")[..100].copy_from_slice(&message(n, 100));
        xdp.commit(Commit::new(100, takt_transport::FlowId::DEFAULT, &to)).expect("the frame is accepted");
        xdp.flush().expect("flush succeeds");
        assert_eq!([receive(&mut udp), receive(&mut udp)], [message(n, 100), message(n, 100)]);
    }
    assert_eq!((xdp.counters().datagrams_out, xdp.counters().in_place_out), (40, 20));
}

#[test]
fn ipv6_neighbor_is_resolved() {
    for mode in MODES {
        let Some([here, there]) = wire(1) else { return };
        here.run(|| crate::network::ip("neigh del fd77::2 dev eth0"));
        let config = both(mode);
        let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let at_udp = user(&udp, Locator::KIND_UDP_V6);
        let mut sent = 0;
        while xdp.counters().datagrams_out < 10 {
            send(&mut xdp, &message(sent, 50), at_udp);
            assert_eq!(
                receive(&mut udp),
                message(sent, 50),
                "the first ones through the kernel, which resolves the address"
            );
            sent += 1;
            assert!(xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none());
        }
        assert!(xdp.counters().by_kernel_out >= 1);
    }
}

#[test]
fn kernel_accepts_priority_tags() {
    for mode in MODES {
        let Some([here, there]) = wire(1) else { return };
        let config = XdpConfig { vlan: Some(0), ..both(mode) };
        let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let urgent = here.run(|| xdp.open_flow(&FlowSpec { own_port: false, transport_priority: 46 }));
        let urgent = urgent.expect("a flow can be opened").0;
        for kind in [Locator::KIND_UDP_V4, Locator::KIND_UDP_V6] {
            let (at_xdp, at_udp) = (user(&xdp, kind), user(&udp, kind));
            for len in [4, 64, xdp.capabilities().max_message_len] {
                xdp.loan().expect("a frame is loaned")[..len].copy_from_slice(&message(1, len));
                xdp.commit(Commit::new(len, urgent, &[at_udp])).expect("the frame is accepted");
                xdp.flush().expect("flush succeeds");
                assert_eq!(receive(&mut udp), message(1, len));
                // The kernel's datagrams are not tagged.
                send(&mut udp, &message(2, len), at_xdp);
                assert_eq!(receive(&mut xdp), message(2, len));
            }
        }
        assert_eq!((xdp.counters().datagrams_out, xdp.counters().datagrams_in), (6, 6));
    }
}

#[test]
fn participants_of_one_vlan_communicate_and_others_are_isolated() {
    for mode in MODES {
        let Some([here, there]) = wire(1) else { return };
        let of_vlan = |vlan| XdpConfig { vlan: Some(vlan), ..both(mode) };
        let mut one = here.run(|| XdpTransport::open(&of_vlan(77))).expect("AF_XDP can be opened");
        let mut other = there.run(|| XdpTransport::open(&of_vlan(78))).expect("the transport opened before");
        let to_other = user(&other, Locator::KIND_UDP_V6);
        for n in 0..10 {
            send(&mut one, &message(n, 100), to_other);
        }
        // Followed by an untagged datagram of the kernel.
        let udp = here.run(|| std::net::UdpSocket::bind("[fd77::1]:0").expect("a port is free"));
        udp.send_to(&message(99, 100), to_other.socket_addr().expect("UDP")).expect("the datagram is sent");
        assert_eq!(receive(&mut other), message(99, 100), "no datagram of another VLAN arrives");
        assert_eq!(other.counters().datagrams_in, 0, "no untagged datagram arrives");
        drop(other);
        let mut other = there.run(|| XdpTransport::open(&of_vlan(77))).expect("the queue is free");
        for kind in [Locator::KIND_UDP_V4, Locator::KIND_UDP_V6] {
            let to = [user(&one, kind), user(&other, kind)];
            for (n, len) in [4, 64, one.capabilities().max_message_len].into_iter().enumerate() {
                send(&mut one, &message(n, len), to[1]);
                assert_eq!(receive(&mut other), message(n, len));
                send(&mut other, &message(n, len), to[0]);
                assert_eq!(receive(&mut one), message(n, len));
            }
        }
        assert_eq!((other.counters().datagrams_in, one.counters().datagrams_in), (6, 6));
    }
}
