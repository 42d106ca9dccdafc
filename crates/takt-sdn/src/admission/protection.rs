//! Flows with second ways: a failed link interrupts them for no longer than their switch takes to see it.
//!
//! A switch changes over to the second way by itself, and back. When the controller learns of a failure, the flow stays on a way that is whole:
//!
//! 1. Its entries go on as those of this way alone. No frame waits, since all ways are proved together.
//! 2. When no switch sends by the others any more, and their last frames have drained, the others are free.
//! 3. Second ways of the present way are searched.
//!
//! So a flow does not go back when the link returns: its old way may become the second one. A flow whose ways all are broken is rerouted as one
//! without protection.

use std::collections::BTreeSet;
use std::fmt;

use takt_openflow::channel::Instant;

use super::drain::is_gone;
use super::shared::SharedFlow;
use super::{Admission, Outcome, Presence};
use crate::discovery::Pair;
use crate::model::Snapshot;
use crate::rules::{Entry, Selector, protect};
use crate::schedule::{Covered, RequestId};

/// Why samples to a group have no second way.
const BY_GROUP: &str = "samples go to a multicast group, which has no second way";

/// Whether a flow goes on when a link fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protection {
    /// No pair asks for it.
    Unasked,
    /// Second ways are still to be searched.
    Due,
    /// So many links have a detour.
    Covered(Covered),
    /// A link failed: it stays on a way that is whole, and the others are given back.
    FallenBack,
    /// There is no second way that fits.
    Unprotected(String),
}

impl Protection {
    /// Whether something follows without a change of the network.
    pub(super) fn is_moving(&self) -> bool {
        matches!(self, Self::Due | Self::FallenBack)
    }

    /// The lower, the worse.
    fn rank(&self) -> usize {
        match self {
            Self::FallenBack => 0,
            Self::Due => 1,
            Self::Unprotected(_) => 2,
            Self::Covered(Covered { links, of }) if links < of => 3,
            Self::Covered(_) => 4,
            Self::Unasked => 5,
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unasked => f.write_str("not asked for"),
            Self::Due => f.write_str("second ways are searched"),
            Self::Covered(Covered { links: 0, of: 0 }) => {
                f.write_str("protected: its way has no link between switches")
            }
            Self::Covered(Covered { links, of }) => write!(f, "protected: {links} of {of} links have a detour"),
            Self::FallenBack => f.write_str("a link failed: samples go by one way, without protection"),
            Self::Unprotected(reason) => write!(f, "unprotected: {reason}"),
        }
    }
}

/// What admission keeps account of for flows with second ways.
#[derive(Debug, Default)]
pub(super) struct Protections {
    /// Flows without a second way, which are tried again.
    unprotected: BTreeSet<Selector>,
    /// Pairs whose protection may be another one than was told.
    changed: BTreeSet<Pair>,
}

impl SharedFlow {
    fn wants_protection(&self) -> bool {
        self.present().any(|share| share.demand.is_protected)
    }

    /// Whether no change of it is under way that was decided without second ways.
    fn may_be_protected(&self) -> bool {
        let Self { held, withheld, before, after_change, must_leave, .. } = self;
        let is_waiting = !held.is_empty() || !withheld.is_empty() || before.is_some() || after_change.is_some();
        self.protection == Protection::Due && !self.is_leaving() && !is_waiting && !must_leave
    }
}

impl Admission {
    /// A pair of a flow asks for protection.
    pub(super) fn ask_for_protection(&mut self, selector: &Selector) {
        let Some(flow) = self.flows.get_mut(selector) else { return };
        if flow.protection == Protection::Unasked && flow.wants_protection() {
            self.note_protection(*selector, Protection::Due);
        }
    }

    /// What a pair has of protection: that of its flow with the least.
    pub fn protection(&self, pair: Pair) -> Protection {
        let flows = self.selectors(pair).iter().filter_map(|selector| Some((selector, self.flows.get(selector)?)));
        let own = flows.filter_map(|(selector, flow)| {
            let mut shares = flow.shares.iter().filter(|share| share.pair == pair);
            match selector.is_group() {
                true => Some(Protection::Unprotected(BY_GROUP.to_owned())),
                false => shares.any(|share| share.demand.is_protected).then(|| flow.protection.clone()),
            }
        });
        let own: Vec<Protection> = own.collect();
        let is_asked = own.iter().any(|state| !matches!(state, Protection::Unprotected(why) if why == BY_GROUP));
        own.into_iter().filter(|_| is_asked).min_by_key(Protection::rank).unwrap_or(Protection::Unasked)
    }

    fn note_protection(&mut self, selector: Selector, protection: Protection) {
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        match &protection {
            Protection::Unprotected(_) => _ = self.protections.unprotected.insert(selector),
            _ => _ = self.protections.unprotected.remove(&selector),
        }
        flow.protection = protection;
        self.protections.changed.extend(flow.shares.iter().map(|share| share.pair));
    }

    /// The network has changed: protected flows stay on a way that is whole.
    pub(super) fn fall_back(&mut self, snapshot: &Snapshot) {
        for request in self.scheduler.affected(snapshot).collect::<Vec<RequestId>>() {
            let Some(selector) = self.owners.get(&request).copied() else { continue };
            if self.scheduler.fall_back(snapshot, request) {
                self.retire(selector, None);
            }
        }
    }

    /// The second ways of a flow are no more, and are not to be searched again for a `reason`.
    fn retire(&mut self, selector: Selector, reason: Option<String>) {
        if let Some(flow) = self.flows.get_mut(&selector) {
            (flow.drain, flow.unprotectable) = (None, reason);
        }
        self.note_protection(selector, Protection::FallenBack);
        self.renew(selector);
    }

    /// A switch refuses an entry of a flow: it goes on without second ways, if it has any.
    pub(super) fn go_without_protection(&mut self, selector: Selector, dpid: u64) -> bool {
        let Some(flow) = self.flows.get(&selector) else { return false };
        let (request, snapshot) = (flow.request, self.network.snapshot());
        let is_protected = matches!(flow.protection, Protection::Covered(_));
        let is_retired = is_protected && self.scheduler.fall_back(&snapshot, request);
        if is_retired {
            self.retire(selector, Some(format!("switch {dpid:016x} refuses an entry or a group of its second way")));
        }
        is_retired
    }

    /// A flow was rerouted, so that it has no second ways any more.
    pub(super) fn protect_again(&mut self, selector: Selector) {
        let is_asked = self.flows.get(&selector).is_some_and(SharedFlow::wants_protection);
        if is_asked {
            self.note_protection(selector, Protection::Due);
        }
    }

    /// The network has room, or links, that it had not: flows without protection are tried again.
    pub(super) fn retry_protection(&mut self) {
        for selector in std::mem::take(&mut self.protections.unprotected) {
            self.protect_again(selector);
        }
    }

    /// A flow whose second ways are to be searched, and may be.
    pub(super) fn next_unprotected(&self) -> Option<Selector> {
        if self.class_changes.is_pending() || self.broken_ways.drain_ns.is_some() {
            return None;
        }
        self.flows.moving().find(|(_, flow)| flow.may_be_protected()).map(|(selector, _)| *selector)
    }

    /// Searches second ways of a flow. Its entries follow.
    pub(super) fn search_second_ways(&mut self, selector: Selector) {
        let is_changing = self.class_changes.is_pending() || self.broken_ways.drain_ns.is_some();
        let Some(flow) = self.flows.get(&selector).filter(|flow| flow.may_be_protected() && !is_changing) else {
            return;
        };
        let protection = match self.scheduler.protect(&self.network.snapshot(), flow.request) {
            Ok(covered) => Protection::Covered(covered),
            Err(refused) => Protection::Unprotected(refused.to_string()),
        };
        self.note_protection(selector, protection);
        self.renew(selector);
    }

    /// The entries of a flow with those of its second ways.
    pub(super) fn with_second_ways(
        &self,
        snapshot: &Snapshot,
        selector: &Selector,
        first: Vec<Entry>,
    ) -> Option<Vec<Entry>> {
        let flow = self.flows.get(selector)?;
        if !matches!(flow.protection, Protection::Covered(_)) || !flow.withheld.is_empty() {
            return Some(first);
        }
        let seconds = self.scheduler.second_ways(snapshot, flow.request);
        protect(snapshot, first, &seconds, selector, flow.meter)
    }

    /// Ways that flows took before a failure are free when no switch sends by them, and their last frames have drained.
    pub(super) fn free_second_ways(&mut self, now: Instant, presence: &impl Fn(&Entry) -> Presence) {
        let is_off = |flow: &SharedFlow| {
            let has_left = flow.leaving.iter().all(|entry| is_gone(presence(entry)));
            flow.protection == Protection::FallenBack && flow.is_in_force && has_left && !flow.is_leaving()
        };
        let off: Vec<Selector> =
            self.flows.moving().filter(|(_, flow)| is_off(flow)).map(|(selector, _)| *selector).collect();
        for selector in off {
            if !self.has_drained(now, selector) {
                continue;
            }
            let Some(flow) = self.flows.get_mut(&selector) else { continue };
            flow.drain = None;
            let (request, reason, is_served) = (flow.request, flow.unprotectable.take(), flow.is_served);
            if is_served {
                self.hold_budgets();
            }
            self.scheduler.release_seconds(&self.network.snapshot(), request);
            self.shall_retry |= reason.is_none();
            self.note_protection(selector, reason.map_or(Protection::Due, Protection::Unprotected));
        }
    }

    /// Tells what has become of the protection of pairs that match.
    pub(super) fn tell_protection(&mut self) {
        let is_released = |pair: &Pair| self.admitted.get(pair).is_none_or(|admitted| admitted.is_released);
        let changed: Vec<Pair> = self.protections.changed.iter().copied().filter(is_released).collect();
        for pair in changed {
            let protection = self.protection(pair);
            if protection == Protection::Due {
                continue;
            }
            self.protections.changed.remove(&pair);
            let Some(admitted) = self.admitted.get_mut(&pair) else { continue };
            if admitted.protection_told != protection {
                admitted.protection_told.clone_from(&protection);
                self.outcomes.push(Outcome::Protection { pair, protection });
            }
        }
    }
}
