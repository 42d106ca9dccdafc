//! Links, queueing disciplines and packet sockets in network namespaces of the tests.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use takt_netlink::feature::TX_CHECKSUM;
use takt_netlink::frame_socket::FrameSocket;
use takt_netlink::link::VethEnd;
use takt_netlink::strict_priority::{self, StrictPriority};
use takt_netlink::traffic::{Discipline, HtbClass, ROOT};
use takt_netlink::{Netlink, code, interface_index};
use takt_testkit::network::{Host, veth_pair};
use takt_testkit::waiting::until;
use takt_testkit::{not_run, require};

mod bridge;
mod loss;

const HTB: u32 = 0x0001_0000;

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the program is installed");
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs a function in a network namespace with the interface `eth0`.
fn in_namespace(f: impl FnOnce(&mut Netlink, i32, &Host)) {
    let Some([host, peer]) = veth_pair(1) else { return };
    let _inside = host.enter();
    let index = interface_index("eth0").expect("the interface exists");
    f(&mut Netlink::route().expect("a socket"), index, &peer);
}

#[test]
fn veth_ends_are_created_in_their_namespaces_with_addresses_and_routes() {
    in_namespace(|netlink, _, peer| {
        let own = File::open("/proc/thread-self/ns/net").expect("/proc is mounted");
        let there = peer.run(|| File::open("/proc/thread-self/ns/net").expect("/proc is mounted"));
        let ends = [
            VethEnd { name: "here", namespace: own.as_fd(), mac: Some([2, 9, 9, 9, 9, 9]), mtu: 1400, queues: None },
            VethEnd { name: "there", namespace: there.as_fd(), mac: None, mtu: 1400, queues: None },
        ];
        netlink.add_veth([&ends[0], &ends[1]]).expect("root has the permission");
        let error = netlink.add_veth([&ends[0], &ends[1]]).expect_err("the interface exists already");
        assert_eq!(code(&error), Some(libc::EEXIST), "{error}");
        let index = interface_index("here").expect("the interface exists");
        assert!(interface_index("there").is_err(), "the interface is in the other namespace");
        assert!(!netlink.is_running(index).expect("the interface exists"));
        netlink.set_up(index, true).expect("root has the permission");
        peer.run(|| {
            let index = interface_index("there").expect("the interface exists");
            Netlink::route().expect("a socket").set_up(index, true).expect("root has the permission");
        });
        assert!(netlink.is_running(index).expect("the interface exists"));
        netlink.add_address(index, IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), 24).expect("a new address");
        netlink.add_address(index, IpAddr::V6(Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 1)), 64).expect("a new address");
        netlink.add_route(index, IpAddr::V4(Ipv4Addr::new(230, 0, 0, 0)), 8).expect("a new route");
        let text = output("ip", &["addr", "show", "dev", "here"]);
        for expected in
            ["mtu 1400", "02:09:09:09:09:09", "inet 10.9.0.1/24 brd 10.9.0.255", "inet6 fd09::1/64 scope global nodad"]
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(output("ip", &["route"]).contains("230.0.0.0/8 dev here"));
        netlink.set_up(index, false).expect("root has the permission");
        assert!(!netlink.is_running(index).expect("the interface exists"));
    });
}

#[test]
fn checksum_offload_is_switched_and_reported() {
    in_namespace(|_, index, _| {
        let mut generic = Netlink::generic().expect("a socket");
        for is_on in [false, true] {
            generic.set_features(index, &[TX_CHECKSUM], is_on).expect("veth has it");
            let features = generic.features(index).expect("a list");
            assert_eq!(features.iter().any(|name| name == TX_CHECKSUM), is_on, "{features:?}");
        }
        assert!(generic.set_features(index, &["no-such-feature"], true).is_err());
    });
}

/// Creates a tree of two classes with this crate.
fn make_tree(netlink: &mut Netlink, index: i32) {
    let class =
        |rate, priority| HtbClass { rate, ceiling: 12_500_000, burst: 1600, quantum: 1514, priority, overhead: 24 };
    netlink.add_discipline(index, HTB, ROOT, Discipline::Htb { default: 2 }).expect("a new tree");
    netlink.add_class(index, HTB | 0xff, HTB, &class(12_500_000, 0)).expect("a new class");
    netlink.add_class(index, HTB | 1, HTB | 0xff, &class(1000, 0)).expect("a new class");
    netlink.add_class(index, HTB | 2, HTB | 0xff, &class(1000, 1)).expect("a new class");
    netlink.add_discipline(index, 0x10_0000, HTB | 1, Discipline::Pfifo { frames: 64 }).expect("a new queue");
    netlink.add_discipline(index, 0x11_0000, HTB | 2, Discipline::PfifoHeadDrop { frames: 256 }).expect("a new queue");
}

#[test]
fn tree_of_classes_is_shown_by_tc() {
    if let Err(why) = require::program("tc") {
        return not_run(why);
    }
    in_namespace(|netlink, index, _| {
        make_tree(netlink, index);
        assert!(!netlink.has_filters(index, HTB).expect("a list"));
        netlink.add_dscp_filter(index, HTB, 46, HTB | 1).expect("a new filter");
        assert!(netlink.has_filters(index, HTB).expect("a list"));
        let classes = output("tc", &["class", "show", "dev", "eth0"]);
        assert!(
            classes.contains("class htb 1:1 parent 1:ff leaf 10: prio 0 rate 8Kbit overhead 24 ceil 100Mbit"),
            "{classes}"
        );
        assert!(
            classes.contains("class htb 1:2 parent 1:ff leaf 11: prio 1 rate 8Kbit overhead 24 ceil 100Mbit"),
            "{classes}"
        );
        let filters = output("tc", &["filter", "show", "dev", "eth0"]);
        assert!(filters.contains("match 00b80000/00fc0000 at 0") && filters.contains("flowid 1:1"), "{filters}");
        assert!(filters.contains("match 0b800000/0fc00000 at 0"), "IPv6: {filters}");
        netlink.remove_discipline(index, ROOT).expect("the discipline exists");
        assert!(netlink.disciplines(index).expect("a list").iter().all(|one| one.handle != HTB));
    });
}

#[test]
fn datagrams_are_counted_in_the_queue_of_their_dscp() {
    in_namespace(|netlink, index, _| {
        make_tree(netlink, index);
        netlink.add_dscp_filter(index, HTB, 0, HTB | 1).expect("a new filter");
        let frames = |netlink: &mut Netlink| {
            let all = netlink.disciplines(index).expect("a list");
            all.iter().find(|one| one.parent == HTB | 1).map(|one| (one.kind.clone(), one.frames)).expect("a queue")
        };
        let before = frames(netlink).1;
        for target in ["10.77.0.2:9", "[fd77::2]:9"] {
            let any = if target.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
            let socket = UdpSocket::bind(any).expect("a port is free");
            socket.send_to(&[0; 100], target).expect("a route exists");
        }
        assert_eq!(frames(netlink), ("pfifo".to_owned(), before + 2), "one of IPv4, one of IPv6");
    });
}

fn strict_priority() -> StrictPriority {
    let class = |dscp: &[u8], ether_types: &[u16], frames| strict_priority::Class {
        dscp: dscp.to_vec(),
        ether_types: ether_types.to_vec(),
        frames,
        ..strict_priority::Class::default()
    };
    StrictPriority { rate: 2_500_000, classes: vec![class(&[34, 46], &[0x0806, 0x88cc], 64), class(&[], &[], 256)] }
}

#[test]
fn strict_priority_is_read_back_unless_it_was_changed() {
    in_namespace(|netlink, index, _| {
        assert_eq!(netlink.strict_priority(index).expect("a list"), None);
        let wanted = strict_priority();
        netlink.add_strict_priority(index, &wanted).expect("a new tree");
        assert_eq!(netlink.strict_priority(index).expect("a list").as_ref(), Some(&wanted));
        let twice = netlink.add_strict_priority(index, &wanted).map_err(|error| code(&error));
        assert_eq!(twice, Err(Some(libc::EEXIST)));
        assert_eq!(netlink.strict_priority(index).expect("a list").as_ref(), Some(&wanted), "unchanged");
        let class = strict_priority::class(1);
        netlink.add_dscp_filter(index, strict_priority::HANDLE, 10, class).expect("a new filter");
        let changed = netlink.strict_priority(index).expect("a list").expect("the discipline is from Takt");
        assert_eq!(changed.classes[1].dscp, [10]);
        netlink.remove_discipline(index, class).expect("the queue exists");
        netlink.add_leaf(index, 1, Discipline::Pfifo { frames: 256 }).expect("a new queue");
        let changed = netlink.strict_priority(index).expect("a list").expect("the discipline is from Takt");
        assert_eq!(changed.classes[1].drop_from, strict_priority::DropFrom::Tail);
        netlink.remove_discipline(index, ROOT).expect("the discipline exists");
        make_tree(netlink, index);
        assert_eq!(netlink.strict_priority(index).expect("a list"), None, "the handle differs");
    });
}

#[test]
fn classes_with_a_ceiling_and_tail_drop_are_read_back_and_filters_can_be_recreated() {
    in_namespace(|netlink, index, _| {
        let mut wanted = strict_priority();
        wanted.classes[0].ceiling = Some(125_000);
        wanted.classes[1].drop_from = strict_priority::DropFrom::Tail;
        netlink.add_strict_priority(index, &wanted).expect("a new tree");
        assert_eq!(netlink.strict_priority(index).expect("a list").as_ref(), Some(&wanted));
        for _ in 0..2 {
            netlink.remove_filters(index, strict_priority::HANDLE).expect("root has the permission");
            assert!(!netlink.has_filters(index, strict_priority::HANDLE).expect("a list"));
        }
        netlink.add_class_filters(index, &wanted.classes).expect("the classes are there");
        assert_eq!(netlink.strict_priority(index).expect("a list").as_ref(), Some(&wanted));
    });
}

#[test]
fn strict_priority_with_no_class_or_too_many_is_refused_and_leaves_nothing() {
    in_namespace(|netlink, index, _| {
        let StrictPriority { rate, classes } = strict_priority();
        for classes in [Vec::new(), vec![classes[1].clone(); strict_priority::CLASSES_MAX + 1]] {
            let error = netlink.add_strict_priority(index, &StrictPriority { rate, classes }).expect_err("no tree");
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        }
        let broken = StrictPriority { rate: 0, classes };
        netlink.add_strict_priority(index, &broken).expect_err("a class without a rate");
        assert!(netlink.disciplines(index).expect("a list").iter().all(|one| one.parent != ROOT || one.handle == 0));
    });
}

#[test]
fn frames_are_captured_in_both_directions_with_their_times() {
    in_namespace(|_, index, peer| {
        let capture = FrameSocket::capture(index, 1 << 20).expect("root has the permission");
        let (there, far) = peer.run(|| {
            let index = interface_index("eth0").expect("the interface exists");
            let capture = FrameSocket::capture(index, 1 << 20).expect("root has the permission");
            (capture, FrameSocket::sender(index).expect("root has the permission"))
        });
        let near = FrameSocket::sender(index).expect("root has the permission");
        let frame =
            |mark: u8| [&[2, 0xee, 0, 0, 0, mark][..], &[2, 0xee, 0, 0, 0, 9], &[0x88, 0xb5], &[7; 50]].concat();
        let captured = |socket: &FrameSocket, mark: u8| {
            let mut buffer = [0; 2000];
            let mut found = None;
            until("the frame passes", || {
                while let Some(captured) = socket.receive(&mut buffer).expect("the link is up") {
                    if buffer[..captured.len] == frame(mark) {
                        found = Some(captured);
                    }
                }
                found.is_some()
            });
            found.expect("the frame has passed")
        };
        near.send(&frame(1)).expect("the link is up");
        let (out, into) = (captured(&capture, 1), captured(&there, 1));
        assert!(
            out.is_outgoing && !into.is_outgoing && out.time_ns > 0 && out.time_ns <= into.time_ns,
            "{out:?} {into:?}"
        );
        far.send(&frame(2)).expect("the link is up");
        let (out, into) = (captured(&there, 2), captured(&capture, 2));
        assert!(out.is_outgoing && !into.is_outgoing && out.time_ns <= into.time_ns, "{out:?} {into:?}");
        assert_eq!(near.send(&[0; 20_000]).map_err(|error| code(&error)), Err(Some(libc::EMSGSIZE)));
        assert_eq!(FrameSocket::sender(1 << 20).map(drop).map_err(|error| code(&error)), Err(Some(libc::ENODEV)));
    });
}

#[test]
fn filtered_capture_contains_only_udp_of_its_source() {
    in_namespace(|_, index, _| {
        let capture = FrameSocket::capture(index, 1 << 20).expect("root has the permission");
        let sender = FrameSocket::sender(index).expect("root has the permission");
        assert_eq!(capture.address().expect("the socket is bound"), sender.address().expect("the socket is bound"));
        let source = Ipv4Addr::new(10, 0, 0, 7);
        let frame = |ether_type: u16, protocol: u8, source: Ipv4Addr| {
            let mut frame = [&[2, 0xee, 0, 0, 0, 1][..], &[2, 0xee, 0, 0, 0, 9], &ether_type.to_be_bytes()].concat();
            frame.extend([&[0x45; 9][..], &[protocol, 0, 0], &source.octets(), &[0; 44]].concat());
            frame
        };
        capture.accept_udp_from(source).expect("a filter");
        let mut buffer = [0; 2000];
        while capture.receive(&mut buffer).expect("the link is up").is_some() {}
        let other = Ipv4Addr::new(10, 0, 0, 8);
        for refused in [frame(0x86dd, 17, source), frame(0x0800, 6, source), frame(0x0800, 17, other)] {
            sender.send(&refused).expect("the link is up");
        }
        sender.send(&frame(0x0800, 17, source)).expect("the link is up");
        assert!(capture.wait(Duration::from_secs(30)).expect("the socket can be polled"), "the last one passes");
        let captured = capture.receive(&mut buffer).expect("the link is up").expect("the frame arrived");
        assert_eq!(buffer[..captured.len], frame(0x0800, 17, source));
        assert!(!capture.wait(Duration::ZERO).expect("the socket can be polled"), "the others do not");
    });
}

#[test]
fn capture_of_udp_contains_every_protocol_that_carries_rtps_and_no_other() {
    in_namespace(|_, index, _| {
        let capture = FrameSocket::capture(index, 1 << 20).expect("root has the permission");
        let sender = FrameSocket::sender(index).expect("root has the permission");
        // The protocol is at octet 20 under IPv6, at octet 23 under IPv4.
        let frame = |ether_type: u16, at: usize, protocol: u8| {
            let mut frame = [&[2, 0xee, 0, 0, 0, 1][..], &[2, 0xee, 0, 0, 0, 9], &ether_type.to_be_bytes()].concat();
            frame.resize(60, 0);
            frame[at] = protocol;
            frame
        };
        capture.accept_udp().expect("a filter");
        let mut buffer = [0; 2000];
        while capture.receive(&mut buffer).expect("the link is up").is_some() {}
        for refused in [frame(0x0800, 23, 6), frame(0x86dd, 20, 6), frame(0x0806, 23, 17)] {
            sender.send(&refused).expect("the link is up");
        }
        for accepted in [frame(0x0800, 23, 17), frame(0x86dd, 20, 17), frame(0x86dd, 20, 44), frame(0x88b5, 59, 1)] {
            sender.send(&accepted).expect("the link is up");
            assert!(capture.wait(Duration::from_secs(30)).expect("the socket can be polled"), "{accepted:?}");
            let captured = capture.receive(&mut buffer).expect("the link is up").expect("the frame arrived");
            assert_eq!(buffer[..captured.len], accepted);
        }
        assert!(!capture.wait(Duration::ZERO).expect("the socket can be polled"), "the others do not");
    });
}

/// Returns an Ethernet frame, with or without a tag of VLAN 5, and the beginning of an IP packet.
fn ip_frame(is_tagged: bool, ether_type: u16, first: [u8; 2]) -> Vec<u8> {
    let tag: &[u8] = if is_tagged { &[0x81, 0, 0x60, 5] } else { &[] };
    [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9], tag, &ether_type.to_be_bytes(), &first, &[0; 58]].concat()
}

#[test]
fn frames_of_a_packet_socket_are_counted_by_dscp_with_and_without_a_tag() {
    in_namespace(|netlink, index, _| {
        make_tree(netlink, index);
        netlink.add_dscp_filter(index, HTB, 46, HTB | 1).expect("a new filter");
        let socket = FrameSocket::sender(index).expect("root has the permission");
        let mut frames = || {
            let all = netlink.disciplines(index).expect("a list");
            all.iter().find(|one| one.parent == HTB | 1).map(|one| one.frames).expect("a queue")
        };
        // DSCP 46 and 34: octet 1 of IPv4, and the adjacent four bits of octets 0 and 1 of IPv6.
        let cases = [
            (0x0800, [0x45, 46 << 2], true),
            (0x0800, [0x45, 34 << 2], false),
            (0x86dd, [0x6b, 0x80], true),
            (0x86dd, [0x68, 0x80], false),
            (0x0806, [0, 1], false),
        ];
        for (is_tagged, (ether_type, first, is_classed)) in
            [false, true].into_iter().flat_map(|tag| cases.map(|case| (tag, case)))
        {
            let before = frames();
            socket.send(&ip_frame(is_tagged, ether_type, first)).expect("the interface is up");
            let counted = frames() - before;
            assert_eq!(counted, u64::from(is_classed), "tag: {is_tagged}, {ether_type:#06x}, {first:x?}");
        }
    });
}

#[test]
fn packet_sockets_are_listed_with_their_buffers() {
    in_namespace(|_, index, _| {
        // SAFETY: no pointers; the descriptor is closed below.
        let descriptor = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
        assert!(descriptor >= 0, "root has the permission");
        let sockets = Netlink::sockets().expect("a socket").packet_sockets().expect("a list");
        let target = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).expect("the socket is open");
        let own = |inode: u32| target.to_string_lossy() == format!("socket:[{inode}]");
        let found = sockets.iter().find(|socket| own(socket.inode)).expect("the socket is open");
        let default = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).expect("/proc is mounted");
            text.trim().parse::<u32>().expect("a number")
        };
        assert_eq!((found.interface, found.drops), (0, 0), "{index}");
        // Another process may have raised the defaults meanwhile. No socket has less than the
        // kernel's own minimum.
        let is_default = |found: u32, name: &str| found == default(name) || found >= 212_992;
        assert!(is_default(found.send_buffer, "wmem_default"), "{found:?}");
        assert!(is_default(found.receive_buffer, "rmem_default"), "{found:?}");
        // SAFETY: it was opened above and has no other owner.
        unsafe { libc::close(descriptor) };
    });
}
