//! Where the free pieces of a pool begin and end: two bits for each unit of memory.

use alloc::vec::Vec;

/// Units whose bits share a word: the low half of it has the begins, the high half the ends.
const UNITS: usize = 32;

#[derive(Debug)]
pub(super) struct Marks {
    /// As far as bits were set; its allocation holds all.
    words: Vec<u64>,
}

impl Marks {
    /// For so many units. Nothing is allocated later.
    pub(super) fn new(units: usize) -> Self {
        Self { words: Vec::with_capacity(units.div_ceil(UNITS)) }
    }

    fn is_set(&self, unit: usize, half: usize) -> bool {
        self.words.get(unit / UNITS).is_some_and(|word| word >> (unit % UNITS + half) & 1 != 0)
    }

    /// Whether a free piece begins with this unit.
    pub(super) fn begins_at(&self, unit: usize) -> bool {
        self.is_set(unit, 0)
    }

    /// Whether a free piece ends with the unit before this one.
    pub(super) fn ends_before(&self, unit: usize) -> bool {
        unit > 0 && self.is_set(unit - 1, UNITS)
    }

    /// A free piece of so many units, at least one, begins here.
    pub(super) fn set(&mut self, unit: usize, count: usize) {
        let last = unit + count - 1;
        if self.words.len() <= last / UNITS {
            self.words.resize(last / UNITS + 1, 0);
        }
        self.words[unit / UNITS] |= 1 << (unit % UNITS);
        self.words[last / UNITS] |= 1 << (last % UNITS + UNITS);
    }

    /// The piece is free no more.
    pub(super) fn clear(&mut self, unit: usize, count: usize) {
        let last = unit + count - 1;
        self.words[unit / UNITS] &= !(1 << (unit % UNITS));
        self.words[last / UNITS] &= !(1 << (last % UNITS + UNITS));
    }
}
