//! Removal of flows: their load is dropped once the queues are proven without it.

use alloc::vec::Vec;

use super::{Admission, Draft, FlowId, Set};
use crate::network::{Flow, Hop, QueueClaim};

impl Admission {
    /// Removes a flow. Its load is no longer counted once every queue on its route is proven
    /// without it. That holds immediately, except for rare cases of rounding, in which a later
    /// decision drops it. The budgets of queues that other flows use stay unchanged; they are
    /// lowered when a flow requires it.
    pub fn remove(&mut self, id: FlowId) -> Option<Flow> {
        self.remove_all(&[id]).pop()
    }

    /// Removes several flows at once, each as [`remove`](Self::remove) does. Returns those that
    /// were admitted.
    pub fn remove_all(&mut self, ids: &[FlowId]) -> Vec<Flow> {
        let mut removed = Vec::new();
        for id in ids {
            let Some(flow) = self.flow(*id).cloned() else { continue };
            self.put(Set::Removed, *id, true);
            removed.push(flow);
        }
        self.drop_removed();
        removed
    }

    /// Drops the load of removed flows, as far as the queues on their routes are proven without it.
    pub(super) fn drop_removed(&mut self) {
        let removed: Vec<FlowId> = self.removed.iter().copied().collect();
        if removed.len() > 1 && self.drop_load(&removed) {
            return;
        }
        removed.iter().for_each(|id| _ = self.drop_load(&[*id]));
    }

    /// Drops the load of these flows if the queues are proven without them. Returns whether they
    /// are.
    fn drop_load(&mut self, ids: &[FlowId]) -> bool {
        let Some(draft) = self.without(ids) else { return false };
        self.apply(draft);
        for id in ids {
            self.put_flow(*id, None);
            self.put(Set::Removed, *id, false);
            self.put(Set::Free, *id, true);
            self.put(Set::BySeparated, *id, false);
        }
        true
    }

    /// Bounds the network without some flows, under the current budgets; `None` if a queue is not
    /// proven.
    fn without(&self, ids: &[FlowId]) -> Option<Draft> {
        let mut draft = Draft::default();
        for id in ids {
            for hop in &self.flows[id.0].as_ref()?.hops {
                let loads = &self.loads[hop.port];
                draft.port_mut(hop.port).change_loads(loads, |all| _ = all.remove(id.0));
                draft.mark(*hop);
            }
        }
        while let Some((port, first)) = draft.todo.pop_first() {
            for (class, queue) in self.queues[port].iter().enumerate() {
                let view = self.view(port, &draft);
                if class < first && self.is_blocked_as_before(port, class, &draft) {
                    continue;
                }
                let is_kept = |claim: &QueueClaim| claim.delay_ns <= queue.delay_ns;
                let again = || view.bound_in(class, &queue.intervals).ok(); // tidy-allow(dropped-cause): no bound, no removal.
                self.count_queue();
                let mut claim = view.bound(class).ok().filter(is_kept).or_else(again).filter(is_kept)?;
                // The jitter at later hops was computed from the budget.
                if !claim.intervals.is_empty() {
                    claim.delay_ns = queue.delay_ns;
                }
                draft.set_claim(Hop { port, class }, claim);
            }
        }
        Some(draft)
    }
}
