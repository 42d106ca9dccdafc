//! Room for received samples, and the handling of samples without room.

use super::Reader;
use super::writer_proxy::Arrival;
use crate::cache::{Incoming, InstanceHandle, KeyExtractor, PayloadRef, Stored};
use crate::context::Context;
use crate::event::Event;
use crate::status::SampleRejectedReason;
use crate::time::Instant;
use alloc::boxed::Box;
use takt_wire::SequenceNumber;
use takt_wire::inline_qos::InlineQos;
use takt_wire::message::DataFrag;
use takt_wire::qos::History;

/// Resource that a sample lacks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need {
    /// A slot among the waiting or incomplete samples.
    Slot,
    /// Memory of this length. The oldest sample of the same instance, if that is known, may be
    /// removed.
    Memory { len: usize, instance: Option<InstanceHandle> },
}

/// Samples that wait for room in the history of a reader.
#[derive(Debug, Default)]
pub(super) struct RoomWait {
    /// A proxy waits for room.
    pub(super) any_blocked: bool,
    /// Proxy that is the next to get room first.
    pub(super) unblock_from: u32,
    /// Release count of the cache at the last failed attempt.
    pub(super) blocked_at: u64,
}

impl Reader {
    /// Refuses a sample for lack of room. If it is the next one of a reliable writer, the writer
    /// keeps it until the application has freed room. A later one is requested again in its turn.
    pub(super) fn refuse(
        &mut self,
        ctx: &mut Context,
        index: u32,
        now: Instant,
        sn: SequenceNumber,
        reason: SampleRejectedReason,
    ) {
        if let Some(proxy) = self.proxies.get_mut(index)
            && proxy.reliable
        {
            if proxy.expected != Some(sn) {
                ctx.counters.out_of_window += 1;
                return self.notice_gap(ctx, index, now);
            }
            proxy.blocked = true;
            self.room.any_blocked = true;
            self.room.blocked_at = self.cache.releases();
        }
        self.count_rejection(ctx, reason);
    }

    /// Refuses a fragment for lack of room, as [`Self::refuse`], once for each sample. If the
    /// application has nothing to take that would free room, the sample is requested again. So is a
    /// sample of a KEEP_LAST reader if the fragment does not name the instance: the first fragment
    /// may, and the samples that it replaces free room.
    pub(super) fn refuse_fragments(
        &mut self,
        ctx: &mut Context,
        index: u32,
        now: Instant,
        sn: SequenceNumber,
        names_no_instance: bool,
    ) {
        let replaces = matches!(self.data.qos.history, History::KeepLast(_));
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let is_next = !proxy.reliable || proxy.expected == Some(sn);
        if !is_next || proxy.blocked || proxy.refused == Some(sn) {
            return;
        }
        if proxy.reliable && self.keyed && replaces && names_no_instance {
            return self.notice_gap(ctx, index, now);
        }
        proxy.refused = Some(sn);
        match proxy.reliable && !self.cache.is_empty() {
            true => self.refuse(ctx, index, now, sn, SampleRejectedReason::MemoryLimit),
            false => self.count_rejection(ctx, SampleRejectedReason::MemoryLimit),
        }
    }

    /// Gives up a sample larger than all memory of the reader, because waiting for it would block
    /// all later ones.
    pub(super) fn reject_permanently(&mut self, ctx: &mut Context, index: u32, now: Instant, sn: SequenceNumber) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if proxy.refused.replace(sn) == Some(sn) {
            return;
        }
        let reliable = proxy.reliable;
        self.count_rejection(ctx, SampleRejectedReason::MemoryLimit);
        if !reliable {
            return;
        }
        self.record_unstored(index, sn);
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.set_arrival(sn, Arrival::Irrelevant);
        }
        self.statuses.lost.add(1);
        ctx.notify(Event::SampleLost(self.handle));
        self.deliver(ctx, index, now);
        self.notice_gap(ctx, index, now);
    }

    /// Returns the instance of all samples, if the type has no key.
    pub(super) fn only_instance(&self) -> Option<InstanceHandle> {
        (!self.keyed).then_some(InstanceHandle::NIL)
    }

    /// Returns the instance of a large sample, as far as a fragment names it. The first fragment
    /// names it by the key, if that lies in it. Any fragment names it by the key hash in its inline
    /// QoS, if the writer is known to write such an instance.
    pub(super) fn instance_of_fragment(
        &mut self,
        index: u32,
        data: &DataFrag<'_>,
        inline: &InlineQos<'_>,
    ) -> Option<InstanceHandle> {
        if !self.keyed {
            return self.only_instance();
        }
        let key = self.key.as_mut().filter(|_| data.fragment_starting_num == 1);
        let computed = key.and_then(|key| key.key_hash(data.payload, data.key)).map(InstanceHandle);
        computed.or_else(|| self.cache.announced_instance(self.proxies.get(index)?.guid, inline.key_hash?))
    }

    /// Allocates memory for a payload: serialized data or a serialized key.
    pub(super) fn allocate(
        &mut self,
        ctx: &mut Context,
        index: u32,
        now: Instant,
        sn: SequenceNumber,
        len: usize,
        (payload, key_only): (&[u8], bool),
    ) -> Option<PayloadRef> {
        loop {
            let piece = self.cache.pool.allocate(len);
            ctx.work.steps(self.cache.pool.take_steps());
            if piece.is_some() {
                return piece;
            }
            let read = |key: &mut Box<dyn KeyExtractor>| key.key_hash(payload, key_only).map(InstanceHandle);
            let instance = self.only_instance().or_else(|| self.key.as_mut().and_then(read));
            if !self.make_room_for(ctx, index, sn, now, Need::Memory { len, instance }) {
                return None;
            }
        }
    }

    pub(super) fn store(&mut self, ctx: &mut Context, index: u32, now: Instant, incoming: Incoming) -> Option<Stored> {
        loop {
            let stored = self.cache.store(incoming);
            if stored.is_some() || !self.make_room_for(ctx, index, incoming.sn, now, Need::Slot) {
                return stored;
            }
        }
    }

    /// Frees memory for the next sample of a reliable writer. Drops incomplete samples without
    /// recent fragments, or the waiting samples of the writer that has most of them; a reliable
    /// writer repeats both. With KEEP_LAST the reader then drops samples that a later one has
    /// replaced, or this one will. Returns whether there was anything to drop.
    pub(super) fn make_room_for(
        &mut self,
        ctx: &mut Context,
        index: u32,
        sn: SequenceNumber,
        now: Instant,
        need: Need,
    ) -> bool {
        let Some(proxy) = self.proxies.get(index) else { return false };
        if proxy.reliable && (proxy.expected != Some(sn) || proxy.blocked) {
            return false;
        }
        let reliable = proxy.reliable;
        if reliable && self.drop_incomplete(ctx, now) {
            return true;
        }
        if let Need::Memory { len, instance } = need {
            let single = instance.filter(|_| self.filter.is_none());
            let (evicted, steps) = self.cache.evict_for_memory(len, single);
            ctx.work.steps(steps);
            if evicted {
                return true;
            }
        }
        reliable && self.drop_an_open_part(ctx)
    }

    fn drop_incomplete(&mut self, ctx: &mut Context, now: Instant) -> bool {
        let (mut dropped, mut from) = (false, 0);
        while let Some(index) = self.proxies.next_index(from) {
            from = index + 1;
            let Some(proxy) = self.proxies.get_mut(index) else { continue };
            dropped |= proxy.fragments.drop_idle(now, &mut self.cache.pool, &mut self.reassembly);
            self.give_up_incomplete(ctx, index);
        }
        if dropped {
            return true;
        }
        let Some((_, proxy)) = self.proxies.iter_mut().max_by_key(|(_, proxy)| proxy.waiting) else { return false };
        dropped = proxy.waiting > 0;
        for stored in proxy.drain() {
            self.cache.discard(stored);
        }
        dropped
    }

    pub(super) fn count_rejection(&mut self, ctx: &mut Context, reason: SampleRejectedReason) {
        ctx.counters.rejected_samples += 1;
        self.statuses.rejected.total_count += 1;
        self.statuses.rejected.total_count_change += 1;
        self.statuses.rejected.last_reason = Some(reason);
        ctx.notify(Event::SampleRejected(self.handle));
    }
}
