//! Authentication of remote participants, from their discovery to the end of their handshakes.

use std::time::Duration;

use takt_core::Instant;
use takt_core::security::{AdmissionState, SecurityChannel, SecurityEvent, SecurityMessage};
use takt_wire::discovery::ParticipantData;
use takt_wire::parameter::{PID_VENDORID, ParameterList};
use takt_wire::{Cursor, Endianness, EntityId, GuidPrefix, VendorId};

use super::expiry::Validity;
use super::keyring::{NewKey, Uses};
use super::remotes::{Remote, Session, Stage, describe};
use super::{Plugin, RENEWAL_PERIOD, RETRY_PERIOD, Severity, handshake_clock, participant_guid};
use crate::attributes::SecurityInfo;
use crate::error::{ErrorKind, Result, SecurityError};
use crate::handshake::{Authenticated, Challenge, Event, Handshake, closing_challenge, opening_challenge};
use crate::identity::IDENTITY_TOKEN_CLASS;
use crate::message::GenericMessage;
use crate::token::Token;
use crate::transform::{Replays, Sealer};

impl Plugin {
    /// Handles a participant that was discovered or changed its announcement. An authenticated
    /// participant stays authenticated: any host can send announcements in its name.
    pub(super) fn discover(&mut self, data: &ParticipantData) -> AdmissionState {
        let prefix = data.guid.prefix;
        if prefix == self.prefix {
            return AdmissionState::Refused(format!("participant {prefix} has the GUID of the local participant"));
        }
        if let Some(Stage::Authenticated(_) | Stage::Authenticating | Stage::Waiting) =
            self.remotes.get(&prefix).map(|remote| &remote.stage)
        {
            return AdmissionState::Authenticating;
        }
        let may_stay_open = self.attributes.allows_unauthenticated;
        if let Err(reason) = check_identity_token(data) {
            let stage = if may_stay_open { Stage::Open } else { Stage::Unsuited };
            self.remotes.insert(prefix, Remote::new(stage, self.now.at));
            let reason = format!("participant {prefix}: {reason}");
            self.log(Severity::Warning, reason.clone());
            return if may_stay_open { AdmissionState::Open } else { AdmissionState::Refused(reason) };
        }
        let masks = self.attributes.info().check_participants(data.security_info.map(SecurityInfo::from));
        if let Err(error) = masks {
            self.remotes.insert(prefix, Remote::new(Stage::Unsuited, self.now.at));
            let reason = format!("participant {prefix}: {error}");
            self.log(Severity::Warning, reason.clone());
            return AdmissionState::Refused(reason);
        }
        self.remotes.insert(prefix, Remote::new(Stage::Waiting, self.now.at));
        self.waiting.push_back(prefix);
        self.start_waiting();
        AdmissionState::Authenticating
    }

    /// Removes a participant that has left.
    pub(super) fn remove_remote(&mut self, prefix: GuidPrefix) {
        self.remove_keys_of(prefix);
        self.remotes.remove(&prefix);
        self.renewals.mark_done(prefix);
        self.waiting.retain(|one| *one != prefix);
        self.refused.remove(&prefix);
        self.start_waiting();
    }

    /// Begins handshakes of waiting participants while slots are free. A local participant whose
    /// documents have expired begins none until its renewal.
    pub(super) fn start_waiting(&mut self) {
        if self.own_validity.has_ended() {
            return;
        }
        while let Some(prefix) = self.waiting.front().copied() {
            if !self.has_free_slot() {
                return;
            }
            self.waiting.pop_front();
            match self.new_handshake(prefix) {
                Ok(handshake) => {
                    if let Some(remote) = self.remotes.get_mut(&prefix) {
                        remote.handshake = Some(handshake);
                        remote.stage = Stage::Authenticating;
                        remote.began_at = self.now.at;
                        remote.tried_since.get_or_insert(self.now.at);
                    }
                }
                Err(error) => self.refuse(prefix, &error, false),
            }
        }
    }

    /// Frees the slot of a pending handshake if participants wait for one. The participant of that
    /// handshake then waits after the others. It is refused once its handshakes have taken the time
    /// of one timeout.
    fn free_slot(&mut self) {
        if self.waiting.is_empty() || self.has_free_slot() {
            return;
        }
        let Some((_, prefix)) = self.next_to_yield().filter(|(at, _)| *at <= self.now.at) else { return };
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        let is_over = remote.tried_since.is_some_and(|since| self.now.at.since(since) >= self.local.options().timeout);
        let ended = remote.handshake.take().filter(|_| is_over);
        remote.stage = Stage::Waiting;
        match ended.and_then(|mut handshake| handshake.handle_timeout(Duration::MAX)) {
            Some(Event::TimedOut(error)) => self.refuse(prefix, &error, true),
            _ => self.waiting.push_back(prefix),
        }
    }

    fn next_to_yield(&self) -> Option<(Instant, GuidPrefix)> {
        self.remotes.iter().filter_map(|(prefix, remote)| Some((remote.yields_at()?, *prefix))).min()
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.remotes.values().map(Remote::pending_count).sum::<usize>() < self.handshakes_max
    }

    pub(super) fn new_handshake(&mut self, prefix: GuidPrefix) -> Result<Handshake> {
        let mut handshake = Handshake::new(&self.local, participant_guid(prefix), handshake_clock(self.now))?;
        // The caller limits the octets sent to a participant whose address is not validated.
        handshake.handle_validated_address();
        self.handshake_due = Some(self.now.at);
        Ok(handshake)
    }

    /// Handles a message of the stateless endpoints.
    pub(super) fn handle_stateless(&mut self, from: GuidPrefix, payload: &[u8]) {
        let handled = self.try_handle_stateless(from, payload);
        // Messages may have become due, and timeouts may have changed.
        self.handshake_due = Some(self.now.at);
        if let Err(error) = handled {
            self.counters.handshake_messages_refused += 1;
            let text = format!("handshake message of {}: {error}", describe(from, self.remotes.get(&from)));
            self.log(Severity::Warning, text);
        }
    }

    fn try_handle_stateless(&mut self, from: GuidPrefix, payload: &[u8]) -> Result<()> {
        let message = GenericMessage::parse(payload)?;
        self.open_handshake(from, &message)?;
        let (clock, wall) = (handshake_clock(self.now), self.wall());
        let Self { remotes, local, .. } = self;
        let Some(remote) = remotes.get_mut(&from) else {
            return Err(SecurityError::new(ErrorKind::Handshake, "it was not discovered"));
        };
        if matches!(remote.stage, Stage::Waiting) {
            // The remote participant repeats the message.
            return Ok(());
        }
        let mut refusal = None;
        if let Some(renewal) = &mut remote.renewal {
            match renewal.handle(local, &message, payload.len(), clock, wall) {
                Ok(Some(event)) => return self.finish(from, event, closing_challenge(&message), true),
                Ok(None) => return Ok(()),
                // The message may belong to the previous handshake.
                Err(error) => refusal = Some(error),
            }
        }
        let Some(handshake) = &mut remote.handshake else {
            let none = || SecurityError::new(ErrorKind::Handshake, "no handshake is under way");
            return Err(refusal.unwrap_or_else(none));
        };
        match handshake.handle(local, &message, payload.len(), clock, wall) {
            Ok(Some(event)) => self.finish(from, event, closing_challenge(&message), false),
            Ok(None) => Ok(()),
            Err(error) => Err(refusal.unwrap_or(error)),
        }
    }

    /// Begins another handshake if the message opens one: the remote participant has lost its
    /// session and returned, or retries after it was refused.
    fn open_handshake(&mut self, from: GuidPrefix, message: &GenericMessage<'_>) -> Result<()> {
        let Some(challenge) = opening_challenge(message) else { return Ok(()) };
        let Some(remote) = self.remotes.get(&from) else { return Ok(()) };
        let is_authenticated = match &remote.stage {
            Stage::Authenticated(session) if remote.renewal.is_some() || session.challenge == Some(challenge) => {
                return Ok(());
            }
            Stage::Authenticated(_) => true,
            Stage::Refused { .. } => false,
            _ => return Ok(()),
        };
        let is_early = self.now.at.since(remote.began_at) < RENEWAL_PERIOD;
        if is_early || !self.has_free_slot() || self.own_validity.has_ended() {
            return Ok(());
        }
        let handshake = self.new_handshake(from)?;
        if let Some(remote) = self.remotes.get_mut(&from) {
            remote.began_at = self.now.at;
            if is_authenticated {
                remote.renewal = Some(handshake);
            } else {
                remote.handshake = Some(handshake);
                remote.stage = Stage::Authenticating;
            }
        }
        Ok(())
    }

    /// Finishes a successful handshake; the permissions decide about the participant.
    fn finish(
        &mut self,
        prefix: GuidPrefix,
        event: Event,
        challenge: Option<Challenge>,
        is_renewal: bool,
    ) -> Result<()> {
        let authenticated = match event {
            Event::Authenticated(authenticated) => *authenticated,
            Event::TimedOut(error) => return Err(error),
        };
        match self.accept(prefix, authenticated, challenge) {
            Ok(session) => self.begin_session(prefix, session, is_renewal),
            Err(error) if is_renewal => {
                if let Some(remote) = self.remotes.get_mut(&prefix) {
                    remote.renewal = None;
                }
                Err(error)
            }
            Err(error) => {
                self.refuse(prefix, &error, false);
                self.start_waiting();
                Ok(())
            }
        }
    }

    /// Checks the permissions of an authenticated participant, and derives the key of the volatile
    /// endpoints.
    fn accept(
        &mut self,
        prefix: GuidPrefix,
        authenticated: Authenticated,
        challenge: Option<Challenge>,
    ) -> Result<Session> {
        if self.own_validity.has_ended() {
            let reason = "the documents of this participant have expired";
            return Err(SecurityError::new(ErrorKind::Certificate, reason));
        }
        let wall = self.wall();
        let Authenticated { certificate, permissions, participant_data, secret } = authenticated;
        let permissions = self.access.permissions(&permissions, wall)?;
        self.access.check_participant(&permissions, certificate.subject(), wall)?;
        let material = secret.key_exchange_material()?;
        let volatile = Sealer::new(material.clone())?.with_blocks_per_session(self.blocks_per_session);
        let validity = Validity::of(&certificate, &permissions, self.local.authority(), &self.access, wall);
        let vendor = announced_vendor(&participant_data);
        let session = Session { certificate, permissions, validity, challenge, volatile, vendor };
        let refuses = session.counts() && self.has_replay_windows;
        let key = NewKey {
            sender: prefix,
            owner: EntityId::VOLATILE_MESSAGE_WRITER,
            receiver: EntityId::VOLATILE_MESSAGE_READER,
            uses: Uses::SUBMESSAGES,
            replays: if refuses { Replays::RefusedInTwoSeries } else { Replays::Accepted },
            material,
        };
        self.keyring.remove_id(prefix, key.material.sender_key_id());
        self.keyring.insert(key).map_err(|reason| SecurityError::new(ErrorKind::Library, reason))?;
        let announced = announced(&participant_data).map(Box::new);
        self.events.extend(announced.map(SecurityEvent::AnnouncementAuthenticated));
        Ok(session)
    }

    fn begin_session(&mut self, prefix: GuidPrefix, session: Session, is_renewal: bool) -> Result<()> {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return Ok(()) };
        remote.stage = Stage::Authenticated(Box::new(session));
        remote.tried_since = None;
        if is_renewal {
            remote.handshake = remote.renewal.take();
        }
        remote.began_at = self.now.at;
        self.refused.remove(&prefix);
        self.renewals.mark_done(prefix);
        self.events.push_back(SecurityEvent::Authenticated(prefix));
        let text = format!("{} is authenticated", describe(prefix, self.remotes.get(&prefix)));
        self.log(Severity::Notice, text);
        self.set_check_due();
        self.start_waiting();
        self.send_participant_tokens(prefix)
    }

    /// Refuses a participant that did not authenticate, or lacks permission to join. The core
    /// receives one event for it.
    fn refuse(&mut self, prefix: GuidPrefix, error: &SecurityError, may_retry: bool) {
        let reason = format!("participant {prefix} is refused: {error}");
        self.log(Severity::Warning, reason.clone());
        if let Some(remote) = self.remotes.get_mut(&prefix) {
            let retry_at = may_retry.then(|| self.now.at.after(RETRY_PERIOD));
            remote.stage = Stage::Refused { retry_at };
            (remote.handshake, remote.tried_since) = (None, None);
        }
        if self.refused.insert(prefix) {
            let stays_open = self.attributes.allows_unauthenticated;
            self.events.push_back(SecurityEvent::Refused { participant: prefix, stays_open, reason });
        }
    }

    /// Ends handshakes whose timeout has expired, and begins those that are due.
    pub(super) fn run_handshakes(&mut self) {
        let clock = handshake_clock(self.now);
        let prefixes: Vec<_> = self.remotes.keys().copied().collect();
        for prefix in prefixes {
            let Some(remote) = self.remotes.get_mut(&prefix) else { continue };
            if let Stage::Refused { retry_at: Some(retry_at) } = remote.stage
                && retry_at <= self.now.at
            {
                remote.stage = Stage::Waiting;
                self.waiting.push_back(prefix);
            }
            let ended = |handshake: &mut Option<Handshake>| handshake.as_mut()?.handle_timeout(clock);
            let (main, renewal) = (ended(&mut remote.handshake), ended(&mut remote.renewal));
            if let Some(Event::TimedOut(error)) = renewal {
                remote.renewal = None;
                let text = format!("another handshake with {}: {error}", describe(prefix, self.remotes.get(&prefix)));
                self.log(Severity::Warning, text);
            }
            if let Some(Event::TimedOut(error)) = main {
                self.refuse(prefix, &error, true);
            }
        }
        self.free_slot();
        self.start_waiting();
        self.set_handshake_due();
    }

    /// Returns the next handshake message that is due.
    pub(super) fn poll_handshakes(&mut self) -> Option<SecurityMessage> {
        if self.handshake_due.is_none_or(|due| due > self.now.at) {
            return None;
        }
        let clock = handshake_clock(self.now);
        let found = self.remotes.iter_mut().find_map(|(prefix, remote)| Some((*prefix, remote.poll_transmit(clock)?)));
        let Some((to, payload)) = found else {
            self.set_handshake_due();
            return None;
        };
        Some(SecurityMessage { to, channel: SecurityChannel::Stateless, payload })
    }

    fn set_handshake_due(&mut self) {
        let retry = |remote: &Remote| match remote.stage {
            Stage::Refused { retry_at } => retry_at,
            _ => None,
        };
        let due = |remote: &Remote| {
            let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let timeout = remote.next_timeout().map(|time| takt_core::Instant(nanos(time)));
            timeout.into_iter().chain(retry(remote)).min()
        };
        // With a free slot, participants wait because the own documents have expired.
        let is_full = !self.waiting.is_empty() && !self.has_free_slot();
        let slot = self.next_to_yield().filter(|_| is_full).map(|(at, _)| at);
        self.handshake_due = self.remotes.values().filter_map(due).chain(slot).min();
    }
}

/// Checks that the participant announces an identity token that this plugin supports.
fn check_identity_token(data: &ParticipantData) -> std::result::Result<(), String> {
    let Some(encoded) = &data.identity_token else {
        return Err("it announces no identity".to_owned());
    };
    let token = Token::parse(&mut Cursor::new(&encoded.octets, encoded.endianness));
    match token {
        Ok(token) if token.class_id == IDENTITY_TOKEN_CLASS => Ok(()),
        Ok(token) => {
            Err(format!("its identity has the class \"{}\", expected \"{IDENTITY_TOKEN_CLASS}\"", token.class_id))
        }
        Err(error) => Err(format!("its identity token: {error}")),
    }
}

/// Returns the vendor id in the announcement that the handshake authenticated.
fn announced_vendor(participant_data: &[u8]) -> Option<VendorId> {
    // tidy-allow(dropped-cause): the handshake has checked the list
    let (list, _) = ParameterList::parse(participant_data, Endianness::Big).ok()?;
    list.find(PID_VENDORID).and_then(|parameter| parameter.value.first_chunk().copied()).map(VendorId)
}

/// Returns the announcement that the handshake authenticated, if discovery can parse it.
fn announced(participant_data: &[u8]) -> Option<ParticipantData> {
    // tidy-allow(dropped-cause): the participant stays as it was discovered
    ParticipantData::parse_list(participant_data, Endianness::Big).ok()
}
