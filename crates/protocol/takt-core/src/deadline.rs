//! Deadline monitoring of the instances of a writer or reader (DEADLINE, DDS 1.4 §2.2.3.7).
//!
//! All instances have the same period, so a list in order of the last update is also in order of
//! the due time. An update moves one entry to the end, and the timer checks the front. The timer
//! is re-armed only when it fires.

use crate::cache::InstanceHandle;
use crate::context::Context;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use takt_wire::qos::Deadline;

const NONE: u32 = u32::MAX;

/// Maximum number of instances checked in one call; the next call continues.
pub(crate) const INSTANCES_PER_CALL: usize = 64;
/// Maximum number of entries that are visited when an instance with a missed deadline is put back
/// in order: those updated since it was due.
pub(crate) const OVERTAKEN_MAX: usize = 8;

#[derive(Debug)]
struct Entry {
    handle: InstanceHandle,
    /// Start of the current period: the last update, the end of the last missed period, or the time
    /// at which the period became finite.
    since: Instant,
    previous: u32,
    next: u32,
}

/// Missed deadline of an instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missed {
    pub(crate) instance: InstanceHandle,
    /// Number of whole periods without an update.
    pub(crate) periods: u64,
}

/// Monitor of the instances of an endpoint.
#[derive(Debug)]
pub(crate) struct DeadlineMonitor {
    /// Deadline period. `None` is infinite: instances are known, but never due.
    period: Option<Duration>,
    timer: TimerId,
    /// Maximum number of instances watched. Beyond it, the least recently updated one is no longer
    /// watched.
    max_instances: usize,
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_handle: BTreeMap<InstanceHandle, u32>,
    oldest: u32,
    newest: u32,
}

impl DeadlineMonitor {
    pub(crate) fn new(deadline: Deadline, max_instances: usize, kind: TimerKind, ctx: &mut Context) -> Self {
        Self {
            period: period_of(deadline),
            timer: ctx.timers.register(kind),
            max_instances: max_instances.max(1),
            entries: Vec::new(),
            free: Vec::new(),
            by_handle: BTreeMap::new(),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// Returns the number of entries in the table.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Changes the period from now on and keeps the watched instances. An instance that was silent
    /// for longer than the new period misses it once. After an infinite period, the first one
    /// begins now.
    pub(crate) fn set_deadline(&mut self, now: Instant, ctx: &mut Context, deadline: Deadline) {
        let former = core::mem::replace(&mut self.period, period_of(deadline));
        let Some(period) = self.period else { return ctx.timers.cancel(self.timer) };
        ctx.work.steps(self.entries.len());
        let peer_timeout = former.map_or(0, |_| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        let earliest = Instant(now.0.saturating_sub(peer_timeout));
        for entry in &mut self.entries {
            entry.since = entry.since.max(earliest);
        }
        self.arm(ctx);
    }

    /// Arms the timer for the earliest due instance.
    fn arm(&self, ctx: &mut Context) {
        if let (Some(entry), Some(period)) = (self.entries.get(self.oldest as usize), self.period) {
            ctx.timers.arm(self.timer, entry.since.after(period));
        }
    }

    pub(crate) fn close(&self, ctx: &mut Context) {
        ctx.timers.release(self.timer);
    }

    /// Records an update of the instance.
    pub(crate) fn updated(&mut self, now: Instant, ctx: &mut Context, handle: InstanceHandle) {
        match self.entries.get_mut(self.newest as usize) {
            // The entry is already last. This is always so for the one instance of a topic without
            // keys.
            Some(newest) if newest.handle == handle => newest.since = now,
            _ => self.move_to_end(now, handle),
        }
        if !ctx.timers.is_armed(self.timer) {
            self.arm(ctx);
        }
    }

    fn move_to_end(&mut self, now: Instant, handle: InstanceHandle) {
        let index = match self.by_handle.get(&handle) {
            Some(&index) => {
                self.unlink(index);
                index
            }
            None => self.insert(handle),
        };
        self.entries[index as usize].since = now;
        self.append(index);
    }

    /// Stops watching the instance.
    pub(crate) fn ended(&mut self, handle: InstanceHandle) {
        if let Some(index) = self.by_handle.remove(&handle) {
            self.unlink(index);
            self.free.push(index);
        }
    }

    /// Handles the timer: passes each instance that was not updated for a period to `missed`, which
    /// returns whether to keep watching it.
    pub(crate) fn handle_timeout(&mut self, now: Instant, ctx: &mut Context, mut missed: impl FnMut(Missed) -> bool) {
        for _ in 0..INSTANCES_PER_CALL {
            let Some((late, steps)) = self.next_late(now) else { break };
            ctx.work.steps(steps);
            if !missed(late) {
                self.ended(late.instance);
            }
        }
        self.arm(ctx);
    }

    /// Returns an instance with an expired period, and the number of steps of the search. Its
    /// periods follow without a gap, however late the timer fires.
    fn next_late(&mut self, now: Instant) -> Option<(Missed, usize)> {
        let index = self.oldest;
        let period = u64::try_from(self.period?.as_nanos()).unwrap_or(u64::MAX).max(1);
        let entry = self.entries.get_mut(index as usize)?;
        let silent = now.0.saturating_sub(entry.since.0);
        let periods = silent / period;
        if periods == 0 {
            return None;
        }
        let since = Instant(entry.since.0 + periods * period);
        entry.since = since;
        let instance = entry.handle;
        self.unlink(index);
        let (mut before, mut steps) = (self.newest, 1);
        while let Some(newer) =
            self.entries.get(before as usize).filter(|it| it.since > since && steps <= OVERTAKEN_MAX)
        {
            (before, steps) = (newer.previous, steps + 1);
        }
        self.insert_behind(before, index);
        Some((Missed { instance, periods }, steps))
    }

    fn insert(&mut self, handle: InstanceHandle) -> u32 {
        if self.by_handle.len() >= self.max_instances
            && let Some(oldest) = self.entries.get(self.oldest as usize)
        {
            self.ended(oldest.handle);
        }
        let entry = Entry { handle, since: Instant(0), previous: NONE, next: NONE };
        let index = match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.by_handle.insert(handle, index);
        index
    }

    fn append(&mut self, index: u32) {
        self.insert_behind(self.newest, index);
    }

    /// Links an entry behind another one, or as the oldest.
    fn insert_behind(&mut self, previous: u32, index: u32) {
        let next = match self.entries.get_mut(previous as usize) {
            Some(entry) => core::mem::replace(&mut entry.next, index),
            None => core::mem::replace(&mut self.oldest, index),
        };
        match self.entries.get_mut(next as usize) {
            Some(entry) => entry.previous = index,
            None => self.newest = index,
        }
        let entry = &mut self.entries[index as usize];
        (entry.previous, entry.next) = (previous, next);
    }

    fn unlink(&mut self, index: u32) {
        let Entry { previous, next, .. } = self.entries[index as usize];
        match self.entries.get_mut(previous as usize) {
            Some(entry) => entry.next = next,
            None => self.oldest = next,
        }
        match self.entries.get_mut(next as usize) {
            Some(entry) => entry.previous = previous,
            None => self.newest = previous,
        }
    }
}

fn period_of(deadline: Deadline) -> Option<Duration> {
    deadline.period.as_nanos().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_wire::Duration as WireDuration;

    const MS: u64 = 1_000_000;

    fn setup(max_instances: usize) -> (DeadlineMonitor, Context) {
        let mut ctx = Context::for_tests();
        let deadline = every(10);
        let kind = TimerKind::ReaderDeadline { reader: 0 };
        let monitor = DeadlineMonitor::new(deadline, max_instances, kind, &mut ctx);
        (monitor, ctx)
    }

    fn every(ms: u64) -> Deadline {
        Deadline { period: WireDuration::from_millis(ms) }
    }

    fn handle(key: u8) -> InstanceHandle {
        InstanceHandle([key; 16])
    }

    /// Runs all timers until `until`. Returns instance, periods and time of each miss.
    fn run(monitor: &mut DeadlineMonitor, ctx: &mut Context, until: u64) -> Vec<(u8, u64, u64)> {
        let mut all = Vec::new();
        while let Some(due) = ctx.timers.next_due().filter(|due| due.0 <= until * MS) {
            assert!(ctx.timers.pop_due(due).is_some());
            monitor.handle_timeout(due, ctx, |missed| {
                let key = missed.instance.0[0];
                if key != 9 {
                    all.push((key, missed.periods, due.0 / MS));
                }
                key != 9
            });
        }
        all
    }

    #[test]
    fn each_instance_misses_its_own_deadline_when_it_is_due() {
        let (mut monitor, mut ctx) = setup(100);
        for (at, key) in [(0, 1), (3, 2), (6, 1), (7, 9)] {
            monitor.updated(Instant(at * MS), &mut ctx, handle(key));
        }
        let missed = run(&mut monitor, &mut ctx, 27);
        assert_eq!(missed, [(2, 1, 13), (1, 1, 16), (2, 1, 23), (1, 1, 26)], "9 is no longer watched");
        monitor.ended(handle(2));
        assert_eq!(run(&mut monitor, &mut ctx, 40), [(1, 1, 36)]);
        monitor.ended(handle(1));
        assert_eq!(run(&mut monitor, &mut ctx, 1_000), []);
        assert_eq!(ctx.timers.next_due(), None, "nothing is left to wait for");
    }

    #[test]
    fn newest_instance_begins_a_new_period_when_it_is_updated_again() {
        let (mut monitor, mut ctx) = setup(100);
        for at in [0, 6, 9] {
            monitor.updated(Instant(at * MS), &mut ctx, handle(1));
        }
        assert_eq!(run(&mut monitor, &mut ctx, 20), [(1, 1, 19)]);
    }

    #[test]
    fn several_missed_periods_are_counted_when_the_timer_fires_once() {
        let (mut monitor, mut ctx) = setup(100);
        monitor.updated(Instant(0), &mut ctx, handle(1));
        let mut periods = 0;
        monitor.handle_timeout(Instant(55 * MS), &mut ctx, |missed| {
            periods += missed.periods;
            true
        });
        assert_eq!(periods, 5);
        assert_eq!(ctx.timers.next_due(), Some(Instant(60 * MS)), "a period after the last one ended");
    }

    #[test]
    fn late_timer_does_not_shift_later_periods() {
        let (mut monitor, mut ctx) = setup(100);
        monitor.updated(Instant(0), &mut ctx, handle(1));
        monitor.updated(Instant(14 * MS), &mut ctx, handle(2));
        let mut missed = Vec::new();
        let note = |missed: &mut Vec<(u8, u64)>, one: Missed| missed.push((one.instance.0[0], one.periods));
        monitor.handle_timeout(Instant(15 * MS), &mut ctx, |one| {
            note(&mut missed, one);
            true
        });
        assert_eq!((&missed[..], ctx.timers.next_due()), (&[(1, 1)][..], Some(Instant(20 * MS))));
        assert_eq!(run(&mut monitor, &mut ctx, 40), [(1, 1, 20), (2, 1, 24), (1, 1, 30), (2, 1, 34), (1, 1, 40)]);
    }

    #[test]
    fn changed_period_counts_from_the_last_update() {
        let (mut monitor, mut ctx) = setup(100);
        for (at, key) in [(0, 1), (5, 2)] {
            monitor.updated(Instant(at * MS), &mut ctx, handle(key));
        }
        monitor.set_deadline(Instant(8 * MS), &mut ctx, every(20));
        assert_eq!(run(&mut monitor, &mut ctx, 25), [(1, 1, 20), (2, 1, 25)]);
        monitor.set_deadline(Instant(31 * MS), &mut ctx, every(3));
        assert_eq!(run(&mut monitor, &mut ctx, 31), [(1, 1, 31), (2, 1, 31)], "due at once");
    }

    #[test]
    fn instance_beyond_the_limit_replaces_the_least_recently_updated() {
        let (mut monitor, mut ctx) = setup(3);
        for key in 1..=4 {
            monitor.updated(Instant(u64::from(key) * MS), &mut ctx, handle(key));
        }
        let keys: Vec<_> = run(&mut monitor, &mut ctx, 15).iter().map(|missed| missed.0).collect();
        assert_eq!(keys, [2, 3, 4]);

        let (mut monitor, mut ctx) = setup(1_000);
        for number in 0..1_000_u64 {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&number.to_be_bytes());
            monitor.updated(Instant(number), &mut ctx, InstanceHandle(key));
        }
        assert_eq!(run(&mut monitor, &mut ctx, 39).len(), 3_000);
    }
}
