//! Priority of jobs.

use core::fmt;
use core::time::Duration;

/// Priority of a job: a larger number is more urgent. The default is [`NORMAL`](Self::NORMAL).
///
/// From 0 to 63, the scale is that of TRANSPORT_PRIORITY (DDS 1.4 §2.2.3.15) as a DSCP, so a topic
/// has the same priority in the network and in the executor. Priorities from -1 down to -64 are
/// less urgent than discovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(i8);

impl Priority {
    /// Lowest priority.
    pub const MIN: Self = Self(-64);
    /// Priority of discovery, maintenance, and jobs without a priority.
    pub const NORMAL: Self = Self(0);
    /// Highest priority.
    pub const MAX: Self = Self(63);

    /// Time for which jobs above [`NORMAL`](Self::NORMAL) may delay those of normal priority
    /// without a pause. Then one normal-priority job that receives, sends or runs timers goes
    /// first, so that leases do not expire. The next one follows after the same time.
    pub const NORMAL_SERVER_PERIOD: Duration = Duration::from_millis(10);

    /// Returns the priority with this number, clamped to [`MIN`](Self::MIN) and [`MAX`](Self::MAX).
    #[must_use]
    pub const fn new(value: i32) -> Self {
        if value < Self::MIN.0 as i32 {
            Self::MIN
        } else if value > Self::MAX.0 as i32 {
            Self::MAX
        } else {
            Self(value as i8)
        }
    }

    /// Returns the default priority for an end-to-end latency limit: the shorter, the more urgent.
    /// It is 46 at 1 us and decreases by 2 for each doubling, down to 1: 28 for a millisecond, 8
    /// for a second.
    #[must_use]
    pub fn of_latency(limit: Duration) -> Self {
        let microseconds = limit.as_micros().clamp(1, 1 << 22);
        Self::new(46 - 2 * microseconds.ilog2().cast_signed())
    }

    /// Returns the number of the priority.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0 as i32
    }

    /// Returns the index among all priorities; 0 is the lowest priority.
    pub(crate) const fn level(self) -> usize {
        (self.0 - Self::MIN.0) as u8 as usize
    }

    pub(crate) const fn of_level(level: usize) -> Self {
        Self::new(level as i32 + Self::MIN.0 as i32)
    }

    /// Returns the next lower priority; `None` below [`MIN`](Self::MIN).
    #[must_use]
    pub const fn below(self) -> Option<Self> {
        if self.0 == Self::MIN.0 { None } else { Some(Self(self.0 - 1)) }
    }
}

/// Set of priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrioritySet(u128);

impl PrioritySet {
    /// Adds a priority.
    pub const fn insert(&mut self, priority: Priority) {
        self.0 |= 1 << priority.level();
    }

    /// Adds all priorities of another set.
    pub const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns the highest priority.
    #[inline]
    #[must_use]
    pub fn highest(self) -> Option<Priority> {
        LEVELS.checked_sub(1 + self.0.leading_zeros() as usize).map(Priority::of_level)
    }

    /// Returns the priorities above `than`, the highest first.
    #[inline]
    pub fn above(self, than: Option<Priority>) -> impl Iterator<Item = Priority> {
        let mut left = self;
        core::iter::from_fn(move || {
            let highest = left.highest().filter(|highest| Some(*highest) > than)?;
            left.0 &= !(1 << highest.level());
            Some(highest)
        })
    }
}

/// Number of priorities.
pub(crate) const LEVELS: usize = 128;

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_scale_are_clamped() {
        assert_eq!(Priority::new(i32::MAX), Priority::MAX);
        assert_eq!(Priority::new(i32::MIN), Priority::MIN);
        assert_eq!((Priority::new(-1).get(), Priority::default()), (-1, Priority::NORMAL));
        assert!(Priority::new(-1) < Priority::NORMAL && Priority::NORMAL < Priority::new(1));
    }

    #[test]
    fn levels_cover_all_priorities() {
        for value in -64..=63 {
            let priority = Priority::new(value);
            assert_eq!(Priority::of_level(priority.level()), priority);
        }
        assert_eq!((Priority::MIN.level(), Priority::MAX.level()), (0, LEVELS - 1));
    }

    #[test]
    fn set_lists_its_priorities_in_descending_order() {
        let mut set = PrioritySet::default();
        assert_eq!((set.highest(), set.above(None).count()), (None, 0));
        [3, -64, 63, 3, 0].into_iter().for_each(|value| set.insert(Priority::new(value)));
        let above =
            |than: Option<i32>| set.above(than.map(Priority::new)).map(Priority::get).collect::<alloc::vec::Vec<_>>();
        assert_eq!(above(None), [63, 3, 0, -64]);
        assert_eq!((above(Some(0)), above(Some(63))), (alloc::vec![63, 3], alloc::vec![]));
        assert_eq!((Priority::MIN.below(), Priority::NORMAL.below()), (None, Some(Priority::new(-1))));
    }

    #[test]
    fn shorter_latency_limit_means_higher_priority() {
        let of = |micros| Priority::of_latency(Duration::from_micros(micros)).get();
        assert_eq!([0, 1, 2, 100, 1000, 10_000, 1_000_000].map(of), [46, 46, 44, 34, 28, 20, 8]);
        assert_eq!(Priority::of_latency(Duration::MAX).get(), 2);
    }
}
