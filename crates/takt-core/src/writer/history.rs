//! A writer's history (RTPS 2.5 §8.2.2): changes in order of sequence number, until nobody needs them.
//!
//! Changes sit in a table of fixed size. `order` lists them by sequence number; `KEEP_LAST` removals from
//! the middle leave tombstones that are swept when the list is full, so finding a change is a binary search
//! and removing one is O(1) on average.

use super::filters::Verdicts;
use crate::cache::{ChangeKind, InstanceHandle, KeyHash, PayloadPool, PayloadRef};
use crate::lifespan::Expiry;
use crate::presentation::Place;
use crate::schedule::Schedule;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, Timestamp};

/// Readers that one directed write can name.
pub(crate) const MAX_DIRECTED: usize = 4;
const NONE: u32 = u32::MAX;

/// The readers a change is meant for; none named means all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Directed {
    guids: [Guid; MAX_DIRECTED],
    len: u8,
}

impl Directed {
    /// The caller checked that there are at most [`MAX_DIRECTED`].
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

/// One change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) sn: SequenceNumber,
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: KeyHash,
    pub(crate) source_timestamp: Timestamp,
    pub(crate) payload: PayloadRef,
    pub(crate) directed: Directed,
    /// Among those of its writer and its publisher.
    pub(crate) place: Place,
    /// Fragment size for the readers that were matched when it was written; see [`super::route`].
    pub(crate) fragment_size: u16,
    /// Octets of the send window that it takes: its payload, or the little that travels of one that all are lent.
    pub(crate) flight_len: u32,
    pub(crate) expiry: Expiry,
    /// The filters that reject it; see [`super::filters`].
    pub(crate) rejected: Verdicts,
    instance: u32,
    previous_in_instance: u32,
    next_in_instance: u32,
}

#[derive(Debug)]
struct Instance {
    oldest: u32,
    newest: u32,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryLimits {
    /// `KEEP_LAST` depth; `None` is `KEEP_ALL`.
    pub(crate) depth: Option<usize>,
    pub(crate) max_samples: usize,
    pub(crate) max_instances: usize,
    pub(crate) max_samples_per_instance: usize,
}

/// Why there is no room for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// Room may come with acknowledgements.
    Samples,
    /// `RESOURCE_LIMITS.max_instances` is reached for good.
    Instances,
    /// The payload is larger than the writer's memory.
    Memory,
}

#[derive(Debug)]
pub(crate) struct WriterHistory {
    limits: HistoryLimits,
    pub(crate) pool: PayloadPool,
    changes: Vec<Change>,
    free: Vec<u32>,
    order: VecDeque<(SequenceNumber, u32)>,
    live: usize,
    /// Ends of coherent sets, which are no samples and do not count towards `RESOURCE_LIMITS` (RTPS 2.5 §8.7.6).
    ends: usize,
    /// Most entries of `order`, tombstones included.
    order_len_max: usize,
    /// Every reader that keeps pace has acknowledged up to here.
    pub(crate) settled: SequenceNumber,
    last_sn: SequenceNumber,
    /// Who wrote the changes first, by slot; empty unless others did.
    origins: Vec<SampleIdentity>,
    instances: Vec<Instance>,
    free_instances: Vec<u32>,
    by_handle: BTreeMap<InstanceHandle, u32>,
    /// Changes that expire, by slot.
    expiries: Schedule<Expiry>,
    memory_bytes: usize,
}

impl WriterHistory {
    pub(crate) fn new(limits: HistoryLimits, memory_bytes: usize) -> Self {
        Self {
            limits,
            pool: PayloadPool::new(memory_bytes),
            changes: Vec::with_capacity(limits.max_samples),
            free: Vec::with_capacity(limits.max_samples),
            order: VecDeque::with_capacity(2 * limits.max_samples + 1),
            live: 0,
            ends: 0,
            order_len_max: 2 * limits.max_samples,
            settled: SequenceNumber(0),
            last_sn: SequenceNumber(0),
            origins: Vec::new(),
            instances: Vec::new(),
            free_instances: Vec::new(),
            by_handle: BTreeMap::new(),
            expiries: Schedule::new(),
            memory_bytes,
        }
    }

    /// Makes room for the ends of coherent sets: one for each sample, and one more.
    pub(crate) fn reserve_ends(&mut self) {
        let entries = 2 * self.limits.max_samples + 1;
        self.order_len_max = 2 * entries;
        self.changes.reserve_exact(entries);
        self.free.reserve_exact(entries);
        self.order.reserve_exact(self.order_len_max + 1);
    }

    /// Makes room for the original writers of changes.
    pub(crate) fn keep_origins(&mut self) {
        let nobody = SampleIdentity { writer: Guid::UNKNOWN, sn: SequenceNumber::UNKNOWN };
        self.origins = vec![nobody; self.limits.max_samples];
    }

    /// Who wrote a change first. Does nothing without [`Self::keep_origins`].
    pub(crate) fn set_origin(&mut self, sn: SequenceNumber, origin: SampleIdentity) {
        if let Ok(place) = self.find(sn)
            && let Some(kept) = self.origins.get_mut(self.order[place].1 as usize)
        {
            *kept = origin;
        }
    }

    /// Who wrote a change first, if that is kept and it was another writer.
    pub(crate) fn origin_of(&self, change: &Change) -> Option<SampleIdentity> {
        let place = self.find(change.sn).ok()?;
        self.origins.get(self.order[place].1 as usize).copied().filter(|origin| origin.writer != Guid::UNKNOWN)
    }

    /// The last sequence number given out; 0 before the first change.
    pub(crate) fn last_sn(&self) -> SequenceNumber {
        self.last_sn
    }

    /// The oldest change that is still there, else the next one to come.
    pub(crate) fn first_sn(&self) -> SequenceNumber {
        self.order.iter().find(|(_, slot)| *slot != NONE).map_or(SequenceNumber(self.last_sn.0 + 1), |(sn, _)| *sn)
    }

    /// Samples, those included that are gone and have left a gap.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Samples that it may hold.
    pub(crate) fn samples_max(&self) -> usize {
        self.limits.max_samples
    }

    /// Whether half of the samples that it may hold are there.
    pub(crate) fn is_half_full(&self) -> bool {
        self.live * 2 >= self.limits.max_samples
    }

    /// Numbers begin above this one.
    pub(crate) fn begin_after(&mut self, sn: SequenceNumber) {
        self.last_sn = sn;
    }

    /// Gives out a sequence number without keeping anything: nobody listens.
    pub(crate) fn skip(&mut self) -> SequenceNumber {
        self.last_sn = SequenceNumber(self.last_sn.0 + 1);
        self.last_sn
    }

    /// Reserves memory for the payload of the next change, evicting what `KEEP_LAST` allows. Nothing is
    /// consumed on failure.
    pub(crate) fn make_room(
        &mut self,
        key_hash: KeyHash,
        payload_len: usize,
        evicted: &mut impl FnMut(&Change),
    ) -> Result<PayloadRef, Full> {
        if payload_len > self.memory_bytes {
            return Err(Full::Memory);
        }
        let known = self.by_handle.get(&InstanceHandle(key_hash)).copied();
        if known.is_none() && self.by_handle.len() >= self.limits.max_instances {
            return Err(Full::Instances);
        }
        let count = known.map_or(0, |instance| self.instances[instance as usize].count);
        match self.limits.depth {
            Some(depth) if count >= depth => {
                if let Some(instance) = known {
                    self.evict_oldest(instance, evicted);
                }
            }
            None if count >= self.limits.max_samples_per_instance => return Err(Full::Samples),
            _ => {}
        }
        if self.live >= self.limits.max_samples {
            return Err(Full::Samples);
        }
        self.pool.allocate(payload_len).ok_or(Full::Samples)
    }

    /// Which change `KEEP_LAST` takes away for the next one of its instance.
    pub(crate) fn next_evicted(&self, key_hash: KeyHash) -> Option<SequenceNumber> {
        let depth = self.limits.depth?;
        let instance = &self.instances[*self.by_handle.get(&InstanceHandle(key_hash))? as usize];
        (instance.count >= depth).then(|| self.changes[instance.oldest as usize].sn)
    }

    fn evict_oldest(&mut self, instance: u32, evicted: &mut impl FnMut(&Change)) {
        let slot = self.instances[instance as usize].oldest;
        let change = self.changes[slot as usize];
        evicted(&change);
        self.remove(change.sn);
    }

    /// Appends a change whose payload came from [`Self::make_room`].
    pub(crate) fn append(&mut self, change: &Change) -> SequenceNumber {
        self.last_sn = SequenceNumber(self.last_sn.0 + 1);
        let instance = self.instance(InstanceHandle(change.key_hash));
        let slot = self.put(change);
        if change.expiry != Expiry::NEVER {
            self.expiries.set(slot, change.expiry);
        }
        self.enlist(self.last_sn, slot);
        self.live += 1;
        let state = &mut self.instances[instance as usize];
        state.count += 1;
        if state.oldest == NONE {
            state.oldest = slot;
        }
        let newest = core::mem::replace(&mut state.newest, slot);
        if newest != NONE {
            self.changes[newest as usize].next_in_instance = slot;
        }
        let kept = &mut self.changes[slot as usize];
        (kept.sn, kept.instance) = (self.last_sn, instance);
        (kept.previous_in_instance, kept.next_in_instance) = (newest, NONE);
        self.last_sn
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

    /// Appends the end of a coherent set. Of ends without a sample between them at most one is kept where there is no room for
    /// more.
    pub(crate) fn append_end(&mut self, place: Place, source_timestamp: Timestamp) -> SequenceNumber {
        if self.ends > self.limits.max_samples {
            self.remove(self.last_sn);
        }
        self.last_sn = self.last_sn.next();
        let (kind, payload, directed) = (ChangeKind::Alive, PayloadRef::EMPTY, Directed::default());
        let mut change = Self::change(kind, [0; 16], source_timestamp, payload, directed, u16::MAX, Expiry::NEVER);
        change.sn = self.last_sn;
        change.place = place;
        let slot = self.put(&change);
        self.enlist(change.sn, slot);
        self.ends += 1;
        change.sn
    }

    /// Whether this is the end of a coherent set of which no sample is left.
    pub(crate) fn is_set_gone(&self, sn: SequenceNumber) -> bool {
        let Some(change) = self.get(sn).filter(|change| change.place.ends) else { return false };
        let set = change.place.set;
        !set.is_valid() || self.at_or_after(set).is_none_or(|first| first.sn == sn)
    }

    fn instance(&mut self, handle: InstanceHandle) -> u32 {
        if let Some(&index) = self.by_handle.get(&handle) {
            return index;
        }
        let instance = Instance { oldest: NONE, newest: NONE, count: 0 };
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
        // Without tombstones the place is known at once.
        if let Ok(guess) = usize::try_from(sn.0 - first.0)
            && self.order.get(guess).is_some_and(|(found, _)| *found == sn)
        {
            return Ok(guess);
        }
        self.order.binary_search_by_key(&sn, |(sn, _)| *sn)
    }

    /// The changes from `sn` on, as long as none is missing.
    pub(crate) fn from(&self, sn: SequenceNumber) -> impl Iterator<Item = &Change> {
        let start = self.find(sn).unwrap_or(self.order.len());
        let numbers = self.order.range(start..).zip(sn.0..);
        numbers.map_while(|(&(sn, slot), next)| self.changes.get(slot as usize).filter(|_| sn.0 == next))
    }

    pub(crate) fn get(&self, sn: SequenceNumber) -> Option<&Change> {
        let (_, slot) = self.order[self.find(sn).ok()?];
        self.changes.get(slot as usize)
    }

    /// The first change at or above `sn`.
    pub(crate) fn at_or_after(&self, sn: SequenceNumber) -> Option<&Change> {
        let start = self.find(sn).unwrap_or_else(|place| place);
        let (_, slot) = *self.order.get(start)?;
        // Nearly always there is none missing.
        let is_there = |slot: &u32| *slot != NONE;
        let slot = match Some(slot).filter(is_there) {
            None => self.order.range(start..).map(|(_, slot)| *slot).find(is_there)?,
            Some(slot) => slot,
        };
        self.changes.get(slot as usize)
    }

    pub(crate) fn set_fragment_size(&mut self, sn: SequenceNumber, size: u16) {
        if let Ok(place) = self.find(sn)
            && let Some(change) = self.changes.get_mut(self.order[place].1 as usize)
        {
            change.fragment_size = size;
        }
    }

    /// Removes a disposed and unregistered instance with all its changes up to `last`: nobody need hear of it again.
    pub(crate) fn remove_instance(&mut self, key_hash: KeyHash, last: SequenceNumber) {
        while let Some(&instance) = self.by_handle.get(&InstanceHandle(key_hash)) {
            let oldest = self.changes.get(self.instances[instance as usize].oldest as usize).map(|change| change.sn);
            match oldest.filter(|sn| *sn <= last) {
                Some(sn) => self.remove(sn),
                None => return,
            }
        }
    }

    /// Removes a change and frees its memory, and its instance if it unregistered that and is the last of it.
    pub(crate) fn remove(&mut self, sn: SequenceNumber) {
        let Ok(place) = self.find(sn) else { return };
        let slot = core::mem::replace(&mut self.order[place].1, NONE);
        if slot == NONE {
            return;
        }
        while self.order.front().is_some_and(|(_, slot)| *slot == NONE) {
            self.order.pop_front();
        }
        let Change { payload, place, expiry, .. } = self.changes[slot as usize];
        self.pool.release(payload);
        self.free.push(slot);
        if place.ends {
            self.ends -= 1;
            return;
        }
        self.live -= 1;
        if expiry != Expiry::NEVER {
            self.expiries.remove(slot);
        }
        self.unlink_from_instance(slot);
        if place.set.is_valid()
            && let Some(end) = self.at_or_after(place.set).map(|first| first.sn)
            && end <= self.settled
            && self.is_set_gone(end)
        {
            self.remove(end);
        }
    }

    fn unlink_from_instance(&mut self, slot: u32) {
        let Change { kind, key_hash, instance, previous_in_instance: before, next_in_instance: after, .. } =
            self.changes[slot as usize];
        let state = &mut self.instances[instance as usize];
        state.count -= 1;
        match before {
            NONE => state.oldest = after,
            _ => self.changes[before as usize].next_in_instance = after,
        }
        match after {
            NONE => state.newest = before,
            _ => self.changes[after as usize].previous_in_instance = before,
        }
        let unregisters = matches!(kind, ChangeKind::Unregistered | ChangeKind::DisposedUnregistered);
        if state.count == 0 && unregisters {
            self.by_handle.remove(&InstanceHandle(key_hash));
            self.free_instances.push(instance);
        }
    }

    /// Changes will expire: makes room to keep account of it.
    pub(crate) fn expect_expiries(&mut self) {
        self.expiries.reserve(self.limits.max_samples);
    }

    /// The change that expires next, and when.
    pub(crate) fn next_expiry(&self) -> Option<(Expiry, &Change)> {
        let (expiry, slot) = self.expiries.first()?;
        Some((expiry, self.changes.get(slot as usize)?))
    }

    /// A change with everything but its sequence number.
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
            place: Place::default(),
            fragment_size,
            flight_len: payload.len() as u32,
            expiry,
            rejected: 0,
            instance: NONE,
            previous_in_instance: NONE,
            next_in_instance: NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(depth: Option<usize>, max_samples: usize) -> WriterHistory {
        let limits = HistoryLimits { depth, max_samples, max_instances: 4, max_samples_per_instance: usize::MAX };
        WriterHistory::new(limits, 1 << 16)
    }

    fn put(history: &mut WriterHistory, key: u8) -> Result<SequenceNumber, Full> {
        let payload = history.make_room([key; 16], 10, &mut |_| {})?;
        let change = WriterHistory::change(
            ChangeKind::Alive,
            [key; 16],
            Timestamp::ZERO,
            payload,
            Directed::default(),
            0,
            Expiry::NEVER,
        );
        Ok(history.append(&change))
    }

    #[test]
    fn keep_all_refuses_when_full_and_takes_again_after_removal() {
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
    fn keep_last_keeps_the_newest_of_each_instance_for_ever() {
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
    fn a_payload_larger_than_the_memory_never_fits() {
        let mut history = history(None, 3);
        assert_eq!(history.make_room([0; 16], (1 << 16) + 1, &mut |_| {}), Err(Full::Memory));
    }
}
