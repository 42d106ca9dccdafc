//! Timers of the participant. Arming, moving and canceling are O(log n); only the registration of
//! a timer allocates.

use crate::schedule::Schedule;
use crate::time::Instant;
use alloc::vec::Vec;

/// Action of a due timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Announce the participant (RTPS 2.5 §8.5.3.3).
    Announce,
    /// Introduce participants to each other.
    Introduction,
    /// Check the lease of a remote participant.
    Lease { participant: u32 },
    /// Repeat unanswered requests for types.
    RepeatTypeRequests,
    /// Count matches that nothing has confirmed.
    ConfirmMatches,
    /// Challenge a participant with an unvalidated address again.
    Challenge { participant: u32 },
    /// Send a heartbeat for unacknowledged samples of a writer.
    Heartbeat { writer: u32 },
    /// Assert the writers with automatic liveliness.
    AssertLiveliness,
    /// Announce the assertion of manual-liveliness writers that were written to.
    AssertManually,
    /// Check the lease of a reader's matched writer.
    WriterLease { reader: u32, proxy: u32 },
    /// Check the deadlines of a writer's instances.
    WriterDeadline { writer: u32 },
    /// Check the deadlines of a reader's instances.
    ReaderDeadline { reader: u32 },
    /// Check the lease of a writer with manual liveliness.
    OwnLease { writer: u32 },
    /// Expire, present or purge samples of a reader.
    ReaderUpkeep { reader: u32 },
    /// Send again, because a writer's minimum separation has elapsed.
    Pace { writer: u32 },
    /// Send a writer's batch, because it has waited long enough for further samples.
    Batch { writer: u32 },
    /// Expire samples of a writer.
    WriterExpiry { writer: u32 },
    /// End the wait for answers to a multicast probe, or start the next round.
    MulticastProbe { group: usize },
    /// End the wait for answers before a writer changes its route.
    RouteChange { writer: u32 },
    /// End the wait for answers to a writer's path MTU probe.
    PathProbe { writer: u32 },
    /// Present further changes of groups.
    Groups,
    /// End a reader's wait for the history of durability services.
    ServiceWait { reader: u32 },
    /// Drive the plugins of DDS Security.
    Security,
    /// Send an acknowledgment: a reader misses samples of a writer, or has not heard from it.
    AckNack { reader: u32, proxy: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerId(u32);

#[derive(Debug)]
pub(crate) struct TimerQueue {
    kinds: Vec<TimerKind>,
    free: Vec<u32>,
    /// Due time and order of arming; the order makes equal due times deterministic.
    schedule: Schedule<(Instant, u64)>,
    armed: u64,
}

impl TimerQueue {
    pub(crate) const fn new() -> Self {
        Self { kinds: Vec::new(), free: Vec::new(), schedule: Schedule::new(), armed: 0 }
    }

    pub(crate) fn register(&mut self, kind: TimerKind) -> TimerId {
        let id = match self.free.pop() {
            Some(id) => {
                self.kinds[id as usize] = kind;
                id
            }
            None => {
                self.kinds.push(kind);
                (self.kinds.len() - 1) as u32
            }
        };
        self.schedule.reserve(self.kinds.len());
        TimerId(id)
    }

    pub(crate) fn set_kind(&mut self, id: TimerId, kind: TimerKind) {
        self.kinds[id.0 as usize] = kind;
    }

    pub(crate) fn release(&mut self, id: TimerId) {
        self.cancel(id);
        self.free.push(id.0);
    }

    /// Returns the number of registered timers.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        self.kinds.len() - self.free.len()
    }

    pub(crate) fn is_armed(&self, id: TimerId) -> bool {
        self.schedule.get(id.0).is_some()
    }

    pub(crate) fn arm(&mut self, id: TimerId, due: Instant) {
        self.armed += 1;
        self.schedule.set(id.0, (due, self.armed));
    }

    /// Arms the timer unless it is due earlier.
    pub(crate) fn arm_by(&mut self, id: TimerId, due: Instant) {
        if self.schedule.get(id.0).is_none_or(|(armed, _)| armed > due) {
            self.arm(id, due);
        }
    }

    pub(crate) fn cancel(&mut self, id: TimerId) {
        self.schedule.remove(id.0);
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.schedule.first().map(|((due, _), _)| due)
    }

    /// Removes and returns the earliest due timer.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<TimerKind> {
        let ((due, _), id) = self.schedule.first()?;
        if due > now {
            return None;
        }
        self.schedule.remove(id);
        Some(self.kinds[id as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_order_and_can_be_moved_and_canceled() {
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
