//! Local writer: best-effort or reliable, for any number of readers (RTPS 2.5 §8.4.7, §8.4.9).
//!
//! `mod.rs` owns the control flow: writing and the heartbeat timer.
//!
//! - `matching`: the matched readers.
//! - `route`: destinations of new samples; `route_change`: its changes; `path_probe`: its MTU.
//! - `acknowledgements`: answers of the readers.
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

mod acknowledgements;
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
mod reader_proxy;
mod repair;
mod route;
mod route_change;
mod slow_readers;
mod transmit;

pub(crate) use filters::Filters;
pub(crate) use history::{Change, Directed, Full, HistoryLimits, MAX_DIRECTED, Room, WriterHistory};
pub(crate) use matching::ReaderTraits;
pub(crate) use reader_proxy::{Path, ReaderProxy};
pub(crate) use slow_readers::Presence;

use crate::WriterFlows;
use crate::cache::{ChangeKind, InstanceHandle, KeyHash, PayloadRef};
use crate::context::{Context, Job};
use crate::deadline::DeadlineMonitor;
use crate::error::{Error, WriteError};
use crate::event::Event;
use crate::lifespan::Expiry;
use crate::locator_kinds::LocatorKinds;
use crate::presentation::SetPosition;
use crate::security::Protection;
use crate::slots::{Slots, WriterHandle};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessLostStatus, MatchedStatus,
};
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use batch::Batch;
use heartbeat::{HeartbeatState, Periods};
use membership::Membership;
use offered_timing::OwnLease;
use pace::Pace;
use path_probe::PathProbe;
use route::Route;
use route_change::RouteChange;
use takt_exec::Priority;
use takt_wire::discovery::PublicationData;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{EntityId, Guid, GuidPrefix, PAYLOAD_PREFIX_LEN, SequenceNumber, SharedPayload, Timestamp};

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

/// First change, or fragment of it, that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    sn: SequenceNumber,
    fragment: u32,
}

impl Cursor {
    /// Returns the last change that was sent at least in part.
    fn begun(&self) -> SequenceNumber {
        if self.fragment > 1 { self.sn } else { self.sn.prev() }
    }
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
    pub(crate) protection: Protection,
    /// Octets that the protection adds to each payload.
    payload_overhead: usize,
    /// Octets of the protection of a submessage, as of when fragment sizes were chosen. They grow
    /// with the receivers whose authentication codes the submessage carries.
    planned_reserve: usize,
    /// Only receiver of all its messages, which name it: the writer's key is shared with that
    /// participant alone.
    pub(crate) addressee: Option<GuidPrefix>,
    /// Payloads may stay in memory shared with their readers, because they are not protected.
    may_loan: bool,
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
    /// Pending change of the route, while best-effort readers are probed.
    route_change: Option<Box<RouteChange>>,
    /// Path MTU probe; present with best-effort readers on a path that may have a smaller MTU.
    path_probe: Option<PathProbe>,
    /// A probe is queued.
    probe_queued: bool,
    cursor: Cursor,
    /// Last change that was loaned to readers with shared memory while it was still to be sent to
    /// others.
    last_loaned: SequenceNumber,
    window_start: SequenceNumber,
    in_flight_bytes: usize,
    /// Time at which the send window closed, if it has not opened since.
    closed_since: Option<Instant>,
    heartbeat: HeartbeatState,
    timer: TimerId,
    data_queued: bool,
    /// New changes wait until best-effort readers have received directed ones.
    has_pending_directed: bool,
    /// The last datagram or the send window was full: the next datagram is to be full too.
    stalled: bool,
    heartbeat_queued: bool,
    /// A reliable reader may not have received a heartbeat yet.
    readers_without_heartbeat: bool,
    /// Change before which such readers were last sent an initial heartbeat.
    initial_heartbeat_before: SequenceNumber,
    /// The next heartbeat goes to all readers and asserts the writer's liveliness.
    asserting: bool,
    /// A `write` found no room.
    space_wanted: bool,
    batch: Batch,
    pace: Pace,
    /// Source timestamp of the last change.
    last_stamp: Timestamp,
    expiry_timer: TimerId,
    /// Expiry that the timer is armed for.
    armed_expiry: Expiry,
    deadline: DeadlineMonitor,
    lease: Option<OwnLease>,
    membership: Option<Membership>,
    /// Source timestamp of the last change.
    source_timestamp: Timestamp,
    pub(crate) deadline_missed: DeadlineMissedStatus,
    pub(crate) liveliness_lost: LivelinessLostStatus,
    pub(crate) matched: MatchedStatus,
    pub(crate) incompatible: IncompatibleQosStatus,
    /// Longest `write` call that the runtime has reported, in nanoseconds.
    pub(crate) longest_write_ns: u64,
    pub(crate) inconsistent_topic: InconsistentTopicStatus,
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
        let deadline = offered_timing::monitor(handle, &data, ctx);
        let pace = Pace::new(&data.qos, ctx.timers.register(TimerKind::Pace { writer: handle.index }));
        let lease = OwnLease::new(now, handle, &data.qos.liveliness, ctx);
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
            protection: Protection::default(),
            payload_overhead: 0,
            planned_reserve: 0,
            addressee: None,
            may_loan: ctx.security.is_none(),
            announced: SequenceNumber::ZERO,
            relays: false,
            is_enabled: false,
            is_suspended: false,
            history,
            proxies: Slots::new(),
            proxy_by_guid: BTreeMap::new(),
            filters: Filters::default(),
            route: Route::new(0),
            route_change: None,
            path_probe: None,
            probe_queued: false,
            cursor: Cursor { sn: SequenceNumber::FIRST, fragment: 1 },
            last_loaned: SequenceNumber::ZERO,
            window_start: SequenceNumber::ZERO,
            in_flight_bytes: 0,
            closed_since: None,
            heartbeat: HeartbeatState::default(),
            timer: ctx.timers.register(TimerKind::Heartbeat { writer: handle.index }),
            data_queued: false,
            has_pending_directed: false,
            stalled: false,
            heartbeat_queued: false,
            readers_without_heartbeat: false,
            initial_heartbeat_before: SequenceNumber::ZERO,
            asserting: false,
            space_wanted: false,
            pace,
            batch: Batch::new(ctx.timers.register(TimerKind::Batch { writer: handle.index })),
            last_stamp: Timestamp::ZERO,
            expiry_timer: ctx.timers.register(TimerKind::WriterExpiry { writer: handle.index }),
            armed_expiry: Expiry::NEVER,
            deadline,
            lease,
            membership: None,
            source_timestamp: Timestamp::INVALID,
            deadline_missed: DeadlineMissedStatus::default(),
            liveliness_lost: LivelinessLostStatus::default(),
            matched: MatchedStatus::default(),
            incompatible: IncompatibleQosStatus::default(),
            longest_write_ns: 0,
            inconsistent_topic: InconsistentTopicStatus::default(),
        }
    }

    /// Protects submessages and payloads from now on. To be called before anything is written or
    /// matched.
    pub(crate) fn set_protection(&mut self, protection: Protection, ctx: &Context) {
        self.protection = protection;
        self.payload_overhead = ctx.payload_overhead(self.entity_id);
        self.planned_reserve = self.reserve(ctx);
        self.route = Route::new(self.route.more + self.planned_reserve);
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
        self.cursor = Cursor { sn: last.next(), fragment: 1 };
        (self.history.acknowledged_upto, self.window_start) = (last, last);
    }

    /// Releases the timers and queue space of the writer.
    pub(crate) fn close(&mut self, ctx: &mut Context) {
        for _ in 0..self.proxies.len() {
            ctx.remove_owner();
        }
        ctx.remove_owner();
        self.close_timing(ctx);
        self.end_change(ctx);
        self.close_probe(ctx);
        ctx.timers.release(self.timer);
        ctx.timers.release(self.expiry_timer);
        self.batch.close(ctx);
        self.pace.close(ctx);
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
        self.check_contract(now, ctx, write)?;
        let position = self.position_of(write);
        if self.proxies.len() == 0 && !self.keeps_history {
            let sn = self.skip_number();
            self.last_stamp = write.source_timestamp;
            self.begin_separation(now, write);
            self.commit_position(&position);
            self.record_write(now, ctx, write);
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
        let mut freed = self.freed();
        let sn = self.history.append(&change, replaced, &mut |evicted| freed.note(evicted));
        self.in_flight_bytes -= freed.bytes;
        if let Some(origin) = write.origin {
            self.history.set_origin(sn, origin);
        }
        self.last_stamp = write.source_timestamp;
        self.begin_separation(now, write);
        self.arm_expiry(now, ctx);
        self.commit_position(&position);
        self.source_timestamp = write.source_timestamp;
        if self.proxies.len() == 0 {
            self.skip_sending();
            if write.kind == ChangeKind::DisposedUnregistered && !self.relays {
                self.history.remove_instance(write.key_hash, sn);
            }
        }
        self.send_in_time(now, ctx, len);
        self.record_write(now, ctx, write);
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
        let mut freed = self.freed();
        let room = self.history.make_room(write.key_hash, payload_len, &mut |evicted| freed.note(evicted));
        self.in_flight_bytes -= freed.bytes;
        ctx.work.steps(self.history.take_visited());
        room.map_err(|full| self.refusal(full, ctx))
    }

    /// Returns the most steps that one unit of work takes for the writer's state.
    pub(crate) fn steps_max(&self) -> usize {
        // A write without room searches for a sample to replace, twice for memory, and for whether
        // room may become free.
        4 * self.history.len() + self.history.pool.steps_max() + self.deadline.len() + self.filters.steps_max()
    }

    /// Returns the state that determines how far removed changes open the send window.
    fn freed(&self) -> Freed {
        Freed { from: self.window_start, to: self.cursor.sn, bytes: 0 }
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

    /// Reports whether acknowledgements, the end of a LIFESPAN, or removals by the owner of a relay
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
            .is_some_and(|sn| (self.data_queued && sn >= self.cursor.sn) || self.is_directed_and_unsent(sn))
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
        if !self.heartbeat_queued {
            self.heartbeat_queued = true;
            ctx.jobs.push(self.priority, Job::Heartbeat { writer: self.index() });
        }
    }

    /// Queues a probe on the path of the samples: before a change of route, or of the path MTU.
    fn queue_probe(&mut self, ctx: &mut Context) {
        if !core::mem::replace(&mut self.probe_queued, true) {
            ctx.jobs.push(self.priority, Job::WriterProbe { writer: self.index() });
        }
    }

    /// Prepares the queued probe with the sequence number `number`: adds its destinations, and
    /// returns its least length in octets.
    pub(crate) fn address_probe(&mut self, now: Instant, number: SequenceNumber, ctx: &mut Context) -> usize {
        if self.has_route_probe() {
            self.address_route_probe(now, number, ctx);
            if self.path_probe.as_ref().is_some_and(|probe| probe.is_queued) {
                self.queue_probe(ctx);
            }
            return 0;
        }
        let len = self.probe_len();
        if self.path_probe.as_ref().is_some_and(|probe| probe.is_queued) {
            self.address_path_probe(now, number, ctx);
        }
        len
    }

    /// Takes whether a probe was queued.
    pub(crate) fn take_queued_probe(&mut self) -> bool {
        core::mem::take(&mut self.probe_queued)
    }

    /// Handles the answer of a participant to the probe with that sequence number, of any writer.
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
        if ctx.timers.is_armed(self.timer) {
            ctx.timers.arm_by(self.timer, now.after(self.heartbeat.first_period));
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
        ctx.timers.arm(self.timer, next.max(now.after(periods.first)));
    }

    fn heartbeat_periods(&self, ctx: &Context) -> Periods {
        let last = self.history.last_sn();
        let lagging = self.proxies.iter().filter(|(_, proxy)| proxy.lags(last)).count() as u32;
        Periods::new(&ctx.timing, lagging, if self.entity_id.is_builtin() { ctx.period_multiplier() } else { 1 })
    }

    /// Requests an acknowledgement of all lagging readers, regardless of the last one.
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
        self.renew_lease(now, ctx);
        self.asserting = true;
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
        let sent = self.cursor.sn.prev();
        let (mut low, mut start) = (sent, sent);
        for (_, proxy) in self.proxies.iter().filter(|(_, proxy)| proxy.reliable || !self.keeps_history) {
            low = low.min(proxy.needs_above());
            start = start.min(proxy.pace().unwrap_or(sent));
        }
        if low <= self.history.acknowledged_upto && start <= self.window_start {
            return;
        }
        let mut next = self.history.acknowledged_upto.next();
        while let Some(change) = self.history.at_or_after(next).filter(|change| change.sn <= low) {
            ctx.work.steps(1);
            let Change { sn, kind, key_hash, flight_len, is_discarded, position: SetPosition { ends, .. }, .. } =
                *change;
            if sn > self.window_start {
                self.in_flight_bytes -= flight_len as usize;
            }
            if !self.keeps_history || is_discarded || (ends && self.history.is_set_gone(sn)) {
                self.history.remove(sn);
            } else if kind == ChangeKind::DisposedUnregistered && !self.relays {
                self.history.remove_instance(key_hash, sn);
            }
            next = sn.next();
        }
        let mut next = self.window_start.max(low).next();
        while let Some(change) = self.history.at_or_after(next).filter(|change| change.sn <= start) {
            ctx.work.steps(1);
            self.in_flight_bytes -= change.flight_len as usize;
            next = change.sn.next();
        }
        self.window_start = start.max(self.window_start);
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
