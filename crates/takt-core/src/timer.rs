//! The participant's timers. Arming, moving and cancelling one is O(log n) and allocates only when a timer is registered.

use crate::schedule::Schedule;
use crate::time::Instant;
use alloc::vec::Vec;

/// What happens when a timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Announce the participant (RTPS 2.5 §8.5.3.3).
    Announce,
    /// Participants are to be introduced to each other.
    Introduce,
    /// The lease of a remote participant ends.
    Lease { participant: u32 },
    /// Requests for types have waited long enough for their answers.
    RepeatTypeRequests,
    /// Matches that nothing has confirmed are to be counted.
    ConfirmMatches,
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
    /// Samples of a reader may expire, be shown or be purged.
    ReaderUpkeep { reader: u32 },
    /// The minimum separation of a writer's samples is over.
    Pace { writer: u32 },
    /// Samples of a writer have waited for others long enough.
    Batch { writer: u32 },
    /// Samples of a writer may expire.
    WriterExpiry { writer: u32 },
    /// A question to a channel has waited for answers long enough, or is to be asked again.
    Ask { channel: usize },
    /// A question of a writer before a change of its route has waited for answers long enough.
    RouteChange { writer: u32 },
    /// A question of a writer about the length of its paths has waited for answers long enough.
    PathProbe { writer: u32 },
    /// Groups have more to show.
    Groups,
    /// A reader has waited long enough for the history of services.
    ServiceWait { reader: u32 },
    /// The plugins of DDS Security have something to do.
    Security,
    /// A reader misses samples of a writer, or has not heard of it.
    AckNack { reader: u32, proxy: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerId(u32);

#[derive(Debug)]
pub(crate) struct TimerQueue {
    kinds: Vec<TimerKind>,
    free: Vec<u32>,
    /// By when it is due and the order of arming, which makes equal moments deterministic.
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

    /// Timers that somebody has.
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

    /// Arms the timer unless it is already due earlier.
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

    /// Takes the earliest timer that is due.
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
