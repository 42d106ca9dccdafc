//! State of remote participants.

use std::collections::VecDeque;
use std::time::Duration;

use takt_core::Instant;
use takt_wire::{GuidPrefix, VendorId};

use super::expiry::Validity;
use super::{EARLY_TOKENS_MAX, Pair, SLOT_TIME};
use crate::documents::Permissions;
use crate::handshake::{Challenge, Handshake, Progress};
use crate::identity::Certificate;
use crate::keys::KeyMaterial;
use crate::transform::Sealer;

/// Remote participant that was discovered.
pub(super) struct Remote {
    pub(super) stage: Stage,
    /// Pending handshake, or the one that authenticated the participant: a lost Final is sent
    /// again.
    pub(super) handshake: Option<Handshake>,
    /// Handshake that replaces the keys if it succeeds.
    pub(super) renewal: Option<Handshake>,
    /// Start of the last handshake.
    pub(super) began_at: Instant,
    /// Start of the first handshake since the last one that succeeded or timed out.
    pub(super) tried_since: Option<Instant>,
    /// Key tokens for unmatched pairs, oldest first.
    pub(super) early_tokens: VecDeque<EarlyTokens>,
}

/// Authentication stage of a remote participant.
pub(super) enum Stage {
    /// The participant has no identity that this participant supports.
    Open,
    /// Its announcement lacks the data that a handshake requires.
    Unsuited,
    /// The participant waits for a handshake slot.
    Waiting,
    Authenticating,
    Authenticated(Box<Session>),
    /// The participant did not authenticate, or lacks permission to join. Contains the time of its
    /// next handshake.
    Refused {
        retry_at: Option<Instant>,
    },
}

/// Session with an authenticated participant.
pub(super) struct Session {
    pub(super) certificate: Certificate,
    pub(super) permissions: Permissions,
    pub(super) validity: Validity,
    /// Remote challenge of its handshake: a different challenge opens another handshake.
    pub(super) challenge: Option<Challenge>,
    /// Sealer of messages sent to it over the volatile endpoints.
    pub(super) volatile: Sealer,
    /// Vendor in the announcement that the handshake authenticated.
    pub(super) vendor: Option<VendorId>,
}

/// Key tokens for an unmatched pair.
pub(super) struct EarlyTokens {
    pub(super) pair: Pair,
    pub(super) materials: Vec<KeyMaterial>,
}

impl Session {
    /// Reports whether the participant increments its message counters, as a replay window
    /// requires.
    ///
    /// INTEROP(Fast DDS 2.9): chooses them at random.
    pub(super) fn counts(&self) -> bool {
        self.vendor.is_some_and(|vendor| vendor != VendorId::EPROSIMA)
    }

    /// Reports whether the participant supports [`crate::message::CLASS_RENEWAL`].
    pub(super) fn knows_renewals(&self) -> bool {
        self.vendor == Some(VendorId::TAKT)
    }
}

impl Remote {
    pub(super) const fn new(stage: Stage, now: Instant) -> Self {
        Self { stage, handshake: None, renewal: None, began_at: now, tried_since: None, early_tokens: VecDeque::new() }
    }

    pub(super) fn session(&self) -> Option<&Session> {
        match &self.stage {
            Stage::Authenticated(session) => Some(session),
            _ => None,
        }
    }

    pub(super) fn session_mut(&mut self) -> Option<&mut Session> {
        match &mut self.stage {
            Stage::Authenticated(session) => Some(session),
            _ => None,
        }
    }

    /// Returns the time from which its pending handshake may yield its slot: immediately if a
    /// message of the handshake was refused. `None` without a pending handshake.
    pub(super) fn yields_at(&self) -> Option<Instant> {
        let pending = self.handshake.as_ref().filter(|handshake| handshake.progress() == Progress::Pending)?;
        Some(if pending.last_refusal().is_some() { self.began_at } else { self.began_at.after(SLOT_TIME) })
    }

    /// Returns the number of unfinished handshakes.
    pub(super) fn pending_count(&self) -> usize {
        let all = [&self.handshake, &self.renewal];
        all.into_iter().flatten().filter(|handshake| handshake.progress() == Progress::Pending).count()
    }

    /// Returns the next payload for the stateless endpoints that is due.
    pub(super) fn poll_transmit(&mut self, clock: Duration) -> Option<Vec<u8>> {
        let all = [&mut self.renewal, &mut self.handshake];
        all.into_iter().flatten().find_map(|handshake| handshake.poll_transmit(clock).map(<[u8]>::to_vec))
    }

    /// Returns the time at which one of its handshakes is due.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        [&self.renewal, &self.handshake].into_iter().flatten().filter_map(Handshake::next_timeout).min()
    }

    /// Stores key tokens of a pair, and replaces earlier ones of it. Returns true if tokens of
    /// another pair were displaced.
    pub(super) fn store_early_tokens(&mut self, pair: Pair, materials: Vec<KeyMaterial>) -> bool {
        self.early_tokens.retain(|early| early.pair != pair);
        let is_full = self.early_tokens.len() >= EARLY_TOKENS_MAX;
        if is_full {
            self.early_tokens.pop_front();
        }
        self.early_tokens.push_back(EarlyTokens { pair, materials });
        is_full
    }

    /// Takes the stored key tokens of a newly matched pair.
    pub(super) fn take_early_tokens(&mut self, pair: Pair) -> Option<Vec<KeyMaterial>> {
        let index = self.early_tokens.iter().position(|early| early.pair == pair)?;
        self.early_tokens.remove(index).map(|early| early.materials)
    }
}

/// Describes a participant for texts, with its subject if it was authenticated.
pub(super) fn describe(prefix: GuidPrefix, remote: Option<&Remote>) -> String {
    match remote.and_then(Remote::session) {
        Some(session) => format!("participant {prefix} of \"{}\"", session.certificate.subject()),
        None => format!("participant {prefix}"),
    }
}
