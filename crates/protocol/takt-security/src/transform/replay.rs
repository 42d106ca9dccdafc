//! Replay window of accepted counters.
//!
//! The specification requires no replay window: sequence numbers of a reliable writer reject
//! repeated samples. The window also covers messages without sequence numbers. It works for senders
//! with increasing counters, such as Takt and CycloneDDS.
//!
//! INTEROP(Fast DDS 2.9): chooses the counter of each message at random, so its messages have no
//! window.

/// Number of counters below the highest one that are still accepted.
pub const REPLAY_WINDOW: u64 = 1_024;

const WORDS: usize = (REPLAY_WINDOW / 64) as usize;

/// Accepted counters of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplayWindow {
    /// Highest accepted counter.
    highest: Option<u64>,
    /// Bit `counter % REPLAY_WINDOW` of each accepted counter in the window.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Accepts a counter once. Counters start at any value and wrap around.
    pub(super) fn accept(&mut self, counter: u64) -> bool {
        let Some(highest) = self.highest else {
            self.highest = Some(counter);
            self.set(counter, true);
            return true;
        };
        let distance = counter.wrapping_sub(highest);
        if distance != 0 && distance < 1 << 63 {
            for skipped in 1..=distance.min(REPLAY_WINDOW) {
                self.set(highest.wrapping_add(skipped), false);
            }
            self.highest = Some(counter);
        } else if highest.wrapping_sub(counter) >= REPLAY_WINDOW || self.has(counter) {
            return false;
        }
        self.set(counter, true);
        true
    }

    /// Adds the counters that another window of the same session has accepted.
    pub(super) fn merge(&mut self, other: &Self) {
        let (Some(highest), Some(other_highest)) = (self.highest, other.highest) else {
            if self.highest.is_none() {
                self.clone_from(other);
            }
            return;
        };
        let is_older = other_highest.wrapping_sub(highest) < 1 << 63;
        let (newest, oldest) = if is_older { (other_highest, highest) } else { (highest, other_highest) };
        let (mut merged, older) = if is_older { (other.clone(), &*self) } else { (self.clone(), other) };
        let counters = (0..REPLAY_WINDOW).map(|below| oldest.wrapping_sub(below));
        for counter in counters.filter(|counter| newest.wrapping_sub(*counter) < REPLAY_WINDOW) {
            if older.has(counter) {
                merged.set(counter, true);
            }
        }
        *self = merged;
    }

    const fn place(counter: u64) -> (usize, u64) {
        let bit = counter % REPLAY_WINDOW;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn has(&self, counter: u64) -> bool {
        let (word, bit) = Self::place(counter);
        self.seen[word] & bit != 0
    }

    fn set(&mut self, counter: u64, is_seen: bool) {
        let (word, bit) = Self::place(counter);
        if is_seen {
            self.seen[word] |= bit;
        } else {
            self.seen[word] &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use takt_testkit::Random;

    use super::{REPLAY_WINDOW, ReplayWindow};

    #[test]
    fn merged_window_refuses_what_either_accepted() {
        for (first, second) in [(10, 30), (30, 10), (10, 5_000), (5_000, 10), (u64::MAX - 2, 4)] {
            let (mut a, mut b) = (ReplayWindow::default(), ReplayWindow::default());
            assert!(a.accept(first) && b.accept(second));
            a.merge(&b);
            assert!(!a.accept(first) && !a.accept(second), "{first}, {second}");
        }
        let mut empty = ReplayWindow::default();
        let mut other = ReplayWindow::default();
        assert!(other.accept(7));
        empty.merge(&other);
        other.merge(&ReplayWindow::default());
        assert!(!empty.accept(7) && !other.accept(7) && other.accept(8));
    }

    #[test]
    fn window_agrees_with_a_set_of_all_counters() {
        for start in [0, 1, u64::MAX - 700, 1 << 63] {
            let (mut window, mut random) = (ReplayWindow::default(), Random(start));
            let (mut seen, mut highest) = (HashSet::from([start]), 0_u64);
            assert!(window.accept(start));
            for _ in 0..20_000 {
                let back = random.below(1_500) as u64;
                let offset =
                    (highest + random.below(40) as u64).saturating_sub(if random.one_in(3) { back } else { 0 });
                let counter = start.wrapping_add(offset);
                let expected = highest.saturating_sub(offset) < REPLAY_WINDOW && seen.insert(counter);
                assert_eq!(window.accept(counter), expected, "{offset} with highest {highest}");
                if expected {
                    highest = highest.max(offset);
                }
            }
        }
    }

    #[test]
    fn jump_beyond_the_window_clears_earlier_counters() {
        let mut window = ReplayWindow::default();
        assert!(window.accept(10) && window.accept(10 + (1 << 40)));
        assert!(!window.accept(10) && !window.accept(10 + (1 << 40)));
        assert!(window.accept(9 + (1 << 40)));
    }
}
