//! Priority queue of ready jobs, FIFO within a priority.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::priority::{LEVELS, Priority};

/// Queue by priority. Adding and removing take constant time, and do not allocate within the
/// [reserved](Self::reserve) capacity.
#[derive(Clone, Debug)]
pub struct PriorityQueue<T> {
    levels: Vec<VecDeque<T>>,
    /// Levels that are not empty.
    waiting: u128,
    len: usize,
}

impl<T> Default for PriorityQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PriorityQueue<T> {
    /// Returns an empty queue.
    #[must_use]
    pub fn new() -> Self {
        let mut levels = Vec::new();
        levels.resize_with(LEVELS, VecDeque::new);
        Self { levels, waiting: 0, len: 0 }
    }

    /// Reserves capacity for `count` jobs of one priority.
    pub fn reserve(&mut self, priority: Priority, count: usize) {
        let level = &mut self.levels[priority.level()];
        level.reserve(count.saturating_sub(level.len()));
    }

    /// Adds a job behind all others of its priority.
    #[inline]
    pub fn push(&mut self, priority: Priority, item: T) {
        self.levels[priority.level()].push_back(item);
        self.waiting |= 1 << priority.level();
        self.len += 1;
    }

    /// Removes the first job of the highest priority.
    #[inline]
    pub fn pop(&mut self) -> Option<(Priority, T)> {
        let priority = self.first_priority()?;
        let level = &mut self.levels[priority.level()];
        let item = level.pop_front()?;
        if level.is_empty() {
            self.waiting &= !(1 << priority.level());
        }
        self.len -= 1;
        Some((priority, item))
    }

    /// Removes the first job of this priority for which `predicate` returns true. It takes as many
    /// steps as there are jobs of that priority.
    pub fn remove(&mut self, priority: Priority, predicate: impl FnMut(&T) -> bool) -> Option<T> {
        let level = &mut self.levels[priority.level()];
        let item = level.iter().position(predicate).and_then(|index| level.remove(index))?;
        if level.is_empty() {
            self.waiting &= !(1 << priority.level());
        }
        self.len -= 1;
        Some(item)
    }

    /// Returns the job that [`pop`](Self::pop) would remove.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.levels[self.first_priority()?.level()].front()
    }

    /// Returns the highest priority in the queue.
    #[inline]
    #[must_use]
    pub fn first_priority(&self) -> Option<Priority> {
        let level = LEVELS.checked_sub(1 + self.waiting.leading_zeros() as usize)?;
        Some(Priority::of_level(level))
    }

    /// Reports whether a job of this priority is queued.
    #[inline]
    #[must_use]
    pub fn has(&self, priority: Priority) -> bool {
        self.waiting >> priority.level() & 1 != 0
    }

    /// Returns the number of queued jobs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Reports whether the queue is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all jobs.
    pub fn clear(&mut self) {
        self.levels.iter_mut().for_each(VecDeque::clear);
        (self.waiting, self.len) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pop_returns_the_highest_priority_and_fifo_within_it() {
        let mut queue = PriorityQueue::new();
        for (item, priority) in [0, 5, 0, -64, 63, 5, 63].into_iter().enumerate() {
            queue.push(Priority::new(priority), item);
        }
        assert_eq!((queue.len(), queue.first(), queue.first_priority()), (7, Some(&4), Some(Priority::MAX)));
        let order: Vec<_> =
            core::iter::from_fn(|| queue.pop()).map(|(priority, item)| (priority.get(), item)).collect();
        assert_eq!(order, [(63, 4), (63, 6), (5, 1), (5, 5), (0, 0), (0, 2), (-64, 3)]);
        assert!(queue.is_empty() && queue.first_priority().is_none() && queue.first().is_none());
    }

    #[test]
    fn removed_job_is_not_popped() {
        let mut queue = PriorityQueue::new();
        [3, 4, 3].into_iter().for_each(|item| queue.push(Priority::NORMAL, item));
        queue.push(Priority::MAX, 4);
        assert_eq!(queue.remove(Priority::MAX, |item| *item == 3), None);
        assert_eq!(queue.remove(Priority::MAX, |item| *item == 4), Some(4));
        assert_eq!((queue.len(), queue.first_priority()), (3, Some(Priority::NORMAL)));
        assert_eq!(queue.remove(Priority::NORMAL, |item| *item == 4), Some(4));
        let left: Vec<_> = core::iter::from_fn(|| queue.pop()).map(|(_, item)| item).collect();
        assert_eq!(left, [3, 3]);
    }

    #[test]
    fn cleared_queue_is_empty() {
        let mut queue = PriorityQueue::new();
        queue.push(Priority::MIN, 1);
        queue.clear();
        assert!(queue.pop().is_none() && queue.is_empty());
        queue.push(Priority::NORMAL, 2);
        assert_eq!(queue.pop(), Some((Priority::NORMAL, 2)));
    }
}
