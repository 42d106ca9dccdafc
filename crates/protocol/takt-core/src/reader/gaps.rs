//! Handling of GAP and HEARTBEAT at a reader: available and irrelevant samples
//! (RTPS 2.5 §8.3.8.4, §8.3.8.6).

use super::writer_proxy::Arrival;
use super::{Reader, WriterProxy};
use crate::config::REORDER_WINDOW;
use crate::context::Context;
use crate::count::Age;
use crate::event::Event;
use crate::time::Instant;
use takt_wire::SequenceNumber;
use takt_wire::message::{Gap, Heartbeat};
use takt_wire::qos::Durability;

impl Reader {
    /// Schedules a request because a later sample has arrived while an earlier one is missing,
    /// unless the two are only reordered.
    pub(super) fn notice_gap(&mut self, ctx: &mut Context, index: u32, now: Instant) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        // Before the first HEARTBEAT no sample is known to be missing.
        if proxy.expected.is_some() && proxy.misses_samples() {
            ctx.timers.arm_by(proxy.timer, now.after(ctx.timing.nack_delay));
        }
    }

    /// Handles a GAP: samples that will not arrive, or are irrelevant to this reader
    /// (RTPS 2.5 §8.3.8.4).
    pub(crate) fn handle_gap(&mut self, now: Instant, ctx: &mut Context, index: u32, gap: &Gap) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let base = gap.gap_list.base();
        if !proxy.reliable {
            return proxy.excuse(gap.gap_start, base);
        }
        if proxy.expected.is_none() {
            return;
        }
        for sn in gap.gap_list.iter() {
            if proxy.in_window(sn) && proxy.arrival(sn) == Arrival::Missing {
                proxy.mark_irrelevant(sn);
                proxy.has_hole |= proxy.history_end.is_none();
            }
        }
        proxy.announce(base.prev());
        self.skip(ctx, index, now, gap.gap_start, base);
        self.notice_gap(ctx, index, now);
    }

    /// Gives up the missing samples of `[start, end)`. Returns their number.
    fn skip(&mut self, ctx: &mut Context, index: u32, now: Instant, start: SequenceNumber, end: SequenceNumber) -> u64 {
        let Some(proxy) = self.proxies.get_mut(index) else { return 0 };
        let Some(expected) = proxy.expected else { return 0 };
        let is_history = proxy.history_end.is_some();
        let mut skipped = 0;
        let window_end = SequenceNumber(expected.0.saturating_add(REORDER_WINDOW));
        ctx.work.steps((end.0.min(window_end.0) - start.0.max(expected.0)).max(0) as usize);
        for number in start.max(expected).0..end.min(window_end).0 {
            if proxy.arrival(SequenceNumber(number)) == Arrival::Missing {
                proxy.mark_irrelevant(SequenceNumber(number));
                skipped += 1;
            }
        }
        self.deliver(ctx, index, now);
        // Nothing is kept beyond the window, so the rest of the range is one step.
        if let Some(proxy) = self.proxies.get_mut(index)
            && let Some(now_expected) = proxy.expected
            && start <= now_expected
            && now_expected < end
            && !proxy.blocked
            && !proxy.awaits_services
        {
            skipped += (end.0 - now_expected.0) as u64;
            proxy.expected = Some(end);
            proxy.fragments.drop_below(end, &mut self.cache.pool, &mut self.reassembly);
            if proxy.holding.is_some() {
                self.record_missing(ctx, index);
            }
        }
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.has_hole |= skipped > 0 && !is_history;
            proxy.record_leap(expected);
        }
        skipped
    }

    /// Gives up samples below `first`, which the writer has removed. Returns how many of them are
    /// lost. Samples that it replaced before their history arrived were never owed: a late joiner's
    /// history is what the writer keeps (DDS 1.4 §2.2.3.4).
    fn give_up_below(&mut self, now: Instant, ctx: &mut Context, index: u32, first: SequenceNumber) -> u64 {
        let Some(proxy) = self.proxies.get(index) else { return 0 };
        let Some(expected) = proxy.expected else { return 0 };
        let wants_history = self.data.qos.durability != Durability::Volatile;
        let history_end = proxy.history_end.filter(|_| wants_history);
        let owed_from = history_end.map_or(expected, |end| end.next().clamp(expected, first));
        self.skip(ctx, index, now, expected, owed_from);
        self.skip(ctx, index, now, owed_from, first)
    }

    /// Reports the complete history once all samples are delivered that the writer had at its first
    /// heartbeat.
    pub(super) fn note_history(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if proxy.history_end.is_some_and(|end| proxy.expected > Some(end)) {
            proxy.history_end = None;
            let is_service = proxy.is_service;
            ctx.notify(Event::HistoryComplete(self.handle));
            if is_service {
                self.service_history_done(now, ctx);
            }
        }
    }

    /// Handles the first HEARTBEAT of a writer. Delivery begins with its first sample, after its
    /// last one if the reader skips history, or with an earlier sample that has already arrived. A
    /// directed HEARTBEAT states the range of this reader. Returns how many samples after the first
    /// delivered one are gone.
    fn begin(&mut self, now: Instant, ctx: &mut Context, index: u32, heartbeat: &Heartbeat) -> u64 {
        let Some(proxy) = self.proxies.get_mut(index) else { return 0 };
        let offered = match proxy.skips_history {
            true => heartbeat.last_sn.next().max(heartbeat.first_sn),
            false => heartbeat.first_sn,
        };
        let early = proxy.early.map(|(lowest, _)| lowest).filter(|_| !proxy.directed_heartbeats);
        let start = early.map_or(offered, |early| early.min(offered));
        proxy.expected = Some(start);
        proxy.begin_leap(start);
        if let Some(holding) = &mut proxy.holding {
            holding.begin_late(start);
        }
        proxy.history_end = Some(heartbeat.last_sn);
        ctx.timers.cancel(proxy.timer);
        proxy.announce(heartbeat.last_sn);
        if self.explicit {
            proxy.acknowledged = proxy.expected;
        }
        ctx.work.steps(proxy.early.map_or(0, |(lowest, highest)| (highest.0 - lowest.0) as usize));
        while let Some(stored) = self.proxies.get_mut(index).and_then(WriterProxy::take_misplaced) {
            self.cache.discard(stored);
        }
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.fragments.drop_below(start, &mut self.cache.pool, &mut self.reassembly);
        }
        self.begin_origin(index, heartbeat.last_sn);
        self.decide_service_wait(now, ctx, index, heartbeat.first_sn);
        let lost = self.skip(ctx, index, now, start, heartbeat.first_sn);
        self.note_history(now, ctx, index);
        lost
    }

    /// Handles a HEARTBEAT: the samples that the writer has (RTPS 2.5 §8.3.8.6).
    pub(crate) fn handle_heartbeat(&mut self, now: Instant, ctx: &mut Context, index: u32, heartbeat: &Heartbeat) {
        self.heartbeat_received(now, ctx, index, heartbeat.liveliness);
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if !proxy.reliable || proxy.last_heartbeat.classify(now, heartbeat.count) == Age::Repeated {
            return;
        }
        if !heartbeat.is_final {
            self.revert_contradicted(now, ctx, index, heartbeat.last_sn);
        }
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let directed = heartbeat.reader == self.entity_id;
        if !directed && proxy.expected.is_none() && proxy.needs_directed_heartbeat {
            if !heartbeat.is_final {
                self.queue_acknack(ctx, index);
            }
            return;
        }
        proxy.last_heartbeat.note(now, heartbeat.count);
        let is_initial = !directed && heartbeat.is_final && heartbeat.last_sn < heartbeat.first_sn;
        let mut lost = 0;
        match proxy.expected {
            // An initial heartbeat states where data begin, not which samples the writer has.
            None if is_initial && proxy.waits_for_announcement() => return,
            None => lost = self.begin(now, ctx, index, heartbeat),
            Some(expected) => {
                proxy.announce_by_heartbeat(heartbeat.last_sn);
                self.note_announced(now, ctx, index);
                if heartbeat.first_sn > expected {
                    lost = self.give_up_below(now, ctx, index, heartbeat.first_sn);
                }
            }
        }
        self.handle_group_info(ctx, index, heartbeat);
        if lost > 0 {
            self.statuses.lost.add(lost);
            ctx.notify(Event::SampleLost(self.handle));
        }
        self.answer_heartbeat(now, ctx, index, heartbeat);
    }
}
