//! In-order delivery of received samples to the history.

use super::writer_proxy::Arrival;
use super::{Reader, deadline, origins};
use crate::cache::Stored;
use crate::context::Context;
use crate::event::Event;
use crate::status::SampleRejectedReason;
use crate::time::Instant;
use takt_wire::SequenceNumber;

impl Reader {
    pub(super) fn deliver_best_effort(
        &mut self,
        ctx: &mut Context,
        index: u32,
        now: Instant,
        sn: SequenceNumber,
        stored: Option<Stored>,
    ) {
        self.pass_over(ctx, index, sn);
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        proxy.announced = sn;
        proxy.expected = Some(sn.next());
        if proxy.holding.is_some() {
            return self.hold_best_effort(ctx, index, now, stored);
        }
        let Some(stored) = stored else { return };
        self.cache.set_writer_alive(stored, proxy.lease.alive);
        if origins::drop_if_repeated(&self.origins, &mut self.cache, stored) {
            ctx.counters.repeated_samples += 1;
            return;
        }
        let identity = self.cache.origin_of(stored);
        match self.cache.deliver(stored, ctx.clocks(now), self.key.as_mut()) {
            Ok(delivered) => {
                origins::record_delivered(&mut self.origins, identity);
                deadline::delivered(&mut self.deadline, now, ctx, delivered);
                self.notify_available(ctx);
                self.arm_upkeep(now, ctx);
            }
            Err(reason) => {
                self.cache.discard(stored);
                self.count_rejection(ctx, reason);
            }
        }
    }

    /// Gives up samples of a best-effort writer below `sn` that have not arrived completely. They
    /// count as lost unless a GAP has named them.
    fn pass_over(&mut self, ctx: &mut Context, index: u32, sn: SequenceNumber) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let expected = proxy.expected.unwrap_or(sn);
        let owed = proxy.first_received.map_or(sn, |first| first.max(expected));
        let lost = sn.0 - owed.0 - proxy.excused_before(owed, sn);
        // With a filter, the writer may have withheld the skipped samples.
        if lost > 0 && self.filter.is_none() {
            self.statuses.lost.add(lost as u64);
            ctx.notify(Event::SampleLost(self.handle));
        }
        proxy.fragments.drop_below(sn, &mut self.cache.pool, &mut self.reassembly);
        if sn > expected {
            proxy.expected = Some(sn);
            self.record_missing(ctx, index);
        }
    }

    /// Gives up the samples of a best-effort writer that can no longer be completed.
    pub(super) fn give_up_incomplete(&mut self, ctx: &mut Context, index: u32) {
        let given_up = self.proxies.get_mut(index).and_then(|proxy| proxy.fragments.take_given_up());
        if let Some(sn) = given_up {
            self.pass_over(ctx, index, sn);
        }
    }

    /// Delivers everything that has arrived up to the first missing sample. At most
    /// `REORDER_WINDOW` samples of each writer.
    pub(super) fn deliver(&mut self, ctx: &mut Context, index: u32, now: Instant) {
        self.note_announced(now, ctx, index);
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if proxy.holding.is_some() {
            return self.deliver_held(ctx, index, now);
        }
        let Some(mut expected) = proxy.expected else { return };
        let start = expected;
        let mut refused = None;
        while !proxy.blocked && !proxy.awaits_services {
            let arrival = proxy.arrival(expected);
            if let Arrival::Waiting(stored) = arrival {
                self.cache.set_writer_alive(stored, proxy.lease.alive);
            }
            match arrival {
                Arrival::Missing => break,
                Arrival::Irrelevant => {}
                Arrival::Waiting(stored) if origins::awaits_writer(&mut self.origins, self.cache.origin_of(stored)) => {
                    break;
                }
                Arrival::Waiting(stored) if origins::drop_if_repeated(&self.origins, &mut self.cache, stored) => {
                    ctx.counters.repeated_samples += 1;
                }
                Arrival::Waiting(stored) => {
                    let identity = self.cache.origin_of(stored);
                    match self.cache.deliver(stored, ctx.clocks(now), self.key.as_mut()) {
                        Ok(delivered) => {
                            origins::record_delivered(&mut self.origins, identity);
                            deadline::delivered(&mut self.deadline, now, ctx, delivered);
                        }
                        Err(SampleRejectedReason::InstancesLimit) if self.entity_id.is_builtin() => {
                            // A surplus entity must not block the disposals of others.
                            self.cache.discard(stored);
                            ctx.counters.refused_remote_entities += 1;
                        }
                        Err(reason) => {
                            proxy.blocked = true;
                            refused = Some(reason);
                            break;
                        }
                    }
                }
            }
            proxy.set_arrival(expected, Arrival::Missing);
            expected = expected.next();
        }
        proxy.expected = Some(expected);
        ctx.work.steps((expected.0 - start.0) as usize);
        if expected > start {
            proxy.fragments.drop_below(expected, &mut self.cache.pool, &mut self.reassembly);
            let awaits_history = proxy.history_end.is_some();
            self.notify_available(ctx);
            self.arm_upkeep(now, ctx);
            if awaits_history {
                self.note_history(now, ctx, index);
            }
        }
        if let Some(reason) = refused {
            self.room.any_blocked = true;
            self.room.blocked_at = self.cache.releases();
            self.count_rejection(ctx, reason);
        }
    }

    /// Reports whether relief has come: a held change was dropped since, or the application has
    /// something to take.
    pub(crate) fn is_relieved(&self) -> bool {
        self.presentation.needs_relief && (!self.cache.is_empty() || self.cache.releases() != self.room.blocked_at)
    }

    fn has_made_room(&self) -> bool {
        self.cache.has_room() && self.cache.releases() != self.room.blocked_at
    }

    /// Delivers samples that waited for room, after the application took samples. The writers
    /// alternate in being first, because one with many samples takes all of the room. Returns
    /// whether anything was waiting. Without room freed since the last attempt nothing is tried.
    pub(crate) fn unblock(&mut self, now: Instant, ctx: &mut Context) -> bool {
        if !self.room.any_blocked || !self.has_made_room() {
            return false;
        }
        self.room.any_blocked = false;
        self.presentation.needs_relief = false;
        let (start, mut is_first) = (self.room.unblock_from, true);
        for (mut from, end) in [(start, u32::MAX), (0, start)] {
            while let Some(index) = self.proxies.next_index(from).filter(|index| *index < end) {
                from = index + 1;
                let Some(has_delivered) = self.unblock_proxy(now, ctx, index) else { continue };
                if core::mem::take(&mut is_first) {
                    self.room.unblock_from = if has_delivered { index + 1 } else { index };
                }
            }
        }
        true
    }

    /// Delivers the waiting samples of one writer. Returns `None` if none waited, else whether any
    /// was delivered.
    fn unblock_proxy(&mut self, now: Instant, ctx: &mut Context, index: u32) -> Option<bool> {
        ctx.work.steps(1);
        if self.proxies.get(index)?.holding.as_ref().is_some_and(|holding| holding.waits) {
            ctx.groups_changed = true;
            self.present_independent(ctx, index, now);
        }
        let proxy = self.proxies.get_mut(index)?;
        if !core::mem::take(&mut proxy.blocked) {
            return None;
        }
        let expected = proxy.expected;
        self.deliver(ctx, index, now);
        self.queue_acknack(ctx, index);
        self.proxies.get(index).map(|proxy| proxy.expected > expected)
    }
}
