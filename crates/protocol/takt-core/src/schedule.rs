//! Priority queue of due times with movable entries: an indexed binary heap.
//!
//! An entry is identified by a small number, its index in a table of the caller. Setting, moving
//! and removing an entry is O(log n) and allocates only beyond the reserved capacity.

use alloc::vec::Vec;

const IDLE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Schedule<K> {
    heap: Vec<(K, u32)>,
    /// Position of each entry in the heap, or `IDLE`.
    positions: Vec<u32>,
}

impl<K: Ord + Copy> Schedule<K> {
    pub(crate) const fn new() -> Self {
        Self { heap: Vec::new(), positions: Vec::new() }
    }

    /// Reserves space for the entries below `count`.
    pub(crate) fn reserve(&mut self, count: usize) {
        if count > self.positions.len() {
            self.positions.resize(count, IDLE);
        }
        self.heap.reserve(count - self.heap.len().min(count));
    }

    /// Returns the key of an entry, if it has one.
    pub(crate) fn get(&self, entry: u32) -> Option<K> {
        let position = *self.positions.get(entry as usize)?;
        self.heap.get(position as usize).map(|(key, _)| *key)
    }

    /// Returns the earliest key and its entry.
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.heap.first().copied()
    }

    /// Sets the key of an entry and replaces a former one.
    pub(crate) fn set(&mut self, entry: u32, key: K) {
        self.remove(entry);
        if self.positions.len() <= entry as usize {
            self.positions.resize(entry as usize + 1, IDLE);
        }
        let position = self.heap.len();
        self.heap.push((key, entry));
        self.positions[entry as usize] = position as u32;
        self.sift_up(position);
    }

    /// Removes the key of an entry. Has no effect on an entry without one.
    pub(crate) fn remove(&mut self, entry: u32) {
        let Some(position) = self.positions.get_mut(entry as usize) else { return };
        let position = core::mem::replace(position, IDLE);
        if position == IDLE {
            return;
        }
        let position = position as usize;
        self.heap.swap_remove(position);
        if position < self.heap.len() {
            self.positions[self.heap[position].1 as usize] = position as u32;
            self.sift_down(position);
            self.sift_up(position);
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.positions[self.heap[a].1 as usize] = a as u32;
        self.positions[self.heap[b].1 as usize] = b as u32;
    }

    fn sift_up(&mut self, mut position: usize) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent].0 <= self.heap[position].0 {
                break;
            }
            self.swap(parent, position);
            position = parent;
        }
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let mut smallest = position;
            for child in [2 * position + 1, 2 * position + 2] {
                if child < self.heap.len() && self.heap[child].0 < self.heap[smallest].0 {
                    smallest = child;
                }
            }
            if smallest == position {
                break;
            }
            self.swap(position, smallest);
            position = smallest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_in_order_after_moves_and_removals() {
        let mut schedule = Schedule::new();
        schedule.reserve(100);
        for entry in 0..100_u32 {
            schedule.set(entry, (entry * 37) % 100);
        }
        schedule.set(3, 1_000);
        for entry in 50..70 {
            schedule.remove(entry);
            schedule.remove(entry);
        }
        schedule.remove(5_000);
        assert_eq!((schedule.get(3), schedule.get(55)), (Some(1_000), None));
        let (mut last, mut count) = (0, 0);
        while let Some((key, entry)) = schedule.first() {
            assert!(key >= last && !(50..70).contains(&entry));
            last = key;
            count += 1;
            schedule.remove(entry);
        }
        assert_eq!((last, count), (1_000, 80));
    }
}
