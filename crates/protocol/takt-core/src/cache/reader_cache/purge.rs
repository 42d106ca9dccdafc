//! Purging of samples of instances that are not alive (READER_DATA_LIFECYCLE, DDS 1.4 §2.2.3.22).
//!
//! The delay begins when the instance ceases to be alive, by the reader's monotonic clock, and is
//! canceled if it becomes alive again.

use super::{NONE, ReaderCache, Stored};
use crate::cache::sample::InstanceState;
use crate::time::Instant;

impl ReaderCache {
    /// Schedules or cancels the purge of an instance whose state was `before`.
    pub(super) fn schedule_purge(&mut self, before: InstanceState, instance: u32, now: Instant) {
        let state = self.instances[instance as usize].state;
        if !self.policies.purges() || state == before {
            return;
        }
        let delay = match state {
            InstanceState::Alive => None,
            InstanceState::NotAliveDisposed => self.policies.purge_disposed,
            InstanceState::NotAliveNoWriters => self.policies.purge_no_writers,
        };
        match delay {
            Some(delay) => self.purge_due.set(instance, now.after(delay)),
            None => self.purge_due.remove(instance),
        }
    }

    /// Purges samples of due instances, at most `max`. Returns how many samples and instances were
    /// visited.
    pub(crate) fn purge(&mut self, now: Instant, max: usize) -> usize {
        let mut removed = 0;
        while removed < max
            && let Some((_, instance)) = self.purge_due.first().filter(|(due, _)| *due <= now)
        {
            removed += 1;
            let oldest = self.instances[instance as usize].oldest;
            if oldest != NONE {
                self.unlink(oldest);
                self.discard(Stored(oldest));
                continue;
            }
            self.purge_due.remove(instance);
            self.drop_delayed(instance);
            self.remove_if_unused(instance);
        }
        removed
    }

    /// Returns the time of the next purge.
    pub(crate) fn next_purge(&self) -> Option<Instant> {
        self.purge_due.first().map(|(due, _)| due)
    }
}
