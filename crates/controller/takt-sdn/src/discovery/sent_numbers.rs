//! Set of the sequence numbers of an SEDP writer that were sent to a receiver, each as a change or
//! in a GAP.

use serde::{Deserialize, Serialize};

/// Maximum number of gaps of unsent numbers below the highest sent one. With more, the two lowest
/// gaps are merged, and the sent numbers between them count as unsent.
const GAPS_MAX: usize = 256;

/// A set of positive numbers, stored as its highest member and the missing intervals below it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SentNumbers {
    #[serde(rename = "top")]
    highest: i64,
    /// First and last number of each missing interval, ascending.
    #[serde(rename = "holes")]
    gaps: Vec<(i64, i64)>,
}

impl SentNumbers {
    /// Adds the numbers from `first` to `last`.
    pub(super) fn add(&mut self, first: i64, last: i64) {
        if first > last {
            return;
        }
        let mut gaps = Vec::with_capacity(self.gaps.len() + 1);
        for (from, to) in self.gaps.drain(..) {
            if from < first {
                gaps.push((from, to.min(first - 1)));
            }
            if to > last {
                gaps.push((from.max(last.saturating_add(1)), to));
            }
        }
        if first > self.highest.saturating_add(1) {
            gaps.push((self.highest + 1, first - 1));
        }
        if gaps.len() > GAPS_MAX {
            let (_, to) = gaps.remove(1);
            gaps[0].1 = to;
        }
        self.gaps = gaps;
        self.highest = self.highest.max(last);
    }

    /// Reports whether the number is in the set.
    pub(super) fn contains(&self, number: i64) -> bool {
        number <= self.highest && !self.gaps.iter().any(|(from, to)| (*from..=*to).contains(&number))
    }
}

#[cfg(test)]
mod tests {
    use super::{GAPS_MAX, SentNumbers};

    #[test]
    fn set_contains_numbers_added_in_any_order() {
        let intervals = [(3, 3), (1, 2), (7, 9), (5, 5), (12, 12), (4, 8), (20, 19), (15, 16)];
        for rotation in 0..intervals.len() {
            let (mut sent, mut model) = (SentNumbers::default(), [false; 24]);
            for index in 0..intervals.len() {
                let (first, last) = intervals[(index + rotation) % intervals.len()];
                sent.add(first, last);
                (first..=last).for_each(|number| model[number as usize] = true);
                for number in 1..24 {
                    assert_eq!(sent.contains(number), model[number as usize], "{sent:?} {number}");
                }
            }
        }
    }

    #[test]
    fn excess_gaps_are_merged_without_claiming_unsent_numbers() {
        let mut sent = SentNumbers::default();
        for number in (2..2_000).step_by(2) {
            sent.add(number, number);
        }
        assert!(sent.gaps.len() <= GAPS_MAX);
        assert!((1..2_000).step_by(2).all(|number| !sent.contains(number)) && sent.contains(1_998));
        sent.add(i64::MAX, i64::MAX);
        assert!(sent.contains(i64::MAX) && !sent.contains(i64::MAX - 1));
    }
}
