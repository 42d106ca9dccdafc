//! What is known of a remote participant.

use std::collections::VecDeque;
use std::time::Duration;

use takt_core::Instant;
use takt_wire::{GuidPrefix, VendorId};

use super::expiry::Validity;
use super::{PARKED_MAX, Pair, SLOT_TIME};
use crate::documents::Permissions;
use crate::handshake::{Challenge, Handshake, Progress};
use crate::identity::Certificate;
use crate::keys::KeyMaterial;
use crate::transform::Sealer;

/// A remote participant that was discovered.
pub(super) struct Remote {
    pub(super) stage: Stage,
    /// The handshake that is under way, or the one that it was authenticated by: a lost Final is
    /// sent again.
    pub(super) handshake: Option<Handshake>,
    /// A handshake that may take the place of the keys.
    pub(super) renewal: Option<Handshake>,
    /// When the last handshake began.
    pub(super) began_at: Instant,
    /// Start of the first handshake since the last one that succeeded or timed out.
    pub(super) tried_since: Option<Instant>,
    /// Key tokens for pairs that are not matched, the oldest first.
    pub(super) parked: VecDeque<Parked>,
}

/// How a remote participant stands.
pub(super) enum Stage {
    /// It has no identity that this participant could check.
    Open,
    /// It announces nothing that a handshake could begin with.
    Unsuited,
    /// Too many others have a handshake.
    Waiting,
    Authenticating,
    Authenticated(Box<Session>),
    /// It did not authenticate, or may not take part. When it gets another handshake.
    Refused {
        retry_at: Option<Instant>,
    },
}

/// What an authenticated participant has.
pub(super) struct Session {
    pub(super) certificate: Certificate,
    pub(super) permissions: Permissions,
    pub(super) validity: Validity,
    /// The remote challenge of its handshake: another one opens another handshake.
    pub(super) challenge: Option<Challenge>,
    /// Seals what is sent to it on the volatile channel.
    pub(super) volatile: Sealer,
    /// By the announcement that its handshake vouches for.
    pub(super) vendor: Option<VendorId>,
}

/// Key tokens for a pair that is not matched.
pub(super) struct Parked {
    pub(super) pair: Pair,
    pub(super) materials: Vec<KeyMaterial>,
}

impl Session {
    /// Does it count its messages, so that a replay window fits?
    ///
    /// INTEROP(Fast DDS 2.9): draws them at random.
    pub(super) fn counts(&self) -> bool {
        self.vendor.is_some_and(|vendor| vendor != VendorId::EPROSIMA)
    }

    /// Does it know [`crate::message::CLASS_RENEWAL`]?
    pub(super) fn knows_renewals(&self) -> bool {
        self.vendor == Some(VendorId::TAKT)
    }
}

impl Remote {
    pub(super) const fn new(stage: Stage, now: Instant) -> Self {
        Self { stage, handshake: None, renewal: None, began_at: now, tried_since: None, parked: VecDeque::new() }
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

    /// Time from which its pending handshake may yield its slot: at once when a message of the handshake was refused. `None` without a
    /// pending handshake.
    pub(super) fn yields_at(&self) -> Option<Instant> {
        let pending = self.handshake.as_ref().filter(|handshake| handshake.progress() == Progress::Pending)?;
        Some(if pending.last_refusal().is_some() { self.began_at } else { self.began_at.after(SLOT_TIME) })
    }

    /// Handshakes that are not finished.
    pub(super) fn pending_count(&self) -> usize {
        let all = [&self.handshake, &self.renewal];
        all.into_iter().flatten().filter(|handshake| handshake.progress() == Progress::Pending).count()
    }

    /// The next payload of the stateless channel that is due.
    pub(super) fn poll_transmit(&mut self, clock: Duration) -> Option<Vec<u8>> {
        let all = [&mut self.renewal, &mut self.handshake];
        all.into_iter().flatten().find_map(|handshake| handshake.poll_transmit(clock).map(<[u8]>::to_vec))
    }

    /// When one of its handshakes has something to do.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        [&self.renewal, &self.handshake].into_iter().flatten().filter_map(Handshake::next_timeout).min()
    }

    /// Keeps key tokens of a pair, instead of earlier ones of it. True if others had to go.
    pub(super) fn park(&mut self, pair: Pair, materials: Vec<KeyMaterial>) -> bool {
        self.parked.retain(|parked| parked.pair != pair);
        let is_full = self.parked.len() >= PARKED_MAX;
        if is_full {
            self.parked.pop_front();
        }
        self.parked.push_back(Parked { pair, materials });
        is_full
    }

    /// Takes the key tokens of a pair that was matched.
    pub(super) fn unpark(&mut self, pair: Pair) -> Option<Vec<KeyMaterial>> {
        let index = self.parked.iter().position(|parked| parked.pair == pair)?;
        self.parked.remove(index).map(|parked| parked.materials)
    }
}

/// For texts: a participant, with its subject if that was proven.
pub(super) fn describe(prefix: GuidPrefix, remote: Option<&Remote>) -> String {
    match remote.and_then(Remote::session) {
        Some(session) => format!("participant {prefix} of \"{}\"", session.certificate.subject()),
        None => format!("participant {prefix}"),
    }
}
