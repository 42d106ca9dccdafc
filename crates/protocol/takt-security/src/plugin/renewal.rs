//! Renewal of the certificate, private key, permissions, authorities or revocation lists of a
//! running participant.
//!
//! [`Renewer::offer`] reads and checks the new documents outside of the participant: document
//! signatures and keys in hardware tokens take time. The plugin applies them in its next timeout.
//! From then on:
//!
//! - handshakes use them; pending ones begin again, and so do those of refused participants;
//! - every authenticated participant is checked again, by the new authority and its revocation
//!   lists;
//! - each Takt participant receives the certificate and the permissions over the volatile
//!   endpoints, one participant per call. Keys and matches remain;
//! - a participant that does not accept them within [`ANSWER_TIME`] gets another handshake: it may
//!   have ended the session;
//! - if the old certificate had expired, a handshake is begun with each participant.
//!
//! The governance stays, since protection depends on it. The identity token in discovery stays as
//! well, since receivers treat it as a hint.
//!
//! INTEROP(CycloneDDS 0.10, Fast DDS 2.9): use the certificate of the handshake until they
//! discover the participant again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use takt_core::Instant;
use takt_core::security::SecurityEvent;
use takt_wire::GuidPrefix;

use super::expiry::Validity;
use super::remotes::{Stage, describe};
use super::settings::{Documents, Settings};
use super::{Plugin, Severity, participant_guid};
use crate::documents::{DomainRule, format_date_time};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::handshake::{Renewed, check_renewal, renewal_token};
use crate::identity::UnixSeconds;
use crate::message::{CLASS_RENEWAL, CLASS_RENEWAL_ACCEPTED};
use crate::token::Token;

/// Time within which a participant must accept a renewed certificate.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Documents that wait for the plugin. Later ones replace earlier ones.
#[derive(Clone, Default)]
struct Slot(Arc<Mutex<Option<Box<Documents>>>>);

/// State of this participant's own renewals.
#[derive(Default)]
pub(super) struct Renewals {
    slot: Slot,
    /// Participants to which the certificate must still be sent.
    to_send: VecDeque<GuidPrefix>,
    /// Participants that have not accepted it, with the times of their next handshakes.
    unaccepted: BTreeMap<GuidPrefix, Instant>,
}

impl Renewals {
    /// Marks a participant as done: it has accepted the certificate, or has a new session.
    pub(super) fn mark_done(&mut self, prefix: GuidPrefix) {
        self.unaccepted.remove(&prefix);
        self.to_send.retain(|one| *one != prefix);
    }
}

/// Handle that passes new documents to the plugin of a participant, from any thread.
pub struct Renewer {
    slot: Slot,
    prefix: GuidPrefix,
    domain_id: u32,
    rule: DomainRule,
}

impl Renewer {
    /// Reads and checks the documents in `settings`, and stores them for the plugin. The plugin
    /// applies them in its next timeout, which occurs within 10 s. The prefix, the domain and all
    /// other settings except the documents remain unchanged.
    ///
    /// # Errors
    /// As [`Plugin::new`]; the certificate has another subject than that of the participant; or the
    /// governance has a different rule for the domain.
    pub fn offer(&self, settings: &Settings, now: UnixSeconds) -> Result<()> {
        let settings = Settings { prefix: self.prefix, domain_id: self.domain_id, ..settings.clone() };
        let documents = Documents::read(&settings, now)?;
        if *documents.access.domain_rule() != self.rule {
            let reason = "the governance of a running participant cannot change: restart it";
            return Err(SecurityError::new(ErrorKind::Document, reason));
        }
        *self.slot.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(documents));
        Ok(())
    }
}

impl Plugin {
    /// Returns a handle that passes new documents to this plugin.
    pub fn renewer(&self) -> Renewer {
        let (slot, access) = (self.renewals.slot.clone(), &self.access);
        Renewer { slot, prefix: self.prefix, domain_id: access.domain_id(), rule: access.domain_rule().clone() }
    }

    /// Applies waiting documents.
    pub(super) fn take_renewal(&mut self) {
        // A held lock means that new documents are being stored; the next timeout finds them.
        let taken = self.renewals.slot.0.try_lock().ok().and_then(|mut slot| slot.take()); // tidy-allow(dropped-cause): the next timeout tries again
        let Some(documents) = taken else { return };
        let before = self.own_validity;
        let Documents { mut local, access, permissions, validity } = *documents;
        local.take_state_of(&mut self.local);
        (self.local, self.access, self.permissions) = (local, access, permissions);
        self.own_validity = validity;
        let wall = self.wall();
        self.renewals.to_send.clear();
        self.renewals.unaccepted.clear();
        let prefixes: Vec<GuidPrefix> = self.remotes.keys().copied().collect();
        for prefix in prefixes {
            self.renew_towards(prefix, before, wall);
        }
        self.events.push_back(SecurityEvent::PermissionsChanged(self.prefix));
        let text = format!(
            "this participant uses another certificate of \"{}\", valid until {}",
            self.own_subject(),
            format_date_time(self.local.identity().certificate().not_after())
        );
        self.log(Severity::Notice, text);
        self.set_check_due();
        self.start_waiting();
    }

    /// Re-evaluates a remote participant after new documents of the local participant were applied.
    fn renew_towards(&mut self, prefix: GuidPrefix, before: Validity, wall: UnixSeconds) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        remote.renewal = None;
        match &mut remote.stage {
            Stage::Open | Stage::Unsuited | Stage::Waiting => {}
            Stage::Authenticated(session) if !before.has_ended() => {
                session.validity.check_at = wall;
                if session.knows_renewals() {
                    self.renewals.to_send.push_back(prefix);
                }
            }
            Stage::Authenticated(_) | Stage::Authenticating | Stage::Refused { .. } => {
                remote.stage = Stage::Waiting;
                (remote.handshake, remote.tried_since) = (None, None);
                self.remove_keys_of(prefix);
                self.refused.remove(&prefix);
                self.waiting.push_back(prefix);
                self.events.push_back(SecurityEvent::Restarted(prefix));
            }
        }
    }

    /// Returns the time at which [`Self::send_next_renewal`] is due.
    pub(super) fn renewal_due(&self) -> Option<Instant> {
        if !self.renewals.to_send.is_empty() {
            return Some(self.now.at);
        }
        self.renewals.unaccepted.values().min().copied().filter(|_| self.has_free_slot())
    }

    /// Sends the certificate to one participant, or begins a handshake with one that has not
    /// accepted it.
    pub(super) fn send_next_renewal(&mut self) {
        if self.renewal_due().is_none_or(|due| due > self.now.at) {
            return;
        }
        let next = self.renewals.to_send.pop_front();
        let late = || self.renewals.unaccepted.iter().find(|(_, due)| **due <= self.now.at).map(|(prefix, _)| *prefix);
        let Some(prefix) = next.or_else(late) else { return };
        let result = match next {
            Some(_) => self.send_renewal(prefix),
            None => self.authenticate_again(prefix),
        };
        if let Err(error) = result {
            let text = format!("new certificate for {}: {error}", describe(prefix, self.remotes.get(&prefix)));
            self.log(Severity::Error, text);
        }
    }

    fn authenticate_again(&mut self, prefix: GuidPrefix) -> Result<()> {
        self.renewals.mark_done(prefix);
        let handshake = self.new_handshake(prefix)?;
        if let Some(remote) = self.remotes.get_mut(&prefix) {
            remote.began_at = self.now.at;
            remote.renewal = Some(handshake);
        }
        Ok(())
    }

    fn send_renewal(&mut self, prefix: GuidPrefix) -> Result<()> {
        let remote = participant_guid(prefix);
        let Some(session) = self.remotes.get(&prefix).and_then(|remote| remote.session()) else { return Ok(()) };
        let token = renewal_token(&self.local, remote, session.volatile.material())?;
        self.send_volatile(CLASS_RENEWAL, None, remote, vec![token]);
        self.renewals.unaccepted.insert(prefix, self.now.at.after(ANSWER_TIME));
        Ok(())
    }

    /// Handles a renewed certificate of a remote participant.
    pub(super) fn handle_renewal(&mut self, from: GuidPrefix, tokens: &[Token<'_>]) -> Result<()> {
        let malformed =
            || SecurityError::new(ErrorKind::Malformed, format!("a renewal has {} tokens, expected 1", tokens.len()));
        let [token] = tokens else { return Err(malformed()) };
        let wall = self.wall();
        let Some(session) = self.remotes.get(&from).and_then(|remote| remote.session()) else { return Ok(()) };
        let volatile = session.volatile.material();
        let renewed = check_renewal(&self.local, participant_guid(from), volatile, token, wall)?;
        let Renewed { certificate, permissions } = renewed;
        let permissions = self.access.permissions(&permissions, wall)?;
        self.access.check_participant(&permissions, certificate.subject(), wall)?;
        let validity = Validity::of(&certificate, &permissions, self.local.authority(), &self.access, wall);
        if let Some(session) = self.remotes.get_mut(&from).and_then(|remote| remote.session_mut()) {
            (session.certificate, session.permissions, session.validity) = (certificate, permissions, validity);
        }
        self.send_volatile(CLASS_RENEWAL_ACCEPTED, None, participant_guid(from), Vec::new());
        self.events.push_back(SecurityEvent::PermissionsChanged(from));
        let text = format!("{} uses another certificate", describe(from, self.remotes.get(&from)));
        self.log(Severity::Notice, text);
        self.set_check_due();
        Ok(())
    }
}
