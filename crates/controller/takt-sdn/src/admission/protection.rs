//! Flows with backup paths: a failed link interrupts them only until their switch detects the
//! failure.
//!
//! A switch fails over to the backup path and back without the controller. When the controller
//! learns of a failure, the flow stays on an intact path:
//!
//! 1. Its entries are reduced to those of this path. No frame waits, since all paths are proved
//!    together.
//! 2. When no switch sends by the other paths any more and their last frames have drained, these
//!    paths are freed.
//! 3. Backup paths for the present path are searched.
//!
//! A flow does not return when the link is restored: its old path may become the backup path. A
//! flow whose paths are all broken is rerouted like an unprotected one.

use std::collections::BTreeSet;
use std::fmt;

use takt_openflow::channel::Instant;

use super::drain::is_absent;
use super::shared::SharedFlow;
use super::{Admission, Outcome, Presence};
use crate::discovery::Pair;
use crate::model::Snapshot;
use crate::rules::{Entry, Selector, protect};
use crate::schedule::{Coverage, RequestId};

/// Reason why samples to a group have no backup path.
const BY_GROUP: &str = "samples go to a multicast group, which has no second way";

/// Protection of a flow or pair against the failure of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protection {
    /// No pair requests protection.
    NotRequested,
    /// Backup paths are still to be searched.
    Due,
    /// Some links have a detour; the value counts them.
    Covered(Coverage),
    /// A link failed: the flow stays on an intact path, and the others are being freed.
    FallenBack,
    /// No backup path fits, for this reason.
    Unprotected(String),
}

impl Protection {
    /// Reports whether the protection will change without a change of the network.
    pub(super) fn is_moving(&self) -> bool {
        matches!(self, Self::Due | Self::FallenBack)
    }

    /// Returns an order of protection: a lower rank is worse.
    fn rank(&self) -> usize {
        match self {
            Self::FallenBack => 0,
            Self::Due => 1,
            Self::Unprotected(_) => 2,
            Self::Covered(Coverage { links, total: of }) if links < of => 3,
            Self::Covered(_) => 4,
            Self::NotRequested => 5,
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRequested => f.write_str("not requested"),
            Self::Due => f.write_str("second ways are searched"),
            Self::Covered(Coverage { links: 0, total: 0 }) => {
                f.write_str("protected: its path has no link between switches")
            }
            Self::Covered(Coverage { links, total: of }) => write!(f, "protected: {links} of {of} links have a detour"),
            Self::FallenBack => f.write_str("a link failed: samples use one path, without protection"),
            Self::Unprotected(reason) => write!(f, "unprotected: {reason}"),
        }
    }
}

/// Bookkeeping of admission for flows with backup paths.
#[derive(Debug, Default)]
pub(super) struct Protections {
    /// Flows without a backup path that are tried again.
    unprotected: BTreeSet<Selector>,
    /// Pairs whose protection may differ from the one last reported.
    changed: BTreeSet<Pair>,
}

impl SharedFlow {
    fn wants_protection(&self) -> bool {
        self.present().any(|share| share.demand.is_protected)
    }

    /// Reports whether no change of the flow is under way that was decided without backup paths.
    fn may_be_protected(&self) -> bool {
        let Self { held_selections, withheld_hosts, before, after_change, must_leave, .. } = self;
        let is_waiting =
            !held_selections.is_empty() || !withheld_hosts.is_empty() || before.is_some() || after_change.is_some();
        self.protection == Protection::Due && !self.is_leaving() && !is_waiting && !must_leave
    }
}

impl Admission {
    /// Records that a pair of the flow requests protection.
    pub(super) fn request_protection(&mut self, selector: &Selector) {
        let Some(flow) = self.flows.get_mut(selector) else { return };
        if flow.protection == Protection::NotRequested && flow.wants_protection() {
            self.set_protection(*selector, Protection::Due);
        }
    }

    /// Returns the protection of a pair: that of its least protected flow.
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
        let is_requested = own.iter().any(|state| !matches!(state, Protection::Unprotected(why) if why == BY_GROUP));
        own.into_iter().filter(|_| is_requested).min_by_key(Protection::rank).unwrap_or(Protection::NotRequested)
    }

    fn set_protection(&mut self, selector: Selector, protection: Protection) {
        let Some(flow) = self.flows.get_mut(&selector) else { return };
        match &protection {
            Protection::Unprotected(_) => _ = self.protections.unprotected.insert(selector),
            _ => _ = self.protections.unprotected.remove(&selector),
        }
        flow.protection = protection;
        self.protections.changed.extend(flow.shares.iter().map(|share| share.pair));
    }

    /// Keeps protected flows on an intact path after the network has changed.
    pub(super) fn fall_back(&mut self, snapshot: &Snapshot) {
        for request in self.scheduler.affected(snapshot).collect::<Vec<RequestId>>() {
            let Some(selector) = self.owners.get(&request).copied() else { continue };
            if self.scheduler.fall_back(snapshot, request) {
                self.drop_backup_paths(selector, None);
            }
        }
    }

    /// Drops the backup paths of a flow. With a `reason`, they are not searched again.
    fn drop_backup_paths(&mut self, selector: Selector, reason: Option<String>) {
        if let Some(flow) = self.flows.get_mut(&selector) {
            (flow.drain, flow.unprotectable) = (None, reason);
        }
        self.set_protection(selector, Protection::FallenBack);
        self.update_flow(selector);
    }

    /// Continues a flow of which a switch refuses an entry without backup paths, if it has any.
    pub(super) fn continue_without_protection(&mut self, selector: Selector, dpid: u64) -> bool {
        let Some(flow) = self.flows.get(&selector) else { return false };
        let (request, snapshot) = (flow.request, self.network.snapshot());
        let is_protected = matches!(flow.protection, Protection::Covered(_));
        let is_retired = is_protected && self.scheduler.fall_back(&snapshot, request);
        if is_retired {
            self.drop_backup_paths(
                selector,
                Some(format!("switch {dpid:016x} refuses an entry or a group of its second way")),
            );
        }
        is_retired
    }

    /// Marks a rerouted flow, which has lost its backup paths, for a new search.
    pub(super) fn protect_again(&mut self, selector: Selector) {
        let is_requested = self.flows.get(&selector).is_some_and(SharedFlow::wants_protection);
        if is_requested {
            self.set_protection(selector, Protection::Due);
        }
    }

    /// Tries unprotected flows again after capacity or links have been added.
    pub(super) fn retry_protection(&mut self) {
        for selector in std::mem::take(&mut self.protections.unprotected) {
            self.protect_again(selector);
        }
    }

    /// Returns a flow whose backup paths are to be searched now.
    pub(super) fn next_unprotected(&self) -> Option<Selector> {
        if self.class_changes.is_pending() || self.broken_paths.drain_ns.is_some() {
            return None;
        }
        self.flows.moving().find(|(_, flow)| flow.may_be_protected()).map(|(selector, _)| *selector)
    }

    /// Searches backup paths for a flow. Its entries follow.
    pub(super) fn search_backup_paths(&mut self, selector: Selector) {
        let is_changing = self.class_changes.is_pending() || self.broken_paths.drain_ns.is_some();
        let Some(flow) = self.flows.get(&selector).filter(|flow| flow.may_be_protected() && !is_changing) else {
            return;
        };
        let protection = match self.scheduler.protect(&self.network.snapshot(), flow.request) {
            Ok(covered) => Protection::Covered(covered),
            Err(refused) => Protection::Unprotected(refused.to_string()),
        };
        self.set_protection(selector, protection);
        self.update_flow(selector);
    }

    /// Returns the entries of a flow with those of its backup paths.
    pub(super) fn with_backup_paths(
        &self,
        snapshot: &Snapshot,
        selector: &Selector,
        first: Vec<Entry>,
    ) -> Option<Vec<Entry>> {
        let flow = self.flows.get(selector)?;
        if !matches!(flow.protection, Protection::Covered(_)) || !flow.withheld_hosts.is_empty() {
            return Some(first);
        }
        let backup_paths = self.scheduler.backup_paths(snapshot, flow.request);
        protect(snapshot, first, &backup_paths, selector, flow.meter)
    }

    /// Frees the paths that flows took before a failure, when no switch sends by them and their
    /// last frames have drained.
    pub(super) fn free_backup_paths(&mut self, now: Instant, presence: &impl Fn(&Entry) -> Presence) {
        let is_off = |flow: &SharedFlow| {
            let has_left = flow.leaving.iter().all(|entry| is_absent(presence(entry)));
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
            self.scheduler.release_backup_paths(&self.network.snapshot(), request);
            self.shall_retry |= reason.is_none();
            self.set_protection(selector, reason.map_or(Protection::Due, Protection::Unprotected));
        }
    }

    /// Reports the changed protection of matched pairs.
    pub(super) fn report_protection(&mut self) {
        let is_released = |pair: &Pair| self.admitted.get(pair).is_none_or(|admitted| admitted.is_released);
        let changed: Vec<Pair> = self.protections.changed.iter().copied().filter(is_released).collect();
        for pair in changed {
            let protection = self.protection(pair);
            if protection == Protection::Due {
                continue;
            }
            self.protections.changed.remove(&pair);
            let Some(admitted) = self.admitted.get_mut(&pair) else { continue };
            if admitted.reported_protection != protection {
                admitted.reported_protection.clone_from(&protection);
                self.outcomes.push(Outcome::Protection { pair, protection });
            }
        }
    }
}
