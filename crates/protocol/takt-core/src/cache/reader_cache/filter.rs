//! Time-based filter: at most one sample of an instance per minimum separation (TIME_BASED_FILTER,
//! DDS 1.4 §2.2.3.12).
//!
//! A sample is presented at once if the last one of its instance was presented at least the minimum
//! separation ago, by the reader's monotonic clock. Otherwise a best-effort reader drops it. A
//! reliable reader keeps the newest such sample of each instance and presents it when the
//! separation has elapsed. The last value of an instance therefore always arrives, at most one
//! separation late. HISTORY and RESOURCE_LIMITS count only presented samples.
//!
//! The end of an instance is never delayed. A disposal drops the waiting sample. A writer that
//! unregisters the instance would remove its waiting sample, so that is presented first, regardless
//! of the separation. An instance that is not alive restarts with its next sample.

use super::{Incoming, NONE, ReaderCache, Stored};
use crate::cache::sample::{ChangeKind, InstanceState};
use crate::status::SampleRejectedReason;
use crate::time::{Clocks, Instant};
use core::time::Duration;

/// Maximum number of waiting samples beyond those that wait for earlier ones. Further ones wait at
/// their writer.
const DELAYED_SAMPLES_MAX: usize = 4096;

/// Delay of the next attempt for a sample without room.
const RETRY: Duration = Duration::from_millis(10);

impl ReaderCache {
    /// Reserves room for waiting samples.
    pub(super) fn reserve_delayed(&mut self) {
        let room = DELAYED_SAMPLES_MAX.min(self.limits.max_instances);
        self.delayed_due.reserve(room);
        self.entries.reserve((self.table_len() + room).saturating_sub(self.entries.len()));
    }

    /// Returns the time at which a sample that arrives now may be presented; `None` if at once.
    pub(super) fn separation_end(&self, instance: u32, now: Instant) -> Option<Instant> {
        let separation = self.policies.separation?;
        let state = &self.instances[instance as usize];
        let last_delivery = state.last_delivery.filter(|_| state.state == InstanceState::Alive)?;
        let due = last_delivery.after(separation);
        (due > now).then_some(due)
    }

    /// Keeps a sample until it is due, and replaces an older one. A best-effort reader drops it.
    pub(super) fn delay(&mut self, stored: Stored, instance: u32, incoming: &Incoming, due: Instant) {
        self.instances[instance as usize].note_writer(incoming);
        if !self.policies.keeps_last {
            return self.discard(stored);
        }
        self.drop_delayed(instance);
        self.instances[instance as usize].delayed = stored.0;
        self.entries[stored.0 as usize].instance = instance;
        self.delayed_due.set(instance, due);
    }

    /// Drops the waiting sample of an instance.
    pub(super) fn drop_delayed(&mut self, instance: u32) {
        let delayed = core::mem::replace(&mut self.instances[instance as usize].delayed, NONE);
        if delayed != NONE {
            self.delayed_due.remove(instance);
            self.discard(Stored(delayed));
        }
    }

    /// Handles a state change of an instance: presents its waiting sample before, or drops it.
    pub(super) fn resolve_delayed(
        &mut self,
        instance: u32,
        incoming: &Incoming,
        now: Clocks,
    ) -> Result<(), SampleRejectedReason> {
        let delayed = self.instances[instance as usize].delayed;
        match incoming.kind {
            _ if delayed == NONE => {}
            ChangeKind::Disposed | ChangeKind::DisposedUnregistered => self.drop_delayed(instance),
            _ if self.entries[delayed as usize].incoming.writer == incoming.writer => {
                self.deliver_delayed(instance, now)?
            }
            _ => {}
        }
        Ok(())
    }

    /// Presents the waiting sample of an instance, if there is one.
    pub(super) fn deliver_delayed(&mut self, instance: u32, now: Clocks) -> Result<(), SampleRejectedReason> {
        let delayed = self.instances[instance as usize].delayed;
        let Some(entry) = self.entries.get(delayed as usize) else { return Ok(()) };
        let incoming = entry.incoming;
        if incoming.expiry.is_past(now.wall) {
            self.drop_delayed(instance);
            self.remove_if_unused(instance);
            return Ok(());
        }
        self.make_room(instance, incoming.kind)?;
        self.delayed_due.remove(instance);
        let state = &mut self.instances[instance as usize];
        state.delayed = NONE;
        state.last_delivery = Some(now.at);
        if state.state == InstanceState::Alive {
            state.update(&incoming);
        }
        self.append(delayed, instance, now.wall);
        Ok(())
    }

    /// Presents due samples, at most `max`. Returns the number of visited samples.
    pub(crate) fn deliver_due(&mut self, now: Clocks, max: usize) -> usize {
        let mut seen = 0;
        while seen < max
            && let Some((_, instance)) = self.delayed_due.first().filter(|(due, _)| *due <= now.at)
        {
            if self.deliver_delayed(instance, now).is_err() {
                self.delayed_due.set(instance, now.at.after(RETRY));
            }
            seen += 1;
        }
        seen
    }

    /// Returns the time at which the next sample is due.
    pub(crate) fn next_delayed(&self) -> Option<Instant> {
        self.delayed_due.first().map(|(due, _)| due)
    }
}
