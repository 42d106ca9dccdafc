//! At most one sample of an instance in a time (TIME_BASED_FILTER, DDS 1.4 §2.2.3.12).
//!
//! A sample is shown at once if the last one of its instance was shown the minimum separation ago or longer, by the reader's
//! monotonic clock. Else a best-effort reader drops it. A reliable one keeps the newest such sample of each instance and shows
//! it when the separation is over, so that the last value of an instance always arrives, a separation late at most. HISTORY and
//! RESOURCE_LIMITS count what is shown only.
//!
//! What ends an instance is never kept back: a disposal makes the sample that waits useless; a writer that leaves the instance
//! takes it along, so it is shown before, however soon that is. An instance that is not alive begins anew with its next sample.

use super::{Incoming, NONE, ReaderCache, Stored};
use crate::cache::sample::{ChangeKind, InstanceState};
use crate::status::SampleRejectedReason;
use crate::time::{Clocks, Instant};
use core::time::Duration;

/// Samples that wait, beyond those that wait for earlier ones. Further ones wait at their writer.
const HELD_ROOM: usize = 4096;

/// When a sample that found no room is tried again.
const RETRY: Duration = Duration::from_millis(10);

impl ReaderCache {
    /// There will be samples that wait.
    pub(super) fn expect_held(&mut self) {
        let room = HELD_ROOM.min(self.limits.max_instances);
        self.held_due.reserve(room);
        self.entries.reserve((self.table_len() + room).saturating_sub(self.entries.len()));
    }

    /// When a sample that came now may be shown, if not at once.
    pub(super) fn too_soon(&self, instance: u32, now: Instant) -> Option<Instant> {
        let separation = self.policies.separation?;
        let state = &self.instances[instance as usize];
        let shown = state.shown_at.filter(|_| state.state == InstanceState::Alive)?;
        let due = shown.after(separation);
        (due > now).then_some(due)
    }

    /// Keeps a sample until it is due, in place of an older one, or drops it if nobody asked for more than best effort.
    pub(super) fn hold(&mut self, stored: Stored, instance: u32, incoming: &Incoming, due: Instant) {
        self.instances[instance as usize].note_writer(incoming);
        if !self.policies.keeps_last {
            return self.discard(stored);
        }
        self.drop_held(instance);
        self.instances[instance as usize].held = stored.0;
        self.entries[stored.0 as usize].instance = instance;
        self.held_due.set(instance, due);
    }

    /// A sample that waits is of no use any more.
    pub(super) fn drop_held(&mut self, instance: u32) {
        let held = core::mem::replace(&mut self.instances[instance as usize].held, NONE);
        if held != NONE {
            self.held_due.remove(instance);
            self.discard(Stored(held));
        }
    }

    /// News of an instance comes: what waits is shown before it, or not at all.
    pub(super) fn settle_held(
        &mut self,
        instance: u32,
        news: &Incoming,
        now: Clocks,
    ) -> Result<(), SampleRejectedReason> {
        let held = self.instances[instance as usize].held;
        match news.kind {
            _ if held == NONE => {}
            ChangeKind::Disposed | ChangeKind::DisposedUnregistered => self.drop_held(instance),
            _ if self.entries[held as usize].incoming.writer == news.writer => self.show_held(instance, now)?,
            _ => {}
        }
        Ok(())
    }

    /// Shows the sample of an instance that waits, if there is one.
    pub(super) fn show_held(&mut self, instance: u32, now: Clocks) -> Result<(), SampleRejectedReason> {
        let held = self.instances[instance as usize].held;
        let Some(entry) = self.entries.get(held as usize) else { return Ok(()) };
        let incoming = entry.incoming;
        if incoming.expiry.is_past(now.wall) {
            self.drop_held(instance);
            self.forget_if_gone(instance);
            return Ok(());
        }
        self.make_room(instance, incoming.kind)?;
        self.held_due.remove(instance);
        let state = &mut self.instances[instance as usize];
        state.held = NONE;
        state.shown_at = Some(now.at);
        if state.state == InstanceState::Alive {
            state.update(&incoming);
        }
        self.append(held, instance, now.wall);
        Ok(())
    }

    /// Shows samples that have waited long enough, at most `max`; returns how many were looked at.
    pub(crate) fn show_due(&mut self, now: Clocks, max: usize) -> usize {
        let mut seen = 0;
        while seen < max
            && let Some((_, instance)) = self.held_due.first().filter(|(due, _)| *due <= now.at)
        {
            if self.show_held(instance, now).is_err() {
                self.held_due.set(instance, now.at.after(RETRY));
            }
            seen += 1;
        }
        seen
    }

    /// When the next sample is due.
    pub(crate) fn next_held(&self) -> Option<Instant> {
        self.held_due.first().map(|(due, _)| due)
    }
}
