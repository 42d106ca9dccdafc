//! Admission of requests: all flows of a request, or none.
//!
//! A request may join admitted ones with the same source and destinations. No rule of a switch can
//! distinguish their frames. They share the flow entries and the meter of the first request. Each
//! stream keeps its own latency limit. The meter polices their sum, so that a stream may use the
//! share that others leave. The analysis therefore gives each stream of such a bundle one more
//! period of jitter than alone, which covers every mix of their frames that the meter passes. It
//! also counts the burst of each stream twice: the meter changes when a request joins or leaves,
//! and Open vSwitch refills the bucket of a meter that is changed.

pub mod protection;

use std::collections::{BTreeMap, BTreeSet};

use takt_calculus::network::{self as calculus, Admission, Flow, FlowId, NetworkCertificate};

use self::protection::name_backup_flows;
use super::classes::{Moved, Trials};
use super::decision::{Admitted, ClassChange, Reason, Refused, RequestId, Rerouted, Route};
use super::full::FullPorts;
use super::placement::{Candidates, DecisionState, PlacedBundle, PlacementResult, place_all, reason, routes_of};
use super::route::{self, Tree};
use super::streams::{Bundle, Request, Stream, bundles};
use super::table_use::TableUse;
use super::transition::{self, Mover, Step};
use crate::PortRef;
use crate::model::{Allowance, Cause, Egress, Snapshot};

/// Maximum number of admitted requests.
pub const REQUESTS_MAX: usize = 100_000;

/// Requests under one [`RequestId`]: they share source, destinations and flow entries.
#[derive(Debug, Clone)]
struct Entry {
    requests: Vec<Request>,
    bundles: Vec<PlacedBundle>,
}

/// The cost of all decisions so far. It depends only on the requests and the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Number of tried placements.
    pub trials: usize,
    /// Number of computed queue bounds.
    pub queues: usize,
}

/// Flows of control traffic.
#[derive(Debug, Clone, Default)]
struct Control {
    /// Flows, whose classes are fixed.
    flows: BTreeSet<FlowId>,
    /// Ports that are too slow for control traffic.
    refused: BTreeMap<usize, calculus::Refused>,
}

/// Admitted requests in a network. The requests of one [`RequestId`] form an entry: they share
/// source, destinations and flow entries.
#[derive(Debug, Clone)]
pub struct Scheduler {
    network: Admission,
    /// Port of each index in `network`.
    ports: Vec<Egress>,
    /// The index of each port with its present description.
    index: BTreeMap<Egress, usize>,
    entries: BTreeMap<RequestId, Entry>,
    /// Entry of each flow, and the index of its bundle there.
    owners: BTreeMap<FlowId, (RequestId, usize)>,
    /// Number of requests of all entries.
    count: usize,
    table_use: TableUse,
    full: FullPorts,
    control: Control,
    next: u64,
    trials: usize,
}

impl Default for Scheduler {
    fn default() -> Self {
        let network = Admission::new(Vec::new()).expect("an empty network is valid");
        Self {
            network,
            ports: Vec::new(),
            index: BTreeMap::new(),
            entries: BTreeMap::new(),
            owners: BTreeMap::new(),
            count: 0,
            table_use: TableUse::default(),
            full: FullPorts::default(),
            control: Control::default(),
            next: 0,
            trials: 0,
        }
    }
}

impl Scheduler {
    /// Admits all flows of a request, or none. The work grows with the ports of its routes and the
    /// flows there.
    ///
    /// # Errors
    /// The flow that does not fit, with the reason.
    pub fn admit(&mut self, snapshot: &Snapshot, request: Request) -> Result<Admitted, Refused> {
        let id = RequestId(self.next);
        let admitted = self.decide(id, snapshot, vec![request])?;
        self.next += 1;
        Ok(admitted)
    }

    /// Adds a request to an entry whose requests have the same source and destinations. Those keep
    /// their route, and their classes if all fit together. An error leaves the entry unchanged.
    ///
    /// # Errors
    /// The flow that does not fit, with the reason.
    pub fn join(&mut self, id: RequestId, snapshot: &Snapshot, request: Request) -> Result<Admitted, Refused> {
        let requests = self.joined(Some(id), request)?;
        self.decide(id, snapshot, requests)
    }

    /// Replaces all requests of an entry. An error leaves the entry unchanged.
    ///
    /// # Errors
    /// The flow that does not fit, with the reason.
    pub fn replace(&mut self, id: RequestId, snapshot: &Snapshot, requests: Vec<Request>) -> Result<Admitted, Refused> {
        if !self.entries.contains_key(&id) {
            let flow = requests.first().map(|request| request.name.clone()).unwrap_or_default();
            return Err(Refused { flow, reason: Reason::OtherEnds });
        }
        self.decide(id, snapshot, requests)
    }

    /// Returns the requests of an entry, followed by one more.
    fn joined(&self, id: Option<RequestId>, request: Request) -> Result<Vec<Request>, Refused> {
        let Some(id) = id else { return Ok(vec![request]) };
        let known = self.entries.get(&id).map(|entry| &entry.requests);
        let ends = |request: &Request| (request.source, request.destinations.clone());
        let is_same = |known: &&Vec<Request>| known.iter().all(|known| ends(known) == ends(&request));
        match known.filter(is_same) {
            Some(known) => Ok(known.iter().cloned().chain([request]).collect()),
            None => Err(Refused { flow: request.name, reason: Reason::OtherEnds }),
        }
    }

    /// Returns the result that [`admit`](Self::admit) would have, without any change.
    ///
    /// # Errors
    /// The errors of `admit`.
    pub fn what_if(&mut self, snapshot: &Snapshot, request: &Request) -> Result<Admitted, Refused> {
        self.try_out(snapshot, None, request, &mut trials_of(std::slice::from_ref(request)))
    }

    /// Returns the result that [`admit`](Self::admit) or [`join`](Self::join) would have with at
    /// most these trials.
    pub(super) fn try_out(
        &mut self,
        snapshot: &Snapshot,
        joins: Option<RequestId>,
        request: &Request,
        trials: &mut Trials,
    ) -> Result<Admitted, Refused> {
        let id = joins.unwrap_or(RequestId(self.next));
        let requests = self.joined(joins, request.clone())?;
        let (_, admitted) = self.place_requests(id, snapshot, &requests, (trials, false, None))?;
        Ok(admitted)
    }

    /// Removes an entry: its requests with all their flows.
    pub fn remove(&mut self, id: RequestId) -> Option<Vec<Request>> {
        let entry = self.entries.remove(&id)?;
        self.count -= entry.requests.len();
        for bundle in &entry.bundles {
            let removed = self.network.remove_all(&bundle.ids);
            self.full.remove(removed.iter().flat_map(|flow| &flow.hops).map(|hop| &hop.port));
            bundle.ids.iter().for_each(|id| _ = self.owners.remove(id));
            self.table_use.release(&bundle.needs);
            self.table_use.release(&bundle.backups.needs);
        }
        Some(entry.requests)
    }

    /// Removes the request with this name from an entry. The others keep route and classes.
    /// Removing the last request removes the entry.
    pub fn remove_request(&mut self, id: RequestId, snapshot: &Snapshot, name: &str) -> Option<Request> {
        let mut requests = self.entries.get(&id)?.requests.clone();
        let at = requests.iter().position(|request| request.name == name)?;
        let removed = requests.remove(at);
        if requests.is_empty() {
            self.remove(id);
            return Some(removed);
        }
        // The others fit, since they send less. If a rounding error refuses them, the entry keeps
        // the share of all.
        let _ = self.decide(id, snapshot, requests);
        Some(removed)
    }

    /// Iterates over the entries with a port whose link is down or whose description has changed.
    pub fn affected<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = RequestId> + 'a {
        let is_gone = |port: &Egress| self.is_gone(snapshot, port);
        let is_affected =
            move |entry: &Entry| entry.bundles.iter().flat_map(|bundle| self.ports_of(bundle)).any(is_gone);
        self.entries.iter().filter(move |(_, entry)| is_affected(entry)).map(|(id, _)| *id)
    }

    /// Reports whether the link of a port is down, or its description has changed.
    fn is_gone(&self, snapshot: &Snapshot, port: &Egress) -> bool {
        let described = snapshot.port(*port).filter(|_| snapshot.link(*port).is_some_and(|link| link.is_up));
        described.as_ref() != self.index.get(port).map(|at| &self.network.ports()[*at])
    }

    /// Returns the time after the arrival of an entry's last frame at its host's interface until
    /// the ports of its paths are as if it had not been admitted. `None` for an unknown entry.
    pub fn drain_ns(&self, id: RequestId) -> Option<u64> {
        let flows = self.entries.get(&id)?.bundles.iter().flat_map(|bundle| &bundle.ids);
        flows.map(|flow| self.network.drain_ns(*flow, 0).unwrap_or(u64::MAX)).max()
    }

    /// Sets whether budgets of queues must not fall: [`Admission::hold_budgets`].
    pub fn hold_budgets(&mut self, is_held: bool) {
        self.network.hold_budgets(is_held);
    }

    /// Reports whether budgets are held.
    pub fn holds_budgets(&self) -> bool {
        self.network.holds_budgets()
    }

    /// Returns the time for which earlier frames delay others: [`Admission::memory_ns`].
    pub fn memory_ns(&self) -> Option<u64> {
        self.network.memory_ns()
    }

    /// Reroutes the requests with a port whose link is down or whose description has changed.
    /// Order: importance, then time of admission. Receivers that are still reached by the old route
    /// keep it if all requests fit with it. Of requests that share an entry, the least important
    /// ones are dropped until the others fit.
    pub fn reroute(&mut self, snapshot: &Snapshot) -> Rerouted {
        let importance = |entry: &Entry| entry.requests.iter().map(|request| request.contract.importance).max();
        let affected = self.affected(snapshot).filter_map(|id| Some((id, importance(self.entries.get(&id)?))));
        let mut affected: Vec<_> = affected.collect();
        affected.sort_by_key(|(id, importance)| (std::cmp::Reverse(*importance), *id));
        let bases: Vec<Option<Base>> = affected.iter().map(|(id, _)| self.base(*id)).collect();
        let requests: Vec<(RequestId, Vec<Request>)> =
            affected.into_iter().filter_map(|(id, _)| Some((id, self.remove(id)?))).collect();
        let mut rerouted = Rerouted::default();
        for ((id, mut requests), base) in requests.into_iter().zip(bases) {
            while !requests.is_empty() {
                match self.decide_from(id, snapshot, requests.clone(), base.as_ref()) {
                    Ok(admitted) => {
                        rerouted.admitted.push(admitted);
                        break;
                    }
                    Err(refused) => {
                        let least = requests.iter().rev().map(|request| request.contract.importance).min();
                        let at = requests.iter().rposition(|request| Some(request.contract.importance) == least);
                        let removed = requests.remove(at.unwrap_or_default());
                        rerouted.dropped.push((id, removed, refused));
                    }
                }
            }
        }
        rerouted
    }

    /// Returns the admitted requests of an entry.
    pub fn requests_of(&self, id: RequestId) -> Option<&[Request]> {
        self.entries.get(&id).map(|entry| entry.requests.as_slice())
    }

    /// Iterates over all admitted requests.
    pub fn requests(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.entries.iter().flat_map(|(id, entry)| entry.requests.iter().map(|request| (*id, request)))
    }

    /// Returns the present routes of the flows of an entry.
    pub fn routes(&self, snapshot: &Snapshot, id: RequestId) -> Option<Vec<Route>> {
        let entry = self.entries.get(&id)?;
        let routes = |bundle| routes_of(&self.network, &self.ports, snapshot, bundle);
        Some(entry.bundles.iter().flat_map(routes).collect())
    }

    /// Returns the load of admitted flows at a port in ppm of its rate, and the delay bound of each
    /// class in ns. `None` for a port that no request has used so far.
    pub fn port_use(&self, port: Egress) -> Option<(u64, Vec<u64>)> {
        let at = *self.index.get(&port)?;
        let classes = self.network.ports().get(at)?.classes.len();
        let queue = |class| self.network.queue(calculus::Hop { port: at, class }).map_or(0, |claim| claim.delay_ns);
        Some((self.network.utilization_ppm(at), (0..classes).map(queue).collect()))
    }

    /// Returns the cost of all decisions so far, including those that changed nothing.
    pub fn work(&self) -> Work {
        Work { trials: self.trials, queues: self.network.queues_bounded() }
    }

    /// Returns the certificate of all flows: the proof of their bounds, for
    /// [`takt_calculus::network::check`].
    pub fn certificate(&self) -> NetworkCertificate {
        self.network.certificate()
    }

    /// Returns the certificate of all flows, and the index there of the samples of an entry's first
    /// request.
    pub fn certificate_of(&self, id: RequestId) -> Option<(NetworkCertificate, usize)> {
        let samples = *self.entries.get(&id)?.bundles.first()?.ids.first()?;
        Some((self.network.certificate(), self.network.index_in_certificate(samples)?))
    }

    fn decide(&mut self, id: RequestId, snapshot: &Snapshot, requests: Vec<Request>) -> Result<Admitted, Refused> {
        self.decide_from(id, snapshot, requests, None)
    }

    /// Like [`decide`](Self::decide), for requests whose present route is `base`.
    fn decide_from(
        &mut self,
        id: RequestId,
        snapshot: &Snapshot,
        requests: Vec<Request>,
        base: Option<&Base>,
    ) -> Result<Admitted, Refused> {
        let before = self.entries.get(&id).map_or(0, |entry| entry.requests.len());
        if self.count - before + requests.len() > REQUESTS_MAX {
            let flow = requests.last().map(|request| request.name.clone()).unwrap_or_default();
            return Err(Refused { flow, reason: Reason::Full });
        }
        let (results, admitted) =
            self.place_requests(id, snapshot, &requests, (&mut trials_of(&requests), true, base))?;
        self.count = self.count - before + requests.len();
        self.store_entry(id, requests, results);
        Ok(admitted)
    }

    /// Places the flows of requests in the network, and keeps them there if `is_kept`.
    fn place_requests(
        &mut self,
        id: RequestId,
        snapshot: &Snapshot,
        requests: &[Request],
        (trials, is_kept, base): (&mut Trials, bool, Option<&Base>),
    ) -> Result<(Vec<PlacementResult>, Admitted), Refused> {
        let (candidates, former) = self.candidates(id, snapshot, requests, base)?;
        let own = self.own_flows(id);
        let Self { network, ports, table_use, full, control, entries, owners, .. } = self;
        let shared = |flow: FlowId| {
            if control.flows.contains(&flow) {
                return Vec::new();
            }
            let bundle = owners.get(&flow).and_then(|(owner, n)| entries.get(owner)?.bundles.get(*n));
            // A protected flow keeps its classes.
            let bundle = bundle.map(|bundle| (bundle, bundle.backups.paths.is_empty()));
            bundle
                .map_or_else(|| vec![flow], |(bundle, may_move)| if may_move { bundle.ids.clone() } else { Vec::new() })
        };
        let name = requests.last().map(|request| request.name.clone()).unwrap_or_default();
        let refuse = |reason| Refused { flow: name.clone(), reason };
        let before = trials.left();
        let (table_use, remaining_trials) = (table_use.clone(), trials.take());
        let mut state = DecisionState {
            ports,
            snapshot,
            table_use,
            full,
            trials: remaining_trials,
            shared: &shared,
            new_groups: Vec::new(),
        };
        let mut outcome = Err(refuse(Reason::NoRoute));
        let _ = network.attempt(|network| {
            let placed = place_all(network, &mut state, candidates, &former).map(|mut results| {
                follow_own(&mut results);
                let movers = movers(network, &own, &results);
                let flows = |(bundle, _): &PlacementResult| flows_of(network, &bundle.ids);
                let flows: Vec<Flow> = results.iter().flat_map(flows).collect();
                let has_steps = !transition::required_steps(&movers).is_empty();
                (results, has_steps.then_some((movers, flows)))
            });
            // `make_changes` applies a decision that changes classes, in a proved order.
            let is_unchanged = is_kept && placed.as_ref().is_ok_and(|(_, changed)| changed.is_none());
            outcome = placed
                .map(|(results, changed)| (routes_of_all(network, state.ports, snapshot, &results), results, changed));
            if is_unchanged { Ok(()) } else { Err(()) }
        });
        let DecisionState { table_use, trials: left, .. } = state;
        *trials = left;
        self.trials += before.saturating_sub(trials.left());
        let (mut routes, mut results, changed) = outcome?;
        let moved = self.other_moved_entries(id, &results);
        let mut changes = Vec::new();
        if let Some((movers, flows)) = changed {
            let own = own.into_iter().flat_map(|(ids, _)| ids).collect();
            let transition = Transition { movers, own, flows };
            let made = self.make_changes(id, snapshot, &transition, &mut results, is_kept);
            (routes, changes) = made.ok_or_else(|| refuse(Reason::NoOrder))?;
        }
        if is_kept {
            self.table_use = table_use;
        }
        // Bound of the samples of the newest request.
        let bound_ns = routes.iter().find(|route| route.name == name).map_or(0, |route| route.bound_ns);
        Ok((results, Admitted { id, routes, bound_ns, snapshot: snapshot.version(), moved, changes }))
    }

    /// Returns the entries other than `id` whose flows the placement moved.
    fn other_moved_entries(&self, id: RequestId, results: &[PlacementResult]) -> BTreeSet<RequestId> {
        let moves = results.iter().flat_map(|(_, moved)| moved).flat_map(|moved| &moved.before);
        moves.filter_map(|flow| Some(self.owners.get(flow)?.0)).filter(|owner| *owner != id).collect()
    }

    /// Changes classes in a proved order, and keeps the result if `is_kept`. Returns the new routes
    /// of the entry and the changes; `None` if there is no such order.
    fn make_changes(
        &mut self,
        id: RequestId,
        snapshot: &Snapshot,
        transition: &Transition,
        results: &mut [PlacementResult],
        is_kept: bool,
    ) -> Option<(Vec<Route>, Vec<ClassChange>)> {
        let Self { network, ports, owners, .. } = self;
        let (mut steps, mut routes) = (None, Vec::new());
        let _ = network.attempt(|network| {
            steps = transition.apply(network, results);
            routes = routes_of_all(network, ports, snapshot, results);
            if is_kept && steps.is_some() { Ok(()) } else { Err(()) }
        });
        let owner = |step: &Step| {
            let flow = transition.movers.get(step.mover)?.ids.first()?;
            Some(owners.get(flow).map_or(id, |owner| owner.0))
        };
        let change = |step: &Step| class_change(ports, snapshot, owner(step)?, step);
        let changes = steps?.iter().filter_map(change).collect();
        Some((routes, changes))
    }

    /// Stores the placement of an entry, and the new flow ids of other entries whose classes
    /// changed.
    fn store_entry(&mut self, id: RequestId, requests: Vec<Request>, results: Vec<PlacementResult>) {
        for bundle in self.entries.remove(&id).into_iter().flat_map(|entry| entry.bundles) {
            bundle.ids.iter().for_each(|id| _ = self.owners.remove(id));
            self.full.remove(bundle.tree.ports.iter().filter_map(|port| self.index.get(port)));
        }
        let mut bundles: Vec<PlacedBundle> = Vec::new();
        for (n, (bundle, moved)) in results.into_iter().enumerate() {
            // The network reuses flow ids: all old ids of a change are removed before the new ones
            // are stored.
            let owner =
                |Moved { before, .. }: &Moved| before.iter().filter_map(|flow| self.owners.remove(flow)).next_back();
            let owners: Vec<_> = moved.iter().map(owner).collect();
            self.owners.extend(bundle.ids.iter().map(|flow| (*flow, (id, n))));
            bundles.push(bundle);
            for (Moved { before, after, .. }, owner) in moved.into_iter().zip(owners) {
                let Some((owner, n)) = owner else { continue };
                self.owners.extend(after.iter().map(|flow| (*flow, (owner, n))));
                let own = if owner == id { Some(&mut bundles) } else { None };
                let owner_bundles = own.or_else(|| self.entries.get_mut(&owner).map(|entry| &mut entry.bundles));
                for flow in
                    owner_bundles.and_then(|bundles| bundles.get_mut(n)).into_iter().flat_map(|bundle| &mut bundle.ids)
                {
                    let at = before.iter().position(|old| old == flow);
                    *flow = at.and_then(|at| after.get(at)).copied().unwrap_or(*flow);
                }
            }
        }
        self.entries.insert(id, Entry { requests, bundles });
    }

    /// Returns the bundles of requests with their possible routes, and the old bundles that have no
    /// successor. Adds unknown ports to the network.
    fn candidates(
        &mut self,
        id: RequestId,
        snapshot: &Snapshot,
        requests: &[Request],
        base: Option<&Base>,
    ) -> Result<(Vec<Candidates>, Vec<PlacedBundle>), Refused> {
        let refuse = |request: &Request, reason| Refused { flow: request.name.clone(), reason };
        if let Some((request, what)) = requests.iter().find_map(|request| Some((request, invalid(request)?))) {
            return Err(refuse(request, Reason::Invalid(what)));
        }
        let bundles = bundles(requests).map_err(|(request, error)| refuse(request, Reason::Format(error)))?;
        let mut before = self.entries.get(&id).map(|entry| entry.bundles.clone()).unwrap_or_default();
        let mut candidates = Vec::new();
        for bundle in bundles {
            let at = before.iter().position(|placed| placed.has_ends_of(&bundle));
            let placed = at.map(|at| before.swap_remove(at));
            let of_source =
                before.iter().find(|placed| placed.streams.first().map(|it| it.source) == Some(bundle.source));
            let own = of_source.and_then(|placed| self.base_of(placed));
            let must_stay = own.is_some();
            let base = own.as_ref().or(base).map(|base| (base, must_stay));
            candidates.push(self.candidates_of(snapshot, bundle, placed, base)?);
        }
        Ok((candidates, before))
    }

    fn candidates_of(
        &mut self,
        snapshot: &Snapshot,
        bundle: Bundle,
        before: Option<PlacedBundle>,
        base: Option<(&Base, bool)>,
    ) -> Result<Candidates, Refused> {
        let no_route = || Refused { flow: bundle.name(), reason: Reason::NoRoute };
        if let Some(before) = before {
            let hops = |flow: &FlowId| self.network.flow(*flow).map(|flow| flow.hops.clone());
            let mut firsts = before.ids.iter().step_by(before.streams.len().max(1));
            let own = firsts.next().and_then(hops).ok_or_else(no_route)?;
            let mut all = flows(snapshot, &bundle.streams, &before.tree, &own);
            for ((_, path), first) in before.backups.paths.iter().zip(firsts) {
                let own = hops(first).ok_or_else(no_route)?;
                all.extend(name_backup_flows(flows(snapshot, &bundle.streams, path, &own)));
            }
            let flows = all;
            return Ok(Candidates { bundle, paths: vec![(before.tree.clone(), flows)], before: Some(before) });
        }
        let trees = route::trees(snapshot, bundle.source, &bundle.destinations).ok_or_else(no_route)?;
        // When the receivers change, the remaining ones keep route and classes: always for an
        // admitted bundle, otherwise if all fit.
        let present_tree =
            base.and_then(|(base, _)| route::extended(snapshot, &base.tree, bundle.source, &bundle.destinations));
        let must_stay = base.is_some_and(|(_, must_stay)| must_stay) && present_tree.is_some();
        let others =
            trees.into_iter().filter(|tree| !must_stay && present_tree.as_ref() != Some(tree)).collect::<Vec<_>>();
        let mut paths = Vec::new();
        for tree in present_tree.iter().cloned().chain(others) {
            let hops = tree.ports.iter().map(|port| self.hop(snapshot, *port)).collect::<Option<Vec<_>>>();
            let mut hops = hops.ok_or_else(no_route)?;
            if let Some((base, _)) = base.filter(|_| present_tree.as_ref() == Some(&tree)) {
                base.keep_classes(&tree, &mut hops);
            }
            if let Some(why) = hops.iter().find_map(|hop| self.control.refused.get(&hop.port)) {
                let reason = reason(&self.network, &self.ports, "control traffic", why.clone());
                return Err(Refused { flow: bundle.name(), reason });
            }
            let load = hops.iter().map(|hop| self.network.utilization_ppm(hop.port)).max();
            let flows = flows(snapshot, &bundle.streams, &tree, &hops);
            paths.push((load, tree, flows));
        }
        paths.sort_by_key(|(load, tree, _)| (present_tree.as_ref() != Some(tree), *load, tree.ports.len()));
        let paths = paths.into_iter().map(|(_, tree, flows)| (tree, flows)).collect();
        Ok(Candidates { bundle, paths, before: None })
    }

    /// Returns the route and classes of an entry, if it has several receivers.
    fn base(&self, id: RequestId) -> Option<Base> {
        let bundle = self.entries.get(&id)?.bundles.first()?;
        let has_several = bundle.streams.first().is_some_and(|stream| stream.destinations.len() > 1);
        self.base_of(bundle).filter(|_| has_several)
    }

    fn base_of(&self, bundle: &PlacedBundle) -> Option<Base> {
        let flow = self.network.flow(*bundle.ids.first()?)?;
        Some(Base { tree: bundle.tree.clone(), classes: flow.hops.iter().map(|hop| hop.class).collect() })
    }

    /// Returns the flows of an entry with their ids, by bundle.
    fn own_flows(&self, id: RequestId) -> Vec<(Vec<FlowId>, Vec<Flow>)> {
        let bundles = self.entries.get(&id).into_iter().flat_map(|entry| &entry.bundles);
        bundles.map(|bundle| (bundle.ids.clone(), flows_of(&self.network, &bundle.ids))).collect()
    }

    /// Returns the hop at a port in its lowest class with contracts.
    fn hop(&mut self, snapshot: &Snapshot, port: Egress) -> Option<calculus::Hop> {
        let described = snapshot.port(port)?;
        let model = match port {
            Egress::Switch(PortRef { dpid, .. }) => snapshot.switch(dpid),
            Egress::Host(_) => None,
        };
        let class = model.map_or(described.classes.len(), |model| model.queues.len()) - 1;
        let known = self.index.get(&port).copied().filter(|at| self.network.ports()[*at] == described);
        let at = known.or_else(|| {
            let at = self.network.add_port(described).ok()?; // tidy-allow(dropped-cause): a port of a network is valid.
            self.ports.push(port);
            self.index.insert(port, at);
            if model.is_some_and(|model| model.control.is_some()) {
                self.add_control(calculus::Hop { port: at, class: class + 1 });
            }
            Some(at)
        })?;
        Some(calculus::Hop { port: at, class })
    }

    /// Adds the control traffic of the controller at a port.
    fn add_control(&mut self, hop: calculus::Hop) {
        let port = self.network.ports()[hop.port].clone();
        let flows = Cause::ALL
            .map(|cause| Allowance::of(cause, port.rate_bps, port.foreign_frame_len).flow(cause, &port.name, hop));
        let admit = |network: &mut Admission| flows.into_iter().map(|flow| Ok(network.admit(flow)?.0)).collect();
        match self.network.attempt(admit) {
            Ok::<Vec<FlowId>, _>(ids) => self.control.flows.extend(ids),
            Err(refused) => _ = self.control.refused.insert(hop.port, refused),
        }
    }
}

/// Present route of a request.
#[derive(Debug, Clone)]
struct Base {
    tree: Tree,
    /// Class at each of its ports.
    classes: Vec<usize>,
}

impl Base {
    /// Gives the hops of a tree the classes of this route, where those are more urgent.
    fn keep_classes(&self, tree: &Tree, hops: &mut [calculus::Hop]) {
        for (port, hop) in tree.ports.iter().zip(hops) {
            let known = self.tree.ports.iter().position(|own| own == port);
            hop.class = known.and_then(|at| self.classes.get(at)).copied().unwrap_or(hop.class).min(hop.class);
        }
    }
}

fn flows_of(network: &Admission, ids: &[FlowId]) -> Vec<Flow> {
    ids.iter().filter_map(|id| network.flow(*id).cloned()).collect()
}

fn routes_of_all(
    network: &Admission,
    ports: &[Egress],
    snapshot: &Snapshot,
    results: &[PlacementResult],
) -> Vec<Route> {
    results.iter().flat_map(|(bundle, _)| routes_of(network, ports, snapshot, bundle)).collect()
}

/// Updates the ids of flows of an earlier bundle of the decision that moved for a later one.
fn follow_own(results: &mut [PlacementResult]) {
    for n in 1..results.len() {
        let (earlier, rest) = results.split_at_mut(n);
        let Some((_, moved)) = rest.first_mut() else { return };
        moved.retain(|moved| match earlier.iter_mut().find(|(bundle, _)| bundle.ids == moved.before) {
            Some((bundle, _)) => {
                bundle.ids.clone_from(&moved.after);
                false
            }
            None => true,
        });
    }
}

/// Returns the flows that change their classes in a decision: those of others, and the entry's
/// `own`. Each occurs once, with its ids before the decision.
fn movers(network: &Admission, own: &[(Vec<FlowId>, Vec<Flow>)], results: &[PlacementResult]) -> Vec<Mover> {
    let hops = |ids: &[FlowId]| ids.first().and_then(|id| network.flow(*id)).map(|flow| flow.hops.clone());
    let mut others: Vec<(&Moved, &Moved)> = Vec::new();
    for moved in results.iter().flat_map(|(_, moved)| moved) {
        match others.iter_mut().find(|(_, last)| last.after == moved.before) {
            Some((_, last)) => *last = moved,
            None => others.push((moved, moved)),
        }
    }
    let other = |(first, last): (&Moved, &Moved)| Mover {
        flows: first.flows.clone(),
        ids: first.before.clone(),
        hops: hops(&last.after).unwrap_or_default(),
    };
    let others = others.into_iter().map(other);
    let own = own.iter().map(|(ids, flows)| {
        let source = |flow: &Flow| flow.hops.first().map(|hop| hop.port);
        let is_same = |(bundle, _): &&PlacementResult| {
            let known = bundle.ids.first().and_then(|id| network.flow(*id));
            known.zip(flows.first()).is_some_and(|(new, old)| source(new) == source(old))
        };
        let hops = results.iter().find(is_same).and_then(|(bundle, _)| hops(&bundle.ids)).unwrap_or_default();
        Mover { flows: flows.clone(), ids: ids.clone(), hops }
    });
    others.chain(own).collect()
}

/// A decision that requires class changes.
struct Transition {
    movers: Vec<Mover>,
    /// Flows of the entry before the decision.
    own: Vec<FlowId>,
    /// Flows of the entry after the decision.
    flows: Vec<Flow>,
}

impl Transition {
    /// Makes the changes in a proved order, and then admits the flows of the entry. `results` gets
    /// the new ids of all flows. `None` if there is no such order.
    fn apply(&self, network: &mut Admission, results: &mut [PlacementResult]) -> Option<Vec<Step>> {
        let steps = transition::find_order(network, &self.movers)?;
        let after = transition::apply_steps(network, &self.movers, &steps)?;
        let admitted = transition::with_held_budgets(network, |network| {
            let budgets: Vec<_> = network.budgets().collect();
            let replaced = |flow: &FlowId| {
                let mover = self.movers.iter().position(|mover| mover.ids.contains(flow))?;
                let n = self.movers[mover].ids.iter().position(|id| id == flow)?;
                after[mover].get(n).copied()
            };
            let own: Vec<FlowId> = self.own.iter().map(|flow| replaced(flow).unwrap_or(*flow)).collect();
            network.remove_all(&own);
            let admitted = network.admit_all(self.flows.clone()).ok()?; // tidy-allow(dropped-cause): the state is not proved.
            // The proof then covers frames of the entry that were delayed by larger budgets.
            network.raise_budgets(&budgets).ok()?; // tidy-allow(dropped-cause): the state is not proved.
            Some(admitted)
        })?;
        let mut ids = admitted.into_iter().map(|(id, _)| id);
        for (bundle, moved) in results.iter_mut() {
            bundle.ids = ids.by_ref().take(bundle.ids.len()).collect();
            moved.clear();
        }
        let others =
            self.movers.iter().zip(after).filter(|(mover, _)| mover.ids.iter().all(|id| !self.own.contains(id)));
        let moved =
            others.map(|(Mover { flows, ids, .. }, after)| Moved { flows: flows.clone(), before: ids.clone(), after });
        results.first_mut()?.1.extend(moved);
        Some(steps)
    }
}

/// Returns the class change at a switch port; `None` at the interface of a host, which has one
/// class.
fn class_change(ports: &[Egress], snapshot: &Snapshot, id: RequestId, step: &Step) -> Option<ClassChange> {
    let port = *ports.get(step.hop.port)?;
    let Egress::Switch(PortRef { dpid, .. }) = port else { return None };
    let queues = &snapshot.switch(dpid)?.queues;
    let (before, after) = (queues.get(step.hop.class)?.selection, queues.get(step.class)?.selection);
    Some(ClassChange { id, port, before, after, drain_ns: step.drain_ns })
}

/// Returns the flows of streams on a route, with the arrivals that its meter permits.
fn flows(snapshot: &Snapshot, streams: &[Stream], tree: &Tree, hops: &[calculus::Hop]) -> Vec<Flow> {
    let flow = |stream: &Stream| {
        let mut arrivals = stream.arrivals;
        arrivals.period_ns = metered(snapshot, tree, arrivals.period_ns);
        if streams.len() > 1 {
            let more = arrivals.at_once().saturating_add(1);
            arrivals.jitter_ns = arrivals.jitter_ns.saturating_add(arrivals.period_ns.saturating_mul(more));
        }
        Flow {
            name: stream.name.clone(),
            arrivals,
            frames: stream.frames.clone(),
            hops: hops.to_vec(),
            branches: tree.branches.clone(),
            limit_ns: stream.limit_ns,
        }
    };
    streams.iter().map(flow).collect()
}

/// Returns the trials of a decision: one budget for the entry of samples, and one for each
/// destination that sends ACKNACKs.
pub(super) fn trials_of(requests: &[Request]) -> Trials {
    let reliable = requests.iter().filter(|request| request.contract.reliability.is_some());
    let entries = reliable.map(|request| request.destinations.len()).max().unwrap_or_default().saturating_add(1);
    Trials::of_entries(entries)
}

/// Returns the reason why a request is invalid.
fn invalid(request: &Request) -> Option<&'static str> {
    let contract = &request.contract;
    let heartbeat_ns = contract.reliability.map(|reliability| reliability.heartbeat_period_ns);
    if request.destinations.is_empty() {
        Some("it has no destination")
    } else if request.destinations.contains(&request.source) {
        Some("its source is a destination")
    } else if contract.min_separation_ns == 0 || heartbeat_ns == Some(0) {
        Some("its minimum separation, or its HEARTBEAT period, is 0")
    } else if contract.burst == 0 {
        Some("its burst is 0")
    } else if contract.sample_len == 0 {
        Some("its samples have no octet")
    } else {
        None
    }
}

/// Returns the period of a flow that violates its contract, after the meter of its first switch.
fn metered(snapshot: &Snapshot, tree: &Tree, period_ns: u64) -> u64 {
    let first = tree.ports.iter().find_map(|port| match port {
        Egress::Switch(PortRef { dpid, .. }) => snapshot.switch(*dpid),
        Egress::Host(_) => None,
    });
    let ppm = first.map_or(0, |model| u128::from(model.rate_limiter_ppm));
    let period = u128::from(period_ns) * 1_000_000 / (1_000_000 + ppm);
    u64::try_from(period).unwrap_or(u64::MAX).max(1)
}
