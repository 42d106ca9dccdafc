//! Segment of a participant: memory from which it loans payloads to all its readers.
//!
//! | words | |
//! |---|---|
//! | 0 .. *slots* | generation of each slot: how often it was loaned |
//! | *slots* .. | payloads |
//!
//! A *slot* is a piece of the segment of at least 4 KiB, in four sizes for each power of two. A
//! slot is first a [`Loan`], which one owner writes. It then becomes a [`SharedPayload`], which all
//! read. It is free again when neither this process has it any more nor a connection has a hold on
//! it ([`Mapping::holds`]). Pages become resident when they are written, and the slots freed last
//! are used first, so the cost of a segment is that of its concurrent loans. There are at most
//! [`SLOTS_MAX`] slots, a multiple of 512, so that payloads begin at a page. When all slots are
//! free and the sizes no longer fit, the segment is divided again.
//!
//! A loaned payload is immutable. In this process, finishing consumes the [`Loan`], and another one
//! is made only when all holds are released. In other processes, the kernel refuses a writable
//! mapping of the segment. The participant therefore reads its own payloads as slices. Other
//! processes cannot verify this, and copy ([`super::remote_segment`]).

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use takt_wire::{Piece, SharedPayload, SharedPayloadMemory};

use super::mapping::Mapping;

/// Maximum number of slots of a segment.
pub(super) const SLOTS_MAX: usize = 65_536;

/// The number of slots is a multiple of this.
pub(super) const SLOTS_STEP: usize = SLOT_LEN_MIN / 8;

/// Minimum size of a slot in bytes; every size is a multiple of it.
const SLOT_LEN_MIN: usize = 4096;

/// Maximum number of words in a segment of another process: 16 GiB.
const SEGMENT_WORDS_MAX: usize = (16 << 30) / 8;

/// Maximum number of slots that one call checks for release.
const CHECKS_PER_LOAN: usize = 4;

/// Reports whether a segment can have this number of slots.
pub(super) fn are_slots(slots: usize) -> bool {
    (1..=SLOTS_MAX).contains(&slots) && slots.is_multiple_of(SLOTS_STEP)
}

/// Reports whether a segment of so many slots can have this number of words: one word for each
/// slot, and whole pages.
pub(super) fn is_segment(words: usize, slots: usize) -> bool {
    let payloads = words.checked_sub(slots).filter(|_| words <= SEGMENT_WORDS_MAX && are_slots(slots));
    payloads.is_some_and(|payloads| payloads > 0 && (payloads * 8).is_multiple_of(SLOT_LEN_MIN))
}

/// Returns the size of the slots for payloads of `len` bytes, which is at most that of a segment.
fn slot_len(len: usize) -> usize {
    if len <= SLOT_LEN_MIN {
        return SLOT_LEN_MIN;
    }
    let quarter = 1 << (len.ilog2() - 2);
    len.next_multiple_of(quarter).next_multiple_of(SLOT_LEN_MIN)
}

/// Slot of a segment, as the memory of a loan.
struct Slot {
    memory: Arc<Mapping>,
    /// Offset of the first byte, and the number of bytes.
    start: usize,
    len: usize,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("start", &self.start).field("len", &self.len).finish_non_exhaustive()
    }
}

impl Slot {
    /// Returns the first bytes of the slot.
    ///
    /// # Safety
    /// There must be no [`Loan`] of the slot, so that the slot is not written.
    unsafe fn bytes(&self, len: usize) -> &[u8] {
        // SAFETY: `len` bytes of a slot lie within the mapping, which lives as long as `self`; any
        // are valid. There is no writer: in this process as the caller promises, in others because
        // the kernel prevents it.
        unsafe { slice::from_raw_parts(self.memory.octet(self.start), len.min(self.len)) }
    }
}

/// A slot becomes visible in this form only after its loan was finished, and no loan of it is made
/// until all users are gone.
impl SharedPayloadMemory for Slot {
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

    // Users in this process hold the slot itself.
    fn retain(&self, _: &Piece) {}

    fn release(&self, _: &Piece) {}
}

/// Memory for one payload, until it is [finished](Self::finish). Dropping it frees the slot.
#[derive(Debug)]
pub struct Loan {
    slot: Arc<Slot>,
    piece: Piece,
}

impl Loan {
    /// Returns the memory, of the requested length. Contains what this participant last wrote
    /// there, or zeros.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `piece.len` bytes of the slot lie within the mapping, which lives as long as the
        // slot; any are valid. There is one loan of a slot at a time and no hold on it meanwhile
        // ([`Segment::loan`]), and no other process maps it writable.
        unsafe { slice::from_raw_parts_mut(self.slot.memory.octet(self.slot.start), self.piece.len as usize) }
    }

    /// Returns the memory of [`bytes_mut`](Self::bytes_mut) for reading.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: a loan is written by means of `&mut` alone.
        unsafe { self.slot.bytes(self.piece.len as usize) }
    }

    /// Completes the payload, which is the first `len` bytes.
    #[must_use]
    pub fn finish(self, len: usize) -> SharedPayload {
        let len = self.piece.len.min(u32::try_from(len).unwrap_or(u32::MAX));
        SharedPayload::new(self.slot, Piece { len, ..self.piece })
    }
}

/// Slots of one size.
#[derive(Debug)]
struct Class {
    len: usize,
    /// Free slots; the last one is used next.
    free: Vec<u32>,
    /// Slots on loan, or not yet found to be free; the oldest is checked next.
    loaned: VecDeque<u32>,
}

/// Segment that this participant owns.
#[derive(Debug)]
pub(super) struct Segment {
    memory: Arc<Mapping>,
    file: OwnedFd,
    slots_max: usize,
    /// All slots; allocated with the first loan.
    slots: Vec<Arc<Slot>>,
    /// Number of slots that have memory.
    allocated: usize,
    /// Classes, ascending by size.
    classes: Vec<Class>,
    /// First byte that belongs to no slot.
    unallocated_from: usize,
}

impl Segment {
    /// Creates a segment with the given total size of payloads, rounded up, and number of slots
    /// ([`are_slots`]).
    pub(super) fn create(bytes: usize, slots_max: usize) -> io::Result<Self> {
        let words = slots_max + bytes.next_multiple_of(SLOT_LEN_MIN) / 8;
        let (memory, file) = Mapping::create_segment(words)?;
        let (memory, first_payload) = (Arc::new(memory), slots_max * 8);
        Ok(Self {
            memory,
            file,
            slots_max,
            slots: Vec::new(),
            allocated: 0,
            classes: Vec::new(),
            unallocated_from: first_payload,
        })
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

    /// Reports whether a payload lies in a slot of this segment.
    pub(super) fn owns(&self, payload: &SharedPayload) -> bool {
        self.slots.get(payload.piece().slot as usize).is_some_and(|slot| payload.lies_in(slot))
    }

    /// Returns memory for a payload of `len` bytes; `None` if none is free. `is_held` reports
    /// whether a connection has a hold on a slot. Allocates for the first loan of all, and for the
    /// first of a size.
    pub(super) fn loan(&mut self, len: usize, is_held: impl Fn(u32) -> bool) -> Option<Loan> {
        if len == 0 || len > (self.memory.len() - self.slots_max) * 8 {
            return None;
        }
        let size = slot_len(len);
        let found =
            self.find(size, &is_held).or_else(|| self.repartition(&is_held).then(|| self.find(size, &is_held))?)?;
        let slot = Arc::clone(&self.slots[found as usize]);
        let word = &self.memory.words(0..self.slots_max)[found as usize];
        // Never 0, even after 2^32 loans.
        let generation = (word.load(Ordering::Relaxed) as u32).wrapping_add(1).max(1);
        word.store(u64::from(generation), Ordering::Relaxed);
        // A reader that still copies the former payload sees the new generation before any new
        // byte.
        fence(Ordering::Release);
        let grain = (slot.start / Piece::GRAIN) as u32;
        Some(Loan { slot, piece: Piece { slot: found, generation, grain, len: len as u32 } })
    }

    /// Returns a slot of at least `size` bytes without holds: a free one, a new one, or a larger
    /// one.
    fn find(&mut self, size: usize, is_held: &impl Fn(u32) -> bool) -> Option<u32> {
        let first = self.classes.partition_point(|class| class.len < size);
        let fits = self.classes.get(first).is_some_and(|class| class.len == size);
        if fits && let Some(slot) = self.take_free_slot(first, is_held) {
            return Some(slot);
        }
        if self.allocated < self.slots_max && self.unallocated_from + size <= self.memory.len() * 8 {
            return Some(self.allocate_slot(first, size));
        }
        (first + usize::from(fits)..self.classes.len()).find_map(|larger| self.take_free_slot(larger, is_held))
    }

    /// Makes a new slot of an existing or a new class.
    #[cold]
    fn allocate_slot(&mut self, class: usize, size: usize) -> u32 {
        if self.slots.is_empty() {
            let slot = || Arc::new(Slot { memory: Arc::clone(&self.memory), start: self.unallocated_from, len: 0 });
            self.slots = std::iter::repeat_with(slot).take(self.slots_max).collect();
        }
        if self.classes.get(class).is_none_or(|existing| existing.len != size) {
            let (free, out) = (Vec::with_capacity(self.slots_max), VecDeque::with_capacity(self.slots_max));
            self.classes.insert(class, Class { len: size, free, loaned: out });
        }
        let slot = Arc::get_mut(&mut self.slots[self.allocated]).expect("an uncut slot was never loaned, or is free");
        (slot.start, slot.len) = (self.unallocated_from, size);
        self.classes[class].loaned.push_back(self.allocated as u32);
        self.unallocated_from += size;
        self.allocated += 1;
        self.allocated as u32 - 1
    }

    /// Returns a free slot of a class. Checks [`CHECKS_PER_LOAN`] of those on loan for release.
    fn take_free_slot(&mut self, class: usize, is_held: &impl Fn(u32) -> bool) -> Option<u32> {
        let Self { classes, slots, .. } = self;
        let class = &mut classes[class];
        for _ in 0..CHECKS_PER_LOAN.min(class.loaned.len()) {
            let slot = class.loaned.pop_front()?;
            if Arc::get_mut(&mut slots[slot as usize]).is_some() && !is_held(slot) {
                class.free.push(slot);
            } else {
                class.loaned.push_back(slot);
            }
        }
        let slot = class.free.pop()?;
        class.loaned.push_back(slot);
        Some(slot)
    }

    /// Removes all slots if all are free. Reports whether it did.
    #[cold]
    fn repartition(&mut self, is_held: &impl Fn(u32) -> bool) -> bool {
        let mut cut = (0..).zip(&mut self.slots[..self.allocated]);
        let are_free = cut.all(|(at, slot)| Arc::get_mut(slot).is_some() && !is_held(at));
        if are_free {
            self.classes.clear();
            (self.allocated, self.unallocated_from) = (0, self.slots_max * 8);
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
    fn loans_do_not_overlap_and_keep_their_content() {
        let mut segment = segment();
        let mut loans: Vec<_> = std::iter::from_fn(|| segment.loan(100_000, NOBODY)).collect();
        assert_eq!(loans.len(), (1 << 20) / slot_len(100_000));
        for (n, loan) in loans.iter_mut().enumerate() {
            loan.bytes_mut().fill(n as u8);
        }
        let all: Vec<_> = loans.into_iter().map(|loan| loan.finish(99_999)).collect();
        for (n, payload) in all.iter().enumerate() {
            assert_eq!((payload.len(), payload.bytes()), (99_999, Some(&vec![n as u8; 99_999][..])));
            let mut some = [1, 1, 77];
            payload.copy_to(99_997, &mut some);
            assert_eq!(some, [n as u8, n as u8, 77], "octets beyond the end are unchanged");
            assert!(segment.owns(payload) && !self::segment().owns(payload));
        }
    }

    #[test]
    fn slot_is_free_when_neither_process_nor_connection_holds_it() {
        let mut segment = segment();
        let payload = segment.loan(1 << 20, NOBODY).expect("the whole segment is free").finish(5);
        let first = payload.piece();
        let other = payload.clone();
        assert!(segment.loan(1, NOBODY).is_none());
        drop(payload);
        assert!(segment.loan(1, NOBODY).is_none());
        drop(other);
        assert!(segment.loan(1, |slot| slot == first.slot).is_none());
        let second = segment.loan(1, NOBODY).expect("free").piece;
        assert_eq!((second.slot, second.grain), (first.slot, first.grain));
        assert_ne!(second.generation, first.generation);
    }

    #[test]
    fn slot_freed_last_is_used_first() {
        let mut segment = segment();
        let mut seen = std::collections::BTreeSet::new();
        let mut last = None;
        for _ in 0..100 {
            let payload = segment.loan(5000, NOBODY).expect("the segment has free space").finish(5000);
            seen.insert(payload.piece().slot);
            last = Some(payload);
        }
        assert!(seen.len() <= 3, "{seen:?}");
        drop(last);
    }

    #[test]
    fn segment_without_loans_is_divided_again() {
        let mut segment = segment();
        let small: Vec<_> = std::iter::from_fn(|| segment.loan(4000, NOBODY)).collect();
        assert_eq!(small.len(), (1 << 20) / SLOT_LEN_MIN);
        assert!(segment.loan(1 << 20, NOBODY).is_none());
        drop(small);
        assert!(segment.loan(1 << 20, |slot| slot == 7).is_none(), "one slot is held");
        assert!(segment.loan(1 << 20, NOBODY).is_some());
        assert!(segment.loan((1 << 20) + 1, NOBODY).is_none() && segment.loan(0, NOBODY).is_none());
    }
}
