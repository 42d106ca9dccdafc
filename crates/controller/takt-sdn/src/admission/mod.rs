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
mod decision;
mod demand;
mod drain;
mod explain;
mod flows;
mod groups;
mod installation;
mod protection;
mod shared;
mod uncontracted;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use takt_openflow::channel::Instant;

use self::change::ClassChanges;
use self::drain::{BrokenPaths, RemovedFlowInfluence};
pub use self::explain::{Admissible, Progress, Refusal, Trial};
use self::flows::Flows;
pub use self::groups::Sibling;
pub use self::protection::Protection;
use self::protection::Protections;
use self::shared::SharedFlow;
use self::uncontracted::Uncontracted;
pub use self::wanted::Wanted;
use crate::contract::Contract;
use crate::devices::Vlan;
use crate::discovery::Pair;
use crate::forwarding::Link;
use crate::model::{HostId, Network, NetworkFile, Snapshot};
use crate::rules::{Selector, entries};
use crate::schedule::{self, PairStages, RequestId, Scheduler};

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

    /// Returns a name of a flow for display: the names of its first three requests.
    pub fn flow_name(&self, selector: &Selector) -> String {
        let shares = self.flows.get(selector).into_iter().flat_map(SharedFlow::present);
        let names: BTreeSet<&str> = shares.map(|share| share.demand.request.name.as_str()).collect();
        let first: Vec<&str> = names.iter().take(NAMES_SHOWN).copied().collect();
        let more = names.len().saturating_sub(NAMES_SHOWN);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{}{more}", first.join(", "))
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
}

/// Returns the port of the locator by which a host with this address receives.
pub fn port_of(locators: &[takt_wire::Locator], address: IpAddr) -> Option<u16> {
    let addresses = locators.iter().filter_map(takt_wire::Locator::socket_addr);
    addresses.filter(|own: &SocketAddr| own.ip() == address).map(|own| own.port()).next()
}
