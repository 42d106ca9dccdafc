//! Removal of expired samples from a reader's history (LIFESPAN, DDS 1.4 §2.2.3.16).

use super::{CachePolicies, Incoming, ReaderCache, Stored};
use crate::cache::sample::InstanceHandle;
use crate::lifespan::Expiry;
use crate::time::Clocks;
use takt_wire::Timestamp;

impl ReaderCache {
    /// Reserves room for the expiries of samples.
    pub(crate) fn reserve_expiries(&mut self) {
        self.expiries.reserve(self.entries.capacity());
    }

    /// Returns the expiry of the next sample.
    pub(crate) fn next_expiry(&self) -> Option<Expiry> {
        self.expiries.first().map(|(expiry, _)| expiry)
    }

    /// Removes expired samples, at most `max`. Returns their number.
    pub(crate) fn expire(&mut self, now: Timestamp, max: usize) -> usize {
        let mut removed = 0;
        while removed < max
            && let Some((_, index)) = self.expiries.first().filter(|(expiry, _)| expiry.is_past(now))
        {
            let instance = self.entries[index as usize].instance;
            self.unlink(index);
            self.discard(Stored(index));
            self.remove_if_unused(instance);
            removed += 1;
        }
        removed
    }

    /// Drops a pending sample that expired before delivery. It still counts as a write to a known
    /// instance. Returns the instance that became alive by it.
    pub(super) fn discard_expired(
        &mut self,
        stored: Stored,
        mut incoming: Incoming,
        clocks: Clocks,
    ) -> Option<InstanceHandle> {
        let now = clocks.wall;
        let mut revived = None;
        if let Some(&instance) = self.by_handle.get(&InstanceHandle(incoming.key_hash)) {
            self.learn_alias(instance, &incoming);
            let state = &mut self.instances[instance as usize];
            let before = state.state;
            let CachePolicies { exclusive, by_source, .. } = self.policies;
            let outranked = exclusive && !state.is_owned_by(&incoming);
            let outdated = by_source && state.is_outdated(&mut incoming, now);
            if !outranked && !outdated {
                state.update(&incoming);
                state.is_as_of(&incoming, now);
            }
            self.schedule_purge(before, instance, clocks.at);
            revived = self.revived_from(before, instance);
        }
        self.discard(stored);
        revived
    }
}
