//! Tests of attacks by one host on an admitted pair of others, which keeps its entries, its class
//! and its share.

use std::net::Ipv4Addr;
use std::time::Duration;

use takt_sdn::discovery::Pair;
use takt_sdn::frame::{ArpOperation, MacAddress};
use takt_sdn::topology::{self, Key, PortDescription, Topology};
use takt_wire::GuidPrefix;

use crate::admission::{CLASSES, NETWORK, Site};
use crate::fabric::{line, port};

/// User port of the reader.
const USER: u16 = 7411;
/// Host of the attacker, at the first switch like the writer.
const ATTACKER: usize = 2;

/// Two switches with an admitted pair from host 0 to host 1.
struct Target {
    site: Site,
    pair: Pair,
    entries: [usize; 2],
}

impl Target {
    fn new() -> Self {
        let mut site = Site::new(2, &line(2), Some(NETWORK));
        let (pair, ..) = site.pair(0, "Camera", 0);
        site.run(1_000);
        assert!(site.is_admitted(pair));
        let entries = [1, 2].map(|dpid| site.entries(dpid).len());
        Self { site, pair, entries }
    }

    /// Sends frames from the attacker's port, and runs until rules may have expired.
    fn attack(&mut self, frames: impl IntoIterator<Item = Vec<u8>>) {
        for frame in frames {
            self.site.fabric.send(port(1, 6), frame);
        }
    }

    /// Checks that the pair has its proved properties: entries, class, and the rate of its meter.
    fn holds(&mut self, attack: &str) {
        self.site.run(100);
        assert_eq!([1, 2].map(|dpid| self.site.entries(dpid).len()), self.entries, "{attack}");
        let classes = self.site.classes(0, 1, 6);
        assert_eq!(classes.len(), 6, "{attack}: a sample of six datagrams passes");
        assert!(classes.iter().all(|class| CLASSES.contains(class)), "{attack}: {classes:?}");
        assert_eq!(self.site.refusal(self.pair), None, "{attack}");
        self.site.run(1_000);
    }
}

fn forged_probe(target: &Target) -> Vec<u8> {
    let mut forger = Topology::new(topology::Config::default(), Key([1; 16]));
    let (name, address) = (String::from("p5"), MacAddress([2; 6]));
    let now = target.site.fabric.now;
    forger.connect_switch(now, 2, vec![PortDescription { number: 5, name, address, is_up: true }]);
    forger.handle_timeout(now);
    forger.poll_probe().expect("a probe").1
}

#[test]
fn forged_lldp_and_lldp_floods_do_not_affect_an_admitted_pair() {
    let mut target = Target::new();
    let forged = forged_probe(&target);
    target.attack(std::iter::repeat_n(forged, 3000));
    target.holds("forged LLDP");
    assert_eq!(target.site.fabric.links().len(), 1);
}

#[test]
fn floods_of_packets_to_the_controller_do_not_affect_an_admitted_pair() {
    let mut target = Target::new();
    let before = target.site.fabric.switch(1).packet_ins;
    let unknown = |n: u32| {
        let [_, _, a, b] = n.to_be_bytes();
        let mut frame = target.site.fabric.broadcast(ATTACKER, b"flood");
        frame[6..12].copy_from_slice(&[2, 9, 9, 9, a, b]);
        frame
    };
    let unknown: Vec<_> = (0..5000).map(unknown).collect();
    target.attack(unknown);
    target.holds("unknown sources");
    let fabric = &target.site.fabric;
    let group = MacAddress([1, 0, 0x5e, 0x7f, 0, 1]);
    let discovery = fabric.udp_to(&fabric.hosts[ATTACKER], group, Ipv4Addr::new(239, 255, 0, 1), 7400, &[], b"RTPS");
    let arp = fabric.arp(ArpOperation::Request, ATTACKER, 0);
    target.attack(std::iter::repeat_n(discovery, 8000).chain(std::iter::repeat_n(arp, 5000)));
    target.holds("discovery and ARP");
    let sent = target.site.fabric.switch(1).packet_ins - before;
    // A meter passes its rate and its burst within a second.
    assert!(sent < 2 * (1000 + 2000 + 500) + 500, "{sent} of 18,000");
}

#[test]
fn full_tables_do_not_affect_an_admitted_pair() {
    let mut target = Target::new();
    let capacity = target.site.fabric.switch(1).rules.len() + 5;
    target.site.fabric.switch(1).room = capacity;
    let unknown = |n: u8| {
        let mut frame = target.site.fabric.udp(ATTACKER, 1, 4000, b"another host");
        frame[6..12].copy_from_slice(&[2, 9, 9, 9, 9, n]);
        frame
    };
    let unknown: Vec<_> = (0..100).map(unknown).collect();
    target.attack(unknown);
    target.holds("a full table");
    assert!(target.site.fabric.switch(1).rules.len() <= capacity);
}

#[test]
fn spoofed_frames_of_an_admitted_writer_get_neither_its_class_nor_its_meter() {
    let mut target = Target::new();
    let spoofed = target.site.fabric.udp(0, 1, USER, b"in its name");
    target.site.fabric.hosts[1].inbox.clear();
    target.attack(std::iter::repeat_n(spoofed.clone(), 1000));
    assert!(target.site.fabric.hosts[1].inbox.iter().all(|frame| !frame.ends_with(b"in its name")));
    target.holds("samples of another host");
    let mut claim = target.site.fabric.arp(ArpOperation::Reply, ATTACKER, 1);
    // The address of the writer, claimed by the attacker.
    claim[28..32].copy_from_slice(&target.site.fabric.hosts[0].address.octets());
    target.attack([claim]);
    target.holds("ARP in its name");
}

/// Builds RTPS messages in the name of the writer's participant: disposals by SPDP and by SEDP.
fn forged_disposes() -> Vec<Vec<u8>> {
    let prefix = GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    let disposal = |reader: [u8; 4], writer: [u8; 4], entity: [u8; 4]| {
        let mut message = b"RTPS\x02\x05\x01\x7a".to_vec();
        message.extend(prefix.0);
        // DATA with inline QoS and a key; PID_STATUS_INFO: disposed and unregistered.
        let mut data = vec![0, 0, 16, 0];
        data.extend(reader);
        data.extend(writer);
        data.extend([0, 0, 0, 0, 99, 0, 0, 0]);
        data.extend([0x71, 0, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0]);
        data.extend([0, 3, 0, 0, 0x5a, 0, 16, 0]);
        data.extend(prefix.0);
        data.extend(entity);
        data.extend([1, 0, 0, 0]);
        message.extend([0x15, 0x0b]);
        message.extend((data.len() as u16).to_le_bytes());
        message.extend(data);
        message
    };
    let participant = disposal([0, 0, 0, 0], [0, 1, 0, 0xc2], [0, 0, 1, 0xc1]);
    let writer = disposal([0, 0, 3, 0xc7], [0, 0, 3, 0xc2], [0, 0, 1, 3]);
    vec![participant, writer]
}

#[test]
fn forged_discovery_of_an_admitted_writer_changes_nothing() {
    let mut target = Target::new();
    let fabric = &target.site.fabric;
    let (group, mac) = (Ipv4Addr::new(239, 255, 0, 1), MacAddress([1, 0, 0x5e, 0x7f, 0, 1]));
    let to_group = |message: &Vec<u8>| fabric.udp_to(&fabric.hosts[ATTACKER], mac, group, 7400, &[], message);
    let to_reader = |message: &Vec<u8>| fabric.udp(ATTACKER, 1, 7410, message);
    let messages = forged_disposes();
    let frames: Vec<_> = messages.iter().flat_map(|message| [to_group(message), to_reader(message)]).collect();
    let before = target.site.fabric.controller.discovery().counters().forged;
    target.attack(frames);
    target.holds("farewells in its name");
    assert!(target.site.fabric.controller.discovery().counters().forged >= before + 2);
}

#[test]
fn admitted_writer_beyond_its_contract_does_not_affect_another_pair() {
    let mut target = Target::new();
    // The share of the first pair leaves room for this one.
    let writer = target.site.writer(ATTACKER, "Joint", "rt.minsep=20ms;rt.maxsize=1000");
    let reader = target.site.reader(ATTACKER + 1, "Joint", "rt.e2e=100ms");
    target.site.run(1_000);
    assert!(target.site.is_matched(ATTACKER, writer, reader), "{:?}", target.site.fabric.events);
    target.entries = [1, 2].map(|dpid| target.site.entries(dpid).len());
    let delivered = target.site.classes(ATTACKER, ATTACKER + 1, 5000).len();
    assert!(delivered < 20, "its own meter drops {delivered} of 5,000");
    target.holds("a babbling publisher");
    let span = Duration::from_secs(20);
    target.site.run(u64::try_from(span.as_millis()).expect("short"));
    target.holds("a babbling publisher, later");
}
