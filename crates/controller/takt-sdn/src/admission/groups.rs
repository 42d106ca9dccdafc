//! Admission of samples that a writer sends by multicast.
//!
//! A writer with several readers may send each sample once, to a group that they announce. A pair
//! therefore takes a share of a flow to each such group as soon as the writer may use it, next to
//! the share of its unicast flow, and before the writer matches the reader that makes the group
//! usable. A pair keeps the share for as long as it is admitted: a writer that returns to unicast
//! has both.
//!
//! Readers of the writer that need no admission (without a contract, or on the writer's host) are
//! its companions: they wait until the flows of the admitted pairs are in force.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::demand::Demand;
use super::shared::{SharedFlow, requests};
use super::{Admission, Application, ENTRIES_BEING_DELETED, Outcome, Presence, Refusal};
use crate::PortRef;
use crate::discovery::Pair;
use crate::forwarding::Link;
use crate::model::{HostId, Snapshot};
use crate::rules::{Entry, Selector};
use crate::schedule::route;

/// A flow of which an admitted pair got a share by a decision.
pub(super) type Added = (Pair, Selector);

/// An admitted pair of a writer that is about to match another reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// The pair.
    pub pair: Pair,
    /// Demand of the pair after the match, with the groups that the writer may use; or its
    /// importance and the reason why it cannot be served.
    pub application: Result<Application, (i32, String)>,
}

impl Sibling {
    fn name(&self) -> String {
        self.application.as_ref().map_or_else(|_| self.pair.to_string(), |application| application.name.clone())
    }
}

impl Admission {
    /// Reports whether a pair is admitted and has flows.
    pub fn is_admitted(&self, pair: Pair) -> bool {
        self.admitted.contains_key(&pair)
    }

    /// Lets a pair that needs no admission match when the writer's admitted pairs, with the groups
    /// that the writer may then use, have their entries. A pair that is refused because of a flow
    /// that it shares stays refused.
    pub fn admit_companion(&mut self, pair: Pair, siblings: &[Sibling]) {
        if self.uncontracted.is_blocked(pair) {
            return;
        }
        self.refused.remove(&pair);
        match self.extend_all(pair, siblings) {
            Ok(_) => self.await_groups(pair, siblings),
            Err(refusal) => self.wait_or_refuse(pair, refusal),
        }
    }

    /// Admits a pair within a host. It matches in any case, because its discovery passes no switch.
    pub fn admit_local_companion(&mut self, pair: Pair, siblings: &[Sibling]) {
        self.admit_unconditionally(pair, siblings);
        self.await_groups(pair, siblings);
    }

    /// Handles a pair that matches in any case: admitted pairs whose samples do not fit by
    /// multicast are refused.
    pub fn admit_unconditionally(&mut self, pair: Pair, siblings: &[Sibling]) {
        for sibling in siblings {
            if let Err(refusal) = self.extend_all(pair, std::slice::from_ref(sibling)) {
                self.withdraw(sibling.pair, format!("no longer served: {}", refusal.reason));
            }
        }
    }

    fn await_groups(&mut self, pair: Pair, siblings: &[Sibling]) {
        self.companions.insert(pair, self.groups_of(siblings));
    }

    /// Returns the flows to groups of admitted pairs.
    pub(super) fn groups_of(&self, siblings: &[Sibling]) -> BTreeSet<Selector> {
        let admitted = siblings.iter().filter_map(|sibling| self.admitted.get(&sibling.pair));
        admitted.flat_map(|admitted| admitted.selectors.iter().copied()).filter(Selector::is_group).collect()
    }

    /// Releases companions whose flows are in force.
    pub(super) fn free_companions(&mut self) {
        let flows = &self.flows;
        let is_in_force = |selector: &Selector| flows.get(selector).is_none_or(|flow| flow.is_in_force);
        let ready = self.companions.extract_if(.., |_, selectors| selectors.iter().all(is_in_force));
        self.outcomes.extend(ready.map(|(pair, _)| Outcome::Free { pair }));
    }

    /// Gives the admitted pairs shares of the groups that may carry their samples once `pair`
    /// matches: all, or none.
    pub(super) fn extend_all(&mut self, pair: Pair, siblings: &[Sibling]) -> Result<Vec<Added>, Refusal> {
        let mut added = Vec::new();
        for sibling in siblings.iter().filter(|sibling| sibling.pair != pair) {
            let extended = match &sibling.application {
                Ok(application) => self.extend(application),
                Err((importance, reason)) if self.is_admitted(sibling.pair) => {
                    Err(Refusal::new(*importance, reason.clone()))
                }
                Err(_) => Ok(Vec::new()),
            };
            match extended {
                Ok(selectors) => added.extend(selectors.into_iter().map(|selector| (sibling.pair, selector))),
                Err(refusal) => {
                    self.release_added(&added);
                    let reason = match refusal.reason == ENTRIES_BEING_DELETED {
                        true => refusal.reason,
                        false => format!(
                            "with this reader the writer may send by multicast, and {} is then not admitted: {}",
                            sibling.name(),
                            refusal.reason
                        ),
                    };
                    return Err(Refusal { reason, ..refusal });
                }
            }
        }
        Ok(added)
    }

    fn extend(&mut self, application: &Application) -> Result<Vec<Selector>, Refusal> {
        let pair = application.pair;
        let refusal = |reason| Refusal::new(application.contract.importance.value, reason);
        let Some(admitted) = self.admitted.get(&pair) else { return Ok(Vec::new()) };
        let demands = Demand::of(application, &self.file, &self.network.snapshot()).map_err(refusal)?;
        let is_new = |demand: &Demand| demand.selector.is_group() && !admitted.selectors.contains(&demand.selector);
        let demands: Vec<Demand> = demands.into_iter().filter(is_new).collect();
        if self.must_wait(pair, &demands) {
            return Err(refusal(ENTRIES_BEING_DELETED.to_owned()));
        }
        let (selectors, bound_ns) = self.take_shares(application, demands, &[])?;
        if let Some(admitted) = self.admitted.get_mut(&pair) {
            admitted.bound_ns = admitted.bound_ns.max(application.stages.whole_ns(bound_ns));
            admitted.selectors.extend(&selectors);
        }
        Ok(selectors)
    }

    /// Releases shares of which no switch has entries yet.
    pub(super) fn release_added(&mut self, added: &[Added]) {
        for (pair, selector) in added {
            if let Some(admitted) = self.admitted.get_mut(pair) {
                admitted.selectors.retain(|own| own != selector);
            }
            self.retract(*selector, *pair);
        }
    }

    /// Reports whether there are flows to groups whose members have not been set.
    pub fn has_new_groups(&self) -> bool {
        self.has_new_groups
    }

    /// Sets the members of groups and the links to them, after a change or for new groups.
    pub fn set_members(&mut self, links: BTreeSet<Link>, edges: impl Fn(&Selector) -> BTreeSet<PortRef>) {
        self.has_new_groups = false;
        let has_other_links = *self.links != links;
        if has_other_links {
            self.links = Arc::new(links);
            self.allow_branches();
        }
        let groups = self.flows.iter_mut_of(|selector, _| selector.is_group());
        let mut changed = Vec::new();
        for (selector, flow) in groups {
            let others = edges(selector);
            if flow.other_member_edges != others || has_other_links {
                flow.other_member_edges = others;
                changed.push(*selector);
            }
        }
        changed.into_iter().for_each(|selector| self.update_flow(selector));
    }

    /// Allows branches again at switches that refused entries for other members, since they may
    /// have room now.
    pub(super) fn allow_branches(&mut self) {
        let mut changed = Vec::new();
        for (selector, flow) in self.flows.iter_mut_of(|_, flow| !flow.refusing_switches.is_empty()) {
            flow.refusing_switches.clear();
            changed.push(*selector);
        }
        changed.into_iter().for_each(|selector| self.update_flow(selector));
    }

    /// Adds branches again at switches that are connected.
    pub(super) fn reach_branches(&mut self, is_connected: &impl Fn(u64) -> bool) {
        let is_reached = |flow: &SharedFlow| flow.unreachable.iter().any(|dpid| is_connected(*dpid));
        let changed = self.flows.moving().filter(|(_, flow)| is_reached(flow));
        let changed: Vec<Selector> = changed.map(|(selector, _)| *selector).collect();
        for selector in &changed {
            let flow = self.flows.get_mut(selector);
            flow.into_iter().for_each(|flow| flow.unreachable.retain(|dpid| !is_connected(*dpid)));
        }
        changed.into_iter().for_each(|selector| self.update_flow(selector));
    }

    /// Omits branches to other members at switches that refuse the entry for them or are
    /// disconnected: admitted pairs do not need it. A switch without such an entry would forward by
    /// its multicast table, which ignores the branch, and members could get two copies.
    pub(super) fn omit_branches(
        &mut self,
        selector: Selector,
        presence: &impl Fn(&Entry) -> Presence,
        is_connected: &impl Fn(u64) -> bool,
    ) {
        let has_branches = |flow: &SharedFlow| flow.placed.iter().any(|entry| entry.is_branch);
        if !self.flows.get(&selector).is_some_and(has_branches) {
            return;
        }
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        let SharedFlow { placed, leaving, refusing_switches: refusing, unreachable, .. } = flow;
        let is_omitted = |entry: &mut Entry| {
            entry.is_branch
                && match presence(entry) {
                    Presence::Refused => refusing.insert(entry.dpid),
                    Presence::Absent | Presence::Other if !is_connected(entry.dpid) => unreachable.insert(entry.dpid),
                    _ => false,
                }
        };
        let before = placed.len();
        leaving.extend(placed.extract_if(.., is_omitted));
        if placed.len() < before {
            self.update_flow(selector);
        }
    }

    /// Updates the requests of a flow to a group to its shares. A smaller demand, or fewer hosts,
    /// always fits; if rounding makes the scheduler refuse it, the share stays reserved.
    pub(super) fn update_group_requests(&mut self, selector: Selector) {
        let Some(flow) = self.flows.get(&selector).filter(|flow| !flow.shares.is_empty()) else { return };
        let wanted = requests(flow.shares.iter().map(|share| &share.demand));
        if self.scheduler.requests_of(flow.request).is_some_and(|known| known != wanted) {
            let _ = self.scheduler.replace(flow.request, &self.network.snapshot(), wanted);
        }
    }

    /// Removes pairs whose reader is unreachable from flows to groups, which continue to serve the
    /// others.
    pub(super) fn withdraw_unreached(&mut self, snapshot: &Snapshot) {
        let groups: Vec<Selector> = self.flows.keys().filter(|selector| selector.is_group()).copied().collect();
        for selector in groups {
            let Some(flow) = self.flows.get(&selector) else { continue };
            let hosts: BTreeSet<HostId> =
                flow.shares.iter().flat_map(|share| &share.demand.request.destinations).copied().collect();
            let is_lost = |host: &HostId| route::paths(snapshot, selector.sender, *host).is_empty();
            let lost: BTreeSet<HostId> = hosts.into_iter().filter(is_lost).collect();
            let has_lost = |demand: &Demand| demand.request.destinations.iter().any(|host| lost.contains(host));
            let pairs: Vec<Pair> =
                flow.present().filter(|share| has_lost(&share.demand)).map(|share| share.pair).collect();
            for pair in pairs {
                self.withdraw(pair, "no longer served: no path leads to the reader's host".to_owned());
            }
            if let Some(flow) = self.flows.get_mut(&selector).filter(|flow| !flow.is_leaving() && !lost.is_empty()) {
                let request = flow.request;
                // The branches to them no longer count.
                flow.must_leave |= flow.is_served;
                self.leave_broken_paths([request]);
                let Some(flow) = self.flows.get_mut(&selector) else { continue };
                flow.shares.retain(|share| !has_lost(&share.demand));
                self.update_group_requests(selector);
                self.update_flow(selector);
            }
        }
    }
}
