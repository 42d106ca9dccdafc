//! Set of sequence numbers in a window of 256 numbers, the length of a `SequenceNumberSet`
//! (RTPS 2.5 §9.4.2.6). The base moves only while the set is empty.

use takt_wire::{SequenceNumber, SequenceNumberSet};

/// Number of sequence numbers in the window.
const LEN: i64 = 256;

/// Set of sequence numbers from `base` to `base + 255`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SequenceWindow {
    base: i64,
    words: [u64; LEN as usize / 64],
}

impl SequenceWindow {
    pub(crate) const EMPTY: Self = Self { base: 0, words: [0; 4] };

    pub(crate) fn from_set(set: &SequenceNumberSet) -> Self {
        let mut window = Self { base: set.base().0, words: [0; 4] };
        for number in set.iter() {
            window.insert(number);
        }
        window
    }

    /// Adds a number. Returns whether it lies within the window. If the set is empty, the window
    /// moves as far as needed to contain the number.
    pub(crate) fn insert(&mut self, number: SequenceNumber) -> bool {
        if self.is_empty() {
            self.base = self.base.max(number.0 - (LEN - 1)).min(number.0);
        }
        let Some(offset) = self.offset(number) else { return false };
        self.words[offset / 64] |= 1 << (offset % 64);
        true
    }

    /// Reports whether a number lies within the window, or the window can move to it.
    pub(crate) fn has_room(&self, number: SequenceNumber) -> bool {
        self.is_empty() || self.offset(number).is_some()
    }

    pub(crate) fn contains(&self, number: SequenceNumber) -> bool {
        self.offset(number).is_some_and(|offset| self.words[offset / 64] >> (offset % 64) & 1 != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words == [0; 4]
    }

    pub(crate) fn lowest(&self) -> Option<SequenceNumber> {
        let word = self.words.iter().position(|word| *word != 0)?;
        let offset = word * 64 + self.words[word].trailing_zeros() as usize;
        Some(SequenceNumber(self.base + offset as i64))
    }

    /// Removes all numbers below `end`.
    pub(crate) fn clear_below(&mut self, end: SequenceNumber) {
        let count = self.count_below(end);
        for (word, first) in self.words.iter_mut().zip((0..).step_by(64)) {
            *word &= !low_bits(count.saturating_sub(first));
        }
    }

    /// Removes all numbers from `start` on.
    pub(crate) fn clear_from(&mut self, start: SequenceNumber) {
        let count = self.count_below(start);
        for (word, first) in self.words.iter_mut().zip((0..).step_by(64)) {
            *word &= low_bits(count.saturating_sub(first));
        }
    }

    /// Returns the position of a number in the window; `None` for a number outside of it.
    fn offset(&self, number: SequenceNumber) -> Option<usize> {
        let offset = number.0 - self.base;
        (0..LEN).contains(&offset).then_some(offset as usize)
    }

    /// Returns how many positions of the window lie below `end`, whether or not the set contains
    /// them.
    fn count_below(&self, end: SequenceNumber) -> usize {
        end.0.saturating_sub(self.base).clamp(0, LEN) as usize
    }
}

/// Returns a word whose lowest `count` bits are set.
fn low_bits(count: usize) -> u64 {
    if count < 64 { (1 << count) - 1 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_moves_up_as_numbers_are_cleared() {
        let mut set = SequenceNumberSet::new(SequenceNumber(10));
        for number in [10, 12, 200, 265] {
            assert!(set.insert(SequenceNumber(number)));
        }
        let mut window = SequenceWindow::from_set(&set);
        assert_eq!(window.lowest(), Some(SequenceNumber(10)));
        window.clear_below(SequenceNumber(13));
        assert_eq!(window.lowest(), Some(SequenceNumber(200)));
        window.clear_from(SequenceNumber(201));
        window.clear_below(SequenceNumber(201));
        assert!(window.is_empty());
        assert!(window.insert(SequenceNumber(500)), "an empty window moves");
        assert!(!window.insert(SequenceNumber(100)), "one that is not empty stays");
    }

    #[test]
    fn numbers_on_one_side_of_any_bound_are_cleared() {
        let base = 1000;
        for bound in [i64::MIN, 0, 999, 1000, 1001, 1063, 1064, 1065, 1127, 1128, 1255, 1256, 1257, i64::MAX] {
            let mut full = SequenceWindow::EMPTY;
            assert!((base..base + LEN).rev().all(|number| full.insert(SequenceNumber(number))));
            let (mut above, mut below) = (full, full);
            above.clear_below(SequenceNumber(bound));
            below.clear_from(SequenceNumber(bound));
            let has = |window: &SequenceWindow, number: i64| {
                let offset = (number - window.base) as usize;
                window.words[offset / 64] & 1 << (offset % 64) != 0
            };
            for number in base..base + LEN {
                assert_eq!((has(&above, number), has(&below, number)), (number >= bound, number < bound));
            }
        }
    }
}
