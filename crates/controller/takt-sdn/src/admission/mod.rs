//! Admission of pairs of writer and reader: from a QoS contract to flow entries in force, and back.
//!
//! A pair is one flow from the writer's host to the reader's host. A reliable pair has a second
//! flow for its ACKNACKs. Pairs whose datagrams no rule can distinguish share a flow: pairs with
//! the same addresses and UDP port, and the ACKNACKs of pairs in the opposite direction. The flow
//! has the sum of their rates and bursts. Each share is a request of the [`Scheduler`], which
//! merges it with the existing ones. A pair is admitted with all its shares or not at all. Its
//! entries are then installed one after the other, from the last switch to the first, each after
//! the switch of the previous one has confirmed it. The pair is released when all entries are
//! installed with a meter that passes its share, and when flows that changed for it have their
//! present entries.
//!
//! The share of a pair that is removed, or does not fit any more, is freed when the meter no longer
//! passes it and its last frames have drained; the meter is lowered first. The entries are deleted
//! with the last pair of a flow. Refused pairs are tried again in order of importance when a share
//! is freed or the network has changed.
//!
//! **Demand.** Samples may reach the interface as late as the contract says, so the meter must pass
//! several at once. The burst of the meter covers the jitter, the variation of forwarding before
//! the meter, and the step in which the meter counts time. HEARTBEATs of a reliable writer use the
//! same entries as its samples: each datagram has room for one, and HEARTBEATs that are sent alone
//! count as samples. The separation is shortened to what the meter passes at its rate, which is a
//! whole number of kilobits per second.

mod change;
mod demand;
mod drain;
mod explain;
mod flows;
mod groups;
mod protection;
mod shared;
mod uncontracted;

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
use self::drain::{BrokenPaths, RemovedFlowInfluence};
pub use self::explain::{Admissible, Progress, Refusal, Trial};
use self::flows::Flows;
pub use self::groups::Sibling;
pub use self::protection::Protection;
use self::protection::Protections;
use self::shared::{Share, SharedFlow, requests};
use self::uncontracted::{Uncontracted, uncontracted_reason};
use crate::contract::Contract;
use crate::controller::FlowKey;
use crate::devices::Vlan;
use crate::discovery::Pair;
use crate::forwarding::Link;
use crate::model::{HostId, Network, NetworkFile, Snapshot, WithoutContract};
use crate::rules::{Entry, Selector, entries};
use crate::schedule::{self, PairStages, Refused, Remedies, RequestId, Scheduler};

/// Number of the first meter of a flow. Lower meters limit packets to the controller.
pub(crate) const FIRST_METER: u32 = 0x1000;

/// Maximum number of requests in the name of a flow.
const NAMES_SHOWN: usize = 3;

/// Reason of a pair that waits for a decision.
const ENTRIES_BEING_DELETED: &str = "flow entries of an earlier pair with the same addresses are still being removed";

/// One end of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Network interface of the host.
    pub host: HostId,
    /// VLAN of its frames, the same at both ends.
    pub vlan: Vlan,
    /// Source address of its datagrams.
    pub address: IpAddr,
    /// Octets that its participant appends to each datagram.
    pub trailer_len: u64,
}

impl End {
    /// Returns the selector of datagrams from this end to a UDP port of the other end.
    pub fn selector_to(&self, other: &Self, port: u16) -> Selector {
        Selector { sender: self.host, vlan: self.vlan, source: self.address, destination: other.address, port }
    }
}

/// Request for the admission of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// The pair.
    pub pair: Pair,
    /// Name of the pair for display.
    pub name: String,
    /// Timing contract that the pair declares.
    pub contract: Contract,
    /// The writer.
    pub writer: End,
    /// The reader.
    pub reader: End,
    /// UDP port at which the reader receives samples.
    pub data_port: u16,
    /// UDP port at which a reliable writer receives ACKNACKs.
    pub answer_port: Option<u16>,
    /// Whether the writer is reliable: samples by multicast may then carry HEARTBEATs, for any
    /// reader of the group.
    pub has_reliable_writer: bool,
    /// Whether the reader announces groups: its writer's participant probes the reader before it
    /// sends to one of them, or by unicast again.
    pub announces_groups: bool,
    /// Whether the writer probes whether long datagrams reach best-effort readers. Writers of Takt
    /// do.
    pub probes_paths: bool,
    /// Multicast groups by which the writer may send samples to the reader.
    pub groups: Vec<SocketAddr>,
    /// Latency stages of its hosts.
    pub stages: PairStages,
}

/// Presence of an entry in a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// No entry with this match.
    Absent,
    /// An entry with the same match and other actions.
    Other,
    /// The entry.
    Same,
    /// An entry that the switch refuses.
    Refused,
}

/// A decision for the interceptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All entries are in force: the pair may match.
    Admitted {
        /// The pair.
        pair: Pair,
        /// Bound of the latency in ns, from the first stage of the writer's host (or its interface)
        /// to the end of the last stage of the reader's host (or the host).
        bound_ns: u64,
    },
    /// The pair must not match.
    Refused {
        /// The pair.
        pair: Pair,
        /// Bottleneck hop and remedies, or what is not known.
        reason: String,
    },
    /// A pair that needs no admission, and that waited or was refused, may match.
    Free {
        /// The pair.
        pair: Pair,
    },
    /// An admitted pair shares its class and meter with a topic without a contract.
    Caution {
        /// The pair.
        pair: Pair,
        /// The topic.
        topic: String,
    },
    /// The protection of a matched pair against the failure of a link has changed.
    Protection {
        /// The pair.
        pair: Pair,
        /// Its present protection.
        protection: Protection,
    },
}

impl Outcome {
    /// Returns the pair that the decision is about.
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
    /// Sequence number; ascends in the order of admission.
    order: u64,
    importance: i32,
    /// Flows of the pair, that of samples first.
    selectors: Vec<Selector>,
    /// Flows of other pairs that must be in force before the pair matches.
    awaited: BTreeSet<Selector>,
    bound_ns: u64,
    /// Latency stages of its hosts.
    stages: PairStages,
    is_released: bool,
    reported_protection: Protection,
}

/// Entries, meters and groups of one flow, by switch.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Entries, each with the key that identifies it.
    pub flows: Vec<(u64, Arc<FlowKey>, FlowMod)>,
    /// Meters, by switch and number.
    pub meters: BTreeMap<(u64, u32), MeterMod>,
    /// Groups, by switch and number.
    pub groups: BTreeMap<(u64, u32), GroupMod>,
}

/// State of admission: admitted pairs and waiting pairs.
pub struct Admission {
    file: NetworkFile,
    network: Network,
    scheduler: Scheduler,
    admitted: BTreeMap<Pair, Admitted>,
    /// Admitted pairs that are not released.
    unreleased: BTreeSet<Pair>,
    flows: Flows,
    uncontracted: Uncontracted,
    /// Pairs that match when these flows of admitted pairs are in force.
    companions: BTreeMap<Pair, BTreeSet<Selector>>,
    /// Refused pairs, and pairs that wait for the entries of others to be deleted.
    refused: BTreeMap<Pair, Refusal>,
    owners: BTreeMap<RequestId, Selector>,
    class_changes: ClassChanges,
    protections: Protections,
    broken_paths: BrokenPaths,
    /// Wait during which removed flows still influence others, so that no decision lowers budgets.
    removed_influence: RemovedFlowInfluence,
    /// Earliest end of all waits.
    deadline: Option<Instant>,
    next_order: u64,
    meters: BTreeSet<u32>,
    /// First meter number above all meters in use.
    free_meter: u32,
    /// Links between all switches.
    links: Arc<BTreeSet<Link>>,
    has_new_groups: bool,
    outcomes: Vec<Outcome>,
    is_changed: bool,
    shall_retry: bool,
    /// Whether a switch may now accept entries that it refused before.
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
    /// Creates an admission without pairs, in a network that is not known yet.
    pub fn new(file: NetworkFile) -> Self {
        Self {
            file,
            network: Network::default(),
            scheduler: Scheduler::default(),
            admitted: BTreeMap::new(),
            unreleased: BTreeSet::new(),
            flows: Flows::default(),
            uncontracted: Uncontracted::default(),
            companions: BTreeMap::new(),
            refused: BTreeMap::new(),
            owners: BTreeMap::new(),
            class_changes: ClassChanges::default(),
            protections: Protections::default(),
            broken_paths: BrokenPaths::default(),
            removed_influence: RemovedFlowInfluence::default(),
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

    /// Returns the operator's description of the network.
    pub fn file(&self) -> &NetworkFile {
        &self.file
    }

    /// Returns the present network.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.network.snapshot()
    }

    /// Returns the requests in force with their proof.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Replaces the network. Flows whose paths no longer exist get others in order of importance,
    /// or are refused.
    pub fn set_network(&mut self, network: Network) {
        if !self.network.replace(network) {
            return;
        }
        (self.shall_retry, self.has_table_room) = (true, true);
        let snapshot = self.network.snapshot();
        self.fall_back(&snapshot);
        self.leave_broken_paths(self.scheduler.affected(&snapshot).collect::<Vec<RequestId>>());
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
        // The meters of rerouted flows have no shares of dropped pairs.
        others.into_iter().for_each(|selector| self.keep_present_state(selector));
        self.allow_branches();
        changed.extend(self.flows.keys().filter(|selector| selector.is_group()));
        changed.into_iter().for_each(|selector| self.update_flow(selector));
    }

    /// Decides on a pair. The outcome follows: at once if the pair is refused, otherwise when its
    /// entries are in force. `siblings` are admitted pairs of the same writer, with the groups by
    /// which it may send their samples once this pair matches.
    pub fn request(&mut self, application: &Application, siblings: &[Sibling]) {
        let pair = application.pair;
        self.refused.remove(&pair);
        if application.writer.host == application.reader.host && !siblings.is_empty() {
            return self.admit_local_companion(pair, siblings);
        }
        if application.writer.host == application.reader.host {
            // The pair uses no part of the network.
            return self.outcomes.push(Outcome::Admitted { pair, bound_ns: 0 });
        }
        let added = match self.extend_all(pair, siblings) {
            Ok(added) => added,
            Err(refusal) => return self.wait_or_refuse(pair, refusal),
        };
        if let Err(refusal) = self.admit(application, &[]) {
            self.release_added(&added);
            self.wait_or_refuse(pair, refusal);
        }
        let awaited = self.groups_of(siblings);
        if let Some(admitted) = self.admitted.get_mut(&pair) {
            admitted.awaited = awaited;
        }
    }

    fn wait_or_refuse(&mut self, pair: Pair, refusal: Refusal) {
        if refusal.reason == ENTRIES_BEING_DELETED {
            // The pair is requested again once those entries are deleted.
            self.refused.insert(pair, refusal);
        } else {
            self.refuse_for(pair, refusal);
        }
    }

    /// Admits a pair of an earlier run with its meters of that run: its entries are placed at once.
    /// Reports whether the pair fits.
    pub fn readmit(&mut self, application: &Application, meters: &[u32]) -> bool {
        self.refused.remove(&application.pair);
        self.admit(application, meters).is_ok()
    }

    /// Returns the admitted pairs with their meters and their sequence numbers, which ascend in the
    /// order of admission.
    pub fn admitted_pairs(&self) -> impl Iterator<Item = (Pair, u64, Vec<u32>)> {
        self.admitted.iter().map(|(pair, admitted)| {
            let flows = admitted.selectors.iter().filter_map(|selector| self.flows.get(selector));
            (*pair, admitted.order, flows.map(|flow| flow.meter).collect())
        })
    }

    /// Refuses a pair for which no decision is possible.
    pub fn refuse(&mut self, pair: Pair, importance: i32, reason: String) {
        self.refuse_for(pair, Refusal::new(importance, reason));
    }

    fn refuse_for(&mut self, pair: Pair, refusal: Refusal) {
        self.outcomes.push(Outcome::Refused { pair, reason: refusal.to_string() });
        self.refused.insert(pair, refusal);
    }

    /// Removes a pair.
    pub fn remove_pair(&mut self, pair: Pair) {
        self.refused.remove(&pair);
        self.companions.remove(&pair);
        self.remove_uncontracted(pair);
        self.remove_admitted(pair);
    }

    /// Returns the refused pair that is to be [requested](Self::request) again next. A decision may
    /// take long, so the controller serves its switches between two of them.
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

    /// Reports whether refused pairs wait to be tried again.
    pub fn has_retries(&self) -> bool {
        self.shall_retry || !self.retries.is_empty() || self.next_unprotected().is_some()
    }

    /// Tries refused pairs again, except those of which a switch refused an entry, because more is
    /// known about the hosts of pairs.
    pub fn retry(&mut self) {
        self.shall_retry = true;
    }

    /// Advances the entries as far as the switches have confirmed entries and meters, and as far as
    /// earlier frames have drained. Reports whether the wanted entries changed. Must be called
    /// again at the [deadline](Self::deadline). `version` of a switch changes whenever the presence
    /// of an entry there may have changed: flows that wait for switches with unchanged versions are
    /// skipped.
    pub fn advance(
        &mut self,
        now: Instant,
        presence: impl Fn(&Entry) -> Presence,
        is_connected: impl Fn(u64) -> bool,
        version: impl Fn(u64) -> u64,
    ) -> bool {
        self.reach_branches(&is_connected);
        self.remove_deleted_flows(now, &presence);
        // A decision may take long: the others follow after switches were served.
        if let Some(selector) = self.next_unprotected() {
            self.search_backup_paths(selector);
        }
        while self.advance_flows(now, &presence, &is_connected, &version) {}
        // Their waits begin when no class change is under way.
        self.remove_deleted_flows(now, &presence);
        self.free_shares(now);
        self.free_backup_paths(now, &presence);
        self.release_budgets(now);
        self.deadline = self.next_deadline(now);
        // A pair becomes ready only by a change of one of its flows.
        if self.flows.take_touched() {
            self.release_ready();
        }
        self.free_companions();
        self.report_protection();
        self.flows.drop_resting();
        std::mem::take(&mut self.is_changed)
    }

    /// Releases the pairs whose flows are in force.
    fn release_ready(&mut self) {
        let is_in_force = |selector: &Selector| self.flows.get(selector).is_some_and(|flow| flow.is_in_force);
        // A removed flow does not delay a match.
        let is_delayed = |selector: &Selector| self.flows.contains_key(selector) && !is_in_force(selector);
        let is_ready = |pair: &Admitted| pair.selectors.iter().all(is_in_force) && !pair.awaited.iter().any(is_delayed);
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

    /// Advances all flows as far as possible. Reports whether that may allow others to advance.
    fn advance_flows(
        &mut self,
        now: Instant,
        presence: &impl Fn(&Entry) -> Presence,
        is_connected: &impl Fn(u64) -> bool,
        version: &impl Fn(u64) -> u64,
    ) -> bool {
        if !self.leave_paths(now, presence, is_connected) {
            return false;
        }
        let mut is_further = self.advance_class_changes(now, presence);
        let open = self.flows.moving().filter(|(_, flow)| !flow.is_in_force && !flow.is_leaving());
        let open: Vec<Selector> = open.map(|(selector, _)| *selector).collect();
        for selector in open {
            self.omit_branches(selector, presence, is_connected);
            is_further |= self.advance_flow(selector, now, presence, version);
        }
        is_further
    }

    /// Advances one flow as far as possible. Reports whether that may allow others to advance.
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
        if flow.checked_versions.as_ref().is_some_and(|known| known.iter().copied().eq(versions())) {
            return false;
        }
        let refused = flow.placed.iter().find(|entry| has(entry, Presence::Refused));
        if let Some(dpid) = refused.map(|entry| entry.dpid) {
            if self.continue_without_protection(selector, dpid) {
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
            self.flows.mark_checked(&selector, versions);
            return false;
        }
        let is_free = flow.after.iter().all(|other| self.flows.get(other).is_none_or(|flow| flow.is_in_force))
            && (flow.is_served || flow.after_change.is_none());
        if !is_free {
            return false;
        }
        self.is_changed |= self.advance_flow_entries(selector, now, presence);
        let Some(flow) = self.flows.get_mut(&selector) else { return false };
        let is_whole =
            flow.after_change.is_none() && flow.before.is_none() && flow.held_selections.is_empty() && flow.is_placed();
        if !is_whole || !flow.placed.iter().all(|entry| has(entry, Presence::Same)) {
            return false;
        }
        (flow.is_in_force, flow.after) = (true, BTreeSet::new());
        let is_released = |share: &Share| self.admitted.get(&share.pair).is_some_and(|pair| pair.is_released);
        flow.is_served |= flow.shares.iter().any(is_released);
        true
    }

    /// Releases the shares of a flow with these request names. No meter passes them, and no frame
    /// of them is in the network.
    fn release_share(&mut self, request: RequestId, selector: Selector, names: &[String]) {
        if selector.is_group() {
            self.update_group_requests(selector);
        } else {
            let snapshot = self.network.snapshot();
            names.iter().for_each(|name| drop(self.scheduler.remove_request(request, &snapshot, name)));
        }
        self.update_flow(selector);
    }

    /// Removes a flow that is in no switch any more, and frees its share of the network.
    fn free(&mut self, selector: Selector) {
        let Some(flow) = self.flows.remove(&selector) else { return };
        self.scheduler.remove(flow.request);
        self.owners.remove(&flow.request);
        self.meters.remove(&flow.meter);
        self.free_meter = self.free_meter.min(flow.meter);
        self.unblock_uncontracted(selector);
        self.is_changed = true;
    }

    /// Returns the decisions made since the last call.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// Returns the pairs that share the flow of a selector.
    pub fn sharers(&self, selector: &Selector) -> impl Iterator<Item = Pair> {
        self.flows.get(selector).into_iter().flat_map(SharedFlow::present).map(|share| share.pair)
    }

    /// Returns the flows of an admitted pair, that of samples first.
    pub fn selectors(&self, pair: Pair) -> &[Selector] {
        self.admitted.get(&pair).map_or(&[], |admitted| &admitted.selectors)
    }

    /// Reports whether the flow exists.
    pub fn has_flow(&self, selector: &Selector) -> bool {
        self.flows.contains_key(selector)
    }

    /// Returns the meters of flows whose first switch is this one.
    pub fn metered(&self, dpid: u64) -> impl Iterator<Item = (u32, Selector)> {
        let is_policed_here = move |flow: &SharedFlow| flow.policed.as_ref().is_some_and(|(at, _)| *at == dpid);
        self.flows.iter().filter(move |(_, flow)| is_policed_here(flow)).map(|(selector, flow)| (flow.meter, *selector))
    }

    /// Returns a name of a flow for display: the names of its first three requests.
    pub fn flow_name(&self, selector: &Selector) -> String {
        let shares = self.flows.get(selector).into_iter().flat_map(SharedFlow::present);
        let names: BTreeSet<&str> = shares.map(|share| share.demand.request.name.as_str()).collect();
        let first: Vec<&str> = names.iter().take(NAMES_SHOWN).copied().collect();
        let more = names.len().saturating_sub(NAMES_SHOWN);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{}{more}", first.join(", "))
    }

    /// Returns the entries that a switch is to have.
    pub fn entries(&self, dpid: u64) -> Vec<FlowMod> {
        let flows = self.flows.values().filter(|flow| !flow.is_leaving());
        let wanted = flows.flat_map(|flow| &flow.placed).filter(|entry| entry.dpid == dpid);
        wanted.map(|entry| entry.flow.clone()).collect()
    }

    /// Returns the meters that a switch is to have: first the present ones, then those of leaving
    /// entries, which stay until the entries are deleted.
    pub fn meters(&self, dpid: u64) -> Vec<MeterMod> {
        let policed = self.flows.values().filter_map(|flow| flow.policed.as_ref());
        let policed = policed.filter(|(at, _)| *at == dpid).map(|(_, meter)| meter.clone());
        let leaving = self.flows.values().flat_map(|flow| &flow.leaving).filter(|entry| entry.dpid == dpid);
        policed.chain(leaving.filter_map(|entry| entry.meter.clone())).collect()
    }

    /// Returns the groups that a switch is to have.
    pub fn groups(&self, dpid: u64) -> Vec<GroupMod> {
        let flows = self.flows.values().filter(|flow| !flow.is_leaving());
        let entries = flows.flat_map(|flow| &flow.placed).filter(|entry| entry.dpid == dpid);
        entries.filter_map(|entry| entry.group.clone()).collect()
    }

    /// Returns the flows whose entries or meters in the switches may differ from the wanted ones
    /// since the last call.
    pub fn take_changed(&mut self) -> BTreeSet<Selector> {
        self.flows.take_changed()
    }

    /// Returns the wanted state of a flow in the switches; nothing if the flow was removed.
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

    /// Admits a pair. `meters` are those of its flows in an earlier run, whose entries may still be
    /// in the switches.
    fn admit(&mut self, application: &Application, meters: &[u32]) -> Result<(), Refusal> {
        let (pair, importance) = (application.pair, application.contract.importance.value);
        let refusal = |reason: String| Refusal::new(importance, reason);
        let snapshot = self.network.snapshot();
        let demands = Demand::of(application, &self.file, &snapshot).map_err(refusal)?;
        if self.must_wait(pair, &demands) {
            return Err(refusal(ENTRIES_BEING_DELETED.to_owned()));
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
                reported_protection: Protection::NotRequested,
            },
        );
        Ok(())
    }

    /// Takes shares of flows for a pair, all or none. Returns the flows and the largest bound of
    /// samples.
    fn take_shares(
        &mut self,
        application: &Application,
        demands: Vec<Demand>,
        meters: &[u32],
    ) -> Result<(Vec<Selector>, u64), Refusal> {
        let (pair, importance) = (application.pair, application.contract.importance.value);
        let uncontracted_topic = self.uncontracted.topic_at(pair.writer, demands.iter().map(|demand| demand.selector));
        if let Some(topic) = uncontracted_topic.map(str::to_owned) {
            match self.file.without_contract {
                WithoutContract::Refuse => return Err(Refusal::new(importance, uncontracted_reason(&topic))),
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
                    let present_state = self.flows.get(&selector).and_then(SharedFlow::present_state);
                    self.record_share(admitted.id, pair, demand, meters.get(n).copied());
                    // The switches have the last decisions of the earlier run.
                    self.change_classes(if is_restored { &[] } else { &admitted.changes });
                    self.await_changes(selector, present_state);
                    selectors.push(selector);
                }
                Err(refused) => {
                    // No switch has entries of these flows yet.
                    selectors.iter().for_each(|selector| self.retract(*selector, pair));
                    let remedies = self.remedies(&demand);
                    // Flows that changed for the first share keep their present classes.
                    moved.into_iter().for_each(|selector| self.update_flow(selector));
                    return Err(Refusal::of(importance, &refused, remedies));
                }
            }
        }
        for selector in &selectors {
            self.request_protection(selector);
            self.search_backup_paths(*selector);
            self.update_flow(*selector);
            let samples = selectors.first().filter(|_| !self.is_served(selector));
            let samples = samples.filter(|other| !self.waits_for(**other, *selector)).copied();
            let Some(flow) = self.flows.get_mut(selector) else { continue };
            flow.after.extend(samples);
            if is_restored {
                flow.place_all();
            }
        }
        moved.into_iter().for_each(|selector| self.update_flow(selector));
        Ok((selectors, bound_ns))
    }

    /// Decides on a share of a flow and returns its bound.
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

    /// Returns the changes that would make the refused share of a pair fit.
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

    /// Reports whether the entries of a flow wait for those of another flow, directly or
    /// indirectly, or whether both are the same flow.
    fn waits_for(&self, selector: Selector, other: Selector) -> bool {
        let (mut open, mut visited) = (vec![selector], BTreeSet::new());
        while let Some(next) = open.pop() {
            if next == other {
                return true;
            }
            if visited.insert(next) {
                open.extend(self.flows.get(&next).into_iter().flat_map(|flow| &flow.after));
            }
        }
        false
    }

    /// Records the share of a pair in the flow with these requests.
    fn record_share(&mut self, request: RequestId, pair: Pair, demand: Demand, meter: Option<u32>) {
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

    /// Releases the share of a pair that was not admitted.
    fn retract(&mut self, selector: Selector, pair: Pair) {
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        let request = flow.request;
        let is_its = |share: &mut Share| share.pair == pair && !share.is_leaving;
        let names: Vec<String> = flow.shares.extract_if(.., is_its).map(|share| share.demand.request.name).collect();
        if flow.shares.is_empty() {
            self.free(selector);
        } else {
            self.release_share(request, selector, &names);
        }
    }

    /// Updates a flow after its paths, classes or shares have changed. The entries of a served flow
    /// follow step by step.
    fn update_flow(&mut self, selector: Selector) {
        let snapshot = self.network.snapshot();
        let Some(flow) = self.flows.get_mut(&selector).filter(|flow| !flow.is_leaving()) else { return };
        let routes = self.scheduler.routes(&snapshot, flow.request);
        let Some(mut route) = routes.and_then(|routes| routes.into_iter().next()) else { return };
        let known = route.clone();
        for hop in &mut route.hops {
            hop.selection = flow.held_selections.get(&hop.port).copied().or(hop.selection);
        }
        let receivers = flow.receivers(&route, &self.links);
        let Some(first) = entries(&snapshot, &route, &selector, flow.present_policer(), &receivers) else { return };
        let Some(entries) = self.with_backup_paths(&snapshot, &selector, first) else { return };
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
        self.remove_admitted(pair);
        self.refuse(pair, importance, reason);
    }

    fn remove_admitted(&mut self, pair: Pair) {
        let Some(Admitted { selectors, .. }) = self.admitted.remove(&pair) else { return };
        self.unreleased.remove(&pair);
        for selector in selectors {
            let shares = self.flows.get_mut(&selector).into_iter().flat_map(|flow| &mut flow.shares);
            shares.filter(|share| share.pair == pair).for_each(|share| share.is_leaving = true);
            self.flows.get_mut(&selector).into_iter().for_each(|flow| flow.drain = None);
            self.update_flow(selector);
        }
        self.is_changed = true;
    }

    /// Reports whether entries or meters of an earlier share of the pair, or of its flows, are
    /// still being deleted.
    fn must_wait(&self, pair: Pair, demands: &[Demand]) -> bool {
        let mut flows = demands.iter().filter_map(|demand| self.flows.get(&demand.selector));
        flows.any(|flow| flow.is_leaving() || flow.shares.iter().any(|share| share.pair == pair))
    }
}

/// Returns the port of the locator by which a host with this address receives.
pub fn port_of(locators: &[takt_wire::Locator], address: IpAddr) -> Option<u16> {
    let addresses = locators.iter().filter_map(takt_wire::Locator::socket_addr);
    addresses.filter(|own: &SocketAddr| own.ip() == address).map(|own| own.port()).next()
}
