//! Who takes part, and which endpoints are matched (DDS-SEC 1.1 §8.8).
//!
//! A participant that can authenticate stays on probation until it has: its endpoints are not known before. The handshake
//! proves its address, too. One that cannot, where the governance allows that, proves its address as without security, and is
//! matched with what is not protected.

use super::{Protection, Security, SecurityChannel, SecurityEvent, SecurityLogEntry, Standing};
use crate::discovery::{Departure, RefusalReason};
use crate::error::Error;
use crate::event::Event;
use crate::participant::Participant;
use crate::time::Instant;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::{EntityId, Guid, GuidPrefix};

/// Between two messages of plugins that are handled.
const LEAST_DELAY: Duration = Duration::from_nanos(1);

/// How a participant stands to us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It takes part in what is not protected.
    #[default]
    Open,
    Authenticating,
    Authenticated,
    /// It takes part in nothing.
    Refused,
}

/// What is known of a remote participant for the sake of security.
#[derive(Debug, Default)]
pub(crate) struct RemoteSecurity {
    pub(crate) trust: Trust,
    /// It has shown that it knows the key of the volatile channel.
    is_confirmed: bool,
    /// Our writers for it alone.
    stateless: Option<u32>,
    volatile: Option<u32>,
    /// A handshake message that waits until the participant has sent enough.
    pub(super) held: Option<Vec<u8>>,
    /// Why it was refused.
    why: Option<String>,
}

impl RemoteSecurity {
    /// Its address alone does not end its probation.
    pub(crate) fn has_to_authenticate(&self) -> bool {
        match self.trust {
            Trust::Open => false,
            Trust::Authenticating | Trust::Refused => true,
            Trust::Authenticated => !self.is_confirmed,
        }
    }

    /// It has proven who it is: what anybody can say in its name does not count any more.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.trust == Trust::Authenticated
    }

    /// Our writers for it alone.
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

impl Participant {
    /// How a builtin endpoint is protected.
    pub(crate) fn builtin_protection(&self, endpoint: EntityId) -> Protection {
        self.ctx.security.as_ref().map(|security| security.builtin_protection(endpoint)).unwrap_or_default()
    }

    /// Whether we may have a writer; announces how it is protected.
    pub(crate) fn admit_writer(&mut self, data: &mut PublicationData) -> Result<Protection, Error> {
        let clocks = self.ctx.last_clocks();
        let Some(security) = self.ctx.security.as_mut() else { return Ok(Protection::default()) };
        let admitted = security.admit_writer(clocks, data);
        let protection = admitted.map_err(|what| Error::NotAllowedBySecurity { what })?;
        data.security_info = Some(protection.info);
        Ok(protection)
    }

    /// The same of a reader.
    pub(crate) fn admit_reader(&mut self, data: &mut SubscriptionData) -> Result<Protection, Error> {
        let clocks = self.ctx.last_clocks();
        let Some(security) = self.ctx.security.as_mut() else { return Ok(Protection::default()) };
        let admitted = security.admit_reader(clocks, data);
        let protection = admitted.map_err(|what| Error::NotAllowedBySecurity { what })?;
        data.security_info = Some(protection.info);
        Ok(protection)
    }

    /// An endpoint of ours is gone.
    pub(crate) fn forget_protection(&mut self, endpoint: EntityId) {
        if let Some(security) = self.ctx.security.as_mut() {
            security.forget_endpoint(endpoint);
        }
    }

    /// A participant was discovered: it has to authenticate, may take part as it is, or may not.
    pub(crate) fn admit_participant(&mut self, now: Instant, index: u32) {
        let clocks = self.ctx.clocks(now);
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let Some(security) = self.ctx.security.as_mut() else { return };
        let guid = remote.data.guid;
        match security.participant_discovered(clocks, &remote.data) {
            Standing::Open => remote.security.trust = Trust::Open,
            Standing::Authenticating => {
                remote.security.trust = Trust::Authenticating;
                if !remote.answers_challenges()
                    && let Some(probation) = &mut remote.probation
                {
                    probation.await_handshake();
                }
                self.open_channel(now, index, SecurityChannel::Stateless);
                self.settle_security(now);
            }
            Standing::Refused(why) => {
                remote.security.trust = Trust::Refused;
                remote.security.why = Some(why);
                self.ctx.notify(Event::ParticipantRefused(guid));
            }
        }
    }

    /// Does what the plugin wants done: sends its messages, follows its events, and arms its timer.
    pub(crate) fn settle_security(&mut self, now: Instant) {
        let clocks = self.ctx.clocks(now);
        loop {
            let Some(security) = self.ctx.security.as_mut() else { return };
            // An event may make the channel that a message needs.
            if let Some(event) = security.poll_event() {
                self.handle_security_event(now, event);
            } else if let Some(message) = security.poll_message(clocks) {
                self.send_security_message(now, message);
            } else {
                break;
            }
        }
        if self.ctx.security.as_deref().is_some_and(Security::has_log) {
            self.ctx.notify(Event::SecurityLogged);
        }
        self.arm_security_timer(now);
    }

    /// The next entry of the log of the security plugins: what they have refused or decided, and why. The last 256 are kept.
    pub fn poll_security_log(&mut self) -> Option<SecurityLogEntry> {
        self.ctx.security.as_mut()?.poll_log()
    }

    fn arm_security_timer(&mut self, now: Instant) {
        let Some(timer) = self.ctx.security_timer else { return };
        let wanted = self.ctx.security.as_ref().and_then(|security| security.poll_timeout());
        // Never in the same call of `handle_timeout`: others go first.
        let soon = now.after(LEAST_DELAY);
        let due = if self.has_security_message() { Some(soon) } else { wanted.map(|due| due.max(soon)) };
        match due {
            Some(due) => self.ctx.timers.arm(timer, due),
            None => self.ctx.timers.cancel(timer),
        }
    }

    /// The timer of the plugin fired: it handles one received message, or what is due.
    pub(crate) fn handle_security_timeout(&mut self, now: Instant) {
        if !self.take_security_message(now) {
            let clocks = self.ctx.clocks(now);
            if let Some(security) = self.ctx.security.as_mut() {
                security.handle_timeout(clocks);
            }
        }
        self.settle_security(now);
    }

    fn handle_security_event(&mut self, now: Instant, event: SecurityEvent) {
        match event {
            SecurityEvent::Authenticated(prefix) => {
                let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
                let Some(remote) = self.remotes.get_mut(index) else { return };
                // It may have taken part without an identity, or have been authenticated before.
                let has_come_back = remote.probation.is_none();
                remote.security.trust = Trust::Authenticated;
                (remote.security.held, remote.security.why) = (None, None);
                remote.security.is_confirmed = false;
                self.ctx.counters.participants_authenticated += 1;
                if has_come_back {
                    let writers = [remote.security.stateless.take(), remote.security.volatile.take()];
                    self.forget_endpoints_of(now, prefix, Departure::Silence);
                    self.close_channels(writers);
                    self.open_channel(now, index, SecurityChannel::Stateless);
                }
                self.open_channel(now, index, SecurityChannel::Volatile);
            }
            SecurityEvent::Refused { participant, stays_open, why } => {
                let Some(&index) = self.remote_by_prefix.get(&participant) else { return };
                let Some(remote) = self.remotes.get_mut(index) else { return };
                let guid = remote.data.guid;
                remote.security.trust = if stays_open { Trust::Open } else { Trust::Refused };
                remote.security.held = None;
                remote.security.why = Some(why);
                self.ctx.counters.participants_refused += 1;
                self.ctx.notify(Event::ParticipantRefused(guid));
                if stays_open {
                    if let Some(probation) = &mut remote.probation {
                        probation.await_answers();
                    }
                    self.challenge_again(now, index);
                }
            }
            SecurityEvent::Expelled { participant, why } if participant == self.header.prefix => {
                let all: Vec<GuidPrefix> = self.remotes.iter().map(|(_, remote)| remote.prefix).collect();
                for participant in all {
                    self.ctx.work.unit();
                    self.expel(now, participant, why.clone());
                }
            }
            SecurityEvent::Expelled { participant, why } => self.expel(now, participant, why),
            SecurityEvent::PermissionsChanged(prefix) if prefix == self.header.prefix => self.admit_again(),
            SecurityEvent::PermissionsChanged(prefix) => self.match_again(now, prefix),
        }
    }

    /// This participant has other permissions. An endpoint that they do not allow is in the log; other participants end its matches.
    fn admit_again(&mut self) {
        let clocks = self.ctx.last_clocks();
        let Some(security) = self.ctx.security.as_mut() else { return };
        let of_application = |id: EntityId| !id.is_builtin();
        for (_, writer) in self.writers.iter().filter(|(_, writer)| of_application(writer.entity_id)) {
            self.ctx.work.unit();
            let _logged = security.admit_writer(clocks, &writer.data);
        }
        for (_, reader) in self.readers.iter().filter(|(_, reader)| of_application(reader.entity_id)) {
            self.ctx.work.unit();
            let _logged = security.admit_reader(clocks, &reader.data);
        }
    }

    /// Others have left new documents for the plugin: it is called soon.
    pub fn renew_security(&mut self, now: Instant) {
        self.await_security_message(now);
    }

    /// A participant has used the key of the volatile channel, so it has authenticated us as well: discovery goes on.
    ///
    /// INTEROP(CycloneDDS 0.10): forgets endpoints that are announced before it has handled the last message of the handshake.
    pub(crate) fn confirm_session(&mut self, now: Instant, prefix: GuidPrefix) {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        let Some(remote) = self.remotes.get_mut(index).filter(|remote| remote.security.is_authenticated()) else {
            return;
        };
        if !core::mem::replace(&mut remote.security.is_confirmed, true) {
            self.end_probation(now, index);
        }
    }

    /// A participant may take part no more. It stays known, so that its announcements do not begin a new handshake each time.
    fn expel(&mut self, now: Instant, prefix: GuidPrefix, why: String) {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        let Some(remote) = self.remotes.get(index) else { return };
        let guid = remote.data.guid;
        self.forget_endpoints_of(now, prefix, Departure::Silence);
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let writers = remote.security.writers();
        remote.security = RemoteSecurity { trust: Trust::Refused, why: Some(why), ..RemoteSecurity::default() };
        self.close_channels(writers);
        // By which it may authenticate again, with another certificate.
        self.open_channel(now, index, SecurityChannel::Stateless);
        self.handle_builtin_data(now);
        self.ctx.counters.participants_refused += 1;
        self.ctx.notify(Event::ParticipantRefused(guid));
    }

    /// The participants that may not take part, and why: those that could not authenticate, or whose documents do not allow it, or
    /// have expired.
    pub fn refused_participants(&self) -> impl Iterator<Item = (Guid, &str)> {
        self.remotes.iter().filter_map(|(_, remote)| Some((remote.data.guid, remote.security.why.as_deref()?)))
    }

    /// Whether a participant has proven who it is (DDS-SEC 1.1 §8.3).
    #[must_use]
    pub fn is_authenticated(&self, prefix: GuidPrefix) -> bool {
        let remote = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get(index));
        remote.is_some_and(|remote| remote.security.is_authenticated())
    }

    /// Whether the endpoints of a topic are announced by secure SEDP alone.
    pub(crate) fn protects_discovery(&self, topic_name: &str) -> bool {
        self.ctx.security.as_ref().is_some_and(|security| security.protects_discovery(topic_name))
    }

    /// Why one of our readers may not be matched with a writer of others.
    pub(crate) fn security_refusal_of_writer(
        &mut self,
        now: Instant,
        reader: EntityId,
        data: &PublicationData,
    ) -> Option<RefusalReason> {
        if data.guid.prefix == self.header.prefix {
            return None;
        }
        let clocks = self.ctx.clocks(now);
        let why = self.ctx.security.as_mut()?.check_remote_writer(clocks, reader, data).err()?;
        Some(RefusalReason::Security { why })
    }

    /// Why one of our writers may not be matched with a reader of others.
    pub(crate) fn security_refusal_of_reader(
        &mut self,
        now: Instant,
        writer: EntityId,
        data: &SubscriptionData,
    ) -> Option<RefusalReason> {
        if data.guid.prefix == self.header.prefix {
            return None;
        }
        let clocks = self.ctx.clocks(now);
        let why = self.ctx.security.as_mut()?.check_remote_reader(clocks, writer, data).err()?;
        Some(RefusalReason::Security { why })
    }

    /// An endpoint of ours was matched with one of others.
    pub(crate) fn secure_pair(&mut self, now: Instant, local: EntityId, remote: Guid) {
        if remote.prefix == self.header.prefix {
            return;
        }
        if let Some(security) = self.ctx.security.as_mut() {
            security.pair_matched(local, remote);
            self.settle_security(now);
        }
    }

    /// It is no more.
    pub(crate) fn part_secure_pair(&mut self, local: EntityId, remote: Guid) {
        if let Some(security) = self.ctx.security.as_mut() {
            security.pair_parted(local, remote);
        }
    }

    /// A participant that has proven who it is announces other things than before, by secure SPDP.
    pub(crate) fn handle_secure_announcement(&mut self, now: Instant, prefix: GuidPrefix, payload: &[u8]) {
        match ParticipantData::parse(payload) {
            Ok(data) if data.guid.prefix == prefix => self.adopt_announcement(now, data),
            _ => self.ctx.counters.malformed_discovery += 1,
        }
    }
}
