//! Putting large samples together from `DATA_FRAG`s (RTPS 2.5 §8.3.8.3, §8.4.14).
//!
//! The memory of an incomplete sample is address space of the reader's pool: it becomes real only as far as
//! fragments really arrive. [`SAMPLES`] samples of a writer can be incomplete at once.

use crate::cache::{PayloadPool, PayloadRef};
use takt_wire::message::DataFrag;
use takt_wire::{FragmentNumberSet, SequenceNumber};

/// Incomplete samples kept of one writer.
const SAMPLES: usize = 8;

/// Why fragments were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// All were there already.
    Duplicate,
    /// They contradict the sample's size, or there is no room.
    Rejected,
}

#[derive(Clone, Copy, Debug)]
struct Assembly {
    sn: SequenceNumber,
    fragment_size: u16,
    payload: PayloadRef,
    /// One bit for each fragment that arrived.
    arrived: PayloadRef,
    missing: u32,
    /// Highest fragment number that arrived.
    highest: u32,
}

impl Assembly {
    fn fragment_count(&self) -> u32 {
        self.payload.len().div_ceil(usize::from(self.fragment_size)) as u32
    }
}

#[derive(Debug)]
pub(crate) struct Fragments {
    assemblies: [Option<Assembly>; SAMPLES],
}

impl Fragments {
    pub(crate) const fn new() -> Self {
        Self { assemblies: [None; SAMPLES] }
    }

    pub(crate) fn contains(&self, sn: SequenceNumber) -> bool {
        self.assemblies.iter().flatten().any(|assembly| assembly.sn == sn)
    }

    /// Takes fragments in; the payload once the sample is complete. `budget` is what all incomplete samples
    /// of the reader may still claim beyond this one.
    pub(crate) fn insert(
        &mut self,
        data: &DataFrag<'_>,
        pool: &mut PayloadPool,
        budget: &mut usize,
    ) -> Result<Option<PayloadRef>, Refused> {
        let place = self.place_for(data, pool, budget).ok_or(Refused::Rejected)?;
        let Some(assembly) = self.assemblies[place].as_mut() else { return Err(Refused::Rejected) };
        let size = usize::from(assembly.fragment_size);
        let mut fresh = false;
        for i in 0..u32::from(data.fragments_in_submessage) {
            let number = data.fragment_starting_num.saturating_add(i);
            if number > assembly.fragment_count() {
                return Err(Refused::Rejected);
            }
            let start = (number as usize - 1) * size;
            let len = size.min(assembly.payload.len() - start);
            let Some(bytes) = data.payload.get(i as usize * size..i as usize * size + len) else {
                return Err(Refused::Rejected);
            };
            let bit = (number - 1) as usize;
            let mask = 1 << (bit % 8);
            if pool.bytes(assembly.arrived)[bit / 8] & mask != 0 {
                continue;
            }
            pool.bytes_mut(assembly.arrived)[bit / 8] |= mask;
            pool.bytes_mut(assembly.payload)[start..start + len].copy_from_slice(bytes);
            assembly.missing -= 1;
            assembly.highest = assembly.highest.max(number);
            fresh = true;
        }
        if !fresh {
            return Err(Refused::Duplicate);
        }
        if assembly.missing > 0 {
            return Ok(None);
        }
        let payload = assembly.payload;
        pool.release(assembly.arrived);
        *budget += payload.len();
        self.assemblies[place] = None;
        Ok(Some(payload))
    }

    /// The sample's assembly, begun if need be.
    fn place_for(&mut self, data: &DataFrag<'_>, pool: &mut PayloadPool, budget: &mut usize) -> Option<usize> {
        let sample_size = data.sample_size as usize;
        let known = self.assemblies.iter().position(|slot| slot.as_ref().is_some_and(|known| known.sn == data.sn));
        if let Some(place) = known {
            let assembly = self.assemblies[place].as_ref()?;
            if assembly.payload.len() == sample_size && assembly.fragment_size == data.fragment_size {
                return Some(place);
            }
            // The writer has changed the size of its fragments because a narrower reader joined.
            self.drop_at(place, pool, budget);
        }
        let place = match self.assemblies.iter().position(Option::is_none) {
            Some(place) => place,
            None => self.make_place(data.sn, pool, budget)?,
        };
        while sample_size > *budget && self.assemblies.iter().any(Option::is_some) {
            self.make_place(data.sn, pool, budget)?;
        }
        let count = sample_size.div_ceil(usize::from(data.fragment_size)) as u32;
        let payload = pool.allocate(sample_size)?;
        let Some(arrived) = pool.allocate(count.div_ceil(8) as usize) else {
            pool.release(payload);
            return None;
        };
        pool.bytes_mut(arrived).fill(0);
        *budget = budget.saturating_sub(sample_size);
        self.assemblies[place] = Some(Assembly {
            sn: data.sn,
            fragment_size: data.fragment_size,
            payload,
            arrived,
            missing: count,
            highest: 0,
        });
        Some(place)
    }

    /// The newest sample gives way to an older one: that is the one needed first.
    fn make_place(&mut self, sn: SequenceNumber, pool: &mut PayloadPool, budget: &mut usize) -> Option<usize> {
        let newest = (0..SAMPLES).max_by_key(|&place| self.assemblies[place].map(|assembly| assembly.sn))?;
        if self.assemblies[newest].is_some_and(|assembly| assembly.sn < sn) {
            return None;
        }
        self.drop_at(newest, pool, budget);
        Some(newest)
    }

    fn drop_at(&mut self, place: usize, pool: &mut PayloadPool, budget: &mut usize) {
        if let Some(assembly) = self.assemblies[place].take() {
            pool.release(assembly.payload);
            pool.release(assembly.arrived);
            *budget += assembly.payload.len();
        }
    }

    /// Forgets all incomplete samples below `sn`.
    pub(crate) fn drop_below(&mut self, sn: SequenceNumber, pool: &mut PayloadPool, budget: &mut usize) {
        for place in 0..SAMPLES {
            if self.assemblies[place].is_some_and(|assembly| assembly.sn < sn) {
                self.drop_at(place, pool, budget);
            }
        }
    }

    /// Up to 256 fragments of a sample that have not arrived, from the first missing one on.
    pub(crate) fn missing(&self, sn: SequenceNumber, pool: &PayloadPool) -> Option<FragmentNumberSet> {
        let assembly = self.assemblies.iter().flatten().find(|assembly| assembly.sn == sn)?;
        let arrived = pool.bytes(assembly.arrived);
        let is_missing = |number: &u32| arrived[(*number - 1) as usize / 8] & (1 << ((*number - 1) % 8)) == 0;
        let count = assembly.fragment_count();
        let first = (1..=count).find(is_missing)?;
        let mut set = FragmentNumberSet::new(first);
        for number in (first..=count.min(first.saturating_add(255))).filter(is_missing) {
            set.insert(number);
        }
        Some(set)
    }

    /// The samples that are incomplete, in no order.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = SequenceNumber> {
        self.assemblies.iter().flatten().map(|assembly| assembly.sn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_wire::EntityId;

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
        }
    }

    #[test]
    fn fragments_come_in_any_order_and_twice() {
        let (mut pool, mut budget) = (PayloadPool::new(1 << 16), 1 << 16);
        let mut fragments = Fragments::new();
        let sample: alloc::vec::Vec<u8> = (0..250).map(|i| i as u8).collect();
        let mut put = |f: &mut Fragments, n: u32, c: u16, bytes: &[u8]| {
            f.insert(&fragment(5, n, c, 250, bytes), &mut pool, &mut budget)
        };
        assert_eq!(put(&mut fragments, 3, 1, &sample[200..]), Ok(None));
        assert_eq!(put(&mut fragments, 3, 1, &sample[200..]), Err(Refused::Duplicate));
        assert_eq!(put(&mut fragments, 4, 1, &sample[200..]), Err(Refused::Rejected));
        assert_eq!(put(&mut fragments, 2, 1, &sample[100..150]), Err(Refused::Rejected));
        let payload = put(&mut fragments, 1, 2, &sample[..200]).expect("fragments fit").expect("all are there");
        assert_eq!(pool.bytes(payload), sample);
        assert_eq!(budget, 1 << 16);
        pool.release(payload);
        assert_eq!(pool.used_bytes(), 0);
    }

    #[test]
    fn missing_fragments_are_named_from_the_first_one() {
        let (mut pool, mut budget) = (PayloadPool::new(1 << 20), 1 << 20);
        let mut fragments = Fragments::new();
        let bytes = [7; 100];
        for number in [1, 2, 4] {
            assert_eq!(fragments.insert(&fragment(1, number, 1, 100_000, &bytes), &mut pool, &mut budget), Ok(None));
        }
        let missing = fragments.missing(SequenceNumber(1), &pool).expect("it is incomplete");
        assert_eq!(missing.base(), 3);
        assert!(missing.contains(3) && !missing.contains(4) && missing.contains(5) && missing.contains(258));
        assert_eq!(fragments.missing(SequenceNumber(2), &pool), None);
    }

    #[test]
    fn half_open_samples_are_bounded_and_the_oldest_win() {
        let (mut pool, mut budget) = (PayloadPool::new(1 << 20), 50_000);
        let mut fragments = Fragments::new();
        let bytes = [7; 100];
        for sn in 10..30 {
            let result = fragments.insert(&fragment(sn, 1, 1, 10_000, &bytes), &mut pool, &mut budget);
            assert_eq!(result.is_ok(), sn < 15, "the budget holds five");
        }
        for sn in 1..20 {
            let _ = fragments.insert(&fragment(sn, 1, 1, 200, &bytes), &mut pool, &mut budget);
        }
        assert!(fragments.incomplete().count() <= SAMPLES);
        assert!(fragments.contains(SequenceNumber(1)));
        fragments.drop_below(SequenceNumber::MAX, &mut pool, &mut budget);
        assert_eq!((pool.used_bytes(), budget), (0, 50_000));
    }
}
