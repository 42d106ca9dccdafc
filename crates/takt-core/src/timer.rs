//! The participant's timers: an indexed binary heap, so that arming, moving and cancelling a timer is
//! O(log n) and allocates only when a timer is registered.

use crate::time::Instant;
use alloc::vec::Vec;

/// What happens when a timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Announce the participant (RTPS 2.5 §8.5.3.3).
    Announce,
    /// The lease of a remote participant ends.
    Lease { participant: u32 },
    /// A participant that has not proven its address is to be challenged again.
    Challenge { participant: u32 },
    /// A writer has unacknowledged samples.
    Heartbeat { writer: u32 },
    /// The writers with automatic liveliness are to be asserted.
    AssertLiveliness,
    /// Writes have asserted the writers with manual liveliness.
    AssertManually,
    /// The lease of a reader's matched writer may end.
    WriterLease { reader: u32, proxy: u32 },
    /// An instance of a writer may have missed its deadline.
    WriterDeadline { writer: u32 },
    /// An instance of a reader may have missed its deadline.
    ReaderDeadline { reader: u32 },
    /// The lease of a writer with manual liveliness may end.
    OwnLease { writer: u32 },
    /// A reader misses samples of a writer, or has not heard of it.
    AckNack { reader: u32, proxy: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerId(u32);

const IDLE: u32 = u32::MAX;

#[derive(Debug)]
struct Timer {
    kind: TimerKind,
    /// Place in the heap, or `IDLE`.
    place: u32,
}

#[derive(Debug)]
pub(crate) struct TimerQueue {
    timers: Vec<Timer>,
    free: Vec<u32>,
    /// (due, order of arming, timer): the order makes equal moments deterministic.
    heap: Vec<(Instant, u64, u32)>,
    armed: u64,
}

impl TimerQueue {
    pub(crate) const fn new() -> Self {
        Self { timers: Vec::new(), free: Vec::new(), heap: Vec::new(), armed: 0 }
    }

    pub(crate) fn register(&mut self, kind: TimerKind) -> TimerId {
        let timer = Timer { kind, place: IDLE };
        let id = match self.free.pop() {
            Some(id) => {
                self.timers[id as usize] = timer;
                id
            }
            None => {
                self.timers.push(timer);
                (self.timers.len() - 1) as u32
            }
        };
        let missing = self.timers.len() - self.heap.len();
        self.heap.reserve(missing);
        TimerId(id)
    }

    pub(crate) fn set_kind(&mut self, id: TimerId, kind: TimerKind) {
        self.timers[id.0 as usize].kind = kind;
    }

    pub(crate) fn release(&mut self, id: TimerId) {
        self.cancel(id);
        self.free.push(id.0);
    }

    pub(crate) fn is_armed(&self, id: TimerId) -> bool {
        self.timers[id.0 as usize].place != IDLE
    }

    pub(crate) fn arm(&mut self, id: TimerId, due: Instant) {
        self.cancel(id);
        self.armed += 1;
        let place = self.heap.len();
        self.heap.push((due, self.armed, id.0));
        self.timers[id.0 as usize].place = place as u32;
        self.sift_up(place);
    }

    /// Arms the timer unless it is already due earlier.
    pub(crate) fn arm_by(&mut self, id: TimerId, due: Instant) {
        let place = self.timers[id.0 as usize].place;
        if place == IDLE || self.heap[place as usize].0 > due {
            self.arm(id, due);
        }
    }

    pub(crate) fn cancel(&mut self, id: TimerId) {
        let place = core::mem::replace(&mut self.timers[id.0 as usize].place, IDLE);
        if place == IDLE {
            return;
        }
        let place = place as usize;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.timers[self.heap[place].2 as usize].place = place as u32;
            self.sift_down(place);
            self.sift_up(place);
        }
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.heap.first().map(|entry| entry.0)
    }

    /// Takes the earliest timer that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<TimerKind> {
        let &(due, _, id) = self.heap.first()?;
        if due > now {
            return None;
        }
        self.cancel(TimerId(id));
        Some(self.timers[id as usize].kind)
    }

    fn key(&self, place: usize) -> (Instant, u64) {
        (self.heap[place].0, self.heap[place].1)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.timers[self.heap[a].2 as usize].place = a as u32;
        self.timers[self.heap[b].2 as usize].place = b as u32;
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.key(parent) <= self.key(place) {
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
                if child < self.heap.len() && self.key(child) < self.key(least) {
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
    fn timers_come_in_order_and_can_be_moved_and_cancelled() {
        let mut queue = TimerQueue::new();
        let ids: Vec<_> = (0..50).map(|writer| queue.register(TimerKind::Heartbeat { writer })).collect();
        for (i, id) in ids.iter().enumerate() {
            queue.arm(*id, Instant(((i * 37) % 50) as u64));
        }
        queue.arm(ids[0], Instant(1000));
        queue.arm_by(ids[0], Instant(2000));
        for id in ids.iter().skip(40) {
            queue.cancel(*id);
        }
        let mut seen = Vec::new();
        let mut last = 0;
        while let Some(due) = queue.next_due() {
            assert!(due.0 >= last);
            last = due.0;
            assert_eq!(queue.pop_due(Instant(due.0.saturating_sub(1))), None);
            let Some(TimerKind::Heartbeat { writer }) = queue.pop_due(due) else { panic!("a timer is due") };
            seen.push(writer);
        }
        assert_eq!(seen.len(), 40);
        assert_eq!(seen.last(), Some(&0));
    }
}
