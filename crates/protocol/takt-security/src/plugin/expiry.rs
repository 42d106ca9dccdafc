//! Expiry of certificates and permissions during a session, of this participant and of remote ones.
//!
//! Each is checked when it expires, and otherwise once in [`CHECK_PERIOD`]; a call performs one
//! check. A step of the wall clock is noticed within [`CLOCK_PERIOD`]. The permissions authority is
//! checked when documents are read, and its own expiry ends no session.

use std::time::Duration;

use takt_core::security::SecurityEvent;
use takt_wire::GuidPrefix;

use super::remotes::{Session, Stage, describe};
use super::{Plugin, Severity, wall_seconds};
use crate::documents::{AccessControl, Permissions};
use crate::error::Result;
use crate::identity::{Authority, Certificate, UnixSeconds};

/// Seconds between two checks of the same certificate: revocation lists expire independently.
const CHECK_PERIOD: UnixSeconds = 3_600;
/// Period of checks of the wall clock and for new documents.
const CLOCK_PERIOD: Duration = Duration::from_secs(10);

/// Next check of a participant, and its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    /// Time of the next check; [`Self::ENDED`] if there is none.
    pub(super) check_at: UnixSeconds,
    /// Whether the participant needs a grant: it had one, and the governance controls access.
    needs_grant: bool,
}

impl Validity {
    /// Check time of a participant that is no longer valid.
    const ENDED: UnixSeconds = UnixSeconds::MAX;

    /// Returns the validity of a participant that was found valid at `now`.
    pub(super) fn of(
        certificate: &Certificate,
        permissions: &Permissions,
        authority: &Authority,
        access: &AccessControl,
        now: UnixSeconds,
    ) -> Self {
        let rule = access.domain_rule();
        let is_controlled = rule.enable_join_access_control
            || rule
                .topic_rules
                .iter()
                .any(|topic| topic.enable_read_access_control || topic.enable_write_access_control);
        let grant = permissions.grant(certificate.subject(), now).ok().filter(|_| is_controlled);
        // A grant is valid in its last second, a certificate is not.
        let ends = [Some(certificate.not_after()), grant.map(|grant| grant.not_after.saturating_add(1))];
        let authority_ends = authority.certificates().iter().map(Certificate::not_after);
        let next = ends.into_iter().flatten().chain(authority_ends).filter(|end| *end > now).min();
        let check_at = next.map_or(now + CHECK_PERIOD, |next| next.min(now + CHECK_PERIOD));
        Self { check_at, needs_grant: grant.is_some() }
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.check_at == Self::ENDED
    }
}

impl Plugin {
    /// Checks one participant whose check is due.
    pub(super) fn check_validity(&mut self) {
        let wall = self.wall();
        if self.own_validity.check_at <= wall {
            self.check_own_validity(wall);
        } else {
            let due = |session: &Session| session.validity.check_at <= wall;
            let found = self.remotes.iter().find(|(_, remote)| remote.session().is_some_and(due));
            if let Some(prefix) = found.map(|(prefix, _)| *prefix) {
                self.check_remote_validity(prefix, wall);
            }
        }
        self.set_check_due();
    }

    fn check_own_validity(&mut self, wall: UnixSeconds) {
        let certificate = self.local.identity().certificate();
        let checked = self.validity_at(certificate, &self.permissions, self.own_validity, wall);
        match checked {
            Ok(validity) => self.own_validity = validity,
            Err(error) => {
                // The participant becomes valid again only with new documents.
                self.own_validity.check_at = Validity::ENDED;
                let reason = format!("this participant: {error}");
                self.log(Severity::Error, reason.clone());
                self.events.push_back(SecurityEvent::Expelled { participant: self.prefix, reason });
            }
        }
    }

    fn check_remote_validity(&mut self, prefix: GuidPrefix, wall: UnixSeconds) {
        let Some(session) = self.remotes.get(&prefix).and_then(|remote| remote.session()) else { return };
        let checked = self.validity_at(&session.certificate, &session.permissions, session.validity, wall);
        match checked {
            Ok(validity) => {
                if let Some(session) = self.remotes.get_mut(&prefix).and_then(|remote| remote.session_mut()) {
                    session.validity = validity;
                }
            }
            Err(error) => {
                let reason = format!("{}: {error}", describe(prefix, self.remotes.get(&prefix)));
                self.log(Severity::Notice, reason.clone());
                self.remove_keys_of(prefix);
                self.renewals.mark_done(prefix);
                if let Some(remote) = self.remotes.get_mut(&prefix) {
                    remote.stage = Stage::Refused { retry_at: None };
                    remote.handshake = None;
                    remote.renewal = None;
                }
                self.events.push_back(SecurityEvent::Expelled { participant: prefix, reason });
            }
        }
    }

    fn validity_at(
        &self,
        certificate: &Certificate,
        permissions: &Permissions,
        before: Validity,
        wall: UnixSeconds,
    ) -> Result<Validity> {
        let authority = self.local.authority();
        authority.check(certificate, wall)?;
        self.access.check_participant(permissions, certificate.subject(), wall)?;
        if before.needs_grant {
            permissions.grant(certificate.subject(), wall)?;
        }
        Ok(Validity::of(certificate, permissions, authority, &self.access, wall))
    }

    /// Computes the time of the next check.
    pub(super) fn set_check_due(&mut self) {
        let sessions = self.remotes.values().filter_map(|remote| Some(remote.session()?.validity.check_at));
        let next = sessions.chain([self.own_validity.check_at]).min().unwrap_or(UnixSeconds::MAX);
        let seconds = u64::try_from(next.saturating_sub(wall_seconds(self.now))).unwrap_or(0);
        // The next second begins earlier than a second from now.
        let elapsed = Duration::from_nanos((u64::from(self.now.wall.fraction) * 1_000_000_000) >> 32);
        let until = Duration::from_secs(seconds).saturating_sub(elapsed);
        self.check_due = self.now.at.after(until.min(CLOCK_PERIOD));
    }
}
