//! Participant discovery protocol (RTPS 2.5 §8.5.3): own announcements, and leases of remote
//! participants.
//!
//! A new participant is sent an announcement at once, directly and by multicast. Its endpoints are
//! matched once its address is validated (`validation`).
//! INTEROP(OpenDDS 3.13): it ignores announcements that are addressed to it alone.

use super::admission::RemoteSecurity;
use super::footprint::Footprint;
use super::matching::RefusalReason;
use super::moving::Move;
use super::multicast::ListenedGroups;
use super::sedp::BuiltinChange;
use super::server::{IntroductionState, mark_as_server};
use super::source_addresses::SourceAddresses;
use super::static_endpoints::SEDP;
use super::validation::{PendingMessages, Probation};
use super::{Departure, OWN_ENDPOINT_SET, PARTICIPANTS_SECURE, SharedMemoryPath};
use crate::cache::{ChangeKind, InstanceState, ReadCursor, Selector};
use crate::config::Config;
use crate::context::{Context, Job};
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::event::Event;
use crate::participant::Received;
use crate::path::Path;
use crate::security::Announced;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use crate::writer::Presence;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use takt_schedule::Priority;
use takt_wire::builder::{DataEmit, MessageBuilder};
use takt_wire::discovery::{
    ENCAPSULATION_LEN, LATENCIES_MAX, ObservedLatency, ParticipantData, REPORTED_REFUSALS_MAX, ReportedRefusal,
    builtin_endpoints,
};
use takt_wire::inline_qos::{InlineQos, InlineQosBuilder, STATUS_INFO_DISPOSED, STATUS_INFO_UNREGISTERED};
use takt_wire::message::{Data, Header, Payload};
use takt_wire::{Endianness, EntityId, Full, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumber, VendorId};

/// Period of the first announcements; doubles up to the configured period.
const FIRST_ANNOUNCEMENTS: Duration = Duration::from_millis(100);
/// Minimum time between announcements to all that new participants cause.
const ANNOUNCEMENT_PERIOD_MIN: Duration = Duration::from_millis(100);
/// Number of announcements after a change that are sent to each known participant, in addition to
/// groups and peers.
const ANNOUNCEMENTS_AFTER_CHANGE: u32 = 3;
/// Silence after which a participant without any matched endpoint is replaced by a new one if all
/// slots are in use. Longer than the announcement periods of all vendors.
const IDLE: Duration = Duration::from_secs(60);
/// Shortest lease; shorter ones are extended to it.
const LEASE_MIN: Duration = Duration::from_millis(100);
/// Longest lease; longer ones are reduced to it.
///
/// DEVIATION(RTPS 2.5 §8.5.3.2): a participant that was silent for a day is lost, even if its lease
/// is infinite; otherwise a participant that vanishes with such a lease would stay forever.
const LEASE_MAX: Duration = Duration::from_secs(86_400);

/// Remote participant.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) prefix: GuidPrefix,
    pub(crate) data: Box<ParticipantData>,
    /// Last announcement, so that a repetition costs neither parsing nor memory.
    pub(super) announcement: Box<[u8]>,
    /// Source address of its last announcement.
    pub(crate) source: Locator,
    /// Path to its discovery endpoints.
    pub(crate) metatraffic: Path,
    lease: TimerId,
    /// Arrival of its last message.
    last_received: Instant,
    /// Arrival of its last announcement over the connection by which it is answered.
    pub(super) last_received_on_path: Instant,
    /// Rank in the order of discovery.
    arrival: u64,
    /// Address validation in progress; `None` once its address is validated.
    pub(crate) probation: Option<Probation>,
    pub(super) pending_messages: PendingMessages,
    /// Shared-memory path to the participant.
    pub(super) shared_memory_path: Option<SharedMemoryPath>,
    pub(super) listened_groups: ListenedGroups,
    /// An endpoint of the participant was matched with a local one.
    pub(super) exchanges: bool,
    /// Validation of a new address of a participant whose former address was validated.
    pub(super) moving: Option<Box<Move>>,
    /// Its announcements arrive by unicast only, so it needs unicast announcements too.
    pub(super) unicast_only: bool,
    /// Validated source addresses of the participant.
    pub(super) source_addresses: SourceAddresses,
    /// Sequence number of its last announcement.
    pub(super) sn: SequenceNumber,
    pub(super) introduction: IntroductionState,
    pub(crate) security: RemoteSecurity,
    /// Number of its stored publications and subscriptions.
    pub(crate) endpoints: usize,
    /// Memory in bytes of all this.
    pub(crate) footprint: usize,
}

impl Remote {
    /// Reports whether its address is not validated yet.
    pub(crate) fn is_on_probation(&self) -> bool {
        self.probation.is_some()
    }

    /// Returns its lease duration.
    pub(super) fn lease_duration(&self) -> Duration {
        lease_of(&self.data)
    }

    /// Returns the arrival of its last message, its lease, and the own lease.
    fn presence(&self, own_lease: Duration) -> Presence {
        Presence { last_received: self.last_received, lease: self.lease_duration(), own_lease }
    }
}

/// Returns the octets that a participant with this announcement takes.
fn footprint_of(data: &ParticipantData, payload: &[u8]) -> usize {
    size_of::<Remote>() + data.footprint() + payload.len()
}

/// Returns the lease duration of a participant, within the limits.
fn lease_of(data: &ParticipantData) -> Duration {
    data.lease_duration.as_nanos().map_or(LEASE_MAX, Duration::from_nanos).clamp(LEASE_MIN, LEASE_MAX)
}

/// Returns the participant data for handshakes: a parameter list in the byte order of hashes,
/// without encapsulation header and tokens.
pub(crate) fn for_handshakes(data: &ParticipantData) -> Vec<u8> {
    data.to_bytes_with(Endianness::Big).split_off(ENCAPSULATION_LEN)
}

/// Announcements of this participant.
#[derive(Debug)]
pub(crate) struct Announcer {
    data: Box<ParticipantData>,
    payload: Vec<u8>,
    /// Sequence number of the announcement; incremented for each change of its content.
    sn: SequenceNumber,
    period: Duration,
    timer: TimerId,
    sent: u32,
    last: Option<Instant>,
    queued: bool,
    /// Sequence number of the announcement in secure SPDP, if any.
    secured: SequenceNumber,
    /// Remaining announcements to all known participants after a change.
    to_known: u32,
    pub(crate) closing: bool,
}

impl Announcer {
    /// Returns the lease duration of this participant.
    pub(crate) fn lease_duration(&self) -> Duration {
        lease_of(&self.data)
    }

    pub(crate) fn new(data: ParticipantData, period: Duration, ctx: &mut Context) -> Self {
        let timer = ctx.timers.register(TimerKind::Announce);
        let (payload, sn) = (data.to_bytes(), SequenceNumber::FIRST);
        Self {
            data: Box::new(data),
            payload,
            sn,
            period,
            timer,
            sent: 0,
            last: None,
            queued: false,
            secured: SequenceNumber::ZERO,
            to_known: 0,
            closing: false,
        }
    }

    /// Starts the announcements.
    pub(crate) fn start(&mut self, now: Instant, ctx: &mut Context) {
        ctx.timers.arm(self.timer, now);
    }

    /// Changes the announcement, and sends it unless announcements have not started.
    pub(crate) fn edit(&mut self, ctx: &mut Context, edit: impl FnOnce(&mut ParticipantData)) {
        edit(&mut self.data);
        self.payload = self.data.to_bytes();
        if self.last.is_some() {
            self.sn = self.sn.next();
            self.queue(ctx);
        }
    }

    /// Changes the announcement, and sends it soon and repeatedly, also by unicast to known
    /// participants.
    pub(super) fn announce_change(&mut self, now: Instant, ctx: &mut Context, edit: impl FnOnce(&mut ParticipantData)) {
        if self.closing {
            return;
        }
        self.edit(ctx, edit);
        if self.last.is_some() {
            self.sent = 1;
            self.to_known = ANNOUNCEMENTS_AFTER_CHANGE;
            ctx.timers.arm(self.timer, now.after(FIRST_ANNOUNCEMENTS));
        }
    }

    /// Leaves one sequence number for a farewell, and announces soon, as after a return.
    pub(super) fn restart(&mut self, now: Instant, ctx: &mut Context) {
        self.sn = self.sn.next().next();
        self.announce_soon(now, ctx);
    }

    fn queue(&mut self, ctx: &mut Context) {
        if !self.queued {
            self.queued = true;
            ctx.jobs.push(Priority::NORMAL, Job::Announce);
        }
    }

    /// Handles the announcement timer.
    pub(crate) fn handle_timeout(&mut self, now: Instant, ctx: &mut Context) {
        self.queue(ctx);
        let delay = FIRST_ANNOUNCEMENTS.saturating_mul(2_u32.saturating_pow(self.sent)).min(self.period);
        self.sent = self.sent.saturating_add(1);
        ctx.timers.arm(self.timer, now.after(delay));
    }

    /// Advances the next announcement for a new participant.
    pub(super) fn announce_soon(&mut self, now: Instant, ctx: &mut Context) {
        match self.last {
            Some(last) if now.since(last) < ANNOUNCEMENT_PERIOD_MIN => {
                ctx.timers.arm_by(self.timer, last.after(ANNOUNCEMENT_PERIOD_MIN));
            }
            _ => self.queue(ctx),
        }
    }

    pub(crate) fn close(&mut self, ctx: &mut Context) {
        self.closing = true;
        ctx.timers.cancel(self.timer);
        self.queue(ctx);
    }

    /// Builds the announcement, or the farewell.
    pub(super) fn build(&self, header: &Header, frame: &mut [u8]) -> Result<usize, Full> {
        self.build_as(header, None, self.closing, self.sn, frame)
    }

    /// Builds a farewell to one participant with the sequence number before [`Self::restart`],
    /// although that was called already. It names its addressee: the participant only claims the
    /// address, and another one located there must not remove this participant.
    pub(super) fn build_farewell(&self, header: &Header, to: GuidPrefix, frame: &mut [u8]) -> Result<usize, Full> {
        self.build_as(header, Some(to), true, self.sn.prev().prev(), frame)
    }

    fn build_as(
        &self,
        header: &Header,
        to: Option<GuidPrefix>,
        farewell: bool,
        sn: SequenceNumber,
        frame: &mut [u8],
    ) -> Result<usize, Full> {
        let guid = Guid { prefix: header.prefix, entity_id: EntityId::PARTICIPANT };
        let mut builder = MessageBuilder::new(frame, header)?;
        to.map_or(Ok(()), |prefix| builder.info_destination(prefix))?;
        let mut inline = InlineQosBuilder::<32>::new();
        let key;
        let (sn, inline_qos, payload) = if farewell {
            inline.status_info(STATUS_INFO_DISPOSED | STATUS_INFO_UNREGISTERED)?;
            key = ParticipantData::key_payload(guid);
            (sn.next(), Some(inline.finish()?), Payload::Key(&key))
        } else {
            (sn, None, Payload::Data(&self.payload))
        };
        builder.data(&DataEmit {
            reader: EntityId::SPDP_READER,
            writer: EntityId::SPDP_WRITER,
            sn,
            inline_qos,
            payload,
        })?;
        Ok(builder.len())
    }
}

/// Origin of a message of SPDP.
#[derive(Clone, Copy)]
pub(crate) struct SpdpSource {
    pub(crate) received: Received,
    /// Participant that sent the datagram.
    pub(crate) sender: GuidPrefix,
    /// Participant on whose behalf it was sent (RTPS 2.5 §8.3.4).
    pub(crate) prefix: GuidPrefix,
    /// The datagram came from an address of its sender.
    pub(crate) is_authentic: bool,
}

/// Serialized announcement of a participant.
#[derive(Clone, Copy)]
pub(super) struct Announcement<'a> {
    pub(super) prefix: GuidPrefix,
    pub(super) sn: SequenceNumber,
    pub(super) payload: &'a [u8],
}

/// Builds the announcement of this participant (RTPS 2.5 §8.5.3.2).
pub(crate) fn describe(config: &Config, security: Option<Announced>) -> ParticipantData {
    let mut data = ParticipantData {
        guid: Guid { prefix: config.guid_prefix, entity_id: EntityId::PARTICIPANT },
        protocol_version: ProtocolVersion::V2_5,
        vendor_id: VendorId::TAKT,
        domain_id: Some(config.domain_id),
        metatraffic_unicast: config.locators.metatraffic_unicast.clone(),
        metatraffic_multicast: config.locators.metatraffic_multicast.clone(),
        default_unicast: config.locators.default_unicast.clone(),
        default_multicast: config.locators.default_multicast.clone(),
        lease_duration: config.lease_duration.into(),
        available_builtin_endpoints: OWN_ENDPOINT_SET,
        user_data: config.qos.user_data.clone(),
        entity_name: config.qos.entity_name.clone(),
        properties: config.qos.property.clone(),
        ..ParticipantData::default()
    };
    if config.static_endpoints.is_some() {
        data.available_builtin_endpoints &= !SEDP;
    }
    if config.is_server {
        mark_as_server(&mut data);
    }
    if let Some(security) = security {
        data.available_builtin_endpoints |= builtin_endpoints::SECURE;
        data.identity_token = Some(security.identity_token);
        data.permissions_token = Some(security.permissions_token);
        data.security_info = Some(security.security_info);
    }
    data
}

impl Discovery {
    /// Updates the longest observed latencies in the announcement. Endpoints without limit and
    /// bound report none.
    pub(crate) fn report_latencies(&mut self, ctx: &mut Context, endpoints: &mut Endpoints) {
        ctx.work.steps(endpoints.readers.len() + endpoints.writers.len());
        let of_readers = endpoints.readers.iter().filter_map(|(_, reader)| {
            let worst_ns = reader.cache.latency.as_ref()?.worst_ns();
            Some(ObservedLatency { entity: reader.entity_id, worst_ns })
        });
        let of_writers = endpoints.writers.iter().map(|(_, writer)| ObservedLatency {
            entity: writer.data.guid.entity_id,
            worst_ns: writer.statuses.longest_write_ns,
        });
        let all = of_readers.chain(of_writers).filter(|report| report.worst_ns > 0);
        let reports: Vec<ObservedLatency> = all.take(LATENCIES_MAX).collect();
        if !ObservedLatency::all_of(&self.announcer.data.properties).eq(reports.iter().copied()) {
            self.announcer.edit(ctx, |data| ObservedLatency::put(&reports, &mut data.properties));
        }
    }

    /// Updates the refusals by the OpenFlow controller in the announcement.
    pub(crate) fn report_refusals(&mut self, ctx: &mut Context) {
        ctx.work.steps(self.refusals.len());
        let of_network = self.refusals.iter().rev().filter_map(|refusal| {
            let RefusalReason::Network { reason } = &refusal.reason else { return None };
            let (local, remote) = (refusal.local.entity_id, refusal.remote);
            Some(ReportedRefusal { local, remote, reason: reason.clone() })
        });
        let reports: Vec<ReportedRefusal> = of_network.take(REPORTED_REFUSALS_MAX).collect();
        if !ReportedRefusal::all_of(&self.announcer.data.properties).eq(reports.iter().cloned()) {
            self.announcer.edit(ctx, |data| ReportedRefusal::put(&reports, &mut data.properties));
        }
    }

    pub(crate) fn transmit_announcement(&mut self, call: &mut Call<'_>, frame: &mut [u8]) -> Option<usize> {
        self.announcer.queued = false;
        self.announcer.last = Some(call.now);
        self.announce_securely(call);
        call.ctx.destinations.extend_from_slice(&self.initial_peers);
        call.ctx.destinations.extend(self.lost.locators(call.now));
        let len = self.announcer.build(&call.ctx.header, frame).ok()?;
        let to_known = self.announcer.to_known > 0;
        let to_all = self.announcer.closing || to_known;
        self.announcer.to_known = self.announcer.to_known.saturating_sub(1);
        call.ctx.work.steps(self.remotes.len());
        for (_, remote) in self.remotes.iter_mut().filter(|(_, remote)| remote.unicast_only || to_all) {
            if remote.probation.as_mut().is_none_or(|probation| probation.spend_on_announcement(len, call.ctx)) {
                call.ctx.destinations.push(remote.metatraffic.locator);
            }
        }
        call.ctx.destinations.sort_unstable();
        call.ctx.destinations.dedup();
        Some(len)
    }

    /// Passes the current announcement to secure SPDP (DDS-SEC 1.1 §7.4.5), and to handshakes.
    fn announce_securely(&mut self, call: &mut Call<'_>) {
        let (closing, sn) = (self.announcer.closing, self.announcer.sn);
        let Some(security) = call.ctx.security.as_mut() else { return };
        let guid = Guid { prefix: call.ctx.header.prefix, entity_id: EntityId::PARTICIPANT };
        if closing {
            return self.retract_endpoint(call, PARTICIPANTS_SECURE, guid);
        }
        if self.announcer.secured == sn {
            return;
        }
        self.announcer.secured = sn;
        security.set_participant_data(for_handshakes(&self.announcer.data));
        let payload = self.announcer.payload.clone();
        let change = BuiltinChange { kind: ChangeKind::Alive, key_hash: guid.to_bytes(), payload: &payload };
        self.write_builtin(call, PARTICIPANTS_SECURE, change);
    }

    /// Handles announcements and farewells of secure SPDP. A participant may announce only itself.
    pub(super) fn take_secure_announcements(&mut self, call: &mut Call<'_>) {
        loop {
            let Some(reader) = call.endpoints.readers.get_mut(PARTICIPANTS_SECURE) else { return };
            let Some(sample) = reader.cache.next(Selector::TAKE, None, &mut ReadCursor::default()) else { return };
            call.ctx.work.unit();
            let (from, instance) = (sample.info.publication.prefix, sample.info.instance_handle);
            let payload = sample.info.valid_data.then(|| sample.payload.to_vec());
            let is_gone = sample.info.instance_state == InstanceState::NotAliveDisposed;
            reader.cache.abandon(instance);
            match payload {
                Some(payload) => self.handle_secure_announcement(call, from, &payload),
                None if is_gone => {
                    self.depart(call, Guid { prefix: from, entity_id: EntityId::PARTICIPANT }, Departure::Deleted);
                }
                None => {}
            }
        }
    }

    /// Handles an announcement or farewell. `octets` is the part of the datagram not yet charged to
    /// a participant.
    pub(crate) fn handle_spdp(&mut self, call: &mut Call<'_>, from: &SpdpSource, data: &Data<'_>, octets: &mut usize) {
        let SpdpSource { received, sender, prefix, is_authentic } = *from;
        if prefix == call.ctx.header.prefix || self.ignored.has_participant(prefix) {
            return;
        }
        let inline = data.inline_qos.map(InlineQos::parse).transpose();
        let Ok(inline) = inline else {
            call.ctx.counters.malformed_submessages += 1;
            return;
        };
        let inline = inline.unwrap_or_default();
        if inline.status_info.unwrap_or(0) != 0 {
            // A participant may announce only itself: a forged farewell must at least forge the
            // header too.
            let by_hash = inline.key_hash.map(Guid::from_bytes);
            let by_key = data.payload.bytes().and_then(|bytes| ParticipantData::parse_key(bytes).ok());
            if [by_hash, by_key].into_iter().flatten().any(|guid| guid.prefix != prefix) {
                call.ctx.counters.malformed_discovery += 1;
                return;
            }
            if !is_authentic {
                return;
            }
            if self.is_authenticated(prefix) {
                // Unprotected farewells can be forged. Only secure SPDP counts.
                call.ctx.counters.unprotected_announcements += 1;
                return;
            }
            self.departed.note(call.now, prefix, data.sn);
            return self.depart(call, Guid::new(prefix, EntityId::PARTICIPANT), Departure::Deleted);
        }
        match data.payload {
            Payload::Data(payload) => {
                if self.has_departures() && !self.departed.precedes_farewell(call.now, prefix, data.sn) {
                    self.conclude_departure_of(call, Guid::new(prefix, EntityId::PARTICIPANT));
                }
                let announcement = Announcement { prefix, sn: data.sn, payload };
                if sender != prefix && self.handle_introduction(call, from, announcement, octets) {
                    return;
                }
                if self.handle_repeated_announcement(call.now, call.ctx, from, payload, octets) {
                    return;
                }
                self.handle_announcement(call, &received, announcement);
                if let Some(&index) = self.remote_by_prefix.get(&prefix)
                    && self.receive_announcement(index, *octets)
                {
                    *octets = 0;
                }
            }
            _ => call.ctx.counters.malformed_discovery += 1,
        }
    }

    /// Reports whether a known participant repeats its last announcement: the usual case, which
    /// takes one comparison. Its lease was renewed already, because its message was received.
    fn handle_repeated_announcement(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        from: &SpdpSource,
        payload: &[u8],
        octets: &mut usize,
    ) -> bool {
        let SpdpSource { received, prefix, is_authentic, .. } = *from;
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return false };
        let Some(remote) = self.remotes.get_mut(index) else { return false };
        let moves = remote.moving.as_ref().is_some_and(|moving| *moving.changed.announcement == *payload);
        if !moves
            && (!is_authentic || *remote.announcement != *payload || remote.uses_other_connection(now, received.source))
        {
            return false;
        }
        if remote.metatraffic.locator == received.source {
            remote.last_received_on_path = now;
        }
        if is_authentic {
            remote.unicast_only &= !received.multicast;
            remote.last_received = now;
        }
        if moves || remote.probation.is_some() {
            if let Some(probation) = &mut remote.probation {
                probation.announce_again(now);
            }
            if self.receive_announcement(index, *octets) {
                *octets = 0;
            }
            self.challenge_again(now, ctx, index);
        } else {
            self.cancel_move(ctx, index);
        }
        self.repeat_introduction(now, ctx, index);
        true
    }

    pub(super) fn handle_announcement(&mut self, call: &mut Call<'_>, from: &Received, announcement: Announcement<'_>) {
        let Announcement { prefix, sn, payload } = announcement;
        if self.departed.precedes_farewell(call.now, prefix, sn) {
            call.ctx.counters.stale_announcements += 1;
            return;
        }
        match ParticipantData::parse(payload) {
            Ok(data) if data.guid.prefix == prefix => {
                self.handle_participant_data(call, from, data, payload);
                if let Some(&index) = self.remote_by_prefix.get(&prefix) {
                    if let Some(remote) = self.remotes.get_mut(index) {
                        remote.sn = sn;
                    }
                    if !self.is_introduction {
                        self.repeat_introduction(call.now, call.ctx, index);
                    }
                }
            }
            _ => call.ctx.counters.malformed_discovery += 1,
        }
    }

    /// Handles the first or a changed announcement of a participant.
    pub(super) fn handle_participant_data(
        &mut self,
        call: &mut Call<'_>,
        from: &Received,
        data: ParticipantData,
        payload: &[u8],
    ) {
        let other_domain = data.domain_id.is_some_and(|domain| domain != self.domain_id);
        let tagged = data.domain_tag.as_deref().is_some_and(|tag| !tag.is_empty());
        if other_domain || tagged {
            return;
        }
        if let Some(&index) = self.remote_by_prefix.get(&data.guid.prefix) {
            if self.is_authenticated(data.guid.prefix) {
                call.ctx.counters.unprotected_announcements += 1;
                // From another address it may be recorded, and the participant may have ended.
                if self.accepts_source(call.ctx, &from.source, data.guid.prefix) {
                    self.renew_lease(call.now, call.ctx, index);
                }
                return;
            }
            return self.refresh_participant(call, from, data, payload);
        }
        let mut refused = 0;
        let path = match self.is_introduction {
            true => self.reachability.choose_introduced(&data.metatraffic_unicast, from.source, &mut refused),
            false => self.reachability.choose(&data.metatraffic_unicast, from.source, &mut refused),
        };
        call.ctx.counters.refused_locators += refused;
        let Some(metatraffic) = path else {
            call.ctx.counters.refused_remote_entities += 1;
            return;
        };
        if !self.has_room_for_participant(call, footprint_of(&data, payload)) {
            call.ctx.counters.refused_remote_entities += 1;
            return;
        }
        let guid = data.guid;
        let index = self.insert_participant(call, from, data, payload, metatraffic);
        self.renew_lease(call.now, call.ctx, index);
        call.ctx.notify(Event::ParticipantDiscovered(guid));
        if let Some(remote) = self.remotes.get(index) {
            self.builtin_topics.present_participant(call, remote);
        }
        self.admit_participant(call, index);
        self.queue_validation(call.ctx, index);
        let has_to_authenticate = self.remotes.get(index).is_some_and(|remote| remote.security.has_to_authenticate());
        if !has_to_authenticate && self.validation.is_known(guid.prefix, &metatraffic.locator) {
            self.announcer.announce_soon(call.now, call.ctx);
            self.end_probation(call, index);
        }
    }

    /// Adds a participant on probation to the tables. Returns its index.
    fn insert_participant(
        &mut self,
        call: &mut Call<'_>,
        from: &Received,
        data: ParticipantData,
        payload: &[u8],
        metatraffic: Path,
    ) -> u32 {
        let prefix = data.guid.prefix;
        let footprint = footprint_of(&data, payload);
        let lease = call.ctx.timers.register(TimerKind::Lease { participant: u32::MAX });
        let probation = Probation::new(call.ctx);
        call.ctx.counters.participants_discovered += 1;
        let index = self.remotes.insert(Remote {
            prefix,
            data: Box::new(data),
            announcement: payload.into(),
            source: from.source,
            metatraffic,
            lease,
            last_received: call.now,
            last_received_on_path: call.now,
            arrival: call.ctx.counters.participants_discovered,
            probation: Some(probation),
            pending_messages: PendingMessages::default(),
            shared_memory_path: None,
            listened_groups: ListenedGroups::default(),
            exchanges: false,
            moving: None,
            sn: SequenceNumber::FIRST,
            introduction: IntroductionState::default(),
            security: RemoteSecurity::default(),
            unicast_only: !from.multicast,
            source_addresses: SourceAddresses::default(),
            endpoints: 0,
            footprint,
        });
        self.discovery_bytes += footprint;
        call.ctx.set_participants(self.remotes.len());
        call.ctx.timers.set_kind(lease, TimerKind::Lease { participant: index });
        if let Some(probation) = self.remotes.get(index).and_then(|remote| remote.probation.as_ref()) {
            probation.set_index(index, call.ctx);
        }
        self.remote_by_prefix.insert(prefix, index);
        self.lost.remove(&metatraffic.locator);
        index
    }

    pub(super) fn renew_lease(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(remote) = self.remotes.get_mut(index) else { return };
        remote.last_received = now;
        ctx.timers.arm(remote.lease, now.after(remote.lease_duration()));
    }

    /// Renews the lease of a participant for any of its messages, because announcements may be lost
    /// under load. Returns the number of octets that are still not charged to a participant.
    pub(crate) fn message_received(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        source: &Locator,
        octets: usize,
    ) -> usize {
        let Some(remote) = self.sender(prefix) else { return octets };
        remote.last_received = now;
        if remote.receive_octets(source, octets) { 0 } else { octets }
    }

    /// Returns the presence of a reader's participant: this one, unless it is a known remote one.
    pub(crate) fn presence_of(&self, prefix: GuidPrefix, now: Instant) -> Presence {
        let remote = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get(index));
        remote.map_or(Presence::own(now), |remote| remote.presence(self.announcer.lease_duration()))
    }

    /// Returns the participant that sent a datagram; usually the sender of the previous one.
    #[inline]
    pub(super) fn sender(&mut self, prefix: GuidPrefix) -> Option<&mut Remote> {
        if self.remotes.get(self.last_sender).is_none_or(|remote| remote.prefix != prefix) {
            self.last_sender = *self.remote_by_prefix.get(&prefix)?;
        }
        self.remotes.get_mut(self.last_sender)
    }

    /// Makes room for one more participant if possible. The oldest participant with an unvalidated
    /// address is removed. Otherwise the one that was silent for longest is removed, if it was
    /// silent for longer than [`IDLE`] and never had a matched endpoint.
    fn has_room_for_participant(&mut self, call: &mut Call<'_>, footprint: usize) -> bool {
        call.ctx.work.steps(3 * self.remotes.len());
        let unvalidated = self.remotes.iter().filter(|(_, remote)| remote.probation.is_some()).count();
        if unvalidated >= call.ctx.limits.max_unvalidated_participants {
            let candidates = self.remotes.iter().filter(|(_, remote)| remote.probation.is_some());
            if let Some((_, oldest)) = candidates.min_by_key(|(_, remote)| remote.arrival) {
                let prefix = oldest.prefix;
                self.remove_participant(call, prefix, Departure::Lost);
            }
        }
        if self.remotes.len() >= call.ctx.limits.max_participants {
            let is_idle = |remote: &Remote| {
                remote.probation.is_none() && !remote.exchanges && call.now.since(remote.last_received) >= IDLE
            };
            let idle = self.remotes.iter().filter(|(_, remote)| is_idle(remote));
            if let Some(prefix) = idle.min_by_key(|(_, remote)| remote.last_received).map(|(_, remote)| remote.prefix) {
                call.ctx.counters.participants_displaced += 1;
                self.remove_participant(call, prefix, Departure::Lost);
            }
        }
        self.remotes.len() < call.ctx.limits.max_participants
            && self.discovery_bytes + footprint <= call.ctx.limits.max_discovery_bytes
    }

    /// Handles the lease timer: removes a participant from which nothing was received within its
    /// lease. Standstills of this participant do not count.
    pub(crate) fn handle_lease_end(&mut self, call: &mut Call<'_>, index: u32) {
        if let Some(remote) = self.remotes.get(index) {
            let end = remote
                .last_received
                .after(remote.lease_duration() + call.ctx.standstills.excused_since(remote.last_received));
            if end > call.now {
                let end = end.max(call.now.after(LEASE_MIN));
                return call.ctx.timers.arm(remote.lease, end);
            }
            let prefix = remote.prefix;
            call.ctx.counters.leases_expired += 1;
            self.remove_participant(call, prefix, Departure::Lost);
        }
    }

    /// Removes a participant and its endpoints.
    pub(super) fn remove_participant(&mut self, call: &mut Call<'_>, prefix: GuidPrefix, departure: Departure) {
        let Some(index) = self.remote_by_prefix.remove(&prefix) else { return };
        self.remove_endpoints_of(call, prefix, departure);
        self.abandon_type_requests(call.ctx, prefix);
        self.cancel_move(call.ctx, index);
        self.cancel_introduction(index);
        if let Some(mut remote) = self.remotes.remove(index) {
            call.ctx.set_participants(self.remotes.len());
            call.endpoints.close_channels(call.ctx, remote.security.writers());
            if let Some(security) = call.ctx.security.as_mut() {
                security.participant_lost(prefix);
            }
            match remote.probation.take() {
                Some(probation) => probation.close(call.ctx),
                None if departure == Departure::Lost => {
                    self.validation.add_known(prefix, &remote.metatraffic.locator);
                    if remote.unicast_only {
                        self.lost.insert(call.now, remote.metatraffic.locator);
                    }
                }
                None => {}
            }
            call.ctx.leave_multicast_groups(&remote);
            self.builtin_topics.withdraw_participant(call, &remote, departure);
            self.discovery_bytes -= remote.footprint;
            call.ctx.timers.release(remote.lease);
            call.ctx.notify(Event::ParticipantLost(remote.data.guid));
        }
        // The departure changed instances of the builtin readers; these changes are discarded here.
        self.handle_builtin_data(call);
    }
}
