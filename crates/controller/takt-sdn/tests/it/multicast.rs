//! Tests of samples by multicast with simulated switches: a class for admitted readers, the lowest
//! one for other members, one copy for each.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use takt_core::{Instant, ReaderHandle, WriterHandle};
use takt_sdn::controller::{Config, Event};
use takt_sdn::discovery::Pair;
use takt_sdn::frame::Frame;
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_wire::Locator;
use takt_wire::qos::DataReaderQos;

use crate::admission::{CLASSES, NETWORK, Site};
use crate::endpoints::reader_spec;
use crate::fabric::{Host, line, port, ring};
use crate::plain_ethernet::igmp;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
const SAMPLES: u16 = 7401;
/// Contract that uses 2 of 20 Mbit/s.
const OFFER: &str = "rt.minsep=5ms;rt.maxsize=1000";
/// Contract that uses 12 of 20 Mbit/s.
const LARGE_OFFER: &str = "rt.minsep=5ms;rt.maxsize=7000";
const REQUEST: &str = "rt.e2e=100ms";

fn site(count: u64, cables: &[(takt_sdn::PortRef, takt_sdn::PortRef)], group: u16) -> Site {
    described(NETWORK, count, cables, group)
}

pub fn described(text: &str, count: u64, cables: &[(takt_sdn::PortRef, takt_sdn::PortRef)], group: u16) -> Site {
    let network = NetworkFile::parse("network.toml", text, SwitchModel::built_in).expect("the network file is valid");
    let config = Config { network: Some(network), ..Config::default() };
    Site::with_groups(config, count, cables, vec![Locator::udp_v4(GROUP, group)])
}

/// Returns the DSCPs of the copies that each host gets of a sample of host 0 to the group.
pub fn copies(site: &mut Site) -> [Vec<u8>; 4] {
    let frame = site.datagram(0, SocketAddr::from((GROUP, SAMPLES)), &[0; 1000]);
    site.fabric.hosts.iter_mut().for_each(|host| host.inbox.clear());
    site.fabric.send_from(0, frame);
    [0, 1, 2, 3].map(|host| dscps(site, host))
}

/// Returns the DSCPs of the multicast samples that a host has received.
fn dscps(site: &mut Site, host: usize) -> Vec<u8> {
    let got = std::mem::take(&mut site.fabric.hosts[host].inbox);
    let parsed = got.iter().map(|bytes| Frame::parse(bytes).expect("a frame"));
    let samples = parsed.filter(|frame| frame.udp().is_some_and(|(_, udp)| udp.destination_port() == SAMPLES));
    samples.map(|frame| frame.payload()[1] >> 2).collect()
}

/// Creates switches 1 and 3 with the hosts of nodes, and switch 2 at the end, with host 4.
fn site_with_a_branch(text: &str) -> Site {
    let cables = [(port(1, 1), port(3, 2)), (port(2, 2), port(3, 1))];
    let mut site = described(text, 3, &cables, SAMPLES);
    site.fabric.host(port(2, 5));
    site
}

pub fn is_classed(copies: &[u8]) -> bool {
    copies.len() == 1 && CLASSES.contains(&copies[0])
}

/// A writer at node 0 with readers at nodes.
struct Topic {
    writer: WriterHandle,
    readers: Vec<(usize, ReaderHandle)>,
    pairs: Vec<Pair>,
}

impl Topic {
    fn new(site: &mut Site, offer: &str, nodes: &[usize]) -> Self {
        let writer = site.writer(0, "Camera", offer);
        let mut topic = Self { writer, readers: Vec::new(), pairs: Vec::new() };
        nodes.iter().for_each(|node| topic.add(site, *node, REQUEST));
        topic
    }

    fn create(&mut self, site: &mut Site, node: usize, request: &str) {
        let reader = site.reader(node, "Camera", request);
        self.enter(site, node, reader);
    }

    fn enter(&mut self, site: &mut Site, node: usize, reader: ReaderHandle) {
        let of_writer = site.nodes[0].writer_guid(self.writer).expect("the endpoint exists");
        let of_reader = site.nodes[node].reader_guid(reader).expect("the endpoint exists");
        self.readers.push((node, reader));
        self.pairs.push(Pair { writer: of_writer, reader: of_reader });
    }

    /// Creates a writer with best-effort readers at nodes.
    fn best_effort(site: &mut Site, nodes: &[usize]) -> Self {
        let writer = site.writer(0, "Camera", OFFER);
        let mut topic = Self { writer, readers: Vec::new(), pairs: Vec::new() };
        for node in nodes {
            let now = Instant(site.fabric.now.0);
            let spec = reader_spec("Camera", REQUEST, DataReaderQos::default());
            let reader = site.nodes[*node].create_reader(now, spec).expect("the reader can be created");
            topic.enter(site, *node, reader);
            site.run(1_000);
        }
        topic
    }

    fn add(&mut self, site: &mut Site, node: usize, request: &str) {
        self.create(site, node, request);
        site.run(1_000);
    }

    /// Returns the number of readers that the writer has matched.
    fn matched(&self, site: &mut Site) -> usize {
        site.nodes[0].matched_subscriptions(self.writer).expect("the writer exists").len()
    }
}

#[test]
fn samples_to_a_group_have_a_class_to_admitted_readers_and_none_to_other_members() {
    let mut site = site(2, &line(2), SAMPLES);
    let mut topic = Topic::new(&mut site, OFFER, &[1]);
    assert!(site.is_admitted(topic.pairs[0]), "{:?}", site.fabric.events);
    assert_eq!(copies(&mut site), [vec![], vec![0], vec![0], vec![0]], "one reader is served by unicast");
    topic.add(&mut site, 2, REQUEST);
    assert!(site.is_admitted(topic.pairs[1]), "{:?}", site.fabric.events);
    assert_eq!(topic.matched(&mut site), 2);
    let [own, first, second, other] = copies(&mut site);
    assert!(own.is_empty() && is_classed(&first) && is_classed(&second), "{first:?}, {second:?}");
    assert_eq!(other, [0], "a member without admission receives");
    let of_unicast = site.classes(0, 1, 1);
    assert!(CLASSES.contains(&of_unicast[0]), "the writer may send by unicast as well: {of_unicast:?}");
}

#[test]
fn readers_that_are_admitted_after_a_refusal_have_a_class_by_multicast() {
    let mut site = site(2, &line(2), SAMPLES);
    let large = site.writer(2, "Lidar", "rt.minsep=5ms;rt.maxsize=7800");
    site.reader(3, "Lidar", REQUEST);
    site.run(1_000);
    let topic = Topic::new(&mut site, "rt.minsep=5ms;rt.maxsize=2000", &[1, 3]);
    assert!(topic.pairs.iter().all(|pair| site.refusal(*pair).is_some()), "{:?}", site.fabric.events);
    let now = Instant(site.fabric.now.0);
    site.nodes[2].delete_writer(now, large).expect("the endpoint exists");
    site.run(1_000);
    assert_eq!(topic.matched(&mut site), 2);
    let [_, first, other, second] = copies(&mut site);
    assert!(is_classed(&first) && is_classed(&second), "{first:?}, {second:?}");
    assert_eq!(other, [0]);
}

#[test]
fn writer_beyond_its_contract_to_a_group_is_policed() {
    let mut site = site(2, &line(2), SAMPLES);
    Topic::new(&mut site, OFFER, &[1, 2]);
    let delivered = (0..100).filter(|_| is_classed(&copies(&mut site)[1])).count();
    assert!((1..20).contains(&delivered), "{delivered}");
}

/// Otherwise the samples of the admitted pair would be in the lowest class as soon as the writer
/// begins to send by multicast.
#[test]
fn reader_without_a_contract_matches_when_the_group_has_a_class_for_the_admitted_one() {
    let mut site = site(3, &line(3), SAMPLES);
    let mut topic = Topic::new(&mut site, OFFER, &[1]);
    site.fabric.stalled.insert(2);
    topic.create(&mut site, 2, "");
    site.run(300);
    assert_eq!(topic.matched(&mut site), 1, "a switch has not confirmed");
    site.fabric.stalled.clear();
    site.run(1_000);
    assert_eq!(topic.matched(&mut site), 2, "{:?}", site.fabric.events);
    let [_, first, second, other] = copies(&mut site);
    assert!(is_classed(&first), "{first:?}");
    assert_eq!((second, other), (vec![0], vec![0]), "neither is admitted");
}

#[test]
fn reader_that_does_not_fit_gets_samples_to_the_group_in_the_lowest_class() {
    let mut site = site(2, &line(2), SAMPLES);
    let mut topic = Topic::new(&mut site, OFFER, &[1, 2]);
    topic.add(&mut site, 3, "rt.e2e=10us");
    assert!(site.refusal(topic.pairs[2]).is_some());
    let [_, first, second, refused] = copies(&mut site);
    assert!(is_classed(&first) && is_classed(&second), "{first:?}, {second:?}");
    assert_eq!(refused, [0]);
}

#[test]
fn reader_is_refused_when_multicast_to_the_others_would_not_fit() {
    for request in [REQUEST, ""] {
        let mut site = site(2, &line(2), SAMPLES);
        let mut topic = Topic::new(&mut site, LARGE_OFFER, &[1]);
        let first = topic.pairs[0];
        assert!(site.is_admitted(first), "{:?}", site.fabric.events);
        let before = site.entries(1);
        topic.add(&mut site, 3, request);
        let reason = site.refusal(topic.pairs[1]).map(str::to_owned);
        let has_cause =
            |reason: &String| reason.contains("may send by multicast") && reason.contains("of port 5 of switch");
        assert!(reason.as_ref().is_some_and(has_cause), "{request:?}: {reason:?}");
        assert_eq!(topic.matched(&mut site), 1, "{request:?}");
        assert_eq!(site.entries(1), before, "the first pair keeps what it has");
        let now = Instant(site.fabric.now.0);
        let (node, reader) = topic.readers.remove(0);
        site.nodes[node].delete_reader(now, reader).expect("the endpoint exists");
        site.run(1_000);
        assert_eq!(topic.matched(&mut site), 1, "{request:?}: alone it is served by unicast: {:?}", site.fabric.events);
    }
}

#[test]
fn leaving_reader_loses_its_class_and_the_others_keep_theirs() {
    let mut site = site(2, &line(2), SAMPLES);
    let topic = Topic::new(&mut site, OFFER, &[1, 2, 3]);
    let [_, first, second, third] = copies(&mut site);
    assert!([first, second, third].iter().all(|copies| is_classed(copies)));
    let now = Instant(site.fabric.now.0);
    site.nodes[1].delete_reader(now, topic.readers[0].1).expect("the endpoint exists");
    site.run(1_000);
    let [_, first, second, third] = copies(&mut site);
    assert_eq!(first, [0]);
    assert!(is_classed(&second) && is_classed(&third), "{second:?}, {third:?}");
    for (node, reader) in &topic.readers[1..] {
        let now = Instant(site.fabric.now.0);
        site.nodes[*node].delete_reader(now, *reader).expect("the endpoint exists");
    }
    site.run(1_000);
    assert_eq!([1, 2].map(|dpid| site.entries(dpid).len()), [0, 0]);
    assert_eq!(copies(&mut site), [vec![], vec![0], vec![0], vec![0]]);
}

#[test]
fn every_member_gets_one_copy_in_a_ring_before_and_after_a_link_fails() {
    let mut site = site(3, &ring(), SAMPLES);
    let topic = Topic::new(&mut site, OFFER, &[1, 2]);
    let [_, first, second, other] = copies(&mut site);
    assert!(is_classed(&first) && is_classed(&second), "{first:?}, {second:?}");
    assert_eq!(other, [0]);
    site.fabric.set_cable(port(1, 2), port(3, 1), false);
    site.run(1_000);
    assert_eq!(topic.matched(&mut site), 2);
    let [_, first, second, other] = copies(&mut site);
    assert!(is_classed(&first) && is_classed(&second), "{first:?}, {second:?}");
    assert_eq!(other, [0]);
}

#[test]
fn unreachable_reader_does_not_affect_the_others_of_its_group() {
    let mut site = site(2, &line(2), SAMPLES);
    let topic = Topic::new(&mut site, OFFER, &[1, 2]);
    site.fabric.events.clear();
    site.fabric.set_cable(port(1, 1), port(2, 2), false);
    site.run(100);
    assert!(is_classed(&copies(&mut site)[2]));
    assert!(site.refusal(topic.pairs[0]).is_some(), "{:?}", site.fabric.events);
    assert_eq!(site.refusal(topic.pairs[1]), None);
}

#[test]
fn topic_without_a_contract_that_sends_to_the_group_of_an_admitted_one_is_refused() {
    let mut site = site(2, &line(2), SAMPLES);
    Topic::new(&mut site, OFFER, &[1, 2]);
    site.writer(0, "Log", "");
    // No admitted pair has a unicast flow to this node.
    let first = site.reader(3, "Log", "");
    site.run(1_000);
    assert_eq!(site.nodes[3].matched_publications(first).expect("the endpoint exists").len(), 1, "one reader: unicast");
    site.reader(3, "Log", "");
    site.run(1_000);
    let refused = site.fabric.events.iter().find_map(|event| match event {
        Event::Refused { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(refused.as_ref().is_some_and(|reason| reason.contains("to group 239.255.0.1:7401")), "{refused:?}");
}

/// Adds a reader of a second participant at the writer's host: its discovery with the writer passes
/// no switch.
fn add_local_reader(site: &mut Site, topic: &mut Topic) {
    let host = &site.fabric.hosts[0];
    let (at, mac, address) = (host.at, host.mac, host.address);
    site.fabric.hosts.push(Host { at, mac, address, inbox: Vec::new() });
    let participant = site.participant(4);
    site.nodes.push(participant);
    site.run(2_000);
    topic.create(site, 4, "");
    site.run(1_000);
}

#[test]
fn local_reader_makes_multicast_to_the_admitted_reader_have_a_class() {
    let mut site = site(2, &line(2), SAMPLES);
    let mut topic = Topic::new(&mut site, OFFER, &[1]);
    assert_eq!(copies(&mut site)[1], [0]);
    add_local_reader(&mut site, &mut topic);
    let first = &copies(&mut site)[1];
    assert!(is_classed(first), "{first:?}");
}

#[test]
fn group_at_the_port_of_discovery_refuses_the_pair() {
    let mut site = site(2, &line(2), 7400);
    let mut topic = Topic::new(&mut site, OFFER, &[1]);
    assert!(site.is_admitted(topic.pairs[0]));
    topic.add(&mut site, 2, REQUEST);
    let reason = site.refusal(topic.pairs[1]).expect("discovery would pass unseen");
    assert!(reason.contains("239.255.0.1:7400") && reason.contains("a port of their own"), "{reason}");
}

#[test]
fn member_at_a_switch_with_a_full_table_does_not_affect_admitted_readers_when_it_joins() {
    let mut site = site_with_a_branch(NETWORK);
    let join = igmp(&site.fabric, 2, 0x16, GROUP);
    site.fabric.send_from(2, join);
    site.run(4_000);
    let topic = Topic::new(&mut site, OFFER, &[1, 2]);
    assert_eq!(site.entries(2), [], "no member is there");
    let full = site.fabric.switch(2).rules.len();
    site.fabric.switch(2).room = full;
    let join = igmp(&site.fabric, 4, 0x16, GROUP);
    site.fabric.send_from(4, join);
    site.run(1_000);
    assert!(site.fabric.events.iter().any(|event| matches!(event, Event::EntryRefused { dpid: 2, .. })));
    assert!(topic.pairs.iter().all(|pair| site.refusal(*pair).is_none()), "{:?}", site.fabric.events);
    let [_, first, second, _] = copies(&mut site);
    assert!(is_classed(&first) && is_classed(&second), "{first:?}, {second:?}");
    assert!(dscps(&mut site, 4).is_empty(), "its switch has no entry");
    // The change of a link makes the controller try again.
    site.fabric.switch(2).room = usize::MAX;
    site.fabric.set_cable(port(2, 2), port(3, 1), false);
    site.fabric.set_cable(port(2, 2), port(3, 1), true);
    site.run(4_000);
    assert!(is_classed(&copies(&mut site)[1]));
    assert_eq!(dscps(&mut site, 4), [0]);
}

#[test]
fn disconnected_switch_does_not_prevent_admission_of_readers_at_other_switches() {
    let mut site = site_with_a_branch(NETWORK);
    site.fabric.disconnect(2);
    let topic = Topic::new(&mut site, OFFER, &[1, 2]);
    assert!(topic.pairs.iter().all(|pair| site.is_admitted(*pair)), "{:?}", site.fabric.events);
    let [_, first, second, other] = copies(&mut site);
    assert!(is_classed(&first) && is_classed(&second), "{first:?}, {second:?}");
    assert_eq!(other, [0]);
    site.fabric.connect(2);
    site.run(1_000);
    assert!(is_classed(&copies(&mut site)[1]));
    assert_eq!(dscps(&mut site, 4), [0]);
}

#[test]
fn member_at_a_switch_without_a_model_gets_one_copy() {
    let text = ["0000000000000001", "0000000000000003"].map(|id| NETWORK.replace('*', id)).concat();
    let mut site = site_with_a_branch(&text);
    Topic::new(&mut site, OFFER, &[1, 2]);
    let [_, first, second, other] = copies(&mut site);
    assert!(is_classed(&first) && is_classed(&second), "{first:?}, {second:?}");
    assert_eq!((other, dscps(&mut site, 4)), (vec![0], vec![0]));
}

#[test]
fn reader_without_a_contract_that_is_refused_for_a_shared_flow_does_not_match_by_multicast() {
    let mut site = site(2, &line(2), SAMPLES);
    let topic = Topic::new(&mut site, OFFER, &[1]);
    assert!(site.is_admitted(topic.pairs[0]), "{:?}", site.fabric.events);
    let log = site.writer(0, "Log", OFFER);
    site.reader(2, "Log", REQUEST);
    site.run(1_000);
    let uncontracted = site.reader(1, "Log", "");
    site.run(1_000);
    assert_eq!(site.nodes[1].matched_publications(uncontracted).expect("exists").len(), 0, "{:?}", site.fabric.events);
    assert_eq!(site.nodes[0].matched_subscriptions(log).expect("the endpoint exists").len(), 1);
}

#[test]
fn reader_without_a_contract_is_refused_when_the_admitted_one_uses_the_discovery_group() {
    let mut site = site(2, &line(2), 7400);
    let mut topic = Topic::new(&mut site, OFFER, &[1]);
    topic.add(&mut site, 2, "");
    let reason = site.refusal(topic.pairs[1]).expect("the samples of the admitted one would have no class");
    assert!(reason.contains("may send by multicast") && reason.contains("239.255.0.1:7400"), "{reason}");
    assert_eq!(topic.matched(&mut site), 1);
}

#[test]
fn admitted_reader_is_refused_when_a_local_reader_announces_a_group_at_the_discovery_port() {
    let mut site = site(2, &line(2), 7400);
    let mut topic = Topic::new(&mut site, OFFER, &[1]);
    assert!(site.is_admitted(topic.pairs[0]), "{:?}", site.fabric.events);
    add_local_reader(&mut site, &mut topic);
    let reason = site.refusal(topic.pairs[0]).expect("its samples would have no class");
    assert!(reason.contains("no longer served") && reason.contains("239.255.0.1:7400"), "{reason}");
}

/// Returns the number of sent datagrams with this length of RTPS octets and the number that pass
/// the meter of host 0. A sample is sent every 5 ms for a number of seconds, and a datagram of the
/// other length at these milliseconds of each 100 ms.
fn metered(site: &mut Site, to: SocketAddr, (sample, other): (usize, usize), at: &[u64], seconds: u64) -> (u64, u64) {
    let [sample, other] = [sample, other].map(|len| site.datagram(0, to, &vec![0; len]));
    let (mut sent, mut delivered) = (0, 0);
    for millis in (0..seconds * 1000).step_by(5) {
        let others = at.iter().filter(|at| millis % 100 == **at).map(|_| &other);
        for frame in [&sample].into_iter().chain(others).cloned().collect::<Vec<_>>() {
            site.fabric.hosts[1].inbox.clear();
            site.fabric.send_from(0, frame);
            let got = site.fabric.hosts[1].inbox.iter().map(|bytes| Frame::parse(bytes).expect("a frame"));
            let datagrams =
                got.filter(|frame| frame.udp().is_some_and(|(_, datagram)| datagram.destination_port() == to.port()));
            delivered += datagrams.count() as u64;
            sent += 1;
        }
        site.fabric.pass(Duration::from_millis(5));
    }
    (sent, delivered)
}

/// Length in octets of RTPS header, INFO_DST, INFO_TS, and DATA with a sample of 1000 octets.
const SAMPLE_LEN: usize = 20 + 16 + 12 + 24 + 1000;
const HEARTBEAT_LEN: usize = 32;

#[test]
fn reliable_reader_that_joins_best_effort_ones_does_not_displace_their_multicast_samples() {
    let mut site = site(2, &line(2), SAMPLES);
    let mut topic = Topic::best_effort(&mut site, &[1, 2]);
    topic.add(&mut site, 3, "");
    assert_eq!(topic.matched(&mut site), 3, "{:?}", site.fabric.events);
    let len = SAMPLE_LEN + HEARTBEAT_LEN;
    // One separate HEARTBEAT, and one probe of the participant.
    let (sent, delivered) = metered(&mut site, (GROUP, SAMPLES).into(), (len, len), &[0, 50], 4);
    assert_eq!(delivered, sent);
}

#[test]
fn probes_before_multicast_do_not_displace_unicast_samples() {
    let mut site = site(2, &line(2), SAMPLES);
    let topic = Topic::best_effort(&mut site, &[1]);
    assert!(site.is_admitted(topic.pairs[0]), "{:?}", site.fabric.events);
    let to = SocketAddr::from((site.fabric.hosts[1].address, 7411));
    let (sent, delivered) = metered(&mut site, to, (SAMPLE_LEN, 68), &[0, 10, 25, 45, 80], 1);
    assert_eq!(delivered, sent);
}

/// Fragments followed by a HEARTBEAT, or samples that nearly fill a frame. Before a writer of Takt
/// sends such datagrams, it probes the path with two probes at once, one of which fills a frame.
#[test]
fn path_probes_do_not_displace_samples_that_nearly_fill_a_frame() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let writer = site.writer(0, "Camera", "rt.minsep=5ms;rt.maxsize=1344");
    let mut topic = Topic { writer, readers: Vec::new(), pairs: Vec::new() };
    let now = Instant(site.fabric.now.0);
    let spec = reader_spec("Camera", REQUEST, DataReaderQos::default());
    let reader = site.nodes[1].create_reader(now, spec).expect("the reader can be created");
    topic.enter(&mut site, 1, reader);
    site.run(1_000);
    assert!(site.is_admitted(topic.pairs[0]), "{:?}", site.fabric.events);
    let to = SocketAddr::from((site.fabric.hosts[1].address, 7411));
    let sample = 20 + 16 + 12 + 24 + 1344;
    // Both probes in one datagram with two headers: the simulated meter does not count the FCS.
    let (sent, delivered) = metered(&mut site, to, (sample, 1472), &[0, 50], 4);
    assert_eq!(delivered, sent);
}

/// The reader is refused for one writer and withheld. It is announced to the participant when it
/// matches another writer: then the first one sends to it by multicast, too.
#[test]
fn writer_that_discovers_a_reader_through_another_writer_keeps_the_class_of_its_samples() {
    let mut site = site(2, &line(2), SAMPLES);
    let mut large = Topic::new(&mut site, "rt.minsep=1700us;rt.maxsize=1300", &[1]);
    large.add(&mut site, 2, REQUEST);
    let reader = large.pairs[1].reader;
    let verdicts = |site: &Site| {
        let is_verdict = |event: &&Event| matches!(event, Event::Admitted { .. } | Event::Refused { .. });
        format!("{:?}", site.fabric.events.iter().filter(is_verdict).collect::<Vec<_>>())
    };
    assert!(site.refusal(large.pairs[1]).is_some(), "{}", verdicts(&site));
    assert_eq!(large.matched(&mut site), 1, "the reader is withheld");
    let writer = site.writer(0, "Camera", "rt.minsep=20ms;rt.maxsize=50");
    let of_writer = site.nodes[0].writer_guid(writer).expect("the endpoint exists");
    site.run(1_000);
    assert!(site.is_admitted(Pair { writer: of_writer, reader }), "{}", verdicts(&site));
    assert_eq!(large.matched(&mut site), 2, "the reader is shown to the participant");
    // A sample of each of both writers, which send to the same group.
    let to = SocketAddr::from((GROUP, SAMPLES));
    let frames: Vec<_> = [1400, 150].map(|len| site.datagram(0, to, &vec![0; len])).into();
    site.fabric.hosts[1].inbox.clear();
    frames.into_iter().for_each(|frame| site.fabric.send_from(0, frame));
    let got = dscps(&mut site, 1);
    assert!(got.len() == 2 && got.iter().all(|dscp| CLASSES.contains(dscp)), "{got:?}");
}
