//! History of a reader: samples in order of arrival, grouped by instance
//! (DDS 1.4 §2.2.2.5.1, RTPS 2.5 §8.2.2).
//!
//! All samples are stored in one table whose size is fixed when the reader is created. Samples that
//! arrived out of order occupy entries too (`Pending`), so that delivering them moves nothing. The
//! table has room for `max_samples` plus [`PENDING_ENTRIES`].
//!
//! Invariants: a delivered entry is in the arrival list and in its instance's list; counts equal
//! the lengths of the lists; `RESOURCE_LIMITS` are never exceeded. An instance without samples and
//! without writers is removed once the application has returned the last sample
//! (DDS 1.4 §2.2.2.5.1.3 allows it).
//!
//! - `mod.rs`: storing and delivering changes.
//! - `instances`: the instances; `aliases`: their other key hashes; `instance`: the state of each;
//!   `by_writer`: those of a writer.
//! - `lists`: the order of the samples; `order`: the source timestamp order.
//! - `fast_path`: the fast path of delivery.
//! - `expiry`, `purge` and `filter`: timed removal and presentation.
//! - `reading`: reads and takes.

mod aliases;
mod by_writer;
mod expiry;
mod fast_path;
mod filter;
mod instance;
mod instances;
mod lists;
mod order;
mod policies;
mod purge;
mod reading;
mod reservations;

pub(crate) use fast_path::PlainSample;
pub(crate) use policies::CachePolicies;

use super::latency::LatencyMonitor;
use super::pool::{PayloadPool, PayloadRef, PoolSize};
use super::sample::{ChangeKind, InstanceHandle, KeyExtractor, KeyHash};
use crate::lifespan::Expiry;
use crate::presentation::SetPosition;
use crate::schedule::Schedule;
use crate::status::SampleRejectedReason;
use crate::time::{Clocks, Instant};
use aliases::Alias;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use by_writer::ByWriter;
use instance::Instance;
use lists::Entry;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, Timestamp};

pub(crate) use reservations::NoRoom;

/// Index of no entry, or of no instance.
const NONE: u32 = u32::MAX;
/// Entries beyond `max_samples` for samples that wait for earlier ones.
const PENDING_ENTRIES: usize = 1024;

/// Received change, with its payload already in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) writer: Guid,
    pub(crate) sn: SequenceNumber,
    /// Original writer and its sequence number.
    pub(crate) origin: SampleIdentity,
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: KeyHash,
    /// PID_KEY_HASH of the change.
    pub(crate) announced_hash: Option<KeyHash>,
    /// The key hash comes from the payload. If not, there was no payload, and the hash is announced
    /// by the writer.
    pub(crate) hash_is_computed: bool,
    pub(crate) source_timestamp: Timestamp,
    pub(crate) payload: PayloadRef,
    /// OWNERSHIP_STRENGTH of the writer.
    pub(crate) strength: i32,
    /// Whether the writer is alive when the change is delivered (LIVELINESS). If not, the writer
    /// owns nothing and does not keep the instance alive (DDS 1.4 §2.2.2.5.1.3).
    pub(crate) writer_is_alive: bool,
    pub(crate) expiry: Expiry,
    /// Position among the changes of its writer and its publisher.
    pub(crate) position: SetPosition,
}

/// Result of delivering a change. `revived` is the instance that a dropped change made alive again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// Data of this instance were delivered.
    Data(InstanceHandle),
    /// The state of an instance changed, or the change had no effect.
    StateChange,
    /// A stronger writer owns the instance.
    NotOwner,
    /// Data of this instance came too soon after the last, and wait or were dropped.
    Filtered(InstanceHandle),
    /// The sample expired before delivery.
    Expired { revived: Option<InstanceHandle> },
    /// By its source timestamp, the instance has a later change.
    Outdated { revived: Option<InstanceHandle> },
}

/// Entry of the table, delivered or pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored(pub(crate) u32);

/// Bounds of the cache: `HISTORY` and `RESOURCE_LIMITS` with the defaults filled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheLimits {
    /// `KEEP_LAST` depth; `None` is `KEEP_ALL`.
    pub(crate) depth: Option<usize>,
    pub(crate) max_samples: usize,
    pub(crate) max_instances: usize,
    pub(crate) max_samples_per_instance: usize,
}

#[derive(Debug)]
pub(crate) struct ReaderCache {
    limits: CacheLimits,
    policies: CachePolicies,
    /// Passes iterate over instances, not in order of arrival.
    pub(crate) by_instance: bool,
    pub(crate) pool: PayloadPool,
    entries: Vec<Entry>,
    free: u32,
    instances: Vec<Instance>,
    free_instances: Vec<u32>,
    by_handle: BTreeMap<InstanceHandle, u32>,
    by_alias: BTreeMap<Alias, u32>,
    /// Writers announce the MD5 of short keys too, because keys are encrypted.
    pub(crate) keys_are_hidden: bool,
    by_writer: Option<ByWriter>,
    /// Expiries of delivered entries.
    expiries: Schedule<Expiry>,
    /// Instances with a waiting sample.
    delayed_due: Schedule<Instant>,
    /// Instances whose samples will be purged.
    purge_due: Schedule<Instant>,
    /// Start of the next search for a removable instance.
    sweep: usize,
    oldest: u32,
    newest: u32,
    /// Number of delivered samples with data. Entries without data are bounded by the number of
    /// instances.
    data_count: usize,
    arrivals: u64,
    /// Number of released entries and instances. Only a release makes room for what found none.
    releases: u64,
    /// Number of passes of reads and takes.
    passes: u64,
    /// Entry taken by the last read, whose payload the caller still borrows.
    taken: u32,
    reservations: reservations::Reservations,
    /// Latency monitor, if the reader has an E2E_LATENCY or a computed bound.
    pub(crate) latency: Option<Box<LatencyMonitor>>,
}

impl ReaderCache {
    pub(crate) fn new(limits: CacheLimits, memory: impl Into<PoolSize>) -> Self {
        Self {
            limits,
            policies: CachePolicies::default(),
            by_instance: false,
            pool: PayloadPool::new(memory.into()),
            entries: Vec::with_capacity(limits.max_samples + PENDING_ENTRIES),
            free: NONE,
            instances: Vec::new(),
            free_instances: Vec::new(),
            by_handle: BTreeMap::new(),
            by_alias: BTreeMap::new(),
            keys_are_hidden: false,
            by_writer: None,
            expiries: Schedule::new(),
            delayed_due: Schedule::new(),
            purge_due: Schedule::new(),
            sweep: 0,
            oldest: NONE,
            newest: NONE,
            data_count: 0,
            arrivals: 0,
            releases: 0,
            passes: 0,
            taken: NONE,
            reservations: reservations::Reservations::default(),
            latency: None,
        }
    }

    /// Returns the number of samples and instances, free entries included.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.instances.len()
    }

    /// Returns the most steps that one unit of work takes for the cache.
    pub(crate) fn steps_max(&self) -> usize {
        self.len() + self.pool.steps_max()
    }

    /// Returns the number of entries for samples that are delivered, or wait for earlier ones.
    fn table_len(&self) -> usize {
        self.limits.max_samples + PENDING_ENTRIES
    }

    /// Reports whether a sample could be delivered now without evicting any.
    pub(crate) fn has_room(&self) -> bool {
        self.data_count < self.limits.max_samples
    }

    /// Returns the most instances of the cache.
    pub(crate) fn max_instances(&self) -> usize {
        self.limits.max_instances
    }

    /// Returns a number that changes when room was freed.
    pub(crate) fn releases(&self) -> u64 {
        self.releases
    }

    /// Stores a change without delivering it. `None` if the table is full.
    pub(crate) fn store(&mut self, incoming: Incoming) -> Option<Stored> {
        let entry = Entry {
            incoming,
            reception_timestamp: Timestamp::INVALID,
            arrival: 0,
            instance: NONE,
            read: false,
            disposed_generation: 0,
            no_writers_generation: 0,
            previous: NONE,
            next: NONE,
            previous_in_instance: NONE,
            next_in_instance: NONE,
        };
        if self.free != NONE {
            let index = self.free;
            self.free = self.entries[index as usize].next;
            self.entries[index as usize] = entry;
            return Some(Stored(index));
        }
        if self.entries.len() == self.entries.capacity() {
            return None;
        }
        self.entries.push(entry);
        Some(Stored((self.entries.len() - 1) as u32))
    }

    /// Removes a pending change.
    pub(crate) fn discard(&mut self, stored: Stored) {
        let entry = &mut self.entries[stored.0 as usize];
        let payload = core::mem::replace(&mut entry.incoming.payload, PayloadRef::EMPTY);
        entry.next = self.free;
        self.free = stored.0;
        self.releases += 1;
        self.pool.release(payload);
    }

    /// Returns the original writer of a pending change.
    pub(crate) fn origin_of(&self, stored: Stored) -> SampleIdentity {
        self.entries[stored.0 as usize].incoming.origin
    }

    /// Sets whether the writer of a pending change is alive when that is delivered.
    pub(crate) fn set_writer_alive(&mut self, stored: Stored, is_alive: bool) {
        self.entries[stored.0 as usize].incoming.writer_is_alive = is_alive;
    }

    /// Returns the kind of a pending change.
    pub(crate) fn kind_of(&self, stored: Stored) -> ChangeKind {
        self.entries[stored.0 as usize].incoming.kind
    }

    /// Drops a pending change that another writer delivered before. This one only becomes a writer
    /// of the instance.
    pub(crate) fn drop_repeated(&mut self, stored: Stored) {
        let incoming = self.entries[stored.0 as usize].incoming;
        if incoming.kind == ChangeKind::Alive
            && let Some(instance) = self.find_instance(&incoming)
        {
            self.learn_alias(instance, &incoming);
            self.instances[instance as usize].note_writer(&incoming);
            self.index_writer(incoming.writer, instance);
        }
        self.discard(stored);
    }

    /// Reports whether there is any sample to take.
    pub(crate) fn has_any(&self) -> bool {
        self.oldest != NONE
    }

    /// Delivers a pending change to the application, applying `HISTORY` and `RESOURCE_LIMITS`. On
    /// `Err` the change is still pending.
    pub(crate) fn deliver(
        &mut self,
        stored: Stored,
        clocks: Clocks,
        key: Option<&mut Box<dyn KeyExtractor>>,
    ) -> Result<Delivered, SampleRejectedReason> {
        let incoming = self.entries[stored.0 as usize].incoming;
        let delivered = self.apply(stored, clocks, key);
        self.index_writer_of(&incoming);
        delivered
    }

    fn apply(
        &mut self,
        stored: Stored,
        clocks: Clocks,
        key: Option<&mut Box<dyn KeyExtractor>>,
    ) -> Result<Delivered, SampleRejectedReason> {
        let now = clocks.wall;
        let mut incoming = self.entries[stored.0 as usize].incoming;
        if incoming.expiry.is_past(now) {
            return Ok(Delivered::Expired { revived: self.discard_expired(stored, incoming, clocks) });
        }
        let Some(instance) = self.instance_for(&incoming, key)? else {
            self.discard(stored);
            return Ok(Delivered::StateChange);
        };
        self.learn_alias(instance, &incoming);
        let handle = self.instances[instance as usize].handle;
        if self.policies.exclusive && !self.instances[instance as usize].is_owned_by(&incoming) {
            self.discard(stored);
            self.remove_if_unused(instance);
            return Ok(Delivered::NotOwner);
        }
        let before = self.instances[instance as usize].state;
        if self.policies.by_source {
            if self.instances[instance as usize].is_outdated(&mut incoming, now) {
                self.discard(stored);
                self.schedule_purge(before, instance, clocks.at);
                return Ok(Delivered::Outdated { revived: self.revived_from(before, instance) });
            }
            self.entries[stored.0 as usize].incoming.kind = incoming.kind;
        }
        let is_data = incoming.kind == ChangeKind::Alive;
        if is_data && let Some(due) = self.separation_end(instance, clocks.at) {
            self.delay(stored, instance, &incoming, due);
            self.instances[instance as usize].is_as_of(&incoming, now);
            return Ok(Delivered::Filtered(handle));
        }
        if !is_data {
            self.resolve_delayed(instance, &incoming, clocks)?;
        }
        // A change without effect must not replace an existing state change, so this precedes
        // making room.
        if !is_data && !self.instances[instance as usize].update(&incoming) {
            self.discard(stored);
            self.remove_if_unused(instance);
            return Ok(Delivered::StateChange);
        }
        if !is_data {
            self.schedule_purge(before, instance, clocks.at);
        }
        if let Err(reason) = self.make_room(instance, incoming.kind) {
            self.remove_if_unused(instance);
            return Err(reason);
        }
        let state = &mut self.instances[instance as usize];
        if is_data {
            state.update(&incoming);
        }
        if self.policies.by_source {
            state.is_as_of(&incoming, now);
        }
        if is_data {
            self.schedule_purge(before, instance, clocks.at);
            self.drop_delayed(instance);
            self.instances[instance as usize].last_delivery = Some(clocks.at);
        }
        self.append(stored.0, instance, now);
        Ok(if is_data { Delivered::Data(handle) } else { Delivered::StateChange })
    }

    /// Finds the instance of a change, or creates it for a sample. Returns `None` if the change has
    /// no effect.
    #[inline]
    fn instance_for(
        &mut self,
        incoming: &Incoming,
        key: Option<&mut Box<dyn KeyExtractor>>,
    ) -> Result<Option<u32>, SampleRejectedReason> {
        match self.find_instance(incoming) {
            Some(instance) => Ok(Some(instance)),
            // The instance is unknown, or was removed after its end. Unregistering it has no
            // effect, and its disposal cannot be presented without the key.
            None if incoming.kind == ChangeKind::Unregistered
                || (incoming.kind != ChangeKind::Alive && incoming.payload == PayloadRef::EMPTY) =>
            {
                Ok(None)
            }
            None => self.create_instance(incoming, key).map(Some),
        }
    }

    /// Evicts the oldest sample of a full `KEEP_LAST` instance, or the instance's older state
    /// change, or returns the limit that is reached. A state change evicts no data.
    fn make_room(&mut self, instance: u32, kind: ChangeKind) -> Result<(), SampleRejectedReason> {
        let state = &self.instances[instance as usize];
        let evicted = match (kind, self.limits.depth) {
            (ChangeKind::Alive, Some(depth)) if state.data_count >= depth => {
                if state.oldest == state.state_entry {
                    self.entries[state.oldest as usize].next_in_instance
                } else {
                    state.oldest
                }
            }
            (ChangeKind::Alive, None) if state.count >= self.limits.max_samples_per_instance => {
                return Err(SampleRejectedReason::SamplesPerInstanceLimit);
            }
            (ChangeKind::Alive, _) => NONE,
            _ => state.state_entry,
        };
        if evicted != NONE {
            self.unlink(evicted);
            self.discard(Stored(evicted));
        }
        if kind == ChangeKind::Alive && self.data_count >= self.limits.max_samples {
            return Err(SampleRejectedReason::SamplesLimit);
        }
        Ok(())
    }
}
