//! Payload memory pool of one endpoint: reserved address space, allocated in blocks of size
//! classes.
//!
//! The address space is reserved when the pool is created, and written only as far as blocks were
//! allocated ([`Memory`]), so an idle endpoint commits no pages. Four classes per power of two
//! bound the waste of a block to a quarter. Nothing above `used_end` is in use. Free blocks below
//! are listed by class and reused last-in first-out. The touched part therefore never exceeds the
//! largest amount in use at once. The lists are stored in the free blocks, so the pool allocates
//! nothing after its creation.
//!
//! Once a payload finds neither a block of its class nor room above `used_end`, adjacent free
//! blocks are merged in one pass over the free blocks. From then on a released block is merged with
//! its free neighbors (two-level segregated fit, Masmano et al. 2004), until nothing is in use. A
//! payload therefore finds room if there is a contiguous free range of its length. Everything
//! except that one pass takes constant time.
//!
//! A pool for a number of payloads of bounded length has blocks of one size. It holds that number
//! of payloads of any lengths.
//!
//! The memory of a loaned payload ([`SharedPayload`]) lies outside the pool. The pool keeps the
//! loan until the block is released. The table of loans grows to the largest number held at once.

use super::marks::Marks;
use super::memory::Memory;
use alloc::vec::Vec;
use takt_wire::SharedPayload;

/// Block of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadRef {
    /// Offset in units of `GRAIN`; for a loaned payload its index in the table.
    offset: u32,
    len: u32,
    class: u8,
}

impl PayloadRef {
    pub(crate) const EMPTY: Self = Self { offset: u32::MAX, len: 0, class: 0 };

    pub(crate) fn len(self) -> usize {
        self.len as usize
    }
}

/// Alignment of blocks in bytes.
const GRAIN: usize = 64;
const CLASSES: usize = 4 * 32;
const NONE: u32 = u32::MAX;
/// Capacity of the table of loans when the first one arrives; more make it grow.
const LOANS_INITIAL: usize = 1024;
/// Class number of a loaned payload.
const LOANED: u8 = u8::MAX;
/// Class number of a block within another one, with which it is released.
const NESTED: u8 = u8::MAX - 1;

/// Capacity of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolSize {
    bytes: usize,
    /// Minimum length of a block: each fits a payload of this many bytes.
    payload_len: usize,
}

impl PoolSize {
    /// Returns the size for `count` payloads of up to `len` bytes each, if that is within the
    /// limit.
    pub(crate) fn of_payloads(count: usize, len: usize, bytes_max: usize) -> Self {
        let bytes = PayloadPool::capacity_for(count, len);
        if bytes <= bytes_max { Self { bytes, payload_len: len } } else { bytes_max.into() }
    }
}

impl From<usize> for PoolSize {
    fn from(bytes: usize) -> Self {
        Self { bytes, payload_len: 0 }
    }
}

#[derive(Debug)]
pub(crate) struct PayloadPool {
    memory: Memory,
    /// First byte above all blocks.
    used_end: usize,
    /// First free block of each class, in units of `GRAIN`. A merged block is listed in the largest
    /// class that it can serve.
    free: [u32; CLASSES],
    /// Adjacent free blocks were merged, and are merged on release.
    coalesces: bool,
    /// Number of free blocks that are not merged.
    uncoalesced: usize,
    /// Number of blocks merged since the last query.
    steps: usize,
    /// Set of classes with a merged block.
    has_free: u128,
    /// Boundaries of free blocks.
    marks: Marks,
    /// Class of the shortest blocks.
    class_min: usize,
    used_bytes: usize,
    /// Loaned payloads.
    loans: Vec<Option<SharedPayload>>,
    free_loans: Vec<u32>,
    /// Copy of the loaned payload that was read last.
    copy: Vec<u8>,
}

/// Offset at which a free block stores the next one of its class. A merged block also stores the
/// previous one and its length, in units of `GRAIN`, and repeats its length in its last four bytes.
const NEXT: usize = 0;
const PREVIOUS: usize = 4;
const LENGTH: usize = 8;

/// Returns the class that holds `len` bytes, and its size.
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

/// Returns the size of the blocks of a class.
fn size_of(class: usize) -> usize {
    if class < 4 {
        return (class + 1) * GRAIN;
    }
    let (exponent, steps) = (class / 4 + 1, class % 4 + 1);
    ((1 << exponent) + steps * (1 << (exponent - 2))) * GRAIN
}

/// Returns the largest class whose blocks have at most this many grains.
fn class_within(grains: usize) -> usize {
    let (class, size) = class_of(grains * GRAIN);
    if size == grains * GRAIN { class } else { class - 1 }
}

impl PayloadPool {
    pub(crate) fn new(size: PoolSize) -> Self {
        let capacity = size.bytes.min((u32::MAX as usize - 1) * GRAIN).next_multiple_of(GRAIN);
        Self {
            memory: Memory::new(capacity),
            used_end: 0,
            free: [NONE; CLASSES],
            coalesces: false,
            uncoalesced: 0,
            steps: 0,
            has_free: 0,
            marks: Marks::new(capacity / GRAIN),
            class_min: class_of(size.payload_len).0,
            used_bytes: 0,
            loans: Vec::new(),
            free_loans: Vec::new(),
            copy: Vec::new(),
        }
    }

    /// Returns the memory for `count` payloads of up to `len` bytes.
    pub(crate) fn capacity_for(count: usize, len: usize) -> usize {
        count.saturating_mul(class_of(len).1)
    }

    /// Returns the free octets, contiguous or not.
    pub(crate) fn free_bytes(&self) -> usize {
        self.memory.len() - self.used_bytes
    }

    /// Returns the octets that a block takes.
    pub(crate) fn bytes_of(&self, piece: PayloadRef) -> usize {
        let has_own_block = piece.len > 0 && piece.class < NESTED;
        if has_own_block { self.size_of(usize::from(piece.class)) } else { 0 }
    }

    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Returns the most free blocks that one call of [`allocate`](Self::allocate) may merge.
    pub(crate) fn steps_max(&self) -> usize {
        self.uncoalesced
    }

    /// Takes the number of free blocks that were merged in one pass since the last call.
    pub(crate) fn take_steps(&mut self) -> usize {
        core::mem::take(&mut self.steps)
    }

    /// Allocates a block of `len` bytes with arbitrary content; `None` if no contiguous free range
    /// suffices. May merge all free blocks.
    pub(crate) fn allocate(&mut self, len: usize) -> Option<PayloadRef> {
        let piece = self.allocate_without_coalescing(len);
        if piece.is_some() || self.coalesces {
            return piece;
        }
        self.coalesce_all();
        self.allocate_without_coalescing(len)
    }

    /// As [`Self::allocate`], without merging.
    pub(crate) fn allocate_without_coalescing(&mut self, len: usize) -> Option<PayloadRef> {
        if len == 0 {
            return Some(PayloadRef::EMPTY);
        }
        if len > self.memory.len() {
            return None;
        }
        let (class, size) = self.class_of(len);
        let start = match self.coalesces {
            false => self.pop(class),
            true => self.split(class, size),
        };
        let start = match start {
            Some(start) => start,
            None if self.used_end + size <= self.memory.len() => {
                let start = self.used_end;
                self.used_end += size;
                self.memory.initialize_up_to(self.used_end);
                start
            }
            None => return None,
        };
        self.used_bytes += size;
        Some(PayloadRef { offset: (start / GRAIN) as u32, len: len as u32, class: class as u8 })
    }

    fn pop(&mut self, class: usize) -> Option<usize> {
        let start = self.free[class];
        if start == NONE {
            return None;
        }
        let start = start as usize * GRAIN;
        self.free[class] = self.word(start + NEXT);
        self.uncoalesced -= 1;
        Some(start)
    }

    fn push(&mut self, class: usize, start: usize) {
        let next = core::mem::replace(&mut self.free[class], (start / GRAIN) as u32);
        self.set_word(start + NEXT, next);
        self.uncoalesced += 1;
    }

    /// Enables merging, and merges all adjacent free blocks.
    fn coalesce_all(&mut self) {
        self.coalesces = true;
        self.steps += core::mem::take(&mut self.uncoalesced);
        let uncoalesced = core::mem::replace(&mut self.free, [NONE; CLASSES]);
        for (class, mut piece) in uncoalesced.into_iter().enumerate() {
            while piece != NONE {
                let start = piece as usize * GRAIN;
                piece = self.word(start + NEXT);
                self.coalesce(start, self.size_of(class));
            }
        }
    }

    /// Frees a block and merges it with its free neighbors.
    fn coalesce(&mut self, own: usize, len: usize) {
        let own_end = own + len;
        let (start, end) = self.coalesced(own, own_end);
        if start < own {
            self.remove_free(start);
        }
        if end > own_end {
            self.remove_free(own_end);
        }
        if end == self.used_end {
            self.used_end = start;
        } else {
            self.insert_free(start, end - start);
        }
    }

    /// Resets the pool to one free block when nothing is in use.
    fn reset_if_empty(&mut self) {
        (self.used_end, self.uncoalesced) = (0, 0);
        (self.coalesces, self.has_free) = (false, 0);
        self.free = [NONE; CLASSES];
    }

    /// Takes `size` bytes from a sufficiently long merged block; the rest stays free.
    fn split(&mut self, class: usize, size: usize) -> Option<usize> {
        let classes = self.has_free >> class;
        if classes == 0 {
            return None;
        }
        let start = self.free[class + classes.trailing_zeros() as usize] as usize * GRAIN;
        let len = self.remove_free(start);
        if len > size {
            self.insert_free(start + size, len - size);
        }
        Some(start)
    }

    /// Allocates a payload of `len` bytes and a block of `side_len` bytes that is released no
    /// later. The second lies within the payload's block if the pool is too small for two. `None`
    /// when the pool is exhausted.
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
        Some((PayloadRef { len: len as u32, ..both }, PayloadRef { offset, len: side_len as u32, class: NESTED }))
    }

    /// Reports whether an empty pool holds a block for each.
    fn holds_both(&self, len: usize, side_len: usize) -> bool {
        self.class_of(len).1.saturating_add(self.class_of(side_len).1) <= self.memory.len()
    }

    /// Reports whether [`allocate_with_side`](Self::allocate_with_side) succeeds in an empty pool.
    pub(crate) fn has_room_with_side_ever(&self, len: usize, side_len: usize) -> bool {
        self.holds_both(len, side_len) || self.has_room_ever(len.next_multiple_of(GRAIN).saturating_add(side_len))
    }

    /// Returns the class of blocks for `len` bytes, and their length, limited to the capacity.
    fn class_of(&self, len: usize) -> (usize, usize) {
        let class = class_of(len).0.max(self.class_min);
        (class, self.size_of(class))
    }

    fn size_of(&self, class: usize) -> usize {
        size_of(class).min(self.memory.len())
    }

    /// Reports whether a payload of that length finds room once a block is released, if it finds
    /// none now.
    pub(crate) fn is_enough(&self, piece: PayloadRef, len: usize) -> bool {
        if piece.len == 0 || piece.class == LOANED || !self.has_room_ever(len) {
            return false;
        }
        let own = piece.offset as usize * GRAIN;
        let (start, end) = self.coalesced(own, own + self.size_of(usize::from(piece.class)));
        let end = if end == self.used_end { self.memory.len() } else { end };
        end - start >= self.class_of(len).1
    }

    /// Returns a block together with its free neighbors, as far as these are merged.
    fn coalesced(&self, start: usize, end: usize) -> (usize, usize) {
        let before = if self.marks.ends_before(start / GRAIN) { self.word(start - 4) } else { 0 };
        let behind = if self.marks.begins_at(end / GRAIN) { self.word(end + LENGTH) } else { 0 };
        (start - before as usize * GRAIN, end + behind as usize * GRAIN)
    }

    fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.memory[at..at + 4]);
        u32::from_le_bytes(word)
    }

    fn set_word(&mut self, at: usize, word: u32) {
        self.memory[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Lists a merged block.
    fn insert_free(&mut self, start: usize, len: usize) {
        let (grain, grains) = ((start / GRAIN) as u32, len / GRAIN);
        let class = class_within(grains);
        let next = core::mem::replace(&mut self.free[class], grain);
        if next != NONE {
            self.set_word(next as usize * GRAIN + PREVIOUS, grain);
        }
        self.has_free |= 1 << class;
        self.set_word(start + NEXT, next);
        self.set_word(start + PREVIOUS, NONE);
        self.set_word(start + LENGTH, grains as u32);
        self.set_word(start + len - 4, grains as u32);
        self.marks.set(start / GRAIN, grains);
    }

    /// Removes a merged block from its list; returns its length.
    fn remove_free(&mut self, start: usize) -> usize {
        let (next, previous) = (self.word(start + NEXT), self.word(start + PREVIOUS));
        let grains = self.word(start + LENGTH) as usize;
        if next != NONE {
            self.set_word(next as usize * GRAIN + PREVIOUS, previous);
        }
        if previous != NONE {
            self.set_word(previous as usize * GRAIN + NEXT, next);
        } else {
            let class = class_within(grains);
            self.free[class] = next;
            if next == NONE {
                self.has_free &= !(1 << class);
            }
        }
        self.marks.clear(start / GRAIN, grains);
        grains * GRAIN
    }

    pub(crate) fn release(&mut self, piece: PayloadRef) {
        if piece.len == 0 || piece.class == NESTED {
            return;
        }
        if piece.class == LOANED {
            self.loans[piece.offset as usize] = None;
            return self.free_loans.push(piece.offset);
        }
        let (class, start) = (usize::from(piece.class), piece.offset as usize * GRAIN);
        let size = self.size_of(class);
        self.used_bytes -= size;
        match self.coalesces {
            false => self.push(class, start),
            true => self.coalesce(start, size),
        }
        if self.used_bytes == 0 && (self.coalesces || self.used_end > self.memory.len() / 2) {
            self.reset_if_empty();
        }
    }

    /// Keeps the loan of a payload until the block is released.
    pub(crate) fn insert_loan(&mut self, loan: SharedPayload) -> PayloadRef {
        let len = loan.piece().len;
        let offset = match self.free_loans.pop() {
            Some(offset) => {
                self.loans[offset as usize] = Some(loan);
                offset
            }
            None => {
                if self.loans.len() == self.loans.capacity() {
                    self.loans.reserve_exact(self.loans.len().max(LOANS_INITIAL));
                    self.free_loans.reserve_exact(self.loans.capacity());
                }
                self.loans.push(Some(loan));
                (self.loans.len() - 1) as u32
            }
        };
        PayloadRef { offset, len, class: LOANED }
    }

    /// Returns the loan of a block, if its payload is loaned.
    pub(crate) fn loan(&self, piece: PayloadRef) -> Option<&SharedPayload> {
        if piece.class == LOANED { self.loans[piece.offset as usize].as_ref() } else { None }
    }

    /// Returns the capacity in octets.
    pub(crate) fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Reports whether a payload of that length fits into an empty pool.
    pub(crate) fn has_room_ever(&self, len: usize) -> bool {
        len <= self.memory.len()
    }

    /// Returns the bytes of a block. Those of a payload loaned by another participant are a copy,
    /// valid until the next call; empty if the memory was overwritten.
    pub(crate) fn readable(&mut self, piece: PayloadRef) -> &[u8] {
        if let Some(loan) =
            self.loans.get(piece.offset as usize).and_then(Option::as_ref).filter(|_| piece.class == LOANED)
            && loan.bytes().is_none()
        {
            self.copy.resize(loan.len(), 0);
            loan.copy_to(0, &mut self.copy);
            if !loan.is_intact() {
                self.copy.clear();
            }
            return &self.copy;
        }
        self.bytes(piece)
    }

    /// Shortens a block that was just allocated to the used length. The remainder stays unused
    /// until the block is released.
    pub(crate) fn truncate(&mut self, piece: PayloadRef, len: usize) -> PayloadRef {
        if len == 0 {
            self.release(piece);
            return PayloadRef::EMPTY;
        }
        PayloadRef { len: piece.len.min(len as u32), ..piece }
    }

    /// Returns the bytes of a block; empty for a payload loaned by another participant.
    pub(crate) fn bytes(&self, piece: PayloadRef) -> &[u8] {
        if piece.len == 0 {
            return &[];
        }
        if let Some(loan) = self.loan(piece) {
            return loan.bytes().unwrap_or_default();
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
mod tests;
