//! Payload memory of one endpoint: a block of address space, handed out in size classes.
//!
//! The block is reserved when the pool is made, and written only as far as pieces were handed out ([`Memory`]), so an idle endpoint
//! costs no pages. Freed pieces are used again last-in first-out, which keeps the touched
//! part as small as the largest amount ever in use at once. A piece never changes its class, so memory that was
//! once cut up is one block again only when the pool has been empty; four classes per power of two bound the waste
//! to a quarter. Free pieces form a list within their own memory, so the pool never allocates after it was made.
//!
//! A payload that was lent ([`Lent`]) lies elsewhere: the pool keeps the hold, for as long as the piece is not released, in a
//! table that grows to as many as there ever were at once.

use super::memory::Memory;
use alloc::vec::Vec;
use takt_wire::Lent;

/// A piece of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadRef {
    /// In units of `GRAIN`; of one that lies elsewhere its place in the table.
    offset: u32,
    len: u32,
    /// Which is that of a longer piece if there was no other.
    class: u8,
}

impl PayloadRef {
    pub(crate) const EMPTY: Self = Self { offset: u32::MAX, len: 0, class: 0 };

    pub(crate) fn len(self) -> usize {
        self.len as usize
    }
}

/// Pieces begin at multiples of this many bytes.
const GRAIN: usize = 64;
const CLASSES: usize = 4 * 32;
const NONE: u32 = u32::MAX;
/// Payloads that lie elsewhere for which there is room with the first one; more make it grow.
const LENT_AT_FIRST: usize = 1024;
/// In place of a class: the payload lies elsewhere.
const LENT: u8 = u8::MAX;
/// In place of a class: it lies within another piece, and goes with that.
const WITHIN: u8 = u8::MAX - 1;

#[derive(Debug)]
pub(crate) struct PayloadPool {
    memory: Memory,
    /// First byte that was never handed out.
    fresh: usize,
    /// First free piece of each class; its first four bytes name the next one.
    free: [u32; CLASSES],
    used_bytes: usize,
    /// Payloads that lie elsewhere.
    lent: Vec<Option<Lent>>,
    free_lent: Vec<u32>,
    /// The last one that was copied to be read.
    copy: Vec<u8>,
}

/// The class that holds `len` bytes, and its size.
fn class_of(len: usize) -> (usize, usize) {
    let grains = len.div_ceil(GRAIN).max(1);
    if grains <= 4 {
        return (grains - 1, grains * GRAIN);
    }
    let exponent = (usize::BITS - 1 - (grains - 1).leading_zeros()) as usize;
    let quarter = 1 << (exponent - 2);
    let steps = (grains - (1 << exponent)).div_ceil(quarter);
    (4 * (exponent - 1) + steps - 1, ((1 << exponent) + steps * quarter) * GRAIN)
}

/// The size of the pieces of a class.
fn size_of(class: usize) -> usize {
    if class < 4 {
        return (class + 1) * GRAIN;
    }
    let (exponent, steps) = (class / 4 + 1, class % 4 + 1);
    ((1 << exponent) + steps * (1 << (exponent - 2))) * GRAIN
}

impl PayloadPool {
    /// A pool of `capacity_bytes`.
    pub(crate) fn new(capacity_bytes: usize) -> Self {
        let capacity = capacity_bytes.min((u32::MAX as usize - 1) * GRAIN).next_multiple_of(GRAIN);
        Self {
            memory: Memory::new(capacity),
            fresh: 0,
            free: [NONE; CLASSES],
            used_bytes: 0,
            lent: Vec::new(),
            free_lent: Vec::new(),
            copy: Vec::new(),
        }
    }

    /// What `count` pieces of up to `len` bytes need.
    pub(crate) fn capacity_for(count: usize, len: usize) -> usize {
        count.saturating_mul(class_of(len).1)
    }

    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// A piece of `len` bytes with arbitrary content, or `None` when the pool is exhausted.
    pub(crate) fn allocate(&mut self, len: usize) -> Option<PayloadRef> {
        if len == 0 {
            return Some(PayloadRef::EMPTY);
        }
        if len > self.memory.len() {
            return None;
        }
        let (class, size) = self.class_of(len);
        if self.used_bytes == 0 && self.fresh + size > self.memory.len() {
            self.make_whole();
        }
        let (class, size, offset) = match self.pop(class) {
            Some(offset) => (class, size, offset),
            None if self.fresh + size <= self.memory.len() => {
                let offset = (self.fresh / GRAIN) as u32;
                self.fresh += size;
                self.memory.reach(self.fresh);
                (class, size, offset)
            }
            None => (class + 1..CLASSES).find_map(|larger| Some((larger, self.size_of(larger), self.pop(larger)?)))?,
        };
        self.used_bytes += size;
        Some(PayloadRef { offset, len: len as u32, class: class as u8 })
    }

    /// A payload of `len` bytes and a piece of `side_len` bytes that lives no longer: within the payload's piece where the pool is too
    /// small for two. `None` when the pool is exhausted.
    pub(crate) fn allocate_with_side(&mut self, len: usize, side_len: usize) -> Option<(PayloadRef, PayloadRef)> {
        if self.holds_both(len, side_len) {
            let payload = self.allocate(len)?;
            let Some(side) = self.allocate(side_len) else {
                self.release(payload);
                return None;
            };
            return Some((payload, side));
        }
        let side_at = len.next_multiple_of(GRAIN);
        let both = self.allocate(side_at + side_len)?;
        let offset = both.offset + (side_at / GRAIN) as u32;
        Some((PayloadRef { len: len as u32, ..both }, PayloadRef { offset, len: side_len as u32, class: WITHIN }))
    }

    /// Whether an empty pool holds a piece for each.
    fn holds_both(&self, len: usize, side_len: usize) -> bool {
        class_of(len).1.saturating_add(class_of(side_len).1) <= self.memory.len()
    }

    /// Whether [`allocate_with_side`](Self::allocate_with_side) finds room in an empty pool.
    pub(crate) fn has_room_with_side_ever(&self, len: usize, side_len: usize) -> bool {
        self.holds_both(len, side_len) || self.has_room_ever(len.next_multiple_of(GRAIN).saturating_add(side_len))
    }

    /// The class that holds `len` bytes, and what a piece of it takes: no more than there is.
    fn class_of(&self, len: usize) -> (usize, usize) {
        let (class, size) = class_of(len);
        (class, size.min(self.memory.len()))
    }

    fn size_of(&self, class: usize) -> usize {
        size_of(class).min(self.memory.len())
    }

    /// Whether a payload of that length finds room in a piece once that is released.
    pub(crate) fn is_enough(&self, piece: PayloadRef, len: usize) -> bool {
        piece.len > 0 && piece.class != LENT && self.size_of(usize::from(piece.class)) >= self.class_of(len).1
    }

    fn pop(&mut self, class: usize) -> Option<u32> {
        let offset = self.free[class];
        if offset == NONE {
            return None;
        }
        let start = offset as usize * GRAIN;
        let mut next = [0; 4];
        next.copy_from_slice(&self.memory[start..start + 4]);
        self.free[class] = u32::from_le_bytes(next);
        Some(offset)
    }

    fn push(&mut self, class: usize, offset: u32) {
        let start = offset as usize * GRAIN;
        self.memory[start..start + 4].copy_from_slice(&self.free[class].to_le_bytes());
        self.free[class] = offset;
    }

    pub(crate) fn release(&mut self, piece: PayloadRef) {
        if piece.len == 0 || piece.class == WITHIN {
            return;
        }
        if piece.class == LENT {
            self.lent[piece.offset as usize] = None;
            return self.free_lent.push(piece.offset);
        }
        let class = usize::from(piece.class);
        self.used_bytes -= self.size_of(class);
        self.push(class, piece.offset);
        if self.used_bytes == 0 && self.fresh > self.memory.len() / 2 {
            self.make_whole();
        }
    }

    /// Keeps a payload that lies elsewhere until the piece is released.
    pub(crate) fn adopt(&mut self, lent: Lent) -> PayloadRef {
        let len = lent.piece().len;
        let offset = match self.free_lent.pop() {
            Some(offset) => {
                self.lent[offset as usize] = Some(lent);
                offset
            }
            None => {
                if self.lent.len() == self.lent.capacity() {
                    self.lent.reserve_exact(self.lent.len().max(LENT_AT_FIRST));
                    self.free_lent.reserve_exact(self.lent.capacity());
                }
                self.lent.push(Some(lent));
                (self.lent.len() - 1) as u32
            }
        };
        PayloadRef { offset, len, class: LENT }
    }

    /// The payload of a piece, if that lies elsewhere.
    pub(crate) fn lent(&self, piece: PayloadRef) -> Option<&Lent> {
        if piece.class == LENT { self.lent[piece.offset as usize].as_ref() } else { None }
    }

    /// Octets that it has.
    pub(crate) fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Whether a payload of that length can be here at all.
    pub(crate) fn has_room_ever(&self, len: usize) -> bool {
        len <= self.memory.len()
    }

    /// The bytes of a piece. Of one that another participant lends they are a copy, until the next call; empty if it was
    /// overwritten.
    pub(crate) fn readable(&mut self, piece: PayloadRef) -> &[u8] {
        if let Some(lent) =
            self.lent.get(piece.offset as usize).and_then(Option::as_ref).filter(|_| piece.class == LENT)
            && lent.bytes().is_none()
        {
            self.copy.resize(lent.len(), 0);
            lent.copy_to(0, &mut self.copy);
            if !lent.is_intact() {
                self.copy.clear();
            }
            return &self.copy;
        }
        self.bytes(piece)
    }

    /// Nothing is in use: all memory is one fresh block again.
    fn make_whole(&mut self) {
        self.fresh = 0;
        self.free = [NONE; CLASSES];
    }

    /// Shortens a piece that was just allocated to the length really used. What is cut off rests until the piece is
    /// released.
    pub(crate) fn truncate(&mut self, piece: PayloadRef, len: usize) -> PayloadRef {
        if len == 0 {
            self.release(piece);
            return PayloadRef::EMPTY;
        }
        PayloadRef { len: piece.len.min(len as u32), ..piece }
    }

    /// The bytes of a piece; none of one that another participant lends.
    pub(crate) fn bytes(&self, piece: PayloadRef) -> &[u8] {
        if piece.len == 0 {
            return &[];
        }
        if let Some(lent) = self.lent(piece) {
            return lent.bytes().unwrap_or_default();
        }
        let start = piece.offset as usize * GRAIN;
        &self.memory[start..start + piece.len()]
    }

    pub(crate) fn bytes_mut(&mut self, piece: PayloadRef) -> &mut [u8] {
        if piece.len == 0 {
            return &mut [];
        }
        let start = piece.offset as usize * GRAIN;
        &mut self.memory[start..start + piece.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_length_and_waste_at_most_a_quarter() {
        let mut last = (0, 0);
        for len in (1..100_000).chain([1 << 20, (1 << 20) + 1, 4 << 20, (64 << 20) - 1]) {
            let (class, size) = class_of(len);
            assert!(size >= len && class < CLASSES, "{len} {class} {size}");
            assert_eq!(size, size_of(class));
            assert!(len <= 256 || size * 4 <= (len + GRAIN) * 5, "{len} in {size}");
            assert!(class >= last.0 && size >= last.1, "{len}: {class} {size} after {last:?}");
            assert_eq!(class == last.0 && last.1 != 0, size == last.1, "one class, one size");
            last = (class, size);
        }
    }

    #[test]
    fn pieces_do_not_overlap_and_are_used_again() {
        let mut pool = PayloadPool::new(1 << 20);
        let mut pieces = Vec::new();
        while let Some(piece) = pool.allocate(1000) {
            let mark = pieces.len() as u8;
            pool.bytes_mut(piece).fill(mark);
            pieces.push(piece);
        }
        assert_eq!(pieces.len(), (1 << 20) / 1024);
        for (i, piece) in pieces.iter().enumerate() {
            assert!(pool.bytes(*piece).iter().all(|byte| *byte == i as u8));
        }
        let last = pieces.pop().expect("the pool held pieces");
        pool.release(last);
        assert_eq!(pool.allocate(990).map(|piece| piece.offset), Some(last.offset));
        assert_eq!(pool.allocate(10), None);
        pool.release(last);
        for piece in pieces {
            pool.release(piece);
        }
        assert_eq!(pool.used_bytes(), 0);
        let whole = pool.allocate(1 << 20).expect("an empty pool is one block");
        assert_eq!(whole.len(), 1 << 20);
        assert_eq!(pool.allocate((1 << 20) + 1), None);
    }

    #[test]
    fn what_is_cut_off_a_piece_comes_back_with_it() {
        let mut pool = PayloadPool::new(1 << 20);
        let held = pool.allocate(100).expect("the pool is empty");
        for _ in 0..100 {
            let piece = pool.allocate(300_000).expect("the one before was released");
            let piece = pool.truncate(piece, 10);
            assert_eq!(pool.bytes(piece).len(), 10);
            pool.release(piece);
        }
        let nothing = pool.allocate(0).expect("nothing always fits");
        assert_eq!(pool.truncate(nothing, 0), PayloadRef::EMPTY);
        let piece = pool.allocate(100).expect("there is room");
        assert_eq!(pool.truncate(piece, 0), PayloadRef::EMPTY);
        pool.release(held);
        assert_eq!(pool.used_bytes(), 0);
    }

    #[test]
    fn an_empty_pool_is_one_block_whatever_it_was_cut_into() {
        let mut pool = PayloadPool::new(1 << 20);
        let pieces: Vec<_> = (0..400).map(|_| pool.allocate(1_000).expect("there is room")).collect();
        pieces.into_iter().for_each(|piece| pool.release(piece));
        let large = pool.allocate(900_000).expect("an empty pool is one block");
        assert_eq!(pool.allocate(400_000), None);
        pool.release(large);
        assert!(pool.allocate(400_000).is_some());
    }

    /// Resident memory of this process, in octets.
    #[cfg(target_os = "linux")]
    fn resident_bytes() -> usize {
        extern crate std;
        let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
        let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
        resident.expect("the second number") * 4096
    }

    /// An allocator that has freed such a block once may take the next one from memory that it has to zero.
    #[cfg(target_os = "linux")]
    #[test]
    fn unused_pool_takes_no_pages_whatever_was_freed_before() {
        const CAPACITY: usize = 24 << 20;
        for _ in 0..3 {
            let mut pool = PayloadPool::new(CAPACITY);
            let all = pool.allocate(CAPACITY).expect("it is empty");
            pool.bytes_mut(all).fill(7);
            drop(pool);
            drop(PayloadPool::new(CAPACITY));
        }
        let before = resident_bytes();
        let pools: Vec<PayloadPool> = (0..8).map(|_| PayloadPool::new(CAPACITY)).collect();
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < CAPACITY, "8 unused pools of {CAPACITY} octets take {grown}");
        drop(pools);
    }
}
