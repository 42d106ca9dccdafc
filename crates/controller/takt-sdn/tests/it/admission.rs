//! Tests of admission with participants behind simulated switches: admitted with entries in force,
//! refused, tried again.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use takt_core::{
    ChangeKind, Config as ParticipantConfig, Instant, Interface, KeyHash, NewChange, Participant, ReaderHandle,
    Received, WriterHandle,
};
use takt_openflow::flow::FlowMod;
use takt_openflow::meter::Band;
use takt_sdn::controller::{Config, Event};
use takt_sdn::discovery::Pair;
use takt_sdn::forwarding::rules::Kind;
use takt_sdn::frame::{ArpOperation, Frame, MacAddress, UdpFrame, VlanTag};
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_sdn::view::{Measured, Place};
use takt_wire::discovery::{HostStage, HostStages};
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
/// DSCP of all frames of hosts.
const MARK: u8 = 46;
/// Initial wall-clock time of the nodes.
const WALL_CLOCK: i64 = 1_700_000_000_000_000_000;
/// Contract that uses 12 of 20 Mbit/s.
const OFFER: &str = "rt.minsep=5ms;rt.maxsize=7000";
const REQUEST: &str = "rt.e2e=100ms";

/// Two hosts at the first switch and two at the last, each with a participant.
pub struct Site {
    pub fabric: Fabric,
    pub nodes: Vec<Participant>,
    /// Time when the clocks of the nodes were set.
    clocks_set: Instant,
    /// Multicast locators that nodes announce for samples.
    user_multicast: Vec<Locator>,
    /// VLAN tags of the frames of nodes.
    pub tags: Vec<VlanTag>,
    /// Node that sends untagged frames nevertheless.
    pub untagged: Option<usize>,
}

fn qos_reliability() -> Reliability {
    Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO }
}

impl Site {
    pub fn new(count: u64, cables: &[(takt_sdn::PortRef, takt_sdn::PortRef)], network: Option<&str>) -> Self {
        let parse = |text| NetworkFile::parse("network.toml", text, SwitchModel::built_in);
        let network = network.map(|text| parse(text).unwrap_or_else(|error| panic!("{error}")));
        Self::with(Config { network, ..Config::default() }, count, cables)
    }

    pub fn with(config: Config, count: u64, cables: &[(takt_sdn::PortRef, takt_sdn::PortRef)]) -> Self {
        Self::with_groups(config, count, cables, Vec::new())
    }

    /// Creates a site whose nodes announce these groups for samples.
    pub fn with_groups(
        config: Config,
        count: u64,
        cables: &[(takt_sdn::PortRef, takt_sdn::PortRef)],
        user_multicast: Vec<Locator>,
    ) -> Self {
        let mut fabric = Fabric::with(config, count, cables);
        fabric.settle();
        for at in [port(1, 5), port(count, 5), port(1, 6), port(count, 6)] {
            fabric.host(at);
        }
        for host in 0..4 {
            fabric.send_from(host, fabric.arp(ArpOperation::Request, host, (host + 1) % 4));
        }
        let clocks_set = Instant(fabric.now.0);
        let mut site = Self { fabric, nodes: Vec::new(), clocks_set, user_multicast, tags: Vec::new(), untagged: None };
        for node in 0..4 {
            let participant = site.participant(node);
            site.nodes.push(participant);
        }
        site.run(2_000);
        site
    }

    pub fn participant(&self, node: usize) -> Participant {
        self.participant_of_run(1, node)
    }

    /// Creates a participant; participants of different runs have different GUID prefixes.
    pub fn participant_of_run(&self, run: u8, node: usize) -> Participant {
        let prefix = GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, run, node as u8 + 1]);
        let mut config = ParticipantConfig::new(0, prefix);
        let address = self.fabric.hosts[node].address;
        let locator = |port| vec![Locator::from(SocketAddr::from((address, port)))];
        let addresses = vec![(address.into(), 24)];
        config.interfaces = vec![Interface { name: "sim0".into(), addresses, mtu: 1500, loopback: false }];
        config.locators.metatraffic_unicast = locator(METATRAFFIC);
        config.locators.default_unicast = locator(USER);
        config.locators.default_multicast.clone_from(&self.user_multicast);
        config.initial_peers = vec![Locator::udp_v4(GROUP, 7400)];
        let now = Instant(self.fabric.now.0);
        let mut participant = Participant::new(config, now).expect("the configuration is valid");
        participant.set_wall_clock(now, Timestamp::from_nanos(WALL_CLOCK));
        participant
    }

    /// Builds a datagram of a host with the DSCP.
    pub fn datagram(&self, node: usize, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
        let SocketAddr::V4(address) = to else { panic!("only IPv4 is used") };
        let last = address.ip().octets()[3];
        let octets = if to.ip().is_multicast() { [1, 0, 0x5e, 0x7f, 0, 1] } else { [2, 0, 0, 0, 0, last] };
        let frame = UdpFrame {
            destination_mac: MacAddress(octets),
            source_mac: self.fabric.hosts[node].mac,
            tags: if self.untagged == Some(node) { &[] } else { &self.tags },
            source: (self.fabric.hosts[node].address, METATRAFFIC).into(),
            destination: to,
            hop_limit: 64,
            traffic_class: MARK << 2,
            payload,
        };
        frame.build().expect("the frame is valid")
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

    pub fn writer(&mut self, node: usize, topic: &str, user_data: &str) -> WriterHandle {
        let qos = DataWriterQos { reliability: qos_reliability(), ..DataWriterQos::default() };
        let spec = writer_spec(topic, user_data, qos);
        self.nodes[node].create_writer(Instant(self.fabric.now.0), spec).expect("the writer can be created")
    }

    pub fn reader(&mut self, node: usize, topic: &str, user_data: &str) -> ReaderHandle {
        let qos = DataReaderQos { reliability: qos_reliability(), ..DataReaderQos::default() };
        let spec = reader_spec(topic, user_data, qos);
        self.nodes[node].create_reader(Instant(self.fabric.now.0), spec).expect("the reader can be created")
    }

    /// Creates a writer at one node and a reader at the next, with contracts.
    pub fn pair(&mut self, node: usize, topic: &str, importance: i32) -> (Pair, WriterHandle, ReaderHandle) {
        let writer = self.writer(node, topic, &format!("{OFFER};rt.importance={importance}"));
        let reader = self.reader(node + 1, topic, REQUEST);
        let of_writer = self.nodes[node].writer_guid(writer).expect("the endpoint exists");
        let of_reader = self.nodes[node + 1].reader_guid(reader).expect("the endpoint exists");
        (Pair { writer: of_writer, reader: of_reader }, writer, reader)
    }

    pub fn is_matched(&mut self, node: usize, writer: WriterHandle, reader: ReaderHandle) -> bool {
        let readers = self.nodes[node].matched_subscriptions(writer).expect("the writer exists").len();
        let writers = self.nodes[node + 1].matched_publications(reader).expect("the reader exists").len();
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

    /// Returns the entries of admitted flows.
    pub fn entries(&self, dpid: u64) -> Vec<FlowMod> {
        let rules = self.fabric.switches[&dpid].rules.iter().map(|rule| rule.flow.clone());
        rules.filter(|flow| flow.cookie == Kind::Admitted.cookie()).collect()
    }

    /// Returns the DSCPs of datagrams to the user port that a host gets from another.
    pub fn classes(&mut self, from: usize, to: usize, count: usize) -> Vec<u8> {
        self.classes_of(from, to, count, 1000)
    }

    /// Returns the DSCPs of datagrams of this length.
    pub fn classes_of(&mut self, from: usize, to: usize, count: usize, len: usize) -> Vec<u8> {
        let frame = self.datagram(from, (self.fabric.hosts[to].address, USER).into(), &vec![0; len]);
        self.fabric.hosts[to].inbox.clear();
        (0..count).for_each(|_| self.fabric.send_from(from, frame.clone()));
        let got = std::mem::take(&mut self.fabric.hosts[to].inbox);
        let parsed = got.iter().map(|bytes| Frame::parse(bytes).expect("a frame"));
        let datagrams = parsed.filter(|frame| frame.udp().is_some_and(|(_, udp)| udp.destination_port() == USER));
        datagrams.map(|frame| frame.payload()[1] >> 2).collect()
    }
}

/// DSCPs of the classes of `ovs-netdev`.
pub const CLASSES: [u8; 4] = [46, 34, 26, 18];

#[test]
fn frames_have_the_class_of_their_admission_and_none_without() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    assert_eq!(site.classes(0, 1, 3), [0, 0, 0], "a DSCP set by the host is no admission");
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair), "{:?}", site.fabric.events);
    assert!(site.is_matched(0, writer, reader));
    let of_samples = site.classes(0, 1, 1);
    assert!(CLASSES.contains(&of_samples[0]), "{of_samples:?}");
    let of_acknacks = site.classes(1, 0, 1);
    assert!(CLASSES.contains(&of_acknacks[0]), "ACKNACKs have a class: {of_acknacks:?}");
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
        let delivered = site.classes(0, 1, 100).len();
        assert!(passes.contains(&delivered), "{jitter:?}: {delivered}");
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
    // The switches have no entries for these ports, which differ from before.
    config.locators.metatraffic_unicast = vec![Locator::from(SocketAddr::from((address, 7420)))];
    config.locators.default_unicast = vec![Locator::from(SocketAddr::from((address, 7421)))];
    config.initial_peers = vec![Locator::udp_v4(GROUP, 7400)];
    site.nodes.push(Participant::new(config, Instant(site.fabric.now.0)).expect("the configuration is valid"));
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
fn pair_that_does_not_fit_is_refused_until_another_is_removed() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (first, first_writer, first_reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(first));
    let before = site.entries(1);
    let (second, second_writer, second_reader) = site.pair(2, "Lidar", 0);
    site.run(1_000);
    let reason = site.refusal(second).expect("the pair is refused").to_owned();
    assert!(reason.contains("of port 1 of switch 0000000000000001") && reason.contains("would fit: "), "{reason}");
    assert!(!site.is_matched(2, second_writer, second_reader));
    for node in [2, 3] {
        let texts: Vec<String> = site.nodes[node].refusals().map(|refusal| refusal.reason.to_string()).collect();
        let [text] = &texts[..] else { panic!("one refusal: {texts:?}") };
        assert!(text.contains("of port 1 of switch 0000000000000001"), "the application gets the binding hop: {text}");
    }
    assert_eq!(site.entries(1), before, "the first pair keeps what it has");
    assert!(site.is_matched(0, first_writer, first_reader));
    let now = Instant(site.fabric.now.0);
    site.nodes[0].delete_writer(now, first_writer).expect("the endpoint exists");
    site.run(1_000);
    assert!(site.is_admitted(second));
    assert!(site.is_matched(2, second_writer, second_reader));
    assert!([2, 3].iter().all(|node| site.nodes[*node].refusals().count() == 0), "lifted at the application, too");
    assert!(!site.entries(1).contains(&before[0]), "the entries of the first pair are gone");
}

/// Returns host stages with this bound in microseconds, for samples with at most this jitter in
/// microseconds.
fn stages(name: &str, jitter_us: u64, bound_us: u64) -> HostStages {
    let stages = vec![HostStage::new(name, bound_us * 1_000)];
    HostStages { period_ns: 5_000_000, jitter_ns: jitter_us * 1_000, flow: "joint".into(), stages }
}

impl Site {
    /// Creates a pair whose ends announce stages of their hosts.
    fn pair_with_stages(&mut self, limit_ms: u64, writer: HostStages, reader: HostStages) -> (Pair, WriterHandle) {
        let now = Instant(self.fabric.now.0);
        let spec = writer_spec("Joint", "rt.minsep=5ms;rt.maxsize=1000", DataWriterQos::default());
        let of_writer = self.nodes[0].prepare_writer(now, spec).expect("the writer can be created");
        self.nodes[0].set_writer_host_stages(of_writer, Some(writer)).expect("the endpoint exists");
        self.nodes[0].enable_writer(now, of_writer).expect("the participant is enabled");
        let qos = DataReaderQos::default();
        let spec = reader_spec("Joint", &format!("rt.e2e_ns={}", limit_ms * 1_000_000), qos);
        let of_reader = self.nodes[1].prepare_reader(spec).expect("the reader can be created");
        self.nodes[1].set_reader_host_stages(of_reader, Some(reader)).expect("the endpoint exists");
        self.nodes[1].enable_reader(now, of_reader).expect("the participant is enabled");
        self.run(1_000);
        let writer = self.nodes[0].writer_guid(of_writer).expect("the endpoint exists");
        (Pair { writer, reader: self.nodes[1].reader_guid(of_reader).expect("the endpoint exists") }, of_writer)
    }

    /// Makes the first node write a sample with a timestamp of this age, and runs until
    /// announcements are sent.
    fn write_late(&mut self, writer: WriterHandle, age_us: u64) {
        let now = Instant(self.fabric.now.0);
        let age_ns = i64::try_from(age_us * 1_000).expect("short");
        let since_set = i64::try_from(now.since(self.clocks_set).as_nanos()).expect("short");
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: KeyHash::default(),
            source_timestamp: Some(Timestamp::from_nanos(WALL_CLOCK + since_set - age_ns)),
            destinations: &[],
            payload_len: 8,
        };
        let written = self.nodes[0].write(now, writer, &change, |payload| {
            payload.fill(0);
            Some(payload.len())
        });
        written.expect("the writer accepts the sample");
        self.run(4_000);
    }
}

#[test]
fn admission_counts_the_stages_of_the_hosts() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (pair, _) = site.pair_with_stages(20, stages("pub", 500, 700), stages("sub", 30_000, 900));
    assert!(site.is_admitted(pair), "{:?}", site.fabric.events);
    let view = site.fabric.controller.view(site.fabric.now);
    let shown = view.pairs.iter().find(|shown| shown.topic == "Joint").expect("the view contains the pair");
    let of: Vec<(Place, &str)> = shown.stages.iter().map(|stage| (stage.place, stage.name.as_str())).collect();
    assert_eq!((of[0], of[4]), ((Place::Writer, "pub"), (Place::Reader, "sub")), "two hosts, three queues between");
    assert!(of[1..4].iter().all(|(place, name)| *place == Place::Network && name.contains("class ")), "{of:?}");
    let scheduler = site.fabric.controller.admission().expect("a network is configured").scheduler();
    let (_, request) = scheduler.requests().next().expect("its samples");
    assert_eq!(request.contract.limit_ns, 20_000_000 - 1_600_000, "the hosts leave so much");
    let bound_ns = shown.bound_ns.expect("the pair is admitted");
    assert!((1_600_000..=20_000_000).contains(&bound_ns), "{bound_ns}");
    let admitted = site.fabric.events.contains(&Event::Admitted { pair, bound_ns });
    assert!(admitted, "the event has the bound of the whole");
}

#[test]
fn pair_whose_hosts_leave_too_little_is_refused() {
    // The network alone takes less than 8 ms.
    for (limit, writer, reader, expected) in [
        (
            2,
            stages("pub", 0, 1_100),
            stages("sub", 30_000, 900),
            "takes up to 1100000 ns and the reader's up to 900000 ns",
        ),
        (20, stages("pub", 3_000, 100), stages("sub", 3_000, 900), "are analyzed for 3000000 ns"),
        (20, HostStages { period_ns: 9_000_000, ..stages("pub", 0, 1) }, stages("sub", 30_000, 1), "every 9000000 ns"),
        (20, stages("pub", 0, 18_500), stages("sub", 30_000, 1_300), "would fit: a limit of "),
    ] {
        let mut site = Site::new(2, &line(2), Some(NETWORK));
        let (pair, _) = site.pair_with_stages(limit, writer, reader);
        let refusal = site.refusal(pair).unwrap_or_else(|| panic!("{expected}: it is not refused"));
        assert!(refusal.contains(expected), "{expected}: {refusal}");
        let refusals: Vec<String> = site.nodes[1].refusals().map(ToString::to_string).collect();
        assert!(refusals.len() == 1 && refusals[0].contains("the network controller refuses the pair"), "{refusals:?}");
    }
}

#[test]
fn latency_above_the_bound_is_an_event_that_names_the_stage() {
    for (write_us, expected) in [(9_000, "a call of write took 9000000 ns"), (100, "after write")] {
        let mut site = Site::new(2, &line(2), Some(NETWORK));
        let (pair, writer) = site.pair_with_stages(20, stages("pub", 500, 700), stages("sub", 30_000, 900));
        assert!(site.is_admitted(pair), "{:?}", site.fabric.events);
        site.nodes[0].record_write_time(writer, write_us * 1_000).expect("the endpoint exists");
        let exceeded = |site: &Site| -> Vec<String> {
            let events = site.fabric.events.iter();
            events.filter(|event| matches!(event, Event::BoundExceeded { .. })).map(ToString::to_string).collect()
        };
        site.write_late(writer, 19_000);
        let view = site.fabric.controller.view(site.fabric.now);
        let shown = view.pairs.iter().find(|shown| shown.topic == "Joint").expect("the view contains the pair");
        assert_eq!(shown.measured, Some(Measured { worst_ns: 19_000_000 }));
        assert_eq!(exceeded(&site), [""; 0], "19 of 20 ms");
        site.write_late(writer, 21_000);
        let [text] = &exceeded(&site)[..] else { panic!("one event: {:?}", exceeded(&site)) };
        assert!(text.contains("21000000 ns, at most 20000000 ns are proven") && text.contains(expected), "{text}");
        site.write_late(writer, 20_500);
        assert_eq!(exceeded(&site).len(), 1, "no further event");
    }
}

#[test]
fn pair_whose_acknacks_do_not_fit_is_refused_once() {
    // The limit of an ACKNACK is a heartbeat period. At 20 Mbit/s two frames of other flows take
    // longer.
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
    site.nodes[0].delete_writer(now, first_writer).expect("the endpoint exists");
    site.run(1_000);
    assert!(site.is_admitted(more));
    assert!(!site.is_admitted(less), "only one pair fits");
}

#[test]
fn pair_is_refused_when_a_switch_refuses_its_entry() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let capacity = site.fabric.switch(2).rules.len();
    site.fabric.switch(2).room = capacity;
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert_eq!(site.refusal(pair), Some("switch 0000000000000002 refuses a flow entry"));
    assert!(!site.is_matched(0, writer, reader));
    assert_eq!(site.entries(1), []);
}

#[test]
fn pair_whose_entry_a_switch_refuses_is_tried_again_when_another_has_left_and_not_before() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let writer = site.writer(0, "Joint", "rt.minsep=50ms;rt.maxsize=100");
    site.reader(1, "Joint", REQUEST);
    site.run(1_000);
    let capacity = site.fabric.switch(2).rules.len();
    site.fabric.switch(2).room = capacity;
    let (pair, ..) = site.pair(2, "Camera", 0);
    site.run(10_000);
    let tries = |site: &Site| {
        let events = site.fabric.events.iter();
        events.filter(|event| matches!(event, Event::EntryRefused { dpid: 2, .. })).count()
    };
    assert_eq!(site.refusal(pair), Some("switch 0000000000000002 refuses a flow entry"));
    assert_eq!(tries(&site), 1, "{:?}", site.fabric.events);
    let now = Instant(site.fabric.now.0);
    site.nodes[0].delete_writer(now, writer).expect("the endpoint exists");
    site.run(2_000);
    assert!(site.is_admitted(pair), "{:?}", site.fabric.events);
}

#[test]
fn failed_link_reroutes_the_flow_in_its_class() {
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
    assert!(site.refusal(pair).expect("no path is left").contains("no longer served"));
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

/// Contract of a small pair, with 1,000 octets every 5 ms.
const SMALL: &str = "rt.minsep=5ms;rt.maxsize=1000";

/// Returns the rates of the meters of admitted flows in kbit/s.
fn rates(site: &Site, dpid: u64) -> Vec<u32> {
    let meters = site.fabric.switches[&dpid].meters.range(0x1000..);
    let rate = |band: &Band| if let Band::Drop { rate, .. } = band { Some(*rate) } else { None };
    meters.flat_map(|(_, meter)| &meter.bands).filter_map(rate).collect()
}

#[test]
fn pairs_between_the_same_sockets_share_one_entry_and_one_meter() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let offer = "rt.minsep=100ms;rt.maxsize=200";
    let pair = |site: &mut Site, topic: &str| (site.writer(0, topic, offer), site.reader(1, topic, REQUEST));
    let (first_writer, first_reader) = pair(&mut site, "Joint");
    site.run(1_000);
    assert!(site.is_matched(0, first_writer, first_reader));
    let (entries, alone) = (site.entries(1), rates(&site, 1));
    assert_eq!(
        (entries.len(), alone.len()),
        (2, 1),
        "samples with a meter here, ACKNACKs with one at the other switch"
    );

    let others: Vec<_> = (0..10).map(|n| pair(&mut site, &format!("Joint {n}"))).collect();
    site.run(2_000);
    for (writer, reader) in &others {
        assert!(site.is_matched(0, *writer, *reader), "{:?}", site.fabric.events);
    }
    assert_eq!(site.entries(1).len(), 2);
    let together = rates(&site, 1);
    assert_eq!(together.len(), 1);
    assert!(together[0] >= 11 * (alone[0] - 1), "{together:?} for 11 pairs of {alone:?}");

    let now = Instant(site.fabric.now.0);
    for (writer, _) in others {
        site.nodes[0].delete_writer(now, writer).expect("the endpoint exists");
    }
    site.run(1_000);
    assert_eq!(rates(&site, 1), alone, "the meter has what the first pair has");
    let routes = site.fabric.controller.admission().expect("a network is described").scheduler().requests();
    assert_eq!(routes.count(), 2, "samples and ACKNACKs of the first pair");
    assert!(site.is_matched(0, first_writer, first_reader));
    site.nodes[0].delete_writer(now, first_writer).expect("the endpoint exists");
    site.run(1_000);
    assert_eq!((site.entries(1), rates(&site, 1)), (vec![], vec![]));
}

#[test]
fn pairs_in_both_directions_share_entries_with_the_acknacks_of_the_other() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (there, _) = (site.writer(0, "Command", SMALL), site.writer(1, "State", SMALL));
    let (reader, _) = (site.reader(1, "Command", REQUEST), site.reader(0, "State", REQUEST));
    site.run(2_000);
    assert!(site.is_matched(0, there, reader), "{:?}", site.fabric.events);
    let admitted = site.fabric.events.iter().filter(|event| matches!(event, Event::Admitted { .. })).count();
    assert_eq!(admitted, 2, "{:?}", site.fabric.events);
    assert_eq!([1, 2].map(|dpid| site.entries(dpid).len()), [2, 2], "one for each direction");
}

#[test]
fn pair_that_does_not_fit_its_flow_is_refused_without_affecting_the_others() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (first, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(first));
    let before = (site.entries(1), rates(&site, 1));
    let (second, ..) = site.pair(0, "Lidar", 0);
    site.run(1_000);
    let reason = site.refusal(second).expect("twice 12 of 20 Mbit/s").to_owned();
    assert!(reason.contains("uses all the time"), "{reason}");
    assert_eq!((site.entries(1), rates(&site, 1)), before);
    assert!(site.is_matched(0, writer, reader));
}

/// Before the meter has room for the pair, its samples would be dropped.
#[test]
fn pair_that_joins_is_released_when_the_meter_passes_its_samples() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (writer, reader) = (site.writer(0, "Joint", SMALL), site.reader(1, "Joint", REQUEST));
    site.run(1_000);
    assert!(site.is_matched(0, writer, reader));
    let alone = rates(&site, 1);
    site.fabric.stalled.insert(1);
    let (writer, reader) = (site.writer(0, "Wrist", SMALL), site.reader(1, "Wrist", REQUEST));
    site.run(1_000);
    assert_eq!(rates(&site, 1), alone);
    assert!(!site.is_matched(0, writer, reader));
    site.fabric.stalled.clear();
    site.run(1_000);
    assert!(rates(&site, 1) > alone);
    assert!(site.is_matched(0, writer, reader));
}

#[test]
fn topic_without_contract_excludes_a_pair_with_one_from_its_sockets() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (log_writer, log_reader) = (site.writer(0, "Log", ""), site.reader(1, "Log", ""));
    site.run(1_000);
    assert!(site.is_matched(0, log_writer, log_reader));
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    let (elsewhere, lidar, _) = site.pair(2, "Lidar", 0);
    site.run(1_000);
    let reason = site.refusal(pair).expect("the two pairs are indistinguishable").to_owned();
    assert!(reason.contains("\"Log\" without a contract") && reason.contains("[default]"), "{reason}");
    assert!(site.is_matched(0, log_writer, log_reader));
    assert!(!site.is_matched(0, writer, reader));
    assert!(site.is_admitted(elsewhere), "the sockets differ");
    let now = Instant(site.fabric.now.0);
    site.nodes[0].delete_writer(now, log_writer).expect("the endpoint exists");
    site.nodes[2].delete_writer(now, lidar).expect("the endpoint exists");
    site.run(1_000);
    assert!(site.is_admitted(pair), "{:?}", site.refusal(pair));
}

#[test]
fn admitted_pair_excludes_topics_without_contract_from_its_sockets() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    // Its ACKNACKs have the same socket of the writer as samples of the opposite direction.
    let (log_writer, log_reader) = (site.writer(0, "Log", ""), site.reader(1, "Log", ""));
    site.run(1_000);
    assert!(site.is_admitted(pair) && site.is_matched(0, writer, reader));
    assert!(!site.is_matched(0, log_writer, log_reader));
    let refused = site
        .fabric
        .events
        .iter()
        .filter(|event| matches!(event, Event::Refused { reason, .. } if reason.contains("\"Log\"")));
    assert_eq!(refused.count(), 1, "{:?}", site.fabric.events);
    let now = Instant(site.fabric.now.0);
    site.nodes[0].delete_writer(now, writer).expect("the endpoint exists");
    site.run(1_000);
    assert!(site.is_matched(0, log_writer, log_reader), "the flow is gone");
}

#[test]
fn caution_admits_a_pair_that_shares_its_sockets_with_a_topic_without_contract() {
    let network = format!("without_contract = \"caution\"\n{NETWORK}");
    let mut site = Site::new(2, &line(2), Some(&network));
    let (log_writer, log_reader) = (site.writer(0, "Log", ""), site.reader(1, "Log", ""));
    site.run(1_000);
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_matched(0, log_writer, log_reader) && site.is_matched(0, writer, reader));
    let caution = Event::Caution { pair, topic: "Log".into() };
    assert!(site.fabric.events.contains(&caution), "{:?}", site.fabric.events);
    assert!(site.is_admitted(pair));
}

/// CycloneDDS uses one port by default.
#[test]
fn pairs_of_participants_with_a_single_port_are_refused_with_the_setting_to_change() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    site.nodes.truncate(0);
    const SHARED: u16 = 7500;
    for node in 0..2 {
        let address = site.fabric.hosts[node].address;
        let prefix = GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 4, node as u8 + 1]);
        let mut config = ParticipantConfig::new(0, prefix);
        let addresses = vec![(address.into(), 24)];
        config.interfaces = vec![Interface { name: "sim0".into(), addresses, mtu: 1500, loopback: false }];
        config.locators.metatraffic_unicast = vec![Locator::from(SocketAddr::from((address, SHARED)))];
        config.locators.default_unicast = config.locators.metatraffic_unicast.clone();
        config.initial_peers = vec![Locator::udp_v4(GROUP, 7400)];
        site.nodes.push(Participant::new(config, Instant(site.fabric.now.0)).expect("the configuration is valid"));
    }
    site.run(2_000);
    let shared = |site: &Site, wanted: bool| {
        let is_shared =
            |event: &&Event| matches!(event, Event::SharedPort { is_intercepted, .. } if *is_intercepted == wanted);
        site.fabric.events.iter().filter(is_shared).count()
    };
    assert_eq!((shared(&site, true), shared(&site, false)), (2, 0), "{:?}", site.fabric.events);
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    let (log_writer, log_reader) = (site.writer(0, "Log", ""), site.reader(1, "Log", ""));
    site.run(1_000);
    let reason = site.refusal(pair).expect("its announcements are intercepted");
    assert!(reason.contains("UDP port 7500") && reason.contains("ParticipantIndex auto"), "{reason}");
    assert!(!site.is_matched(0, writer, reader));
    assert!(site.is_matched(0, log_writer, log_reader), "without a contract it matches");

    // A port with many samples is soon no longer intercepted.
    let frame = site.datagram(0, (site.fabric.hosts[1].address, SHARED).into(), &[0; 100]);
    for _ in 0..2 {
        (0..700).for_each(|_| site.fabric.send_from(0, frame.clone()));
        site.run(1_000);
    }
    assert_eq!(shared(&site, false), 1, "{:?}", site.fabric.events.last());
    let before = site.fabric.controller.counters().discovery;
    site.fabric.hosts[1].inbox.clear();
    (0..100).for_each(|_| site.fabric.send_from(0, frame.clone()));
    assert_eq!(site.fabric.controller.counters().discovery, before);
    assert_eq!(site.fabric.hosts[1].inbox.len(), 100, "the frames are forwarded");
}
