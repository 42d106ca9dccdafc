//! Simulated switches whose tables follow admission operation by operation.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use takt_calculus::network::Hop;
use takt_openflow::channel::Instant;
use takt_sdn::PortRef;
use takt_sdn::admission::{Admission, Application, End, Outcome, Presence, Sibling};
use takt_sdn::contract::{Contract, Source, Sourced};
use takt_sdn::discovery::Pair;
use takt_sdn::model::{Egress, HostId, NetworkFile, SwitchModel};
use takt_sdn::schedule::PairStages;
use takt_testkit::Random;
use takt_wire::{EntityId, Guid, GuidPrefix};

use super::queued::{Counted, Queued, first_name};
use super::tables::{Datagram, Tables, Trace, key, trace};
use crate::admission::{CLASSES, NETWORK};
use crate::fabric::port;

const SWITCHES: u64 = 5;
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
const USER: u16 = 7411;
const SAMPLES: u16 = 7401;
const EDGE: u32 = 9;

/// Order in which switches execute operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order of the controller, random between switches.
    Confirmed,
    /// Every operation counts as confirmed when it is requested.
    NoBarrier,
    /// Like `NoBarrier`, with the first switch of each flow before others.
    FirstSwitchFirst,
    /// Like `NoBarrier`, with deletions before all other operations.
    OldRemovedEarly,
    /// The order of the controller, without waiting for frames under way.
    NoDrain,
    /// The order of the controller, with half the necessary waits.
    ShortDrain,
}

/// Kind of the requested pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Any pairs.
    Mixed,
    /// Pairs to one host with strict limits, which change their classes for each other.
    Strict,
    /// Protected unicast pairs, among others without protection.
    Protected,
}

impl Order {
    /// Reports whether the controller waits for the confirmations of switches.
    fn is_confirmed(self) -> bool {
        matches!(self, Self::Confirmed | Self::NoDrain | Self::ShortDrain)
    }
}

/// Counts of events, which show that a run covers all kinds.
#[derive(Debug, Default)]
pub struct Coverage {
    operations: usize,
    admitted: usize,
    groups: usize,
    class_changes: usize,
    rerouted: usize,
    gone: usize,
    waits: usize,
    kept: usize,
}

impl Coverage {
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.admitted += other.admitted;
        self.groups += other.groups;
        self.class_changes += other.class_changes;
        self.rerouted += other.rerouted;
        self.gone += other.gone;
        self.waits += other.waits;
        self.kept += other.kept;
    }

    pub fn is_everything(&self) -> bool {
        let Self { operations, admitted, groups, class_changes, rerouted, gone, waits, kept } = *self;
        [operations, admitted, groups, class_changes, rerouted, gone, waits, kept].iter().all(|n| *n > 0)
    }
}

pub struct World {
    load: Load,
    admission: Admission,
    cables: Vec<(PortRef, PortRef)>,
    is_up: Vec<bool>,
    executed: BTreeMap<u64, Tables>,
    confirmed: BTreeMap<u64, Tables>,
    /// Number of executions and confirmations per switch.
    versions: BTreeMap<u64, u64>,
    /// Source of versions of switches that are never equal.
    examinations: Cell<u64>,
    applications: BTreeMap<Pair, Application>,
    released: BTreeSet<Pair>,
    /// Pairs with which the writer begins to send by multicast.
    joined: BTreeSet<Pair>,
    /// Hosts that a failed link cut off from datagrams, until the change is complete.
    cut: BTreeSet<(Datagram, HostId)>,
    /// Datagrams and hosts with a class before the change, until it is complete.
    had: BTreeSet<(Datagram, HostId)>,
    members: BTreeSet<PortRef>,
    next: u8,
    /// Ports and classes of flows by the certificate before the change, and by that after it.
    before: Places,
    after: Places,
    pub coverage: Coverage,
    now_ns: u64,
    /// Time as seen by the controller.
    controller_time: Instant,
    queued: Queued,
    /// All flows ever requested.
    names: BTreeMap<String, Datagram>,
    /// Datagrams that the scheduler has counted since the controller last advanced.
    counted: Counted,
    /// Whether a link fails.
    is_failure: bool,
    /// Description of the present change.
    change: String,
}

fn address(host: HostId) -> IpAddr {
    IpAddr::from([10, 0, 0, host.0 as u8])
}

fn edge(host: HostId) -> PortRef {
    port(host.0, EDGE)
}

fn end(host: HostId) -> End {
    End { host, vlan: 0, address: address(host), trailer_len: 0 }
}

fn sourced<T>(value: T) -> Sourced<T> {
    Sourced::new(value, Source::Default)
}

fn guid(number: u8, entity: u8) -> Guid {
    let prefix = GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 0, number]);
    Guid { prefix, entity_id: EntityId([0, 0, entity, 2]) }
}

impl World {
    /// Creates a ring with a chord, a host at each switch, and no flows.
    pub fn new(random: &mut Random, load: Load) -> Self {
        let file = NetworkFile::parse("network.toml", NETWORK, SwitchModel::built_in).expect("a valid file");
        let mut cables: Vec<_> = (1..=SWITCHES).map(|n| (port(n, 1), port(n % SWITCHES + 1, 2))).collect();
        let chord = random.between(1, SWITCHES);
        cables.push((port(chord, 3), port((chord + 1) % SWITCHES + 1, 4)));
        let tables: BTreeMap<u64, Tables> = (1..=SWITCHES).map(|dpid| (dpid, Tables::default())).collect();
        let mut world = Self {
            load,
            admission: Admission::new(file),
            is_up: vec![true; cables.len()],
            cables,
            executed: tables.clone(),
            confirmed: tables,
            versions: BTreeMap::new(),
            examinations: Cell::new(0),
            applications: BTreeMap::new(),
            released: BTreeSet::new(),
            joined: BTreeSet::new(),
            cut: BTreeSet::new(),
            had: BTreeSet::new(),
            members: BTreeSet::new(),
            next: 0,
            before: Places::new(),
            after: Places::new(),
            coverage: Coverage::default(),
            now_ns: 0,
            controller_time: Instant(0),
            queued: Queued::default(),
            names: BTreeMap::new(),
            counted: Counted::new(),
            is_failure: false,
            change: String::new(),
        };
        world.set_network();
        world
    }

    fn links(&self) -> Vec<(PortRef, PortRef)> {
        let up = self.cables.iter().zip(&self.is_up).filter(|(_, is_up)| **is_up);
        up.map(|(cable, _)| *cable).collect()
    }

    fn both_ways(&self) -> BTreeMap<PortRef, PortRef> {
        self.links().iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect()
    }

    fn set_network(&mut self) {
        let hosts = (1..=SWITCHES).map(|n| (HostId(n), edge(HostId(n))));
        let network = self.admission.file().network(1..=SWITCHES, self.links().into_iter(), hosts);
        self.admission.set_network(network);
        self.set_members();
    }

    fn set_members(&mut self) {
        let (links, members) = (self.links().into_iter().collect(), self.members.clone());
        self.admission.set_members(links, |_| members.clone());
    }

    /// Makes a random change: adds or removes a flow, a reader of a writer or a member of the
    /// group, or toggles a link.
    pub fn reconfigure(&mut self, random: &mut Random) {
        (self.before, self.had) = (self.places(), self.served());
        (self.queued.before, self.is_failure) = (Some(self.admission.scheduler().certificate()), false);
        match random.below(10) {
            0..=8 if self.load == Load::Strict => self.add_pair(random, None),
            9 if self.load == Load::Strict => self.remove_pair(random),
            0..=3 => self.add_pair(random, None),
            4 | 5 if self.load == Load::Protected => self.toggle_link(random),
            4 | 5 => {
                let writers: Vec<Pair> = self.released.iter().copied().collect();
                let known = (!writers.is_empty()).then(|| writers[random.below(writers.len())]);
                self.add_pair(random, known);
            }
            6 => self.remove_pair(random),
            7 => {
                let at = edge(HostId(random.between(1, SWITCHES)));
                self.change = format!("{at} is a member or not");
                if !self.members.remove(&at) {
                    self.members.insert(at);
                }
                self.set_members();
            }
            _ => self.toggle_link(random),
        }
        if self.admission.has_new_groups() {
            self.set_members();
        }
        self.after = self.places();
        self.cut_trees();
    }

    /// Marks the other receivers of a group with a broken path as cut off: they wait, too, if the
    /// new path does not fit together with theirs.
    fn cut_trees(&mut self) {
        let broken: BTreeSet<Datagram> = self.cut.iter().map(|(datagram, _)| *datagram).collect();
        for (datagram, host) in self.served() {
            let path = self.way(&datagram, host);
            let is_kept = path.iter().all(|(out, dscp)| {
                let class = CLASSES.iter().position(|own| own == dscp);
                class.is_some_and(|class| self.after.contains(&(datagram, *out, class)))
            });
            if datagram.destination.is_multicast() && broken.contains(&datagram) && !is_kept {
                self.cut.insert((datagram, host));
            }
        }
    }

    /// Returns the ports by which a host gets datagrams, with the DSCPs there.
    fn way(&self, datagram: &Datagram, host: HostId) -> Vec<(PortRef, u8)> {
        let copies = self.trace(datagram).copies;
        let mut path = Vec::new();
        let mut at = copies.iter().position(|copy| copy.out == edge(host));
        while let Some(n) = at {
            path.push((copies[n].out, copies[n].dscp));
            at = copies[n].after;
        }
        path
    }

    fn toggle_link(&mut self, random: &mut Random) {
        let down = self.is_up.iter().position(|is_up| !is_up);
        let at = down.unwrap_or_else(|| random.below(self.cables.len()));
        for (datagram, host) in self.served() {
            let (a, b) = self.cables[at];
            if down.is_none() && self.way(&datagram, host).iter().any(|(out, _)| [a, b].contains(out)) {
                if self.is_protected(&datagram) {
                    self.coverage.kept += 1;
                    continue;
                }
                self.coverage.rerouted += 1;
                self.cut.insert((datagram, host));
            }
        }
        self.change = format!("link {:?} is up: {}", self.cables[at], down.is_some());
        self.is_up[at] = down.is_some();
        self.is_failure = down.is_none();
        self.set_network();
    }

    /// Reports whether a flow survives the failure of any link.
    fn is_protected(&self, datagram: &Datagram) -> bool {
        let scheduler = self.admission.scheduler();
        let own = |name: &str| self.names.get(name) == Some(datagram);
        let id = scheduler.requests().find(|(_, request)| own(&request.name)).map(|(id, _)| id);
        id.and_then(|id| scheduler.coverage(id)).is_some_and(|coverage| coverage.links == coverage.total)
    }

    fn remove_pair(&mut self, random: &mut Random) {
        let pairs: Vec<Pair> = self.applications.keys().copied().collect();
        if pairs.is_empty() {
            return;
        }
        let pair = pairs[random.below(pairs.len())];
        self.applications.remove(&pair);
        self.coverage.gone += usize::from(self.released.remove(&pair));
        self.admission.remove_pair(pair);
        self.change = format!("{pair} leaves");
    }

    /// Adds a reader to the writer of a pair, or a new writer and reader.
    fn add_pair(&mut self, random: &mut Random, known: Option<Pair>) {
        self.next += 1;
        let known = known.and_then(|pair| self.applications.get(&pair)).cloned();
        let writer = known.as_ref().map_or_else(|| HostId(random.between(1, SWITCHES)), |own| own.writer.host);
        let reader = HostId((writer.0 + random.between(0, SWITCHES - 2)) % SWITCHES + 1);
        let of_writer = known.as_ref().map_or_else(|| guid(self.next, 1), |own| own.pair.writer);
        let pair = Pair { writer: of_writer, reader: guid(self.next, 7) };
        let is_strict = self.load == Load::Strict;
        let [separation, size, limit] = match self.load {
            Load::Mixed => [(4, 40), (50, 4000), (2_000, 30_000)],
            Load::Protected => [(10, 60), (50, 2000), (5_000, 60_000)],
            Load::Strict => [(30, 60), (100, 1000), (4_000, 16_000)],
        }
        .map(|(least, most)| random.between(least, most));
        let (writer, reader) = if is_strict { (HostId(1 + writer.0 % 2), HostId(3)) } else { (writer, reader) };
        let contract = Contract {
            separation: sourced(Duration::from_millis(separation)),
            jitter: sourced(Duration::ZERO),
            size: sourced(size as u32),
            limit: sourced(Duration::from_micros(limit)),
            importance: sourced(random.between(0, 2) as i32),
            is_protected: sourced(self.load == Load::Protected && !random.one_in(3)),
        };
        let is_reliable = known.as_ref().map_or_else(|| !is_strict && random.one_in(3), |own| own.has_reliable_writer);
        // A third of the pairs share the port USER, so that no flow rule matches the datagrams of
        // one such pair alone.
        let number = u16::from(if !is_strict && random.one_in(3) { 0 } else { self.next });
        let application = Application {
            pair,
            name: format!("Topic {pair}"),
            contract: known.as_ref().map_or(contract, |own| own.contract),
            writer: end(writer),
            reader: end(reader),
            data_port: USER + number,
            answer_port: is_reliable.then_some(USER + number),
            has_reliable_writer: is_reliable,
            announces_groups: true,
            probes_paths: random.one_in(2),
            groups: known.iter().map(|_| SocketAddr::from((GROUP, SAMPLES))).collect(),
            stages: PairStages::default(),
        };
        let others = self.applications.values_mut().filter(|other| other.pair.writer == of_writer);
        let siblings = others.filter(|other| self.admission.is_admitted(other.pair)).map(|other| {
            other.groups.clone_from(&application.groups);
            Sibling { pair: other.pair, application: Ok(other.clone()) }
        });
        let siblings: Vec<Sibling> = siblings.collect();
        self.change = format!("{pair} from {writer:?} to {reader:?} comes with {} others", siblings.len());
        if known.is_some() {
            self.joined.insert(pair);
        }
        self.names.extend(siblings.iter().filter_map(|own| own.application.as_ref().ok()).flat_map(named));
        self.names.extend(named(&application));
        self.admission.request(&application, &siblings);
        self.applications.insert(pair, application);
    }

    /// Executes and confirms operations until none is left.
    ///
    /// # Errors
    /// The violation in an intermediate state.
    pub fn run_operation(&mut self, random: &mut Random, order: Order) -> Result<(), String> {
        loop {
            self.advance(order);
            let operations = self.operations();
            let open: Vec<u64> =
                self.executed.keys().copied().filter(|dpid| self.executed[dpid] != self.confirmed[dpid]).collect();
            self.now_ns += random.between(1_000, 200_000);
            match (operations.is_empty(), open.is_empty()) {
                (true, true) if order.is_confirmed() && self.admission.deadline().is_some() => self.wait(order),
                (true, true) => break,
                (false, true) => self.execute(random, order, operations),
                (false, false) if random.one_in(2) => self.execute(random, order, operations),
                _ => {
                    let dpid = open[random.below(open.len())];
                    let executed = self.executed[&dpid].clone();
                    self.confirmed.insert(dpid, executed);
                    *self.versions.entry(dpid).or_default() += 1;
                    continue;
                }
            }
            self.check()?;
        }
        self.cut.clear();
        self.had.clear();
        self.check()?;
        if order.is_confirmed() && !self.queued.is_drained() {
            return Err(format!(
                "nothing waits for frames that are under way: {:?} after {}",
                self.queued, self.change
            ));
        }
        Ok(())
    }

    /// Advances the time to the next deadline of admission.
    fn wait(&mut self, order: Order) {
        let Some(Instant(until_ns)) = self.admission.deadline() else { return };
        self.coverage.waits += 1;
        match order {
            Order::NoDrain => {}
            Order::ShortDrain => self.now_ns = self.now_ns.max(until_ns.div_ceil(2)),
            _ => self.now_ns = self.now_ns.max(until_ns),
        }
    }

    /// Sets the time that the controller sees.
    fn set_controller_time(&mut self, order: Order) {
        self.controller_time = match order {
            Order::NoDrain => Instant(self.controller_time.0 + 1_000_000_000),
            Order::ShortDrain => Instant(self.now_ns * 2),
            _ => Instant(self.now_ns),
        };
    }

    fn advance(&mut self, order: Order) {
        let count = self.admission.scheduler().requests().count();
        loop {
            self.set_controller_time(order);
            let Self { admission, executed, confirmed, versions, examinations, controller_time, .. } = self;
            // In orders without confirmation, every operation counts as confirmed at once.
            let version = |dpid: u64| match order.is_confirmed() {
                true => versions.get(&dpid).copied().unwrap_or_default(),
                false => examinations.replace(examinations.get() + 1),
            };
            let wanted: BTreeMap<u64, Tables> = executed.keys().map(|dpid| (*dpid, wanted(admission, *dpid))).collect();
            let tables = if order.is_confirmed() { &*confirmed } else { &wanted };
            let is_changed = admission.advance(
                *controller_time,
                |entry| {
                    let (tables, at) = (&tables[&entry.dpid], key(&entry.flow));
                    let is_open = order.is_confirmed() && executed[&entry.dpid].flows.get(&at) != tables.flows.get(&at);
                    let meter = entry.meter.as_ref().map(|meter| meter.meter);
                    let has_group = entry.group.as_ref().is_none_or(|group| {
                        let own = tables.groups.get(&group.group);
                        own == Some(group)
                            && (!order.is_confirmed() || executed[&entry.dpid].groups.get(&group.group) == own)
                    });
                    let has_meter = |id: u32| {
                        let own = tables.meters.get(&id);
                        own == entry.meter.as_ref()
                            && (!order.is_confirmed() || executed[&entry.dpid].meters.get(&id) == own)
                    };
                    match tables.flows.get(&at) {
                        _ if is_open => Presence::Other,
                        None => Presence::Absent,
                        Some(flow) if *flow == entry.flow && meter.is_none_or(has_meter) && has_group => Presence::Same,
                        Some(_) => Presence::Other,
                    }
                },
                |_| true,
                version,
            );
            for outcome in admission.take_outcomes() {
                match outcome {
                    Outcome::Admitted { pair, .. } => {
                        self.coverage.admitted += 1;
                        self.released.insert(pair);
                    }
                    Outcome::Refused { pair, .. } => {
                        self.released.remove(&pair);
                        self.applications.remove(&pair);
                    }
                    _ => {}
                }
            }
            if !is_changed {
                break;
            }
        }
        if self.admission.scheduler().requests().count() < count {
            let present = self.admission.scheduler().certificate();
            self.queued.shorten(&self.names, &present);
        }
        self.counted = self.places().iter().map(|(datagram, port, _)| (*datagram, *port)).collect();
    }

    /// Returns the pending operations of switches: a meter before flows, the flow of a key, or the
    /// deletion of a meter.
    fn operations(&self) -> Vec<(u64, Operation)> {
        let mut operations = Vec::new();
        for (dpid, has) in &self.executed {
            let wants = wanted(&self.admission, *dpid);
            let meters = wants.meters.iter().filter(|(id, meter)| has.meters.get(id) != Some(meter));
            let groups = wants.groups.iter().filter(|(id, group)| has.groups.get(id) != Some(group));
            let groups = groups.map(|(id, _)| (*dpid, Operation::Group(*id)));
            let meters: Vec<_> = meters.map(|(id, _)| (*dpid, Operation::Meter(*id))).chain(groups).collect();
            if !meters.is_empty() {
                operations.extend(meters);
                continue;
            }
            let keys: BTreeSet<_> = has.flows.keys().chain(wants.flows.keys()).copied().collect();
            let flows: Vec<_> = keys.into_iter().filter(|key| has.flows.get(key) != wants.flows.get(key)).collect();
            let is_last = flows.is_empty();
            operations.extend(flows.into_iter().map(|key| (*dpid, Operation::Flow(key))));
            let removed = has.meters.keys().filter(|id| is_last && !wants.meters.contains_key(id));
            operations.extend(removed.map(|id| (*dpid, Operation::Meter(*id))));
            let removed = has.groups.keys().filter(|id| is_last && !wants.groups.contains_key(id));
            operations.extend(removed.map(|id| (*dpid, Operation::Group(*id))));
        }
        operations
    }

    fn execute(&mut self, random: &mut Random, order: Order, operations: Vec<(u64, Operation)>) {
        let is_first = |(dpid, operation): &(u64, Operation)| match operation {
            Operation::Meter(_) | Operation::Group(_) => true,
            Operation::Flow(key) => match order {
                Order::FirstSwitchFirst => key.0 == EDGE,
                Order::OldRemovedEarly => !wanted(&self.admission, *dpid).flows.contains_key(key),
                _ => true,
            },
        };
        let first: Vec<(u64, Operation)> = operations.iter().filter(|operation| is_first(operation)).copied().collect();
        let chosen = if first.is_empty() { operations } else { first };
        let (dpid, operation) = chosen[random.below(chosen.len())];
        let wants = wanted(&self.admission, dpid);
        *self.versions.entry(dpid).or_default() += 1;
        let has = self.executed.get_mut(&dpid).expect("the switch exists");
        match operation {
            Operation::Meter(id) => match wants.meters.get(&id) {
                Some(meter) => _ = has.meters.insert(id, meter.clone()),
                None => _ = has.meters.remove(&id),
            },
            Operation::Group(id) => match wants.groups.get(&id) {
                Some(group) => _ = has.groups.insert(id, group.clone()),
                None => _ = has.groups.remove(&id),
            },
            Operation::Flow(key) => match wants.flows.get(&key) {
                Some(flow) => {
                    let before = has.flows.insert(key, flow.clone());
                    self.coverage.class_changes += usize::from(before.is_some_and(|before| before != *flow));
                }
                None => _ = has.flows.remove(&key),
            },
        }
        self.coverage.operations += 1;
    }

    fn trace(&self, datagram: &Datagram) -> Trace {
        let host = HostId(match datagram.source {
            IpAddr::V4(address) => address.octets()[3].into(),
            IpAddr::V6(_) => unreachable!("only IPv4 is used"),
        });
        trace(&self.executed, &self.both_ways(), edge(host), datagram)
    }

    /// Returns the datagrams of admitted pairs, with the hosts that get them.
    fn served(&self) -> BTreeSet<(Datagram, HostId)> {
        let pairs = self.released.iter().filter_map(|pair| self.applications.get(pair));
        let of = |own: &Application| {
            let mut joined = self.joined.intersection(&self.released);
            let is_sent_by_multicast = joined.any(|pair| pair.writer == own.pair.writer);
            let datagrams = named(own).into_iter().map(|(_, datagram)| datagram);
            let sent = datagrams.filter(move |datagram| is_sent_by_multicast || !datagram.destination.is_multicast());
            let (writer, reader) = (own.writer, own.reader);
            let host =
                move |datagram: &Datagram| if datagram.source == reader.address { writer.host } else { reader.host };
            sent.map(move |datagram| (datagram, host(&datagram))).collect::<Vec<_>>()
        };
        pairs.flat_map(of).collect()
    }

    /// Traces a frame of each admitted flow.
    ///
    /// # Errors
    /// A violation of the proof.
    fn check(&mut self) -> Result<(), String> {
        let served = self.served();
        let datagrams: BTreeSet<Datagram> = served.iter().map(|(datagram, _)| *datagram).collect();
        let mut traced = Vec::new();
        for datagram in datagrams {
            let trace = self.trace(&datagram);
            let complain = |what: &str| Err(format!("{what}: {datagram:?} {trace:?} while {}", self.change));
            if trace.has_loop {
                return complain("a frame reaches a switch twice");
            } else if trace.lacks_group {
                return complain("the group is not there");
            } else if trace.lacks_meter {
                return complain("the meter is not there");
            } else if let Some(dpid) = trace.stranded {
                return complain(&format!("switch {dpid} has no entry"));
            }
            for host in (1..=SWITCHES).map(HostId) {
                let copies: Vec<u8> =
                    trace.copies.iter().filter(|copy| copy.out == edge(host)).map(|copy| copy.dscp).collect();
                let is_served = served.contains(&(datagram, host));
                let is_cut = self.cut.contains(&(datagram, host));
                let mut known = self.applications.values().filter(|own| own.writer.address == datagram.source);
                let is_reader = known.any(|own| own.reader.host == host) || self.had.contains(&(datagram, host));
                match copies.as_slice() {
                    [dscp] if CLASSES.contains(dscp) && (is_served || is_reader) => {}
                    // Copies to other hosts are not proved; but at most one of them has a class,
                    // for a reader that joins or leaves.
                    copies if !is_served || is_cut => {
                        let classed = copies.iter().filter(|dscp| **dscp != 0).count();
                        if classed > usize::from(is_reader) {
                            return complain(&format!("host {} gets {copies:?}", host.0));
                        }
                    }
                    copies => return complain(&format!("host {} gets {copies:?}", host.0)),
                }
            }
            self.coverage.groups += usize::from(datagram.destination.is_multicast());
            traced.push((datagram, trace));
        }
        self.prove(&traced)?;
        self.check_queues(&traced)
    }

    /// Checks queued frames, which count independent of the entries for later frames.
    fn check_queues(&mut self, traced: &[(Datagram, Trace)]) -> Result<(), String> {
        let is_served = |datagram: &&Datagram| traced.iter().any(|(own, _)| own == *datagram);
        let leaving = self.queued.sent.iter().filter(|datagram| !is_served(datagram));
        let leaving: Vec<(Datagram, Trace)> = leaving.map(|datagram| (*datagram, self.trace(datagram))).collect();
        self.queued.sent.extend(traced.iter().map(|(datagram, _)| *datagram));
        let mut live = Places::new();
        for (datagram, Trace { copies, .. }) in traced.iter().chain(&leaving) {
            let datagram = *datagram;
            let class = |dscp: u8| CLASSES.iter().position(|own| *own == dscp);
            live.extend(copies.iter().filter_map(|copy| Some((datagram, copy.out, class(copy.dscp)?))));
        }
        let scheduler = self.admission.scheduler();
        self.queued.follow(self.now_ns, live, &self.names, || scheduler.certificate());
        let checked = self.queued.check(&self.counted, &self.before, self.is_failure);
        checked.map_err(|why| format!("{why} while {}", self.change))
    }

    /// Checks that the ports and classes of flows are those of the certificate before or after the
    /// change, except for classes that change one by one.
    fn prove(&self, traced: &[(Datagram, Trace)]) -> Result<(), String> {
        let mut now = Places::new();
        for (datagram, trace) in traced {
            for copy in &trace.copies {
                // Copies in the lowest class are not part of the certificate.
                if let Some(class) = CLASSES.iter().position(|dscp| *dscp == copy.dscp) {
                    now.insert((*datagram, copy.out, class));
                }
            }
        }
        let not_before: Vec<_> = now.difference(&self.before).collect();
        let not_after: Vec<_> = now.difference(&self.after).collect();
        if not_before.is_empty() || not_after.is_empty() {
            return Ok(());
        }
        let at = |places: &Places, (datagram, port, _): &Place| {
            places.iter().any(|(own, at, _)| (own, at) == (datagram, port))
        };
        let is_class_change = |place: &&&Place| at(&self.before, place) && at(&self.after, place);
        let others: Vec<_> = not_before.iter().chain(&not_after).filter(|place| !is_class_change(place)).collect();
        if others.is_empty() {
            return Ok(());
        }
        Err(format!("{others:?} is in neither proof while {}", self.change))
    }

    /// Returns the ports and classes of flows on all their paths, including retiring backup paths.
    fn backup_positions(&self) -> Places {
        let certificate = self.admission.scheduler().certificate();
        let ports: BTreeMap<String, PortRef> = (1..=SWITCHES)
            .flat_map(|dpid| (1..=EDGE).map(move |number| port(dpid, number)))
            .map(|port| (Egress::Switch(port).to_string(), port))
            .collect();
        let has_several =
            |name: &str| certificate.flows.iter().any(|flow| flow.name != name && first_name(&flow.name) == name);
        let mut places = Places::new();
        for flow in certificate.flows.iter().filter(|flow| has_several(first_name(&flow.name))) {
            let Some(datagram) = self.names.get(first_name(&flow.name)) else { continue };
            let place = |hop: &Hop| Some((*datagram, *ports.get(&certificate.ports[hop.port].name)?, hop.class));
            places.extend(flow.hops.iter().filter_map(place));
        }
        places
    }

    /// Returns the ports and classes of all admitted flows.
    fn places(&self) -> Places {
        let snapshot = self.admission.snapshot();
        let scheduler = self.admission.scheduler();
        let names = &self.names;
        let ids: BTreeSet<_> = scheduler.requests().map(|(id, _)| id).collect();
        let mut places = self.backup_positions();
        for route in ids.into_iter().filter_map(|id| scheduler.routes(&snapshot, id)).flatten() {
            let Some(datagram) = names.get(&route.name) else { continue };
            for hop in &route.hops {
                if let Egress::Switch(port) = hop.port {
                    places.insert((*datagram, port, hop.class));
                }
            }
        }
        places
    }
}

/// Output port of datagrams at a switch, with their class.
pub type Place = (Datagram, PortRef, usize);
pub type Places = BTreeSet<Place>;

/// Returns the flows of a pair, by name.
fn named(own: &Application) -> Vec<(String, Datagram)> {
    let samples = Datagram { source: own.writer.address, destination: own.reader.address, port: own.data_port };
    let answers = own.answer_port.map(|port| {
        let answers = Datagram { source: own.reader.address, destination: own.writer.address, port };
        (format!("{}, its ACKNACKs", own.name), answers)
    });
    let groups = own.groups.iter().map(|group| {
        let to_group = Datagram { destination: group.ip(), port: group.port(), ..samples };
        (format!("{} to group {group}", own.pair.writer), to_group)
    });
    [(own.name.clone(), samples)].into_iter().chain(answers).chain(groups).collect()
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Meter(u32),
    Flow(super::tables::Key),
    Group(u32),
}

fn wanted(admission: &Admission, dpid: u64) -> Tables {
    Tables::of(admission.entries(dpid), admission.meters(dpid), admission.groups(dpid))
}
