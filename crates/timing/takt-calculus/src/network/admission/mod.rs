//! Incremental admission control of flows.
//!
//! Every queue has a budget that is at least its bound. A flow is admitted if the queues on its
//! route keep their budgets, or may raise them. A budget is raised to a quarter more than needed,
//! so that the next flows fit without raising it, but only as far as every flow through the queue
//! keeps its limit. If a flow would exceed its limit, the budgets on its route are lowered to the
//! needed values, once.
//!
//! A changed budget changes the jitter of the flows that leave the queue; the ports after it are
//! bounded again. A decision examines the ports on the flow's route and those that changed budgets
//! affect, at most [`PORTS_MAX`]; a flow that would need more is refused. Several flows may be
//! admitted in one decision: then each port is bounded once for all of them.
//!
//! Budgets are lowered only while [`Admission::hold_budgets`] permits it: a frame that was delayed
//! under the larger budget may still be at a later port.

mod draft;
mod drain;
mod removal;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use self::draft::Draft;
use super::journal::{Change, Journal, Set};
use super::load::{Load, Loads};
use super::queue::PortView;
use super::{Flow, FlowBound, Hop, NetworkCertificate, Port, QueueClaim, QueueFault, separated};
use crate::server::Unbounded;

/// Maximum number of port evaluations in one decision. A port counts each time that an earlier
/// budget changes.
pub const PORTS_MAX: usize = 1024;

/// Reason why a flow is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The description is invalid.
    InvalidDescription(&'static str),
    /// With the flow, a queue has no bound, or exceeds its depth.
    Queue {
        /// Queue.
        hop: Hop,
        /// Reason.
        fault: QueueFault,
    },
    /// The end-to-end bound of a flow would exceed its limit.
    ExceedsLimit {
        /// Flow that would exceed its limit: the new one, or an admitted one.
        flow: FlowId,
        /// Bound of that flow with the new one, in nanoseconds.
        bound_ns: u64,
        /// Limit of that flow in nanoseconds.
        limit_ns: u64,
        /// Queue with the largest share of the bound.
        hop: Hop,
    },
    /// The decision would examine too many ports.
    TooManyPorts,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidDescription(what) => f.write_str(what),
            Self::Queue { hop, fault } => write!(f, "class {} of port {}: {fault}", hop.class, hop.port),
            Self::ExceedsLimit { flow, bound_ns, limit_ns, hop } => write!(
                f,
                "flow {} would take up to {bound_ns} ns of {limit_ns} ns, most of it in class {} of port {}",
                flow.0, hop.class, hop.port
            ),
            Self::TooManyPorts => write!(f, "the delay of more than {PORTS_MAX} ports would change"),
        }
    }
}

/// Id of an admitted flow, valid while it is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub usize);

/// Admitted flows of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    ports: Vec<Port>,
    /// Flows by [`FlowId`]; free entries are reused.
    flows: Vec<Option<Flow>>,
    loads: Vec<Loads>,
    /// Claims by port and class.
    queues: Vec<Vec<QueueClaim>>,
    /// Removed flows whose load is still counted.
    removed: BTreeSet<FlowId>,
    /// Free entries of `flows` before its end.
    free: BTreeSet<FlowId>,
    /// Flows that keep their limits only by separated-flow analysis: the sum of their budgets
    /// exceeds the limit.
    by_separated: BTreeSet<FlowId>,
    /// True if budgets are not lowered for a flow that would exceed its limit.
    budgets_are_held: bool,
    /// Changes of the attempts in progress.
    journal: Journal,
    work: Work,
}

/// Number of queues bounded so far. It is ignored when networks are compared.
#[derive(Debug, Default)]
struct Work(AtomicUsize);

impl Clone for Work {
    fn clone(&self) -> Self {
        Self(AtomicUsize::new(self.0.load(Relaxed)))
    }
}

impl PartialEq for Work {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Work {}

/// Flows of a decision, by ascending id.
type New<'a> = &'a [(FlowId, &'a Flow)];

/// Returns the next port to be bounded: the last port of `own` that is still due, otherwise the
/// first port that is due.
fn next_port(own: &mut Vec<usize>, todo: &mut BTreeMap<usize, usize>) -> Option<(usize, usize)> {
    while let Some(port) = own.pop() {
        if let Some(next) = todo.remove_entry(&port) {
            return Some(next);
        }
    }
    todo.pop_first()
}

impl Admission {
    /// Returns a network without flows.
    ///
    /// # Errors
    /// Returns the index of an invalid port, and the reason.
    pub fn new(ports: Vec<Port>) -> Result<Self, (usize, &'static str)> {
        for (at, port) in ports.iter().enumerate() {
            port.check().map_err(|what| (at, what))?;
        }
        let queues = ports.iter().map(|port| alloc::vec![QueueClaim::default(); port.classes.len()]).collect();
        let loads = alloc::vec![Loads::default(); ports.len()];
        Ok(Self {
            flows: Vec::new(),
            loads,
            queues,
            ports,
            removed: BTreeSet::new(),
            free: BTreeSet::new(),
            by_separated: BTreeSet::new(),
            budgets_are_held: false,
            journal: Journal::default(),
            work: Work::default(),
        })
    }

    /// Adds a port and returns its index. Ports are permanent: if a port disappears, its flows must
    /// be removed.
    ///
    /// # Errors
    /// Returns the reason if the port is invalid.
    pub fn add_port(&mut self, port: Port) -> Result<usize, &'static str> {
        port.check()?;
        self.queues.push(alloc::vec![QueueClaim::default(); port.classes.len()]);
        self.loads.push(Loads::default());
        self.ports.push(port);
        Ok(self.ports.len() - 1)
    }

    /// Makes several changes to flows atomically: if they fail, all of them are undone. Attempts
    /// may be nested. Undoing takes work proportional to the changes. Ports must not be added in an
    /// attempt.
    pub fn attempt<T, E>(&mut self, changes: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let from = self.journal.begin();
        let outcome = changes(self);
        if outcome.is_err() {
            while let Some(change) = self.journal.take_after(from) {
                self.undo(change);
            }
        }
        self.journal.end();
        outcome
    }

    fn undo(&mut self, change: Change) {
        match change {
            Change::Place => drop(self.flows.pop()),
            Change::Flow(id, flow) => self.flows[id.0] = flow,
            Change::Loads(port, loads) => self.loads[port] = loads,
            Change::Claim(hop, claim) => self.queues[hop.port][hop.class] = claim,
            Change::Member(set, id, was) => drop(self.put_into(set, id, was)),
        }
    }

    /// Adds a flow to a set or removes it. Returns whether the set contained it.
    fn put_into(&mut self, set: Set, id: FlowId, is_in: bool) -> bool {
        let set = match set {
            Set::Removed => &mut self.removed,
            Set::Free => &mut self.free,
            Set::BySeparated => &mut self.by_separated,
        };
        if is_in { !set.insert(id) } else { set.remove(&id) }
    }

    fn put(&mut self, set: Set, id: FlowId, is_in: bool) {
        let was = self.put_into(set, id, is_in);
        self.journal.record(|| Change::Member(set, id, was));
    }

    fn put_flow(&mut self, id: FlowId, flow: Option<Flow>) {
        let before = core::mem::replace(&mut self.flows[id.0], flow);
        self.journal.record(|| Change::Flow(id, before));
    }

    /// Returns the utilization of a port by its flows in parts of a million. The share of each flow
    /// is rounded up.
    pub fn utilization_ppm(&self, port: usize) -> u64 {
        self.loads[port].iter().fold(0_u64, |sum, load| sum.saturating_add(load.share_ppm))
    }

    /// Returns the ports.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Returns an admitted flow.
    pub fn flow(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(id.0)?.as_ref().filter(|_| !self.removed.contains(&id))
    }

    /// Returns all admitted flows.
    pub fn flows(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        self.counted().filter(|(id, _)| !self.removed.contains(id))
    }

    /// Returns the admitted flows and the removed ones whose load is still counted.
    fn counted(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        self.flows.iter().enumerate().filter_map(|(at, flow)| Some((FlowId(at), flow.as_ref()?)))
    }

    /// Returns the claim of a queue: its budget with the proof.
    pub fn queue(&self, hop: Hop) -> Option<&QueueClaim> {
        self.queues.get(hop.port)?.get(hop.class)
    }

    /// Returns the bound of an admitted flow.
    pub fn bound(&self, id: FlowId) -> Option<FlowBound> {
        let flow = self.flow(id)?;
        Some(self.bound_of(id, flow, &Draft::default()))
    }

    /// Admits a flow. If it is refused, nothing changes.
    pub fn admit(&mut self, flow: Flow) -> Result<(FlowId, FlowBound), Refused> {
        let admitted = self.admit_all(alloc::vec![flow])?;
        admitted.first().copied().ok_or(Refused::InvalidDescription("no flow"))
    }

    /// Admits several flows in one decision, or none of them. The error names the first flow that
    /// is refused.
    pub fn admit_all(&mut self, flows: Vec<Flow>) -> Result<Vec<(FlowId, FlowBound)>, Refused> {
        self.drop_removed();
        let new = self.named(&flows);
        let draft = self.draft(&new)?;
        let admitted = new.iter().map(|(id, flow)| (*id, self.bound_of(*id, flow, &draft))).collect();
        let ids: Vec<FlowId> = new.into_iter().map(|(id, _)| id).collect();
        for (id, flow) in ids.into_iter().zip(flows) {
            if id.0 == self.flows.len() {
                self.flows.push(None);
                self.journal.record(|| Change::Place);
            }
            self.put_flow(id, Some(flow));
            self.put(Set::Free, id, false);
        }
        self.apply(draft);
        Ok(admitted)
    }

    /// Returns the result that [`admit`](Self::admit) would have.
    pub fn what_if(&self, flow: &Flow) -> Result<FlowBound, Refused> {
        let new = self.named(core::slice::from_ref(flow));
        let draft = self.draft(&new)?;
        new.first().map(|(id, flow)| self.bound_of(*id, flow, &draft)).ok_or(Refused::InvalidDescription("no flow"))
    }

    /// Reports whether [`admit_all`](Self::admit_all) would admit these flows.
    pub fn what_if_all(&self, flows: &[Flow]) -> Result<(), Refused> {
        self.draft(&self.named(flows)).map(drop)
    }

    /// Returns the ids that new flows would get: free entries in ascending order.
    fn named<'a>(&self, flows: &'a [Flow]) -> Vec<(FlowId, &'a Flow)> {
        let names = self.free.iter().copied().chain((self.flows.len()..).map(FlowId));
        names.zip(flows).collect()
    }

    /// Reports whether the blocking of a class by lower classes is at most what it was before.
    fn is_blocked_as_before(&self, port: usize, class: usize, draft: &Draft) -> bool {
        let before = PortView { ports: &self.ports, at: port, loads: &self.loads[port] };
        before.blocking_ns(class) == self.view(port, draft).blocking_ns(class)
    }

    fn count_queue(&self) {
        self.work.0.fetch_add(1, Relaxed);
    }

    /// Returns the number of queues bounded so far, in decisions with any outcome. It measures the
    /// work of decisions.
    pub fn queues_bounded(&self) -> usize {
        self.work.0.load(Relaxed)
    }

    /// Returns all flows with the proof of their bounds, including removed flows whose load is
    /// still counted.
    pub fn certificate(&self) -> NetworkCertificate {
        let mut flows = Vec::new();
        let mut bounds = Vec::new();
        for (id, flow) in self.counted() {
            bounds.push(self.bound_of(id, flow, &Draft::default()));
            flows.push(flow.clone());
        }
        NetworkCertificate { ports: self.ports.clone(), flows, queues: self.queues.clone(), bounds }
    }

    /// Returns the index of a flow in the [`certificate`](Self::certificate).
    pub fn index_in_certificate(&self, id: FlowId) -> Option<usize> {
        self.counted().position(|(other, _)| other == id)
    }

    fn budget(&self, hop: Hop, draft: &Draft) -> u64 {
        draft.budget(hop).unwrap_or_else(|| self.queues[hop.port][hop.class].delay_ns)
    }

    fn loads<'a>(&'a self, port: usize, draft: &'a Draft) -> &'a Loads {
        draft.port(port).map_or(&self.loads[port], |draft| draft.loads(&self.loads[port]))
    }

    fn view<'a>(&'a self, port: usize, draft: &'a Draft) -> PortView<'a> {
        PortView { ports: &self.ports, at: port, loads: self.loads(port, draft) }
    }

    fn draft(&self, new: New<'_>) -> Result<Draft, Refused> {
        new.iter().try_for_each(|(_, flow)| flow.check(&self.ports)).map_err(Refused::InvalidDescription)?;
        let mut draft = self.bound_all(new, &[]);
        if let (Err(Refused::ExceedsLimit { flow: late, .. }), false) = (&draft, self.budgets_are_held) {
            let tighten = self.known(*late, new).map_or(&[][..], |flow| &flow.hops);
            draft = self.bound_all(new, tighten);
        }
        draft
    }

    /// Bounds the network with new flows. The budgets of the queues in `tighten` are lowered to the
    /// needed values.
    fn bound_all(&self, new: New<'_>, tighten: &[Hop]) -> Result<Draft, Refused> {
        let mut draft = Draft::default();
        for hop in tighten {
            draft.allow_lowering(*hop);
            draft.mark(*hop);
        }
        new.iter().try_for_each(|(id, flow)| self.route(*id, flow, None, &mut draft))?;
        self.bound_marked(new, &mut draft)?;
        Ok(draft)
    }

    /// Bounds the marked ports, and those that changed budgets affect.
    fn bound_marked(&self, new: New<'_>, draft: &mut Draft) -> Result<(), Refused> {
        let mut done = 0;
        let mut own = self.busiest_last(new);
        while let Some((port, first)) = next_port(&mut own, &mut draft.todo) {
            done += 1;
            if done > PORTS_MAX {
                return Err(Refused::TooManyPorts);
            }
            self.bound_port(port, first, new, draft)?;
        }
        self.check_limits(new, draft)
    }

    /// Returns the ports on the routes of new flows, by ascending number of flows. Most refusals
    /// come from busy ports, so these are bounded first, before changed budgets affect other ports.
    fn busiest_last(&self, new: New<'_>) -> Vec<usize> {
        let hops = new.iter().flat_map(|(_, flow)| &flow.hops);
        let mut ports: Vec<usize> = hops.map(|hop| hop.port).collect();
        ports.sort_unstable_by_key(|port| (self.loads[*port].as_slice().len(), *port));
        ports.dedup();
        ports
    }

    /// Updates the loads of a flow after the load `after`, or all loads of a new flow, to the
    /// arrivals that follow from the budgets. Marks the ports whose loads changed.
    fn route(&self, id: FlowId, flow: &Flow, after: Option<Load>, draft: &mut Draft) -> Result<(), Refused> {
        let overload = |hop: Hop| Refused::Queue { hop, fault: QueueFault::Unbounded(Unbounded::Overload) };
        // One bit for each hop after which the arrivals change.
        let mut moved = after.map_or(0, |after| 1_u64 << after.hop);
        let first = after.map_or(0, |after| after.hop + 1);
        // Load that changed last, usually that of the previous hop.
        let mut last = after;
        for (n, hop) in flow.hops.iter().enumerate().skip(first) {
            let before = flow.before(n);
            let arrivals = match before {
                None => flow.arrivals,
                Some(before) if moved & (1 << before) == 0 => continue,
                Some(before) => {
                    let from = flow.hops[before];
                    let load = last.filter(|load| load.hop == before).or_else(|| {
                        let input = flow.before(before).map(|before| flow.hops[before].port);
                        let loads = &self.loads[from.port];
                        match draft.port(from.port) {
                            Some(port) => port.find(loads, input, id.0).1,
                            None => loads.get(input, id.0).copied(),
                        }
                    });
                    let left = load.and_then(|load| load.departures(&self.ports[from.port], self.budget(from, draft)));
                    left.ok_or_else(|| overload(from))?
                }
            };
            let (before_all, claims) = (&self.loads[hop.port], &self.queues[hop.port]);
            let port = draft.port_mut(hop.port);
            let (place, known) = port.find(before_all, before.map(|before| flow.hops[before].port), id.0);
            let load = known.map(|known| known.with_arrivals(arrivals));
            let load =
                load.or_else(|| Load::new(&self.ports, id.0, flow, n, arrivals)).ok_or_else(|| overload(*hop))?;
            // Unchanged arrivals change nothing at later hops.
            if known == Some(load) {
                continue;
            }
            moved |= 1 << n;
            last = Some(load);
            port.set_load(before_all, place, load);
            if known.is_none_or(|known| !known.has_equal_work(&load, port.longest_busy_ns(hop.class, claims))) {
                draft.mark(*hop);
            }
        }
        Ok(())
    }

    /// Changes the budget of a queue and updates the loads of its flows at later hops. The flows
    /// are marked as possibly exceeding their limits, unless their sums of budgets are known to be
    /// `within` the limits.
    fn change_budget(
        &self,
        hop: Hop,
        (budget_ns, within): (u64, bool),
        new: New<'_>,
        draft: &mut Draft,
    ) -> Result<(), Refused> {
        draft.set_budget(hop, budget_ns);
        let through = self.loads(hop.port, draft).iter().filter(|load| load.class == hop.class);
        for load in through.copied().collect::<Vec<Load>>() {
            let id = FlowId(load.flow);
            let Some(flow) = self.known(id, new) else { continue };
            if self.by_separated.contains(&id) || !within && self.total(flow, draft) > flow.limit_ns {
                draft.over.insert(id);
            }
            self.route(id, flow, Some(load), draft)?;
        }
        Ok(())
    }

    /// Bounds the queues of a port from class `first` on, and the higher classes whose blocking has
    /// grown. Changes the budgets that are too small or to be lowered.
    fn bound_port(&self, port: usize, first: usize, new: New<'_>, draft: &mut Draft) -> Result<(), Refused> {
        for class in 0..self.ports[port].classes.len() {
            let hop = Hop { port, class };
            if class < first && self.is_blocked_as_before(port, class, draft) {
                continue;
            }
            self.count_queue();
            let mut claim = self.view(port, draft).bound(class).map_err(|fault| Refused::Queue { hop, fault })?;
            let (needed_ns, budget_ns) = (claim.delay_ns, self.budget(hop, draft));
            let falls = draft.take_lowering(hop) && needed_ns < budget_ns;
            if needed_ns > budget_ns || falls {
                let changed = if falls { (needed_ns, false) } else { self.raise(hop, needed_ns, new, draft) };
                self.change_budget(hop, changed, new, draft)?;
            }
            claim.delay_ns = self.budget(hop, draft);
            if claim.intervals.is_empty() {
                claim.delay_ns = 0;
            }
            draft.set_claim(hop, claim);
        }
        Ok(())
    }

    fn known<'a>(&'a self, id: FlowId, new: New<'a>) -> Option<&'a Flow> {
        match new.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => Some(new[at].1),
            Err(_) => self.flows.get(id.0)?.as_ref(),
        }
    }

    /// Returns a budget of a quarter more than needed, capped so that the flows through the queue
    /// keep their limits by the sum of budgets. Also returns whether they do.
    fn raise(&self, hop: Hop, needed_ns: u64, new: New<'_>, draft: &Draft) -> (u64, bool) {
        let through = self.loads(hop.port, draft).iter().filter(|load| load.class == hop.class);
        let spare = through.filter_map(|load| self.known(FlowId(load.flow), new)).map(|flow| {
            let time = |other: &Hop| {
                let budget_ns = if *other == hop { 0 } else { self.budget(*other, draft) };
                budget_ns.saturating_add(self.ports[other.port].delay_ns)
            };
            flow.limit_ns.saturating_sub(flow.longest_way(time))
        });
        let most_ns = spare.min().unwrap_or(u64::MAX);
        let budget_ns = needed_ns.saturating_add(needed_ns / 4).min(most_ns).max(needed_ns);
        (budget_ns, budget_ns <= most_ns)
    }

    fn total(&self, flow: &Flow, draft: &Draft) -> u64 {
        flow.longest_way(|hop| self.budget(*hop, draft).saturating_add(self.ports[hop.port].delay_ns))
    }

    fn bound_of(&self, id: FlowId, flow: &Flow, draft: &Draft) -> FlowBound {
        let separated_ns = separated::bound(id.0, flow, |port| self.view(port, draft));
        FlowBound { total_ns: self.total(flow, draft), separated_ns }
    }

    /// Returns the flows that may exceed their limits: new flows, those that exceed them by the sum
    /// of budgets, and those at changed ports that keep them only by separated-flow analysis. All
    /// other flows keep them by the sum, since it was checked with each changed budget.
    fn concerned(&self, new: New<'_>, draft: &Draft) -> BTreeSet<FlowId> {
        let is_touched = |id: &&FlowId| {
            let flow = self.flows[id.0].as_ref();
            flow.is_some_and(|flow| flow.hops.iter().any(|hop| draft.has_loads(hop.port)))
        };
        let by_separated = self.by_separated.iter().filter(is_touched).copied();
        by_separated.chain(draft.over.iter().copied()).chain(new.iter().map(|(id, _)| *id)).collect()
    }

    /// Checks that every flow whose bound may have grown keeps its limit.
    fn check_limits(&self, new: New<'_>, draft: &mut Draft) -> Result<(), Refused> {
        for id in self.concerned(new, draft) {
            let is_over = self.check_limit(id, new, draft)?;
            draft.by_separated.insert(id, is_over);
        }
        Ok(())
    }

    /// Checks the limit of a flow. Reports whether it is kept only by separated-flow analysis.
    fn check_limit(&self, id: FlowId, new: New<'_>, draft: &Draft) -> Result<bool, Refused> {
        let Some(flow) = self.known(id, new) else { return Ok(false) };
        // The sum is cheap to compute and usually sufficient.
        if self.total(flow, draft) <= flow.limit_ns {
            return Ok(false);
        }
        let bound_ns = self.bound_of(id, flow, draft).bound_ns();
        if bound_ns <= flow.limit_ns {
            return Ok(true);
        }
        let most = flow.hops.iter().max_by_key(|hop| self.budget(**hop, draft));
        let hop = *most.unwrap_or(&flow.hops[0]);
        Err(Refused::ExceedsLimit { flow: id, bound_ns, limit_ns: flow.limit_ns, hop })
    }

    fn apply(&mut self, draft: Draft) {
        let (ports, by_separated) = draft.into_ports();
        for (port, changed) in ports {
            let (loads, claims) = changed.into_parts(&self.loads[port]);
            if let Some(loads) = loads {
                let before = core::mem::replace(&mut self.loads[port], loads);
                self.journal.record(|| Change::Loads(port, before));
            }
            for (class, claim) in claims {
                let before = core::mem::replace(&mut self.queues[port][class], claim);
                self.journal.record(|| Change::Claim(Hop { port, class }, before));
            }
        }
        for (id, is_over) in by_separated {
            self.put(Set::BySeparated, id, is_over);
        }
    }
}
