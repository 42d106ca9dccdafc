//! Waits for frames that were matched before a change: they are in queues when the switches confirm it.
//!
//! A confirmation says that the next frame is matched by the new entries. Frames of before are still under way. Until they have left, and what waited for
//! them, the proof of before holds, and nothing takes their place:
//!
//! | change | what waits | for how long |
//! |---|---|---|
//! | all entries of a flow are deleted, or its meter falls | the share of the network | [`Scheduler::drain_ns`](crate::schedule::Scheduler::drain_ns) |
//! | flows leave broken ways | all flows | the same of all flows that leave, before they do |
//! | a flow changes its class at a port | the next change, and the new flow | [`ClassChange::drain_ns`](crate::schedule::ClassChange::drain_ns) |
//! | a meter changes | the next change of this meter | that of its flow |
//! | any of the first three | decisions in which budgets fall | [`Scheduler::memory_ns`](crate::schedule::Scheduler::memory_ns) |
//!
//! The share of a flow that has gone is counted until its wait is over. Decisions meanwhile may raise budgets, and its frames wait for longer: the wait is
//! the longest of all since its begin. States in between of other classes have budgets of their own, so that such a wait begins after the last change.

use std::collections::BTreeSet;
use std::time::Duration;

use takt_openflow::channel::Instant;

use super::shared::SharedFlow;
use super::{Admission, Presence};
use crate::rules::{Entry, Selector};
use crate::schedule::RequestId;

/// A moment and a span in ns, at most the last moment there is.
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
    /// Whether a wait of this span is over. It begins now if it has not, and gets no shorter.
    pub(super) fn is_over(drain: &mut Option<Self>, now: Instant, span_ns: u64) -> bool {
        let own = drain.get_or_insert(Self { since: now, until: now });
        own.until = own.until.max(after(own.since, span_ns));
        now >= own.until
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }
}

/// Flows that leave broken ways.
#[derive(Debug, Default)]
pub(super) struct BrokenWays {
    /// The longest wait of all of them, by the proof before they left. `None` if none leaves.
    pub(super) drain_ns: Option<u64>,
    pub(super) drain: Option<Drain>,
}

/// Frames that flows of the past have delayed.
#[derive(Debug, Default)]
pub(super) struct Past {
    drain: Option<Drain>,
    /// Ways have a cycle, so that it has no end.
    is_endless: bool,
}

impl Admission {
    /// When [`advance`](Self::advance) goes on without anything from a switch.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The earliest end of the waits that have begun.
    pub(super) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        // At rest a flow waits for nothing.
        let flows = self.flows.moving().flat_map(|(_, flow)| [flow.drain, flow.metered]);
        let others = [self.broken_ways.drain, self.class_changes.drain(), self.past.drain];
        let waits = flows.chain(others).flatten().map(|drain| drain.until());
        waits.filter(|until| *until > now).min()
    }

    /// Broken ways of served flows among these: all flows wait until they have left, and budgets are held.
    pub(super) fn leave_broken(&mut self, requests: impl IntoIterator<Item = RequestId>) {
        for request in requests {
            let owner = self.owners.get(&request);
            let is_served = owner.and_then(|owner| self.flows.get(owner)).is_some_and(|flow| flow.is_served);
            if !is_served {
                continue;
            }
            let drain_ns = self.scheduler.drain_ns(request).unwrap_or_default();
            self.broken_ways.drain_ns = self.broken_ways.drain_ns.max(Some(drain_ns));
            self.hold_budgets();
        }
        // A change of a class that is under way has a proof of its own.
        if let (Some(drain_ns), Some(change_ns)) = (&mut self.broken_ways.drain_ns, self.class_changes.drain_ns()) {
            *drain_ns = change_ns.max(*drain_ns);
        }
    }

    /// Whether frames have drained that were on broken ways when all flows had left these.
    pub(super) fn have_broken_ways_drained(&mut self, now: Instant) -> bool {
        let Some(drain_ns) = self.broken_ways.drain_ns else { return true };
        if Drain::is_over(&mut self.broken_ways.drain, now, drain_ns) {
            self.broken_ways = BrokenWays::default();
            return true;
        }
        false
    }

    /// Flows without pairs that the scheduler counts no more, or by other ways, and of which a switch has entries.
    pub(super) fn has_uncounted(
        &self,
        presence: &impl Fn(&Entry) -> Presence,
        is_connected: &impl Fn(u64) -> bool,
    ) -> bool {
        let is_there = |entry: &Entry| !is_gone(presence(entry)) && is_connected(entry.dpid);
        let leaving = self.flows.moving().map(|(_, flow)| flow).filter(|flow| flow.is_leaving() && flow.is_served);
        let mut uncounted =
            leaving.filter(|flow| flow.must_leave || self.scheduler.requests_of(flow.request).is_none());
        uncounted.any(|flow| flow.known().any(is_there))
    }

    /// Flows without a pair of which no switch has anything are no more, when their last frames have drained.
    pub(super) fn free_gone(&mut self, now: Instant, presence: &impl Fn(&Entry) -> Presence) {
        let gone = self.flows.moving().filter(|(_, flow)| flow.is_leaving() && flow.has_left(presence));
        let gone: Vec<Selector> = gone.map(|(selector, _)| *selector).collect();
        for selector in gone {
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

    /// Shares of pairs that are gone are free when the meter passes no more than the others have, and the last frames of before have drained.
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
            let gone = flow.shares.extract_if(.., |share| share.is_leaving);
            let names: BTreeSet<String> = gone.map(|share| share.demand.request.name).collect();
            self.shall_retry = true;
            if is_served {
                self.hold_budgets();
            }
            self.part(request, selector, &names.into_iter().collect::<Vec<String>>());
        }
    }

    /// Whether frames of a flow that were passed before its last change have drained.
    pub(super) fn has_drained(&mut self, now: Instant, selector: Selector) -> bool {
        let is_changing = self.class_changes.is_pending() || self.broken_ways.drain_ns.is_some();
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

    /// From now on budgets do not fall, until frames of the past have no influence any more.
    pub(super) fn hold_budgets(&mut self) {
        self.scheduler.hold_budgets(true);
        self.past = Past::default();
    }

    /// Budgets may fall again when the last flow that has gone, or changed its hops, has drained, and what it delayed.
    pub(super) fn forget_past(&mut self, now: Instant) {
        let is_changing = self.class_changes.is_pending() || self.broken_ways.drain_ns.is_some();
        if !self.scheduler.holds_budgets() || is_changing || self.past.is_endless {
            return;
        }
        if self.past.drain.is_some_and(|drain| now < drain.until()) {
            return;
        }
        // Further flows end no cycle of ways.
        let Some(memory_ns) = self.scheduler.memory_ns() else { return self.past.is_endless = true };
        if Drain::is_over(&mut self.past.drain, now, memory_ns) {
            self.scheduler.hold_budgets(false);
            self.past = Past::default();
            self.shall_retry |= !self.refused.is_empty();
        }
    }
}

/// Whether a switch has nothing of an entry.
pub(super) fn is_gone(presence: Presence) -> bool {
    matches!(presence, Presence::Absent | Presence::Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_lasts_for_the_longest_span_since_its_begin() {
        let mut drain = None;
        assert!(!Drain::is_over(&mut drain, Instant(100), 50));
        assert!(!Drain::is_over(&mut drain, Instant(149), 50));
        // A decision raised budgets meanwhile; another one takes them back.
        assert!(!Drain::is_over(&mut drain, Instant(150), 70));
        assert!(!Drain::is_over(&mut drain, Instant(169), 10));
        assert!(Drain::is_over(&mut drain, Instant(170), 10));
        assert!(Drain::is_over(&mut None, Instant(5), 0), "nothing is under way");
    }
}
