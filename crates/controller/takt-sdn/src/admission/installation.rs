//! Installation of the entries of admitted flows, as far as the switches have confirmed earlier
//! ones, and release of the pairs whose flows are in force.

use std::collections::BTreeSet;

use takt_openflow::channel::Instant;

use super::shared::Share;
use super::{Admission, Admitted, Outcome, Presence};
use crate::discovery::Pair;
use crate::rules::{Entry, Selector};

impl Admission {
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
}
