//! A local reader: best-effort or reliable, from any number of writers (RTPS 2.5 §8.4.10, §8.4.12).
//!
//! Samples of each writer are delivered in its order. A reliable reader keeps those that come early, asks
//! for those that are missing, and refuses those for which there is no room, so that the writer keeps them.
//!
//! Invariant: what a proxy holds as `Waiting` lies in `expected .. expected + REORDER_WINDOW`.

mod acknack;
mod deadline;
mod fragments;
mod liveliness;
mod local;
mod writer_proxy;

pub(crate) use writer_proxy::{REORDER_WINDOW, WriterProxy};

use crate::cache::{ChangeKind, Incoming, KeyExtractor, PayloadRef, ReaderCache, Stored};
use crate::context::Context;
use crate::deadline::DeadlineMonitor;
use crate::event::Event;
use crate::mutation::{Mutation, is_on};
use crate::slots::{ReaderHandle, Slots};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus, MatchedStatus,
    SampleLostStatus, SampleRejectedReason, SampleRejectedStatus,
};
use crate::time::Instant;
use crate::timer::TimerKind;
use crate::writer::{Path, is_newer};
use alloc::boxed::Box;
use core::fmt;
use fragments::{Budget, Refused};
use liveliness::WriterLease;
use takt_wire::discovery::SubscriptionData;
use takt_wire::inline_qos::{InlineQos, STATUS_INFO_DISPOSED, STATUS_INFO_UNREGISTERED};
use takt_wire::message::{Data, DataFrag, Gap, Heartbeat, Payload};
use takt_wire::parameter::ParameterList;
use takt_wire::qos::{Durability, Liveliness, ReliabilityKind};
use takt_wire::{EntityId, Guid, SequenceNumber, Timestamp, VendorId};
use writer_proxy::{Arrival, LAST_SAMPLE};

pub(crate) struct Reader {
    pub(crate) handle: ReaderHandle,
    pub(crate) entity_id: EntityId,
    /// As announced; builtin readers have a description too.
    pub(crate) data: Box<SubscriptionData>,
    keyed: bool,
    key: Option<Box<dyn KeyExtractor>>,
    pub(crate) cache: ReaderCache,
    pub(crate) proxies: Slots<WriterProxy>,
    /// What incomplete samples may claim.
    reassembly: Budget,
    /// Some proxy waits for room in the history.
    any_blocked: bool,
    /// The cache's releases when that was last tried in vain.
    blocked_at: u64,
    deadline: Option<DeadlineMonitor>,
    pub(crate) deadline_missed: DeadlineMissedStatus,
    pub(crate) matched: MatchedStatus,
    pub(crate) incompatible: IncompatibleQosStatus,
    pub(crate) inconsistent_topic: InconsistentTopicStatus,
    pub(crate) liveliness: LivelinessChangedStatus,
    pub(crate) lost: SampleLostStatus,
    pub(crate) rejected: SampleRejectedStatus,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("entity_id", &self.entity_id).field("topic", &self.data.topic_name).finish()
    }
}

/// What a reader must know of a writer to listen to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriterTraits {
    pub(crate) reliable: bool,
    pub(crate) durability: Durability,
    pub(crate) liveliness: Liveliness,
    pub(crate) strength: i32,
    pub(crate) path: Path,
    pub(crate) vendor: VendorId,
}

/// Time and origin of the submessage at hand (RTPS 2.5 §8.3.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) now: Instant,
    pub(crate) source_timestamp: Timestamp,
}

impl Reader {
    pub(crate) fn new(
        handle: ReaderHandle,
        data: Box<SubscriptionData>,
        keyed: bool,
        key: Option<Box<dyn KeyExtractor>>,
        cache: ReaderCache,
        ctx: &mut Context,
    ) -> Self {
        ctx.add_owner();
        let deadline = deadline::monitor(handle, &data, &cache, ctx);
        Self {
            handle,
            entity_id: data.guid.entity_id,
            data,
            keyed,
            key,
            cache,
            proxies: Slots::new(),
            reassembly: Budget::new(ctx.limits.reassembly_bytes),
            any_blocked: false,
            blocked_at: 0,
            deadline,
            deadline_missed: DeadlineMissedStatus::default(),
            matched: MatchedStatus::default(),
            incompatible: IncompatibleQosStatus::default(),
            inconsistent_topic: InconsistentTopicStatus::default(),
            liveliness: LivelinessChangedStatus::default(),
            lost: SampleLostStatus::default(),
            rejected: SampleRejectedStatus::default(),
        }
    }

    /// Gives back what the reader holds of the context.
    pub(crate) fn close(&mut self, ctx: &mut Context) {
        for (_, proxy) in self.proxies.iter() {
            ctx.timers.release(proxy.timer);
            proxy.lease.close(ctx);
            ctx.remove_owner();
        }
        if let Some(deadline) = &self.deadline {
            deadline.close(ctx);
        }
        ctx.remove_owner();
    }

    /// A matching writer appeared. Returns the proxy's index.
    pub(crate) fn add_proxy(&mut self, now: Instant, ctx: &mut Context, guid: Guid, writer: &WriterTraits) -> u32 {
        ctx.add_owner();
        let (reader, proxy_index) = (self.handle.index, self.proxies.vacant());
        let timer = ctx.timers.register(TimerKind::AckNack { reader, proxy: proxy_index });
        let lease_timer = TimerKind::WriterLease { reader, proxy: proxy_index };
        let lease = WriterLease::new(now, &writer.liveliness, lease_timer, ctx);
        let reliable = writer.reliable && self.data.qos.reliability.kind == ReliabilityKind::Reliable;
        let mut proxy = WriterProxy::new(guid, reliable, writer.path, timer, lease);
        proxy.skips_history =
            self.data.qos.durability == Durability::Volatile && writer.durability != Durability::Volatile;
        proxy.strength = writer.strength;
        proxy.directed_heartbeats = writer.vendor == VendorId::TAKT;
        proxy.greets_from_zero = writer.vendor == VendorId::EPROSIMA;
        let index = self.proxies.insert(proxy);
        debug_assert_eq!(index, proxy_index);
        self.matched.added(guid);
        self.liveliness.matched(guid);
        ctx.notify(Event::LivelinessChanged(self.handle));
        ctx.notify(Event::SubscriptionMatched(self.handle));
        if reliable {
            // Asks for the first heartbeat (pre-emptive ACKNACK, RTPS 2.5 §8.4.12.2).
            self.handle_timeout(now, ctx, index);
        }
        index
    }

    /// A matched writer has gone.
    pub(crate) fn remove_proxy(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(guid) = self.proxies.get(index).map(|proxy| proxy.guid) else { return };
        self.detach(ctx, index);
        self.forget_writers(now, ctx, |writer| *writer == guid);
    }

    /// A matched writer has gone, whose instances do not know it yet: [`Self::forget_writers`] must follow.
    pub(crate) fn detach(&mut self, ctx: &mut Context, index: u32) {
        let Some(mut proxy) = self.proxies.remove(index) else { return };
        ctx.timers.release(proxy.timer);
        proxy.lease.close(ctx);
        ctx.remove_owner();
        for stored in proxy.drain() {
            self.cache.discard(stored);
        }
        proxy.fragments.drop_below(SequenceNumber::MAX, &mut self.cache.pool, &mut self.reassembly);
        self.matched.removed(proxy.guid);
        self.liveliness.unmatched(proxy.guid, proxy.lease.alive);
    }

    /// Tells of the writers that have gone. Instances that only they wrote have no writers any more.
    pub(crate) fn forget_writers(&mut self, now: Instant, ctx: &mut Context, is_gone: impl Fn(&Guid) -> bool) {
        ctx.notify(Event::LivelinessChanged(self.handle));
        ctx.notify(Event::SubscriptionMatched(self.handle));
        ctx.work.steps(self.cache.len());
        if self.cache.remove_writers(is_gone, ctx.wall_clock(now)) {
            ctx.notify(Event::DataAvailable(self.handle));
        }
    }

    /// RTPS 2.5 §8.3.8.2: a whole sample.
    pub(crate) fn handle_data(&mut self, ctx: &mut Context, index: u32, stamp: Stamp, data: &Data<'_>) {
        self.saw_writer(stamp.now, ctx, index);
        if !self.accepts(ctx, index, data.sn, true) {
            return;
        }
        let Some(inline) = parse_inline_qos(data.inline_qos, ctx) else { return };
        let (payload, key_only) = match data.payload {
            Payload::None => (&[][..], true),
            Payload::Data(bytes) => (bytes, false),
            Payload::Key(bytes) => (bytes, true),
        };
        let Some(piece) = self.allocate(index, stamp.now, data.sn, payload.len()) else {
            return self.refuse(ctx, index, stamp.now, data.sn);
        };
        self.cache.pool.bytes_mut(piece).copy_from_slice(payload);
        self.accept(ctx, index, stamp, data.sn, &inline, piece, key_only);
    }

    /// RTPS 2.5 §8.3.8.3: a part of a large sample.
    pub(crate) fn handle_data_frag(&mut self, ctx: &mut Context, index: u32, stamp: Stamp, data: &DataFrag<'_>) {
        self.saw_writer(stamp.now, ctx, index);
        if !self.accepts(ctx, index, data.sn, false) {
            return;
        }
        let Some(inline) = parse_inline_qos(data.inline_qos, ctx) else { return };
        let result = loop {
            let Some(proxy) = self.proxies.get_mut(index) else { return };
            match proxy.fragments.insert(stamp, data, &mut self.cache.pool, &mut self.reassembly) {
                Err(Refused::NoRoom) if self.make_room_for(index, data.sn, stamp.now) => {}
                result => break result,
            }
        };
        match result {
            Ok(None) => {
                if let Some(proxy) = self.proxies.get_mut(index) {
                    proxy.progressed();
                }
            }
            Ok(Some((piece, source_timestamp))) => {
                if let Some(proxy) = self.proxies.get_mut(index) {
                    proxy.arrived(data.sn);
                }
                let stamp = Stamp { source_timestamp, ..stamp };
                self.accept(ctx, index, stamp, data.sn, &inline, piece, data.key);
            }
            Err(Refused::Duplicate) => ctx.counters.duplicate_fragments += 1,
            Err(Refused::Rejected | Refused::NoRoom) => ctx.counters.rejected_fragments += 1,
        }
    }

    /// Whether a sample number is of use now; keeps the accounts of those that are not.
    fn accepts(&mut self, ctx: &mut Context, index: u32, sn: SequenceNumber, whole: bool) -> bool {
        let Some(proxy) = self.proxies.get_mut(index) else { return false };
        let Some(expected) = proxy.expected else {
            // The first heartbeat will tell which samples are for us; this one will be asked for then.
            proxy.dropped_early = Some(proxy.dropped_early.map_or(sn, |early| early.min(sn)));
            return false;
        };
        let overtaken = is_on(Mutation::TakeOvertaken) && sn.next() < expected;
        let taken_again = !proxy.reliable && (overtaken || is_on(Mutation::TakeDuplicates));
        if sn < expected && !taken_again {
            ctx.counters.duplicate_samples += 1;
            return false;
        }
        if !proxy.reliable {
            ctx.counters.out_of_window += u64::from(sn > LAST_SAMPLE);
            return sn <= LAST_SAMPLE;
        }
        if !proxy.in_window(sn) {
            ctx.counters.out_of_window += 1;
            return false;
        }
        proxy.arrived(if whole { sn } else { sn.prev() });
        if proxy.arrival(sn) != Arrival::Missing {
            ctx.counters.duplicate_samples += 1;
            return false;
        }
        true
    }

    /// A sample has arrived whole and its payload is in the pool.
    #[expect(clippy::too_many_arguments, reason = "one call site per way of arrival")]
    fn accept(
        &mut self,
        ctx: &mut Context,
        index: u32,
        stamp: Stamp,
        sn: SequenceNumber,
        inline: &InlineQos<'_>,
        piece: PayloadRef,
        key_only: bool,
    ) {
        let Some(proxy) = self.proxies.get_mut(index) else { return self.cache.pool.release(piece) };
        let for_us = inline.directed_write.includes(self.data.guid) && !inline.must_understand_unknown;
        let kind = change_kind(inline.status_info.unwrap_or(0), key_only);
        let key_hash = match (self.keyed, inline.key_hash, &mut self.key) {
            (false, _, _) => Some([0; 16]),
            (true, Some(hash), _) => Some(hash),
            (true, None, Some(key)) => key.key_hash(self.cache.pool.bytes(piece), key_only),
            (true, None, None) => None,
        };
        let key_hash = key_hash.map(|hash| if is_on(Mutation::WrongInstance) && self.keyed { [7; 16] } else { hash });
        ctx.counters.undecodable_keys += u64::from(for_us && key_hash.is_none());
        let source_timestamp = stamp.source_timestamp;
        let stored = match key_hash.filter(|_| for_us) {
            Some(key_hash) => {
                let (writer, strength) = (proxy.guid, proxy.strength);
                let incoming = Incoming { writer, sn, kind, key_hash, source_timestamp, payload: piece, strength };
                let stored = self.store(index, stamp.now, incoming);
                if stored.is_none() {
                    self.cache.pool.release(piece);
                    return self.refuse(ctx, index, stamp.now, sn);
                }
                stored
            }
            None => {
                self.cache.pool.release(piece);
                None
            }
        };
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if proxy.reliable {
            proxy.progressed();
            proxy.set_arrival(sn, stored.map_or(Arrival::Irrelevant, Arrival::Waiting));
            self.deliver(ctx, index, stamp.now);
            self.notice_gap(ctx, index, stamp.now);
        } else {
            self.deliver_best_effort(ctx, index, stamp.now, sn, stored);
        }
    }

    fn deliver_best_effort(
        &mut self,
        ctx: &mut Context,
        index: u32,
        now: Instant,
        sn: SequenceNumber,
        stored: Option<Stored>,
    ) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let skipped = sn.0 - proxy.expected.map_or(sn.0, |expected| expected.0);
        if proxy.announced >= SequenceNumber::FIRST && skipped > 0 {
            self.lost.add(skipped as u64);
            ctx.notify(Event::SampleLost(self.handle));
        }
        proxy.announced = sn;
        proxy.expected = Some(sn.next());
        proxy.fragments.drop_below(sn, &mut self.cache.pool, &mut self.reassembly);
        let Some(stored) = stored else { return };
        match self.cache.deliver(stored, ctx.wall_clock(now), self.key.as_mut()) {
            Ok(delivered) => {
                deadline::delivered(&mut self.deadline, now, ctx, delivered);
                ctx.notify(Event::DataAvailable(self.handle));
            }
            Err(reason) => {
                self.cache.discard(stored);
                self.count_rejection(ctx, reason);
            }
        }
    }

    /// Hands on everything that has arrived up to the first missing sample. At most `REORDER_WINDOW` samples.
    fn deliver(&mut self, ctx: &mut Context, index: u32, now: Instant) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let Some(mut expected) = proxy.expected else { return };
        let start = expected;
        let mut refused = None;
        while !proxy.blocked {
            match proxy.arrival(expected) {
                Arrival::Missing
                    if is_on(Mutation::DeliverBehindGap) && expected.0 < start.0 + 8 && proxy.waiting > 0 => {}
                Arrival::Missing => break,
                Arrival::Irrelevant => {}
                Arrival::Waiting(stored) => {
                    match self.cache.deliver(stored, ctx.wall_clock(now), self.key.as_mut()) {
                        Ok(delivered) => deadline::delivered(&mut self.deadline, now, ctx, delivered),
                        Err(SampleRejectedReason::InstancesLimit) if self.entity_id.is_builtin() => {
                            // One entity too many must not keep us from hearing what goes.
                            self.cache.discard(stored);
                            ctx.counters.refused_remote_entities += 1;
                        }
                        Err(_) if is_on(Mutation::DropInsteadOfBlock) => self.cache.discard(stored),
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
            ctx.notify(Event::DataAvailable(self.handle));
        }
        if let Some(reason) = refused {
            self.any_blocked = true;
            self.blocked_at = self.cache.releases();
            self.count_rejection(ctx, reason);
        }
    }

    /// Something later has arrived while something earlier is missing: ask, unless it is only reordered.
    fn notice_gap(&mut self, ctx: &mut Context, index: u32, now: Instant) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if proxy.misses_something() {
            ctx.timers.arm_by(proxy.timer, now.after(ctx.timing.nack_delay));
        }
    }

    /// There is no room for a sample. If it is the next one of a reliable writer, that keeps it until the
    /// application has made room; a later one is asked for in its turn.
    fn refuse(&mut self, ctx: &mut Context, index: u32, now: Instant, sn: SequenceNumber) {
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

    fn allocate(&mut self, index: u32, now: Instant, sn: SequenceNumber, len: usize) -> Option<PayloadRef> {
        loop {
            let piece = self.cache.pool.allocate(len);
            if piece.is_some() || !self.make_room_for(index, sn, now) {
                return piece;
            }
        }
    }

    fn store(&mut self, index: u32, now: Instant, incoming: Incoming) -> Option<Stored> {
        loop {
            let stored = self.cache.store(incoming);
            if stored.is_some() || !self.make_room_for(index, incoming.sn, now) {
                return stored;
            }
        }
    }

    /// If the sample is the next one of a reliable writer: forgets samples that nobody goes on with, or the samples
    /// that wait for earlier ones of the writer that has most of them. They can be had again. Says whether there
    /// was anything to forget.
    fn make_room_for(&mut self, index: u32, sn: SequenceNumber, now: Instant) -> bool {
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
        forgot
    }

    fn count_rejection(&mut self, ctx: &mut Context, reason: SampleRejectedReason) {
        ctx.counters.rejected_samples += 1;
        self.rejected.total_count += 1;
        self.rejected.total_count_change += 1;
        self.rejected.last_reason = Some(reason);
        ctx.notify(Event::SampleRejected(self.handle));
    }

    /// The application took samples: deliver what waited for room.
    /// Says whether anything was waiting. Without room made since the last attempt there is none.
    pub(crate) fn unblock(&mut self, now: Instant, ctx: &mut Context) -> bool {
        let waits = !self.cache.has_room() || self.cache.releases() == self.blocked_at;
        if !self.any_blocked || waits || is_on(Mutation::NeverUnblock) {
            return false;
        }
        self.any_blocked = false;
        let mut from = 0;
        while let Some(index) = self.proxies.next_index(from) {
            from = index + 1;
            ctx.work.steps(1);
            if let Some(proxy) = self.proxies.get_mut(index)
                && core::mem::take(&mut proxy.blocked)
            {
                self.deliver(ctx, index, now);
                self.queue_acknack(ctx, index);
            }
        }
        true
    }

    /// RTPS 2.5 §8.3.8.4: samples that will not come, or are not for this reader.
    pub(crate) fn handle_gap(&mut self, now: Instant, ctx: &mut Context, index: u32, gap: &Gap) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if !proxy.reliable || proxy.expected.is_none() {
            return;
        }
        let base = gap.gap_list.base();
        for sn in gap.gap_list.iter() {
            if proxy.in_window(sn) && proxy.arrival(sn) == Arrival::Missing {
                proxy.set_arrival(sn, Arrival::Irrelevant);
            }
        }
        proxy.announce(base.prev());
        self.skip(ctx, index, now, gap.gap_start, base);
        self.notice_gap(ctx, index, now);
    }

    /// Gives up the missing samples of `[start, end)`; returns how many there were.
    fn skip(&mut self, ctx: &mut Context, index: u32, now: Instant, start: SequenceNumber, end: SequenceNumber) -> u64 {
        let Some(proxy) = self.proxies.get_mut(index) else { return 0 };
        let Some(expected) = proxy.expected else { return 0 };
        let mut skipped = 0;
        let window_end = SequenceNumber(expected.0.saturating_add(REORDER_WINDOW));
        ctx.work.steps((end.0.min(window_end.0) - start.0.max(expected.0)).max(0) as usize);
        for number in start.max(expected).0..end.min(window_end).0 {
            if proxy.arrival(SequenceNumber(number)) == Arrival::Missing {
                proxy.set_arrival(SequenceNumber(number), Arrival::Irrelevant);
                skipped += 1;
            }
        }
        self.deliver(ctx, index, now);
        // Beyond the window nothing is kept, so the rest of the range is one step.
        if let Some(proxy) = self.proxies.get_mut(index)
            && let Some(now_expected) = proxy.expected
            && start <= now_expected
            && now_expected < end
            && !proxy.blocked
        {
            skipped += (end.0 - now_expected.0) as u64;
            proxy.expected = Some(end);
            proxy.fragments.drop_below(end, &mut self.cache.pool, &mut self.reassembly);
        }
        skipped
    }

    /// RTPS 2.5 §8.3.8.6: what the writer has. `directed` if it names this reader.
    pub(crate) fn handle_heartbeat(&mut self, now: Instant, ctx: &mut Context, index: u32, heartbeat: &Heartbeat) {
        self.saw_heartbeat(now, ctx, index, heartbeat.liveliness);
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if !proxy.reliable || !is_newer(proxy.last_heartbeat, heartbeat.count) {
            return;
        }
        proxy.last_heartbeat = Some(heartbeat.count);
        let directed = heartbeat.reader == self.entity_id;
        let mut lost = 0;
        match proxy.expected {
            None => {
                let skips_history = proxy.skips_history && !(directed && proxy.directed_heartbeats);
                let live = heartbeat.last_sn.next();
                let start =
                    if skips_history { live.min(proxy.dropped_early.unwrap_or(live)) } else { heartbeat.first_sn };
                proxy.expected = Some(start.max(heartbeat.first_sn));
                ctx.timers.cancel(proxy.timer);
                proxy.announce(heartbeat.last_sn);
            }
            Some(expected) => {
                proxy.announce_by_heartbeat(heartbeat.last_sn);
                if heartbeat.first_sn > expected {
                    lost = self.skip(ctx, index, now, expected, heartbeat.first_sn);
                }
            }
        }
        if lost > 0 {
            self.lost.add(lost);
            ctx.notify(Event::SampleLost(self.handle));
        }
        self.answer_heartbeat(now, ctx, index, heartbeat);
    }
}

/// What the inline QoS says; `None` if it is malformed.
fn parse_inline_qos<'a>(list: Option<ParameterList<'a>>, ctx: &mut Context) -> Option<InlineQos<'a>> {
    match list.map(InlineQos::parse).transpose() {
        Ok(inline) => Some(inline.unwrap_or_default()),
        Err(_) => {
            ctx.counters.malformed_submessages += 1;
            None
        }
    }
}

/// RTPS 2.5 §9.6.4.9: the status bits say what a change without data does.
fn change_kind(status: u32, key_only: bool) -> ChangeKind {
    match (status & STATUS_INFO_DISPOSED != 0, status & STATUS_INFO_UNREGISTERED != 0) {
        (true, true) => ChangeKind::DisposedUnregistered,
        (true, false) => ChangeKind::Disposed,
        (false, true) => ChangeKind::Unregistered,
        // A key without a status tells nothing about the instance but that it exists no longer for this writer.
        (false, false) if key_only => ChangeKind::Unregistered,
        (false, false) => ChangeKind::Alive,
    }
}
