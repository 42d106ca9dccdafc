//! Explanations of admission decisions: what a pair got, why it is refused, and what a trial would
//! decide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use takt_calculus::network::NetworkCertificate;

use super::demand::Demand;
use super::shared::{SharedFlow, requests};
use super::{Admission, Application, Protection};
use crate::discovery::Pair;
use crate::model::{Egress, NetworkFile, Snapshot};
use crate::rules::Selector;
use crate::schedule::{BackupPath, PairStages, Reason, Refused, Remedies, RequestId, Route, Scheduler};

/// Why a pair does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Importance of the pair.
    pub importance: i32,
    /// Reason as text, without the remedies.
    pub reason: String,
    /// Port and class that are the bottleneck, if there is one.
    pub hop: Option<(Egress, usize)>,
    /// Changes that would each make the pair admissible.
    pub remedies: Remedies,
    /// Whether a switch refused an entry: the pair is not tried again before the switch may have
    /// room.
    pub is_by_switch: bool,
}

impl Refusal {
    pub(super) fn new(importance: i32, reason: String) -> Self {
        Self { importance, reason, hop: None, remedies: Remedies::default(), is_by_switch: false }
    }

    pub(super) fn of(importance: i32, refused: &Refused, remedies: Remedies) -> Self {
        let hop = match refused.reason {
            Reason::Queue { port, class, .. } | Reason::ExceedsLimit { port, class, .. } => Some((port, class)),
            _ => None,
        };
        Self { importance, reason: refused.to_string(), hop, remedies, is_by_switch: false }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { remedies, .. } = self;
        let remedies = [
            remedies.limit_ns.map(|limit_ns| format!("a limit of {limit_ns} ns")),
            remedies.min_separation_ns.map(|separation_ns| format!("a separation of {separation_ns} ns")),
            remedies.sample_len.map(|sample_len| format!("samples of {sample_len} octets")),
        ];
        let remedies: Vec<String> = remedies.into_iter().flatten().collect();
        f.write_str(&self.reason)?;
        if remedies.is_empty() { Ok(()) } else { write!(f, "; would fit: {}", remedies.join(", or ")) }
    }
}

/// State of an admitted pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Whether all its present entries are in force.
    pub is_in_force: bool,
    /// Paths and bounds of its samples, then of its ACKNACKs, then of its samples to groups.
    pub routes: Vec<Route>,
    /// Bound of the latency of a sample in ns, with the stages of the hosts.
    pub bound_ns: u64,
    /// Latency stages of its hosts.
    pub stages: PairStages,
    /// Protection of the pair against the failure of a link.
    pub protection: Protection,
    /// Backup paths of its samples and of its ACKNACKs.
    pub backup_paths: Vec<BackupPath>,
}

impl Progress {
    /// Returns the largest bound of the network for its samples, by unicast and by groups.
    pub fn samples_ns(&self) -> Option<u64> {
        let source = self.routes.first()?.source;
        self.routes.iter().filter(|route| route.source == source).map(|route| route.bound_ns).max()
    }
}

impl Admission {
    /// Returns the state of an admitted pair; `None` for other pairs, and for pairs within one
    /// host.
    pub fn progress(&self, pair: Pair) -> Option<Progress> {
        let admitted = self.admitted.get(&pair)?;
        let snapshot = self.network.snapshot();
        let flows = || admitted.selectors.iter().filter_map(|selector| self.flows.get(selector));
        let routes = flows().flat_map(|flow| {
            let own = flow.shares.iter().filter(|share| share.pair == pair).map(|share| &share.demand.request.name);
            let names: BTreeSet<&String> = own.collect();
            let routes = self.scheduler.routes(&snapshot, flow.request).unwrap_or_default();
            routes.into_iter().filter(move |route| names.contains(&route.name))
        });
        let (bound_ns, stages) = (admitted.bound_ns, admitted.stages.clone());
        let is_in_force = flows().all(|flow| flow.is_in_force);
        let backup_paths = flows().flat_map(|flow| self.scheduler.backup_paths(&snapshot, flow.request)).collect();
        let protection = self.protection(pair);
        Some(Progress { is_in_force, routes: routes.collect(), bound_ns, stages, protection, backup_paths })
    }

    /// Returns the reason why a pair is refused or waits.
    pub fn refusal(&self, pair: Pair) -> Option<&Refusal> {
        self.refused.get(&pair)
    }

    /// Copies the state that decisions depend on. The cost is that of copying all admitted flows.
    pub fn trial(&self) -> Trial {
        let flows = self.flows.iter().filter(|(_, flow)| !flow.is_leaving());
        let known = |(selector, flow): (&Selector, &SharedFlow)| {
            let shares = if selector.is_group() { &flow.shares[..] } else { &[] };
            (*selector, (flow.request, shares.iter().map(|share| share.demand.clone()).collect()))
        };
        Trial {
            file: self.file.clone(),
            snapshot: self.network.snapshot(),
            scheduler: self.scheduler.clone(),
            flows: flows.map(known).collect(),
        }
    }
}

/// A copy of the admitted flows for trial decisions, which leave the admission itself unchanged.
#[derive(Debug, Clone)]
pub struct Trial {
    file: NetworkFile,
    snapshot: Arc<Snapshot>,
    scheduler: Scheduler,
    /// Admitted flows, with the demands of their pairs on flows to groups.
    flows: BTreeMap<Selector, (RequestId, Vec<Demand>)>,
}

/// Result that a pair would get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admissible {
    /// Bound of the latency in ns from the interface of the writer's host to the reader's host.
    pub bound_ns: u64,
    /// Paths of its samples and ACKNACKs.
    pub routes: Vec<Route>,
    /// Number of admitted requests that would change their classes.
    pub moved: usize,
}

impl Trial {
    /// Decides what [`Admission::request`] would decide on the first of these pairs of one writer,
    /// with the others after it.
    ///
    /// # Errors
    /// The refusal of the first pair that would be refused.
    pub fn decide(mut self, applications: &[Application]) -> Result<Admissible, Refusal> {
        let (mut own, mut moved) = (Vec::new(), BTreeSet::new());
        // Demands on groups by the pairs decided before.
        let mut shares: BTreeMap<Selector, Vec<Demand>> = BTreeMap::new();
        for (n, application) in applications.iter().enumerate() {
            let importance = application.contract.importance.value;
            let demands = Demand::of(application, &self.file, &self.snapshot);
            for demand in demands.map_err(|reason| Refusal::new(importance, reason))? {
                let joins = self.flows.get(&demand.selector).map(|(id, _)| *id);
                let decision = match joins {
                    Some(id) if demand.selector.is_group() => {
                        let known = self.flows.get(&demand.selector).map_or(&[][..], |(_, known)| known);
                        let own = shares.entry(demand.selector).or_default();
                        own.push(demand.clone());
                        self.scheduler.replace(id, &self.snapshot, requests(known.iter().chain(own.iter())))
                    }
                    Some(id) => self.scheduler.join(id, &self.snapshot, demand.request.clone()),
                    None => self.scheduler.admit(&self.snapshot, demand.request.clone()),
                };
                match decision {
                    Ok(admitted) => {
                        self.flows.entry(demand.selector).or_insert((admitted.id, Vec::new()));
                        if demand.selector.is_group() && joins.is_none() {
                            shares.entry(demand.selector).or_default().push(demand.clone());
                        }
                        let is_of_writer = demand.selector.source == application.writer.address;
                        let counts = is_of_writer && (n == 0 || demand.selector.is_group());
                        own.push((admitted.id, demand.request.name, counts));
                        moved.extend(admitted.moved);
                    }
                    Err(refused) if demand.selector.is_group() => {
                        return Err(Refusal::of(importance, &refused, Remedies::default()));
                    }
                    Err(refused) => {
                        let remedies = demand.remedies(self.scheduler.remedies(&self.snapshot, joins, &demand.request));
                        return Err(Refusal::of(importance, &refused, remedies));
                    }
                }
            }
        }
        let find = |(id, name, of_samples): &(RequestId, String, bool)| {
            let routes = self.scheduler.routes(&self.snapshot, *id)?;
            Some((routes.into_iter().find(|route| route.name == *name)?, *of_samples))
        };
        let routes: Vec<(Route, bool)> = own.iter().filter_map(find).collect();
        let samples = routes.iter().filter(|(_, of_samples)| *of_samples);
        let bound_ns = samples.map(|(route, _)| route.bound_ns).max().unwrap_or_default();
        let bound_ns = applications.first().map_or(bound_ns, |application| application.stages.whole_ns(bound_ns));
        let own: BTreeSet<RequestId> = own.into_iter().map(|(id, ..)| id).collect();
        let moved = moved.difference(&own).count();
        Ok(Admissible { bound_ns, routes: routes.into_iter().map(|(route, _)| route).collect(), moved })
    }

    /// Returns all admitted flows with the proof of their bounds, for
    /// [`takt_calculus::network::check`].
    pub fn certificate(&self) -> NetworkCertificate {
        self.scheduler.certificate()
    }
}
