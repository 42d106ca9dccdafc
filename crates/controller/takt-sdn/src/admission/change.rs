//! Changes of admitted flows in steps, none of which breaks the proof of the latency bounds.
//!
//! **One flow.** Its entries change from those in the switches to the wanted ones in steps. The
//! switches confirm each step before the next:
//!
//! 1. Entries for frames that arrive at another port than before are added, beginning with the last
//!    switch. No frame reaches them yet.
//! 2. Entries whose actions change are replaced, beginning with the last switch. From then on,
//!    frames use the entries of step 1.
//! 3. The meter is changed.
//! 4. Entries that no frame reaches any more are deleted, beginning with the first switch.
//!
//! Open vSwitch refills the bucket of a meter that is changed, so that the meter may pass its burst
//! once more. The proof of a flow with several requests includes this second burst. The next change
//! of the meter waits until the second burst has drained.
//!
//! **Classes.** A new flow may require that several flows change their classes. They change port by
//! port, in the order that [`crate::schedule`] has proved. Each change waits until frames matched
//! before the previous change have drained. The new flow is installed after the last change has
//! drained.
//!
//! **Paths.** A flow whose path is broken first gives up its old ports, back to the switch that its
//! frames still reach. The entries of dropped flows are deleted. After all these flows have left
//! and their last frames have drained, flows take their new ports. No port ever carries more than
//! it did before the change or will carry after it. During the change, frames to hosts that are
//! reached by another path have no class.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use takt_openflow::channel::Instant;

use super::drain::{Drain, is_absent};
use super::shared::SharedFlow;
use super::{Admission, Presence};
use crate::model::{Egress, HostId, Node, QueueSelection, Snapshot};
use crate::rules::{Entry, Policer, Selector};
use crate::schedule::{ClassChange, Route};

/// Queue of class changes.
#[derive(Debug, Default)]
pub(super) struct ClassChanges {
    /// Sequence number of the first change in the queue.
    first: u64,
    queue: VecDeque<PendingChange>,
    /// Whether the first change is under way.
    is_begun: bool,
    /// Wait for the first change to drain, since the switches confirmed it.
    drain: Option<Drain>,
}

/// Class change that is queued or under way.
#[derive(Debug, Clone, Copy)]
struct PendingChange {
    selector: Selector,
    port: Egress,
    selection: QueueSelection,
    drain_ns: u64,
}

impl ClassChanges {
    /// Returns the sequence number of the last change in the queue; `None` if the queue is empty.
    fn last(&self) -> Option<u64> {
        let len = u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
        len.checked_sub(1).map(|more| self.first.saturating_add(more))
    }

    /// Reports whether a change waits, is under way or has not drained.
    pub(super) fn is_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn drain(&self) -> Option<Drain> {
        self.drain
    }

    /// Returns the longest drain time of all pending changes.
    pub(super) fn drain_ns(&self) -> Option<u64> {
        self.queue.iter().map(|change| change.drain_ns).max()
    }
}

/// Returns the ports and classes by which a route leads to each host.
fn hops_by_host(snapshot: &Snapshot, route: &Route) -> BTreeMap<HostId, Vec<(Egress, usize)>> {
    let path = |end: usize| {
        let mut path = Vec::new();
        let mut at = Some(end);
        while let Some(hop) = at.and_then(|at| route.hops.get(at)) {
            path.push((hop.port, hop.class));
            at = hop.after;
        }
        path
    };
    let ends = route.hops.iter().enumerate().filter_map(|(n, hop)| match snapshot.link(hop.port)?.to {
        Node::Host(host) => Some((host, path(n))),
        Node::Switch(_) => None,
    });
    ends.collect()
}

impl SharedFlow {
    /// Reports whether the switches have confirmed all additions and deletions of the flow. Only
    /// switches for which `is_awaited` returns true count.
    pub(super) fn is_confirmed(
        &self,
        presence: &impl Fn(&Entry) -> Presence,
        is_awaited: impl Fn(u64) -> bool,
    ) -> bool {
        self.placed.iter().all(|entry| presence(entry) == Presence::Same || !is_awaited(entry.dpid))
            && self.leaving.iter().all(|entry| is_absent(presence(entry)) || !is_awaited(entry.dpid))
    }

    /// Reports whether no switch has any entry of the flow.
    pub(super) fn has_left(&self, presence: &impl Fn(&Entry) -> Presence) -> bool {
        self.known().all(|entry| is_absent(presence(entry)))
    }

    /// Reports whether exactly the wanted entries are placed.
    pub(super) fn is_placed(&self) -> bool {
        let is_same = |entry: &Entry| self.placed.contains(entry);
        self.placed.len() == self.entries.len() && self.entries.iter().all(is_same)
    }

    /// Moves the placed entries one step towards `entries` and reports whether there was a step.
    /// The meter changes only if `may_meter` is set.
    fn step(&mut self, may_meter: bool) -> bool {
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
            if let Some(own) = own.filter(|own| !own.has_same_output(entry)) {
                own.adopt_output(entry);
                return true;
            }
        }
        for entry in entries.iter() {
            if let Some(own) = placed.iter_mut().find(|own| own.is_at(entry) && own.meter != entry.meter) {
                if !may_meter {
                    return false;
                }
                own.meter.clone_from(&entry.meter);
                *policed = entry.meter.clone().map(|meter| (entry.dpid, meter)).or(policed.take());
                self.is_meter_changing = true;
                return true;
            }
        }
        let is_stale = |own: &Entry| !entries.iter().any(|entry| entry.is_at(own));
        let first = placed.iter().position(|own| own.meter.is_some() && is_stale(own));
        let removed: Vec<Entry> = match first {
            Some(at) => vec![placed.remove(at)],
            None => placed.extract_if(.., |own| is_stale(own)).collect(),
        };
        let is_step = !removed.is_empty();
        leaving.extend(removed);
        is_step
    }

    /// Takes all steps that the confirmations of the switches allow and reports whether the wanted
    /// entries changed. Frames of the flow drain in `drain_ns`.
    pub(super) fn advance_entries(
        &mut self,
        now: Instant,
        drain_ns: u64,
        presence: &impl Fn(&Entry) -> Presence,
    ) -> bool {
        let mut is_changed = false;
        while self.is_confirmed(presence, |_| true) {
            if std::mem::take(&mut self.is_meter_changing) {
                self.metered = None;
                Drain::is_over(&mut self.metered, now, drain_ns);
            }
            let may_meter = self.metered.is_none() || Drain::is_over(&mut self.metered, now, drain_ns);
            if may_meter {
                self.metered = None;
            }
            if !self.step(may_meter) {
                break;
            }
            is_changed = true;
        }
        is_changed
    }

    /// Places all entries at once, because the switches have them from an earlier run.
    pub(super) fn place_all(&mut self) {
        let policed = self.entries.iter().find_map(|entry| Some((entry.dpid, entry.meter.clone()?)));
        (self.placed, self.policed) = (self.entries.clone(), policed);
    }

    /// Replaces all placed entries at once, for a flow that carries no frames.
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

    /// Iterates over the entries that the switches have, are to have or may still have.
    pub(super) fn known(&self) -> impl Iterator<Item = &Entry> {
        self.placed.iter().chain(&self.leaving)
    }

    /// Returns the policer and hosts of the flow before it gets the share of a pair that waits for
    /// class changes.
    pub(super) fn present_state(&self) -> Option<(Policer, BTreeSet<HostId>)> {
        self.is_served.then(|| self.before.clone().unwrap_or_else(|| (self.policer(), self.hosts())))
    }
}

impl Admission {
    /// Queues class changes of served flows. They are made in this order, before anything that was
    /// decided with them.
    pub(super) fn change_classes(&mut self, changes: &[ClassChange]) {
        for change in changes {
            let Some(selector) = self.owners.get(&change.id).copied() else { continue };
            let Some(flow) = self.flows.get_mut(&selector).filter(|flow| flow.is_served) else { continue };
            flow.held_selections.entry(change.port).or_insert(change.before);
            let ClassChange { port, after: selection, drain_ns, .. } = *change;
            self.class_changes.queue.push_back(PendingChange { selector, port, selection, drain_ns });
        }
        if !changes.is_empty() {
            self.hold_budgets();
        }
    }

    /// Makes a flow wait for all class changes decided so far. `before` is its policer and hosts
    /// until then, if it is served.
    pub(super) fn await_changes(&mut self, selector: Selector, before: Option<(Policer, BTreeSet<HostId>)>) {
        let last = self.class_changes.last();
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        flow.is_in_force &= last.is_none() && before.is_none();
        (flow.after_change, flow.before) = (last, before);
    }

    /// Continues the class changes and reports whether one was made and has drained.
    pub(super) fn advance_class_changes(&mut self, now: Instant, presence: &impl Fn(&Entry) -> Presence) -> bool {
        let mut is_made = false;
        while let Some(PendingChange { selector, port, drain_ns, .. }) = self.class_changes.queue.front().copied() {
            if self.is_served(&selector) {
                let is_confirmed = self.make_first_change(now, presence);
                if !is_confirmed || !Drain::is_over(&mut self.class_changes.drain, now, drain_ns) {
                    break;
                }
            }
            self.class_changes.queue.pop_front();
            (self.class_changes.first, self.class_changes.is_begun) = (self.class_changes.first + 1, false);
            self.class_changes.drain = None;
            let is_at = |change: &PendingChange| (change.selector, change.port) == (selector, port);
            let is_last = !self.class_changes.queue.iter().any(is_at);
            if let Some(flow) = self.flows.get_mut(&selector).filter(|_| is_last) {
                flow.held_selections.remove(&port);
                self.update_flow(selector);
            }
            is_made = true;
        }
        let first = self.class_changes.first;
        let is_free = |flow: &SharedFlow| {
            let is_steady = || flow.before.is_none() || flow.is_placed() && flow.is_confirmed(presence, |_| true);
            (flow.after_change.is_some() || flow.before.is_some())
                && flow.after_change.is_none_or(|change| change < first)
                && is_steady()
        };
        let free: Vec<Selector> =
            self.flows.moving().filter(|(_, flow)| is_free(flow)).map(|(selector, _)| *selector).collect();
        for selector in free {
            if let Some(flow) = self.flows.get_mut(&selector) {
                (flow.after_change, flow.before) = (None, None);
            }
            self.update_flow(selector);
            is_made = true;
        }
        is_made
    }

    /// Makes the first change and reports whether the switches have confirmed it. For a flow that
    /// leaves, the change is made when it has left.
    fn make_first_change(&mut self, now: Instant, presence: &impl Fn(&Entry) -> Presence) -> bool {
        let Some(PendingChange { selector, port, selection, .. }) = self.class_changes.queue.front().copied() else {
            return true;
        };
        let Some(flow) = self.flows.get_mut(&selector) else { return true };
        if flow.is_leaving() {
            return flow.has_left(presence);
        }
        if !std::mem::replace(&mut self.class_changes.is_begun, true) {
            flow.held_selections.insert(port, selection);
            self.update_flow(selector);
            self.is_changed |= self.advance_flow_entries(selector, now, presence);
        }
        self.flows.get(&selector).is_none_or(|flow| has_class(flow, port, presence))
    }

    /// Advances a flow as far as the switches have confirmed its entries. Reports whether the
    /// wanted entries changed.
    pub(super) fn advance_flow_entries(
        &mut self,
        selector: Selector,
        now: Instant,
        presence: &impl Fn(&Entry) -> Presence,
    ) -> bool {
        let Some(flow) = self.flows.get_mut(&selector) else { return false };
        let drain_ns = self.scheduler.drain_ns(flow.request).unwrap_or_default();
        flow.advance_entries(now, drain_ns, presence)
    }

    /// Withholds a rerouted flow from the hosts that it reaches by another path than before.
    pub(super) fn withhold(&mut self, selector: Selector) {
        let snapshot = self.network.snapshot();
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        let routes = self.scheduler.routes(&snapshot, flow.request);
        let Some(route) = routes.as_ref().and_then(|routes| routes.first()) else { return };
        let after = hops_by_host(&snapshot, route);
        let before = flow.route.as_ref().map(|route| hops_by_host(&snapshot, route)).unwrap_or_default();
        let hosts = flow.hosts();
        flow.withheld_hosts.extend(hosts.iter().filter(|host| before.get(host) != after.get(host)));
        flow.must_leave |= !flow.withheld_hosts.is_empty();
    }

    /// Reduces the placed state of a rerouted flow to the hosts that are not withheld.
    pub(super) fn keep_present_state(&mut self, selector: Selector) {
        let Some(flow) = self.flows.get(&selector) else { return };
        if let Some((policer, mut hosts)) = flow.present_state() {
            hosts.retain(|host| !flow.withheld_hosts.contains(host));
            self.await_changes(selector, Some((policer, hosts)));
        }
    }

    /// Makes flows leave broken paths. Reports whether all have left and their last frames have
    /// drained: until then no flow takes another path or class.
    pub(super) fn leave_paths(
        &mut self,
        now: Instant,
        presence: &impl Fn(&Entry) -> Presence,
        is_connected: &impl Fn(u64) -> bool,
    ) -> bool {
        let (mut is_done, mut withheld) = (true, Vec::new());
        let moving = self.flows.moving().filter(|(_, flow)| flow.must_leave);
        let moving: Vec<Selector> = moving.map(|(selector, _)| *selector).collect();
        for selector in moving {
            let Some(flow) = self.flows.get_mut(&selector) else { continue };
            // The second burst of a changing meter must have left the broken path, too, before the
            // flow continues.
            while flow.is_confirmed(presence, is_connected) && flow.step(true) {
                self.is_changed = true;
            }
            is_done &= flow.is_leaving() || flow.is_confirmed(presence, is_connected);
            withheld.push(selector);
        }
        is_done &= !self.has_uncounted(presence, is_connected);
        if !is_done {
            self.broken_paths.drain = None;
            return false;
        }
        if !self.have_broken_paths_drained(now) {
            return false;
        }
        for selector in withheld {
            if let Some(flow) = self.flows.get_mut(&selector) {
                flow.withheld_hosts.clear();
                flow.must_leave = false;
                flow.leaving.clear();
                if flow.placed.is_empty() {
                    // The flow starts again like one that carries no frames.
                    flow.is_served = false;
                    flow.held_selections.clear();
                    flow.before = None;
                }
            }
            self.update_flow(selector);
        }
        true
    }
}

/// Reports whether the switch of a port has the present entry of a flow.
fn has_class(flow: &SharedFlow, port: Egress, presence: &impl Fn(&Entry) -> Presence) -> bool {
    let Egress::Switch(at) = port else { return true };
    let mut placed = flow.placed.iter().filter(|entry| entry.dpid == at.dpid);
    placed.all(|own| {
        let is_same = |entry: &Entry| !entry.is_at(own) || entry.flow == own.flow;
        flow.entries.iter().all(is_same) && presence(own) == Presence::Same
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use takt_openflow::flow::FlowMod;
    use takt_openflow::meter::{Band, MeterCommand, MeterMod};

    use super::*;
    use crate::controller::FlowKey;
    use crate::schedule::RequestId;

    const DRAIN_NS: u64 = 1_000;

    fn metered(burst: u32) -> Entry {
        let bands = vec![Band::Drop { rate: 100, burst }];
        let meter = MeterMod { command: MeterCommand::Add, flags: 0, meter: 4096, bands };
        let flow = FlowMod::default();
        let key = Arc::new(FlowKey::of(&flow));
        Entry { dpid: 1, flow, key, meter: Some(meter), group: None, is_branch: false }
    }

    /// Returns the wanted meter after `advance_entries` at time `now`, if the switch has the meter
    /// of `has`.
    fn meter_at(flow: &mut SharedFlow, now: u64, has: &Entry) -> Option<MeterMod> {
        let presence = |entry: &Entry| if entry.meter == has.meter { Presence::Same } else { Presence::Other };
        flow.advance_entries(Instant(now), DRAIN_NS, &presence);
        flow.policed.clone().map(|(_, meter)| meter)
    }

    #[test]
    fn meter_changes_again_when_the_burst_of_the_last_change_has_drained() {
        let mut flow = SharedFlow::new(RequestId(1), 4096);
        let [first, second, third] = [1, 2, 3].map(metered);
        flow.entries = vec![first.clone()];
        assert_eq!(meter_at(&mut flow, 10, &first), first.meter);
        flow.entries = vec![second.clone()];
        assert_eq!(meter_at(&mut flow, 20, &first), second.meter, "the first meter is not a change");
        flow.entries = vec![third.clone()];
        assert_eq!(meter_at(&mut flow, 5_000, &first), second.meter, "the change is not confirmed");
        assert_eq!(meter_at(&mut flow, 6_000, &second), second.meter, "confirmed now");
        assert_eq!(flow.metered.map(|drain| drain.until()), Some(Instant(6_000 + DRAIN_NS)));
        assert_eq!(meter_at(&mut flow, 6_999, &second), second.meter);
        assert_eq!(meter_at(&mut flow, 7_000, &second), third.meter);
    }
}
