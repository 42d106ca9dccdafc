//! How urgent a job is.

use core::fmt;
use core::time::Duration;

/// How urgent a job is: the larger, the more. What nobody gave a priority has [`NORMAL`](Self::NORMAL).
///
/// The scale is that of TRANSPORT_PRIORITY (DDS 1.4 §2.2.3.15) where it is a DSCP, so that a topic has one priority in
/// the network and in the executor: 0 to 63. Below 0 is what even discovery comes before, down to -64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(i8);

impl Priority {
    /// The least urgent.
    pub const MIN: Self = Self(-64);
    /// That of discovery, of housekeeping, and of what nobody gave one.
    pub const NORMAL: Self = Self(0);
    /// The most urgent.
    pub const MAX: Self = Self(63);

    /// How long jobs above [`NORMAL`](Self::NORMAL) keep those of normal priority waiting without a pause. Then one job that receives,
    /// sends or runs timers at normal priority goes first, so that leases are kept, and another one after as long again.
    pub const REST_PERIOD: Duration = Duration::from_millis(10);

    /// The priority of a number; beyond [`MIN`](Self::MIN) and [`MAX`](Self::MAX) it is the nearest of them.
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

    /// The priority of what may take so long from end to end, if nothing else is said: the shorter, the more urgent. It is
    /// 2 less for each doubling from 1 us on, which has 46, and at least 1: 28 for a millisecond, 8 for a second.
    #[must_use]
    pub fn of_latency(limit: Duration) -> Self {
        let microseconds = limit.as_micros().clamp(1, 1 << 22);
        Self::new(46 - 2 * microseconds.ilog2().cast_signed())
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0 as i32
    }

    /// Its place among all priorities, 0 for the least urgent.
    pub(crate) const fn level(self) -> usize {
        (self.0 - Self::MIN.0) as u8 as usize
    }

    pub(crate) const fn of_level(level: usize) -> Self {
        Self::new(level as i32 + Self::MIN.0 as i32)
    }

    /// The next lower one; `None` below [`MIN`](Self::MIN).
    #[must_use]
    pub const fn below(self) -> Option<Self> {
        if self.0 == Self::MIN.0 { None } else { Some(Self(self.0 - 1)) }
    }
}

/// A set of priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrioritySet(u128);

impl PrioritySet {
    /// Adds one.
    pub const fn insert(&mut self, priority: Priority) {
        self.0 |= 1 << priority.level();
    }

    /// Adds all of another set.
    pub const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// The highest.
    #[inline]
    #[must_use]
    pub fn highest(self) -> Option<Priority> {
        LEVELS.checked_sub(1 + self.0.leading_zeros() as usize).map(Priority::of_level)
    }

    /// Those above `than`, the highest first.
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

/// How many priorities there are.
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
    fn numbers_beyond_the_scale_are_its_ends() {
        assert_eq!(Priority::new(i32::MAX), Priority::MAX);
        assert_eq!(Priority::new(i32::MIN), Priority::MIN);
        assert_eq!((Priority::new(-1).get(), Priority::default()), (-1, Priority::NORMAL));
        assert!(Priority::new(-1) < Priority::NORMAL && Priority::NORMAL < Priority::new(1));
    }

    #[test]
    fn levels_are_all_priorities() {
        for value in -64..=63 {
            let priority = Priority::new(value);
            assert_eq!(Priority::of_level(priority.level()), priority);
        }
        assert_eq!((Priority::MIN.level(), Priority::MAX.level()), (0, LEVELS - 1));
    }

    #[test]
    fn a_set_lists_its_priorities_from_the_highest_down() {
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
    fn what_has_less_time_is_more_urgent() {
        let of = |micros| Priority::of_latency(Duration::from_micros(micros)).get();
        assert_eq!([0, 1, 2, 100, 1000, 10_000, 1_000_000].map(of), [46, 46, 44, 34, 28, 20, 8]);
        assert_eq!(Priority::of_latency(Duration::MAX).get(), 2);
    }
}
