//! Admission of pairs: from a contract to flow entries that are in force, and back.
//!
//! A pair is one flow from the writer's host to the reader's. A reliable pair has a second one for its ACKNACKs. Pairs whose datagrams no rule
//! tells apart share a flow: those with the same addresses and UDP port, and the ACKNACKs of pairs in the other direction. The flow has the
//! sum of their rates and bursts. Each share is a request of the [`Scheduler`], which joins those that are there; the pair is admitted with all
//! its shares or not at all. Then the entries are wanted one after the other, from the last switch to the first, each once the one before is
//! in its switch. The pair is released when all are there with a meter that passes its share, and flows that were moved for it have their
//! entries of now.
//!
//! The share of a pair that is gone, or does not fit any more, is free when no meter passes it any more and its last frames have drained: the meter falls
//! first. The last pair of a flow takes the entries with it. Refused pairs are tried again, the most important first, when a share is free or the network has
//! changed.
//!
//! **What is asked for.** Samples may come to the interface as late as the contract says, so that the meter lets several pass at once: the meter's burst
//! has what comes within the jitter, the variation of forwarding before the meter, and the step in which the meter counts time. HEARTBEATs of a
//! reliable writer go by the same entries as its samples: each datagram has room for one, and those that it sends on their own count as
//! samples. The separation is shortened to what the meter lets pass at its rate, which is a whole number of kilobits per second.

mod change;
mod demand;
mod drain;
mod explain;
mod flows;
mod groups;
mod protection;
mod shared;
mod strangers;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use takt_openflow::channel::Instant;
use takt_openflow::flow::FlowMod;
use takt_openflow::group::GroupMod;
use takt_openflow::meter::MeterMod;

use self::change::ClassChanges;
use self::demand::Demand;
use self::drain::{BrokenWays, Past};
pub use self::explain::{Admissible, Progress, Refusal, Trial};
use self::flows::Flows;
pub use self::groups::Sibling;
pub use self::protection::Protection;
use self::protection::Protections;
use self::shared::{Share, SharedFlow, requests};
use self::strangers::{Strangers, stranger_reason};
use crate::contract::Contract;
use crate::controller::FlowKey;
use crate::devices::Vlan;
use crate::discovery::Pair;
use crate::forwarding::Link;
use crate::model::{HostId, Network, NetworkFile, Snapshot, WithoutContract};
use crate::rules::{Entry, Selector, entries};
use crate::schedule::{self, PairStages, Refused, Remedies, RequestId, Scheduler};

/// Meters below are those of packets to the controller.
pub(crate) const FIRST_METER: u32 = 0x1000;

/// Requests of a flow that its name lists.
const NAMES_SHOWN: usize = 3;

/// Why a pair waits without a verdict.
const LEAVING: &str = "flow entries of an earlier pair with its addresses are leaving";

/// One end of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The interface of its host.
    pub host: HostId,
    /// The VLAN of its frames, which is that of the other end.
    pub vlan: Vlan,
    /// The address that it sends from.
    pub address: IpAddr,
    /// Octets that its participant appends to each datagram.
    pub trailer_len: u64,
}

impl End {
    /// What tells the datagrams of this end to a UDP port of another.
    pub fn selector_to(&self, other: &Self, port: u16) -> Selector {
        Selector { sender: self.host, vlan: self.vlan, source: self.address, destination: other.address, port }
    }
}

/// A pair that asks for admission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// The pair.
    pub pair: Pair,
    /// For people.
    pub name: String,
    /// What the pair declares.
    pub contract: Contract,
    /// The writer.
    pub writer: End,
    /// The reader.
    pub reader: End,
    /// The UDP port where the reader receives samples.
    pub data_port: u16,
    /// The UDP port where a reliable writer receives ACKNACKs.
    pub answer_port: Option<u16>,
    /// Whether the writer is reliable: samples by multicast may have HEARTBEATs, for whatever reader of the group.
    pub has_reliable_writer: bool,
    /// Whether the reader announces groups: before the writer sends by one of them, or by unicast again, its participant asks the reader.
    pub announces_groups: bool,
    /// Whether the writer asks best-effort readers if long datagrams reach them, as those of Takt do.
    pub asks_about_paths: bool,
    /// The multicast groups by which the writer may send samples to the reader.
    pub groups: Vec<SocketAddr>,
    /// What its hosts add to the latency.
    pub stages: PairStages,
}

/// What a switch has of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Nothing.
    Absent,
    /// An entry with the same match that does something else.
    Other,
    /// The entry.
    Same,
    /// The switch refuses it.
    Refused,
}

/// A decision that the interceptor follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All entries are in force: the pair may match.
    Admitted {
        /// The pair.
        pair: Pair,
        /// Longest time from the first stage of the writer's host, or from its interface, to the end of the reader's last one, or to its host.
        bound_ns: u64,
    },
    /// The pair must not match.
    Refused {
        /// The pair.
        pair: Pair,
        /// The binding hop and what would make it fit, or what is not known.
        reason: String,
    },
    /// A pair that needs no admission, and waited or was refused, may match.
    Free {
        /// The pair.
        pair: Pair,
    },
    /// An admitted pair shares its class and its meter with a topic without a contract.
    Caution {
        /// The pair.
        pair: Pair,
        /// The topic.
        topic: String,
    },
    /// What becomes of a matched pair when a link fails is another than it was.
    Protection {
        /// The pair.
        pair: Pair,
        /// What it has now.
        protection: Protection,
    },
}

impl Outcome {
    /// The pair that was decided on.
    pub fn pair(&self) -> Pair {
        match self {
            Self::Admitted { pair, .. }
            | Self::Refused { pair, .. }
            | Self::Free { pair }
            | Self::Caution { pair, .. }
            | Self::Protection { pair, .. } => *pair,
        }
    }
}

#[derive(Debug)]
struct Admitted {
    /// Ascends in the order of admission.
    order: u64,
    importance: i32,
    /// Its flows: that of samples first.
    selectors: Vec<Selector>,
    /// Flows of other pairs that must be in force before it matches.
    awaited: BTreeSet<Selector>,
    bound_ns: u64,
    /// Of its hosts.
    stages: PairStages,
    is_released: bool,
    protection_told: Protection,
}

/// Entries and meters of one flow, by their switches.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The entries, each with what identifies it.
    pub flows: Vec<(u64, Arc<FlowKey>, FlowMod)>,
    /// The meters, by switch and number.
    pub meters: BTreeMap<(u64, u32), MeterMod>,
    /// The groups, by switch and number.
    pub groups: BTreeMap<(u64, u32), GroupMod>,
}

/// Admitted pairs, and those that wait.
pub struct Admission {
    file: NetworkFile,
    network: Network,
    scheduler: Scheduler,
    admitted: BTreeMap<Pair, Admitted>,
    /// Those that are not released.
    unreleased: BTreeSet<Pair>,
    flows: Flows,
    strangers: Strangers,
    /// Pairs that match when these flows of admitted ones are in force.
    companions: BTreeMap<Pair, BTreeSet<Selector>>,
    /// Refused pairs, and those that wait for the entries of others to leave.
    refused: BTreeMap<Pair, Refusal>,
    owners: BTreeMap<RequestId, Selector>,
    class_changes: ClassChanges,
    protections: Protections,
    broken_ways: BrokenWays,
    /// The wait until budgets may fall.
    past: Past,
    /// The earliest end of all waits.
    deadline: Option<Instant>,
    next_order: u64,
    meters: BTreeSet<u32>,
    /// All meters below are in use.
    free_meter: u32,
    /// Of all switches.
    links: Arc<BTreeSet<Link>>,
    has_new_groups: bool,
    outcomes: Vec<Outcome>,
    is_changed: bool,
    shall_retry: bool,
    /// Whether a switch may take entries now that it refused before.
    has_table_room: bool,
    /// Refused pairs that are to be tried again, the next one last.
    retries: Vec<Pair>,
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pairs admitted, {} refused", self.admitted.len(), self.refused.len())
    }
}

impl Admission {
    /// No pair, in a network that is not known yet.
    pub fn new(file: NetworkFile) -> Self {
        Self {
            file,
            network: Network::default(),
            scheduler: Scheduler::default(),
            admitted: BTreeMap::new(),
            unreleased: BTreeSet::new(),
            flows: Flows::default(),
            strangers: Strangers::default(),
            companions: BTreeMap::new(),
            refused: BTreeMap::new(),
            owners: BTreeMap::new(),
            class_changes: ClassChanges::default(),
            protections: Protections::default(),
            broken_ways: BrokenWays::default(),
            past: Past::default(),
            deadline: None,
            next_order: 0,
            meters: BTreeSet::new(),
            free_meter: FIRST_METER,
            links: Arc::default(),
            has_new_groups: false,
            outcomes: Vec::new(),
            is_changed: false,
            shall_retry: false,
            has_table_room: false,
            retries: Vec::new(),
        }
    }

    /// What the operator says of the network.
    pub fn file(&self) -> &NetworkFile {
        &self.file
    }

    /// The network as it is now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.network.snapshot()
    }

    /// The requests in force, and their proof.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The network has changed: flows whose ways are gone get others, the most important first, or are refused.
    pub fn set_network(&mut self, network: Network) {
        if !self.network.replace(network) {
            return;
        }
        (self.shall_retry, self.has_table_room) = (true, true);
        let snapshot = self.network.snapshot();
        self.fall_back(&snapshot);
        self.leave_broken(self.scheduler.affected(&snapshot).collect::<Vec<RequestId>>());
        self.withdraw_unreached(&snapshot);
        let rerouted = self.scheduler.reroute(&snapshot);
        let others = |admitted: &schedule::Admitted| self.owners.get(&admitted.id).copied();
        let others: Vec<Selector> = rerouted.admitted.iter().filter_map(others).collect();
        others.iter().for_each(|selector| self.withhold(*selector));
        others.iter().for_each(|selector| self.protect_again(*selector));
        let mut changed = BTreeSet::new();
        for admitted in &rerouted.admitted {
            self.change_classes(&admitted.changes);
            let ids = admitted.moved.iter().chain([&admitted.id]);
            changed.extend(ids.filter_map(|id| self.owners.get(id).copied()));
        }
        for (id, request, refused) in &rerouted.dropped {
            let flow = self.owners.get(id).and_then(|selector| self.flows.get(selector));
            let shares = flow.into_iter().flat_map(SharedFlow::present);
            let own = shares.filter(|share| share.demand.request.name == request.name).map(|share| share.pair);
            for pair in own.collect::<Vec<Pair>>() {
                self.withdraw(pair, format!("no longer served: {refused}"));
            }
            let flow = self.owners.get(id).and_then(|selector| self.flows.get_mut(selector));
            flow.into_iter().for_each(|flow| flow.must_leave |= flow.is_served && !flow.is_leaving());
        }
        // Their meters have no share of pairs that were dropped.
        others.into_iter().for_each(|selector| self.keep_standing(selector));
        self.allow_branches();
        changed.extend(self.flows.keys().filter(|selector| selector.is_group()));
        changed.into_iter().for_each(|selector| self.renew(selector));
    }

    /// Decides. The outcome follows: at once if the pair is refused, when its entries are in force otherwise. `siblings` are admitted pairs of the
    /// same writer, with the groups by which it may send their samples once this pair matches.
    pub fn ask(&mut self, application: &Application, siblings: &[Sibling]) {
        let pair = application.pair;
        self.refused.remove(&pair);
        if application.writer.host == application.reader.host && !siblings.is_empty() {
            return self.accompany_local(pair, siblings);
        }
        if application.writer.host == application.reader.host {
            // Nothing of it goes by the network.
            return self.outcomes.push(Outcome::Admitted { pair, bound_ns: 0 });
        }
        let added = match self.extend_all(pair, siblings) {
            Ok(added) => added,
            Err(refusal) => return self.wait_or_refuse(pair, refusal),
        };
        if let Err(refusal) = self.admit(application, &[]) {
            self.take_back(&added);
            self.wait_or_refuse(pair, refusal);
        }
        let awaited = self.groups_of(siblings);
        if let Some(admitted) = self.admitted.get_mut(&pair) {
            admitted.awaited = awaited;
        }
    }

    fn wait_or_refuse(&mut self, pair: Pair, refusal: Refusal) {
        if refusal.reason == LEAVING {
            // It is asked for again once they have left.
            self.refused.insert(pair, refusal);
        } else {
            self.refuse_for(pair, refusal);
        }
    }

    /// Admits a pair that was admitted by an earlier run, with the meters that it had then: its entries are wanted at once. Whether it fits.
    pub fn admit_again(&mut self, application: &Application, meters: &[u32]) -> bool {
        self.refused.remove(&application.pair);
        self.admit(application, meters).is_ok()
    }

    /// Admitted pairs with their meters, and numbers that ascend in the order of admission.
    pub fn kept(&self) -> impl Iterator<Item = (Pair, u64, Vec<u32>)> {
        self.admitted.iter().map(|(pair, admitted)| {
            let flows = admitted.selectors.iter().filter_map(|selector| self.flows.get(selector));
            (*pair, admitted.order, flows.map(|flow| flow.meter).collect())
        })
    }

    /// A pair cannot be judged.
    pub fn refuse(&mut self, pair: Pair, importance: i32, reason: String) {
        self.refuse_for(pair, Refusal::new(importance, reason));
    }

    fn refuse_for(&mut self, pair: Pair, refusal: Refusal) {
        self.outcomes.push(Outcome::Refused { pair, reason: refusal.to_string() });
        self.refused.insert(pair, refusal);
    }

    /// A pair is no more.
    pub fn forget(&mut self, pair: Pair) {
        self.refused.remove(&pair);
        self.companions.remove(&pair);
        self.forget_stranger(pair);
        self.leave(pair);
    }

    /// The refused pair that shall [ask](Self::ask) again next. One decision may take long: between two of them the controller serves its
    /// switches.
    pub fn next_retry(&mut self) -> Option<Pair> {
        if std::mem::take(&mut self.shall_retry) {
            self.retry_protection();
            let has_table_room = std::mem::take(&mut self.has_table_room);
            let refused = self.refused.iter().filter(|(_, refusal)| has_table_room || !refusal.is_by_switch);
            let refused = refused.map(|(pair, refusal)| (*pair, refusal.importance));
            let mut pairs: Vec<(Pair, i32)> = refused.collect();
            pairs.sort_by_key(|(pair, importance)| (*importance, std::cmp::Reverse(*pair)));
            self.retries = pairs.into_iter().map(|(pair, _)| pair).collect();
        }
        while let Some(pair) = self.retries.pop() {
            if self.refused.contains_key(&pair) {
                return Some(pair);
            }
        }
        None
    }

    /// Whether refused pairs wait to be tried again.
    pub fn has_retries(&self) -> bool {
        self.shall_retry || !self.retries.is_empty() || self.next_unprotected().is_some()
    }

    /// The hosts of pairs are known better: refused pairs are tried again, but for those of which a switch refused an entry.
    pub fn retry(&mut self) {
        self.shall_retry = true;
    }

    /// Goes on with the entries, as far as the switches have them and their meters, and frames of before have drained. Whether other entries are wanted
    /// now. It is to be called again at the [deadline](Self::deadline). `version` of a switch changes whenever the presence of an entry there may have:
    /// flows that wait for switches with the versions of before are passed over.
    pub fn advance(
        &mut self,
        now: Instant,
        presence: impl Fn(&Entry) -> Presence,
        is_connected: impl Fn(u64) -> bool,
        version: impl Fn(u64) -> u64,
    ) -> bool {
        self.reach_branches(&is_connected);
        self.free_gone(now, &presence);
        // One decision may take long: the others follow when switches were served.
        if let Some(selector) = self.next_unprotected() {
            self.search_second_ways(selector);
        }
        while self.advance_flows(now, &presence, &is_connected, &version) {}
        // Their waits begin when no change of a class is under way.
        self.free_gone(now, &presence);
        self.free_shares(now);
        self.free_second_ways(now, &presence);
        self.forget_past(now);
        self.deadline = self.next_deadline(now);
        // Pairs are ready for no other reason.
        if self.flows.take_touched() {
            self.release_ready();
        }
        self.free_companions();
        self.tell_protection();
        self.flows.settle();
        std::mem::take(&mut self.is_changed)
    }

    /// Releases the pairs whose flows are in force.
    fn release_ready(&mut self) {
        let is_in_force = |selector: &Selector| self.flows.get(selector).is_some_and(|flow| flow.is_in_force);
        // A flow that is no more keeps nothing from matching.
        let is_held_up = |selector: &Selector| self.flows.contains_key(selector) && !is_in_force(selector);
        let is_ready = |pair: &Admitted| pair.selectors.iter().all(is_in_force) && !pair.awaited.iter().any(is_held_up);
        let waiting = self.unreleased.iter().copied();
        let ready: Vec<Pair> = waiting.filter(|pair| self.admitted.get(pair).is_some_and(is_ready)).collect();
        for pair in ready {
            let Some(admitted) = self.admitted.get_mut(&pair) else { continue };
            admitted.is_released = true;
            self.unreleased.remove(&pair);
            self.outcomes.push(Outcome::Admitted { pair, bound_ns: admitted.bound_ns });
            for selector in &admitted.selectors {
                self.flows.get_mut(selector).into_iter().for_each(|flow| flow.is_served = true);
            }
        }
    }

    /// All flows go on as far as they can. Whether others may go on for that.
    fn advance_flows(
        &mut self,
        now: Instant,
        presence: &impl Fn(&Entry) -> Presence,
        is_connected: &impl Fn(u64) -> bool,
        version: &impl Fn(u64) -> u64,
    ) -> bool {
        if !self.leave_ways(now, presence, is_connected) {
            return false;
        }
        let mut is_further = self.follow_class_changes(now, presence);
        let open = self.flows.moving().filter(|(_, flow)| !flow.is_in_force && !flow.is_leaving());
        let open: Vec<Selector> = open.map(|(selector, _)| *selector).collect();
        for selector in open {
            self.leave_branches_out(selector, presence, is_connected);
            is_further |= self.advance_flow(selector, now, presence, version);
        }
        is_further
    }

    /// A flow goes on as far as it can. Whether others may go on for that.
    fn advance_flow(
        &mut self,
        selector: Selector,
        now: Instant,
        presence: &impl Fn(&Entry) -> Presence,
        version: &impl Fn(u64) -> u64,
    ) -> bool {
        let has = |entry: &Entry, wanted| presence(entry) == wanted;
        let Some(flow) = self.flows.get(&selector) else { return false };
        let versions = || flow.known().map(|entry| version(entry.dpid));
        if flow.looked_at.as_ref().is_some_and(|known| known.iter().copied().eq(versions())) {
            return false;
        }
        let refused = flow.placed.iter().find(|entry| has(entry, Presence::Refused));
        if let Some(dpid) = refused.map(|entry| entry.dpid) {
            if self.go_without_protection(selector, dpid) {
                return true;
            }
            let Some(flow) = self.flows.get(&selector) else { return false };
            let pairs: Vec<Pair> = flow.present().map(|share| share.pair).collect();
            let reason = format!("switch {dpid:016x} refuses a flow entry");
            for pair in pairs {
                self.withdraw(pair, reason.clone());
                self.refused.entry(pair).and_modify(|refusal| refusal.is_by_switch = true);
            }
            return true;
        }
        if !flow.placed.iter().all(|entry| has(entry, Presence::Same)) {
            let versions = versions().collect();
            self.flows.look_at(&selector, versions);
            return false;
        }
        let is_free = flow.after.iter().all(|other| self.flows.get(other).is_none_or(|flow| flow.is_in_force))
            && (flow.is_served || flow.after_change.is_none());
        if !is_free {
            return false;
        }
        self.is_changed |= self.follow_flow(selector, now, presence);
        let Some(flow) = self.flows.get_mut(&selector) else { return false };
        let is_whole = flow.after_change.is_none() && flow.before.is_none() && flow.held.is_empty() && flow.is_placed();
        if !is_whole || !flow.placed.iter().all(|entry| has(entry, Presence::Same)) {
            return false;
        }
        (flow.is_in_force, flow.after) = (true, BTreeSet::new());
        let is_released = |share: &Share| self.admitted.get(&share.pair).is_some_and(|pair| pair.is_released);
        flow.is_served |= flow.shares.iter().any(is_released);
        true
    }

    /// Gives back shares that no meter passes, and of which no frame is under way.
    fn part(&mut self, request: RequestId, selector: Selector, names: &[String]) {
        if selector.is_group() {
            self.regroup(selector);
        } else {
            let snapshot = self.network.snapshot();
            names.iter().for_each(|name| drop(self.scheduler.part(request, &snapshot, name)));
        }
        self.renew(selector);
    }

    /// The switches have nothing of a flow any more: its share of the network is free.
    fn free(&mut self, selector: Selector) {
        let Some(flow) = self.flows.remove(&selector) else { return };
        self.scheduler.remove(flow.request);
        self.owners.remove(&flow.request);
        self.meters.remove(&flow.meter);
        self.free_meter = self.free_meter.min(flow.meter);
        self.free_strangers(selector);
        self.is_changed = true;
    }

    /// What was decided.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// Pairs that share the flow of a selector.
    pub fn sharers(&self, selector: &Selector) -> impl Iterator<Item = Pair> {
        self.flows.get(selector).into_iter().flat_map(SharedFlow::present).map(|share| share.pair)
    }

    /// The flows of an admitted pair: that of samples first.
    pub fn selectors(&self, pair: Pair) -> &[Selector] {
        self.admitted.get(&pair).map_or(&[], |admitted| &admitted.selectors)
    }

    /// Whether there is a flow.
    pub fn has_flow(&self, selector: &Selector) -> bool {
        self.flows.contains_key(selector)
    }

    /// The meters of flows whose first switch is this one.
    pub fn metered(&self, dpid: u64) -> impl Iterator<Item = (u32, Selector)> {
        let is_here = move |flow: &SharedFlow| flow.policed.as_ref().is_some_and(|(at, _)| *at == dpid);
        self.flows.iter().filter(move |(_, flow)| is_here(flow)).map(|(selector, flow)| (flow.meter, *selector))
    }

    /// The requests of a flow in words, the first three of them.
    pub fn flow_name(&self, selector: &Selector) -> String {
        let shares = self.flows.get(selector).into_iter().flat_map(SharedFlow::present);
        let names: BTreeSet<&str> = shares.map(|share| share.demand.request.name.as_str()).collect();
        let first: Vec<&str> = names.iter().take(NAMES_SHOWN).copied().collect();
        let more = names.len().saturating_sub(NAMES_SHOWN);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{}{more}", first.join(", "))
    }

    /// The entries that a switch shall have.
    pub fn entries(&self, dpid: u64) -> Vec<FlowMod> {
        let flows = self.flows.values().filter(|flow| !flow.is_leaving());
        let wanted = flows.flat_map(|flow| &flow.placed).filter(|entry| entry.dpid == dpid);
        wanted.map(|entry| entry.flow.clone()).collect()
    }

    /// The meters that a switch shall have, those of now before those of entries that leave: these stay until the entries have left.
    pub fn meters(&self, dpid: u64) -> Vec<MeterMod> {
        let policed = self.flows.values().filter_map(|flow| flow.policed.as_ref());
        let policed = policed.filter(|(at, _)| *at == dpid).map(|(_, meter)| meter.clone());
        let leaving = self.flows.values().flat_map(|flow| &flow.leaving).filter(|entry| entry.dpid == dpid);
        policed.chain(leaving.filter_map(|entry| entry.meter.clone())).collect()
    }

    /// The groups that a switch shall have.
    pub fn groups(&self, dpid: u64) -> Vec<GroupMod> {
        let flows = self.flows.values().filter(|flow| !flow.is_leaving());
        let entries = flows.flat_map(|flow| &flow.placed).filter(|entry| entry.dpid == dpid);
        entries.filter_map(|entry| entry.group.clone()).collect()
    }

    /// Flows of which the switches may have to have other entries or meters than when this was called last.
    pub fn take_changed(&mut self) -> BTreeSet<Selector> {
        self.flows.take_changed()
    }

    /// What the switches shall have of a flow; nothing if it is gone.
    pub fn wanted(&self, selector: &Selector) -> Wanted {
        let Some(flow) = self.flows.get(selector) else { return Wanted::default() };
        let placed = flow.placed.iter().filter(|_| !flow.is_leaving());
        let leaving = flow.leaving.iter().filter_map(|entry| Some((entry.dpid, entry.meter.clone()?)));
        let mut meters = BTreeMap::new();
        for (dpid, meter) in flow.policed.iter().cloned().chain(leaving) {
            meters.entry((dpid, meter.meter)).or_insert(meter);
        }
        let groups =
            placed.clone().filter_map(|entry| entry.group.clone().map(|group| ((entry.dpid, group.group), group)));
        let groups = groups.collect();
        let flows = placed.map(|entry| (entry.dpid, Arc::clone(&entry.key), entry.flow.clone())).collect();
        Wanted { flows, meters, groups }
    }

    /// Admits a pair. `meters` are those of its flows in an earlier run, whose entries may still be in the switches.
    fn admit(&mut self, application: &Application, meters: &[u32]) -> Result<(), Refusal> {
        let (pair, importance) = (application.pair, application.contract.importance.value);
        let refusal = |reason: String| Refusal::new(importance, reason);
        let snapshot = self.network.snapshot();
        let demands = Demand::of(application, &self.file, &snapshot).map_err(refusal)?;
        if self.waits(pair, &demands) {
            return Err(refusal(LEAVING.to_owned()));
        }
        let (selectors, bound_ns) = self.take_shares(application, demands, meters)?;
        let bound_ns = application.stages.whole_ns(bound_ns);
        let stages = application.stages.clone();
        let order = self.next_order;
        self.next_order += 1;
        self.unreleased.insert(pair);
        self.admitted.insert(
            pair,
            Admitted {
                order,
                importance,
                selectors,
                awaited: BTreeSet::new(),
                bound_ns,
                stages,
                is_released: false,
                protection_told: Protection::Unasked,
            },
        );
        Ok(())
    }

    /// Takes shares of flows for a pair, all or none. The flows, and the longest bound of samples.
    fn take_shares(
        &mut self,
        application: &Application,
        demands: Vec<Demand>,
        meters: &[u32],
    ) -> Result<(Vec<Selector>, u64), Refusal> {
        let (pair, importance) = (application.pair, application.contract.importance.value);
        let stranger = self.strangers.topic_at(pair.writer, demands.iter().map(|demand| demand.selector));
        if let Some(topic) = stranger.map(str::to_owned) {
            match self.file.without_contract {
                WithoutContract::Refuse => return Err(Refusal::new(importance, stranger_reason(&topic))),
                WithoutContract::Caution => self.outcomes.push(Outcome::Caution { pair, topic }),
            }
        }
        let (mut selectors, mut moved, mut bound_ns) = (Vec::new(), BTreeSet::new(), 0);
        let is_restored = !meters.is_empty();
        for (n, demand) in demands.into_iter().enumerate() {
            let selector = demand.selector;
            match self.place(&demand) {
                Ok((admitted, own_ns)) => {
                    let is_of_samples = selector.source == application.writer.address;
                    bound_ns = if is_of_samples { own_ns.max(bound_ns) } else { bound_ns };
                    moved.extend(admitted.moved.iter().filter_map(|id| self.owners.get(id).copied()));
                    let standing = self.flows.get(&selector).and_then(SharedFlow::standing);
                    self.enter(admitted.id, pair, demand, meters.get(n).copied());
                    // The switches have what an earlier run decided last.
                    self.change_classes(if is_restored { &[] } else { &admitted.changes });
                    self.await_changes(selector, standing);
                    selectors.push(selector);
                }
                Err(refused) => {
                    // No switch has got anything of them.
                    selectors.iter().for_each(|selector| self.retract(*selector, pair));
                    let remedies = self.remedies(&demand);
                    // Flows that moved for the first share keep the classes that they have now.
                    moved.into_iter().for_each(|selector| self.renew(selector));
                    return Err(Refusal::of(importance, &refused, remedies));
                }
            }
        }
        for selector in &selectors {
            self.ask_for_protection(selector);
            self.search_second_ways(*selector);
            self.renew(*selector);
            let samples = selectors.first().filter(|_| !self.is_served(selector));
            let samples = samples.filter(|other| !self.waits_for(**other, *selector)).copied();
            let Some(flow) = self.flows.get_mut(selector) else { continue };
            flow.after.extend(samples);
            if is_restored {
                flow.place_all();
            }
        }
        moved.into_iter().for_each(|selector| self.renew(selector));
        Ok((selectors, bound_ns))
    }

    /// Decides on a share of a flow, with its bound.
    fn place(&mut self, demand: &Demand) -> Result<(schedule::Admitted, u64), Refused> {
        let (snapshot, request) = (self.network.snapshot(), &demand.request);
        let admitted = match self.flows.get(&demand.selector) {
            Some(flow) if demand.selector.is_group() => {
                let shares = flow.shares.iter().map(|share| &share.demand);
                self.scheduler.replace(flow.request, &snapshot, requests(shares.chain([demand])))?
            }
            Some(flow) => self.scheduler.join(flow.request, &snapshot, request.clone())?,
            None => self.scheduler.admit(&snapshot, request.clone())?,
        };
        let own = admitted.routes.iter().find(|route| route.name == request.name);
        let bound_ns = own.map_or(admitted.bound_ns, |route| route.bound_ns);
        Ok((admitted, bound_ns))
    }

    /// What would make the share of a pair fit that was refused.
    fn remedies(&mut self, demand: &Demand) -> Remedies {
        if demand.selector.is_group() {
            return Remedies::default();
        }
        let joins = self.flows.get(&demand.selector).map(|flow| flow.request);
        let joins = joins.filter(|id| self.scheduler.requests_of(*id).is_some());
        demand.remedies(self.scheduler.remedies(&self.network.snapshot(), joins, &demand.request))
    }

    fn is_served(&self, selector: &Selector) -> bool {
        self.flows.get(selector).is_some_and(|flow| flow.is_served)
    }

    /// Whether the entries of a flow wait for those of another, or are the same.
    fn waits_for(&self, selector: Selector, other: Selector) -> bool {
        let (mut open, mut seen) = (vec![selector], BTreeSet::new());
        while let Some(next) = open.pop() {
            if next == other {
                return true;
            }
            if seen.insert(next) {
                open.extend(self.flows.get(&next).into_iter().flat_map(|flow| &flow.after));
            }
        }
        false
    }

    /// A pair has a share of the flow with these requests.
    fn enter(&mut self, request: RequestId, pair: Pair, demand: Demand, meter: Option<u32>) {
        let Self { flows, meters, owners, free_meter, .. } = self;
        self.has_new_groups |= demand.selector.is_group();
        let flow = flows.get_or_insert_with(demand.selector, || {
            let mut free = meter.into_iter().chain(*free_meter..);
            let meter = free.find(|meter| !meters.contains(meter)).unwrap_or(FIRST_METER);
            meters.insert(meter);
            while meters.contains(free_meter) {
                *free_meter += 1;
            }
            SharedFlow::new(request, meter)
        });
        owners.insert(request, demand.selector);
        flow.shares.push(Share { pair, demand, is_leaving: false });
    }

    /// Takes back the share of a pair that was not admitted.
    fn retract(&mut self, selector: Selector, pair: Pair) {
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        let request = flow.request;
        let is_its = |share: &mut Share| share.pair == pair && !share.is_leaving;
        let names: Vec<String> = flow.shares.extract_if(.., is_its).map(|share| share.demand.request.name).collect();
        if flow.shares.is_empty() {
            self.free(selector);
        } else {
            self.part(request, selector, &names);
        }
    }

    /// The ways, classes or shares of a flow are others now. If it is served, its entries follow step by step.
    fn renew(&mut self, selector: Selector) {
        let snapshot = self.network.snapshot();
        let Some(flow) = self.flows.get_mut(&selector).filter(|flow| !flow.is_leaving()) else { return };
        let routes = self.scheduler.routes(&snapshot, flow.request);
        let Some(mut route) = routes.and_then(|routes| routes.into_iter().next()) else { return };
        let known = route.clone();
        for hop in &mut route.hops {
            hop.reach = flow.held.get(&hop.port).copied().or(hop.reach);
        }
        let receivers = flow.receivers(&route, &self.links);
        let Some(first) = entries(&snapshot, &route, &selector, flow.policer_now(), &receivers) else { return };
        let Some(entries) = self.with_second_ways(&snapshot, &selector, first) else { return };
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        flow.is_in_force &= flow.entries == entries;
        (flow.entries, flow.route) = (entries, Some(known));
        if !flow.is_served {
            flow.replace_placed();
        }
        self.is_changed = true;
    }

    fn withdraw(&mut self, pair: Pair, reason: String) {
        let importance = self.admitted.get(&pair).map_or(0, |flow| flow.importance);
        self.leave(pair);
        self.refuse(pair, importance, reason);
    }

    fn leave(&mut self, pair: Pair) {
        let Some(Admitted { selectors, .. }) = self.admitted.remove(&pair) else { return };
        self.unreleased.remove(&pair);
        for selector in selectors {
            let shares = self.flows.get_mut(&selector).into_iter().flat_map(|flow| &mut flow.shares);
            shares.filter(|share| share.pair == pair).for_each(|share| share.is_leaving = true);
            self.flows.get_mut(&selector).into_iter().for_each(|flow| flow.drain = None);
            self.renew(selector);
        }
        self.is_changed = true;
    }

    /// Whether entries or meters of an earlier share of a pair, or of its flows, are still leaving.
    fn waits(&self, pair: Pair, demands: &[Demand]) -> bool {
        let mut flows = demands.iter().filter_map(|demand| self.flows.get(&demand.selector));
        flows.any(|flow| flow.is_leaving() || flow.shares.iter().any(|share| share.pair == pair))
    }
}

/// The address and port of a locator that a host with this address receives by.
pub fn port_of(locators: &[takt_wire::Locator], address: IpAddr) -> Option<u16> {
    let addresses = locators.iter().filter_map(takt_wire::Locator::socket_addr);
    addresses.filter(|own: &SocketAddr| own.ip() == address).map(|own| own.port()).next()
}
