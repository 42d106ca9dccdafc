//! Admission of pairs: from a contract to flow entries that are in force, and back.
//!
//! A pair is one flow from the writer's host to the reader's. A reliable pair has a second one for its ACKNACKs. Both are requests of
//! the [`Scheduler`]; the pair is admitted with both or not at all. Then the entries are wanted one after the other, from the last switch
//! to the first, each once the one before is in its switch. The pair is released when all are there, and flows that were moved for it
//! have their entries of now.
//!
//! A pair that is gone, or does not fit any more, loses its entries first; its share of the network is free when no switch has them.
//! Refused pairs are tried again, the most important first, when a share is free or the network has changed.
//!
//! **What is asked for.** Samples may come to the interface as late as the contract says, so that the meter lets several pass at once: the meter's burst
//! has what comes within the jitter, the variation of forwarding before the meter, and the step in which the meter counts time. HEARTBEATs of a
//! reliable writer go by the same entries as its samples: each datagram has room for one, and those that it sends on their own count as
//! samples. The separation is shortened to what the meter lets pass at its rate, which is a whole number of kilobits per second.

mod demand;
mod explain;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use takt_openflow::flow::FlowMod;
use takt_openflow::meter::MeterMod;

use self::demand::Demand;
pub use self::explain::{Admissible, Progress, Refusal, Trial};
use crate::contract::Contract;
use crate::discovery::Pair;
use crate::model::{HostId, Network, NetworkFile, Snapshot};
use crate::rules::{Entry, Policer, Selector, entries};
use crate::schedule::{RequestId, Scheduler};

/// Meters below are those of packets to the controller.
pub(crate) const FIRST_METER: u32 = 0x1000;

/// One end of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The interface of its host.
    pub host: HostId,
    /// The address that it sends from.
    pub address: IpAddr,
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
        /// Longest time from the interface of the writer's host to the reader's host.
        bound_ns: u64,
    },
    /// The pair must not match.
    Refused {
        /// The pair.
        pair: Pair,
        /// The binding hop and what would make it fit, or what is not known.
        reason: String,
    },
}

/// A flow of a pair.
#[derive(Debug)]
struct Leg {
    request: RequestId,
    selector: Selector,
    policer: Policer,
}

#[derive(Debug)]
struct Admitted {
    importance: i32,
    legs: Vec<Leg>,
    /// Those of each leg, the last switch first.
    entries: Vec<Entry>,
    /// How many of them are wanted.
    wanted: usize,
    /// Pairs whose entries must be in force before.
    after: BTreeSet<Pair>,
    bound_ns: u64,
    is_in_force: bool,
    is_released: bool,
}

/// A pair that is not in force any more, until no switch has its entries.
#[derive(Debug)]
struct Leaving {
    legs: Vec<Leg>,
    entries: Vec<Entry>,
}

/// Admitted pairs, and those that wait.
pub struct Admission {
    file: NetworkFile,
    network: Network,
    scheduler: Scheduler,
    admitted: BTreeMap<Pair, Admitted>,
    leaving: Vec<Leaving>,
    /// Refused pairs, and those that wait for the entries of others to leave.
    refused: BTreeMap<Pair, Refusal>,
    owners: BTreeMap<RequestId, Pair>,
    selectors: BTreeSet<Selector>,
    meters: BTreeSet<u32>,
    outcomes: Vec<Outcome>,
    is_changed: bool,
    shall_retry: bool,
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
            leaving: Vec::new(),
            refused: BTreeMap::new(),
            owners: BTreeMap::new(),
            selectors: BTreeSet::new(),
            meters: BTreeSet::new(),
            outcomes: Vec::new(),
            is_changed: false,
            shall_retry: false,
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
        self.shall_retry = true;
        let snapshot = self.network.snapshot();
        let rerouted = self.scheduler.reroute(&snapshot);
        let mut changed = BTreeSet::new();
        for admitted in &rerouted.admitted {
            let ids = admitted.moved.iter().chain([&admitted.id]);
            changed.extend(ids.filter_map(|id| self.owners.get(id).copied()));
        }
        for (id, _, refused) in &rerouted.dropped {
            let Some(pair) = self.owners.get(id).copied() else { continue };
            changed.remove(&pair);
            self.withdraw(pair, format!("no longer served: {refused}"));
        }
        changed.into_iter().for_each(|pair| self.renew(pair));
    }

    /// Decides. The outcome follows: at once if the pair is refused, when its entries are in force otherwise.
    pub fn ask(&mut self, application: &Application) {
        let pair = application.pair;
        self.refused.remove(&pair);
        if application.writer.host == application.reader.host {
            // Nothing of it goes by the network.
            return self.outcomes.push(Outcome::Admitted { pair, bound_ns: 0 });
        }
        let reader = application.reader.address;
        let is_its = |leg: &Leg| (leg.selector.destination, leg.selector.port) == (reader, application.data_port);
        if self.leaving.iter().flat_map(|leaving| &leaving.legs).any(is_its) {
            // It is asked for again once the entries have left.
            let reason = "flow entries of an earlier pair with its addresses are leaving".to_owned();
            self.refused.insert(pair, Refusal::new(application.contract.importance.value, reason));
            return;
        }
        if let Err(refusal) = self.admit(application, &[]) {
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
            let first = admitted.legs.first().map_or(0, |leg| leg.request.0);
            (*pair, first, admitted.legs.iter().map(|leg| leg.policer.meter).collect())
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
        self.leave(pair);
    }

    /// The refused pair that shall [ask](Self::ask) again next. One decision may take long: between two of them the controller serves its
    /// switches.
    pub fn next_retry(&mut self) -> Option<Pair> {
        if std::mem::take(&mut self.shall_retry) {
            let refused = self.refused.iter().map(|(pair, refusal)| (*pair, refusal.importance));
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
        self.shall_retry || !self.retries.is_empty()
    }

    /// The network, or the hosts of pairs, are known better: refused pairs are tried again.
    pub fn retry(&mut self) {
        self.shall_retry = true;
    }

    /// Goes on with the entries, as far as the switches have them. Whether other entries are wanted now.
    pub fn advance(&mut self, presence: impl Fn(u64, &FlowMod) -> Presence) -> bool {
        let has = |entry: &Entry, wanted| presence(entry.dpid, &entry.flow) == wanted;
        let gone = |leaving: &Leaving| {
            let mut entries = leaving.entries.iter();
            entries.all(|entry| has(entry, Presence::Absent) || has(entry, Presence::Refused))
        };
        let (free, leaving) = std::mem::take(&mut self.leaving).into_iter().partition::<Vec<_>, _>(gone);
        self.leaving = leaving;
        self.shall_retry |= !free.is_empty();
        free.into_iter().for_each(|leaving| self.release_legs(leaving.legs));
        let pairs: Vec<Pair> =
            self.admitted.iter().filter(|(_, flow)| !flow.is_in_force).map(|(pair, _)| *pair).collect();
        for pair in pairs {
            let Some(flow) = self.admitted.get(&pair) else { continue };
            let refused = flow.entries[..flow.wanted].iter().find(|entry| has(entry, Presence::Refused));
            if let Some(dpid) = refused.map(|entry| entry.dpid) {
                self.withdraw(pair, format!("switch {dpid:016x} refuses a flow entry"));
                continue;
            }
            let is_free = flow.after.iter().all(|other| self.admitted.get(other).is_none_or(|flow| flow.is_in_force));
            let Some(flow) = self.admitted.get_mut(&pair).filter(|_| is_free) else { continue };
            while flow.wanted < flow.entries.len()
                && flow.entries[..flow.wanted].iter().all(|entry| has(entry, Presence::Same))
            {
                flow.wanted += 1;
                self.is_changed = true;
            }
            if flow.entries.iter().all(|entry| has(entry, Presence::Same)) {
                (flow.is_in_force, flow.after) = (true, BTreeSet::new());
                if !std::mem::replace(&mut flow.is_released, true) {
                    self.outcomes.push(Outcome::Admitted { pair, bound_ns: flow.bound_ns });
                }
            }
        }
        std::mem::take(&mut self.is_changed)
    }

    /// What was decided.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    fn wanted(&self, dpid: u64) -> impl Iterator<Item = &Entry> {
        let entries = self.admitted.values().flat_map(|flow| &flow.entries[..flow.wanted]);
        entries.filter(move |entry| entry.dpid == dpid)
    }

    /// The entries that a switch shall have.
    pub fn entries(&self, dpid: u64) -> Vec<FlowMod> {
        self.wanted(dpid).map(|entry| entry.flow.clone()).collect()
    }

    /// The meters that a switch shall have; those of entries that leave stay until these have left.
    pub fn meters(&self, dpid: u64) -> Vec<MeterMod> {
        let leaving = self.leaving.iter().flat_map(|leaving| &leaving.entries).filter(|entry| entry.dpid == dpid);
        self.wanted(dpid).chain(leaving).filter_map(|entry| entry.meter.clone()).collect()
    }

    /// Admits a pair. `meters` are those of its flows in an earlier run, whose entries may still be in the switches.
    fn admit(&mut self, application: &Application, meters: &[u32]) -> Result<(), Refusal> {
        let importance = application.contract.importance.value;
        let refusal = |reason: String| Refusal::new(importance, reason);
        let snapshot = self.network.snapshot();
        let demands = Demand::of(application, &self.file, &snapshot).map_err(refusal)?;
        if demands.iter().any(|demand| self.selectors.contains(&demand.selector)) {
            let reason = "another admitted pair uses the same addresses and UDP port, or is just leaving";
            return Err(refusal(reason.to_owned()));
        }
        let (mut legs, mut moved, mut bound_ns) = (Vec::new(), BTreeSet::new(), None);
        for (n, demand) in demands.into_iter().enumerate() {
            match self.scheduler.admit(&snapshot, demand.request.clone()) {
                Ok(admitted) => {
                    bound_ns.get_or_insert(admitted.bound_ns);
                    moved.extend(admitted.moved.iter().filter_map(|id| self.owners.get(id).copied()));
                    self.selectors.insert(demand.selector);
                    let mut free = meters.get(n).copied().into_iter().chain(FIRST_METER..);
                    let meter = free.find(|meter| !self.meters.contains(meter)).unwrap_or(FIRST_METER);
                    self.meters.insert(meter);
                    let Demand { selector, rate_kbps, burst_kbit, .. } = demand;
                    let policer = Policer { meter, rate_kbps, burst_kbit };
                    legs.push(Leg { request: admitted.id, selector, policer });
                }
                Err(refused) => {
                    self.release_legs(legs);
                    let remedies = self.scheduler.remedies(&snapshot, &demand.request);
                    // Flows that moved for the first leg keep the classes that they have now.
                    moved.into_iter().for_each(|pair| self.renew(pair));
                    return Err(Refusal::of(importance, &refused, remedies));
                }
            }
        }
        let pair = application.pair;
        self.owners.extend(legs.iter().map(|leg| (leg.request, pair)));
        moved.iter().for_each(|pair| self.renew(*pair));
        let entries = self.entries_of(&legs);
        let flow = Admitted {
            importance,
            legs,
            wanted: if meters.is_empty() { 0 } else { entries.len() },
            entries,
            after: moved,
            bound_ns: bound_ns.unwrap_or_default(),
            is_in_force: false,
            is_released: false,
        };
        self.admitted.insert(pair, flow);
        self.is_changed = true;
        Ok(())
    }

    fn entries_of(&self, legs: &[Leg]) -> Vec<Entry> {
        let snapshot = self.network.snapshot();
        let of = |leg: &Leg| {
            let routes = self.scheduler.routes(&snapshot, leg.request)?;
            entries(&snapshot, routes.first()?, &leg.selector, leg.policer)
        };
        legs.iter().filter_map(of).flatten().collect()
    }

    /// The ways or classes of a pair's flows are others now: its entries follow at once, since it is served already.
    fn renew(&mut self, pair: Pair) {
        let Some(legs) = self.admitted.get(&pair).map(|flow| &flow.legs) else { return };
        let entries = self.entries_of(legs);
        let Some(flow) = self.admitted.get_mut(&pair) else { return };
        flow.wanted = if flow.is_released { entries.len() } else { 0 };
        (flow.entries, flow.is_in_force) = (entries, false);
        self.is_changed = true;
    }

    fn withdraw(&mut self, pair: Pair, reason: String) {
        let importance = self.admitted.get(&pair).map_or(0, |flow| flow.importance);
        self.leave(pair);
        self.refuse(pair, importance, reason);
    }

    fn leave(&mut self, pair: Pair) {
        let Some(Admitted { legs, entries, .. }) = self.admitted.remove(&pair) else { return };
        self.owners.retain(|_, owner| *owner != pair);
        self.leaving.push(Leaving { legs, entries });
        self.is_changed = true;
    }

    /// The share of flows in the network is free.
    fn release_legs(&mut self, legs: Vec<Leg>) {
        for leg in legs {
            self.scheduler.remove(leg.request);
            self.selectors.remove(&leg.selector);
            self.meters.remove(&leg.policer.meter);
            self.is_changed = true;
        }
    }
}

/// The address and port of a locator that a host with this address receives by.
pub fn port_of(locators: &[takt_wire::Locator], address: IpAddr) -> Option<u16> {
    let addresses = locators.iter().filter_map(takt_wire::Locator::socket_addr);
    addresses.filter(|own: &SocketAddr| own.ip() == address).map(|own| own.port()).next()
}
