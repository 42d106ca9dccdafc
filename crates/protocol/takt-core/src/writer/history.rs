//! History of a writer (RTPS 2.5 §8.2.2): changes in order of sequence number, until they are no
//! longer needed.
//!
//! Changes are stored in a table of fixed size. `order` lists them by sequence number. `KEEP_LAST`
//! removals from the middle leave tombstones that are swept when the list is full. Finding a change
//! is therefore a binary search, and removing one is O(1) on average.

use super::filters::Verdicts;
use crate::cache::{ChangeKind, InstanceHandle, KeyHash, PayloadPool, PayloadRef, PoolSize};
use crate::lifespan::Expiry;
use crate::presentation::SetPosition;
use crate::schedule::Schedule;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, Timestamp};

/// Maximum number of readers that one directed write can name.
pub(crate) const MAX_DIRECTED: usize = 4;
const NONE: u32 = u32::MAX;

/// Readers that a change is directed to; empty means all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Directed {
    guids: [Guid; MAX_DIRECTED],
    len: u8,
}

impl Directed {
    /// Creates the list. The caller checks that there are at most [`MAX_DIRECTED`] readers.
    pub(crate) fn new(readers: &[Guid]) -> Self {
        let mut directed = Self { guids: [Guid::default(); MAX_DIRECTED], len: readers.len() as u8 };
        directed.guids[..readers.len()].copy_from_slice(readers);
        directed
    }

    pub(crate) fn readers(&self) -> &[Guid] {
        &self.guids[..self.len as usize]
    }

    pub(crate) fn allows(&self, reader: Guid) -> bool {
        self.len == 0 || self.readers().contains(&reader)
    }
}

/// Change in the history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) sn: SequenceNumber,
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: KeyHash,
    pub(crate) source_timestamp: Timestamp,
    pub(crate) payload: PayloadRef,
    pub(crate) directed: Directed,
    /// Position of the change among those of its writer and its publisher.
    pub(crate) position: SetPosition,
    /// Fragment size for the readers that were matched when the change was written; see
    /// [`super::route`].
    pub(crate) fragment_size: u16,
    /// Octets of the change in the send window: its payload, or the reference if all readers get it
    /// by loan.
    pub(crate) flight_len: u32,
    pub(crate) expiry: Expiry,
    /// Filters that reject the change; see [`super::filters`].
    pub(crate) rejected: Verdicts,
    /// The change ends a coherent set of which no sample is left.
    ends_empty_set: bool,
    /// The change is removed as soon as it is acknowledged.
    pub(crate) is_discarded: bool,
    instance: u32,
    previous_in_instance: u32,
    next_in_instance: u32,
}

impl Change {
    /// Reports whether its instance has a newer sample.
    fn is_superseded(&self) -> bool {
        self.next_in_instance != NONE && !self.position.ends
    }
}

/// List of changes in ascending order, by slot: those of an instance, or ends of coherent sets.
#[derive(Clone, Copy, Debug)]
struct Chain {
    oldest: u32,
    newest: u32,
    count: usize,
}

impl Chain {
    const EMPTY: Self = Self { oldest: NONE, newest: NONE, count: 0 };
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryLimits {
    /// `KEEP_LAST` depth; `None` is `KEEP_ALL`.
    pub(crate) depth: Option<usize>,
    pub(crate) max_samples: usize,
    /// Whether `max_samples` is the participant's default. `KEEP_LAST` complies with it by
    /// replacing samples earlier.
    pub(crate) is_default_max_samples: bool,
    pub(crate) max_instances: usize,
    pub(crate) max_samples_per_instance: usize,
}

/// Reason why there is no room for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// `RESOURCE_LIMITS.max_samples` is reached.
    Samples,
    /// `RESOURCE_LIMITS.max_samples_per_instance` is reached.
    SamplesOfInstance,
    /// `RESOURCE_LIMITS.max_instances` is reached.
    Instances,
    /// The memory is in use by samples that cannot be replaced.
    Memory,
    /// The payload is larger than the writer's memory.
    TooLarge,
}

/// Reserved room for the next change of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Memory of the requested length.
    pub(crate) payload: PayloadRef,
    /// Change that the next one replaces.
    pub(crate) replaced: Option<SequenceNumber>,
}

#[derive(Debug)]
pub(crate) struct WriterHistory {
    limits: HistoryLimits,
    pub(crate) pool: PayloadPool,
    changes: Vec<Change>,
    free: Vec<u32>,
    order: VecDeque<(SequenceNumber, u32)>,
    live: usize,
    /// Number of ends of coherent sets. They are no samples and do not count towards
    /// `RESOURCE_LIMITS` (RTPS 2.5 §8.7.6).
    ends: usize,
    /// Ends whose samples are gone, kept for lagging readers.
    empty_set_ends: Chain,
    /// Maximum number of entries of `order`, tombstones included.
    order_len_max: usize,
    /// Last change that every reader keeping pace has acknowledged.
    pub(crate) acknowledged_upto: SequenceNumber,
    last_sn: SequenceNumber,
    /// Original writers of the changes, by slot; empty unless the writer is a relay.
    origins: Vec<SampleIdentity>,
    instances: Vec<Chain>,
    free_instances: Vec<u32>,
    by_handle: BTreeMap<InstanceHandle, u32>,
    /// Number of changes that are removed as soon as they are acknowledged.
    discarded: usize,
    /// Expiring changes, by slot.
    expiries: Schedule<Expiry>,
    /// Number of entries visited to make room since the last query.
    visited: Cell<usize>,
}

impl WriterHistory {
    pub(crate) fn new(limits: HistoryLimits, memory: impl Into<PoolSize>) -> Self {
        Self {
            limits,
            pool: PayloadPool::new(memory.into()),
            changes: Vec::with_capacity(limits.max_samples),
            free: Vec::with_capacity(limits.max_samples),
            order: VecDeque::with_capacity(2 * limits.max_samples + 1),
            live: 0,
            ends: 0,
            empty_set_ends: Chain::EMPTY,
            order_len_max: 2 * limits.max_samples,
            acknowledged_upto: SequenceNumber(0),
            last_sn: SequenceNumber(0),
            origins: Vec::new(),
            instances: Vec::new(),
            free_instances: Vec::new(),
            by_handle: BTreeMap::new(),
            discarded: 0,
            expiries: Schedule::new(),
            visited: Cell::new(0),
        }
    }

    /// Reserves room for the ends of coherent sets: one for each sample, and one more.
    pub(crate) fn reserve_ends(&mut self) {
        let entries = 2 * self.limits.max_samples + 1;
        self.order_len_max = 2 * entries;
        self.changes.reserve_exact(entries);
        self.free.reserve_exact(entries);
        self.order.reserve_exact(self.order_len_max + 1);
    }

    /// Reserves room for the original writers of changes.
    pub(crate) fn keep_origins(&mut self) {
        let unknown = SampleIdentity { writer: Guid::UNKNOWN, sn: SequenceNumber::UNKNOWN };
        self.origins = vec![unknown; self.limits.max_samples];
    }

    /// Sets the original writer of a change. Has no effect without [`Self::keep_origins`].
    pub(crate) fn set_origin(&mut self, sn: SequenceNumber, origin: SampleIdentity) {
        if let Ok(position) = self.find(sn)
            && let Some(entry) = self.origins.get_mut(self.order[position].1 as usize)
        {
            *entry = origin;
        }
    }

    /// Returns the original writer of a change, if that is kept and it was another writer.
    pub(crate) fn origin_of(&self, change: &Change) -> Option<SampleIdentity> {
        let position = self.find(change.sn).ok()?;
        self.origins.get(self.order[position].1 as usize).copied().filter(|origin| origin.writer != Guid::UNKNOWN)
    }

    /// Returns the last assigned sequence number; 0 before the first change.
    pub(crate) fn last_sn(&self) -> SequenceNumber {
        self.last_sn
    }

    /// Returns the oldest existing change, or the next one to be written.
    pub(crate) fn first_sn(&self) -> SequenceNumber {
        self.order.iter().find(|(_, slot)| *slot != NONE).map_or(SequenceNumber(self.last_sn.0 + 1), |(sn, _)| *sn)
    }

    /// Returns the number of samples, removed ones that left a tombstone included.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the most samples that the history may hold.
    pub(crate) fn samples_max(&self) -> usize {
        self.limits.max_samples
    }

    /// Reports whether a change of a disposed and unregistered instance waits for acknowledgment,
    /// which removes the instance.
    pub(crate) fn awaits_end_of_instance(&self) -> bool {
        let start = self.find(self.acknowledged_upto.next()).unwrap_or_else(|position| position);
        let changes = self.order.range(start..).filter_map(|(_, slot)| self.changes.get(*slot as usize));
        changes.into_iter().any(|change| change.kind == ChangeKind::DisposedUnregistered)
    }

    /// Reports whether the history holds half of its sample limit.
    pub(crate) fn is_half_full(&self) -> bool {
        self.live * 2 >= self.limits.max_samples
    }

    /// Makes the sequence numbers begin above this one.
    pub(crate) fn begin_after(&mut self, sn: SequenceNumber) {
        self.last_sn = sn;
    }

    /// Assigns a sequence number without storing a change, because there is no reader.
    pub(crate) fn skip(&mut self) -> SequenceNumber {
        self.last_sn = SequenceNumber(self.last_sn.0 + 1);
        self.last_sn
    }

    /// Reserves memory for the payload of the next change. The replaced change is removed when the
    /// new one is appended, so nothing is lost if it is not. Only changes that have to release
    /// their memory are removed at once. On failure no instance has lost its newest sample.
    pub(crate) fn make_room(
        &mut self,
        key_hash: KeyHash,
        payload_len: usize,
        evicted: &mut impl FnMut(&Change),
    ) -> Result<Room, Full> {
        if !self.pool.has_room_ever(payload_len) {
            return Err(Full::TooLarge);
        }
        let known = self.by_handle.get(&InstanceHandle(key_hash)).map(|&index| self.instances[index as usize]);
        if known.is_none() && self.by_handle.len() >= self.limits.max_instances {
            return Err(Full::Instances);
        }
        let own = known.unwrap_or(Chain::EMPTY);
        let replaced = match self.limits.depth {
            Some(depth) if own.count >= depth => self.sn_of(own.oldest),
            None if own.count >= self.limits.max_samples_per_instance => return Err(Full::SamplesOfInstance),
            _ if self.live < self.limits.max_samples => None,
            _ => Some(self.replaceable(&own).ok_or(Full::Samples)?),
        };
        let payload = match self.pool.allocate(payload_len) {
            Some(payload) => payload,
            None => self.allocate_by_evicting(own, payload_len, evicted).ok_or(Full::Memory)?,
        };
        Ok(Room { payload, replaced })
    }

    /// Returns how many entries and free memory blocks were visited to make room since the last
    /// call.
    pub(crate) fn take_visited(&mut self) -> usize {
        self.visited.take() + self.pool.take_steps()
    }

    fn sn_of(&self, slot: u32) -> Option<SequenceNumber> {
        self.changes.get(slot as usize).map(|change| change.sn)
    }

    /// Returns the sample that `KEEP_LAST` replaces before its depth requires it, because the
    /// participant's limit is reached: the oldest of the same instance, else the oldest that is not
    /// the newest of its instance.
    fn replaceable(&self, own: &Chain) -> Option<SequenceNumber> {
        if self.limits.depth.is_none() || !self.limits.is_default_max_samples {
            return None;
        }
        self.sn_of(own.oldest).or_else(|| self.superseded())
    }

    /// Returns the oldest sample that `KEEP_LAST` will replace, because its instance has a newer
    /// one.
    fn superseded(&self) -> Option<SequenceNumber> {
        let slots = self.order.iter().inspect(|_| self.visited.set(self.visited.get() + 1));
        let mut changes = slots.filter_map(|(_, slot)| self.changes.get(*slot as usize));
        changes.find(|change| change.is_superseded()).map(|change| change.sn)
    }

    /// Frees memory for a payload under `KEEP_LAST` when there is none. Superseded samples are
    /// removed, first those of the same instance, always the oldest. Finally the newest of the same
    /// instance is removed, if that suffices.
    fn allocate_by_evicting(
        &mut self,
        own: Chain,
        payload_len: usize,
        evicted: &mut impl FnMut(&Change),
    ) -> Option<PayloadRef> {
        self.limits.depth?;
        let newest = self.sn_of(own.newest);
        if !self.may_free(newest, payload_len) {
            return None;
        }
        let mut slot = own.oldest;
        while slot != NONE && slot != own.newest {
            self.visited.set(self.visited.get() + 1);
            let Change { sn, next_in_instance, .. } = self.changes[slot as usize];
            slot = next_in_instance;
            if let Some(payload) = self.allocate_without(sn, payload_len, evicted) {
                return Some(payload);
            }
        }
        if self.is_enough(newest, payload_len) {
            return self.allocate_without(newest?, payload_len, evicted);
        }
        let mut next = SequenceNumber::FIRST;
        while let Some(change) = self.at_or_after(next) {
            let (sn, is_superseded) = (change.sn, change.is_superseded());
            self.visited.set(self.visited.get() + 1);
            next = sn.next();
            if is_superseded && let Some(payload) = self.allocate_without(sn, payload_len, evicted) {
                return Some(payload);
            }
        }
        let newest = newest.filter(|newest| self.is_enough(Some(*newest), payload_len))?;
        self.allocate_without(newest, payload_len, evicted)
    }

    /// Reports whether the removable samples have enough memory in total, contiguous or not.
    fn may_free(&self, newest: Option<SequenceNumber>, payload_len: usize) -> bool {
        self.visited.set(self.visited.get() + self.order.len());
        let changes = self.order.iter().filter_map(|(_, slot)| self.changes.get(*slot as usize));
        let removable = changes.filter(|change| change.is_superseded() || Some(change.sn) == newest);
        let bytes: usize = removable.map(|change| self.pool.bytes_of(change.payload)).sum();
        self.pool.free_bytes() + bytes >= payload_len
    }

    fn is_enough(&self, sn: Option<SequenceNumber>, payload_len: usize) -> bool {
        sn.and_then(|sn| self.get(sn)).is_some_and(|change| self.pool.is_enough(change.payload, payload_len))
    }

    fn allocate_without(
        &mut self,
        sn: SequenceNumber,
        payload_len: usize,
        evicted: &mut impl FnMut(&Change),
    ) -> Option<PayloadRef> {
        self.evict(sn, evicted);
        self.pool.allocate(payload_len)
    }

    fn evict(&mut self, sn: SequenceNumber, evicted: &mut impl FnMut(&Change)) {
        if let Some(change) = self.get(sn) {
            evicted(change);
            self.remove(sn);
        }
    }

    /// Returns the change that the next one of its instance replaces.
    pub(crate) fn next_evicted(&self, key_hash: KeyHash) -> Option<SequenceNumber> {
        let depth = self.limits.depth?;
        let instance = &self.instances[*self.by_handle.get(&InstanceHandle(key_hash))? as usize];
        (instance.count >= depth).then(|| self.sn_of(instance.oldest)).flatten()
    }

    /// Appends a change whose payload came from [`Self::make_room`], and removes the one that it
    /// replaces.
    pub(crate) fn append(
        &mut self,
        change: &Change,
        replaced: Option<SequenceNumber>,
        evicted: &mut impl FnMut(&Change),
    ) -> SequenceNumber {
        if let Some(replaced) = replaced {
            self.evict(replaced, evicted);
        }
        self.last_sn = self.last_sn.next();
        let instance = self.instance(InstanceHandle(change.key_hash));
        let slot = self.put(change);
        if change.expiry != Expiry::NEVER {
            self.expiries.set(slot, change.expiry);
        }
        self.enlist(self.last_sn, slot);
        self.live += 1;
        let stored = &mut self.changes[slot as usize];
        (stored.sn, stored.instance) = (self.last_sn, instance);
        let mut chain = self.instances[instance as usize];
        self.link(&mut chain, slot);
        self.instances[instance as usize] = chain;
        self.last_sn
    }

    /// Appends a change to a chain.
    fn link(&mut self, chain: &mut Chain, slot: u32) {
        chain.count += 1;
        if chain.oldest == NONE {
            chain.oldest = slot;
        }
        let newest = core::mem::replace(&mut chain.newest, slot);
        if newest != NONE {
            self.changes[newest as usize].next_in_instance = slot;
        }
        let change = &mut self.changes[slot as usize];
        (change.previous_in_instance, change.next_in_instance) = (newest, NONE);
    }

    /// Removes a change from its chain.
    fn unlink(&mut self, chain: &mut Chain, slot: u32) {
        let Change { previous_in_instance: before, next_in_instance: after, .. } = self.changes[slot as usize];
        chain.count -= 1;
        match before {
            NONE => chain.oldest = after,
            _ => self.changes[before as usize].next_in_instance = after,
        }
        match after {
            NONE => chain.newest = before,
            _ => self.changes[after as usize].previous_in_instance = before,
        }
    }

    fn put(&mut self, change: &Change) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.changes[slot as usize] = *change;
                slot
            }
            None => {
                self.changes.push(*change);
                (self.changes.len() - 1) as u32
            }
        }
    }

    fn enlist(&mut self, sn: SequenceNumber, slot: u32) {
        if self.order.len() >= self.order_len_max {
            self.order.retain(|(_, slot)| *slot != NONE);
        }
        self.order.push_back((sn, slot));
    }

    /// Appends the end of a coherent set. If there is no room, the oldest end whose samples are
    /// gone is removed. Such an end exists, because there is room for more ends than samples. A
    /// lagging reader gets a `GAP` instead.
    pub(crate) fn append_end(&mut self, position: SetPosition, source_timestamp: Timestamp) -> SequenceNumber {
        if self.ends > self.limits.max_samples
            && let Some(bare) = self.sn_of(self.empty_set_ends.oldest)
        {
            self.remove(bare);
        }
        self.last_sn = self.last_sn.next();
        let (kind, payload, directed) = (ChangeKind::Alive, PayloadRef::EMPTY, Directed::default());
        let mut change = Self::change(kind, [0; 16], source_timestamp, payload, directed, u16::MAX, Expiry::NEVER);
        change.sn = self.last_sn;
        change.position = position;
        let slot = self.put(&change);
        self.enlist(change.sn, slot);
        self.ends += 1;
        if self.is_set_gone(change.sn) {
            self.link_empty_set_end(slot);
        }
        change.sn
    }

    /// Records an end of a set whose samples are gone.
    fn link_empty_set_end(&mut self, slot: u32) {
        self.changes[slot as usize].ends_empty_set = true;
        let mut ends = self.empty_set_ends;
        self.link(&mut ends, slot);
        self.empty_set_ends = ends;
    }

    /// Reports whether this is the end of a coherent set of which no sample is left.
    pub(crate) fn is_set_gone(&self, sn: SequenceNumber) -> bool {
        let Some(change) = self.get(sn).filter(|change| change.position.ends) else { return false };
        let set = change.position.set;
        !set.is_valid() || self.at_or_after(set).is_none_or(|first| first.sn == sn)
    }

    fn instance(&mut self, handle: InstanceHandle) -> u32 {
        if let Some(&index) = self.by_handle.get(&handle) {
            return index;
        }
        let instance = Chain::EMPTY;
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
        index
    }

    fn find(&self, sn: SequenceNumber) -> Result<usize, usize> {
        let (Some(&(first, _)), Some(&(last, _))) = (self.order.front(), self.order.back()) else { return Err(0) };
        if sn > last {
            return Err(self.order.len());
        }
        if sn == first {
            return Ok(0);
        }
        // Without tombstones the index follows from the number.
        if let Ok(guess) = usize::try_from(sn.0 - first.0)
            && self.order.get(guess).is_some_and(|(found, _)| *found == sn)
        {
            return Ok(guess);
        }
        self.order.binary_search_by_key(&sn, |(sn, _)| *sn)
    }

    /// Returns the changes from `sn` on, up to the first missing one.
    pub(crate) fn from(&self, sn: SequenceNumber) -> impl Iterator<Item = &Change> {
        let start = self.find(sn).unwrap_or(self.order.len());
        let numbers = self.order.range(start..).zip(sn.0..);
        numbers.map_while(|(&(sn, slot), next)| self.changes.get(slot as usize).filter(|_| sn.0 == next))
    }

    pub(crate) fn get(&self, sn: SequenceNumber) -> Option<&Change> {
        let (_, slot) = self.order[self.find(sn).ok()?];
        self.changes.get(slot as usize)
    }

    /// Returns the first change at or above `sn`.
    pub(crate) fn at_or_after(&self, sn: SequenceNumber) -> Option<&Change> {
        let start = self.find(sn).unwrap_or_else(|position| position);
        let (_, slot) = *self.order.get(start)?;
        // The entry is rarely a tombstone.
        let is_present = |slot: &u32| *slot != NONE;
        let slot = match Some(slot).filter(is_present) {
            None => self.order.range(start..).map(|(_, slot)| *slot).find(is_present)?,
            Some(slot) => slot,
        };
        self.changes.get(slot as usize)
    }

    pub(crate) fn set_fragment_size(&mut self, sn: SequenceNumber, size: u16) {
        if let Ok(position) = self.find(sn)
            && let Some(change) = self.changes.get_mut(self.order[position].1 as usize)
        {
            change.fragment_size = size;
        }
    }

    /// Removes a disposed and unregistered instance with all its changes up to `last`, because no
    /// reader needs it any more.
    pub(crate) fn remove_instance(&mut self, key_hash: KeyHash, last: SequenceNumber) {
        while let Some(&instance) = self.by_handle.get(&InstanceHandle(key_hash)) {
            let oldest = self.changes.get(self.instances[instance as usize].oldest as usize).map(|change| change.sn);
            match oldest.filter(|sn| *sn <= last) {
                Some(sn) => self.remove(sn),
                None => return,
            }
        }
    }

    /// Reports whether changes are to be removed once they are acknowledged.
    pub(crate) fn has_discarded(&self) -> bool {
        self.discarded > 0
    }

    /// Removes a change once it is acknowledged; at once if it is.
    pub(crate) fn discard(&mut self, sn: SequenceNumber) {
        let Ok(position) = self.find(sn) else { return };
        let Some(change) = self.changes.get_mut(self.order[position].1 as usize) else { return };
        self.discarded += usize::from(!core::mem::replace(&mut change.is_discarded, true));
        if sn <= self.acknowledged_upto {
            self.remove(sn);
        }
    }

    /// Removes an instance and all its changes, each once it is acknowledged. Returns their number.
    pub(crate) fn discard_instance(&mut self, key_hash: KeyHash) -> usize {
        let Some(&instance) = self.by_handle.get(&InstanceHandle(key_hash)) else { return 0 };
        let Chain { oldest: mut slot, count, .. } = self.instances[instance as usize];
        if count == 0 {
            self.free_instance(instance, key_hash);
        }
        while let Some(&Change { sn, next_in_instance, .. }) = self.changes.get(slot as usize) {
            slot = next_in_instance;
            self.discard(sn);
        }
        count
    }

    /// Removes a change and frees its memory. Removes its instance if no change is left and the
    /// change unregistered the instance or is discarded.
    pub(crate) fn remove(&mut self, sn: SequenceNumber) {
        let Ok(position) = self.find(sn) else { return };
        let slot = core::mem::replace(&mut self.order[position].1, NONE);
        if slot == NONE {
            return;
        }
        while self.order.front().is_some_and(|(_, slot)| *slot == NONE) {
            self.order.pop_front();
        }
        let Change { payload, position, expiry, ends_empty_set, is_discarded, .. } = self.changes[slot as usize];
        self.discarded -= usize::from(is_discarded);
        self.pool.release(payload);
        self.free.push(slot);
        if ends_empty_set {
            let mut ends = self.empty_set_ends;
            self.unlink(&mut ends, slot);
            self.empty_set_ends = ends;
        }
        if position.ends {
            self.ends -= 1;
            return;
        }
        self.live -= 1;
        if expiry != Expiry::NEVER {
            self.expiries.remove(slot);
        }
        self.unlink_from_instance(slot);
        if position.set.is_valid() {
            self.record_set_gone(position.set);
        }
    }

    /// Handles the removal of a sample of a set. If it was the last one, the end of the set is
    /// removed too, unless lagging readers have not received the end.
    fn record_set_gone(&mut self, set: SequenceNumber) {
        let Some(end) = self.at_or_after(set).map(|first| first.sn).filter(|end| self.is_set_gone(*end)) else {
            return;
        };
        if end <= self.acknowledged_upto {
            self.remove(end);
        } else if let Ok(position) = self.find(end) {
            self.link_empty_set_end(self.order[position].1);
        }
    }

    fn unlink_from_instance(&mut self, slot: u32) {
        let Change { kind, key_hash, instance, is_discarded, .. } = self.changes[slot as usize];
        let mut chain = self.instances[instance as usize];
        self.unlink(&mut chain, slot);
        self.instances[instance as usize] = chain;
        let unregisters = matches!(kind, ChangeKind::Unregistered | ChangeKind::DisposedUnregistered);
        if chain.count == 0 && (unregisters || is_discarded) {
            self.free_instance(instance, key_hash);
        }
    }

    fn free_instance(&mut self, instance: u32, key_hash: KeyHash) {
        self.by_handle.remove(&InstanceHandle(key_hash));
        self.free_instances.push(instance);
    }

    /// Reserves room for expiring changes.
    pub(crate) fn expect_expiries(&mut self) {
        self.expiries.reserve(self.limits.max_samples);
    }

    /// Returns the change that expires next, and its expiry.
    pub(crate) fn next_expiry(&self) -> Option<(Expiry, &Change)> {
        let (expiry, slot) = self.expiries.first()?;
        Some((expiry, self.changes.get(slot as usize)?))
    }

    /// Creates a change without a sequence number.
    pub(crate) fn change(
        kind: ChangeKind,
        key_hash: KeyHash,
        source_timestamp: Timestamp,
        payload: PayloadRef,
        directed: Directed,
        fragment_size: u16,
        expiry: Expiry,
    ) -> Change {
        Change {
            sn: SequenceNumber(0),
            kind,
            key_hash,
            source_timestamp,
            payload,
            directed,
            position: SetPosition::default(),
            fragment_size,
            flight_len: payload.len() as u32,
            expiry,
            rejected: 0,
            ends_empty_set: false,
            is_discarded: false,
            instance: NONE,
            previous_in_instance: NONE,
            next_in_instance: NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(depth: Option<usize>, max_samples: usize, is_default_max_samples: bool) -> HistoryLimits {
        let max_samples_per_instance = usize::MAX;
        HistoryLimits { depth, max_samples, is_default_max_samples, max_instances: 4, max_samples_per_instance }
    }

    fn history(depth: Option<usize>, max_samples: usize) -> WriterHistory {
        WriterHistory::new(limits(depth, max_samples, false), 1 << 16)
    }

    fn put(history: &mut WriterHistory, key: u8) -> Result<SequenceNumber, Full> {
        put_long(history, key, 10)
    }

    fn put_long(history: &mut WriterHistory, key: u8, len: usize) -> Result<SequenceNumber, Full> {
        let Room { payload, replaced } = history.make_room([key; 16], len, &mut |_| {})?;
        let change = WriterHistory::change(
            ChangeKind::Alive,
            [key; 16],
            Timestamp::ZERO,
            payload,
            Directed::default(),
            0,
            Expiry::NEVER,
        );
        Ok(history.append(&change, replaced, &mut |_| {}))
    }

    #[test]
    fn keep_all_refuses_changes_when_full_until_one_is_removed() {
        let mut history = history(None, 3);
        for sn in 1..=3 {
            assert_eq!(put(&mut history, 0), Ok(SequenceNumber(sn)));
        }
        assert_eq!(put(&mut history, 0), Err(Full::Samples));
        history.remove(SequenceNumber(1));
        assert_eq!(put(&mut history, 0), Ok(SequenceNumber(4)));
        assert_eq!(history.first_sn(), SequenceNumber(2));
        assert!(history.get(SequenceNumber(1)).is_none());
    }

    #[test]
    fn keep_last_keeps_the_newest_of_each_instance_when_others_are_replaced() {
        let mut history = history(Some(1), 4);
        put(&mut history, 9).expect("there is room");
        for _ in 0..1000 {
            put(&mut history, 1).expect("the old sample makes room");
        }
        assert_eq!(history.live, 2);
        assert_eq!(history.first_sn(), SequenceNumber(1));
        assert_eq!(history.at_or_after(SequenceNumber(2)).map(|c| c.sn), Some(SequenceNumber(1001)));
        assert!(history.get(SequenceNumber(1000)).is_none());
        put(&mut history, 2).expect("third instance");
        put(&mut history, 3).expect("fourth instance");
        assert_eq!(put(&mut history, 4), Err(Full::Instances));
    }

    #[test]
    fn payload_larger_than_the_memory_is_too_large() {
        let mut history = history(None, 3);
        assert_eq!(history.make_room([0; 16], (1 << 16) + 1, &mut |_| {}), Err(Full::TooLarge));
    }
}
