//! Sequence-number tracking of received samples: received, lost, duplicated, out of order.

use serde::Serialize;

/// Numbers of samples by outcome. `received` counts each sample once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Samples passed to the middleware.
    pub sent: u64,
    /// Distinct samples received.
    pub received: u64,
    /// Samples that never arrived.
    pub lost: u64,
    /// Repeated arrivals of samples.
    pub duplicated: u64,
    /// Samples that arrived after one with a higher sequence number.
    pub out_of_order: u64,
}

/// Tracker of the sequence numbers of one stream.
///
/// It remembers the last [`SequenceTracker::WINDOW`] numbers: a sample that arrives later is
/// counted out of order even if it is a duplicate. Constant memory, no allocation after `new`.
#[derive(Clone, Debug)]
pub struct SequenceTracker {
    seen: Box<[u64]>,
    first: Option<u64>,
    highest: u64,
    counts: Counts,
}

impl SequenceTracker {
    /// Number of sequence numbers that are remembered.
    pub const WINDOW: u64 = 1 << 16;

    /// Creates a tracker without arrivals.
    #[must_use]
    pub fn new() -> Self {
        Self {
            seen: vec![0; (Self::WINDOW / 64) as usize].into_boxed_slice(),
            first: None,
            highest: 0,
            counts: Counts::default(),
        }
    }

    /// Records an arrival. Returns `false` if the sample is known to have arrived before.
    pub fn record(&mut self, sequence: u64) -> bool {
        if self.first.is_none() {
            self.first = Some(sequence);
            self.highest = sequence;
        } else if sequence > self.highest {
            self.clear_marks(self.highest, sequence);
            self.highest = sequence;
        } else if self.is_marked(sequence) {
            self.counts.duplicated += 1;
            return false;
        } else {
            self.counts.out_of_order += 1;
        }
        self.counts.received += 1;
        self.mark(sequence);
        true
    }

    /// Returns the counts of the samples from the first received to the highest; `sent` is left 0.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let expected = self.first.map_or(0, |first| self.highest - first + 1);
        Counts { lost: expected.saturating_sub(self.counts.received), ..self.counts }
    }

    /// Returns the highest number minus the first one.
    #[must_use]
    pub fn span(&self) -> u64 {
        self.first.map_or(0, |first| self.highest - first)
    }

    fn slot(sequence: u64) -> (usize, u64) {
        let bit = sequence % Self::WINDOW;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn is_remembered(&self, sequence: u64) -> bool {
        self.highest - sequence < Self::WINDOW
    }

    fn mark(&mut self, sequence: u64) {
        if self.is_remembered(sequence) {
            let (word, bit) = Self::slot(sequence);
            self.seen[word] |= bit;
        }
    }

    fn is_marked(&self, sequence: u64) -> bool {
        let (word, bit) = Self::slot(sequence);
        self.is_remembered(sequence) && self.seen[word] & bit != 0
    }

    /// Clears the marks of the numbers between two highest ones, whose slots the window now reuses.
    fn clear_marks(&mut self, old: u64, new: u64) {
        if new - old >= Self::WINDOW {
            self.seen.fill(0);
            return;
        }
        for sequence in old + 1..=new {
            let (word, bit) = Self::slot(sequence);
            self.seen[word] &= !bit;
        }
    }
}

impl Default for SequenceTracker {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(sequence: impl IntoIterator<Item = u64>) -> Counts {
        let mut tracker = SequenceTracker::new();
        sequence.into_iter().for_each(|s| {
            tracker.record(s);
        });
        tracker.counts()
    }

    fn counts(received: u64, lost: u64, duplicated: u64, out_of_order: u64) -> Counts {
        Counts { sent: 0, received, lost, duplicated, out_of_order }
    }

    #[test]
    fn samples_in_order_are_neither_lost_nor_duplicated() {
        assert_eq!(track(1..=100_000), counts(100_000, 0, 0, 0));
        assert_eq!(track([]), counts(0, 0, 0, 0));
    }

    #[test]
    fn a_stream_may_start_anywhere() {
        assert_eq!(track(500..=599), counts(100, 0, 0, 0));
    }

    #[test]
    fn missing_numbers_are_lost() {
        assert_eq!(track([1, 2, 5, 6]), counts(4, 2, 0, 0));
    }

    #[test]
    fn a_late_sample_is_out_of_order_and_not_lost() {
        assert_eq!(track([1, 3, 2, 4]), counts(4, 0, 0, 1));
    }

    #[test]
    fn repeated_number_is_a_duplicate() {
        assert_eq!(track([1, 2, 2, 3, 1]), counts(3, 0, 2, 0));
    }

    #[test]
    fn jump_beyond_the_window_clears_all_marks() {
        let far = 3 * SequenceTracker::WINDOW;
        assert_eq!(track([1, far + 2, far + 1]), counts(3, far - 1, 0, 1));
    }

    #[test]
    fn marks_are_cleared_when_the_window_wraps() {
        let wrap = SequenceTracker::WINDOW + 1;
        // 1 and `wrap` share a slot; the second pass must not count as duplicates.
        assert_eq!(track((1..=wrap).chain([wrap])), counts(wrap, 0, 1, 0));
    }

    #[test]
    fn a_sample_older_than_the_window_leaves_no_mark() {
        let window = SequenceTracker::WINDOW;
        // 10 shares its slot with 10 + window, which is still missing when 10 arrives late.
        let arrivals = [1, 2 * window, 10, 10 + window];
        assert_eq!(track(arrivals), counts(4, 2 * window - 4, 0, 2));
    }

    #[test]
    fn span_is_last_minus_first() {
        let mut tracker = SequenceTracker::new();
        assert_eq!(tracker.span(), 0);
        let are_new = [10, 12, 11, 12].map(|s| tracker.record(s));
        assert_eq!(are_new, [true, true, true, false]);
        assert_eq!(tracker.span(), 2);
    }
}
