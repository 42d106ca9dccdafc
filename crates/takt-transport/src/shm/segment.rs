//! The segment of a participant: memory in which it lends payloads to all that it has lanes to.
//!
//! | words | |
//! |---|---|
//! | 0 .. *slots* | of each slot, how often it has been given out |
//! | *slots* .. | payloads |
//!
//! A *slot* is a piece of the segment, from 4 KiB on, in four sizes for each power of two. It goes round: given out as a
//! [`Loan`], to be written by one; finished as a [`Lent`], to be read by all; and free again when nobody here has that any
//! more, nor any lane a hold on it ([`Mapping::holds`]). Pages become real when they are written, and slots that were
//! freed last are used first, so a segment costs what was lent at once. There are at most [`SLOTS_MAX`] slots, a multiple of 512, so that
//! payloads begin with a page; when all are free and the sizes no longer fit, the segment is cut up anew.
//!
//! What is lent cannot be written by anybody: here not, since a [`Loan`] is gone when it is finished and another one is
//! made only when all holds are; elsewhere not, since the kernel lets nobody else map the segment to write. So the
//! participant itself reads its payloads as slices. Others do not know that this side keeps the rules, and copy
//! ([`super::borrowed`]).

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use takt_wire::{Lent, LentMemory, Piece};

use super::mapping::Mapping;

/// Slots of a segment, at most.
pub(super) const SLOTS_MAX: usize = 65_536;

/// What the number of slots is a multiple of.
pub(super) const SLOTS_STEP: usize = SLOT_LEN_MIN / 8;

/// The least slot, and what all are multiples of, in bytes.
const SLOT_LEN_MIN: usize = 4096;

/// Most words of a segment of another process: 16 GiB.
const SEGMENT_WORDS_MAX: usize = (16 << 30) / 8;

/// Slots that one call looks at to see whether they are free again.
const LOOKS_PER_LOAN: usize = 4;

/// Whether a segment has so many slots.
pub(super) fn are_slots(slots: usize) -> bool {
    (1..=SLOTS_MAX).contains(&slots) && slots.is_multiple_of(SLOTS_STEP)
}

/// Whether so many words are a segment of so many slots: a word for each, and whole pages.
pub(super) fn is_segment(words: usize, slots: usize) -> bool {
    let payloads = words.checked_sub(slots).filter(|_| words <= SEGMENT_WORDS_MAX && are_slots(slots));
    payloads.is_some_and(|payloads| payloads > 0 && (payloads * 8).is_multiple_of(SLOT_LEN_MIN))
}

/// The size of the slots for payloads of `len` bytes, which is at most that of a segment.
fn slot_len(len: usize) -> usize {
    if len <= SLOT_LEN_MIN {
        return SLOT_LEN_MIN;
    }
    let quarter = 1 << (len.ilog2() - 2);
    len.next_multiple_of(quarter).next_multiple_of(SLOT_LEN_MIN)
}

/// A slot, for those who lend it.
struct Slot {
    memory: Arc<Mapping>,
    /// Its first byte, and how many there are.
    start: usize,
    len: usize,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("start", &self.start).field("len", &self.len).finish_non_exhaustive()
    }
}

impl Slot {
    /// The first bytes of the slot.
    ///
    /// # Safety
    /// No [`Loan`] of the slot is there: nobody writes.
    unsafe fn bytes(&self, len: usize) -> &[u8] {
        // SAFETY: `len` bytes of a slot lie within the mapping, which lives as long as `self`; any are valid. Nobody writes, here
        // as the caller promises, elsewhere since nobody else can.
        unsafe { slice::from_raw_parts(self.memory.octet(self.start), len.min(self.len)) }
    }
}

/// Others have a slot as this only once its loan was finished, and no loan of it is made until they are gone.
impl LentMemory for Slot {
    fn bytes(&self, piece: &Piece) -> Option<&[u8]> {
        // SAFETY: see above.
        Some(unsafe { self.bytes(piece.len as usize) })
    }

    fn copy_to(&self, piece: &Piece, from: usize, to: &mut [u8]) {
        // SAFETY: see above.
        let bytes = unsafe { self.bytes(piece.len as usize) };
        let bytes = bytes.get(from..).unwrap_or_default();
        let len = bytes.len().min(to.len());
        to[..len].copy_from_slice(&bytes[..len]);
    }

    fn is_intact(&self, _: &Piece) -> bool {
        true
    }

    // Whoever is in this process holds the slot itself.
    fn retain(&self, _: &Piece) {}

    fn release(&self, _: &Piece) {}
}

/// Memory for one payload, until it is [finished](Self::finish). Dropped instead, it is free again.
#[derive(Debug)]
pub struct Loan {
    slot: Arc<Slot>,
    piece: Piece,
}

impl Loan {
    /// The memory, of the length that was asked for. Holds what was last written there by this participant, or zeros.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `piece.len` bytes of the slot lie within the mapping, which lives as long as the slot; any are valid. There is
        // one loan of a slot at a time and no hold on it meanwhile ([`Segment::loan`]), and nobody else maps it to write.
        unsafe { slice::from_raw_parts_mut(self.slot.memory.octet(self.slot.start), self.piece.len as usize) }
    }

    /// As [`bytes_mut`](Self::bytes_mut), to look at.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: a loan is written by means of `&mut` alone.
        unsafe { self.slot.bytes(self.piece.len as usize) }
    }

    /// Its first `len` bytes are the payload.
    #[must_use]
    pub fn finish(self, len: usize) -> Lent {
        let len = self.piece.len.min(u32::try_from(len).unwrap_or(u32::MAX));
        Lent::new(self.slot, Piece { len, ..self.piece })
    }
}

/// The slots of one size.
#[derive(Debug)]
struct Class {
    len: usize,
    /// Free; the last one is used next.
    free: Vec<u32>,
    /// Given out, or not found free again yet; the oldest is looked at next.
    out: VecDeque<u32>,
}

/// A participant's own segment.
#[derive(Debug)]
pub(super) struct Segment {
    memory: Arc<Mapping>,
    file: OwnedFd,
    slots_max: usize,
    /// All that there can be, once there was one.
    slots: Vec<Arc<Slot>>,
    /// So many of them are cut.
    cut: usize,
    /// Ascending by size.
    classes: Vec<Class>,
    /// The first byte that no slot has.
    fresh: usize,
}

impl Segment {
    /// A segment for payloads of so many bytes together, rounded up, in so many slots ([`are_slots`]).
    pub(super) fn create(bytes: usize, slots_max: usize) -> io::Result<Self> {
        let words = slots_max + bytes.next_multiple_of(SLOT_LEN_MIN) / 8;
        let (memory, file) = Mapping::create_segment(words)?;
        let (memory, fresh) = (Arc::new(memory), slots_max * 8);
        Ok(Self { memory, file, slots_max, slots: Vec::new(), cut: 0, classes: Vec::new(), fresh })
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(super) fn words(&self) -> usize {
        self.memory.len()
    }

    pub(super) fn slots(&self) -> usize {
        self.slots_max
    }

    /// Whether a payload lies in a slot of this segment.
    pub(super) fn owns(&self, lent: &Lent) -> bool {
        self.slots.get(lent.piece().slot as usize).is_some_and(|slot| lent.lies_in(slot))
    }

    /// Memory for a payload of `len` bytes; `None` if none is free. `is_held` says whether a lane has a hold on a slot. Allocates
    /// for the first of all, and for the first of a size.
    pub(super) fn loan(&mut self, len: usize, is_held: impl Fn(u32) -> bool) -> Option<Loan> {
        if len == 0 || len > (self.memory.len() - self.slots_max) * 8 {
            return None;
        }
        let size = slot_len(len);
        let found =
            self.find(size, &is_held).or_else(|| self.cut_anew(&is_held).then(|| self.find(size, &is_held))?)?;
        let slot = Arc::clone(&self.slots[found as usize]);
        let word = &self.memory.words(0..self.slots_max)[found as usize];
        // Never 0, not even after 2^32 loans.
        let generation = (word.load(Ordering::Relaxed) as u32).wrapping_add(1).max(1);
        word.store(u64::from(generation), Ordering::Relaxed);
        // Who still copies what lay here finds that it has changed before it finds the change.
        fence(Ordering::Release);
        let grain = (slot.start / Piece::GRAIN) as u32;
        Some(Loan { slot, piece: Piece { slot: found, generation, grain, len: len as u32 } })
    }

    /// A slot of at least `size` bytes that nobody holds: free, new, or a larger one.
    fn find(&mut self, size: usize, is_held: &impl Fn(u32) -> bool) -> Option<u32> {
        let first = self.classes.partition_point(|class| class.len < size);
        let fits = self.classes.get(first).is_some_and(|class| class.len == size);
        if fits && let Some(slot) = self.take_from(first, is_held) {
            return Some(slot);
        }
        if self.cut < self.slots_max && self.fresh + size <= self.memory.len() * 8 {
            return Some(self.cut_one(first, size));
        }
        (first + usize::from(fits)..self.classes.len()).find_map(|larger| self.take_from(larger, is_held))
    }

    /// A new slot of a class that is there, or is to be there.
    #[cold]
    fn cut_one(&mut self, class: usize, size: usize) -> u32 {
        if self.slots.is_empty() {
            let slot = || Arc::new(Slot { memory: Arc::clone(&self.memory), start: self.fresh, len: 0 });
            self.slots = std::iter::repeat_with(slot).take(self.slots_max).collect();
        }
        if self.classes.get(class).is_none_or(|known| known.len != size) {
            let (free, out) = (Vec::with_capacity(self.slots_max), VecDeque::with_capacity(self.slots_max));
            self.classes.insert(class, Class { len: size, free, out });
        }
        let slot =
            Arc::get_mut(&mut self.slots[self.cut]).expect("one that is not cut was never given out, or is free");
        (slot.start, slot.len) = (self.fresh, size);
        self.classes[class].out.push_back(self.cut as u32);
        self.fresh += size;
        self.cut += 1;
        self.cut as u32 - 1
    }

    /// A free slot of a class. Looks at [`LOOKS_PER_LOAN`] of those that were given out.
    fn take_from(&mut self, class: usize, is_held: &impl Fn(u32) -> bool) -> Option<u32> {
        let Self { classes, slots, .. } = self;
        let class = &mut classes[class];
        for _ in 0..LOOKS_PER_LOAN.min(class.out.len()) {
            let slot = class.out.pop_front()?;
            if Arc::get_mut(&mut slots[slot as usize]).is_some() && !is_held(slot) {
                class.free.push(slot);
            } else {
                class.out.push_back(slot);
            }
        }
        let slot = class.free.pop()?;
        class.out.push_back(slot);
        Some(slot)
    }

    /// If all slots are free, there are none. Says whether that is so.
    #[cold]
    fn cut_anew(&mut self, is_held: &impl Fn(u32) -> bool) -> bool {
        let mut cut = (0..).zip(&mut self.slots[..self.cut]);
        let are_free = cut.all(|(at, slot)| Arc::get_mut(slot).is_some() && !is_held(at));
        if are_free {
            self.classes.clear();
            (self.cut, self.fresh) = (0, self.slots_max * 8);
        }
        are_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: fn(u32) -> bool = |_| false;

    fn segment() -> Segment {
        Segment::create(1 << 20, 1024).expect("memory")
    }

    #[test]
    fn slots_hold_their_payload_and_waste_at_most_a_quarter() {
        for len in (1..70_000).chain([1 << 20, (1 << 20) + 1, 3 << 20, (64 << 20) - 1]) {
            let size = slot_len(len);
            assert!(size >= len && size.is_multiple_of(SLOT_LEN_MIN), "{len} in {size}");
            assert!(size <= len / 4 * 5 + SLOT_LEN_MIN, "{len} in {size}");
            assert_eq!(slot_len(size), size, "a size is its own");
        }
    }

    #[test]
    fn loans_do_not_overlap_and_are_what_was_written() {
        let mut segment = segment();
        let mut loans: Vec<_> = std::iter::from_fn(|| segment.loan(100_000, NOBODY)).collect();
        assert_eq!(loans.len(), (1 << 20) / slot_len(100_000));
        for (n, loan) in loans.iter_mut().enumerate() {
            loan.bytes_mut().fill(n as u8);
        }
        let all: Vec<_> = loans.into_iter().map(|loan| loan.finish(99_999)).collect();
        for (n, lent) in all.iter().enumerate() {
            assert_eq!((lent.len(), lent.bytes()), (99_999, Some(&vec![n as u8; 99_999][..])));
            let mut some = [1, 1, 77];
            lent.copy_to(99_997, &mut some);
            assert_eq!(some, [n as u8, n as u8, 77], "what is beyond the end is left");
            assert!(segment.owns(lent) && !self::segment().owns(lent));
        }
    }

    #[test]
    fn a_slot_is_free_when_nobody_has_it_and_no_lane_holds_it() {
        let mut segment = segment();
        let lent = segment.loan(1 << 20, NOBODY).expect("all of it").finish(5);
        let first = lent.piece();
        let other = lent.clone();
        assert!(segment.loan(1, NOBODY).is_none());
        drop(lent);
        assert!(segment.loan(1, NOBODY).is_none());
        drop(other);
        assert!(segment.loan(1, |slot| slot == first.slot).is_none());
        let second = segment.loan(1, NOBODY).expect("free").piece;
        assert_eq!((second.slot, second.grain), (first.slot, first.grain));
        assert_ne!(second.generation, first.generation);
    }

    #[test]
    fn what_was_freed_last_is_used_first() {
        let mut segment = segment();
        let mut seen = std::collections::BTreeSet::new();
        let mut last = None;
        for _ in 0..100 {
            let lent = segment.loan(5000, NOBODY).expect("there is room").finish(5000);
            seen.insert(lent.piece().slot);
            last = Some(lent);
        }
        assert!(seen.len() <= 3, "{seen:?}");
        drop(last);
    }

    #[test]
    fn a_segment_that_is_free_is_cut_anew() {
        let mut segment = segment();
        let small: Vec<_> = std::iter::from_fn(|| segment.loan(4000, NOBODY)).collect();
        assert_eq!(small.len(), (1 << 20) / SLOT_LEN_MIN);
        assert!(segment.loan(1 << 20, NOBODY).is_none());
        drop(small);
        assert!(segment.loan(1 << 20, |slot| slot == 7).is_none(), "one is held");
        assert!(segment.loan(1 << 20, NOBODY).is_some());
        assert!(segment.loan((1 << 20) + 1, NOBODY).is_none() && segment.loan(0, NOBODY).is_none());
    }
}
