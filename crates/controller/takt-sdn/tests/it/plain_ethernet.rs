//! Tests of forwarding like plain Ethernet for all traffic except DDS: each frame reaches its
//! destinations once.

use std::net::Ipv4Addr;
use std::time::Duration;

use takt_packet::{Ipv4Header, Sum};
use takt_sdn::controller::Event;
use takt_sdn::frame::{ArpOperation, MacAddress};

use crate::fabric::{Fabric, line, port, ring};

const SECOND: Duration = Duration::from_secs(1);

/// Adds a host to each of `count` switches.
fn with_hosts(mut fabric: Fabric, count: u64) -> Fabric {
    for dpid in 1..=count {
        fabric.host(port(dpid, 5));
    }
    fabric.settle();
    fabric
}

/// Broadcasts twice from each host, first through the controller, then by rules, and checks that
/// each other host received each frame once.
fn broadcasts_reach_each_host_once(fabric: &mut Fabric) {
    for from in 0..fabric.hosts.len() {
        for round in 0..2 {
            let frame = fabric.broadcast(from, &[round, from as u8]);
            fabric.send_from(from, frame.clone());
            let expected: Vec<usize> = (0..fabric.hosts.len()).map(|host| usize::from(host != from)).collect();
            assert_eq!(fabric.received(&frame), expected, "from host {from}, round {round}");
        }
    }
}

fn unicasts_reach_their_host_alone(fabric: &mut Fabric) {
    for from in 0..fabric.hosts.len() {
        for to in (0..fabric.hosts.len()).filter(|to| *to != from) {
            for round in 0..2 {
                let frame = fabric.udp(from, to, 4000, &[round, from as u8, to as u8]);
                fabric.send_from(from, frame.clone());
                let expected: Vec<usize> = (0..fabric.hosts.len()).map(|host| usize::from(host == to)).collect();
                assert_eq!(fabric.received(&frame), expected, "from {from} to {to}, round {round}");
            }
        }
    }
}

#[test]
fn frames_reach_their_hosts_once_in_a_line_a_ring_and_a_tree() {
    let tree = [(port(1, 1), port(2, 1)), (port(1, 2), port(3, 1)), (port(1, 3), port(4, 1)), (port(4, 2), port(5, 1))];
    for (count, cables) in [(1, vec![]), (4, line(4)), (3, ring()), (5, tree.to_vec())] {
        let mut fabric = with_hosts(Fabric::new(count, &cables), count);
        assert_eq!(fabric.links().len(), cables.len());
        broadcasts_reach_each_host_once(&mut fabric);
        unicasts_reach_their_host_alone(&mut fabric);
    }
}

#[test]
fn frames_reach_their_hosts_once_in_a_full_mesh_with_double_cables() {
    let mut cables = ring();
    cables.extend([
        (port(1, 3), port(2, 3)),
        (port(1, 4), port(4, 1)),
        (port(2, 4), port(4, 2)),
        (port(3, 3), port(4, 3)),
    ]);
    let mut fabric = with_hosts(Fabric::new(4, &cables), 4);
    assert_eq!((fabric.links().len(), fabric.controller.tree().len()), (7, 3));
    broadcasts_reach_each_host_once(&mut fabric);
    unicasts_reach_their_host_alone(&mut fabric);
}

#[test]
fn second_frame_between_two_hosts_bypasses_the_controller() {
    let mut fabric = with_hosts(Fabric::new(3, &line(3)), 3);
    for (from, to) in [(0, 2), (2, 0), (0, 2)] {
        let frame = fabric.udp(from, to, 4000, b"first");
        fabric.send_from(from, frame);
    }
    let before: usize = fabric.switches.values().map(|switch| switch.packet_ins).sum();
    for (from, to) in [(0, 2), (2, 0), (0, 2), (2, 0)] {
        let frame = fabric.udp(from, to, 4000, b"second");
        fabric.send_from(from, frame.clone());
        assert_eq!(fabric.received(&frame)[to], 1);
    }
    let after: usize = fabric.switches.values().map(|switch| switch.packet_ins).sum();
    assert_eq!(after, before);
}

#[test]
fn ring_delivers_after_each_of_its_links_fails_and_returns() {
    for cut in ring() {
        let mut fabric = with_hosts(Fabric::new(3, &ring()), 3);
        broadcasts_reach_each_host_once(&mut fabric);
        unicasts_reach_their_host_alone(&mut fabric);
        fabric.set_cable(cut.0, cut.1, false);
        assert!(fabric.controller.is_settled());
        assert_eq!((fabric.links().len(), fabric.controller.tree().len()), (2, 2));
        broadcasts_reach_each_host_once(&mut fabric);
        unicasts_reach_their_host_alone(&mut fabric);
        fabric.set_cable(cut.0, cut.1, true);
        fabric.settle();
        assert_eq!((fabric.links().len(), fabric.controller.tree().len()), (3, 2));
        broadcasts_reach_each_host_once(&mut fabric);
        unicasts_reach_their_host_alone(&mut fabric);
    }
}

#[test]
fn ring_delivers_after_a_link_falls_silent() {
    let mut fabric = with_hosts(Fabric::new(3, &ring()), 3);
    broadcasts_reach_each_host_once(&mut fabric);
    let (a, b) = ring()[0];
    fabric.break_silently(a, b);
    fabric.pass(5 * SECOND);
    assert_eq!(fabric.links().len(), 2);
    broadcasts_reach_each_host_once(&mut fabric);
    unicasts_reach_their_host_alone(&mut fabric);
}

#[test]
fn arp_request_for_a_known_address_reaches_only_its_host() {
    let mut fabric = with_hosts(Fabric::new(3, &line(3)), 3);
    let request = fabric.arp(ArpOperation::Request, 0, 2);
    fabric.send_from(0, request.clone());
    assert_eq!(fabric.received(&request), [0, 1, 1], "the host is unknown so far");
    let reply = fabric.arp(ArpOperation::Reply, 2, 0);
    fabric.send_from(2, reply.clone());
    assert_eq!(fabric.received(&reply), [1, 0, 0]);
    let request = fabric.arp(ArpOperation::Request, 1, 2);
    fabric.send_from(1, request.clone());
    assert_eq!(fabric.received(&request), [0, 0, 1]);
    assert_eq!(fabric.controller.counters().directed, 1);
}

#[test]
fn host_that_moves_with_its_port_down_is_reached_at_its_new_port() {
    let mut fabric = with_hosts(Fabric::new(3, &ring()), 3);
    broadcasts_reach_each_host_once(&mut fabric);
    unicasts_reach_their_host_alone(&mut fabric);
    let old = fabric.hosts[2].at;
    fabric.switch(old.dpid).set_port(old.port, false);
    fabric.run();
    fabric.hosts[2].at = port(1, 6);
    let hello = fabric.broadcast(2, b"here");
    fabric.send_from(2, hello);
    fabric.hosts.iter_mut().for_each(|host| host.inbox.clear());
    unicasts_reach_their_host_alone(&mut fabric);
}

#[test]
fn frame_with_the_source_of_another_host_is_dropped_and_reported() {
    let mut fabric = with_hosts(Fabric::new(2, &line(2)), 2);
    broadcasts_reach_each_host_once(&mut fabric);
    unicasts_reach_their_host_alone(&mut fabric);
    let forged = fabric.udp(0, 1, 4000, b"forged");
    fabric.send(port(2, 7), forged.clone());
    assert_eq!(fabric.received(&forged), [0, 0]);
    let spoofed = |event: &Event| matches!(event, Event::Spoofed { at, .. } if *at == port(2, 7));
    assert!(fabric.events.iter().any(spoofed));
    unicasts_reach_their_host_alone(&mut fabric);
}

#[test]
fn rules_for_hosts_expire_and_come_back() {
    let mut fabric = with_hosts(Fabric::new(2, &line(2)), 2);
    broadcasts_reach_each_host_once(&mut fabric);
    unicasts_reach_their_host_alone(&mut fabric);
    let many = fabric.switch(1).rules.len();
    fabric.pass(12 * SECOND);
    assert!(fabric.switch(1).rules.len() < many);
    assert!(fabric.controller.is_settled());
    unicasts_reach_their_host_alone(&mut fabric);
    assert_eq!(fabric.switch(1).rules.len(), many);
}

/// Builds a report or leave message of IGMPv2.
pub fn igmp(fabric: &Fabric, from: usize, kind: u8, group: Ipv4Addr) -> Vec<u8> {
    let host = &fabric.hosts[from];
    let [a, b, c, d] = group.octets();
    let mut frame = vec![1, 0, 0x5e, b & 0x7f, c, d];
    frame.extend(host.mac.0);
    frame.extend([8, 0]);
    let header =
        Ipv4Header { source: host.address, destination: group, protocol: 2, ttl: 1, traffic_class: 0, payload_len: 8 };
    let mut packet = [0; 32];
    header.emit_alert(&mut packet).expect("the buffer is large enough");
    packet[24] = kind;
    packet[28..].copy_from_slice(&[a, b, c, d]);
    let mut sum = Sum::default();
    sum.add(&packet[24..]);
    packet[26..28].copy_from_slice(&sum.checksum().to_be_bytes());
    frame.extend(packet);
    frame
}

#[test]
fn multicast_reaches_only_edges_that_reported_membership() {
    let group = Ipv4Addr::new(239, 1, 2, 3);
    let mac = MacAddress([1, 0, 0x5e, 1, 2, 3]);
    let mut fabric = with_hosts(Fabric::new(3, &ring()), 3);
    broadcasts_reach_each_host_once(&mut fabric);
    fabric.pass(5 * SECOND);
    let send = |fabric: &mut Fabric, n: u8| {
        let frame = fabric.udp_to(&fabric.hosts[0], mac, group, 4000, &[], &[n]);
        fabric.send_from(0, frame.clone());
        fabric.received(&frame)
    };
    assert_eq!(send(&mut fabric, 1), [0, 1, 1], "the group is not known");
    let report = igmp(&fabric, 2, 0x16, group);
    fabric.send_from(2, report.clone());
    assert_eq!(fabric.received(&report), [0, 0, 0], "no host gets the report of another");
    assert_eq!(send(&mut fabric, 2), [0, 0, 1]);
    // A new edge gets the group until it has had the time to answer a query.
    fabric.set_port(port(1, 6), false);
    fabric.set_port(port(1, 6), true);
    fabric.host(port(1, 6));
    fabric.pass(SECOND);
    assert_eq!(send(&mut fabric, 3), [0, 0, 1, 1]);
    fabric.pass(5 * SECOND);
    assert_eq!(send(&mut fabric, 4), [0, 0, 1, 0]);
    // The path follows the tree when a link fails.
    let (a, b) = ring()[2];
    fabric.set_cable(a, b, false);
    assert_eq!(send(&mut fabric, 5), [0, 0, 1, 0]);
    let leave = igmp(&fabric, 2, 0x17, group);
    fabric.send_from(2, leave);
    fabric.pass(4 * SECOND);
    assert_eq!(send(&mut fabric, 6), [0, 1, 1, 1], "the group is not known again");
}

#[test]
fn random_networks_deliver_each_frame_once_while_links_fail_and_return() {
    let mut random = takt_testkit::Random(5);
    let mut random = move |bound: usize| random.below(bound);
    for _ in 0..12 {
        let count = 2 + random(5) as u64;
        let mut used = std::collections::BTreeSet::new();
        let mut cables = Vec::new();
        for _ in 0..12 {
            let mut end = || port(1 + random(count as usize) as u64, 1 + random(4) as u32);
            let (a, b) = (end(), end());
            if a.dpid != b.dpid && !used.contains(&a) && !used.contains(&b) {
                used.extend([a, b]);
                cables.push((a, b));
            }
        }
        let mut fabric = with_hosts(Fabric::new(count, &cables), count);
        let mut down = std::collections::BTreeSet::new();
        for _ in 0..6 {
            if cables.is_empty() {
                break;
            }
            let cable = cables[random(cables.len())];
            let is_up = !down.insert(cable) && down.remove(&cable);
            fabric.set_cable(cable.0, cable.1, is_up);
            fabric.settle();
            let reached = reachable(&cables, &down, count);
            for (from, reached) in reached.iter().enumerate() {
                for round in 0..2 {
                    let frame = fabric.broadcast(from, &[round, from as u8]);
                    fabric.send_from(from, frame.clone());
                    let is_expected = |to: &usize| *to != from && reached.contains(to);
                    let expected: Vec<usize> =
                        (0..fabric.hosts.len()).map(|to| usize::from(is_expected(&to))).collect();
                    assert_eq!(fabric.received(&frame), expected, "from {from}, round {round}");
                }
            }
        }
    }
}

/// Returns for each host the hosts that it reaches over the cables that are up; host `n` is at
/// switch `n` + 1.
fn reachable(
    cables: &[(takt_sdn::PortRef, takt_sdn::PortRef)],
    down: &std::collections::BTreeSet<(takt_sdn::PortRef, takt_sdn::PortRef)>,
    count: u64,
) -> Vec<Vec<usize>> {
    let mut parts: Vec<usize> = (0..count as usize).collect();
    for (a, b) in cables.iter().filter(|cable| !down.contains(cable)) {
        let (a, b) = (parts[a.dpid as usize - 1], parts[b.dpid as usize - 1]);
        parts.iter_mut().filter(|part| **part == b).for_each(|part| *part = a);
    }
    (0..parts.len()).map(|from| (0..parts.len()).filter(|to| parts[*to] == parts[from]).collect()).collect()
}
