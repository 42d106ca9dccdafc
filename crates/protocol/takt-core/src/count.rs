//! Counts of HEARTBEAT, ACKNACK and NACK_FRAG, by which repeated submessages are recognized
//! (RTPS 2.5 §8.3.8).
//!
//! Counts increase and may wrap. A count that is not higher and comes [`REPETITION_MAX`] or more
//! after the last one is no repetition: the sender has rediscovered this participant and counts
//! from the beginning, or the last count was forged.

use crate::time::Instant;
use core::time::Duration;

/// Longest time after which a repetition may arrive.
const REPETITION_MAX: Duration = Duration::from_millis(500);

/// Last count of one sender, and its time of arrival.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastCount(Option<(i32, Instant)>);

/// Relation of a count to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    Newer,
    Restarted,
    Repeated,
}

impl LastCount {
    pub(crate) fn classify(self, now: Instant, count: i32) -> Age {
        match self.0 {
            Some((last, _)) if count.wrapping_sub(last) > 0 => Age::Newer,
            Some((_, at)) if now.since(at) < REPETITION_MAX => Age::Repeated,
            Some(_) => Age::Restarted,
            None => Age::Newer,
        }
    }

    pub(crate) fn note(&mut self, now: Instant, count: i32) {
        self.0 = Some((count, now));
    }

    pub(crate) fn is_known(self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_count_is_a_repetition_for_half_a_second() {
        let mut last = LastCount::default();
        assert_eq!(last.classify(Instant(5), i32::MIN), Age::Newer);
        last.note(Instant(5), i32::MAX);
        assert!(last.is_known());
        assert_eq!(last.classify(Instant(6), i32::MIN), Age::Newer, "counts wrap");
        assert_eq!(last.classify(Instant(6), i32::MAX), Age::Repeated);
        assert_eq!(last.classify(Instant(500_000_004), 7), Age::Repeated);
        assert_eq!(last.classify(Instant(500_000_005), 7), Age::Restarted);
    }
}
