//! Kernel bridges, links with several queues, static neighbor entries, interface counters.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;

use takt_netlink::bridge::BridgePort;
use takt_netlink::link::VethEnd;
use takt_netlink::{Netlink, code, interface_index};
use takt_testkit::network::Host;

use crate::{in_namespace, output};

/// Creates a link with four queues. One end is in this namespace and one in that of the peer.
fn add_link(netlink: &mut Netlink, peer: &Host) -> i32 {
    let own = File::open("/proc/thread-self/ns/net").expect("/proc is mounted");
    let there = peer.run(|| File::open("/proc/thread-self/ns/net").expect("/proc is mounted"));
    let end = |name, namespace| VethEnd { name, namespace, mac: None, mtu: 1500, queues: Some(4) };
    netlink.add_veth([&end("port", own.as_fd()), &end("far", there.as_fd())]).expect("root has the permission");
    interface_index("port").expect("the interface exists")
}

#[test]
fn port_of_a_bridge_forwards_once_both_ends_of_its_link_are_up() {
    in_namespace(|netlink, _, peer| {
        let port = add_link(netlink, peer);
        netlink.add_bridge("br0").expect("root has the permission");
        let error = netlink.add_bridge("br0").expect_err("the bridge exists already");
        assert_eq!(code(&error), Some(libc::EEXIST), "{error}");
        let bridge = interface_index("br0").expect("the interface exists");
        assert_eq!(netlink.bridge_port(port).expect("the interface exists"), None);
        netlink.add_bridge_port(port, bridge).expect("root has the permission");
        assert!(netlink.add_bridge_port(bridge, port).is_err(), "a veth is not a bridge");
        let of_port = |netlink: &mut Netlink| netlink.bridge_port(port).expect("the interface exists");
        assert_eq!(of_port(netlink), Some(BridgePort { bridge, is_forwarding: false }));
        netlink.set_up(bridge, true).expect("root has the permission");
        netlink.set_up(port, true).expect("root has the permission");
        peer.run(|| {
            let index = interface_index("far").expect("the interface exists");
            Netlink::route().expect("a socket").set_up(index, true).expect("root has the permission");
        });
        assert!(netlink.is_running(port).expect("the interface exists"));
        assert_eq!(of_port(netlink), Some(BridgePort { bridge, is_forwarding: true }));
        assert_eq!(netlink.has_multicast_snooping(bridge).expect("the interface exists"), Some(false));
        assert_eq!(netlink.has_multicast_snooping(port).expect("the interface exists"), None);
        let text = output("ip", &["-d", "link", "show"]);
        for expected in ["bridge forward_delay 0 ", "mcast_snooping 0", "numtxqueues 4 numrxqueues 4"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    });
}

#[test]
fn link_with_too_many_queues_is_refused() {
    in_namespace(|netlink, _, peer| {
        let own = File::open("/proc/thread-self/ns/net").expect("/proc is mounted");
        let there = peer.run(|| File::open("/proc/thread-self/ns/net").expect("/proc is mounted"));
        let end = |name, namespace| VethEnd { name, namespace, mac: None, mtu: 1500, queues: Some(5000) };
        let error = netlink.add_veth([&end("port", own.as_fd()), &end("far", there.as_fd())]).expect_err("too many");
        assert_eq!(code(&error), Some(libc::EINVAL), "{error}");
    });
}

#[test]
fn datagram_to_a_static_neighbor_is_sent_and_counted() {
    in_namespace(|netlink, index, _| {
        let mac = [2, 9, 9, 9, 9, 9];
        let targets =
            [IpAddr::V4(Ipv4Addr::new(10, 77, 0, 99)), IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0x99))];
        for target in targets {
            netlink.set_neighbor(index, target, [2, 8, 8, 8, 8, 8]).expect("root has the permission");
            netlink.set_neighbor(index, target, mac).expect("the entry is replaced");
        }
        let text = output("ip", &["neigh"]);
        for target in targets {
            let expected = format!("{target} dev eth0 lladdr 02:09:09:09:09:09 PERMANENT");
            assert!(text.contains(&expected), "{expected}: {text}");
        }
        let before = netlink.counters(index).expect("the interface exists");
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a port is free");
        socket.send_to(&[0; 100], (targets[0], 9)).expect("a route exists");
        let after = netlink.counters(index).expect("the interface exists");
        // Headers of UDP, IP and Ethernet. The kernel may send its own frames meanwhile.
        assert!(after.sent_frames > before.sent_frames, "{after:?}");
        assert!(after.sent_octets >= before.sent_octets + 100 + 8 + 20 + 14, "{before:?} {after:?}");
    });
}

#[test]
fn interface_stays_up_when_its_xdp_programs_are_detached() {
    in_namespace(|netlink, index, _| {
        netlink.detach_xdp(index).expect("no program is attached");
        assert!(netlink.is_running(index).expect("the interface exists"));
        let error = netlink.detach_xdp(9_999).expect_err("the interface does not exist");
        assert_eq!(code(&error), Some(libc::ENODEV), "{error}");
    });
}
