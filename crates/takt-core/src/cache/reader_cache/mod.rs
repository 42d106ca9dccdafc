//! A reader's history: samples in order of arrival, grouped by instance (DDS 1.4 §2.2.2.5.1, RTPS 2.5 §8.2.2).
//!
//! All samples live in one table whose size is fixed when the reader is created. Samples that arrived out
//! of order occupy entries too (`Pending`), so that delivering them moves nothing. The table has room for
//! `max_samples` plus [`PENDING_ROOM`].
//!
//! Invariants: a delivered entry is in the arrival list and in its instance's list; counts equal the
//! lists' lengths; `RESOURCE_LIMITS` are never exceeded; an instance without samples and without writers is
//! forgotten, once the application has done with the last sample (DDS 1.4 §2.2.2.5.1.3 allows it).

//!
//! `mod.rs` takes changes in, `instances` knows the instances, `aliases` their other key hashes and `instance` the state
//! of each, `by_writer` finds those of a writer, `lists` keeps the samples in order, `straight` is the short way in, `expiry` removes what is of no use any
//! more, as does `purge`, `filter` keeps back what comes too soon, `order` tells the later from the earlier, `reading`
//! shows the rest to the application.

mod aliases;
mod by_writer;
mod claims;
mod expiry;
mod filter;
mod instance;
mod instances;
mod lists;
mod order;
mod policies;
mod purge;
mod reading;
mod straight;

pub(crate) use policies::CachePolicies;
pub(crate) use straight::Plain;

use super::latency::LatencyMonitor;
use super::pool::{PayloadPool, PayloadRef, PoolSize};
use super::sample::{ChangeKind, InstanceHandle, KeyExtractor, KeyHash};
use crate::lifespan::Expiry;
use crate::presentation::Place;
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

pub(crate) use claims::Fit;

/// No entry, or no instance.
const NONE: u32 = u32::MAX;
/// Entries beyond `max_samples` for samples that wait for earlier ones.
const PENDING_ROOM: usize = 1024;

/// A change as it comes off the wire, its payload already in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) writer: Guid,
    pub(crate) sn: SequenceNumber,
    /// Who wrote it first.
    pub(crate) origin: SampleIdentity,
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: KeyHash,
    /// PID_KEY_HASH.
    pub(crate) announced_hash: Option<KeyHash>,
    /// The key hash comes from the payload. If not, there was no payload, and it is what the writer announces.
    pub(crate) hash_is_computed: bool,
    pub(crate) source_timestamp: Timestamp,
    pub(crate) payload: PayloadRef,
    /// The writer's OWNERSHIP_STRENGTH.
    pub(crate) strength: i32,
    /// Whether the writer is alive when the change is delivered (LIVELINESS). If not, the writer owns nothing and is no live writer of
    /// the instance (DDS 1.4 §2.2.2.5.1.3).
    pub(crate) writer_is_alive: bool,
    pub(crate) expiry: Expiry,
    /// Among those of its writer and its publisher.
    pub(crate) place: Place,
}

/// What became of a change that a history took. `revived` is the instance that a dropped change made alive again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// It is data of this instance.
    Data(InstanceHandle),
    /// It is news of an instance, or none that matters.
    News,
    /// A stronger writer owns the instance.
    Outranked,
    /// It is data of this instance that comes too soon after the last.
    Filtered(InstanceHandle),
    /// It arrived too late to be of use.
    Expired { revived: Option<InstanceHandle> },
    /// By its source time stamp the instance has changed since.
    Outdated { revived: Option<InstanceHandle> },
}

/// An entry of the table, delivered or pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored(pub(crate) u32);

/// The cache's bounds: `HISTORY` and `RESOURCE_LIMITS` with the defaults filled in.
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
    /// A pass goes from instance to instance, not in order of arrival.
    pub(crate) by_instance: bool,
    pub(crate) pool: PayloadPool,
    entries: Vec<Entry>,
    free: u32,
    instances: Vec<Instance>,
    free_instances: Vec<u32>,
    by_handle: BTreeMap<InstanceHandle, u32>,
    by_alias: BTreeMap<Alias, u32>,
    /// Writers announce the MD5 of short keys, too, since keys are encrypted.
    pub(crate) keys_are_hidden: bool,
    by_writer: Option<ByWriter>,
    /// Delivered entries that expire.
    expiries: Schedule<Expiry>,
    /// Instances of which a sample waits until it may be shown.
    held_due: Schedule<Instant>,
    /// Instances whose samples are kept for a time only.
    purge_due: Schedule<Instant>,
    /// Where the next search for an instance that can be forgotten begins.
    sweep: usize,
    oldest: u32,
    newest: u32,
    /// Delivered samples with data; news of instances is bounded by their number.
    data_count: usize,
    arrivals: u64,
    /// How often an entry or an instance was given up: only then can what found no room find some.
    releases: u64,
    /// Passes of reads and takes.
    passes: u64,
    /// The read under way copies what is lent.
    copies: bool,
    /// Taken by the last read, its payload still borrowed by the caller.
    taken: u32,
    claims: claims::Claims,
    /// Of a reader that has an E2E_LATENCY.
    pub(crate) latency: Option<Box<LatencyMonitor>>,
}

impl ReaderCache {
    pub(crate) fn new(limits: CacheLimits, memory: impl Into<PoolSize>) -> Self {
        Self {
            limits,
            policies: CachePolicies::default(),
            by_instance: false,
            pool: PayloadPool::new(memory.into()),
            entries: Vec::with_capacity(limits.max_samples + PENDING_ROOM),
            free: NONE,
            instances: Vec::new(),
            free_instances: Vec::new(),
            by_handle: BTreeMap::new(),
            by_alias: BTreeMap::new(),
            keys_are_hidden: false,
            by_writer: None,
            expiries: Schedule::new(),
            held_due: Schedule::new(),
            purge_due: Schedule::new(),
            sweep: 0,
            oldest: NONE,
            newest: NONE,
            data_count: 0,
            arrivals: 0,
            releases: 0,
            passes: 0,
            copies: true,
            taken: NONE,
            claims: claims::Claims::default(),
            latency: None,
        }
    }

    /// Samples and instances, those included that are gone and whose places are free.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.instances.len()
    }

    /// The most steps that one unit of work takes for what it holds.
    pub(crate) fn steps_max(&self) -> usize {
        self.len() + self.pool.steps_max()
    }

    /// Entries for samples that are shown, or wait for earlier ones.
    fn table_len(&self) -> usize {
        self.limits.max_samples + PENDING_ROOM
    }

    /// Whether a sample could be delivered now without evicting anything.
    pub(crate) fn has_room(&self) -> bool {
        self.data_count < self.limits.max_samples
    }

    /// Most instances that it holds.
    pub(crate) fn max_instances(&self) -> usize {
        self.limits.max_instances
    }

    /// Changes when room was made.
    pub(crate) fn releases(&self) -> u64 {
        self.releases
    }

    /// Keeps a change without showing it. `None` if the table is full.
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

    /// Forgets a pending change.
    pub(crate) fn discard(&mut self, stored: Stored) {
        let entry = &mut self.entries[stored.0 as usize];
        let payload = core::mem::replace(&mut entry.incoming.payload, PayloadRef::EMPTY);
        entry.next = self.free;
        self.free = stored.0;
        self.releases += 1;
        self.pool.release(payload);
    }

    /// Who wrote a pending change first.
    pub(crate) fn origin_of(&self, stored: Stored) -> SampleIdentity {
        self.entries[stored.0 as usize].incoming.origin
    }

    /// A pending change is about to be delivered: whether its writer is alive now.
    pub(crate) fn set_writer_alive(&mut self, stored: Stored, is_alive: bool) {
        self.entries[stored.0 as usize].incoming.writer_is_alive = is_alive;
    }

    /// What a pending change does.
    pub(crate) fn kind_of(&self, stored: Stored) -> ChangeKind {
        self.entries[stored.0 as usize].incoming.kind
    }

    /// A pending change that was shown before, by another writer: this one writes the instance too, which is all the news.
    pub(crate) fn repeat(&mut self, stored: Stored) {
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

    /// Whether there is anything that could be taken.
    pub(crate) fn has_any(&self) -> bool {
        self.oldest != NONE
    }

    /// Shows a pending change to the application, applying `HISTORY` and `RESOURCE_LIMITS`. On `Err` the
    /// change is still pending.
    pub(crate) fn deliver(
        &mut self,
        stored: Stored,
        clocks: Clocks,
        key: Option<&mut Box<dyn KeyExtractor>>,
    ) -> Result<Delivered, SampleRejectedReason> {
        let incoming = self.entries[stored.0 as usize].incoming;
        let delivered = self.show(stored, clocks, key);
        self.index_writer_of(&incoming);
        delivered
    }

    fn show(
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
        let instance = match self.find_instance(&incoming) {
            Some(instance) => instance,
            // An instance that nobody here knows, or that had ended for good and is forgotten: that it has no writers is no
            // news of it, and that it is disposed of is none without its key.
            None if incoming.kind == ChangeKind::Unregistered
                || (incoming.kind != ChangeKind::Alive && incoming.payload == PayloadRef::EMPTY) =>
            {
                self.discard(stored);
                return Ok(Delivered::News);
            }
            None => self.create_instance(&incoming, key)?,
        };
        self.learn_alias(instance, &incoming);
        let handle = self.instances[instance as usize].handle;
        if self.policies.exclusive && !self.instances[instance as usize].is_owned_by(&incoming) {
            self.discard(stored);
            self.forget_if_gone(instance);
            return Ok(Delivered::Outranked);
        }
        let before = self.instances[instance as usize].state;
        if self.policies.by_source {
            if self.instances[instance as usize].is_outdated(&mut incoming, now) {
                self.discard(stored);
                self.state_was(before, instance, clocks.at);
                return Ok(Delivered::Outdated { revived: self.revived_from(before, instance) });
            }
            self.entries[stored.0 as usize].incoming.kind = incoming.kind;
        }
        let is_data = incoming.kind == ChangeKind::Alive;
        if is_data && let Some(due) = self.too_soon(instance, clocks.at) {
            self.hold(stored, instance, &incoming, due);
            self.instances[instance as usize].is_as_of(&incoming, now);
            return Ok(Delivered::Filtered(handle));
        }
        if !is_data {
            self.settle_held(instance, &incoming, clocks)?;
        }
        // What is no news must not displace the news that there is, so this comes before room is made.
        if !is_data && !self.instances[instance as usize].update(&incoming) {
            self.discard(stored);
            self.forget_if_gone(instance);
            return Ok(Delivered::News);
        }
        if !is_data {
            self.state_was(before, instance, clocks.at);
        }
        if let Err(reason) = self.make_room(instance, incoming.kind) {
            self.forget_if_gone(instance);
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
            self.state_was(before, instance, clocks.at);
            self.drop_held(instance);
            self.instances[instance as usize].shown_at = Some(clocks.at);
        }
        self.append(stored.0, instance, now);
        Ok(if is_data { Delivered::Data(handle) } else { Delivered::News })
    }

    /// Evicts the oldest sample of a full `KEEP_LAST` instance, or the instance's older news, or says which
    /// limit is reached. News does not push data out.
    fn make_room(&mut self, instance: u32, kind: ChangeKind) -> Result<(), SampleRejectedReason> {
        let state = &self.instances[instance as usize];
        let evicted = match (kind, self.limits.depth) {
            (ChangeKind::Alive, Some(depth)) if state.data_count >= depth => {
                if state.oldest == state.news {
                    self.entries[state.oldest as usize].next_in_instance
                } else {
                    state.oldest
                }
            }
            (ChangeKind::Alive, None) if state.count >= self.limits.max_samples_per_instance => {
                return Err(SampleRejectedReason::SamplesPerInstanceLimit);
            }
            (ChangeKind::Alive, _) => NONE,
            _ => state.news,
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
