//! Tests of attacks by hosts and switches: forged LLDP, floods, spoofing, fragments, forged
//! switches.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use takt_sdn::controller::{Config, Event};
use takt_sdn::devices;
use takt_sdn::frame::{ArpOperation, Frame, MacAddress};
use takt_sdn::topology::{self, Key, PortDescription, Refusal, Role, Topology};

use crate::fabric::{Fabric, line, port, ring};

const SECOND: Duration = Duration::from_secs(1);

fn with_hosts(mut fabric: Fabric) -> Fabric {
    for dpid in 1..=3 {
        fabric.host(port(dpid, 5));
    }
    fabric.settle();
    fabric
}

#[test]
fn forged_lldp_makes_no_link_and_is_reported() {
    let mut fabric = with_hosts(Fabric::new(3, &line(3)));
    let mut forger = Topology::new(topology::Config::default(), Key([1; 16]));
    let (name, address) = (String::from("p6"), MacAddress([2; 6]));
    forger.connect_switch(fabric.now, 3, vec![PortDescription { number: 6, name, address, is_up: true }]);
    forger.handle_timeout(fabric.now);
    let (_, forged) = forger.poll_probe().expect("a probe");
    let links = fabric.links();
    fabric.send(port(1, 5), forged);
    assert_eq!((fabric.links(), fabric.controller.topology().role(port(1, 5))), (links, Role::Edge));
    let at = port(1, 5);
    let refused = Event::Topology(topology::Event::ProbeRefused { at, from: None, why: Refusal::Forged });
    assert!(fabric.events.contains(&refused));
}

#[test]
fn flood_of_lldp_from_a_host_breaks_no_link() {
    let mut fabric = with_hosts(Fabric::new(3, &ring()));
    let octets =
        [&[1, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 9, 0x88, 0xcc][..], &[2, 2, 4, 1, 4, 2, 5, 1, 6, 2, 0, 9]];
    for _ in 0..8 {
        for _ in 0..2000 {
            fabric.send(port(1, 5), octets.concat());
        }
        fabric.pass(SECOND);
    }
    assert_eq!(fabric.links().len(), 3);
    assert!(fabric.controller.topology().counters().foreign <= 8 * 1000, "the meter drops most");
}

#[test]
fn flood_of_unknown_sources_is_limited_by_the_meter_and_by_the_bound_of_hosts() {
    let devices = devices::Config { hosts: 50, hosts_of_port: 20, ..devices::Config::default() };
    let mut fabric = with_hosts(Fabric::with(Config { devices, ..Config::default() }, 3, &line(3)));
    let before = fabric.switch(1).packet_ins;
    for n in 0..3000_u32 {
        let [_, _, a, b] = n.to_be_bytes();
        let mut frame = fabric.broadcast(0, b"flood");
        frame[6..12].copy_from_slice(&[2, 9, 9, 9, a, b]);
        fabric.send(port(1, 5), frame);
    }
    let sent = fabric.switch(1).packet_ins - before;
    assert!(sent <= 1000 + 20, "{sent}");
    assert_eq!(fabric.controller.devices().iter().count(), 20);
    assert!(fabric.controller.counters().refused > 900);
    // Hosts at other ports are served as before.
    let hello = fabric.broadcast(1, b"hello");
    fabric.hosts.iter_mut().for_each(|host| host.inbox.clear());
    fabric.send_from(1, hello.clone());
    assert_eq!(fabric.received(&hello), [1, 0, 1]);
}

#[test]
fn flood_of_one_host_delays_no_packets_of_others_at_its_switch_to_the_controller() {
    let mut fabric = with_hosts(Fabric::new(3, &line(3)));
    let other = fabric.host(port(1, 6));
    let group = MacAddress([1, 0, 0x5e, 0x7f, 0, 1]);
    let announce = |fabric: &Fabric, host: usize, octet| {
        fabric.udp_to(&fabric.hosts[host], group, Ipv4Addr::new(239, 255, 0, 1), 7400, &[], &[octet])
    };
    let flood = announce(&fabric, 0, 1);
    (0..5000).for_each(|_| fabric.send(port(1, 5), flood.clone()));
    let handled = fabric.controller.counters().discovery;
    assert!(handled <= 1000, "{handled} of 5000");
    let (hello, arp_request) = (announce(&fabric, other, 2), fabric.arp(ArpOperation::Request, other, 1));
    fabric.send_from(other, hello.clone());
    assert_eq!(fabric.controller.counters().discovery, handled + 1);
    assert_eq!(fabric.received(&hello), [1, 1, 1, 0]);
    fabric.send_from(other, arp_request.clone());
    assert!(fabric.received(&arp_request).iter().sum::<usize>() > 0, "ARP also arrives");
}

#[test]
fn arp_for_the_address_of_another_host_is_dropped_and_reported() {
    let mut fabric = with_hosts(Fabric::new(3, &line(3)));
    for host in [0, 1] {
        let hello = fabric.arp(ArpOperation::Request, host, 2);
        fabric.send_from(host, hello);
    }
    let address = fabric.hosts[0].address;
    fabric.hosts[1].address = address;
    let claim = fabric.arp(ArpOperation::Reply, 1, 2);
    fabric.send_from(1, claim.clone());
    assert_eq!(fabric.received(&claim), [0, 0, 0]);
    let is_conflict =
        |event: &Event| matches!(event, Event::AddressConflict { address: of, .. } if *of == IpAddr::V4(address));
    assert!(fabric.events.iter().any(is_conflict));
    // A packet whose sender differs from the source of the frame is dropped, too.
    let mut lie = fabric.arp(ArpOperation::Reply, 2, 1);
    lie[6..12].copy_from_slice(&fabric.hosts[1].mac.0);
    fabric.send_from(1, lie.clone());
    assert_eq!(fabric.received(&lie), [0, 0, 0]);
}

#[test]
fn fragments_of_udp_are_dropped_at_the_edge() {
    let mut fabric = with_hosts(Fabric::new(3, &line(3)));
    let whole = fabric.udp(0, 1, 4000, b"a whole datagram");
    for (word, expected) in [([0x20, 0], 0), ([0, 3], 0), ([0x40, 0], 2)] {
        let mut frame = whole.clone();
        frame[20..22].copy_from_slice(&word);
        frame[24..26].fill(0);
        let sum =
            frame[14..34].chunks(2).fold(0_u32, |sum, word| sum + u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        assert!(Frame::parse(&frame).expect("a frame").network().is_ok());
        fabric.send_from(0, frame.clone());
        assert_eq!(fabric.received(&frame).iter().sum::<usize>(), expected, "{word:?}");
    }
}

#[test]
fn every_discovery_message_passes_the_controller() {
    let mut fabric = with_hosts(Fabric::new(3, &ring()));
    let group = MacAddress([1, 0, 0x5e, 0x7f, 0, 1]);
    for n in 1..=5_u64 {
        let frame = fabric.udp_to(&fabric.hosts[0], group, Ipv4Addr::new(239, 255, 0, 1), 7400, &[], &[n as u8]);
        let crossings = fabric.crossings;
        fabric.send_from(0, frame.clone());
        assert_eq!(fabric.received(&frame), [0, 1, 1]);
        assert_eq!(fabric.controller.counters().discovery, n);
        assert_eq!(fabric.crossings, crossings, "the frame crosses no link");
    }
}

#[test]
fn second_switch_with_a_datapath_id_in_use_is_refused() {
    let mut fabric = with_hosts(Fabric::new(3, &line(3)));
    let mut forged = crate::switch::SimulatedSwitch::new(2, 8);
    let id = fabric.controller.connect(fabric.now).expect("the controller accepts the connection");
    forged.connect(fabric.now);
    while fabric.controller.is_open(id) {
        let (consumed, _) = forged.handle_bytes(fabric.now, fabric.controller.poll_transmit(id));
        fabric.controller.transmitted(id, consumed);
        let octets = forged.poll_transmit().to_vec();
        forged.transmitted(fabric.controller.handle_bytes(fabric.now, id, &octets));
    }
    fabric.run();
    assert!(fabric.events.iter().any(|event| matches!(event, Event::ConnectionRefused { .. })));
    assert!(fabric.controller.topology().is_connected(2));
    let hello = fabric.broadcast(0, b"hello");
    fabric.send_from(0, hello.clone());
    assert_eq!(fabric.received(&hello), [0, 1, 1]);
}

#[test]
fn connections_are_bounded() {
    let config = Config { connections: 2, ..Config::default() };
    let mut fabric = Fabric::with(config, 2, &[]);
    assert_eq!(fabric.controller.connect(fabric.now), None);
    fabric.disconnect(1);
    fabric.connect(1);
}
