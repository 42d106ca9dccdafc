//! Instances of a reader's history: created with their first change, removed when nothing is left
//! of them.

use super::aliases::Alias;
use super::instance::Instance;
use super::{Incoming, NONE, ReaderCache, Stored};
use crate::cache::pool::PayloadRef;
use crate::cache::sample::{ChangeKind, InstanceHandle, InstanceState, KeyExtractor};
use crate::lifespan::Expiry;
use crate::presentation::SetPosition;
use crate::status::SampleRejectedReason;
use crate::time::Clocks;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, Timestamp};

/// Maximum number of instances searched for a removable one when the limit is reached.
const SWEEP_STEPS: usize = 64;

impl ReaderCache {
    pub(super) fn create_instance(
        &mut self,
        incoming: &Incoming,
        key: Option<&mut Box<dyn KeyExtractor>>,
    ) -> Result<u32, SampleRejectedReason> {
        if self.by_handle.len() >= self.limits.max_instances && !self.remove_not_alive_instance() {
            return Err(SampleRejectedReason::InstancesLimit);
        }
        let handle = InstanceHandle(incoming.key_hash);
        let mut bytes = Vec::new();
        let mut xcdr1_hash = None;
        if let Some(key) = key {
            let key_only = incoming.kind != ChangeKind::Alive;
            let payload = self.pool.bytes(incoming.payload);
            if key.serialize_key(payload, key_only, &mut bytes) {
                let in_xcdr1 = key.key_hash_in_xcdr1(payload, key_only, self.keys_are_hidden);
                xcdr1_hash = in_xcdr1.filter(|hash| *hash != handle.0);
            } else {
                bytes.clear();
            }
        }
        let instance = Instance::new(handle, bytes.into_boxed_slice());
        let index = match self.free_instances.pop() {
            Some(index) => {
                self.instances[index as usize] = instance;
                index
            }
            None => {
                self.instances.push(instance);
                (self.instances.len() - 1) as u32
            }
        };
        self.by_handle.insert(handle, index);
        if let Some(hash) = xcdr1_hash {
            self.add_alias(index, Alias { hash, writer: None });
        }
        Ok(index)
    }

    /// Removes an instance without samples that is not alive, although its writers may write it
    /// again, to make room for a new one.
    fn remove_not_alive_instance(&mut self) -> bool {
        for _ in 0..SWEEP_STEPS.min(self.instances.len()) {
            self.sweep = (self.sweep + 1) % self.instances.len();
            let instance = &self.instances[self.sweep];
            let known = self.by_handle.get(&instance.handle) == Some(&(self.sweep as u32));
            if known
                && instance.count + instance.reserved == 0
                && instance.delayed == NONE
                && instance.state != InstanceState::Alive
            {
                self.remove(self.sweep as u32);
                return true;
            }
        }
        false
    }

    /// Removes an instance without samples, regardless of its state. A later change creates it
    /// again.
    pub(crate) fn abandon(&mut self, instance: InstanceHandle) {
        if let Some(&index) = self.by_handle.get(&instance)
            && self.instances[index as usize].count == 0
        {
            self.remove(index);
        }
    }

    /// Drops the oldest sample whose instance is not alive. Returns false if there is none. Visits
    /// the samples in order of arrival.
    pub(crate) fn evict_oldest_not_alive(&mut self) -> bool {
        let mut at = self.oldest;
        while at != NONE {
            let entry = &self.entries[at as usize];
            let instance = entry.instance;
            if self.instances[instance as usize].state != InstanceState::Alive {
                self.unlink(at);
                self.discard(Stored(at));
                self.remove_if_unused(instance);
                return true;
            }
            at = entry.next;
        }
        false
    }

    /// Removes an instance if nothing is left of it. To be called when it has lost a sample or a
    /// writer.
    pub(super) fn remove_if_unused(&mut self, index: u32) {
        let instance = &self.instances[index as usize];
        let is_gone = instance.count + instance.reserved == 0 && instance.delayed == NONE && !instance.has_writers();
        if is_gone && self.by_handle.get(&instance.handle) == Some(&index) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: u32) {
        self.drop_delayed(index);
        self.purge_due.remove(index);
        self.unindex(index);
        self.drop_aliases(index, |_| true);
        let instance = &mut self.instances[index as usize];
        instance.clear();
        self.by_handle.remove(&instance.handle);
        self.free_instances.push(index);
        self.releases += 1;
    }

    /// Removes unmatched writers. Instances that only they wrote have no writers any more. Returns
    /// whether any state changed, and the number of visited instances: all, or those of the writers
    /// if there is an [index](Self::index_writers).
    pub(crate) fn remove_writers(&mut self, unmatched: &RangeInclusive<Guid>, now: Clocks) -> (bool, usize) {
        let mut changed = false;
        if let Some(instances) = self.take_instances_of(unmatched) {
            instances.iter().for_each(|index| changed |= self.remove_writers_of(*index, unmatched, now));
            return (changed, instances.len());
        }
        for index in 0..self.instances.len() {
            changed |= self.remove_writers_of(index as u32, unmatched, now);
        }
        (changed, self.instances.len())
    }

    fn remove_writers_of(&mut self, index: u32, unmatched: &RangeInclusive<Guid>, now: Clocks) -> bool {
        let is_gone = |writer: &Guid| unmatched.contains(writer);
        let mut changed = false;
        let delayed = self.instances[index as usize].delayed;
        if self.entries.get(delayed as usize).is_some_and(|entry| is_gone(&entry.incoming.writer)) {
            changed = true;
            if self.deliver_delayed(index, now).is_err() {
                self.drop_delayed(index);
            }
        }
        self.drop_aliases(index, |alias| alias.writer.as_ref().is_some_and(is_gone));
        let instance = &mut self.instances[index as usize];
        instance.release_owner_if(is_gone);
        let Some(writer) = instance.remove_writers(unmatched) else { return changed };
        if !instance.lose_writers() {
            self.remove_if_unused(index);
            return changed;
        }
        let incoming = Incoming {
            writer,
            sn: SequenceNumber(0),
            origin: SampleIdentity { writer, sn: SequenceNumber(0) },
            kind: ChangeKind::Unregistered,
            key_hash: instance.handle.0,
            announced_hash: None,
            hash_is_computed: true,
            source_timestamp: Timestamp::INVALID,
            payload: PayloadRef::EMPTY,
            strength: 0,
            writer_is_alive: false,
            expiry: Expiry::NEVER,
            position: SetPosition::default(),
        };
        self.schedule_purge(InstanceState::Alive, index, now.at);
        if let Some(stored) = self.store(incoming) {
            match self.make_room(index, incoming.kind) {
                Ok(()) => self.append(stored.0, index, now.wall),
                Err(_) => self.discard(stored),
            }
        }
        self.remove_if_unused(index);
        true
    }

    /// Reports whether the instance exists and is alive.
    pub(crate) fn is_alive(&self, handle: InstanceHandle) -> bool {
        let instance = self.by_handle.get(&handle).map(|index| &self.instances[*index as usize]);
        instance.is_some_and(|instance| instance.state == InstanceState::Alive)
    }

    /// Returns the handle of an instance that is alive now and was not `before`.
    pub(super) fn revived_from(&self, before: InstanceState, index: u32) -> Option<InstanceHandle> {
        let Instance { handle, state, .. } = &self.instances[index as usize];
        (*state == InstanceState::Alive && before != InstanceState::Alive).then_some(*handle)
    }

    /// Returns the instances that are alive.
    pub(crate) fn alive_instances(&self) -> impl Iterator<Item = InstanceHandle> {
        let known = self.by_handle.values().map(|index| &self.instances[*index as usize]);
        known.filter(|instance| instance.state == InstanceState::Alive).map(|instance| instance.handle)
    }

    /// Updates the OWNERSHIP_STRENGTH of a writer at the instances it owns.
    pub(crate) fn set_strength(&mut self, writer: Guid, strength: i32) {
        let owners = self.instances.iter_mut().filter_map(|instance| instance.owner.as_mut());
        owners.filter(|(owner, _)| *owner == writer).for_each(|owner| owner.1 = strength);
    }

    /// Releases the ownership after the owner missed its deadline: the next writer owns the
    /// instance (DDS 1.4 §2.2.3.9.2).
    pub(crate) fn release_ownership(&mut self, handle: InstanceHandle) {
        if let Some(&index) = self.by_handle.get(&handle) {
            self.instances[index as usize].owner = None;
        }
    }

    /// Returns the serialized key of an instance, empty if unknown.
    pub(crate) fn key_of(&self, handle: InstanceHandle) -> Option<&[u8]> {
        let index = *self.by_handle.get(&handle)?;
        Some(&self.instances[index as usize].key)
    }
}
