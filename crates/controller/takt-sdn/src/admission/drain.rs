//! Drain times: waits for frames that were matched before a change and are still queued when the
//! switches confirm it.
//!
//! A confirmation says that the next frame is matched by the new entries. Earlier frames are still
//! under way. Until these frames, and the frames that they delayed, have left, the earlier proof
//! holds and their resources are not reused:
//!
//! | change | what waits | duration |
//! |---|---|---|
//! | all entries of a flow are deleted, or its meter is lowered | the share of the network | [`Scheduler::drain_ns`](crate::schedule::Scheduler::drain_ns) |
//! | flows leave broken paths | all flows | the same, over all flows that leave, computed before they leave |
//! | a flow changes its class at a port | the next change, and the new flow | [`ClassChange::drain_ns`](crate::schedule::ClassChange::drain_ns) |
//! | a meter changes | the next change of this meter | the drain time of its flow |
//! | any of the first three | decisions that lower budgets | [`Scheduler::memory_ns`](crate::schedule::Scheduler::memory_ns) |
//!
//! The share of a removed flow is counted until its wait is over. Decisions during the wait may
//! raise budgets, which lets its frames wait longer: the wait is the maximum over all decisions
//! since its beginning. Intermediate states of other classes have budgets of their own, so that
//! such a wait begins after the last change.

use std::collections::BTreeSet;
use std::time::Duration;

use takt_openflow::channel::Instant;

use super::shared::SharedFlow;
use super::{Admission, Presence};
use crate::rules::{Entry, Selector};
use crate::schedule::RequestId;

/// Returns a time `span_ns` later, saturated at the maximum.
pub(super) fn after(now: Instant, span_ns: u64) -> Instant {
    now.after(Duration::from_nanos(span_ns))
}

/// A wait that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Drain {
    since: Instant,
    until: Instant,
}

impl Drain {
    /// Reports whether a wait of this length is over. The wait begins with the first call and is
    /// never shortened.
    pub(super) fn is_over(drain: &mut Option<Self>, now: Instant, span_ns: u64) -> bool {
        let own = drain.get_or_insert(Self { since: now, until: now });
        own.until = own.until.max(after(own.since, span_ns));
        now >= own.until
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }
}

/// State of flows that leave broken paths.
#[derive(Debug, Default)]
pub(super) struct BrokenPaths {
    /// Longest drain time of these flows, by the proof before they left. `None` if no flow leaves.
    pub(super) drain_ns: Option<u64>,
    pub(super) drain: Option<Drain>,
}

/// Wait for the influence of removed flows to end.
#[derive(Debug, Default)]
pub(super) struct RemovedFlowInfluence {
    drain: Option<Drain>,
    /// Whether the paths contain a cycle, so that the influence has no bounded end.
    is_endless: bool,
}

impl Admission {
    /// Returns the time at which [`advance`](Self::advance) must be called even without a message
    /// of a switch.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the earliest end of all waits that have begun.
    pub(super) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        // A flow at rest waits for nothing.
        let flows = self.flows.moving().flat_map(|(_, flow)| [flow.drain, flow.metered]);
        let others = [self.broken_paths.drain, self.class_changes.drain(), self.removed_influence.drain];
        let waits = flows.chain(others).flatten().map(|drain| drain.until());
        waits.filter(|until| *until > now).min()
    }

    /// Makes the served flows among these requests leave their broken paths: all flows wait until
    /// they have left, and budgets are held.
    pub(super) fn leave_broken_paths(&mut self, requests: impl IntoIterator<Item = RequestId>) {
        for request in requests {
            let owner = self.owners.get(&request);
            let is_served = owner.and_then(|owner| self.flows.get(owner)).is_some_and(|flow| flow.is_served);
            if !is_served {
                continue;
            }
            let drain_ns = self.scheduler.drain_ns(request).unwrap_or_default();
            self.broken_paths.drain_ns = self.broken_paths.drain_ns.max(Some(drain_ns));
            self.hold_budgets();
        }
        // A class change that is under way has a proof of its own.
        if let (Some(drain_ns), Some(change_ns)) = (&mut self.broken_paths.drain_ns, self.class_changes.drain_ns()) {
            *drain_ns = change_ns.max(*drain_ns);
        }
    }

    /// Reports whether the last frames on broken paths have drained, since all flows left these
    /// paths.
    pub(super) fn have_broken_paths_drained(&mut self, now: Instant) -> bool {
        let Some(drain_ns) = self.broken_paths.drain_ns else { return true };
        if Drain::is_over(&mut self.broken_paths.drain, now, drain_ns) {
            self.broken_paths = BrokenPaths::default();
            return true;
        }
        false
    }

    /// Reports whether a switch has entries of flows without pairs, or on paths, that the scheduler
    /// no longer counts.
    pub(super) fn has_uncounted(
        &self,
        presence: &impl Fn(&Entry) -> Presence,
        is_connected: &impl Fn(u64) -> bool,
    ) -> bool {
        let is_present = |entry: &Entry| !is_absent(presence(entry)) && is_connected(entry.dpid);
        let leaving = self.flows.moving().map(|(_, flow)| flow).filter(|flow| flow.is_leaving() && flow.is_served);
        let mut uncounted =
            leaving.filter(|flow| flow.must_leave || self.scheduler.requests_of(flow.request).is_none());
        uncounted.any(|flow| flow.known().any(is_present))
    }

    /// Removes flows without a pair when no switch has entries of them and their last frames have
    /// drained.
    pub(super) fn remove_deleted_flows(&mut self, now: Instant, presence: &impl Fn(&Entry) -> Presence) {
        let departed = self.flows.moving().filter(|(_, flow)| flow.is_leaving() && flow.has_left(presence));
        let departed: Vec<Selector> = departed.map(|(selector, _)| *selector).collect();
        for selector in departed {
            if !self.has_drained(now, selector) {
                continue;
            }
            self.shall_retry = true;
            if self.is_served(&selector) {
                self.has_table_room = true;
                self.hold_budgets();
                self.allow_branches();
            }
            self.free(selector);
        }
    }

    /// Frees shares of removed pairs when the meter passes no more than the others have and earlier
    /// frames have drained.
    pub(super) fn free_shares(&mut self, now: Instant) {
        let has_left = |flow: &SharedFlow| !flow.is_leaving() && flow.shares.iter().any(|share| share.is_leaving);
        let left = self.flows.moving().filter(|(_, flow)| flow.is_in_force && has_left(flow));
        let left: Vec<Selector> = left.map(|(selector, _)| *selector).collect();
        for selector in left {
            if !self.has_drained(now, selector) {
                continue;
            }
            let Some(flow) = self.flows.get_mut(&selector) else { continue };
            flow.drain = None;
            let (request, is_served) = (flow.request, flow.is_served);
            let leaving = flow.shares.extract_if(.., |share| share.is_leaving);
            let names: BTreeSet<String> = leaving.map(|share| share.demand.request.name).collect();
            self.shall_retry = true;
            if is_served {
                self.hold_budgets();
            }
            self.release_share(request, selector, &names.into_iter().collect::<Vec<String>>());
        }
    }

    /// Reports whether frames of a flow that were passed before its last change have drained.
    pub(super) fn has_drained(&mut self, now: Instant, selector: Selector) -> bool {
        let is_changing = self.class_changes.is_pending() || self.broken_paths.drain_ns.is_some();
        let Some(flow) = self.flows.get_mut(&selector) else { return true };
        if !flow.is_served {
            return true;
        }
        if is_changing {
            flow.drain = None;
            return false;
        }
        let drain_ns = self.scheduler.drain_ns(flow.request).unwrap_or_default();
        Drain::is_over(&mut flow.drain, now, drain_ns)
    }

    /// Prevents budgets from falling until earlier frames have no influence any more.
    pub(super) fn hold_budgets(&mut self) {
        self.scheduler.hold_budgets(true);
        self.removed_influence = RemovedFlowInfluence::default();
    }

    /// Lets budgets fall again when the last removed or rerouted flow has drained, together with
    /// the frames that it delayed.
    pub(super) fn release_budgets(&mut self, now: Instant) {
        let is_changing = self.class_changes.is_pending() || self.broken_paths.drain_ns.is_some();
        if !self.scheduler.holds_budgets() || is_changing || self.removed_influence.is_endless {
            return;
        }
        if self.removed_influence.drain.is_some_and(|drain| now < drain.until()) {
            return;
        }
        // Further flows end no cycle of paths.
        let Some(memory_ns) = self.scheduler.memory_ns() else { return self.removed_influence.is_endless = true };
        if Drain::is_over(&mut self.removed_influence.drain, now, memory_ns) {
            self.scheduler.hold_budgets(false);
            self.removed_influence = RemovedFlowInfluence::default();
            self.shall_retry |= !self.refused.is_empty();
        }
    }
}

/// Reports whether a switch has nothing of an entry.
pub(super) fn is_absent(presence: Presence) -> bool {
    matches!(presence, Presence::Absent | Presence::Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_lasts_for_the_longest_requested_time_since_its_begin() {
        let mut drain = None;
        assert!(!Drain::is_over(&mut drain, Instant(100), 50));
        assert!(!Drain::is_over(&mut drain, Instant(149), 50));
        // The first decision raised the budgets, and the second lowers them again.
        assert!(!Drain::is_over(&mut drain, Instant(150), 70));
        assert!(!Drain::is_over(&mut drain, Instant(169), 10));
        assert!(Drain::is_over(&mut drain, Instant(170), 10));
        assert!(Drain::is_over(&mut None, Instant(5), 0), "no frame is in transit");
    }
}
