//! Pairs of participants behind simulated switches: admitted with entries in force, refused, tried again.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use takt_core::{Config as ParticipantConfig, Instant, Interface, Participant, ReaderHandle, Received, WriterHandle};
use takt_openflow::flow::FlowMod;
use takt_sdn::controller::{Config, Event};
use takt_sdn::discovery::Pair;
use takt_sdn::forwarding::rules::Kind;
use takt_sdn::frame::{ArpOperation, Frame, MacAddress, UdpFrame};
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_wire::qos::{DataReaderQos, DataWriterQos, Reliability, ReliabilityKind};
use takt_wire::{GuidPrefix, Locator, Timestamp};

use crate::endpoints::{reader_spec, writer_spec};
use crate::fabric::{Fabric, line, port, ring};

pub const NETWORK: &str = r#"
[[switch]]
datapath_id = "*"
model = "ovs-netdev"
rate_bps = 20_000_000
"#;
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
const METATRAFFIC: u16 = 7410;
const USER: u16 = 7411;
/// What every host marks its frames with.
const MARK: u8 = 46;
/// 12 of 20 Mbit/s.
const OFFER: &str = "rt.minsep=5ms;rt.maxsize=7000";
const REQUEST: &str = "rt.e2e=100ms";

/// Two hosts at the first switch, two at the last; each has a participant.
pub struct Site {
    pub fabric: Fabric,
    pub nodes: Vec<Participant>,
}

fn qos_reliability() -> Reliability {
    Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO }
}

impl Site {
    pub fn new(count: u64, cables: &[(takt_sdn::PortRef, takt_sdn::PortRef)], network: Option<&str>) -> Self {
        let parse = |text| NetworkFile::parse("network.toml", text, SwitchModel::built_in);
        let network = network.map(|text| parse(text).unwrap_or_else(|error| panic!("{error}")));
        let mut fabric = Fabric::with(Config { network, ..Config::default() }, count, cables);
        fabric.settle();
        for at in [port(1, 5), port(count, 5), port(1, 6), port(count, 6)] {
            fabric.host(at);
        }
        for host in 0..4 {
            fabric.send_from(host, fabric.arp(ArpOperation::Request, host, (host + 1) % 4));
        }
        let mut site = Self { fabric, nodes: Vec::new() };
        for node in 0..4 {
            let participant = site.participant(node);
            site.nodes.push(participant);
        }
        site.run(2_000);
        site
    }

    fn participant(&self, node: usize) -> Participant {
        let prefix = GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 1, node as u8 + 1]);
        let mut config = ParticipantConfig::new(0, prefix);
        let address = self.fabric.hosts[node].address;
        let locator = |port| vec![Locator::from(SocketAddr::from((address, port)))];
        let addresses = vec![(address.into(), 24)];
        config.interfaces = vec![Interface { name: "sim0".into(), addresses, mtu: 1500, loopback: false }];
        config.locators.metatraffic_unicast = locator(METATRAFFIC);
        config.locators.default_unicast = locator(USER);
        config.initial_peers = vec![Locator::udp_v4(GROUP, 7400)];
        let now = Instant(self.fabric.now.0);
        let mut participant = Participant::new(config, now).expect("the configuration is good");
        participant.set_wall_clock(now, Timestamp::from_nanos(1_700_000_000_000_000_000));
        participant
    }

    /// A marked datagram of a host.
    fn datagram(&self, node: usize, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
        let SocketAddr::V4(address) = to else { panic!("IPv4 alone is used") };
        let last = address.ip().octets()[3];
        let octets = if to.ip().is_multicast() { [1, 0, 0x5e, 0x7f, 0, 1] } else { [2, 0, 0, 0, 0, last] };
        let frame = UdpFrame {
            destination_mac: MacAddress(octets),
            source_mac: self.fabric.hosts[node].mac,
            tags: &[],
            source: (self.fabric.hosts[node].address, METATRAFFIC).into(),
            destination: to,
            hop_limit: 64,
            traffic_class: MARK << 2,
            payload,
        };
        frame.build().expect("it fits")
    }

    fn transmit(&mut self) -> bool {
        let mut buffer = vec![0; 65_507];
        let mut frames = Vec::new();
        for index in 0..self.nodes.len() {
            let now = Instant(self.fabric.now.0);
            while let Some(transmit) = self.nodes[index].poll_transmit_gathering(now, &mut buffer) {
                let len = transmit.len + transmit.payload.len();
                let payload = transmit.payload.to_vec();
                let (start, destinations) = (transmit.len, transmit.destinations.to_vec());
                buffer[start..len].copy_from_slice(&payload);
                for to in destinations.iter().filter_map(Locator::socket_addr) {
                    frames.push((index, self.datagram(index, to, &buffer[..len])));
                }
            }
        }
        let is_busy = !frames.is_empty();
        frames.into_iter().for_each(|(index, frame)| self.fabric.send_from(index, frame));
        is_busy
    }

    fn deliver(&mut self) -> bool {
        let mut is_busy = false;
        for node in 0..self.nodes.len() {
            let own = self.fabric.hosts[node].address;
            for bytes in std::mem::take(&mut self.fabric.hosts[node].inbox) {
                let frame = Frame::parse(&bytes).expect("a frame");
                let Some((packet, datagram)) = frame.udp() else { continue };
                let multicast = packet.destination().is_multicast();
                if multicast || packet.destination() == own {
                    let source = SocketAddr::new(packet.source(), datagram.source_port());
                    let received = Received { source: Locator::from(source), multicast };
                    let now = Instant(self.fabric.now.0);
                    self.nodes[node].handle_datagram(now, received, datagram.payload());
                    is_busy = true;
                }
            }
        }
        is_busy
    }

    pub fn run(&mut self, millis: u64) {
        for _ in 0..millis.div_ceil(10) {
            while self.transmit() | self.deliver() {}
            self.fabric.pass(Duration::from_millis(10));
            let now = Instant(self.fabric.now.0);
            self.nodes.iter_mut().for_each(|node| node.handle_timeout(now));
        }
        while self.transmit() | self.deliver() {}
    }

    fn writer(&mut self, node: usize, topic: &str, user_data: &str) -> WriterHandle {
        let qos = DataWriterQos { reliability: qos_reliability(), ..DataWriterQos::default() };
        let spec = writer_spec(topic, user_data, qos);
        self.nodes[node].create_writer(Instant(self.fabric.now.0), spec).expect("the writer is good")
    }

    fn reader(&mut self, node: usize, topic: &str, user_data: &str) -> ReaderHandle {
        let qos = DataReaderQos { reliability: qos_reliability(), ..DataReaderQos::default() };
        let spec = reader_spec(topic, user_data, qos);
        self.nodes[node].create_reader(Instant(self.fabric.now.0), spec).expect("the reader is good")
    }

    /// A writer at one node and a reader at the next, with contracts.
    pub fn pair(&mut self, node: usize, topic: &str, importance: i32) -> (Pair, WriterHandle, ReaderHandle) {
        let writer = self.writer(node, topic, &format!("{OFFER};rt.importance={importance}"));
        let reader = self.reader(node + 1, topic, REQUEST);
        let of_writer = self.nodes[node].writer_guid(writer).expect("it lives");
        let of_reader = self.nodes[node + 1].reader_guid(reader).expect("it lives");
        (Pair { writer: of_writer, reader: of_reader }, writer, reader)
    }

    pub fn is_matched(&mut self, node: usize, writer: WriterHandle, reader: ReaderHandle) -> bool {
        let readers = self.nodes[node].matched_subscriptions(writer).expect("the writer lives").len();
        let writers = self.nodes[node + 1].matched_publications(reader).expect("the reader lives").len();
        (readers, writers) == (1, 1)
    }

    pub fn is_admitted(&self, pair: Pair) -> bool {
        self.fabric.events.iter().any(|event| matches!(event, Event::Admitted { pair: own, .. } if *own == pair))
    }

    pub fn refusal(&self, pair: Pair) -> Option<&str> {
        self.fabric.events.iter().find_map(|event| match event {
            Event::Refused { pair: own, reason } if *own == pair => Some(reason.as_str()),
            _ => None,
        })
    }

    /// Entries of admitted flows.
    pub fn entries(&self, dpid: u64) -> Vec<FlowMod> {
        let rules = self.fabric.switches[&dpid].rules.iter().map(|rule| rule.flow.clone());
        rules.filter(|flow| flow.cookie == Kind::Admitted.cookie()).collect()
    }

    /// The DSCPs of datagrams to the user port that a host gets from another.
    pub fn classes(&mut self, from: usize, to: usize, count: usize) -> Vec<u8> {
        let frame = self.datagram(from, (self.fabric.hosts[to].address, USER).into(), &[0; 1000]);
        self.fabric.hosts[to].inbox.clear();
        (0..count).for_each(|_| self.fabric.send_from(from, frame.clone()));
        let got = std::mem::take(&mut self.fabric.hosts[to].inbox);
        let parsed = got.iter().map(|bytes| Frame::parse(bytes).expect("a frame"));
        let datagrams = parsed.filter(|frame| frame.udp().is_some_and(|(_, udp)| udp.destination_port() == USER));
        datagrams.map(|frame| frame.payload()[1] >> 2).collect()
    }
}

/// The DSCPs of the classes of `ovs-netdev`.
pub const CLASSES: [u8; 4] = [46, 34, 26, 18];

#[test]
fn frames_have_the_class_of_their_admission_and_none_without() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    assert_eq!(site.classes(0, 1, 3), [0, 0, 0], "a mark of the host's own is no admission");
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair), "{:?}", site.fabric.events);
    assert!(site.is_matched(0, writer, reader));
    let of_samples = site.classes(0, 1, 1);
    assert!(CLASSES.contains(&of_samples[0]), "{of_samples:?}");
    let of_answers = site.classes(1, 0, 1);
    assert!(CLASSES.contains(&of_answers[0]), "ACKNACKs have a class: {of_answers:?}");
    assert_eq!(site.classes(2, 1, 1), [0], "another host at the same switch");
    let burst = site.classes(0, 1, 1000).len();
    assert!((18..100).contains(&burst), "three samples of six datagrams pass, a flood does not: {burst}");
}

#[test]
fn meter_passes_at_once_what_the_jitter_of_the_contract_allows() {
    for (jitter, passes) in [("", 3..6), (";rt.jitter=50ms", 12..16)] {
        let mut site = Site::new(2, &line(2), Some(NETWORK));
        let writer = site.writer(0, "Joint", &format!("rt.minsep=5ms;rt.maxsize=1000{jitter}"));
        let reader = site.reader(1, "Joint", REQUEST);
        site.run(1_000);
        assert!(site.is_matched(0, writer, reader), "{:?}", site.fabric.events);
        let passed = site.classes(0, 1, 100).len();
        assert!(passes.contains(&passed), "{jitter:?}: {passed}");
    }
}

/// Otherwise announcements of endpoints would be answered before they are intercepted.
#[test]
fn participant_is_announced_once_every_switch_diverts_its_discovery() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    site.nodes.truncate(0);
    site.fabric.stalled.insert(2);
    let address = site.fabric.hosts[0].address;
    let prefix = GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1]);
    let mut config = ParticipantConfig::new(0, prefix);
    let addresses = vec![(address.into(), 24)];
    config.interfaces = vec![Interface { name: "sim0".into(), addresses, mtu: 1500, loopback: false }];
    // Other ports than before: the switches have no entries for them.
    config.locators.metatraffic_unicast = vec![Locator::from(SocketAddr::from((address, 7420)))];
    config.locators.default_unicast = vec![Locator::from(SocketAddr::from((address, 7421)))];
    config.initial_peers = vec![Locator::udp_v4(GROUP, 7400)];
    site.nodes.push(Participant::new(config, Instant(site.fabric.now.0)).expect("the configuration is good"));
    site.fabric.hosts[2].inbox.clear();
    let announced = |site: &Site| {
        let frames = site.fabric.hosts[2].inbox.iter().map(|bytes| Frame::parse(bytes).expect("a frame"));
        frames.filter(|frame| frame.udp().is_some_and(|(_, udp)| udp.destination_port() == 7400)).count()
    };
    site.run(200);
    assert_eq!(announced(&site), 0, "the second switch has not confirmed");
    site.fabric.stalled.clear();
    site.run(200);
    assert!(announced(&site) > 0);
}

#[test]
fn pair_is_released_when_every_switch_has_its_entries_and_not_before() {
    let mut site = Site::new(3, &line(3), Some(NETWORK));
    site.fabric.stalled.insert(2);
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(!site.is_admitted(pair));
    assert!(!site.is_matched(0, writer, reader));
    assert_eq!(site.entries(1), [], "the first switch comes last");
    site.fabric.stalled.clear();
    site.run(1_000);
    assert!(site.is_admitted(pair));
    assert!(site.is_matched(0, writer, reader));
    assert_eq!([1, 2, 3].map(|dpid| site.entries(dpid).len()), [2, 2, 2], "samples and ACKNACKs");
}

#[test]
fn pair_that_does_not_fit_is_refused_until_there_is_room() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (first, first_writer, first_reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(first));
    let before = site.entries(1);
    let (second, second_writer, second_reader) = site.pair(2, "Lidar", 0);
    site.run(1_000);
    let reason = site.refusal(second).expect("it does not fit").to_owned();
    assert!(reason.contains("of port 1 of switch 0000000000000001") && reason.contains("would fit: "), "{reason}");
    assert!(!site.is_matched(2, second_writer, second_reader));
    assert_eq!(site.entries(1), before, "the first pair keeps what it has");
    assert!(site.is_matched(0, first_writer, first_reader));
    let now = Instant(site.fabric.now.0);
    site.nodes[0].delete_writer(now, first_writer).expect("it lives");
    site.run(1_000);
    assert!(site.is_admitted(second));
    assert!(site.is_matched(2, second_writer, second_reader));
    assert!(!site.entries(1).contains(&before[0]), "the entries of the first pair are gone");
}

#[test]
fn pair_whose_acknacks_do_not_fit_is_refused_once() {
    // An ACKNACK may take as long as a heartbeat period. At 20 Mbit/s two frames of others take longer.
    let network = format!("heartbeat_period_ns = 1_000_000\n{NETWORK}");
    let mut site = Site::new(2, &line(2), Some(&network));
    let writer = site.writer(0, "Joint", "rt.minsep=5ms;rt.maxsize=100");
    let reader = site.reader(1, "Joint", REQUEST);
    site.run(1_000);
    let refusals = site.fabric.events.iter().filter(|event| matches!(event, Event::Refused { .. })).count();
    assert_eq!(refusals, 1, "{:?}", site.fabric.events);
    assert!(!site.is_matched(0, writer, reader));
    assert_eq!(site.entries(1), [], "the share of its samples is free again");
}

#[test]
fn refused_pairs_are_tried_again_by_importance() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (first, first_writer, _) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(first));
    let (less, ..) = site.pair(2, "Lidar", 1);
    let (more, ..) = site.pair(2, "Radar", 7);
    site.run(1_000);
    assert!(site.refusal(less).is_some() && site.refusal(more).is_some());
    let now = Instant(site.fabric.now.0);
    site.nodes[0].delete_writer(now, first_writer).expect("it lives");
    site.run(1_000);
    assert!(site.is_admitted(more));
    assert!(!site.is_admitted(less), "there is room for one");
}

#[test]
fn entry_that_a_switch_refuses_refuses_the_pair() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let room = site.fabric.switch(2).rules.len();
    site.fabric.switch(2).room = room;
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert_eq!(site.refusal(pair), Some("switch 0000000000000002 refuses a flow entry"));
    assert!(!site.is_matched(0, writer, reader));
    assert_eq!(site.entries(1), []);
}

#[test]
fn failed_link_gives_the_flow_another_way_in_its_class() {
    let mut site = Site::new(3, &ring(), Some(NETWORK));
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair));
    assert_eq!(site.entries(2), [], "the short way does not pass switch 2");
    site.fabric.set_cable(port(1, 2), port(3, 1), false);
    site.run(1_000);
    assert_eq!(site.entries(2).len(), 2);
    assert!(CLASSES.contains(&site.classes(0, 1, 1)[0]));
    assert!(site.is_matched(0, writer, reader));
    site.fabric.set_cable(port(1, 1), port(2, 2), false);
    site.run(1_000);
    assert!(site.refusal(pair).expect("no way is left").contains("no longer served"));
    assert_eq!(site.entries(2), []);
}

#[test]
fn switch_that_comes_back_gets_the_entries_again() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (pair, ..) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair));
    let before = site.entries(1);
    site.fabric.disconnect(1);
    site.fabric.switch(1).rules.clear();
    site.fabric.switch(1).meters.clear();
    site.fabric.connect(1);
    site.run(1_000);
    assert_eq!(site.entries(1).len(), before.len());
    assert!(CLASSES.contains(&site.classes(0, 1, 1)[0]));
}

#[test]
fn pair_with_contract_matches_without_a_description_of_the_network() {
    let mut site = Site::new(2, &line(2), None);
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(!site.is_admitted(pair));
    assert!(site.is_matched(0, writer, reader));
    assert_eq!(site.entries(1), []);
    assert_eq!(site.classes(0, 1, 1), [MARK], "marks pass as on plain Ethernet");
}
