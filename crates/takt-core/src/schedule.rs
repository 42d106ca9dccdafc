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
    pub(crate) fn get(&self, thing: u32) -> Option<K> {
        let place = *self.positions.get(thing as usize)?;
        self.heap.get(place as usize).map(|(key, _)| *key)
    }

    /// Returns the earliest key and its entry.
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.heap.first().copied()
    }

    /// Sets the key of an entry and replaces a former one.
    pub(crate) fn set(&mut self, thing: u32, key: K) {
        self.remove(thing);
        if self.positions.len() <= thing as usize {
            self.positions.resize(thing as usize + 1, IDLE);
        }
        let place = self.heap.len();
        self.heap.push((key, thing));
        self.positions[thing as usize] = place as u32;
        self.sift_up(place);
    }

    /// Removes the key of an entry. Has no effect on an entry without one.
    pub(crate) fn remove(&mut self, thing: u32) {
        let Some(place) = self.positions.get_mut(thing as usize) else { return };
        let place = core::mem::replace(place, IDLE);
        if place == IDLE {
            return;
        }
        let place = place as usize;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.positions[self.heap[place].1 as usize] = place as u32;
            self.sift_down(place);
            self.sift_up(place);
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.positions[self.heap[a].1 as usize] = a as u32;
        self.positions[self.heap[b].1 as usize] = b as u32;
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].0 <= self.heap[place].0 {
                break;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.heap[child].0 < self.heap[least].0 {
                    least = child;
                }
            }
            if least == place {
                break;
            }
            self.swap(place, least);
            place = least;
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
        for thing in 0..100_u32 {
            schedule.set(thing, (thing * 37) % 100);
        }
        schedule.set(3, 1_000);
        for thing in 50..70 {
            schedule.remove(thing);
            schedule.remove(thing);
        }
        schedule.remove(5_000);
        assert_eq!((schedule.get(3), schedule.get(55)), (Some(1_000), None));
        let (mut last, mut count) = (0, 0);
        while let Some((key, thing)) = schedule.first() {
            assert!(key >= last && !(50..70).contains(&thing));
            last = key;
            count += 1;
            schedule.remove(thing);
        }
        assert_eq!((last, count), (1_000, 80));
    }
}
