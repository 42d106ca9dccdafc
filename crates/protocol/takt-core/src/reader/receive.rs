//! Reception of samples at a reader: whole samples and fragments (RTPS 2.5 §8.3.8.2, §8.3.8.3).

use super::fragments::{FragmentQos, FragmentRefusal, ReassembledSample};
use super::room::Need;
use super::writer_proxy::{Arrival, LAST_SAMPLE};
use super::{Reader, Stamp};
use crate::cache::{ChangeKind, Incoming, KeyHash, PayloadRef, Stored};
use crate::context::Context;
use crate::lifespan::Expiry;
use crate::presentation::SetPosition;
use crate::status::SampleRejectedReason;
use crate::time::Instant;
use takt_wire::inline_qos::{InlineQos, STATUS_INFO_DISPOSED, STATUS_INFO_UNREGISTERED, SampleIdentity};
use takt_wire::message::{Data, DataFrag, Payload};
use takt_wire::parameter::ParameterList;
use takt_wire::{SequenceNumber, SharedBuffer, SharedPayload};

impl Reader {
    /// Handles DATA: a whole sample (RTPS 2.5 §8.3.8.2).
    pub(crate) fn handle_data(
        &mut self,
        ctx: &mut Context,
        index: u32,
        stamp: Stamp,
        data: &Data<'_>,
        buffer: SharedBuffer<'_>,
    ) {
        self.data_received(stamp.now, ctx, index, data.sn);
        // Not retained yet: a frame of no use must not be retained.
        let frame =
            if let SharedBuffer::Frame(frame) = buffer { Some(frame).filter(|_| self.accepts_loans()) } else { None };
        let loan = buffer.payload();
        if loan.is_none() && frame.is_none() && self.deliver_at_once(ctx, index, stamp, data) {
            return;
        }
        if !self.accepts(ctx, index, data.sn, true) {
            return;
        }
        let Some(inline) = parse_inline_qos(data.inline_qos, ctx) else { return };
        let (payload, key_only) = match data.payload {
            Payload::None => (&[][..], true),
            Payload::Data(bytes) => (bytes, false),
            Payload::Key(bytes) => (bytes, true),
        };
        let part = frame.filter(|_| !key_only).and_then(|frame| frame.reference(payload));
        let loan = part.as_ref().or(loan).filter(|_| !key_only);
        let kept_loan = loan.filter(|loan| self.may_keep_loan(loan));
        let piece = match kept_loan {
            Some(loan) => Some(self.cache.pool.insert_loan(loan.clone())),
            None => {
                let len = loan.map_or(payload.len(), SharedPayload::len);
                if !self.cache.pool.has_room_ever(len) {
                    return self.reject_permanently(ctx, index, stamp.now, data.sn);
                }
                self.allocate(ctx, index, stamp.now, data.sn, len, (payload, key_only))
            }
        };
        let Some(piece) = piece else {
            return self.refuse(ctx, index, stamp.now, data.sn, SampleRejectedReason::MemoryLimit);
        };
        match loan.filter(|_| kept_loan.is_none()) {
            Some(loan) => {
                loan.copy_to(0, self.cache.pool.bytes_mut(piece));
                if !loan.is_intact() {
                    // The writer has already reused the memory. The sample is sent again if it is
                    // still needed.
                    ctx.counters.malformed_submessages += 1;
                    return self.cache.pool.release(piece);
                }
            }
            None if kept_loan.is_none() => self.cache.pool.bytes_mut(piece).copy_from_slice(payload),
            None => {}
        }
        ctx.counters.loaned_samples += u64::from(loan.is_some());
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.repaired(stamp.now, data.sn, data.reader);
        }
        let fragment_qos = FragmentQos::EMPTY.merged_with(&inline, self.data.guid);
        self.accept(ctx, index, stamp, data.sn, &fragment_qos, piece, key_only);
    }

    /// Reports whether a payload may stay with the writer. Either this reader need not inspect it,
    /// or it is an object, whose bytes are accessible. It must also fit into the reader's memory.
    fn may_keep_loan(&self, loan: &SharedPayload) -> bool {
        (self.accepts_loans() || loan.object().is_some()) && self.cache.pool.has_room_ever(loan.len())
    }

    /// Reports whether the reader accepts payloads without inspecting them.
    fn accepts_loans(&self) -> bool {
        self.keeps_loans && !self.keyed && self.filter.is_none()
    }

    /// Handles DATA_FRAG: a part of a large sample (RTPS 2.5 §8.3.8.3).
    pub(crate) fn handle_data_frag(&mut self, ctx: &mut Context, index: u32, stamp: Stamp, data: &DataFrag<'_>) {
        self.data_received(stamp.now, ctx, index, data.sn);
        if !self.accepts(ctx, index, data.sn, false) {
            return;
        }
        let Some(inline) = parse_inline_qos(data.inline_qos, ctx) else { return };
        let size = data.sample_size as usize;
        let result = loop {
            let Some(proxy) = self.proxies.get_mut(index) else { return };
            proxy.repaired(stamp.now, data.sn, data.reader);
            let inserted = proxy.fragments.insert(stamp, data, &mut self.cache.pool, &mut self.reassembly);
            ctx.work.steps(self.cache.pool.take_steps());
            let need = match inserted {
                Err(FragmentRefusal::TableFull) => Need::Slot,
                Err(FragmentRefusal::NoMemory) => {
                    Need::Memory { len: size, instance: self.instance_of_fragment(index, data, &inline) }
                }
                result => break result,
            };
            if !self.make_room_for(ctx, index, data.sn, stamp.now, need) {
                break Err(FragmentRefusal::NoMemory);
            }
        };
        self.give_up_incomplete(ctx, index);
        match result {
            Ok(None) => {
                let guid = self.data.guid;
                self.proxies.get_mut(index).into_iter().for_each(|proxy| proxy.fragments.note(data.sn, &inline, guid));
            }
            Ok(Some(ReassembledSample { payload, source_timestamp, inline_qos: fragment_qos })) => {
                if let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| proxy.reliable) {
                    proxy.arrived(data.sn);
                    proxy.blocked &= proxy.expected != Some(data.sn);
                }
                let stamp = Stamp { source_timestamp, ..stamp };
                let fragment_qos = fragment_qos.merged_with(&inline, self.data.guid);
                self.accept(ctx, index, stamp, data.sn, &fragment_qos, payload, data.key);
            }
            Err(FragmentRefusal::Duplicate) => ctx.counters.duplicate_fragments += 1,
            Err(FragmentRefusal::Rejected) => ctx.counters.rejected_fragments += 1,
            Err(FragmentRefusal::TooLarge) => {
                ctx.counters.rejected_fragments += 1;
                self.reject_permanently(ctx, index, stamp.now, data.sn);
            }
            Err(FragmentRefusal::TableFull | FragmentRefusal::NoMemory) => {
                ctx.counters.rejected_fragments += 1;
                let names_no_instance = data.fragment_starting_num > 1 && inline.key_hash.is_none();
                self.refuse_fragments(ctx, index, stamp.now, data.sn, names_no_instance);
            }
        }
    }

    /// Reports whether a sample number is of use now; counts those that are not.
    fn accepts(&mut self, ctx: &mut Context, index: u32, sn: SequenceNumber, whole: bool) -> bool {
        let Some(proxy) = self.proxies.get_mut(index) else { return false };
        let Some(expected) = proxy.expected else {
            // The first HEARTBEAT states which samples are relevant; this one waits for it.
            if !proxy.accept_early(sn) {
                ctx.counters.out_of_window += 1;
                return false;
            }
            proxy.arrived(if whole { sn } else { sn.prev() });
            let is_new = proxy.arrival(sn) == Arrival::Missing;
            ctx.counters.duplicate_samples += u64::from(!is_new);
            return is_new;
        };
        if sn < expected && proxy.fragments.is_stateless() {
            (proxy.expected, proxy.first_received) = (Some(sn), Some(sn));
        } else if sn < expected {
            ctx.counters.duplicate_samples += 1;
            return false;
        }
        if !proxy.reliable {
            ctx.counters.out_of_window += u64::from(sn > LAST_SAMPLE);
            proxy.first_received.get_or_insert(sn);
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

    /// Accepts a sample that has arrived completely and whose payload is in the pool.
    #[expect(clippy::too_many_arguments, reason = "one call site per kind of submessage")]
    fn accept(
        &mut self,
        ctx: &mut Context,
        index: u32,
        stamp: Stamp,
        sn: SequenceNumber,
        fragment_qos: &FragmentQos,
        piece: PayloadRef,
        key_only: bool,
    ) {
        let inline = &fragment_qos.inline();
        let kind = change_kind(inline.status_info.unwrap_or(0), key_only);
        let for_us = !fragment_qos.excludes && !inline.must_understand_unknown && self.filter_passes(ctx, kind, piece);
        let is_empty = piece == PayloadRef::EMPTY && inline.status_info.is_none() && inline.key_hash.is_none();
        let position = SetPosition::of(inline, is_empty && key_only);
        let (key_hash, hash_is_computed) = match position.ends {
            true => (Some(KeyHash::default()), true),
            false if !for_us => (None, true),
            false => self.identify(piece, key_only, inline.key_hash),
        };
        if for_us && key_hash.is_none() {
            ctx.counters.undecodable_keys += 1;
            self.record_unstored(index, sn);
        }
        let Some(proxy) = self.proxies.get_mut(index) else { return self.cache.pool.release(piece) };
        let source_timestamp = stamp.source_timestamp;
        // A reader that uses positions has to process irrelevant changes too.
        let absorbed = proxy.holding.is_some() && !position.ends && !for_us;
        let (key_hash, piece, position) = if absorbed {
            self.cache.pool.release(piece);
            (Some([0; 16]), PayloadRef::EMPTY, SetPosition { absorbed, ..position })
        } else {
            (key_hash.filter(|_| !position.ends || proxy.holding.is_some()), piece, position)
        };
        let stored = match key_hash {
            Some(key_hash) => {
                let (writer, strength) = (proxy.guid, proxy.strength);
                let lifespan = inline.lifespan.unwrap_or(proxy.lifespan);
                let expiry = Expiry::of(kind, lifespan, source_timestamp, ctx.wall_clock(stamp.now));
                let is_relayed = |origin: &SampleIdentity| proxy.is_service && origin.sn >= SequenceNumber::FIRST;
                let origin = inline.original_writer.filter(is_relayed);
                let incoming = Incoming {
                    writer,
                    sn,
                    origin: origin.unwrap_or(SampleIdentity { writer, sn }),
                    kind,
                    key_hash,
                    announced_hash: inline.key_hash.filter(|_| self.keyed),
                    hash_is_computed,
                    source_timestamp,
                    payload: piece,
                    strength,
                    writer_is_alive: proxy.lease.alive,
                    expiry,
                    position,
                };
                let stored = self.store(ctx, index, stamp.now, incoming);
                if stored.is_none() {
                    self.cache.pool.release(piece);
                    return self.refuse(ctx, index, stamp.now, sn, SampleRejectedReason::SamplesLimit);
                }
                stored
            }
            None => {
                self.cache.pool.release(piece);
                None
            }
        };
        self.deliver_arrived(ctx, index, stamp.now, sn, stored);
    }

    /// Reports whether the content filter passes a change, as it does every change of state. Counts
    /// the samples that it rejects.
    #[inline]
    fn filter_passes(&mut self, ctx: &mut Context, kind: ChangeKind, payload: PayloadRef) -> bool {
        let passes = match &mut self.filter {
            Some(filter) if kind == ChangeKind::Alive => filter.passes(self.cache.pool.bytes(payload)),
            _ => true,
        };
        ctx.counters.filtered_samples += u64::from(!passes);
        passes
    }

    /// Delivers an arrived change, with its stored sample if it is relevant to this reader.
    fn deliver_arrived(
        &mut self,
        ctx: &mut Context,
        index: u32,
        now: Instant,
        sn: SequenceNumber,
        stored: Option<Stored>,
    ) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if proxy.reliable {
            proxy.set_arrival(sn, stored.map_or(Arrival::Irrelevant, Arrival::Waiting));
            self.deliver(ctx, index, now);
            self.notice_gap(ctx, index, now);
        } else {
            self.deliver_best_effort(ctx, index, now, sn, stored);
        }
    }

    /// Returns the key hash of a change, and whether the payload provides it. The payload decides,
    /// so that an instance is the same regardless of what its writers announce. PID_KEY_HASH counts
    /// if the payload holds no key. It also counts for an object of this process, because its
    /// writer computed the hash as this reader would.
    fn identify(&mut self, piece: PayloadRef, key_only: bool, announced: Option<KeyHash>) -> (Option<KeyHash>, bool) {
        if !self.keyed {
            return (Some(KeyHash::default()), true);
        }
        let Some(key) = &mut self.key else { return (announced, false) };
        let pool = &self.cache.pool;
        if announced.is_some() && pool.loan(piece).is_some_and(|loan| loan.object().is_some()) {
            return (announced, true);
        }
        let computed = Some(pool.bytes(piece)).filter(|bytes| !bytes.is_empty());
        match computed.and_then(|bytes| key.key_hash(bytes, key_only)) {
            Some(hash) => (Some(hash), true),
            None => (announced.or_else(|| key.unknown_key_hash()), false),
        }
    }
}

/// Parses the inline QoS; `None` if it is malformed.
fn parse_inline_qos<'a>(list: Option<ParameterList<'a>>, ctx: &mut Context) -> Option<InlineQos<'a>> {
    match list.map(InlineQos::parse).transpose() {
        Ok(inline) => Some(inline.unwrap_or_default()),
        Err(_) => {
            ctx.counters.malformed_submessages += 1;
            None
        }
    }
}

/// Returns the kind of a change from its status bits (RTPS 2.5 §9.6.4.9).
fn change_kind(status: u32, key_only: bool) -> ChangeKind {
    match (status & STATUS_INFO_DISPOSED != 0, status & STATUS_INFO_UNREGISTERED != 0) {
        (true, true) => ChangeKind::DisposedUnregistered,
        (true, false) => ChangeKind::Disposed,
        (false, true) => ChangeKind::Unregistered,
        // A key without a status only means that the instance no longer exists for this writer.
        (false, false) if key_only => ChangeKind::Unregistered,
        (false, false) => ChangeKind::Alive,
    }
}
