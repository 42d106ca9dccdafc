//! Datagrams of new samples and periodic heartbeats, built in the transport's frame.

use super::filters::Verdicts;
use super::matching::lacks_heartbeat;
use super::security::WriterSecurity;
use super::{Change, Cursor, ReaderProxy, Writer};
use crate::cache::{ChangeKind, PayloadRef};
use crate::config::REORDER_WINDOW;
use crate::context::{Context, PayloadTail};
use crate::event::Event;
use crate::path::supports_loans_to;
use crate::presentation::SetPosition;
use crate::time::Instant;
use takt_wire::builder::{DataEmit, DataFragEmit, HEARTBEAT_LEN, INFO_DESTINATION_LEN, MessageBuilder};
use takt_wire::inline_qos::{InlineQosBuilder, STATUS_INFO_DISPOSED, STATUS_INFO_UNREGISTERED};
use takt_wire::message::{GroupInfo, Header, Heartbeat, Payload};
use takt_wire::qos::{Durability, History};
use takt_wire::{EntityId, Full, Guid, GuidPrefix, Locator, SequenceNumber, SharedPayload, Timestamp};

/// Maximum number of octets of inline QoS: key hash, status info, directed write, original writer,
/// coherent sets, group sequence number and sentinel.
const INLINE_QOS_LEN: usize = 132;

/// Maximum number of changes in one call for which every reader is visited: those that do not go to
/// all.
const DIRECTED_PER_CALL: u32 = 4;

/// Maximum number of samples of one datagram. Several datagrams fill the window, so that
/// acknowledgments of the first arrive while the last are in transit.
pub(super) const SAMPLES_PER_DATAGRAM: i64 = REORDER_WINDOW / 4;

/// Minimum fragment length for gathering, where the caller sends fragments from the history. Many
/// shorter fragments leave by one call. A multiple of eight, as are all fragment lengths.
const GATHERED_LEN_MIN: u16 = 16 << 10;

/// Maximum number of readers without a heartbeat so far that get an initial heartbeat of their own
/// before the data.
const INITIAL_HEARTBEATS_MAX: usize = 4;

/// Message being built, and the timestamp that its next submessage would inherit.
pub(super) struct Message<'a> {
    pub(super) builder: MessageBuilder<'a>,
    /// At the start no timestamp is in force (RTPS 2.5 §8.3.4), so none has to be invalidated.
    timestamp: Timestamp,
}

impl<'a> Message<'a> {
    /// Begins a message; `None` if the frame cannot hold a header. Leaves `reserve` octets free in
    /// each submessage for its protection.
    pub(super) fn new(frame: &'a mut [u8], max_len: usize, reserve: usize, header: &Header) -> Option<Self> {
        let len = frame.len().min(max_len);
        let builder = MessageBuilder::new(&mut frame[..len], header).ok()?.with_reserve(reserve);
        Some(Self { builder, timestamp: Timestamp::INVALID })
    }

    pub(super) fn stamp(&mut self, timestamp: Timestamp) -> Result<(), Full> {
        if self.timestamp != timestamp {
            self.builder.info_timestamp((!timestamp.is_invalid()).then_some(timestamp))?;
            self.timestamp = timestamp;
        }
        Ok(())
    }
}

/// Part of a change in one submessage.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Whole,
    Fragment {
        number: u32,
        size: u16,
        /// The octets of the fragment follow the message instead of being copied into it.
        in_tail: bool,
    },
    /// Minimal content, which the loaned payload sent with the datagram replaces.
    Loan,
}

/// Receivers of a datagram of new samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    All,
    /// Readers that get payloads by loan.
    LoanReaders,
    /// All other readers.
    Others,
}

/// Datagram of new samples being built.
struct Datagram {
    /// Filters that reject its changes, once it contains one.
    rejected: Option<Verdicts>,
    audience: Audience,
    /// The next change waits for acknowledgments.
    stalled: bool,
    /// Number of changes for which every reader was visited.
    directed: u32,
    /// First change that does not fit into the datagram.
    full_at: SequenceNumber,
}

impl Datagram {
    /// Begins a datagram with this change.
    fn from(sn: SequenceNumber) -> Self {
        let full_at = SequenceNumber(sn.0.saturating_add(SAMPLES_PER_DATAGRAM));
        Self { rejected: None, audience: Audience::All, stalled: false, directed: 0, full_at }
    }

    /// Records that every reader was visited for so many more changes.
    fn record_visits(&mut self, changes: u32) -> Progress {
        self.directed += changes;
        if self.directed < DIRECTED_PER_CALL { Progress::Continues } else { Progress::Full }
    }
}

/// State of a datagram being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Continues,
    /// Complete; there is more to send.
    Full,
    /// Complete; the remaining changes have to wait.
    Finished,
}

/// Returns the number of fragments of `size` bytes of a payload.
pub(super) fn fragment_count(payload_len: usize, size: u16) -> u32 {
    payload_len.div_ceil(usize::from(size)) as u32
}

impl WriterSecurity {
    /// Returns a length limit plus the growth of the protection of one submessage.
    pub(crate) fn with_grown_reserve(&self, max_message: usize, ctx: &Context) -> usize {
        max_message.saturating_add(self.reserve(ctx).saturating_sub(self.planned_reserve))
    }

    /// Returns the octets of the protection of a submessage and its payload.
    pub(super) fn reserve(&self, ctx: &Context) -> usize {
        let submessage = if self.protection.submessage { ctx.submessage_overhead() } else { 0 };
        submessage + self.payload_overhead
    }
}

impl Writer {
    /// Builds the next datagram of new samples: as many small ones as fit, or one fragment of a
    /// large one. `None` if there is nothing to send now. Queues itself again if there is more.
    pub(crate) fn transmit_data(&mut self, now: Instant, ctx: &mut Context, frame: &mut [u8]) -> Option<usize> {
        if !core::mem::take(&mut self.data_queued) {
            return None;
        }
        let mut message = self.message(frame, self.route.max_message, ctx)?;
        let has_unprobed_listeners = self.heartbeat.readers_without && self.security.addressee.is_none();
        if has_unprobed_listeners
            && self.heartbeat.initial_before != self.window.cursor.sn
            && self.window.cursor.sn <= self.history.last_sn()
        {
            self.heartbeat.initial_before = self.window.cursor.sn;
            self.send_initial_heartbeats(&mut message, ctx);
        }
        let mut datagram = Datagram::from(self.window.cursor.sn);
        let more = loop {
            match self.add_next(&mut message, &mut datagram, ctx) {
                Progress::Continues => {}
                Progress::Full => break true,
                Progress::Finished => break false,
            }
        };
        self.window.stalled = datagram.stalled || self.window.cursor.sn >= datagram.full_at;
        self.window.closed_since = datagram.stalled.then(|| self.window.closed_since.unwrap_or(now));
        self.address(&mut message, &datagram, ctx);
        let len = (!message.builder.is_empty()).then(|| message.builder.len());
        if let Some(len) = len {
            ctx.record_multicast_use(self.route.wanted);
            self.note_len(len, ctx);
        }
        if more {
            self.queue_data(ctx);
        }
        self.release_acknowledged(ctx);
        len
    }

    /// Reports whether the next datagram of new samples is a fragment.
    pub(crate) fn is_next_fragment(&self) -> bool {
        let Some(change) = self.history.at_or_after(self.window.cursor.sn) else { return false };
        let is_directed = self.relays || self.security.addressee.is_some() || !change.directed.readers().is_empty();
        let size = change.fragment_size.min(self.route.fragment_size);
        !is_directed && change.payload.len() > usize::from(size) && self.audience_of(change) != Audience::LoanReaders
    }

    /// Notifies that no fragments wait any longer, once all pending samples have been sent.
    pub(crate) fn end_blocking(&mut self, ctx: &mut Context) {
        if self.is_blocked && !self.data_queued {
            self.is_blocked = false;
            ctx.notify(Event::WriterSpace(self.handle));
        }
    }

    /// Begins a message of this writer. If the protection of a submessage has grown since fragment
    /// sizes were chosen, the message exceeds the path MTU by that amount, and IP fragments it.
    pub(super) fn message<'a>(&self, frame: &'a mut [u8], max_message: usize, ctx: &Context) -> Option<Message<'a>> {
        Message::new(frame, self.security.with_grown_reserve(max_message, ctx), self.security.reserve(ctx), &ctx.header)
    }

    /// Adds the next content to a datagram: plain samples as they are, another change or a part of
    /// it, or nothing if that has to wait or is not for all readers.
    fn add_next(&mut self, message: &mut Message<'_>, datagram: &mut Datagram, ctx: &mut Context) -> Progress {
        ctx.work.steps(1);
        self.emit_plain(message, datagram.full_at, ctx);
        if self.window.cursor.sn >= datagram.full_at {
            return Progress::Full;
        }
        let Some(mut change) = self.history.at_or_after(self.window.cursor.sn).copied() else {
            self.window.cursor = Cursor::at(self.history.last_sn().next());
            return Progress::Finished;
        };
        if change.sn > self.window.cursor.sn {
            self.window.cursor = Cursor::at(change.sn);
        }
        if self.relays || self.security.addressee.is_some() || !change.directed.readers().is_empty() {
            if !self.queue_directed(&change, ctx) {
                return Progress::Finished;
            }
            self.advance(&change);
            self.assert_by_heartbeat(ctx);
            return datagram.record_visits(1);
        }
        if self.has_pending_directed {
            return Progress::Finished;
        }
        if self.is_stalled(&change, ctx.limits.send_window_bytes) {
            datagram.stalled = true;
            return Progress::Finished;
        }
        self.window.stalled = false;
        if *datagram.rejected.get_or_insert(change.rejected) != change.rejected {
            return Progress::Full;
        }
        if change.rejected != 0 && ctx.destinations.is_empty() {
            self.route_of(&change, ctx);
            if ctx.destinations.is_empty() {
                datagram.rejected = None;
                self.advance(&change);
                return datagram.record_visits(self.pass_over(&change, ctx));
            }
        }
        self.fit_to_route(&mut change);
        let next = self.audience_of(&change);
        if next != Audience::All && !message.builder.is_empty() {
            return Progress::Full;
        }
        datagram.audience = next;
        let emitted = self.emit_next(message, &change, next, ctx);
        if emitted.is_ok() && self.window.cursor.sn > change.sn {
            datagram.record_visits(self.pass_over(&change, ctx));
        }
        match emitted {
            Ok(true) => datagram.record_visits(0),
            Ok(false) => Progress::Full,
            Err(Full) if message.builder.is_empty() => Progress::Finished,
            Err(Full) => Progress::Full,
        }
    }

    /// Sets the destinations of a complete datagram of new samples, and adds a heartbeat if
    /// acknowledgments are needed.
    fn address(&mut self, message: &mut Message<'_>, datagram: &Datagram, ctx: &mut Context) {
        if datagram.stalled {
            self.announce_passed_over(ctx);
        }
        let rejected = datagram.rejected.filter(|_| !ctx.destinations.is_empty()).unwrap_or(0);
        if rejected == 0 {
            ctx.destinations.clear();
            let all = self.route.destinations.iter();
            ctx.destinations.extend(all.filter(|locator| Self::is_for(datagram.audience, locator)));
        }
        // A datagram to some readers carries no heartbeat of the writer; the next datagram does.
        let is_for_all = datagram.audience == Audience::All || ctx.destinations.len() == self.route.destinations.len();
        let filling = self.is_nearly_full().then(|| self.history.samples_max());
        if is_for_all
            && self.security.addressee.is_none()
            && self.route.reliable
            && self.heartbeat.wanted(datagram.stalled, filling, ctx.limits.send_window_bytes)
        {
            self.piggyback_heartbeat(rejected, message, ctx);
        }
    }

    /// Returns the destinations of new samples.
    pub(crate) fn destinations(&self) -> &[Locator] {
        &self.route.destinations
    }

    /// Reports whether a payload can be loaned to any of its readers.
    pub(crate) fn has_loan_readers(&self) -> bool {
        self.security.may_loan && self.route.destinations.iter().any(supports_loans_to)
    }

    /// Reports whether a payload is loaned, and all readers can get it by loan.
    pub(super) fn loans_to_all(&self, payload: PayloadRef) -> bool {
        self.security.may_loan
            && self.history.pool.loan(payload).is_some()
            && self.route.destinations.iter().all(supports_loans_to)
    }

    /// Reports whether a destination gets the datagram. The loaned part of a change goes to readers
    /// with shared memory, its following content to the others.
    fn is_for(audience: Audience, locator: &Locator) -> bool {
        match audience {
            Audience::All => true,
            Audience::LoanReaders => supports_loans_to(locator),
            Audience::Others => !supports_loans_to(locator),
        }
    }

    /// Returns the receivers of the next part of a change.
    fn audience_of(&self, change: &Change) -> Audience {
        match self.history.pool.loan(change.payload) {
            Some(_) if change.rejected != 0 => Audience::All,
            Some(_) if change.sn == self.window.last_loaned => Audience::Others,
            Some(_) if self.window.cursor.fragment == 1 && self.has_loan_readers() => Audience::LoanReaders,
            _ => Audience::All,
        }
    }

    /// Loans a change, alone in its datagram, to readers with shared memory. The others are sent it
    /// next.
    fn send_loan(&mut self, message: &mut Message<'_>, change: &Change, ctx: &mut Context) -> Result<bool, Full> {
        self.emit(message, change, EntityId::UNKNOWN, None, Part::Loan)?;
        ctx.counters.data_sent += 1;
        ctx.loan = self.history.pool.loan(change.payload).cloned();
        if self.loans_to_all(change.payload) {
            self.advance(change);
        } else {
            self.window.last_loaned = change.sn;
        }
        Ok(false)
    }

    /// Sends an initial heartbeat, before data or another heartbeat, to readers that may not have
    /// received one. It states where their data begin.
    ///
    /// A volatile reader of a writer with history treats everything that the first heartbeat covers
    /// as history, including samples that were written since the match and then lost.
    /// INTEROP(CycloneDDS 0.10.2, 11.0.1): a reader drops samples before the first heartbeat that
    /// it receives. It has often not discovered the writer yet when the heartbeat of the match
    /// arrives, though it has when the application, notified of the match, writes.
    ///
    /// All readers share one such heartbeat. Some readers that begin with new samples get one of
    /// their own, because a Takt reader accepts no other ([`crate::reader`]). The remaining ones
    /// request it. Room for a HEARTBEAT to all readers is left.
    fn send_initial_heartbeats(&mut self, message: &mut Message<'_>, ctx: &mut Context) {
        let heartbeat_len = INFO_DESTINATION_LEN + HEARTBEAT_LEN + GroupInfo::LEN + self.security.reserve(ctx);
        let Self { proxies, history, heartbeat: state, entity_id, membership, data, .. } = self;
        let has_services = data.qos.durability >= Durability::Transient && !entity_id.is_builtin();
        let new_readers = || proxies.iter().map(|(_, proxy)| proxy).filter(|proxy| lacks_heartbeat(proxy));
        let Some(first) = new_readers().map(|proxy| proxy.first_relevant).min() else { return };
        if message.builder.remaining() < 2 * heartbeat_len {
            return;
        }
        // Changes removed from the history are not owed to readers that request it.
        let first = first.max(history.first_sn());
        let mut send = |message: &mut Message<'_>, reader, first_sn, last_sn: SequenceNumber| {
            let (writer, count) = (*entity_id, state.next_initial_count());
            let (is_final, liveliness) = (true, false);
            let group = membership.as_ref().and_then(|it| it.group_info(history, first_sn, last_sn));
            let heartbeat = Heartbeat { reader, writer, first_sn, last_sn, count, is_final, liveliness, group };
            ctx.counters.heartbeats_sent += u64::from(message.builder.heartbeat(&heartbeat).is_ok());
        };
        send(message, EntityId::UNKNOWN, history.first_sn(), first.prev());
        let mut is_directed = false;
        for proxy in new_readers().filter(|proxy| proxy.first_relevant == proxy.live_from).take(INITIAL_HEARTBEATS_MAX)
        {
            let has_room = message.builder.remaining() >= 2 * heartbeat_len;
            if !has_room || message.builder.info_destination(proxy.guid.prefix).is_err() {
                break;
            }
            is_directed = true;
            // A service may have delivered samples written since the match. The reader drops them
            // as repetitions only if the writer has announced that it has them.
            let before = proxy.first_relevant.prev();
            let last = if has_services { before.max(history.last_sn()) } else { before };
            send(message, proxy.guid.entity_id, proxy.first_relevant, last);
        }
        let is_for_all = !is_directed || message.builder.info_destination(GuidPrefix::UNKNOWN).is_ok();
        debug_assert!(is_for_all, "one datagram holds all initial heartbeats");
    }

    /// Sends the only reader an initial heartbeat, before data or another heartbeat, until it has
    /// acknowledged one; see [`Self::send_initial_heartbeats`].
    pub(super) fn send_initial_heartbeat(&mut self, message: &mut Message<'_>, ctx: &mut Context) {
        let Some((_, proxy)) = self.proxies.iter().find(|(_, proxy)| lacks_heartbeat(proxy)) else { return };
        let (reader, first) = (proxy.guid.entity_id, proxy.first_relevant.max(self.history.first_sn()));
        let heartbeat = Heartbeat {
            reader,
            writer: self.entity_id,
            first_sn: first,
            last_sn: first.prev(),
            count: self.heartbeat.next_initial_count(),
            is_final: true,
            liveliness: false,
            group: None,
        };
        ctx.counters.heartbeats_sent += u64::from(message.builder.heartbeat(&heartbeat).is_ok());
    }

    /// Fits a change to the route: a reader with a smaller path MTU joined since the change was
    /// written, so its fragments shrink. If some were sent, they are sent again.
    fn fit_to_route(&mut self, change: &mut Change) {
        if change.fragment_size > self.route.fragment_size {
            change.fragment_size = self.route.fragment_size;
            self.history.set_fragment_size(change.sn, change.fragment_size);
            self.window.cursor.fragment = 1;
        }
    }

    /// Emits the change, or its next fragment. Returns `Ok(true)` if another change may follow in
    /// this datagram.
    fn emit_next(
        &mut self,
        message: &mut Message<'_>,
        change: &Change,
        audience: Audience,
        ctx: &mut Context,
    ) -> Result<bool, Full> {
        if audience == Audience::LoanReaders {
            return self.send_loan(message, change, ctx);
        }
        let size = change.fragment_size;
        if change.payload.len() <= usize::from(size) {
            self.emit(message, change, EntityId::UNKNOWN, None, Part::Whole)?;
            ctx.counters.data_sent += 1;
            self.advance(change);
            return Ok(audience == Audience::All);
        }
        if !message.builder.is_empty() {
            return Err(Full);
        }
        let (number, count) = (self.window.cursor.fragment, fragment_count(change.payload.len(), size));
        ctx.is_fragment = true;
        // The last fragment carries a heartbeat, and its sample may be removed once it was sent.
        let in_tail = ctx.scatter_gather && size >= GATHERED_LEN_MIN && number < count;
        self.emit(message, change, EntityId::UNKNOWN, None, Part::Fragment { number, size, in_tail })?;
        if in_tail {
            let start = (number as usize - 1) * usize::from(size);
            let range = start..start + usize::from(size);
            ctx.payload_tail = Some(PayloadTail { writer: self.handle.index, payload: change.payload, range });
        }
        ctx.counters.data_frags_sent += 1;
        self.window.cursor.fragment += 1;
        if self.window.cursor.fragment > count {
            self.advance(change);
        }
        Ok(false)
    }

    fn advance(&mut self, change: &Change) {
        self.window.cursor = Cursor::at(change.sn.next());
        self.window.in_flight_bytes += change.flight_len as usize;
        self.heartbeat.sent(1, change.flight_len as usize);
    }

    /// Reports whether the change must wait for acknowledgments. A change larger than the window
    /// is sent alone. A window that was full opens when there is room for a whole datagram.
    /// Otherwise each acknowledgment would release only as many samples as it covers, and these
    /// would be acknowledged alone.
    fn is_stalled(&self, change: &Change, window_bytes: usize) -> bool {
        let len = change.flight_len as usize;
        let (samples, bytes_more) = match self.window.stalled {
            true if len < self.route.max_message => {
                (SAMPLES_PER_DATAGRAM, self.route.max_message.min(window_bytes / 4))
            }
            true => (SAMPLES_PER_DATAGRAM, len),
            false => (1, len),
        };
        let is_full = |in_flight: i64, bytes: usize| {
            in_flight + samples > REORDER_WINDOW || (bytes > 0 && bytes + bytes_more.max(len) > window_bytes)
        };
        if !self.route.reliable || self.window.cursor.fragment != 1 || self.window.last_loaned == self.window.cursor.sn
        {
            return false;
        }
        let in_flight = self.window.cursor.sn.0 - self.window.start.0 - 1;
        is_full(in_flight, self.window.in_flight_bytes) && !self.excludes_slow_readers(is_full)
    }

    /// Excludes slow readers from the send window of a `KEEP_LAST` writer: the fastest reader sets
    /// the pace. A reader that cannot follow, or has died unnoticed, gets the newest samples when
    /// it requests them. Returns whether there is room at that pace.
    fn excludes_slow_readers(&self, is_full: impl Fn(i64, usize) -> bool) -> bool {
        if self.data.qos.history == History::KeepAll {
            return false;
        }
        let Some(first) = self.proxies.iter().filter_map(|(_, proxy)| proxy.pace()).max() else { return true };
        let (mut in_flight, mut bytes, mut next) = (0, 0, first.next());
        while let Some(change) = self.history.at_or_after(next).filter(|change| change.sn < self.window.cursor.sn) {
            in_flight += 1;
            bytes += change.flight_len as usize;
            if is_full(in_flight, bytes) {
                return false;
            }
            next = change.sn.next();
        }
        true
    }

    /// Reports whether missing acknowledgments are about to block the application.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.data.qos.history == History::KeepAll && self.history.is_half_full()
    }

    /// Queues a directed change to each of its readers, and a GAP to the others. Returns false if
    /// it has to wait until earlier changes are sent to a best-effort reader.
    fn queue_directed(&mut self, change: &Change, ctx: &mut Context) -> bool {
        ctx.work.steps(2 * self.proxies.len());
        let waits =
            |proxy: &ReaderProxy| !proxy.reliable && proxy.covers(change.sn) && !proxy.requested.has_room(change.sn);
        if self.proxies.iter().any(|(_, proxy)| waits(proxy)) {
            return false;
        }
        let mut index = 0;
        while let Some(at) = self.proxies.next_index(index) {
            if let Some(proxy) = self.proxies.get_mut(at)
                && (proxy.reliable || proxy.covers(change.sn))
            {
                // Beyond the window, a reliable reader requests the change.
                proxy.requested.insert(change.sn);
                self.has_pending_directed |= !proxy.reliable;
            }
            self.queue_repair(at, ctx);
            index = at + 1;
        }
        true
    }

    /// Commits the unsent changes to the present matches before these change, each reader on its
    /// own. Readers that are unmatched at once do not get them.
    pub(crate) fn commit_waiting(&mut self, ctx: &mut Context) {
        let (first, last) = (self.window.cursor.sn, self.history.last_sn());
        if first > last {
            return;
        }
        while let Some(change) = self.history.at_or_after(self.window.cursor.sn).copied() {
            ctx.work.steps(1);
            self.advance(&change);
        }
        self.window.cursor = Cursor::at(last.next());
        ctx.work.steps(self.proxies.len());
        let mut index = 0;
        while let Some(at) = self.proxies.next_index(index) {
            if let Some(proxy) = self.proxies.get_mut(at) {
                // A reliable reader requests the changes that the heartbeat announces.
                proxy.heartbeat_due |= proxy.reliable;
                if !proxy.reliable {
                    proxy.live_from = last.next();
                    proxy.push_next.get_or_insert(first);
                    self.has_pending_directed |= !self.keeps_history;
                }
            }
            self.queue_repair(at, ctx);
            index = at + 1;
        }
    }

    /// Builds a heartbeat to the readers that are due, or to all if it asserts liveliness or has
    /// new group information.
    pub(crate) fn transmit_heartbeat(&mut self, ctx: &mut Context, frame: &mut [u8]) -> Option<usize> {
        if !core::mem::take(&mut self.heartbeat.is_queued) {
            return None;
        }
        ctx.work.steps(4 * self.proxies.len());
        let (last, asserting, has_gsn) = (self.history.last_sn(), self.heartbeat.asserts, self.take_unsent_gsn());
        let is_retry_due = |proxy: &ReaderProxy| proxy.heartbeat_retries.is_due && proxy.acked < last;
        let is_addressed = |proxy: &ReaderProxy| asserting || (proxy.reliable && (has_gsn || is_retry_due(proxy)));
        let group = self.multicast_group_of_heartbeat(is_addressed);
        let group = group.and_then(|at| ctx.multicast_groups.list.get(at).map(|group| (at, group.locator)));
        for (_, proxy) in self.proxies.iter().filter(|(_, proxy)| is_addressed(proxy)) {
            let by_group =
                group.filter(|(at, _)| proxy.reachability.is_served_by(*at) && proxy.heartbeat_retries.is_first());
            ctx.destinations.push(by_group.map_or(proxy.path.locator, |(_, locator)| locator));
        }
        self.proxies.iter_mut().for_each(|(_, proxy)| proxy.heartbeat_retries.is_due = false);
        ctx.destinations.sort_unstable();
        ctx.destinations.dedup();
        let mut message = self.message(frame, self.route.max_message, ctx)?;
        if let Some(prefix) = self.security.addressee {
            message.builder.info_destination(prefix).ok()?;
            self.send_initial_heartbeat(&mut message, ctx);
        } else if self.heartbeat.readers_without {
            self.send_initial_heartbeats(&mut message, ctx);
        }
        let is_final = has_gsn && !asserting && !self.has_unacknowledged();
        let fits = self.add_heartbeat(&mut message, is_final, ctx);
        ctx.counters.heartbeats_without_room += u64::from(!fits);
        self.heartbeat.asserts = false;
        (!ctx.destinations.is_empty() && fits).then(|| message.builder.len())
    }

    /// Returns the multicast group of a heartbeat, if it concerns at least half of the readers
    /// that the group serves. Only the first heartbeat to a reader uses the group, because a
    /// reader that does not answer may no longer receive it. Liveliness assertions never use a
    /// group.
    fn multicast_group_of_heartbeat(&self, is_addressed: impl Fn(&ReaderProxy) -> bool) -> Option<usize> {
        let group = self.route.multicast_group.filter(|_| !self.heartbeat.asserts)?;
        let is_first = |proxy: &ReaderProxy| is_addressed(proxy) && proxy.heartbeat_retries.is_first();
        let served = self.proxies.iter().filter(|(_, proxy)| proxy.reachability.is_served_by(group));
        let (all, half) = served.fold((0, 0), |(all, half), (_, it)| (all + 1, half + 2 * usize::from(is_first(it))));
        (half >= all).then_some(group)
    }

    /// Adds a heartbeat to a message, or queues it on its own if it does not fit.
    pub(super) fn append_heartbeat(&mut self, message: &mut Message<'_>, is_final: bool, ctx: &mut Context) {
        if !self.add_heartbeat(message, is_final, ctx) {
            self.heartbeat_all(ctx);
        }
    }

    /// Adds a heartbeat if it fits, and returns whether it did.
    fn add_heartbeat(&mut self, message: &mut Message<'_>, is_final: bool, ctx: &mut Context) -> bool {
        let heartbeat = self.heartbeat_submessage(self.only_reader(), SequenceNumber::FIRST, is_final);
        let fits = message.builder.heartbeat(&heartbeat).is_ok();
        ctx.counters.heartbeats_sent += u64::from(fits);
        fits
    }

    /// Returns the reader that heartbeats name: the only one of a writer with an addressee,
    /// otherwise none.
    /// INTEROP(CycloneDDS 0.10): the reader of the volatile channel requests only changes announced
    /// by a heartbeat that names it.
    fn only_reader(&self) -> EntityId {
        let reader = self.security.addressee.and_then(|_| self.proxies.iter().next());
        reader.map_or(EntityId::UNKNOWN, |(_, proxy)| proxy.guid.entity_id)
    }

    /// Returns the heartbeat of all sent changes (RTPS 2.5 §8.3.8.6). A builtin writer that has
    /// sent none of its changes announces unsent ones.
    pub(super) fn heartbeat_submessage(
        &mut self,
        reader: EntityId,
        first_relevant: SequenceNumber,
        is_final: bool,
    ) -> Heartbeat {
        let sent = self.window.cursor.sn.prev();
        // A participant unmatches endpoints that a review does not find, so announcements about to
        // be sent count.
        let has_only_unsent = self.entity_id.is_builtin() && self.history.first_sn() > sent;
        let last_sn = if has_only_unsent { self.history.last_sn() } else { sent };
        let first_sn = self.history.first_sn().max(first_relevant).min(last_sn.next());
        Heartbeat {
            reader,
            writer: self.entity_id,
            first_sn,
            last_sn,
            group: self.group_info(first_sn, last_sn),
            count: self.heartbeat.next_count(),
            is_final,
            liveliness: self.heartbeat.asserts,
        }
    }

    /// Returns a heartbeat to one reader that offers nothing below `number`, so the reader
    /// acknowledges up to there.
    pub(crate) fn challenge(&mut self, reader: EntityId, number: SequenceNumber) -> Heartbeat {
        Heartbeat {
            reader,
            writer: self.entity_id,
            first_sn: number,
            last_sn: number.prev(),
            count: self.heartbeat.next_initial_count(),
            is_final: false,
            liveliness: false,
            group: None,
        }
    }

    /// Writes one submessage of a change, with its timestamp and inline QoS.
    pub(super) fn emit(
        &self,
        message: &mut Message<'_>,
        change: &Change,
        reader: EntityId,
        directed_to: Option<Guid>,
        part: Part,
    ) -> Result<(), Full> {
        message.stamp(change.source_timestamp)?;
        let mut inline = InlineQosBuilder::<INLINE_QOS_LEN>::new();
        let inline_qos = self.inline_qos(change, directed_to, &mut inline)?;
        let data = |payload| DataEmit { reader, writer: self.entity_id, sn: change.sn, inline_qos, payload };
        let pool = &self.history.pool;
        match part {
            Part::Loan => {
                let prefix = pool.loan(change.payload).and_then(SharedPayload::prefix);
                message.builder.data(&data(prefix.as_ref().map_or(Payload::None, |prefix| Payload::Data(prefix))))
            }
            Part::Whole => message.builder.data(&data(match (pool.bytes(change.payload), change.kind) {
                ([], _) => Payload::None,
                (payload, ChangeKind::Alive) => Payload::Data(payload),
                (payload, _) => Payload::Key(payload),
            })),
            Part::Fragment { number, size, in_tail } => {
                let payload = pool.bytes(change.payload);
                let start = (number as usize - 1) * usize::from(size);
                let end = (start + usize::from(size)).min(payload.len());
                let fragment = DataFragEmit {
                    reader,
                    writer: self.entity_id,
                    sn: change.sn,
                    fragment_starting_num: number,
                    fragments_in_submessage: 1,
                    fragment_size: size,
                    sample_size: payload.len() as u32,
                    inline_qos,
                    key: change.kind != ChangeKind::Alive,
                    payload: &payload[start..end],
                };
                if in_tail {
                    message.builder.data_frag_without_payload(&fragment)
                } else {
                    message.builder.data_frag(&fragment)
                }
            }
        }
    }

    /// Returns key hash, status, addressee and position of a change; nothing for plain data of a
    /// topic without keys.
    fn inline_qos<'q>(
        &self,
        change: &Change,
        directed_to: Option<Guid>,
        inline: &'q mut InlineQosBuilder<INLINE_QOS_LEN>,
    ) -> Result<Option<&'q [u8]>, Full> {
        let status = match change.kind {
            ChangeKind::Alive => 0,
            ChangeKind::Disposed => STATUS_INFO_DISPOSED,
            ChangeKind::Unregistered => STATUS_INFO_UNREGISTERED,
            ChangeKind::DisposedUnregistered => STATUS_INFO_DISPOSED | STATUS_INFO_UNREGISTERED,
        };
        let position = &change.position;
        let origin = if self.relays { self.history.origin_of(change) } else { None };
        let is_plain = status == 0 && directed_to.is_none() && origin.is_none() && *position == SetPosition::default();
        if (!self.keyed || self.security.protection.key) && is_plain {
            return Ok(None);
        }
        // The hash of a short key is the key, which would disclose it.
        if self.keyed && !position.ends && !self.security.protection.key {
            inline.key_hash(change.key_hash)?;
        }
        if status != 0 {
            inline.status_info(status)?;
        }
        if let Some(guid) = directed_to {
            inline.directed_write(guid)?;
        }
        if let Some(origin) = origin {
            inline.original_writer(origin)?;
        }
        if *position != SetPosition::default() {
            put_position(position, inline)?;
        }
        Ok(Some(inline.finish()?))
    }
}

/// Adds the position of a change to the inline QoS (RTPS 2.5 §9.6.4). The end of a set no longer
/// names the set of its writer.
fn put_position(position: &SetPosition, inline: &mut InlineQosBuilder<INLINE_QOS_LEN>) -> Result<(), Full> {
    if position.ends && !position.gsn.is_valid() {
        return inline.coherent_set(SequenceNumber::UNKNOWN);
    }
    if position.is_member() {
        inline.coherent_set(position.set)?;
    }
    if position.group_set.is_valid() {
        inline.group_coherent_set(position.group_set)?;
    }
    if position.gsn.is_valid() {
        inline.group_seq_num(position.gsn)?;
    }
    Ok(())
}
