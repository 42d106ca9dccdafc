//! Room for samples, and what becomes of those that find none.

use super::Reader;
use crate::cache::{Incoming, PayloadRef, Stored};
use crate::context::Context;
use crate::event::Event;
use crate::status::SampleRejectedReason;
use crate::time::Instant;
use takt_wire::SequenceNumber;

impl Reader {
    /// There is no room for a sample. If it is the next one of a reliable writer, that keeps it until the
    /// application has made room; a later one is asked for in its turn.
    pub(super) fn refuse(&mut self, ctx: &mut Context, index: u32, now: Instant, sn: SequenceNumber) {
        if let Some(proxy) = self.proxies.get_mut(index)
            && proxy.reliable
        {
            if proxy.expected != Some(sn) {
                ctx.counters.out_of_window += 1;
                return self.notice_gap(ctx, index, now);
            }
            proxy.blocked = true;
            self.any_blocked = true;
            self.blocked_at = self.cache.releases();
        }
        self.count_rejection(ctx, SampleRejectedReason::SamplesLimit);
    }

    pub(super) fn allocate(
        &mut self,
        ctx: &mut Context,
        index: u32,
        now: Instant,
        sn: SequenceNumber,
        len: usize,
    ) -> Option<PayloadRef> {
        loop {
            let piece = self.cache.pool.allocate(len);
            if piece.is_some() || !self.make_room_for(ctx, index, sn, now) {
                return piece;
            }
        }
    }

    pub(super) fn store(&mut self, ctx: &mut Context, index: u32, now: Instant, incoming: Incoming) -> Option<Stored> {
        loop {
            let stored = self.cache.store(incoming);
            if stored.is_some() || !self.make_room_for(ctx, index, incoming.sn, now) {
                return stored;
            }
        }
    }

    /// If the sample is the next one of a reliable writer: forgets samples that nobody goes on with, or the samples
    /// that wait for earlier ones of the writer that has most of them. They can be had again. Says whether there
    /// was anything to forget.
    pub(super) fn make_room_for(&mut self, ctx: &mut Context, index: u32, sn: SequenceNumber, now: Instant) -> bool {
        if !self.proxies.get(index).is_some_and(|proxy| proxy.reliable && proxy.expected == Some(sn)) {
            return false;
        }
        let mut forgot = false;
        for (_, proxy) in self.proxies.iter_mut() {
            forgot |= proxy.fragments.drop_idle(now, &mut self.cache.pool, &mut self.reassembly);
        }
        if forgot {
            return true;
        }
        let Some((_, proxy)) = self.proxies.iter_mut().max_by_key(|(_, proxy)| proxy.waiting) else { return false };
        forgot = proxy.waiting > 0;
        for stored in proxy.drain() {
            self.cache.discard(stored);
        }
        forgot || self.drop_an_open_part(ctx)
    }

    pub(super) fn count_rejection(&mut self, ctx: &mut Context, reason: SampleRejectedReason) {
        ctx.counters.rejected_samples += 1;
        self.rejected.total_count += 1;
        self.rejected.total_count_change += 1;
        self.rejected.last_reason = Some(reason);
        ctx.notify(Event::SampleRejected(self.handle));
    }
}
