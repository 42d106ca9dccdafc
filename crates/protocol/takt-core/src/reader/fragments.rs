//! Reassembly of large samples from `DATA_FRAG`s (RTPS 2.5 §8.3.8.3, §8.4.14).
//!
//! The memory of an incomplete sample is address space of the reader's pool. Pages are committed
//! only as fragments arrive. At most [`SAMPLES`] samples of a writer can be incomplete at once,
//! [`SAMPLES_BEST_EFFORT`] of a best-effort writer. Those of all writers of a reader share a
//! [`Budget`].
//!
//! A best-effort writer repeats nothing, and fragments of consecutive samples may overtake one
//! another. A sample is therefore given up once two later ones have begun to arrive, or when its
//! memory is needed.

use crate::cache::{KeyHash, PayloadPool, PayloadRef};
use crate::reader::Stamp;
use crate::time::Instant;
use alloc::boxed::Box;
use core::time::Duration;
use takt_wire::inline_qos::{InlineQos, SampleIdentity};
use takt_wire::message::DataFrag;
use takt_wire::{EntityId, FragmentNumberSet, Guid, GuidPrefix, SequenceNumber, Timestamp};

/// Maximum number of incomplete samples of one writer.
const SAMPLES: usize = 8;
/// Maximum number of incomplete samples of a best-effort writer.
const SAMPLES_BEST_EFFORT: usize = 2;
/// Maximum number of fragments of one sample. Their bit set must not cost more memory than a
/// datagram may cause to be touched.
const MAX_FRAGMENTS: usize = 1 << 18;
/// Time without fragments after which an incomplete sample is dropped if others need its memory.
const IDLE: Duration = Duration::from_secs(1);

/// Reason why fragments were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentRefusal {
    /// All fragments had arrived before.
    Duplicate,
    /// The fragments contradict the sample's size, or are too many.
    Rejected,
    /// Too many samples are incomplete.
    TableFull,
    /// There is no memory for the sample at present.
    NoMemory,
    /// The sample is larger than all memory of the reader.
    TooLarge,
}

/// Inline QoS collected from the fragments of a sample. Any fragment may carry it
/// (RTPS 2.5 §8.3.8.3); of repeated parameters, the first to arrive counts. The type is small,
/// because one exists for each possible incomplete sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FragmentQos {
    key_hash: Option<KeyHash>,
    status_info: Option<u32>,
    lifespan: Option<takt_wire::Duration>,
    /// Sequence numbers that are not valid stand for the absence of the parameter.
    original_writer: SampleIdentity,
    coherent_set: SequenceNumber,
    group_coherent_set: SequenceNumber,
    group_seq_num: SequenceNumber,
    must_understand_unknown: bool,
    /// The sample is directed to other readers.
    pub(crate) excludes: bool,
}

impl FragmentQos {
    /// No inline QoS.
    pub(crate) const EMPTY: Self = Self {
        key_hash: None,
        status_info: None,
        lifespan: None,
        original_writer: SampleIdentity {
            writer: Guid::new(GuidPrefix::UNKNOWN, EntityId::UNKNOWN),
            sn: SequenceNumber::ZERO,
        },
        coherent_set: SequenceNumber::ZERO,
        group_coherent_set: SequenceNumber::ZERO,
        group_seq_num: SequenceNumber::ZERO,
        must_understand_unknown: false,
        excludes: false,
    };

    /// Returns the content as inline QoS, without directed readers.
    pub(crate) fn inline(&self) -> InlineQos<'static> {
        let number = |number: SequenceNumber| Some(number).filter(|number| number.is_valid());
        InlineQos {
            key_hash: self.key_hash,
            status_info: self.status_info,
            lifespan: self.lifespan,
            original_writer: Some(self.original_writer).filter(|origin| origin.sn.is_valid()),
            coherent_set: number(self.coherent_set),
            group_coherent_set: number(self.group_coherent_set),
            group_seq_num: number(self.group_seq_num),
            must_understand_unknown: self.must_understand_unknown,
            ..InlineQos::default()
        }
    }

    /// Merges the inline QoS of one more fragment.
    pub(crate) fn merged_with(&self, inline: &InlineQos<'_>, reader: Guid) -> Self {
        let both = self.inline().or(inline);
        Self {
            key_hash: both.key_hash,
            status_info: both.status_info,
            lifespan: both.lifespan,
            original_writer: both.original_writer.unwrap_or(Self::EMPTY.original_writer),
            coherent_set: both.coherent_set.unwrap_or(SequenceNumber::ZERO),
            group_coherent_set: both.group_coherent_set.unwrap_or(SequenceNumber::ZERO),
            group_seq_num: both.group_seq_num.unwrap_or(SequenceNumber::ZERO),
            must_understand_unknown: both.must_understand_unknown,
            excludes: self.excludes || !inline.directed_write.includes(reader),
        }
    }
}

/// Sample of which all fragments have arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReassembledSample {
    pub(crate) payload: PayloadRef,
    pub(crate) source_timestamp: Timestamp,
    /// Inline QoS of all fragments but the last one.
    pub(crate) inline_qos: FragmentQos,
}

/// Limit and present use of the reader's memory for incomplete samples, in bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    claimed: usize,
}

impl Budget {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, claimed: 0 }
    }

    /// Reports whether a sample may be begun. A sample larger than the limit is accepted if it is
    /// the only one.
    fn allows(&self, cost: usize) -> bool {
        self.claimed == 0 || self.claimed.saturating_add(cost) <= self.limit
    }
}

#[derive(Clone, Copy, Debug)]
struct Assembly {
    sn: SequenceNumber,
    /// First source timestamp of any fragment. INTEROP(CycloneDDS 0.10.2): only the message with
    /// the first fragment has an INFO_TS.
    source_timestamp: Timestamp,
    fragment_size: u16,
    payload: PayloadRef,
    /// Bit set of the arrived fragments.
    arrived: PayloadRef,
    missing: u32,
    /// Number of leading octets of `arrived` that are full.
    full: u32,
    /// Arrival of the last fragment.
    last_arrival: Instant,
    inline_qos: FragmentQos,
}

impl Assembly {
    fn fragment_count(&self) -> u32 {
        self.payload.len().div_ceil(usize::from(self.fragment_size)) as u32
    }

    /// Returns the bytes charged to the budget.
    fn cost(&self) -> usize {
        self.payload.len() + self.arrived.len()
    }
}

#[derive(Debug)]
pub(crate) struct Fragments {
    assemblies: Box<[Option<Assembly>; SAMPLES]>,
    /// The writer repeats missing fragments.
    reliable: bool,
    /// Sequence numbers have no order.
    is_stateless: bool,
    /// Best effort: samples below this one are given up, and the reader was not notified yet.
    given_up: Option<SequenceNumber>,
}

impl Fragments {
    pub(crate) fn new(reliable: bool) -> Self {
        Self { assemblies: Box::new([None; SAMPLES]), reliable, is_stateless: false, given_up: None }
    }

    /// Makes the reader of these fragments a stateless one, which accepts samples in any order
    /// (DDS-SEC 1.1 §7.4.3). Anyone may send it messages in the name of a participant, whose
    /// sequence numbers must not exclude those of that participant. The writer of a participant
    /// that begins another session starts at 1 again.
    pub(crate) fn set_stateless(&mut self) {
        self.is_stateless = true;
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.is_stateless
    }

    /// Reports whether no sample is incomplete.
    pub(crate) fn is_empty(&self) -> bool {
        self.assemblies.iter().all(Option::is_none)
    }

    pub(crate) fn contains(&self, sn: SequenceNumber) -> bool {
        self.assemblies.iter().flatten().any(|assembly| assembly.sn == sn)
    }

    /// Records the inline QoS of fragments of an incomplete sample.
    pub(crate) fn note(&mut self, sn: SequenceNumber, inline: &InlineQos<'_>, reader: Guid) {
        if let Some(assembly) = self.assemblies.iter_mut().flatten().find(|assembly| assembly.sn == sn) {
            assembly.inline_qos = assembly.inline_qos.merged_with(inline, reader);
        }
    }

    /// Best effort: takes the number below which samples can no longer be completed. Returns it
    /// once.
    pub(crate) fn take_given_up(&mut self) -> Option<SequenceNumber> {
        self.given_up.take().filter(|_| !self.is_stateless)
    }

    /// Inserts fragments. Returns the sample once it is complete.
    pub(crate) fn insert(
        &mut self,
        stamp: Stamp,
        data: &DataFrag<'_>,
        pool: &mut PayloadPool,
        budget: &mut Budget,
    ) -> Result<Option<ReassembledSample>, FragmentRefusal> {
        let slot = self.assembly_for(stamp.now, data, pool, budget)?;
        let Some(assembly) = self.assemblies[slot].as_mut() else { return Err(FragmentRefusal::Rejected) };
        if assembly.source_timestamp == Timestamp::INVALID {
            assembly.source_timestamp = stamp.source_timestamp;
        }
        let size = usize::from(assembly.fragment_size);
        let mut is_new = false;
        for i in 0..u32::from(data.fragments_in_submessage) {
            let number = data.fragment_starting_num.saturating_add(i);
            if number > assembly.fragment_count() {
                return Err(FragmentRefusal::Rejected);
            }
            let start = (number as usize - 1) * size;
            let len = size.min(assembly.payload.len() - start);
            let Some(bytes) = data.payload.get(i as usize * size..i as usize * size + len) else {
                return Err(FragmentRefusal::Rejected);
            };
            let bit = (number - 1) as usize;
            let mask = 1 << (bit % 8);
            if pool.bytes(assembly.arrived)[bit / 8] & mask != 0 {
                continue;
            }
            pool.bytes_mut(assembly.arrived)[bit / 8] |= mask;
            pool.bytes_mut(assembly.payload)[start..start + len].copy_from_slice(bytes);
            assembly.missing -= 1;
            assembly.last_arrival = stamp.now;
            is_new = true;
        }
        if !is_new {
            return Err(FragmentRefusal::Duplicate);
        }
        let arrived = pool.bytes(assembly.arrived);
        while arrived.get(assembly.full as usize) == Some(&u8::MAX) {
            assembly.full += 1;
        }
        if assembly.missing > 0 {
            return Ok(None);
        }
        let Assembly { payload, source_timestamp, inline_qos, .. } = *assembly;
        pool.release(assembly.arrived);
        budget.claimed -= assembly.cost();
        self.assemblies[slot] = None;
        Ok(Some(ReassembledSample { payload, source_timestamp, inline_qos }))
    }

    /// Returns the assembly of the sample, created if necessary.
    fn assembly_for(
        &mut self,
        now: Instant,
        data: &DataFrag<'_>,
        pool: &mut PayloadPool,
        budget: &mut Budget,
    ) -> Result<usize, FragmentRefusal> {
        let sample_size = data.sample_size as usize;
        let known = self.assemblies.iter().position(|slot| slot.as_ref().is_some_and(|known| known.sn == data.sn));
        if let Some(slot) = known {
            let same =
                |known: &Assembly| known.payload.len() == sample_size && known.fragment_size == data.fragment_size;
            if self.assemblies[slot].as_ref().is_some_and(same) {
                return Ok(slot);
            }
            // The writer has reduced its fragment size because a reader with a smaller path MTU
            // joined.
            self.drop_at(slot, pool, budget);
        }
        let count = sample_size.div_ceil(usize::from(data.fragment_size));
        if count > MAX_FRAGMENTS {
            return Err(FragmentRefusal::Rejected);
        }
        let bitmap_len = count.div_ceil(8);
        if !pool.has_room_with_side_ever(sample_size, bitmap_len) {
            return Err(FragmentRefusal::TooLarge);
        }
        let slot =
            self.free_slot().or_else(|| self.make_slot(data.sn, pool, budget)).ok_or(FragmentRefusal::TableFull)?;
        while !budget.allows(sample_size + bitmap_len) {
            self.make_slot(data.sn, pool, budget).ok_or(FragmentRefusal::TableFull)?;
        }
        let (payload, arrived) = pool.allocate_with_side(sample_size, bitmap_len).ok_or(FragmentRefusal::NoMemory)?;
        pool.bytes_mut(arrived).fill(0);
        let (sn, fragment_size, missing) = (data.sn, data.fragment_size, count as u32);
        let source_timestamp = Timestamp::INVALID;
        let assembly = Assembly {
            sn,
            source_timestamp,
            fragment_size,
            payload,
            arrived,
            missing,
            full: 0,
            last_arrival: now,
            inline_qos: FragmentQos::EMPTY,
        };
        budget.claimed += assembly.cost();
        self.assemblies[slot] = Some(assembly);
        if !self.reliable && self.incomplete().count() == SAMPLES_BEST_EFFORT {
            self.given_up = self.given_up.max(self.incomplete().min());
        }
        Ok(slot)
    }

    fn free_slot(&self) -> Option<usize> {
        let slots = if self.reliable { SAMPLES } else { SAMPLES_BEST_EFFORT };
        self.assemblies[..slots].iter().position(Option::is_none)
    }

    /// Drops a sample to make room for `sn`. A reliable writer's newest one is dropped for an older
    /// one, which is needed first. Of a best-effort writer the oldest is dropped for a newer one,
    /// because only that can be completed; of a stateless writer the one whose last fragment is the
    /// oldest.
    fn make_slot(&mut self, sn: SequenceNumber, pool: &mut PayloadPool, budget: &mut Budget) -> Option<usize> {
        let samples = (0..SAMPLES).filter_map(|slot| Some((self.assemblies[slot]?.sn, slot)));
        let (_, victim) = if self.is_stateless {
            samples.min_by_key(|(_, slot)| self.assemblies[*slot].map(|assembly| assembly.last_arrival))?
        } else if self.reliable {
            samples.max().filter(|(newest, _)| *newest > sn)?
        } else {
            let oldest = samples.min().filter(|(oldest, _)| *oldest < sn)?;
            self.given_up = self.given_up.max(Some(oldest.0.next()));
            oldest
        };
        self.drop_at(victim, pool, budget);
        Some(victim)
    }

    fn drop_at(&mut self, slot: usize, pool: &mut PayloadPool, budget: &mut Budget) {
        if let Some(assembly) = self.assemblies[slot].take() {
            pool.release(assembly.payload);
            pool.release(assembly.arrived);
            budget.claimed -= assembly.cost();
        }
    }

    /// Drops the incomplete samples without recent fragments. Returns whether there was any.
    pub(crate) fn drop_idle(&mut self, now: Instant, pool: &mut PayloadPool, budget: &mut Budget) -> bool {
        let mut dropped = false;
        for slot in 0..SAMPLES {
            if let Some(idle) = self.assemblies[slot].filter(|assembly| now.since(assembly.last_arrival) >= IDLE) {
                self.drop_at(slot, pool, budget);
                self.given_up = self.given_up.max((!self.reliable).then_some(idle.sn.next()));
                dropped = true;
            }
        }
        dropped
    }

    /// Drops all incomplete samples below `sn`. A stateless writer may still complete them.
    pub(crate) fn drop_below(&mut self, sn: SequenceNumber, pool: &mut PayloadPool, budget: &mut Budget) {
        for slot in 0..if self.is_stateless { 0 } else { SAMPLES } {
            if self.assemblies[slot].is_some_and(|assembly| assembly.sn < sn) {
                self.drop_at(slot, pool, budget);
            }
        }
    }

    /// Returns up to 256 missing fragments of a sample, from the first missing one on.
    pub(crate) fn missing(&self, sn: SequenceNumber, pool: &PayloadPool) -> Option<FragmentNumberSet> {
        let assembly = self.assemblies.iter().flatten().find(|assembly| assembly.sn == sn)?;
        let arrived = pool.bytes(assembly.arrived);
        let is_missing = |number: &u32| arrived[(*number - 1) as usize / 8] & (1 << ((*number - 1) % 8)) == 0;
        let count = assembly.fragment_count();
        let first = (assembly.full * 8 + 1..=count).find(is_missing)?;
        let mut set = FragmentNumberSet::new(first);
        for number in (first..=count.min(first.saturating_add(255))).filter(is_missing) {
            set.insert(number);
        }
        Some(set)
    }

    /// Returns the incomplete samples, in no order.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = SequenceNumber> {
        self.assemblies.iter().flatten().map(|assembly| assembly.sn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(sn: i64, number: u32, count: u16, sample_size: u32, payload: &[u8]) -> DataFrag<'_> {
        DataFrag {
            reader: EntityId::UNKNOWN,
            writer: EntityId::UNKNOWN,
            sn: SequenceNumber(sn),
            fragment_starting_num: number,
            fragments_in_submessage: count,
            fragment_size: 100,
            sample_size,
            inline_qos: None,
            key: false,
            payload,
            rest: payload,
        }
    }

    const NOW: Instant = Instant(5_000_000_000);
    const STAMP: Stamp = Stamp { now: NOW, source_timestamp: Timestamp::INVALID };

    #[test]
    fn sample_is_reassembled_when_fragments_are_reordered_and_repeated() {
        let (mut pool, mut budget) = (PayloadPool::new((1 << 16).into()), Budget::new(1 << 16));
        let mut fragments = Fragments::new(true);
        let sample: alloc::vec::Vec<u8> = (0..250).map(|i| i as u8).collect();
        let mut put = |f: &mut Fragments, n: u32, c: u16, bytes: &[u8]| {
            let source_timestamp = if n == 3 { Timestamp::from_nanos(7) } else { Timestamp::INVALID };
            let stamp = Stamp { source_timestamp, ..STAMP };
            f.insert(stamp, &fragment(5, n, c, 250, bytes), &mut pool, &mut budget)
        };
        assert!(matches!(put(&mut fragments, 3, 1, &sample[200..]), Ok(None)));
        assert_eq!(put(&mut fragments, 3, 1, &sample[200..]).err(), Some(FragmentRefusal::Duplicate));
        assert_eq!(put(&mut fragments, 4, 1, &sample[200..]).err(), Some(FragmentRefusal::Rejected));
        assert_eq!(put(&mut fragments, 2, 1, &sample[100..150]).err(), Some(FragmentRefusal::Rejected));
        let reassembled = put(&mut fragments, 1, 2, &sample[..200]).expect("fragments fit").expect("all are there");
        let ReassembledSample { payload, source_timestamp, .. } = reassembled;
        assert_eq!(source_timestamp, Timestamp::from_nanos(7));
        assert_eq!(pool.bytes(payload), sample);
        assert_eq!(budget.claimed, 0);
        pool.release(payload);
        assert_eq!(pool.used_bytes(), 0);
    }

    /// A sample of 65,000 octets needs the size class that takes the whole pool.
    #[test]
    fn sample_is_reassembled_when_its_size_class_takes_all_memory() {
        let (mut pool, mut budget) = (PayloadPool::new((1 << 16).into()), Budget::new(1 << 16));
        let mut fragments = Fragments::new(true);
        for sample_size in [65_000_u32, 65_400] {
            let sample: alloc::vec::Vec<u8> = (0..sample_size).map(|i| (i * 7) as u8).collect();
            let mut reassembled = None;
            for (n, bytes) in (1..).zip(sample.chunks(100)) {
                let data = fragment(5, n, 1, sample_size, bytes);
                reassembled = fragments.insert(STAMP, &data, &mut pool, &mut budget).expect("there is room");
            }
            let payload = reassembled.expect("all fragments are there").payload;
            assert_eq!(pool.bytes(payload), sample);
            pool.release(payload);
            assert_eq!((pool.used_bytes(), budget.claimed), (0, 0));
        }
        let too_large = fragments.insert(STAMP, &fragment(6, 1, 1, 65_500, &[7; 100]), &mut pool, &mut budget);
        assert_eq!(too_large.err(), Some(FragmentRefusal::TooLarge), "its bitmap does not fit after it");
    }

    #[test]
    fn missing_fragments_are_listed_from_the_first_one() {
        let (mut pool, mut budget) = (PayloadPool::new((1 << 20).into()), Budget::new(1 << 20));
        let mut fragments = Fragments::new(true);
        let bytes = [7; 100];
        for number in (1..=20).chain([22]) {
            let result = fragments.insert(STAMP, &fragment(1, number, 1, 100_000, &bytes), &mut pool, &mut budget);
            assert!(matches!(result, Ok(None)), "{result:?}");
        }
        let missing = fragments.missing(SequenceNumber(1), &pool).expect("it is incomplete");
        assert_eq!(missing.base(), 21);
        assert!(missing.contains(21) && !missing.contains(22) && missing.contains(23) && missing.contains(276));
        assert_eq!(fragments.missing(SequenceNumber(2), &pool), None);
    }

    #[test]
    fn incomplete_samples_are_bounded_and_the_oldest_are_kept() {
        let (mut pool, mut budget) = (PayloadPool::new((1 << 20).into()), Budget::new(50_200));
        let mut fragments = Fragments::new(true);
        let bytes = [7; 100];
        for sn in 10..30 {
            let result = fragments.insert(STAMP, &fragment(sn, 1, 1, 10_000, &bytes), &mut pool, &mut budget);
            assert_eq!(result.is_ok(), sn < 15, "the budget holds five");
        }
        for sn in 1..20 {
            let result = fragments.insert(STAMP, &fragment(sn, 1, 1, 200, &bytes), &mut pool, &mut budget);
            assert!(budget.claimed <= budget.limit, "{result:?}");
        }
        assert!(fragments.incomplete().count() <= SAMPLES);
        assert!(fragments.contains(SequenceNumber(1)));
        fragments.drop_below(SequenceNumber::MAX, &mut pool, &mut budget);
        assert_eq!((pool.used_bytes(), budget.claimed), (0, 0));
    }

    #[test]
    fn newest_incomplete_samples_are_kept_when_the_writer_is_best_effort() {
        let (mut pool, mut budget) = (PayloadPool::new((1 << 20).into()), Budget::new(1 << 20));
        let mut fragments = Fragments::new(false);
        let bytes = [7; 100];
        for sn in 1..30 {
            let result = fragments.insert(STAMP, &fragment(sn, 1, 1, 200, &bytes), &mut pool, &mut budget);
            assert!(matches!(result, Ok(None)), "{result:?}");
        }
        let late = fragments.insert(STAMP, &fragment(5, 1, 1, 200, &bytes), &mut pool, &mut budget);
        assert_eq!(late.err(), Some(FragmentRefusal::TableFull));
        assert!(
            fragments
                .insert(STAMP, &fragment(29, 2, 1, 200, &bytes), &mut pool, &mut budget)
                .is_ok_and(|p| p.is_some())
        );
    }

    #[test]
    fn sample_beyond_the_budget_is_reassembled_alone_and_returns_its_memory() {
        let (mut pool, mut budget) = (PayloadPool::new((1 << 20).into()), Budget::new(10_000));
        let (mut one, mut other) = (Fragments::new(true), Fragments::new(true));
        let bytes = [7; 100];
        for _ in 0..3 {
            assert!(one.insert(STAMP, &fragment(1, 1, 1, 500_000, &bytes), &mut pool, &mut budget).is_ok());
            let refused = other.insert(STAMP, &fragment(1, 1, 1, 200, &bytes), &mut pool, &mut budget);
            assert_eq!(refused.err(), Some(FragmentRefusal::TableFull));
            assert!(!one.drop_idle(NOW.after(IDLE / 2), &mut pool, &mut budget));
            assert!(one.drop_idle(NOW.after(IDLE), &mut pool, &mut budget));
            assert!(other.insert(STAMP, &fragment(1, 1, 1, 200, &bytes), &mut pool, &mut budget).is_ok());
            other.drop_below(SequenceNumber(2), &mut pool, &mut budget);
            assert_eq!((pool.used_bytes(), budget.claimed), (0, 0));
        }
    }

    #[test]
    fn too_many_fragments_are_rejected_before_memory_is_touched() {
        let (mut pool, mut budget) = (PayloadPool::new((1 << 24).into()), Budget::new(1 << 24));
        let data = DataFrag { fragment_size: 1, ..fragment(1, 1, 1, MAX_FRAGMENTS as u32 + 1, &[7]) };
        let refused = Fragments::new(true).insert(STAMP, &data, &mut pool, &mut budget);
        assert_eq!(refused.err(), Some(FragmentRefusal::Rejected));
        assert_eq!((pool.used_bytes(), budget.claimed), (0, 0));
    }
}
