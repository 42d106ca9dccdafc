//! Tests of floods of small frames to hosts with a packet limit: unicast, multicast, broadcast, and
//! through the controller.

use std::net::Ipv4Addr;
use std::time::Duration;

use takt_sdn::controller::{Config, Event};
use takt_sdn::forwarding::rules::{LIMITED_GROUP, meter};
use takt_sdn::frame::{ArpOperation, ArpPacket, Frame, MacAddress, arp_frame};
use takt_sdn::model::{NetworkFile, SwitchModel};

use crate::admission::{CLASSES, NETWORK, Site};
use crate::fabric::{Fabric, line, port};
use crate::plain_ethernet::igmp;

/// UDP port of floods.
const NOISE: u16 = 9000;
const STEP: Duration = Duration::from_millis(10);
/// Limit of the reader's host: one half is for unicast, one quarter each for groups and the
/// controller.
const LIMITED: &str = "[[port]]\ndatapath_id = \"*2\"\nport = 5\npackets_per_s = 400\n";
const UNICAST: usize = 200;
const GROUPS: usize = 100;
const CONTROLLER: usize = 100;

fn config(limits: &str) -> Config {
    let text = format!("{NETWORK}{limits}");
    let network = NetworkFile::parse("network.toml", &text, SwitchModel::built_in);
    Config { network: Some(network.unwrap_or_else(|error| panic!("{error}"))), ..Config::default() }
}

/// Returns the number of packets that a share passes in a second, with its burst.
fn at_most(rate: usize) -> std::ops::RangeInclusive<usize> {
    rate * 9 / 10..=rate + rate / 10 + 1
}

/// Sends 20 copies of a frame every 10 ms for a second, and returns the number that each host gets.
fn flood(fabric: &mut Fabric, from: usize, frame: &[u8]) -> Vec<usize> {
    fabric.hosts.iter_mut().for_each(|host| host.inbox.clear());
    for _ in 0..100 {
        (0..20).for_each(|_| fabric.send_from(from, frame.to_vec()));
        fabric.pass(STEP);
    }
    fabric.received(frame)
}

/// Creates hosts 0 and 2 at switch 1, hosts 1 and 3 at switch 2, and host 4 at switch 3 behind
/// switch 2. All have announced themselves.
fn three_switches(limits: &str) -> Fabric {
    let mut fabric = Fabric::with(config(limits), 3, &line(3));
    fabric.settle();
    for at in [port(1, 5), port(2, 5), port(1, 6), port(2, 6), port(3, 5)] {
        fabric.host(at);
    }
    for host in 0..5 {
        fabric.send_from(host, fabric.arp(ArpOperation::Request, host, (host + 1) % 5));
    }
    fabric.settle();
    fabric
}

#[test]
fn flood_of_small_frames_to_a_host_is_limited_and_does_not_affect_its_admitted_pair() {
    for (limits, expected) in [(LIMITED, at_most(UNICAST)), ("", 2000..=2000)] {
        let mut site = Site::with(config(limits), 2, &line(2));
        let (pair, ..) = site.pair(0, "Camera", 0);
        site.run(1_000);
        assert!(site.is_admitted(pair), "{:?}", site.fabric.events);
        let noise = site.fabric.udp(2, 1, NOISE, &[0; 58]);
        // The controller sends the first one and installs the entries.
        site.fabric.send_from(2, noise.clone());
        site.fabric.pass(STEP);
        let delivered = flood(&mut site.fabric, 2, &noise)[1];
        assert!(expected.contains(&delivered), "{limits:?}: {delivered}");
        (0..40).for_each(|_| site.fabric.send_from(2, noise.clone()));
        let classes = site.classes(0, 1, 6);
        assert_eq!(classes.len(), 6, "a sample of six datagrams passes during the flood");
        assert!(classes.iter().all(|class| CLASSES.contains(class)), "{classes:?}");
    }
}

#[test]
fn broadcasts_are_limited_only_at_hosts_with_a_limit() {
    let mut fabric = three_switches(LIMITED);
    let hello = fabric.broadcast(0, b"hello");
    fabric.send_from(0, hello.clone());
    assert_eq!(fabric.received(&hello), [0, 1, 1, 1, 1], "once to each");
    let delivered = flood(&mut fabric, 0, &hello);
    assert!(at_most(GROUPS).contains(&delivered[1]), "{delivered:?}");
    assert_eq!((delivered[2], delivered[3], delivered[4]), (2000, 2000, 2000), "also behind the switch with the limit");
    let from_limited = fabric.broadcast(1, b"hello");
    assert_eq!(flood(&mut fabric, 1, &from_limited)[3], 2000, "frames sent by the host are not limited");
}

/// The limit of all hosts does not apply at ports that lead to switches.
#[test]
fn frames_on_their_way_to_another_switch_are_not_limited() {
    let limits = "[[port]]\ndatapath_id = \"*3\"\nport = 5\npackets_per_s = 40_000\n[host]\npackets_per_s = 400\n";
    let mut fabric = three_switches(limits);
    let noise = fabric.udp(0, 4, NOISE, &[0; 58]);
    let hello = fabric.broadcast(0, b"hello");
    fabric.send_from(0, noise.clone());
    fabric.pass(STEP);
    assert_eq!(flood(&mut fabric, 0, &noise)[4], 2000);
    // The smallest group share of a switch applies, once at each switch.
    let delivered = flood(&mut fabric, 0, &hello);
    assert!(delivered[1..].iter().all(|delivered| at_most(GROUPS).contains(delivered)), "{delivered:?}");
}

#[test]
fn frames_to_a_known_group_are_limited_only_at_members_with_a_limit() {
    let mut fabric = three_switches(LIMITED);
    // Edges that have not answered queries yet get every group.
    fabric.pass(Duration::from_secs(5));
    let group = Ipv4Addr::new(239, 1, 2, 3);
    for host in [1, 3, 4] {
        fabric.send_from(host, igmp(&fabric, host, 0x16, group));
    }
    let frame = fabric.udp_to(&fabric.hosts[0], MacAddress([1, 0, 0x5e, 1, 2, 3]), group, NOISE, &[], b"to members");
    fabric.send_from(0, frame.clone());
    assert_eq!(fabric.received(&frame), [0, 1, 0, 1, 1], "{:?}", fabric.events);
    let delivered = flood(&mut fabric, 0, &frame);
    assert!(at_most(GROUPS).contains(&delivered[1]), "{delivered:?}");
    assert_eq!((delivered[2], delivered[3], delivered[4]), (0, 2000, 2000));
}

#[test]
fn controller_frames_to_a_host_beyond_its_share_are_dropped_and_counted() {
    let mut fabric = three_switches(LIMITED);
    // Discovery of an unknown participant: each message passes the controller, and most exceed the
    // allowance of discovery.
    let group = MacAddress([1, 0, 0x5e, 0x7f, 0, 1]);
    let frame = fabric.udp_to(&fabric.hosts[0], group, Ipv4Addr::new(239, 255, 0, 1), 7400, &[], b"RTPS");
    let delivered = flood(&mut fabric, 0, &frame);
    let (limited, free) = (delivered[1], delivered[3]);
    assert!(free > limited + 500, "{delivered:?}");
    let counters = fabric.controller.counters();
    assert_eq!(counters.host_excess_of_controller as usize, free - limited, "{delivered:?}");
    let classed = free - counters.control_excess as usize / 4;
    assert!(limited <= classed + CONTROLLER + CONTROLLER / 5, "{delivered:?}, {counters:?}");
}

#[test]
fn arp_request_for_a_host_with_a_limit_passes_during_a_flood_to_it() {
    let mut fabric = three_switches(LIMITED);
    let noise = fabric.udp(0, 1, NOISE, &[0; 58]);
    flood(&mut fabric, 0, &noise);
    let arp_request = {
        let (from, to) = (&fabric.hosts[2], &fabric.hosts[1]);
        let sender = (from.mac, from.address);
        let target = (MacAddress::default(), to.address);
        let packet = ArpPacket { operation: ArpOperation::Request, sender, target };
        arp_frame(MacAddress::BROADCAST, from.mac, &[], &packet)
    };
    (0..40).for_each(|_| fabric.send_from(0, noise.clone()));
    fabric.hosts[1].inbox.clear();
    fabric.send_from(2, arp_request);
    let is_arp = |bytes: &Vec<u8>| Frame::parse(bytes).is_ok_and(|frame| frame.ether_type().0 == 0x0806);
    assert_eq!(fabric.hosts[1].inbox.iter().filter(|bytes| is_arp(bytes)).count(), 1, "ARP has its own class");
}

#[test]
fn drops_are_read_from_meters_counted_and_reported_once() {
    let mut fabric = three_switches(LIMITED);
    let noise = fabric.udp(0, 1, NOISE, &[0; 58]);
    let hello = fabric.broadcast(0, b"hello");
    let [by_unicast, to_all] = [&noise, &hello].map(|frame| 2000 - flood(&mut fabric, 0, frame)[1] as u64);
    fabric.pass(Duration::from_secs(6));
    let view = fabric.controller.view(fabric.now);
    let switch = view.switches.iter().find(|switch| switch.datapath_id.ends_with('2')).expect("connected");
    let limit = switch.ports.iter().find(|port| port.number == 5).and_then(|port| port.host_limit.clone());
    let limit = limit.expect("the file has it");
    assert_eq!((limit.packets_per_s, switch.group_packets_dropped), (400, Some(to_all)));
    assert!(limit.packets_dropped.abs_diff(by_unicast) <= 1, "the controller sends the first: {limit:?}, {by_unicast}");
    let total = limit.packets_dropped + to_all;
    assert_eq!((fabric.controller.counters().host_excess, view.counters["host_excess"]), (total, total));
    let reported = |wanted: Option<u32>| {
        let is_of = |event: &&Event| matches!(event, Event::HostOverload { dpid: 2, port, .. } if *port == wanted);
        fabric.events.iter().filter(is_of).count()
    };
    assert_eq!((reported(Some(5)), reported(None)), (1, 1), "{:?}", fabric.events);
}

#[test]
fn restarted_controller_finds_its_limits_in_the_switches_and_changes_nothing() {
    let mut fabric = three_switches(LIMITED);
    let noise = fabric.udp(0, 1, NOISE, &[0; 58]);
    flood(&mut fabric, 0, &noise);
    // Hosts are adopted from the entries that let them send.
    fabric.send_from(1, fabric.udp(1, 0, NOISE, b"here"));
    let before = fabric.switches[&2].meters.clone();
    assert!(before.contains_key(&meter::of_hosts(5)) && before.contains_key(&meter::GROUPS));
    fabric.restart_with(config(LIMITED), &Default::default());
    fabric.pass(Duration::from_secs(6));
    assert_eq!(fabric.switches[&2].meters, before);
    let changed = |event: &&Event| matches!(event, Event::Resynchronized { difference, .. } if difference.changed > 0);
    assert_eq!(fabric.events.iter().find(changed), None);
    let delivered = flood(&mut fabric, 0, &noise)[1];
    assert!(at_most(UNICAST).contains(&delivered), "{delivered}");
}

#[test]
fn switch_without_a_fifth_table_is_refused_only_if_a_host_has_a_limit() {
    for (limits, is_refused) in [(LIMITED, true), ("", false)] {
        let mut fabric = Fabric::with(config(limits), 2, &line(2));
        fabric.settle();
        fabric.disconnect(1);
        fabric.switch(1).tables = 4;
        fabric.events.clear();
        fabric.connect(1);
        let refusal = fabric.events.iter().find(|event| matches!(event, Event::ConnectionRefused { .. }));
        assert_eq!(refusal.is_some(), is_refused, "{:?}", fabric.events);
        if let Some(refusal) = refusal {
            assert!(refusal.to_string().contains("has 4 tables; 5 are needed"), "{refusal}");
        }
    }
}

#[test]
fn network_without_limits_has_neither_their_meters_nor_their_group() {
    let mut fabric = three_switches("");
    let noise = fabric.udp(0, 1, NOISE, &[0; 58]);
    fabric.send_from(0, noise.clone());
    assert_eq!(flood(&mut fabric, 0, &noise)[1], 2000);
    let switch = &fabric.switches[&2];
    assert!(!switch.meters.contains_key(&meter::GROUPS) && switch.meters.range(meter::HOSTS..).count() == 0);
    assert!(!switch.groups.contains_key(&LIMITED_GROUP));
    assert_eq!(fabric.controller.view(fabric.now).switches[1].group_packets_dropped, None);
}
