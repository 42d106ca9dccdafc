//! Admission of secured participants and their endpoints (DDS-SEC 1.1 §8.8).
//!
//! A participant that can authenticate stays on probation until it has: its endpoints are not known
//! before. The handshake also validates its address. A participant that cannot authenticate is
//! admitted where the governance allows it. It validates its address as without security, and is
//! matched with unprotected endpoints.

use crate::context::Context;
use crate::discovery::{Call, Departure, Discovery, RefusalReason};
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::event::Event;
use crate::security::{AdmissionState, Protection, Security, SecurityChannel, SecurityEvent, SecurityMessage};
use crate::time::Instant;
use crate::writer::Writer;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::{EntityId, Guid, GuidPrefix, VendorId};

/// Minimum delay between two handled messages of plugins.
const DELAY_MIN: Duration = Duration::from_nanos(1);

/// Trust state of a remote participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The participant may use unprotected topics.
    #[default]
    Open,
    Authenticating,
    Authenticated,
    /// The participant is excluded from all topics.
    Refused,
}

/// Security state of a remote participant.
#[derive(Debug, Default)]
pub(crate) struct RemoteSecurity {
    pub(crate) trust: Trust,
    /// Whether the participant has shown that it knows the key of the volatile endpoints, and has
    /// acknowledged the first key tokens.
    is_confirmed: bool,
    /// Local stateless and volatile writers for this participant only.
    stateless: Option<u32>,
    volatile: Option<u32>,
    /// Messages that wait until the participant has sent enough octets, oldest first.
    pub(super) delayed_messages: Vec<SecurityMessage>,
    /// Reason of the refusal.
    refusal_reason: Option<String>,
}

impl RemoteSecurity {
    /// Reports whether no handshake has begun, because of the announced identity or domain.
    pub(super) fn begins_no_handshake(&self) -> bool {
        matches!(self.trust, Trust::Open | Trust::Refused)
    }

    /// Reports whether address validation alone does not end the probation.
    pub(crate) fn has_to_authenticate(&self) -> bool {
        match self.trust {
            Trust::Open => false,
            Trust::Authenticating | Trust::Refused => true,
            Trust::Authenticated => !self.is_confirmed,
        }
    }

    /// Reports whether the participant is authenticated: unauthenticated messages in its name are
    /// then ignored.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.trust == Trust::Authenticated
    }

    /// Returns the local stateless and volatile writers for this participant only.
    pub(crate) fn writers(&self) -> [Option<u32>; 2] {
        [self.stateless, self.volatile]
    }

    pub(super) fn writer(&self, channel: SecurityChannel) -> Option<u32> {
        match channel {
            SecurityChannel::Stateless => self.stateless,
            SecurityChannel::Volatile => self.volatile,
        }
    }

    pub(super) fn writer_mut(&mut self, channel: SecurityChannel) -> &mut Option<u32> {
        match channel {
            SecurityChannel::Stateless => &mut self.stateless,
            SecurityChannel::Volatile => &mut self.volatile,
        }
    }
}

impl Discovery {
    /// Decides about a discovered participant: it must authenticate, is admitted as it is, or is
    /// refused.
    pub(crate) fn admit_participant(&mut self, call: &mut Call<'_>, index: u32) {
        let clocks = call.ctx.clocks(call.now);
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let Some(security) = call.ctx.security.as_mut() else { return };
        let guid = remote.data.guid;
        match security.participant_discovered(clocks, &remote.data) {
            AdmissionState::Open => remote.security.trust = Trust::Open,
            AdmissionState::Authenticating => {
                remote.security.trust = Trust::Authenticating;
                if !remote.answers_challenges()
                    && let Some(probation) = &mut remote.probation
                {
                    probation.await_handshake();
                }
                self.open_channel(call, index, SecurityChannel::Stateless);
                self.run_security(call);
            }
            AdmissionState::Refused(reason) => {
                remote.security.trust = Trust::Refused;
                remote.security.refusal_reason = Some(reason);
                call.ctx.notify(Event::ParticipantRefused(guid));
            }
        }
    }

    /// Executes pending work of the plugin: sends its messages, handles its events, and arms its
    /// timer.
    pub(crate) fn run_security(&mut self, call: &mut Call<'_>) {
        let clocks = call.ctx.clocks(call.now);
        loop {
            let Some(security) = call.ctx.security.as_mut() else { return };
            // An event may create the writer that a message needs.
            if let Some(event) = security.poll_event() {
                self.handle_security_event(call, event);
            } else if let Some(message) = security.poll_message(clocks) {
                self.send_security_message(call, message);
            } else {
                break;
            }
        }
        if call.ctx.security.as_deref().is_some_and(Security::has_log) {
            call.ctx.notify(Event::SecurityLogged);
        }
        call.endpoints.arm_security_timer(call.now, call.ctx);
    }

    /// Handles the timer of the plugin: one received message, or other due work.
    pub(crate) fn handle_security_timeout(&mut self, call: &mut Call<'_>) {
        if !call.endpoints.take_security_message(call.now, call.ctx) {
            let clocks = call.ctx.clocks(call.now);
            if let Some(security) = call.ctx.security.as_mut() {
                security.handle_timeout(clocks);
            }
        }
        self.run_security(call);
    }

    fn handle_security_event(&mut self, call: &mut Call<'_>, event: SecurityEvent) {
        match event {
            SecurityEvent::Authenticated(prefix) => {
                let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
                let Some(remote) = self.remotes.get_mut(index) else { return };
                // The participant may have been admitted without an identity, or authenticated
                // before.
                let was_admitted = remote.probation.is_none();
                remote.security.trust = Trust::Authenticated;
                remote.security.delayed_messages.clear();
                remote.security.refusal_reason = None;
                remote.security.is_confirmed = false;
                call.ctx.counters.participants_authenticated += 1;
                if was_admitted {
                    let writers = [remote.security.stateless.take(), remote.security.volatile.take()];
                    self.remove_endpoints_of(call, prefix, Departure::Lost);
                    call.endpoints.close_channels(call.ctx, writers);
                    self.open_channel(call, index, SecurityChannel::Stateless);
                }
                self.open_channel(call, index, SecurityChannel::Volatile);
            }
            SecurityEvent::AnnouncementAuthenticated(data) => {
                self.adopt_authenticated_announcement(call, *data);
            }
            SecurityEvent::Refused { participant, stays_open, reason } => {
                let Some(&index) = self.remote_by_prefix.get(&participant) else { return };
                let Some(remote) = self.remotes.get_mut(index) else { return };
                let guid = remote.data.guid;
                remote.security.trust = if stays_open { Trust::Open } else { Trust::Refused };
                remote.security.delayed_messages.clear();
                remote.security.refusal_reason = Some(reason);
                call.ctx.counters.participants_refused += 1;
                call.ctx.notify(Event::ParticipantRefused(guid));
                if stays_open {
                    if let Some(probation) = &mut remote.probation {
                        probation.await_answers();
                    }
                    self.challenge_again(call.now, call.ctx, index);
                }
            }
            SecurityEvent::Expelled { participant, reason } if participant == call.ctx.header.prefix => {
                let all: Vec<GuidPrefix> = self.remotes.iter().map(|(_, remote)| remote.prefix).collect();
                for participant in all {
                    call.ctx.work.unit();
                    self.expel(call, participant, reason.clone());
                }
            }
            SecurityEvent::Expelled { participant, reason } => self.expel(call, participant, reason),
            SecurityEvent::PermissionsChanged(prefix) if prefix == call.ctx.header.prefix => {
                call.endpoints.recheck_local_endpoints(call.ctx)
            }
            SecurityEvent::PermissionsChanged(prefix) => self.match_again(call, prefix),
            SecurityEvent::Restarted(prefix) => self.leave_former_session(call.now, call.ctx, prefix),
        }
    }

    /// Continues discovery with a participant that has used the key of the volatile endpoints,
    /// which shows that it has authenticated this one, and has acknowledged the key tokens sent so
    /// far. Without those keys it would drop the messages of builtin endpoints, which would then be
    /// repeated.
    ///
    /// INTEROP(CycloneDDS 0.10): forgets endpoints that are announced before it has handled the
    /// last message of the handshake.
    pub(crate) fn confirm_session(&mut self, call: &mut Call<'_>, prefix: GuidPrefix) {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        let Some(remote) = self.remotes.get_mut(index).filter(|remote| remote.security.is_authenticated()) else {
            return;
        };
        let volatile = remote.security.volatile.and_then(|index| call.endpoints.writers.get(index));
        if remote.security.is_confirmed || volatile.is_some_and(Writer::has_unacknowledged) {
            return;
        }
        remote.security.is_confirmed = true;
        self.end_probation(call, index);
    }

    /// Expels a participant. It stays known, so that its announcements do not each begin a new
    /// handshake.
    fn expel(&mut self, call: &mut Call<'_>, prefix: GuidPrefix, reason: String) {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        let Some(remote) = self.remotes.get(index) else { return };
        let guid = remote.data.guid;
        self.remove_endpoints_of(call, prefix, Departure::Lost);
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let writers = remote.security.writers();
        remote.security =
            RemoteSecurity { trust: Trust::Refused, refusal_reason: Some(reason), ..RemoteSecurity::default() };
        call.endpoints.close_channels(call.ctx, writers);
        // The participant may authenticate again over this channel, with another certificate.
        self.open_channel(call, index, SecurityChannel::Stateless);
        self.handle_builtin_data(call);
        call.ctx.counters.participants_refused += 1;
        call.ctx.notify(Event::ParticipantRefused(guid));
    }

    /// Makes a participant of another vendor discover this one again, so that it begins a
    /// handshake.
    ///
    /// INTEROP(CycloneDDS 0.10): does not begin another handshake with a participant whose expired
    /// permissions it has refused.
    fn leave_former_session(&mut self, now: Instant, ctx: &mut Context, prefix: GuidPrefix) {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        if self.remotes.get(index).is_some_and(|remote| remote.data.vendor_id != VendorId::TAKT) {
            self.queue_farewell(now, ctx, index);
        }
    }

    /// Returns the refused participants with the reasons: they could not authenticate, their
    /// documents do not allow participation, or have expired.
    pub(crate) fn refused_participants(&self) -> impl Iterator<Item = (Guid, &str)> {
        self.remotes
            .iter()
            .filter_map(|(_, remote)| Some((remote.data.guid, remote.security.refusal_reason.as_deref()?)))
    }

    /// Reports whether a participant is authenticated (DDS-SEC 1.1 §8.3).
    #[must_use]
    pub(crate) fn is_authenticated(&self, prefix: GuidPrefix) -> bool {
        let remote = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get(index));
        remote.is_some_and(|remote| remote.security.is_authenticated())
    }

    /// Informs the plugin of a match of a local endpoint with a remote one.
    pub(crate) fn secure_pair(&mut self, call: &mut Call<'_>, local: EntityId, remote: Guid) {
        if remote.prefix == call.ctx.header.prefix {
            return;
        }
        if let Some(security) = call.ctx.security.as_mut() {
            security.pair_matched(local, remote);
            self.run_security(call);
        }
    }

    /// Replaces the announcement by which a participant was discovered: any host can send one in
    /// its name. Later ones are ignored until the participant leaves, except those of secure SPDP.
    ///
    /// INTEROP(other vendors): the discovered announcement is kept, because the handshake need not
    /// contain their locators and builtin endpoints (DDS-SEC 1.1 §9.3.2.5.2).
    fn adopt_authenticated_announcement(&mut self, call: &mut Call<'_>, mut data: ParticipantData) {
        let Some(&index) = self.remote_by_prefix.get(&data.guid.prefix) else { return };
        let Some(remote) = self.remotes.get(index).filter(|_| data.vendor_id == VendorId::TAKT) else { return };
        data.identity_token.clone_from(&remote.data.identity_token);
        data.permissions_token.clone_from(&remote.data.permissions_token);
        if *remote.data != data {
            self.adopt_announcement(call, data);
        }
    }

    /// Handles a changed announcement of an authenticated participant, received by secure SPDP.
    pub(crate) fn handle_secure_announcement(&mut self, call: &mut Call<'_>, prefix: GuidPrefix, payload: &[u8]) {
        match ParticipantData::parse(payload) {
            Ok(data) if data.guid.prefix == prefix => self.adopt_announcement(call, data),
            _ => call.ctx.counters.malformed_discovery += 1,
        }
    }
}

impl Endpoints {
    fn arm_security_timer(&mut self, now: Instant, ctx: &mut Context) {
        let Some(timer) = ctx.security_timer else { return };
        let wanted = ctx.security.as_ref().and_then(|security| security.poll_timeout());
        // Never in the same call of `handle_timeout`: other timers run first.
        let soon = now.after(DELAY_MIN);
        let due = if self.has_security_message() { Some(soon) } else { wanted.map(|due| due.max(soon)) };
        match due {
            Some(due) => ctx.timers.arm(timer, due),
            None => ctx.timers.cancel(timer),
        }
    }

    /// Checks local endpoints against the new permissions of this participant. An endpoint that
    /// they do not allow is logged; remote participants end its matches.
    fn recheck_local_endpoints(&mut self, ctx: &mut Context) {
        let clocks = ctx.last_clocks();
        let Some(security) = ctx.security.as_mut() else { return };
        let of_application = |id: EntityId| !id.is_builtin();
        for (_, writer) in self.writers.iter().filter(|(_, writer)| of_application(writer.entity_id)) {
            ctx.work.unit();
            let _logged = security.admit_writer(clocks, &writer.data);
        }
        for (_, reader) in self.readers.iter().filter(|(_, reader)| of_application(reader.entity_id)) {
            ctx.work.unit();
            let _logged = security.admit_reader(clocks, &reader.data);
        }
    }
}

impl Context {
    /// Returns the protection of a builtin endpoint.
    pub(crate) fn builtin_protection(&self, endpoint: EntityId) -> Protection {
        self.security.as_ref().map(|security| security.builtin_protection(endpoint)).unwrap_or_default()
    }

    /// Checks whether a local writer is permitted, and adds its protection to its announcement.
    pub(crate) fn admit_writer(&mut self, data: &mut PublicationData) -> Result<Protection, Error> {
        let clocks = self.last_clocks();
        let Some(security) = self.security.as_mut() else { return Ok(Protection::default()) };
        let admitted = security.admit_writer(clocks, data);
        let protection = admitted.map_err(|what| Error::NotAllowedBySecurity { what })?;
        data.security_info = Some(protection.info);
        Ok(protection)
    }

    /// Checks whether a local reader is permitted, and adds its protection to its announcement.
    pub(crate) fn admit_reader(&mut self, data: &mut SubscriptionData) -> Result<Protection, Error> {
        let clocks = self.last_clocks();
        let Some(security) = self.security.as_mut() else { return Ok(Protection::default()) };
        let admitted = security.admit_reader(clocks, data);
        let protection = admitted.map_err(|what| Error::NotAllowedBySecurity { what })?;
        data.security_info = Some(protection.info);
        Ok(protection)
    }

    /// Removes the protection of a local endpoint.
    pub(crate) fn remove_protection(&mut self, endpoint: EntityId) {
        if let Some(security) = self.security.as_mut() {
            security.endpoint_deleted(endpoint);
        }
    }

    /// Reports whether only secure SEDP announces the endpoints of a topic.
    pub(crate) fn protects_discovery(&self, topic_name: &str) -> bool {
        self.security.as_ref().is_some_and(|security| security.protects_discovery(topic_name))
    }

    /// Returns the reason for which a local reader must not be matched with a remote writer.
    pub(crate) fn security_refusal_of_writer(
        &mut self,
        now: Instant,
        reader: EntityId,
        data: &PublicationData,
    ) -> Option<RefusalReason> {
        if data.guid.prefix == self.header.prefix {
            return None;
        }
        let clocks = self.clocks(now);
        let reason = self.security.as_mut()?.check_remote_writer(clocks, reader, data).err()?;
        Some(RefusalReason::Security { reason })
    }

    /// Returns the reason for which a local writer must not be matched with a remote reader.
    pub(crate) fn security_refusal_of_reader(
        &mut self,
        now: Instant,
        writer: EntityId,
        data: &SubscriptionData,
    ) -> Option<RefusalReason> {
        if data.guid.prefix == self.header.prefix {
            return None;
        }
        let clocks = self.clocks(now);
        let reason = self.security.as_mut()?.check_remote_reader(clocks, writer, data).err()?;
        Some(RefusalReason::Security { reason })
    }

    /// Informs the plugin of the end of a match.
    pub(crate) fn end_secure_pair(&mut self, local: EntityId, remote: Guid) {
        if let Some(security) = self.security.as_mut() {
            security.pair_unmatched(local, remote);
        }
    }
}
