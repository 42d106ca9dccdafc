//! Tests of kernel bridges and of link settings: a rate at one end, queues, hardware addresses,
//! offloads.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use takt_lab::file::SWITCHES;
use takt_lab::{Lab, Outcome, Status};
use takt_netlink::feature::TX_CHECKSUM;
use takt_netlink::frame_socket::FrameSocket;
use takt_netlink::strict_priority::{Class, DropFrom, StrictPriority};
use takt_netlink::{Netlink, interface_index};
use takt_testkit::{not_run, require};

use crate::support::{name, up};

/// Two hosts at a bridge; only the ports of the bridge have a rate.
pub const BRIDGED: &str = r#"
    static_neighbors = true
    [[classes]]
    name = "urgent"
    dscp = [46]
    frames = 64
    drop_from = "tail"
    [[classes]]
    name = "late"
    by_priority = true
    frames = 32
    ceiling = "1 Mbit/s"
    [[classes]]
    name = "other"
    frames = 256
    drop_from = "tail"
    [hosts.left]
    eth0 = ["10.7.0.1/24", "10.7.0.11/24"]
    [hosts.right]
    eth0 = ["10.7.0.2/24"]
    [switches.link]
    kind = "bridge"
    [[links]]
    ends = ["left:eth0", "link"]
    rate = "100 Mbit/s"
    rate_at = "link"
    queues = 4
    macs = ["02:00:0a:07:00:01", "02:00:0a:07:01:01"]
    offloads = ["checksum", "segmentation"]
    [[links]]
    ends = ["right:eth0", "link"]
    rate = "100 Mbit/s"
    rate_at = "link"
"#;

/// Returns a lab for a test; reports the test as not run if there can be none.
fn lab(test: &str) -> Option<Lab> {
    if let Err(why) = require::root().and_then(|()| require::network_namespaces()) {
        not_run(why);
        return None;
    }
    Some(up(test, BRIDGED))
}

/// Runs a netlink query for an interface.
fn query<R: Send>(lab: &Lab, node: &str, interface: &str, f: impl FnOnce(&mut Netlink, i32) -> R + Send) -> R {
    let run = || f(&mut Netlink::route().expect("a socket"), interface_index(interface).expect("it exists"));
    lab.namespace(node).expect("a place of the file").run(run).expect("as root")
}

fn tree(lab: &Lab, node: &str, interface: &str) -> Option<StrictPriority> {
    query(lab, node, interface, |netlink, index| netlink.strict_priority(index).expect("the kernel answers"))
}

#[test]
fn hosts_at_a_bridge_of_the_kernel_pass_all_checks() {
    let Some(lab) = lab("bridge") else { return };
    let of = |outcome| {
        lab.checks().iter().filter(|check| check.outcome == outcome).map(|check| check.name).collect::<Vec<_>>()
    };
    let passed = ["checksum", "classes", "discipline", "head-drop", "bridge"];
    assert_eq!(of(Outcome::Passed), passed, "{:?}", lab.checks());
    assert_eq!(of(Outcome::NotMeasured), ["send-buffer", "receive-buffer"]);
    let status = Status::read(&name("bridge")).expect("it is up");
    assert!(status.switches.len() == 1 && status.switches[0].exists, "{status:?}");
    let again = Lab::check_running(lab.file()).expect("it is up");
    assert_eq!(again.iter().filter(|check| check.outcome == Outcome::Passed).count(), passed.len(), "{again:?}");
}

#[test]
fn bridge_example_passes_every_check() {
    if let Err(why) = require::root().and_then(|()| require::network_namespaces()) {
        return not_run(why);
    }
    let lab = up("bridge-example", include_str!("../../../../examples/lab/bridge.toml"));
    assert!(lab.checks().iter().all(|check| check.outcome != Outcome::Failed), "{:?}", lab.checks());
    assert_eq!(lab.plan().kernel_bridges, ["link"]);
}

#[test]
fn rate_at_one_end_creates_classes_only_there() {
    let Some(lab) = lab("one-end") else { return };
    let class = |dscp: &[u8], frames, drop_from, ceiling| Class {
        dscp: dscp.to_vec(),
        frames,
        drop_from,
        ceiling,
        ..Class::default()
    };
    let classes = vec![
        class(&[46], 64, DropFrom::Tail, None),
        class(&[], 32, DropFrom::Head, Some(125_000)),
        class(&[], 256, DropFrom::Tail, None),
    ];
    let wanted = Some(StrictPriority { rate: 12_500_000, classes });
    assert_eq!(["link-1", "link-2"].map(|port| tree(&lab, SWITCHES, port)), [wanted.clone(), wanted]);
    assert_eq!(["left", "right"].map(|host| tree(&lab, host, "eth0")), [None, None]);
}

#[test]
fn link_has_queues_hardware_addresses_and_offloads_of_the_file() {
    let Some(lab) = lab("queues") else { return };
    let of = |host: &str| {
        let read = || {
            let directory = std::path::Path::new("/sys/class/net/eth0");
            let entries = std::fs::read_dir(directory.join("queues")).expect("sysfs is mounted").flatten();
            let mut queues: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            queues.sort();
            let mac = std::fs::read_to_string(directory.join("address")).expect("sysfs is mounted");
            let features = Netlink::generic().expect("a socket").features(interface_index("eth0").expect("it exists"));
            let has_offload = features.expect("a list").iter().any(|feature| feature == TX_CHECKSUM);
            (queues, mac.trim().to_owned(), has_offload)
        };
        lab.namespace(host).expect("a host").run_with_sys(read).expect("as root")
    };
    let (queues, mac, has_offload) = of("left");
    assert_eq!(queues.join(" "), "rx-0 rx-1 rx-2 rx-3 tx-0 tx-1 tx-2 tx-3");
    assert_eq!((mac.as_str(), has_offload), ("02:00:0a:07:00:01", true));
    let (queues, mac, has_offload) = of("right");
    assert_eq!(queues.iter().filter(|queue| queue.starts_with("tx-")).count(), 1, "{queues:?}");
    assert_eq!((mac.as_str(), has_offload), ("02:00:00:00:00:02", false));
}

#[test]
fn frames_without_filters_are_in_the_last_class() {
    let Some(lab) = lab("filters") else { return };
    let sender = lab.namespace("left").expect("a host").run(|| UdpSocket::bind("10.7.0.1:0"));
    let sender = sender.expect("as root").expect("a port is free");
    let octet: i32 = 46 << 2;
    nix::sys::socket::setsockopt(&sender, nix::sys::socket::sockopt::Ipv4Tos, &octet).expect("a mark");
    let receiver = lab.namespace("right").expect("a host").run(|| UdpSocket::bind("10.7.0.2:7000"));
    let receiver = receiver.expect("as root").expect("the port is free");
    receiver.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let passed = || {
        let before = lab.queues().expect("the kernel answers");
        sender.send_to(&[7; 100], "10.7.0.2:7000").expect("there is a route");
        assert_eq!(receiver.recv(&mut [0; 200]).expect("it arrives"), 100);
        let after = lab.queues().expect("the kernel answers");
        let of = |class: &str| {
            let is_it = |queue: &&takt_lab::counters::Queue| queue.interface == "link-2" && queue.class == class;
            after.iter().find(is_it).expect("the queue exists").frames
                - before.iter().find(is_it).expect("the queue exists").frames
        };
        of("urgent")
    };
    assert_eq!(passed(), 1);
    lab.set_filters(false).expect("as root");
    assert_eq!(passed(), 0);
    let failed = lab.check().expect("the kernel answers").into_iter().find(|check| check.outcome == Outcome::Failed);
    assert!(failed.is_some_and(|check| check.name == "discipline"), "the checks know of the file alone");
    lab.set_filters(true).expect("as root");
    assert_eq!(passed(), 1);
    let counters = lab.counters(SWITCHES, "link-2").expect("the kernel answers");
    assert!(counters.sent_frames >= 3 && counters.sent_octets >= 3 * 142, "{counters:?}");
}

#[test]
fn bridge_floods_multicast_and_hosts_have_static_neighbors() {
    let Some(lab) = lab("flood") else { return };
    let group = Ipv4Addr::new(239, 7, 7, 7);
    // A packet socket receives the frame although the host has not joined the group.
    let watcher = lab
        .namespace("right")
        .expect("a host")
        .run(|| FrameSocket::capture(interface_index("eth0").expect("it exists"), 1 << 20));
    let watcher = watcher.expect("as root").expect("as root");
    let sender = lab.namespace("left").expect("a host").run(|| UdpSocket::bind("10.7.0.1:0"));
    sender.expect("as root").expect("a port is free").send_to(b"flooded", (group, 7000)).expect("there is a route");
    let (mut frame, mut has_arrived) = ([0; 2000], false);
    while !has_arrived && watcher.wait(Duration::from_secs(20)).expect("the interface is up") {
        let passed = watcher.receive(&mut frame).expect("the interface is up");
        has_arrived = passed.is_some_and(|passed| frame[..passed.len].ends_with(b"flooded"));
    }
    assert!(has_arrived, "the bridge keeps groups from ports without members");
    for (host, other, mac) in [
        ("left", "10.7.0.2", "02:00:00:00:00:02"),
        ("right", "10.7.0.1", "02:00:0a:07:00:01"),
        ("right", "10.7.0.11", "02:00:0a:07:00:01"),
    ] {
        let table = lab.namespace(host).expect("a host").run(|| std::fs::read_to_string("/proc/thread-self/net/arp"));
        let table = table.expect("as root").expect("proc is mounted");
        let line = table.lines().find(|line| line.starts_with(&format!("{other} "))).unwrap_or_default();
        // Flags ATF_PERM and ATF_COM.
        assert!(line.contains("0x6") && line.contains(mac), "{host} {other}: {table}");
    }
}
