//! Boundary marks of the free blocks of a pool: two bits for each unit of memory.

use alloc::vec::Vec;

/// Number of units whose bits share a word: its low half marks the starts of blocks, its high half
/// the ends.
const UNITS: usize = 32;

#[derive(Debug)]
pub(super) struct Marks {
    /// Words up to the highest set bit; the allocation holds all.
    words: Vec<u64>,
}

impl Marks {
    /// Creates marks for `units` units. Nothing is allocated later.
    pub(super) fn new(units: usize) -> Self {
        Self { words: Vec::with_capacity(units.div_ceil(UNITS)) }
    }

    fn is_set(&self, unit: usize, half: usize) -> bool {
        self.words.get(unit / UNITS).is_some_and(|word| word >> (unit % UNITS + half) & 1 != 0)
    }

    /// Reports whether a free block starts at this unit.
    pub(super) fn begins_at(&self, unit: usize) -> bool {
        self.is_set(unit, 0)
    }

    /// Reports whether a free block ends with the unit before this one.
    pub(super) fn ends_before(&self, unit: usize) -> bool {
        unit > 0 && self.is_set(unit - 1, UNITS)
    }

    /// Marks a free block of `count` units, at least one.
    pub(super) fn set(&mut self, unit: usize, count: usize) {
        let last = unit + count - 1;
        if self.words.len() <= last / UNITS {
            self.words.resize(last / UNITS + 1, 0);
        }
        self.words[unit / UNITS] |= 1 << (unit % UNITS);
        self.words[last / UNITS] |= 1 << (last % UNITS + UNITS);
    }

    /// Clears the marks of a block that is no longer free.
    pub(super) fn clear(&mut self, unit: usize, count: usize) {
        let last = unit + count - 1;
        self.words[unit / UNITS] &= !(1 << (unit % UNITS));
        self.words[last / UNITS] &= !(1 << (last % UNITS + UNITS));
    }
}
