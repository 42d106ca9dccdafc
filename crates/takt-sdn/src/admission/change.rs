//! Changes of flows that are served: no state in between breaks what is proved.
//!
//! **One flow.** Its entries go from what the switches have to what they shall have in steps, each confirmed before the next:
//!
//! 1. Entries for frames that come in by another port than before, the last switch first. No frame reaches them yet.
//! 2. Entries that do something else than before, the last switch first: then frames go by the entries of step 1.
//! 3. The meter.
//! 4. Entries that no frame reaches any more are deleted, that of the first switch before the others.
//!
//! **Classes.** Several flows change their classes for a new one: port by port, in the order that [`crate::schedule`] has proved. The new one comes
//! after the last change.
//!
//! **Ways.** A flow whose way is broken first leaves the ports of before, back to where its frames still arrive. When all such flows have left
//! theirs, they take the ports of after. So no port ever carries more than it did before, or shall carry after. In between, frames to hosts that
//! are reached by another way have no class.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::shared::SharedFlow;
use super::{Admission, Presence};
use crate::model::{Egress, HostId, Node, Reach, Snapshot};
use crate::rules::{Entry, Policer, Selector};
use crate::schedule::{ClassChange, Route};

/// Changes of classes that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct ClassChanges {
    /// The number of the first one that is not made.
    first: u64,
    queue: VecDeque<(Selector, Egress, Reach)>,
    /// Whether the first one is under way.
    is_begun: bool,
}

impl ClassChanges {
    /// The number of the last one; `None` if none waits.
    fn last(&self) -> Option<u64> {
        let len = u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
        len.checked_sub(1).map(|more| self.first.saturating_add(more))
    }
}

/// The ports and classes by which a route leads to each host.
fn ways(snapshot: &Snapshot, route: &Route) -> BTreeMap<HostId, Vec<(Egress, usize)>> {
    let way = |end: usize| {
        let mut way = Vec::new();
        let mut at = Some(end);
        while let Some(hop) = at.and_then(|at| route.hops.get(at)) {
            way.push((hop.port, hop.class));
            at = hop.after;
        }
        way
    };
    let ends = route.hops.iter().enumerate().filter_map(|(n, hop)| match snapshot.link(hop.port)?.to {
        Node::Host(host) => Some((host, way(n))),
        Node::Switch(_) => None,
    });
    ends.collect()
}

impl SharedFlow {
    /// Whether nothing of what the switches shall have, or shall have no more, is still to be confirmed. A switch without a connection is waited for
    /// only if `is_connected` says so.
    fn is_confirmed(&self, presence: &impl Fn(&Entry) -> Presence, is_awaited: impl Fn(u64) -> bool) -> bool {
        let is_gone = |entry: &Entry| matches!(presence(entry), Presence::Absent | Presence::Refused);
        self.placed.iter().all(|entry| presence(entry) == Presence::Same || !is_awaited(entry.dpid))
            && self.leaving.iter().all(|entry| is_gone(entry) || !is_awaited(entry.dpid))
    }

    /// Whether the switches shall have all entries as they are, and no others.
    pub(super) fn is_placed(&self) -> bool {
        let is_same = |entry: &Entry| self.placed.contains(entry);
        self.placed.len() == self.entries.len() && self.entries.iter().all(is_same)
    }

    /// Brings what the switches shall have a step nearer to `entries`; whether there was one.
    fn step(&mut self) -> bool {
        self.leaving.retain(|old| !self.placed.iter().any(|entry| entry.is_at(old)));
        let Self { entries, placed, leaving, policed, .. } = self;
        if let Some(entry) = entries.iter().find(|entry| !placed.iter().any(|own| own.is_at(entry))) {
            *policed = entry.meter.clone().map(|meter| (entry.dpid, meter)).or(policed.take());
            leaving.retain(|old| !old.is_at(entry));
            placed.push(entry.clone());
            return true;
        }
        for entry in entries.iter() {
            let own = placed.iter_mut().find(|own| own.is_at(entry));
            if let Some(own) = own.filter(|own| (&own.flow, own.is_branch) != (&entry.flow, entry.is_branch)) {
                (own.flow, own.is_branch) = (entry.flow.clone(), entry.is_branch);
                return true;
            }
        }
        for entry in entries.iter() {
            if let Some(own) = placed.iter_mut().find(|own| own.is_at(entry) && own.meter != entry.meter) {
                own.meter.clone_from(&entry.meter);
                *policed = entry.meter.clone().map(|meter| (entry.dpid, meter)).or(policed.take());
                return true;
            }
        }
        let is_stale = |own: &Entry| !entries.iter().any(|entry| entry.is_at(own));
        let first = placed.iter().position(|own| own.meter.is_some() && is_stale(own));
        let gone: Vec<Entry> = match first {
            Some(at) => vec![placed.remove(at)],
            None => placed.extract_if(.., |own| is_stale(own)).collect(),
        };
        let is_step = !gone.is_empty();
        leaving.extend(gone);
        is_step
    }

    /// Goes on as far as the switches have confirmed; whether other entries are wanted.
    pub(super) fn follow(&mut self, presence: &impl Fn(&Entry) -> Presence) -> bool {
        let mut is_changed = false;
        while self.is_confirmed(presence, |_| true) && self.step() {
            is_changed = true;
        }
        is_changed
    }

    /// The switches shall have all entries at once: they have them from an earlier run.
    pub(super) fn place_all(&mut self) {
        let policed = self.entries.iter().find_map(|entry| Some((entry.dpid, entry.meter.clone()?)));
        (self.placed, self.policed) = (self.entries.clone(), policed);
    }

    /// What the switches have of a flow without frames follows at once.
    pub(super) fn replace_placed(&mut self) {
        let Self { entries, placed, leaving, policed, .. } = self;
        let is_stale = |own: &mut Entry| !entries.iter().any(|entry| entry.is_at(own));
        leaving.extend(placed.extract_if(.., is_stale));
        for own in placed {
            if let Some(entry) = entries.iter().find(|entry| entry.is_at(own)) {
                own.clone_from(entry);
                *policed = entry.meter.clone().map(|meter| (entry.dpid, meter)).or(policed.take());
            }
        }
    }

    /// What the switches shall have, or still may have.
    pub(super) fn known(&self) -> impl Iterator<Item = &Entry> {
        self.placed.iter().chain(&self.leaving)
    }

    /// What it has before a share of a pair comes to it that waits for changes of classes.
    pub(super) fn standing(&self) -> Option<(Policer, BTreeSet<HostId>)> {
        self.is_served.then(|| self.before.clone().unwrap_or_else(|| (self.policer(), self.hosts())))
    }
}

impl Admission {
    /// Classes of served flows change in this order, before anything that was decided with them.
    pub(super) fn change_classes(&mut self, changes: &[ClassChange]) {
        for change in changes {
            let Some(selector) = self.owners.get(&change.id).copied() else { continue };
            let Some(flow) = self.flows.get_mut(&selector).filter(|flow| flow.is_served) else { continue };
            flow.held.entry(change.port).or_insert(change.before);
            self.class_changes.queue.push_back((selector, change.port, change.after));
        }
    }

    /// A flow waits for all changes of classes that were decided so far. `before` is what it has until then, if it is served.
    pub(super) fn await_changes(&mut self, selector: Selector, before: Option<(Policer, BTreeSet<HostId>)>) {
        let last = self.class_changes.last();
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        flow.is_in_force &= last.is_none() && before.is_none();
        (flow.after_change, flow.before) = (last, before);
    }

    /// The changes of classes go on; whether one was made.
    pub(super) fn follow_class_changes(&mut self, presence: &impl Fn(&Entry) -> Presence) -> bool {
        let mut is_made = false;
        while let Some((selector, port, reach)) = self.class_changes.queue.front().copied() {
            let flow = self.flows.get_mut(&selector);
            if let Some(flow) = flow.filter(|flow| flow.is_served && !flow.is_leaving()) {
                if !std::mem::replace(&mut self.class_changes.is_begun, true) {
                    flow.held.insert(port, reach);
                    self.renew(selector);
                    self.is_changed |= self.flows.get_mut(&selector).is_some_and(|flow| flow.follow(presence));
                }
                let Some(flow) = self.flows.get(&selector) else { continue };
                if !has_class(flow, port, presence) {
                    break;
                }
            }
            self.class_changes.queue.pop_front();
            (self.class_changes.first, self.class_changes.is_begun) = (self.class_changes.first + 1, false);
            let is_last = !self.class_changes.queue.iter().any(|(other, at, _)| (*other, *at) == (selector, port));
            if let Some(flow) = self.flows.get_mut(&selector).filter(|_| is_last) {
                flow.held.remove(&port);
                self.renew(selector);
            }
            is_made = true;
        }
        let first = self.class_changes.first;
        let is_free = |flow: &SharedFlow| {
            let is_standing = || flow.before.is_none() || flow.is_placed() && flow.is_confirmed(presence, |_| true);
            (flow.after_change.is_some() || flow.before.is_some())
                && flow.after_change.is_none_or(|change| change < first)
                && is_standing()
        };
        let free: Vec<Selector> =
            self.flows.iter().filter(|(_, flow)| is_free(flow)).map(|(selector, _)| *selector).collect();
        for selector in free {
            if let Some(flow) = self.flows.get_mut(&selector) {
                (flow.after_change, flow.before) = (None, None);
            }
            self.renew(selector);
            is_made = true;
        }
        is_made
    }

    /// A flow has another route since its way was broken: hosts that are not reached as before are withheld from it.
    pub(super) fn withhold(&mut self, selector: Selector) {
        let snapshot = self.network.snapshot();
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        let routes = self.scheduler.routes(&snapshot, flow.request);
        let Some(route) = routes.as_ref().and_then(|routes| routes.first()) else { return };
        let after = ways(&snapshot, route);
        let before = flow.route.as_ref().map(|route| ways(&snapshot, route)).unwrap_or_default();
        let hosts = flow.hosts();
        flow.withheld.extend(hosts.iter().filter(|host| before.get(host) != after.get(host)));
        if let Some((policer, mut hosts)) = flow.standing() {
            hosts.retain(|host| !flow.withheld.contains(host));
            self.await_changes(selector, Some((policer, hosts)));
        }
    }

    /// Flows leave ways that are broken. Whether all have: until then none takes another way or class.
    pub(super) fn leave_ways(
        &mut self,
        presence: &impl Fn(&Entry) -> Presence,
        is_connected: &impl Fn(u64) -> bool,
    ) -> bool {
        let (mut is_left, mut withheld) = (true, Vec::new());
        for (selector, flow) in self.flows.iter_mut().filter(|(_, flow)| !flow.withheld.is_empty()) {
            while flow.is_confirmed(presence, is_connected) && flow.step() {
                self.is_changed = true;
            }
            is_left &= flow.is_leaving() || flow.is_confirmed(presence, is_connected);
            withheld.push(*selector);
        }
        for selector in withheld.into_iter().filter(|_| is_left) {
            if let Some(flow) = self.flows.get_mut(&selector) {
                flow.withheld.clear();
                flow.leaving.clear();
                if flow.placed.is_empty() {
                    // It begins as a flow that carries nothing.
                    flow.is_served = false;
                    flow.held.clear();
                    flow.before = None;
                }
            }
            self.renew(selector);
        }
        is_left
    }
}

/// Whether the switch of a port has the entry of a flow as it shall be now.
fn has_class(flow: &SharedFlow, port: Egress, presence: &impl Fn(&Entry) -> Presence) -> bool {
    let Egress::Switch(at) = port else { return true };
    let mut placed = flow.placed.iter().filter(|entry| entry.dpid == at.dpid);
    placed.all(|own| {
        let is_same = |entry: &Entry| !entry.is_at(own) || entry.flow == own.flow;
        flow.entries.iter().all(is_same) && presence(own) == Presence::Same
    })
}
