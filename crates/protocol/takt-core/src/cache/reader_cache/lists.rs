//! Lists of delivered samples: all of the reader in order of arrival, and those of each instance.

use super::{Incoming, NONE, ReaderCache, Stored};
use crate::cache::sample::{ChangeKind, InstanceHandle, SampleState};
use crate::lifespan::Expiry;
use takt_wire::Timestamp;

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) incoming: Incoming,
    pub(super) reception_timestamp: Timestamp,
    /// Position in order of arrival, from 1; zero while pending or free.
    pub(super) arrival: u64,
    pub(super) instance: u32,
    pub(super) read: bool,
    pub(super) disposed_generation: u32,
    pub(super) no_writers_generation: u32,
    /// Neighbors in order of arrival; `next` also links free entries.
    pub(super) previous: u32,
    pub(super) next: u32,
    pub(super) previous_in_instance: u32,
    pub(super) next_in_instance: u32,
}

impl Entry {
    pub(super) fn sample_state(&self) -> SampleState {
        if self.read { SampleState::Read } else { SampleState::NotRead }
    }
}

/// Maximum number of samples searched for one that can be dropped.
const ENTRIES_SEARCHED_MAX: usize = 64;

impl ReaderCache {
    /// With KEEP_LAST: drops a sample so that one of `len` octets finds memory. The oldest of its
    /// instance is dropped, if that is known and every sample replaces the one before. Otherwise
    /// the oldest sample is dropped that a later one of its instance has followed. Also returns the
    /// number of visited samples. False if there is none, or the new sample is larger than all
    /// memory.
    pub(crate) fn evict_for_memory(&mut self, len: usize, instance: Option<InstanceHandle>) -> (bool, usize) {
        if self.limits.depth.is_none() || !self.pool.has_room_ever(len) {
            return (false, 0);
        }
        let own =
            instance.filter(|_| !self.policies.may_delay_or_drop()).and_then(|handle| self.by_handle.get(&handle));
        let own =
            own.map(|index| &self.instances[*index as usize]).filter(|own| own.data_count > 0 && own.reserved == 0);
        let is_data = |at: u32| self.entries[at as usize].incoming.kind == ChangeKind::Alive;
        let (mut at, mut steps) = (self.oldest, 1);
        let victim = match own {
            Some(own) if is_data(own.oldest) => own.oldest,
            Some(own) => self.entries[own.oldest as usize].next_in_instance,
            None => loop {
                if at == NONE || steps > ENTRIES_SEARCHED_MAX {
                    break NONE;
                }
                let entry = &self.entries[at as usize];
                let instance = &self.instances[entry.instance as usize];
                if is_data(at) && instance.data_count > 1 && instance.reserved == 0 {
                    break at;
                }
                (at, steps) = (entry.next, steps + 1);
            },
        };
        if victim != NONE {
            self.unlink(victim);
            self.discard(Stored(victim));
        }
        (victim != NONE, steps)
    }

    pub(super) fn append(&mut self, index: u32, instance: u32, now: Timestamp) {
        self.arrivals += 1;
        let state = &mut self.instances[instance as usize];
        let entry = &mut self.entries[index as usize];
        entry.reception_timestamp = now;
        if let Some(latency) = &mut self.latency
            && entry.incoming.kind == ChangeKind::Alive
        {
            latency.arrived(entry.incoming.source_timestamp, now);
        }
        entry.arrival = self.arrivals;
        entry.instance = instance;
        entry.read = false;
        entry.disposed_generation = state.disposed_generation;
        entry.no_writers_generation = state.no_writers_generation;
        entry.previous = self.newest;
        entry.next = NONE;
        let newest_of_instance = core::mem::replace(&mut state.newest, index);
        entry.previous_in_instance = newest_of_instance;
        entry.next_in_instance = NONE;
        if entry.incoming.expiry != Expiry::NEVER {
            self.expiries.set(index, entry.incoming.expiry);
        }
        state.count += 1;
        if entry.incoming.kind == ChangeKind::Alive {
            self.data_count += 1;
            state.data_count += 1;
        } else {
            state.state_entry = index;
        }
        if state.oldest == NONE {
            state.oldest = index;
        }
        if newest_of_instance != NONE {
            self.entries[newest_of_instance as usize].next_in_instance = index;
        }
        let newest = core::mem::replace(&mut self.newest, index);
        if newest == NONE {
            self.oldest = index;
        } else {
            self.entries[newest as usize].next = index;
        }
    }

    /// Removes a delivered entry from both lists.
    pub(super) fn unlink(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.arrival = 0;
        let (previous, next, instance) = (entry.previous, entry.next, entry.instance);
        let (before, after) = (entry.previous_in_instance, entry.next_in_instance);
        if entry.incoming.expiry != Expiry::NEVER {
            self.expiries.remove(index);
        }
        match previous {
            NONE => self.oldest = next,
            _ => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => self.newest = previous,
            _ => self.entries[next as usize].previous = previous,
        }
        let state = &mut self.instances[instance as usize];
        state.count -= 1;
        if state.state_entry == index {
            state.state_entry = NONE;
        } else {
            self.data_count -= 1;
            state.data_count -= 1;
        }
        match before {
            NONE => state.oldest = after,
            _ => self.entries[before as usize].next_in_instance = after,
        }
        match after {
            NONE => state.newest = before,
            _ => self.entries[after as usize].previous_in_instance = before,
        }
    }
}
