//! A reader's history: samples in order of arrival, grouped by instance (DDS 1.4 §2.2.2.5.1, RTPS 2.5 §8.2.2).
//!
//! All samples live in one table whose size is fixed when the reader is created. Samples that arrived out
//! of order occupy entries too (`Pending`), so that delivering them moves nothing. The table has room for
//! `max_samples` plus [`PENDING_ROOM`].
//!
//! Invariants: a delivered entry is in the arrival list and in its instance's list; counts equal the
//! lists' lengths; `RESOURCE_LIMITS` are never exceeded; an instance without samples and without writers is
//! forgotten, once the application has done with the last sample (DDS 1.4 §2.2.2.5.1.3 allows it).

use super::pool::{PayloadPool, PayloadRef};
use super::sample::{
    ChangeKind, InstanceHandle, InstanceState, KeyExtractor, KeyHash, ReadCursor, SampleInfo, SampleRef, SampleState,
    Selector, ViewState,
};
use crate::mutation::{Mutation, is_on};
use crate::status::SampleRejectedReason;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use takt_wire::{Guid, SequenceNumber, Timestamp};

const NONE: u32 = u32::MAX;
/// Entries beyond `max_samples` for samples that wait for earlier ones.
const PENDING_ROOM: usize = 1024;
/// Instances looked at for one that can be forgotten, when there are as many as there may be.
const SWEEP_STEPS: usize = 64;

/// A change as it comes off the wire, its payload already in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) writer: Guid,
    pub(crate) sn: SequenceNumber,
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: KeyHash,
    pub(crate) source_timestamp: Timestamp,
    pub(crate) payload: PayloadRef,
    /// The writer's OWNERSHIP_STRENGTH.
    pub(crate) strength: i32,
}

/// What became of a change that a history took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// It is data of this instance.
    Data(InstanceHandle),
    /// It is news of an instance, or none that matters.
    News,
    /// A stronger writer owns the instance.
    Outranked,
}

/// An entry of the table, delivered or pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored(pub(crate) u32);

#[derive(Debug)]
struct Entry {
    incoming: Incoming,
    reception_timestamp: Timestamp,
    /// Order of arrival, from 1; zero while pending or free.
    arrival: u64,
    instance: u32,
    read: bool,
    disposed_generation: u32,
    no_writers_generation: u32,
    /// Neighbours in order of arrival; `next` also links free entries.
    previous: u32,
    next: u32,
    next_in_instance: u32,
}

#[derive(Debug)]
struct Instance {
    handle: InstanceHandle,
    /// The serialised key, if the type has one and it could be read.
    key: Box<[u8]>,
    state: InstanceState,
    view: ViewState,
    /// The pass that saw it first since it was born: to that it stays new (DDS 1.4 §2.2.2.5.1.4).
    new_in_pass: u64,
    disposed_generation: u32,
    no_writers_generation: u32,
    writers: Vec<Guid>,
    /// With OWNERSHIP EXCLUSIVE the writer whose changes count, and its strength.
    owner: Option<(Guid, i32)>,
    oldest: u32,
    newest: u32,
    /// Samples in the list; `data_count` of them carry data.
    count: usize,
    data_count: usize,
    /// The entry without data, if there is one: an instance keeps only its latest news.
    news: u32,
}

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
    /// OWNERSHIP EXCLUSIVE.
    pub(crate) exclusive: bool,
    pub(crate) pool: PayloadPool,
    entries: Vec<Entry>,
    free: u32,
    instances: Vec<Instance>,
    free_instances: Vec<u32>,
    by_handle: BTreeMap<InstanceHandle, u32>,
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
    /// Taken by the last read, its payload still borrowed by the caller.
    taken: u32,
}

impl ReaderCache {
    pub(crate) fn new(limits: CacheLimits, memory_bytes: usize) -> Self {
        Self {
            limits,
            exclusive: false,
            pool: PayloadPool::new(memory_bytes),
            entries: Vec::with_capacity(limits.max_samples + PENDING_ROOM),
            free: NONE,
            instances: Vec::new(),
            free_instances: Vec::new(),
            by_handle: BTreeMap::new(),
            sweep: 0,
            oldest: NONE,
            newest: NONE,
            data_count: 0,
            arrivals: 0,
            releases: 0,
            passes: 0,
            taken: NONE,
        }
    }

    /// Samples and instances, those included that are gone and whose places are free.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.instances.len()
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

    /// Shows a pending change to the application, applying `HISTORY` and `RESOURCE_LIMITS`. On `Err` the
    /// change is still pending.
    pub(crate) fn deliver(
        &mut self,
        stored: Stored,
        now: Timestamp,
        key: Option<&mut Box<dyn KeyExtractor>>,
    ) -> Result<Delivered, SampleRejectedReason> {
        let incoming = self.entries[stored.0 as usize].incoming;
        let handle = InstanceHandle(incoming.key_hash);
        let instance = match self.by_handle.get(&handle) {
            Some(&instance) => instance,
            None if incoming.kind != ChangeKind::Alive && incoming.payload == PayloadRef::EMPTY => {
                // News of an instance that nobody here has ever seen.
                self.discard(stored);
                return Ok(Delivered::News);
            }
            None => self.create_instance(handle, &incoming, key)?,
        };
        if self.exclusive && !self.instances[instance as usize].is_owned_by(&incoming) {
            self.discard(stored);
            self.forget_if_gone(instance);
            return Ok(Delivered::Outranked);
        }
        let is_data = incoming.kind == ChangeKind::Alive;
        // What is no news must not displace the news that there is, so this comes before room is made.
        if !is_data && !self.update_instance(instance, &incoming) {
            self.discard(stored);
            self.forget_if_gone(instance);
            return Ok(Delivered::News);
        }
        if let Err(reason) = self.make_room(instance, incoming.kind) {
            self.forget_if_gone(instance);
            return Err(reason);
        }
        if is_data {
            self.update_instance(instance, &incoming);
        }
        self.append(stored.0, instance, now);
        Ok(if is_data { Delivered::Data(handle) } else { Delivered::News })
    }

    fn create_instance(
        &mut self,
        handle: InstanceHandle,
        incoming: &Incoming,
        key: Option<&mut Box<dyn KeyExtractor>>,
    ) -> Result<u32, SampleRejectedReason> {
        if self.by_handle.len() >= self.limits.max_instances && !self.forget_a_disposed_instance() {
            return Err(SampleRejectedReason::InstancesLimit);
        }
        let mut bytes = Vec::new();
        if let Some(key) = key {
            let key_only = incoming.kind != ChangeKind::Alive;
            if !key.serialize_key(self.pool.bytes(incoming.payload), key_only, &mut bytes) {
                bytes.clear();
            }
        }
        let instance = Instance {
            handle,
            key: bytes.into_boxed_slice(),
            state: InstanceState::Alive,
            view: ViewState::New,
            new_in_pass: 0,
            disposed_generation: 0,
            no_writers_generation: 0,
            writers: Vec::new(),
            owner: None,
            oldest: NONE,
            newest: NONE,
            count: 0,
            data_count: 0,
            news: NONE,
        };
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
        Ok(index)
    }

    /// Makes room for a new instance at the cost of one that has no samples and is not alive, though its writers
    /// may come back to it.
    fn forget_a_disposed_instance(&mut self) -> bool {
        for _ in 0..SWEEP_STEPS.min(self.instances.len()) {
            self.sweep = (self.sweep + 1) % self.instances.len();
            let instance = &self.instances[self.sweep];
            let known = self.by_handle.get(&instance.handle) == Some(&(self.sweep as u32));
            if known && instance.count == 0 && instance.state != InstanceState::Alive {
                self.forget(self.sweep as u32);
                return true;
            }
        }
        false
    }

    /// Forgets an instance that has no samples, whatever its state: news of it will make it anew.
    pub(crate) fn abandon(&mut self, instance: InstanceHandle) {
        if let Some(&index) = self.by_handle.get(&instance)
            && self.instances[index as usize].count == 0
        {
            self.forget(index);
        }
    }

    /// Drops the oldest sample whose instance is not alive; false if there is none. Visits the samples in order of arrival.
    pub(crate) fn evict_oldest_of_the_gone(&mut self) -> bool {
        let mut at = self.oldest;
        while at != NONE {
            let entry = &self.entries[at as usize];
            let instance = entry.instance;
            if self.instances[instance as usize].state != InstanceState::Alive {
                self.unlink(at);
                self.discard(Stored(at));
                self.forget_if_gone(instance);
                return true;
            }
            at = entry.next;
        }
        false
    }

    /// To be called when an instance has lost a sample or a writer.
    fn forget_if_gone(&mut self, index: u32) {
        let instance = &self.instances[index as usize];
        let is_gone = instance.count == 0 && instance.writers.is_empty();
        if is_gone && self.by_handle.get(&instance.handle) == Some(&index) {
            self.forget(index);
        }
    }

    fn forget(&mut self, index: u32) {
        let instance = &mut self.instances[index as usize];
        instance.key = Box::default();
        instance.writers = Vec::new();
        self.by_handle.remove(&instance.handle);
        self.free_instances.push(index);
        self.releases += 1;
    }

    /// Evicts the oldest sample of a full `KEEP_LAST` instance, or the instance's older news, or says which
    /// limit is reached. News does not push data out.
    fn make_room(&mut self, instance: u32, kind: ChangeKind) -> Result<(), SampleRejectedReason> {
        let state = &self.instances[instance as usize];
        let evicted = match (kind, self.limits.depth) {
            (ChangeKind::Alive, Some(depth))
                if state.data_count >= depth + usize::from(is_on(Mutation::KeepOneMore)) =>
            {
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
        let limit = self.limits.max_samples + if is_on(Mutation::IgnoreMaxSamples) { PENDING_ROOM / 2 } else { 0 };
        if kind == ChangeKind::Alive && self.data_count >= limit {
            return Err(SampleRejectedReason::SamplesLimit);
        }
        Ok(())
    }

    /// Moves the instance's state machine; false if the change is news that changes nothing.
    fn update_instance(&mut self, index: u32, incoming: &Incoming) -> bool {
        let instance = &mut self.instances[index as usize];
        let registered = instance.writers.iter().position(|writer| *writer == incoming.writer);
        match incoming.kind {
            ChangeKind::Alive => {
                if registered.is_none() {
                    instance.writers.push(incoming.writer);
                }
                match instance.state {
                    InstanceState::Alive => {}
                    InstanceState::NotAliveDisposed => {
                        instance.disposed_generation += 1;
                        instance.view = ViewState::New;
                    }
                    InstanceState::NotAliveNoWriters => {
                        instance.no_writers_generation += 1;
                        instance.view = ViewState::New;
                    }
                }
                instance.state = InstanceState::Alive;
                true
            }
            ChangeKind::Disposed if is_on(Mutation::IgnoreDisposal) => false,
            ChangeKind::Unregistered if is_on(Mutation::IgnoreUnregistration) => false,
            ChangeKind::Disposed => {
                if registered.is_none() {
                    instance.writers.push(incoming.writer);
                }
                core::mem::replace(&mut instance.state, InstanceState::NotAliveDisposed)
                    != InstanceState::NotAliveDisposed
            }
            ChangeKind::Unregistered => {
                if let Some(at) = registered {
                    instance.writers.swap_remove(at);
                }
                instance.lose_writers()
            }
            ChangeKind::DisposedUnregistered => {
                if let Some(at) = registered {
                    instance.writers.swap_remove(at);
                }
                core::mem::replace(&mut instance.state, InstanceState::NotAliveDisposed)
                    != InstanceState::NotAliveDisposed
            }
        }
    }

    fn append(&mut self, index: u32, instance: u32, now: Timestamp) {
        self.arrivals += 1;
        let state = &mut self.instances[instance as usize];
        let entry = &mut self.entries[index as usize];
        entry.reception_timestamp = now;
        entry.arrival = self.arrivals;
        entry.instance = instance;
        entry.read = false;
        entry.disposed_generation = state.disposed_generation;
        entry.no_writers_generation = state.no_writers_generation;
        entry.previous = self.newest;
        entry.next = NONE;
        entry.next_in_instance = NONE;
        let newest_of_instance = core::mem::replace(&mut state.newest, index);
        state.count += 1;
        if entry.incoming.kind == ChangeKind::Alive {
            self.data_count += 1;
            state.data_count += 1;
        } else {
            state.news = index;
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

    /// Takes a delivered entry out of both lists.
    fn unlink(&mut self, index: u32) {
        let (previous, next, next_in_instance, instance) = {
            let entry = &self.entries[index as usize];
            (entry.previous, entry.next, entry.next_in_instance, entry.instance)
        };
        match previous {
            NONE => self.oldest = next,
            _ => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => self.newest = previous,
            _ => self.entries[next as usize].previous = previous,
        }
        let mut before = NONE;
        let mut at = self.instances[instance as usize].oldest;
        while at != index {
            before = at;
            at = self.entries[at as usize].next_in_instance;
        }
        let state = &mut self.instances[instance as usize];
        state.count -= 1;
        if state.news == index {
            state.news = NONE;
        } else {
            self.data_count -= 1;
            state.data_count -= 1;
        }
        if before == NONE {
            state.oldest = next_in_instance;
        }
        if state.newest == index {
            state.newest = before;
        }
        if before != NONE {
            self.entries[before as usize].next_in_instance = next_in_instance;
        }
        self.entries[index as usize].arrival = 0;
    }

    /// Writers have gone: instances that only they wrote have no writers any more. Says whether there is news. Looks at
    /// each instance once.
    pub(crate) fn remove_writers(&mut self, is_gone: impl Fn(&Guid) -> bool, now: Timestamp) -> bool {
        let mut news = false;
        if is_on(Mutation::ForgetGoneWriters) {
            return news;
        }
        for index in 0..self.instances.len() {
            let instance = &mut self.instances[index];
            instance.disown(&is_gone);
            let Some(writer) = instance.writers.iter().copied().find(&is_gone) else { continue };
            instance.writers.retain(|known| !is_gone(known));
            if !instance.lose_writers() {
                self.forget_if_gone(index as u32);
                continue;
            }
            let incoming = Incoming {
                writer,
                sn: SequenceNumber(0),
                kind: ChangeKind::Unregistered,
                key_hash: instance.handle.0,
                source_timestamp: Timestamp::INVALID,
                payload: PayloadRef::EMPTY,
                strength: 0,
            };
            news = true;
            if let Some(stored) = self.store(incoming) {
                match self.make_room(index as u32, incoming.kind) {
                    Ok(()) => self.append(stored.0, index as u32, now),
                    Err(_) => self.discard(stored),
                }
            }
            self.forget_if_gone(index as u32);
        }
        news
    }

    /// The next sample that the selector wants, after the cursor. The payload is borrowed until the next call.
    /// Visits the samples in order of arrival; samples passed over cost a step each.
    pub(crate) fn next(&mut self, selector: Selector, cursor: &mut ReadCursor) -> Option<SampleRef<'_>> {
        self.release_taken();
        if cursor.pass == 0 {
            self.passes += 1;
            cursor.pass = self.passes;
        }
        let (at, info) = self.find(&selector, self.first_after(*cursor), cursor.pass)?;
        let entry = &mut self.entries[at as usize];
        *cursor = ReadCursor { after: entry.arrival, entry: at, ..*cursor };
        entry.read = true;
        let (payload, instance) = (entry.incoming.payload, entry.instance);
        let state = &mut self.instances[instance as usize];
        if core::mem::replace(&mut state.view, ViewState::NotNew) == ViewState::New {
            state.new_in_pass = cursor.pass;
        }
        if selector.take {
            self.unlink(at);
            self.taken = at;
        }
        let bytes = match payload {
            PayloadRef::EMPTY => &self.instances[instance as usize].key,
            _ => self.pool.bytes(payload),
        };
        Some(SampleRef { info, payload: bytes })
    }

    /// Whether there is a sample that the selector wants; changes nothing.
    pub(crate) fn has(&self, selector: &Selector) -> bool {
        self.find(selector, self.oldest, 0).is_some()
    }

    /// The first sample from `at` on that the selector wants, as a pass sees it; zero is none that has begun.
    fn find(&self, selector: &Selector, mut at: u32, pass: u64) -> Option<(u32, SampleInfo)> {
        while at != NONE {
            let info = self.info(at, pass);
            if selector.wants(&info) {
                return Some((at, info));
            }
            at = self.entries[at as usize].next;
        }
        None
    }

    /// Frees the sample that the last `next` took.
    pub(crate) fn release_taken(&mut self) {
        let taken = core::mem::replace(&mut self.taken, NONE);
        if taken != NONE {
            self.discard(Stored(taken));
            self.forget_if_gone(self.entries[taken as usize].instance);
        }
    }

    fn first_after(&self, cursor: ReadCursor) -> u32 {
        match self.entries.get(cursor.entry as usize) {
            Some(entry) if cursor.after != 0 && entry.arrival == cursor.after => return entry.next,
            _ => {}
        }
        let mut at = self.oldest;
        while at != NONE && self.entries[at as usize].arrival <= cursor.after {
            at = self.entries[at as usize].next;
        }
        at
    }

    fn info(&self, index: u32, pass: u64) -> SampleInfo {
        let entry = &self.entries[index as usize];
        let instance = &self.instances[entry.instance as usize];
        SampleInfo {
            sample_state: if entry.read { SampleState::Read } else { SampleState::NotRead },
            view_state: if pass != 0 && instance.new_in_pass == pass { ViewState::New } else { instance.view },
            instance_state: instance.state,
            instance_handle: instance.handle,
            publication: entry.incoming.writer,
            sequence_number: entry.incoming.sn,
            source_timestamp: entry.incoming.source_timestamp,
            reception_timestamp: entry.reception_timestamp,
            disposed_generation_count: entry.disposed_generation,
            no_writers_generation_count: entry.no_writers_generation,
            valid_data: entry.incoming.kind == ChangeKind::Alive,
        }
    }

    /// Whether there is such an instance, and it is alive.
    pub(crate) fn is_alive(&self, handle: InstanceHandle) -> bool {
        let instance = self.by_handle.get(&handle).map(|index| &self.instances[*index as usize]);
        instance.is_some_and(|instance| instance.state == InstanceState::Alive)
    }

    /// The owner of an instance missed its deadline: whoever writes next owns it (DDS 1.4 §2.2.3.9.2).
    pub(crate) fn release_ownership(&mut self, handle: InstanceHandle) {
        if let Some(&index) = self.by_handle.get(&handle) {
            self.instances[index as usize].owner = None;
        }
    }

    /// The serialised key of an instance, empty if unknown.
    pub(crate) fn key_of(&self, handle: InstanceHandle) -> Option<&[u8]> {
        let index = *self.by_handle.get(&handle)?;
        Some(&self.instances[index as usize].key)
    }
}

impl Instance {
    /// OWNERSHIP EXCLUSIVE (DDS 1.4 §2.2.3.9.2): whether the change is the owner's, or of a writer that becomes the owner: one
    /// that is stronger, or as strong with the lower GUID, which all readers agree on. Others are remembered as writers.
    fn is_owned_by(&mut self, incoming: &Incoming) -> bool {
        let unregisters = matches!(incoming.kind, ChangeKind::Unregistered | ChangeKind::DisposedUnregistered);
        let outranks = |(owner, strength): (Guid, i32)| {
            owner == incoming.writer
                || incoming.strength > strength
                || (incoming.strength == strength && incoming.writer < owner)
        };
        if is_on(Mutation::IgnoreOwnership) || self.owner.is_none_or(outranks) {
            self.owner = (!unregisters).then_some((incoming.writer, incoming.strength));
            return true;
        }
        let registered = self.writers.iter().position(|writer| *writer == incoming.writer);
        match registered {
            Some(at) if unregisters => _ = self.writers.swap_remove(at),
            None if !unregisters => self.writers.push(incoming.writer),
            _ => {}
        }
        false
    }

    fn disown(&mut self, is_gone: impl Fn(&Guid) -> bool) {
        if self.owner.is_some_and(|(owner, _)| is_gone(&owner)) {
            self.owner = None;
        }
    }

    /// To be called when a writer left; true if that was the last one of a living instance.
    fn lose_writers(&mut self) -> bool {
        if self.writers.is_empty() && self.state == InstanceState::Alive {
            self.state = InstanceState::NotAliveNoWriters;
            return true;
        }
        false
    }
}
