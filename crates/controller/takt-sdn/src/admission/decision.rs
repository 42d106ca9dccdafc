//! Decision on a pair: shares of flows for its samples and its ACKNACKs, all or none.

use std::collections::BTreeSet;

use super::demand::Demand;
use super::shared::{Share, SharedFlow, requests};
use super::uncontracted::uncontracted_reason;
use super::{Admission, Admitted, Application, ENTRIES_BEING_DELETED, FIRST_METER, Outcome, Protection, Refusal};
use crate::discovery::Pair;
use crate::model::WithoutContract;
use crate::rules::Selector;
use crate::schedule::{self, Refused, Remedies, RequestId};

impl Admission {
    /// Admits a pair. `meters` are those of its flows in an earlier run, whose entries may still be
    /// in the switches.
    pub(super) fn admit(&mut self, application: &Application, meters: &[u32]) -> Result<(), Refusal> {
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
    pub(super) fn take_shares(
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

    pub(super) fn is_served(&self, selector: &Selector) -> bool {
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
    pub(super) fn retract(&mut self, selector: Selector, pair: Pair) {
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

    /// Reports whether entries or meters of an earlier share of the pair, or of its flows, are
    /// still being deleted.
    pub(super) fn must_wait(&self, pair: Pair, demands: &[Demand]) -> bool {
        let mut flows = demands.iter().filter_map(|demand| self.flows.get(&demand.selector));
        flows.any(|flow| flow.is_leaving() || flow.shares.iter().any(|share| share.pair == pair))
    }
}
