//! Local writer: best-effort or reliable, for any number of readers (RTPS 2.5 §8.4.7, §8.4.9).
//!
//! `mod.rs` owns the control flow: writing and the heartbeat timer.
//!
//! - `matching`: the matched readers.
//! - `route`: destinations of new samples; `route_change`: its changes; `path_probe`: its MTU.
//! - `acknowledgments`: answers of the readers.
//! - `transmit`: datagrams of new samples; `repair`: those for a single reader.
//!
//! Invariants:
//! - Every change below `cursor` was sent, or found irrelevant, once. No change from `cursor` on
//!   was sent.
//! - `history.acknowledged_upto` is the highest change that is sent and acknowledged by every
//!   reliable reader that keeps pace. A `VOLATILE` writer keeps nothing up to it. Other writers
//!   keep no disposed and unregistered instance up to it.
//! - Without readers every change counts as acknowledged when it is written.
//! - `window_start`, at or above `history.acknowledged_upto`, is the equivalent for the readers
//!   that the send window waits for ([`slow_readers`]).
//! - `in_flight_bytes` is the sum of `flight_len` of the changes in (`window_start`, `cursor`).

mod acknowledgments;
mod batch;
mod burst;
mod expiry;
mod fast_path;
mod filters;
mod heartbeat;
mod history;
mod matching;
mod membership;
mod offered_timing;
mod order;
mod pace;
mod path_probe;
mod probes;
mod reader_proxy;
mod repair;
mod route;
mod route_change;
mod security;
mod slow_readers;
mod transmit;
mod window;

pub(crate) use filters::Filters;
pub(crate) use history::{Change, Directed, Full, HistoryLimits, MAX_DIRECTED, Room, WriterHistory};
pub(crate) use matching::ReaderTraits;
pub(crate) use reader_proxy::ReaderProxy;
pub(crate) use slow_readers::Presence;

use crate::WriterFlows;
use crate::cache::{ChangeKind, InstanceHandle, KeyHash, PayloadRef};
use crate::context::{Context, Job};
use crate::error::{Error, WriteError};
use crate::event::Event;
use crate::locator_kinds::LocatorKinds;
use crate::presentation::SetPosition;
use crate::security::Protection;
use crate::slots::{Slots, WriterHandle};
use crate::status::WriterStatuses;
use crate::time::Instant;
use crate::timer::TimerKind;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use batch::Batch;
use heartbeat::{HeartbeatState, Periods};
use membership::Membership;
pub(crate) use offered_timing::OfferedTiming;
use order::Stamps;
pub(crate) use probes::Probes;
use route::Route;
pub(crate) use security::WriterSecurity;
use takt_schedule::Priority;
use takt_wire::discovery::PublicationData;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{EntityId, Guid, GuidPrefix, PAYLOAD_PREFIX_LEN, SequenceNumber, SharedPayload, Timestamp};
use window::{Cursor, SendWindow};

/// Change from the application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: KeyHash,
    pub(crate) source_timestamp: Timestamp,
    pub(crate) payload_len: usize,
    pub(crate) directed: Directed,
    /// Position of the change as far as the publisher determines it.
    pub(crate) position: SetPosition,
    /// The change belongs to an open coherent set of the publisher.
    pub(crate) in_set: bool,
    /// Original writer and its sequence number, if the change is relayed.
    pub(crate) origin: Option<SampleIdentity>,
}

/// Source of the payload of a change.
pub(crate) enum Content<'a, F> {
    /// Serialized into the history.
    Serialize(F),
    /// Loaned memory shared with readers of this host. [`Write::payload_len`] is 0: the history
    /// needs no room.
    Loan(&'a SharedPayload),
}

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) handle: WriterHandle,
    pub(crate) entity_id: EntityId,
    /// Announced data. Builtin writers have such data too.
    pub(crate) data: Box<PublicationData>,
    pub(crate) flows: WriterFlows,
    /// Locator kinds that its data may use.
    pub(crate) kinds: LocatorKinds,
    /// Priority of all its datagrams.
    pub(crate) priority: Priority,
    /// Publisher of the writer, if one was created.
    pub(crate) group: Option<u32>,
    pub(crate) keyed: bool,
    pub(crate) security: WriterSecurity,
    /// Sequence number of its last SEDP announcement.
    pub(crate) announced: SequenceNumber,
    /// The writer is a relay of other writers' samples.
    relays: bool,
    pub(crate) is_enabled: bool,
    /// Its publisher has suspended publications (DDS 1.4 §2.2.2.4.1).
    is_suspended: bool,
    /// The writer serves late joiners from its history.
    ///
    /// DEVIATION(DDS 1.4 §2.2.3.4): a TRANSIENT or PERSISTENT writer serves late joiners as a
    /// TRANSIENT_LOCAL one. Without a durability service its samples end with it.
    keeps_history: bool,
    pub(crate) history: WriterHistory,
    pub(crate) proxies: Slots<ReaderProxy>,
    proxy_by_guid: BTreeMap<Guid, u32>,
    pub(crate) filters: Filters,
    route: Route,
    pub(crate) probes: Probes,
    window: SendWindow,
    heartbeat: HeartbeatState,
    data_queued: bool,
    /// Fragments of new changes wait for the queue of a network interface.
    pub(crate) is_blocked: bool,
    /// New changes wait until best-effort readers have received directed ones.
    has_pending_directed: bool,
    /// A `write` found no room.
    space_wanted: bool,
    batch: Batch,
    pub(crate) timing: OfferedTiming,
    stamps: Stamps,
    membership: Option<Membership>,
    pub(crate) statuses: WriterStatuses,
}

impl Probes {
    /// Takes whether a probe was queued.
    pub(crate) fn take_queued(&mut self) -> bool {
        core::mem::take(&mut self.is_queued)
    }
}

impl SendWindow {
    /// Returns the state that determines how far removed changes open the send window.
    fn freed(&self) -> Freed {
        Freed { from: self.start, to: self.cursor.sn, bytes: 0 }
    }
}

impl Writer {
    pub(crate) fn new(
        handle: WriterHandle,
        data: Box<PublicationData>,
        keyed: bool,
        flows: WriterFlows,
        history: WriterHistory,
        now: Instant,
        ctx: &mut Context,
    ) -> Self {
        ctx.add_owner(Priority::NORMAL);
        let mut history = history;
        if !data.qos.lifespan.duration.is_infinite() {
            history.expect_expiries();
        }
        let timing = OfferedTiming::new(now, handle, &data, ctx);
        Self {
            handle,
            entity_id: data.guid.entity_id,
            keeps_history: data.qos.durability != takt_wire::qos::Durability::Volatile,
            data,
            flows,
            kinds: LocatorKinds::ALL,
            priority: Priority::NORMAL,
            group: None,
            keyed,
            security: WriterSecurity::new(ctx),
            announced: SequenceNumber::ZERO,
            relays: false,
            is_enabled: false,
            is_suspended: false,
            history,
            proxies: Slots::new(),
            proxy_by_guid: BTreeMap::new(),
            filters: Filters::default(),
            route: Route::new(0),
            probes: Probes::default(),
            window: SendWindow::new(),
            heartbeat: HeartbeatState::new(ctx.timers.register(TimerKind::Heartbeat { writer: handle.index })),
            data_queued: false,
            is_blocked: false,
            has_pending_directed: false,
            space_wanted: false,
            batch: Batch::new(ctx.timers.register(TimerKind::Batch { writer: handle.index })),
            timing,
            stamps: Stamps::default(),
            membership: None,
            statuses: WriterStatuses::default(),
        }
    }

    /// Protects submessages and payloads from now on. To be called before anything is written or
    /// matched.
    pub(crate) fn set_protection(&mut self, protection: Protection, ctx: &Context) {
        let reserve = self.security.protect(protection, self.entity_id, ctx);
        self.route = Route::new(self.route.more + reserve);
    }

    /// Makes the sequence numbers begin above this one. To be called before anything is written or
    /// matched.
    pub(crate) fn begin_after(&mut self, sn: SequenceNumber) {
        self.history.begin_after(sn);
        self.skip_sending();
    }

    /// Marks all changes as sent, because there is no reader.
    fn skip_sending(&mut self) {
        let last = self.history.last_sn();
        self.window.cursor = Cursor::at(last.next());
        (self.history.acknowledged_upto, self.window.start) = (last, last);
    }

    /// Releases the timers and queue space of the writer.
    pub(crate) fn close(&mut self, ctx: &mut Context) {
        for _ in 0..self.proxies.len() {
            ctx.remove_owner();
        }
        ctx.remove_owner();
        self.timing.close(ctx);
        self.probes.end_route_change(ctx);
        self.probes.close_path(ctx);
        ctx.timers.release(self.heartbeat.timer);
        ctx.timers.release(self.timing.expiry_timer);
        self.batch.close(ctx);
        self.timing.pace.close(ctx);
    }

    fn index(&self) -> u32 {
        self.handle.index
    }

    /// As [`put`](Self::put), for a payload that is serialized into the history.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        write: &Write,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<SequenceNumber, WriteError> {
        self.put(now, ctx, write, Content::Serialize(fill))
    }

    /// Appends a change and queues it for sending. One call writes one change and evicts at most
    /// one.
    pub(crate) fn put(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        write: &Write,
        content: Content<'_, impl FnOnce(&mut [u8]) -> Option<usize>>,
    ) -> Result<SequenceNumber, WriteError> {
        // A relay is filled before it is announced.
        if !self.is_enabled && !self.relays {
            return Err(Error::NotEnabled.into());
        }
        self.timing.pace.check_contract(now, ctx, write)?;
        let position = self.position_of(write);
        if self.proxies.len() == 0 && !self.keeps_history {
            let sn = self.skip_number();
            self.stamps.last = write.source_timestamp;
            self.timing.pace.begin_separation(now, write);
            self.commit_position(&position);
            self.timing.record_write(now, ctx, write);
            return Ok(sn);
        }
        let room = self.make_room(write, write.payload_len, ctx);
        let Room { payload, replaced } = room.inspect_err(|_| self.flush(now, ctx))?;
        let (payload, len) = self.fill(payload, content)?;
        let rejected = if self.filters.is_empty() { 0 } else { self.evaluate_filters(write.kind, payload, ctx) };
        let mut change = WriterHistory::change(
            write.kind,
            write.key_hash,
            write.source_timestamp,
            payload,
            write.directed,
            self.route.fragment_size,
            self.expiry_of(now, ctx, write),
        );
        change.position = position;
        change.rejected = rejected;
        if self.loans_to_all(payload) {
            change.flight_len = PAYLOAD_PREFIX_LEN as u32;
        }
        let mut freed = self.window.freed();
        let sn = self.history.append(&change, replaced, &mut |evicted| freed.note(evicted));
        self.window.in_flight_bytes -= freed.bytes;
        if let Some(origin) = write.origin {
            self.history.set_origin(sn, origin);
        }
        self.stamps.last = write.source_timestamp;
        self.timing.pace.begin_separation(now, write);
        self.arm_expiry(now, ctx);
        self.commit_position(&position);
        self.stamps.written = write.source_timestamp;
        if self.proxies.len() == 0 {
            self.skip_sending();
            if write.kind == ChangeKind::DisposedUnregistered && !self.relays {
                self.history.remove_instance(write.key_hash, sn);
            }
        }
        self.send_in_time(now, ctx, len);
        self.timing.record_write(now, ctx, write);
        Ok(sn)
    }

    /// Writes the content of a change into the reserved room, or stores a reference to it.
    fn fill(
        &mut self,
        room: PayloadRef,
        content: Content<'_, impl FnOnce(&mut [u8]) -> Option<usize>>,
    ) -> Result<(PayloadRef, usize), WriteError> {
        let pool = &mut self.history.pool;
        match content {
            Content::Loan(loan) => Ok((pool.insert_loan(loan.clone()), loan.len())),
            Content::Serialize(fill) => {
                let Some(len) = fill(pool.bytes_mut(room)).filter(|len| *len <= room.len()) else {
                    pool.release(room);
                    return Err(WriteError::Serialize);
                };
                Ok((pool.truncate(room, len), len))
            }
        }
    }

    fn make_room(&mut self, write: &Write, payload_len: usize, ctx: &mut Context) -> Result<Room, WriteError> {
        let mut freed = self.window.freed();
        let room = self.history.make_room(write.key_hash, payload_len, &mut |evicted| freed.note(evicted));
        self.window.in_flight_bytes -= freed.bytes;
        ctx.work.steps(self.history.take_visited());
        room.map_err(|full| self.refusal(full, ctx))
    }

    /// Returns the most steps that one unit of work takes for the writer's state.
    pub(crate) fn steps_max(&self) -> usize {
        // A write without room searches for a sample to replace, twice for memory, and for whether
        // room may become free.
        4 * self.history.len() + self.history.pool.steps_max() + self.timing.deadline.len() + self.filters.steps_max()
    }

    /// Returns the error of a write without room: the write can wait if room may become free,
    /// otherwise a limit prevents it permanently (DDS 1.4 §2.2.2.4.2.11).
    fn refusal(&mut self, full: Full, ctx: &mut Context) -> WriteError {
        let limits = &self.data.qos.resource_limits;
        let of_default = |value: Option<u32>, name, default_name, default: usize| match value {
            Some(value) => (name, u64::from(value)),
            None => (default_name, default as u64),
        };
        let memory = ("endpoint_memory_bytes", self.history.pool.capacity() as u64);
        let (limit, value) = match full {
            Full::Samples => {
                of_default(limits.max_samples, "max_samples", "default_max_samples", ctx.limits.default_max_samples)
            }
            Full::SamplesOfInstance => {
                ("max_samples_per_instance", limits.max_samples_per_instance.map_or(0, u64::from))
            }
            Full::Instances => {
                let default = ctx.limits.default_max_instances;
                of_default(limits.max_instances, "max_instances", "default_max_instances", default)
            }
            Full::Memory | Full::TooLarge => memory,
        };
        let is_permanent = match full {
            Full::TooLarge => true,
            Full::Instances => !self.history.has_discarded(),
            Full::Samples | Full::SamplesOfInstance | Full::Memory => !self.may_find_room(ctx),
        };
        if !is_permanent {
            self.space_wanted = true;
            return WriteError::WouldBlock;
        }
        Error::OutOfResources { limit, value }.into()
    }

    /// Reports whether acknowledgments, the end of a LIFESPAN, or removals by the owner of a relay
    /// may free room.
    fn may_find_room(&self, ctx: &mut Context) -> bool {
        if !self.keeps_history || self.relays || self.history.next_expiry().is_some() {
            return true;
        }
        ctx.work.steps(self.history.len());
        self.history.awaits_end_of_instance()
    }

    /// Reports whether the next change of an instance replaces one that was not sent, but could be
    /// sent now.
    pub(crate) fn would_replace_unsent(&self, key_hash: KeyHash) -> bool {
        self.history
            .next_evicted(key_hash)
            .is_some_and(|sn| (self.data_queued && sn >= self.window.cursor.sn) || self.is_directed_and_unsent(sn))
    }

    fn is_directed_and_unsent(&self, sn: SequenceNumber) -> bool {
        let is_directed = self.history.get(sn).is_some_and(|change| !change.directed.readers().is_empty());
        is_directed && self.proxies.iter().any(|(_, proxy)| proxy.requested.contains(sn))
    }

    fn queue_data(&mut self, ctx: &mut Context) {
        if !self.data_queued && self.proxies.len() > 0 && !self.is_suspended && !self.batch.waits() {
            self.data_queued = true;
            ctx.jobs.push(self.priority, Job::Data { writer: self.index() });
        }
    }

    pub(super) fn queue_heartbeat(&mut self, ctx: &mut Context) {
        if !self.heartbeat.is_queued {
            self.heartbeat.is_queued = true;
            ctx.jobs.push(self.priority, Job::Heartbeat { writer: self.index() });
        }
    }

    /// Queues a probe on the path of the samples: before a change of route, or of the path MTU.
    fn queue_probe(&mut self, ctx: &mut Context) {
        if !core::mem::replace(&mut self.probes.is_queued, true) {
            ctx.jobs.push(self.priority, Job::WriterProbe { writer: self.index() });
        }
    }

    /// Prepares the queued probe with the sequence number `number`: adds its destinations, and
    /// returns its minimum length in octets.
    pub(crate) fn address_probe(&mut self, now: Instant, number: SequenceNumber, ctx: &mut Context) -> usize {
        if self.probes.has_route_probe() {
            self.address_route_probe(now, number, ctx);
            if self.probes.path.as_ref().is_some_and(|probe| probe.is_queued) {
                self.queue_probe(ctx);
            }
            return 0;
        }
        let len = self.probes.probe_len();
        if self.probes.path.as_ref().is_some_and(|probe| probe.is_queued) {
            self.address_path_probe(now, number, ctx);
        }
        len
    }

    /// Handles the answer of a participant to the probe with this sequence number. The probe may be
    /// that of another writer.
    pub(crate) fn handle_probe_answer(&mut self, ctx: &mut Context, prefix: GuidPrefix, number: SequenceNumber) {
        self.handle_route_answer(ctx, prefix, number);
        self.handle_path_answer(ctx, prefix, number);
    }

    /// Suspends or resumes the sending of new changes.
    pub(crate) fn suspend(&mut self, is_suspended: bool, ctx: &mut Context) {
        self.is_suspended = is_suspended;
        self.queue_data(ctx);
    }

    pub(crate) fn queue_repair(&mut self, index: u32, ctx: &mut Context) {
        let writer = self.index();
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if !proxy.queued && proxy.has_work() {
            proxy.queued = true;
            ctx.jobs.push(self.priority, Job::Repair { writer, proxy: index });
        }
    }

    /// Schedules a heartbeat for a reader that may lag, after the first period. The timer may be
    /// armed for a later heartbeat to other readers.
    fn schedule_heartbeat(&mut self, now: Instant, ctx: &mut Context) {
        if ctx.timers.is_armed(self.heartbeat.timer) {
            ctx.timers.arm_by(self.heartbeat.timer, now.after(self.heartbeat.first_period));
        } else if self.has_unacknowledged() {
            self.arm_heartbeat(now, ctx);
        }
    }

    fn arm_heartbeat(&mut self, now: Instant, ctx: &mut Context) {
        ctx.work.steps(2 * self.proxies.len());
        let last = self.history.last_sn();
        let periods = self.heartbeat_periods(ctx);
        let lagging = self.proxies.iter().filter(|(_, proxy)| proxy.lags(last));
        let next = lagging
            .map(|(_, proxy)| proxy.heartbeat_retries.due(periods, proxy.is_unresponsive_builtin()))
            .min()
            .unwrap_or(now);
        self.heartbeat.first_period = periods.first;
        ctx.timers.arm(self.heartbeat.timer, next.max(now.after(periods.first)));
    }

    fn heartbeat_periods(&self, ctx: &Context) -> Periods {
        let last = self.history.last_sn();
        let lagging = self.proxies.iter().filter(|(_, proxy)| proxy.lags(last)).count() as u32;
        Periods::new(&ctx.timing, lagging, if self.entity_id.is_builtin() { ctx.period_multiplier() } else { 1 })
    }

    /// Requests an acknowledgment of all lagging readers, regardless of the last one.
    pub(super) fn heartbeat_all(&mut self, ctx: &mut Context) {
        ctx.work.steps(self.proxies.len());
        self.proxies.iter_mut().for_each(|(_, proxy)| proxy.heartbeat_retries.is_due = true);
        self.queue_heartbeat(ctx);
    }

    /// Handles the heartbeat timer. `presence` returns the state of a reader's participant.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        presence: impl Fn(GuidPrefix) -> Presence,
    ) {
        if !self.has_unacknowledged() {
            return;
        }
        ctx.work.steps(2 * self.proxies.len());
        let (last, periods) = (self.history.last_sn(), self.heartbeat_periods(ctx));
        let mut is_due = false;
        for (_, proxy) in self.proxies.iter_mut().filter(|(_, proxy)| proxy.lags(last)) {
            let is_unresponsive = proxy.is_unresponsive_builtin();
            proxy.heartbeat_retries.handle_timeout(now, periods, is_unresponsive);
            is_due |= proxy.heartbeat_retries.is_due;
        }
        if is_due {
            self.queue_heartbeat(ctx);
        }
        self.queue_data(ctx);
        self.update_silence(now, ctx, presence);
        self.exclude_slow_readers(now, ctx);
        self.arm_heartbeat(now, ctx);
    }

    /// Asserts the liveliness of the writer for the application.
    pub(crate) fn assert_liveliness(&mut self, now: Instant, ctx: &mut Context) {
        self.timing.renew_lease(now, ctx);
        self.heartbeat.asserts = true;
        self.queue_heartbeat(ctx);
    }

    /// Makes the writer a relay. To be called before anything is written or matched.
    pub(crate) fn make_relay(&mut self) {
        self.relays = true;
        self.history.keep_origins();
        self.route.more += route::HEADROOM_FOR_ORIGIN;
    }

    /// Removes an instance once its changes are acknowledged. Takes a step for each change.
    pub(crate) fn discard_instance(&mut self, ctx: &mut Context, instance: InstanceHandle) {
        ctx.work.steps(self.history.discard_instance(instance.0));
    }

    /// Removes the relayed changes of an original writer above a sequence number, once they are
    /// acknowledged. Takes a step for each change.
    pub(crate) fn discard_relayed(&mut self, ctx: &mut Context, origin: Guid, above: SequenceNumber) {
        let mut next = SequenceNumber::FIRST;
        while let Some(change) = self.history.at_or_after(next) {
            ctx.work.steps(1);
            let sn = change.sn;
            let is_above = |by: SampleIdentity| by.writer == origin && by.sn > above;
            if self.history.origin_of(change).is_some_and(is_above) {
                self.history.discard(sn);
            }
            next = sn.next();
        }
    }

    /// Frees the changes that are sent and acknowledged, and opens the send window accordingly.
    fn release_acknowledged(&mut self, ctx: &mut Context) {
        ctx.work.steps(self.proxies.len());
        let sent = self.window.cursor.sn.prev();
        let (mut low, mut start) = (sent, sent);
        for (_, proxy) in self.proxies.iter().filter(|(_, proxy)| proxy.reliable || !self.keeps_history) {
            low = low.min(proxy.needs_above());
            start = start.min(proxy.pace().unwrap_or(sent));
        }
        if low <= self.history.acknowledged_upto && start <= self.window.start {
            return;
        }
        let mut next = self.history.acknowledged_upto.next();
        while let Some(change) = self.history.at_or_after(next).filter(|change| change.sn <= low) {
            ctx.work.steps(1);
            let Change { sn, kind, key_hash, flight_len, is_discarded, position: SetPosition { ends, .. }, .. } =
                *change;
            if sn > self.window.start {
                self.window.in_flight_bytes -= flight_len as usize;
            }
            if !self.keeps_history || is_discarded || (ends && self.history.is_set_gone(sn)) {
                self.history.remove(sn);
            } else if kind == ChangeKind::DisposedUnregistered && !self.relays {
                self.history.remove_instance(key_hash, sn);
            }
            next = sn.next();
        }
        let mut next = self.window.start.max(low).next();
        while let Some(change) = self.history.at_or_after(next).filter(|change| change.sn <= start) {
            ctx.work.steps(1);
            self.window.in_flight_bytes -= change.flight_len as usize;
            next = change.sn.next();
        }
        self.window.start = start.max(self.window.start);
        if low <= self.history.acknowledged_upto {
            return;
        }
        self.history.acknowledged_upto = low;
        if core::mem::take(&mut self.space_wanted) {
            ctx.notify(Event::WriterSpace(self.handle));
        }
    }
}

/// Octets of the send window that changes in flight, those between the two numbers, release.
struct Freed {
    from: SequenceNumber,
    to: SequenceNumber,
    bytes: usize,
}

impl Freed {
    fn note(&mut self, change: &Change) {
        if change.sn > self.from && change.sn < self.to {
            self.bytes += change.flight_len as usize;
        }
    }
}
