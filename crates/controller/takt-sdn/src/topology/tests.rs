//! Tests of topologies of simulated switches: probes pass between ports as over links.

use std::collections::BTreeMap;

use super::*;

const KEY: Key = Key(*b"a key of a test!");

/// A topology with the links between its ports.
struct World {
    now: Instant,
    topology: Topology,
    cables: BTreeMap<PortRef, PortRef>,
    events: Vec<Event>,
    /// Every sent probe, with its port.
    sent: Vec<(PortRef, Vec<u8>)>,
}

fn port(dpid: u64, port: u32) -> PortRef {
    PortRef::new(dpid, port)
}

fn description(number: u32, is_up: bool) -> PortDescription {
    let name = format!("port{number}");
    PortDescription { number, name, address: MacAddress([2, 0, 0, 0, 1, number as u8]), is_up }
}

impl World {
    /// Creates switches 1 to `count` with four ports each.
    fn new(count: u64, cables: &[(PortRef, PortRef)]) -> Self {
        let both = cables.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        let mut world = Self {
            now: Instant(0),
            topology: Topology::new(Config::default(), KEY),
            cables: both.collect(),
            events: Vec::new(),
            sent: Vec::new(),
        };
        for dpid in 1..=count {
            let ports = (1..=4).map(|number| description(number, true)).collect();
            assert!(world.topology.connect_switch(world.now, dpid, ports));
        }
        world
    }

    fn receive(&mut self, at: PortRef, octets: &[u8]) {
        let frame = Frame::parse(octets).expect("a frame");
        self.topology.handle_lldp(self.now, at, &frame);
        self.events.extend(std::iter::from_fn(|| self.topology.poll_event()));
    }

    /// Performs the due actions and their immediate consequences.
    fn step(&mut self) {
        for _ in 0..4 {
            self.topology.handle_timeout(self.now);
            while let Some((from, frame)) = self.topology.poll_probe() {
                self.sent.push((from, frame.clone()));
                if let Some(to) = self.cables.get(&from).copied() {
                    self.receive(to, &frame);
                }
            }
            self.events.extend(std::iter::from_fn(|| self.topology.poll_event()));
            if self.topology.poll_timeout().is_none_or(|next| next > self.now) {
                return;
            }
        }
        panic!("probes cause probes without end");
    }

    /// Advances the time from deadline to deadline.
    fn pass(&mut self, span: Duration) {
        let end = self.now.after(span);
        self.step();
        while let Some(next) = self.topology.poll_timeout().filter(|next| *next <= end) {
            self.now = next;
            self.step();
        }
        self.now = end;
    }

    fn links(&self) -> Vec<(PortRef, PortRef)> {
        self.topology.links().collect()
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn ring() -> Vec<(PortRef, PortRef)> {
    vec![(port(1, 1), port(2, 2)), (port(2, 1), port(3, 2)), (port(1, 2), port(3, 1))]
}

#[test]
fn links_of_a_ring_are_found_and_other_ports_are_edges() {
    let mut world = World::new(3, &ring());
    world.step();
    assert!(world.topology.edges().next().is_none(), "no port is an edge before probing ends");
    world.pass(SECOND);
    let mut expected = ring();
    expected.sort_unstable();
    assert_eq!(world.links(), expected);
    assert_eq!(world.topology.role(port(1, 1)), Role::Link(port(2, 2)));
    assert_eq!(world.topology.edges().count(), 6);
    world.pass(60 * SECOND);
    assert_eq!(world.links(), expected, "links persist while probes pass");
    let counters = world.topology.counters();
    assert_eq!((counters.forged, counters.repeated, counters.late), (0, 0, 0));
}

#[test]
fn link_is_lost_at_once_when_port_status_reports_it() {
    let mut world = World::new(3, &ring());
    world.pass(SECOND);
    world.topology.set_port(world.now, 2, description(2, false));
    assert_eq!(world.links().len(), 2);
    assert_eq!(world.topology.role(port(2, 2)), Role::Down);
    assert_eq!(world.topology.role(port(1, 1)), Role::Probing);
    world.events.clear();
    world.topology.set_port(world.now, 2, description(2, true));
    world.pass(SECOND);
    assert_eq!(world.links().len(), 3);
    assert!(world.events.contains(&Event::LinkLost(port(1, 1), port(2, 2), LinkLoss::PortDown)));
    world.topology.remove_port(world.now, port(3, 1));
    assert_eq!((world.links().len(), world.topology.role(port(3, 1))), (2, Role::Down));
}

#[test]
fn suspended_controller_loses_no_link() {
    let mut world = World::new(2, &[(port(1, 1), port(2, 1))]);
    world.pass(SECOND);
    world.now = world.now.after(60 * SECOND);
    world.pass(10 * SECOND);
    let is_lost = |event: &&Event| matches!(event, Event::LinkLost(..));
    assert_eq!((world.links().len(), world.events.iter().find(is_lost)), (1, None));
}

#[test]
fn link_is_not_lost_while_octets_of_its_switch_are_unread() {
    let mut world = World::new(2, &[(port(1, 1), port(2, 1))]);
    world.pass(SECOND);
    world.cables.clear();
    [1, 2].iter().for_each(|dpid| world.topology.set_behind(*dpid, true));
    world.pass(10 * SECOND);
    assert_eq!(world.links().len(), 1);
    world.topology.set_behind(2, false);
    world.step();
    assert_eq!(world.links(), [], "the frame contained no probe");
}

#[test]
fn silent_link_is_lost_and_its_ports_carry_nothing_for_the_hold_time() {
    let mut world = World::new(2, &[(port(1, 1), port(2, 1))]);
    world.pass(SECOND);
    world.cables.clear();
    world.pass(Duration::from_millis(2500));
    assert_eq!(world.links().len(), 1);
    world.pass(Duration::from_millis(1200));
    assert_eq!(world.links(), []);
    assert!(world.events.contains(&Event::LinkLost(port(1, 1), port(2, 1), LinkLoss::Silent)));
    assert_eq!(world.topology.role(port(1, 1)), Role::Probing);
    world.pass(31 * SECOND);
    assert_eq!(world.topology.role(port(1, 1)), Role::Edge);
}

/// The queue of an overloaded link delays each probe by 300 ms, and drops two of three.
#[test]
fn link_survives_an_overload_that_drops_most_probes() {
    let (from, to) = (port(1, 1), port(2, 2));
    let mut world = World::new(2, &[(from, to)]);
    world.pass(SECOND);
    world.cables.remove(&from);
    let (mut waiting, mut checked, mut random) = (Vec::new(), world.sent.len(), takt_testkit::Random(7));
    for _ in 0..20 * 120 {
        world.pass(SECOND / 20);
        let new = world.sent[checked..].iter().filter(|(at, _)| *at == from);
        waiting.extend(new.map(|(_, frame)| (world.now.after(Duration::from_millis(300)), frame.clone())));
        checked = world.sent.len();
        while waiting.first().is_some_and(|(due, _)| *due <= world.now) {
            let (_, frame) = waiting.remove(0);
            if random.one_in(3) {
                world.receive(to, &frame);
            }
        }
    }
    let lost = world.events.iter().filter(|event| matches!(event, Event::LinkLost(..))).count();
    assert_eq!((lost, world.links()), (0, vec![(from, to)]));
    let counters = world.topology.counters();
    assert_eq!((counters.repeated, counters.late), (0, 0));
}

#[test]
fn single_direction_is_not_a_link() {
    let mut world = World::new(2, &[]);
    world.cables.insert(port(1, 1), port(2, 1));
    world.pass(10 * SECOND);
    assert_eq!(world.links(), []);
    for end in [port(1, 1), port(2, 1)] {
        assert_eq!(world.topology.role(end), Role::Probing, "{end}");
    }
    world.cables.insert(port(2, 1), port(1, 1));
    world.pass(SECOND);
    assert_eq!(world.links(), [(port(1, 1), port(2, 1))]);
}

#[test]
fn forged_probe_is_refused_and_reported() {
    let mut world = World::new(2, &[]);
    world.pass(SECOND);
    let mut foreign = Topology::new(Config::default(), Key([7; 16]));
    foreign.connect_switch(world.now, 2, vec![description(1, true)]);
    foreign.handle_timeout(world.now);
    let (from, frame) = foreign.poll_probe().expect("a probe");
    assert_eq!(from, port(2, 1));
    world.events.clear();
    world.receive(port(1, 3), &frame);
    assert_eq!(world.events, [Event::ProbeRefused { at: port(1, 3), from: None, why: Refusal::Forged }]);
    assert_eq!((world.topology.counters().forged, world.links().len()), (1, 0));
    assert_eq!(world.topology.role(port(1, 3)), Role::Edge);
    // Every changed octet of a genuine probe is detected, or makes the frame no probe at all.
    // Exceptions are the time to live, which is ignored, and the type and length of the end TLV,
    // which follow everything else.
    let means_nothing = [14 + 11 + 7 + 2, 14 + 11 + 7 + 3];
    let (from, genuine) = world.sent.last().cloned().expect("a probe");
    for at in (14..genuine.len() - 2).filter(|at| !means_nothing.contains(at)) {
        let mut octets = genuine.clone();
        octets[at] ^= 0x10;
        world.receive(if from.dpid == 1 { port(2, 3) } else { port(1, 3) }, &octets);
        assert_eq!(world.topology.counters().accepted, 0, "octet {at}");
    }
}

#[test]
fn repeated_probe_is_refused_at_every_port() {
    let mut world = World::new(3, &[(port(1, 1), port(2, 1))]);
    world.pass(SECOND);
    let (_, old) = world.sent.iter().find(|(from, _)| *from == port(1, 1)).cloned().expect("a probe");
    world.events.clear();
    for at in [port(2, 1), port(3, 3)] {
        world.receive(at, &old);
        let why = Refusal::Repeated;
        assert_eq!(world.events.pop(), Some(Event::ProbeRefused { at, from: Some(port(1, 1)), why }));
    }
    assert_eq!(world.links(), [(port(1, 1), port(2, 1))]);
    assert_eq!(world.topology.counters().repeated, 2);
}

#[test]
fn probe_that_was_relayed_late_is_refused() {
    let mut world = World::new(2, &[]);
    world.pass(SECOND);
    world.sent.clear();
    while world.sent.iter().all(|(from, _)| *from != port(1, 3)) {
        world.pass(Duration::from_millis(50));
    }
    let (_, probe) = world.sent.iter().find(|(from, _)| *from == port(1, 3)).cloned().expect("the probe was sent");
    world.pass(Duration::from_millis(600));
    world.events.clear();
    world.receive(port(2, 3), &probe);
    let refused = Event::ProbeRefused { at: port(2, 3), from: Some(port(1, 3)), why: Refusal::Late };
    assert_eq!(world.events, [refused]);
    assert_eq!((world.topology.counters().late, world.topology.role(port(2, 3))), (1, Role::Edge));
}

#[test]
fn joined_ports_of_one_switch_are_no_edges() {
    let mut world = World::new(1, &[(port(1, 1), port(1, 2))]);
    world.pass(40 * SECOND);
    for end in [port(1, 1), port(1, 2)] {
        assert_eq!(world.topology.role(end), Role::Probing);
    }
    assert_eq!(world.links(), []);
    assert!(world.topology.counters().looped > 0);
}

#[test]
fn cable_that_is_moved_moves_the_link() {
    let mut world = World::new(3, &[(port(1, 1), port(2, 1))]);
    world.pass(SECOND);
    world.cables = BTreeMap::from([(port(1, 1), port(3, 1)), (port(3, 1), port(1, 1))]);
    world.pass(3 * SECOND);
    assert_eq!(world.links(), [(port(1, 1), port(3, 1))]);
    assert!(world.events.contains(&Event::LinkLost(port(1, 1), port(2, 1), LinkLoss::Moved)));
}

#[test]
fn links_of_a_switch_without_its_connection_stay_until_a_port_goes_down() {
    let mut world = World::new(2, &[(port(1, 1), port(2, 1))]);
    world.pass(SECOND);
    world.topology.disconnect_switch(2);
    world.pass(20 * SECOND);
    assert_eq!(world.links().len(), 1);
    let ports = (1..=4).map(|number| description(number, true)).collect();
    world.topology.connect_switch(world.now, 2, ports);
    world.pass(Duration::from_millis(10));
    assert_eq!(world.links().len(), 1, "its silence begins with the connection");
    world.topology.disconnect_switch(2);
    world.topology.set_port(world.now, 1, description(1, false));
    assert_eq!((world.links(), world.topology.switches().collect::<Vec<_>>()), (vec![], vec![1]));
}

#[test]
fn switches_ports_and_events_are_bounded() {
    let config = Config { switches: 2, ports: 3, events: 5, ..Config::default() };
    let mut topology = Topology::new(config, KEY);
    for dpid in 1..=3 {
        let ports = (1..=9).map(|number| description(number, true)).collect();
        assert_eq!(topology.connect_switch(Instant(0), dpid, ports), dpid <= 2);
    }
    assert_eq!(topology.ports(1).count() + topology.ports(2).count(), 6);
    assert_eq!(topology.counters().ports_refused, 12);
    assert_eq!(std::iter::from_fn(|| topology.poll_event()).count(), 5);
    assert_eq!(topology.counters().events_dropped, 1);
}

#[test]
fn lldp_of_hosts_is_ignored() {
    let mut world = World::new(1, &[]);
    world.pass(SECOND);
    world.events.clear();
    let octets = [
        &crate::frame::lldp::NEAREST_BRIDGE.0[..],
        &[2, 0, 0, 0, 0, 9, 0x88, 0xcc],
        &[2, 2, 4, 1, 4, 2, 5, 1, 6, 2, 0, 9],
    ];
    world.receive(port(1, 1), &octets.concat());
    world.receive(port(1, 1), &octets[..2].concat());
    assert_eq!((world.topology.counters().foreign, world.events.len()), (2, 0));
    assert_eq!(world.topology.role(port(1, 1)), Role::Edge);
}
