//! The plugins of one participant as one object: authentication, access control and protection
//! behind the trait [`takt_core::security::Security`] (DDS-SEC 1.1 §8).
//!
//! | module | task |
//! |---|---|
//! | `authentication` | handshakes with remote participants, one at a time for each |
//! | `exchange` | key tokens, to and from the volatile channel |
//! | `access` | what the governance and permissions allow to local and remote endpoints |
//! | `sealing`, `opening` | protection of messages |
//! | `expiry` | certificates and permissions that end during a session |
//! | `renewal` | others in their place |
//!
//! # Decisions that the specification leaves open
//!
//! - A participant whose masks differ is refused, even where unauthenticated participants are
//!   allowed: it does not lack an identity, it protects other things than this one (DDS-SEC 1.1 §7.2.7).
//! - A participant that fails to authenticate stays open where the governance allows
//!   unauthenticated participants. It would be open if it announced no identity.
//! - Key tokens of participants are sent whatever the governance protects; material of kind none if
//!   it protects no messages. INTEROP(CycloneDDS 0.10): ends its handshakes with these tokens.
//! - Key tokens are sent when a pair is matched, and never wait for those of the peer.
//! - Keys have 256 bits. Peers may have keys of 128 bits. Both have to encrypt where the governance
//!   says so, and to have keys of receivers where it asks for authentication of origins.
//! - A participant opens its own messages with its own keys. Where origins are authenticated it is
//!   a receiver of its own, since every peer has the other key.
//! - What was sealed with the key of the volatile channel by this participant is refused when it
//!   comes back: both directions share the key.
//! - A participant that was authenticated and sends a new challenge gets a new handshake. Keys and
//!   matches stay until that succeeds; then [`takt_core::security::SecurityEvent::Authenticated`]
//!   is reported again.
//!
//! # Limits
//!
//! - [`Settings::handshakes_max`] handshakes at a time. Other participants wait in the order of
//!   their discovery. While participants wait, a pending handshake yields its slot when a message of it
//!   was refused, or after [`SLOT_TIME`]. Its participant then waits behind the others. The caller limits
//!   the number of participants.
//! - A participant that was refused after a time-out gets another handshake after [`RETRY_PERIOD`],
//!   or when it opens one itself, once in [`RENEWAL_PERIOD`].
//! - A remote participant has at most two keys for each matched pair, one for messages, and that of
//!   the volatile channel. Some 3 KiB each. It has key tokens for at most [`PARKED_MAX`] pairs that
//!   are not matched; more displace the oldest.
//! - The log keeps [`LOG_MAX`] entries; more displace the oldest.
//! - [`Settings::has_replay_windows`]: a window has 1,024 messages.
//! - Overheads have room for [`RECEIVERS_RESERVED`] codes of receivers, and grow with the receivers
//!   of the endpoint that has the most. Callers ask for them when they build a message.
//!
//! # Cost
//!
//! A call verifies or makes at most three signatures of handshakes, and one of a document. Sealing
//! and opening take no memory, but when a key is used for the first time or in a new session.

mod access;
mod authentication;
mod counters;
mod endpoints;
mod exchange;
mod expiry;
mod keyring;
mod log;
mod opening;
mod remotes;
mod renewal;
mod sealing;
mod settings;
mod trait_impl;

#[cfg(test)]
mod tests;

pub use counters::Counters;
pub use log::LOG_MAX;
pub use renewal::Renewer;
pub use settings::Settings;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::time::Duration;

use takt_core::security::{Announced, SecurityEvent, SecurityMessage, SecuritySeverity as Severity};
use takt_core::{Clocks, Instant};
use takt_wire::{EntityId, Guid, GuidPrefix};

use crate::attributes::ParticipantAttributes;
use crate::documents::{AccessControl, Permissions};
use crate::handshake::Credentials;
use crate::identity::{SubjectName, UnixSeconds};
use crate::keys::KeyMaterial;
use endpoints::{LocalEndpoint, MasterSealer};
use expiry::Validity;
use keyring::Keyring;
use log::Log;
use remotes::Remote;
use renewal::Renewals;

/// Time after which a handshake that timed out begins again.
pub const RETRY_PERIOD: Duration = Duration::from_secs(60);
/// Time between two handshakes that a remote participant opens.
pub const RENEWAL_PERIOD: Duration = Duration::from_secs(10);
/// Time after which a pending handshake yields its slot to a waiting participant.
pub const SLOT_TIME: Duration = Duration::from_secs(3);
/// Key tokens of one remote participant for pairs that are not matched.
pub const PARKED_MAX: usize = 256;
/// Codes of receivers that overheads always have room for.
pub const RECEIVERS_RESERVED: usize = 8;

/// A local endpoint and the remote one that it is matched with.
type Pair = (EntityId, Guid);

/// The plugins of one participant.
pub struct Plugin {
    prefix: GuidPrefix,
    local: Credentials,
    access: AccessControl,
    permissions: Permissions,
    attributes: ParticipantAttributes,
    announced: Announced,
    handshakes_max: usize,
    has_replay_windows: bool,
    accepts_clear_discovery: bool,
    blocks_per_session: u64,

    /// Protects messages as a whole, if the governance says so.
    message: Option<MasterSealer>,
    /// All endpoints of the application, and builtin ones that are protected.
    endpoints: BTreeMap<EntityId, LocalEndpoint>,
    remotes: BTreeMap<GuidPrefix, Remote>,
    /// Participants without a handshake yet, since there are too many others.
    waiting: VecDeque<GuidPrefix>,
    keyring: Keyring,
    /// The keys that the remote endpoint sent for the pair.
    pairs: BTreeMap<Pair, Vec<KeyMaterial>>,

    events: VecDeque<SecurityEvent>,
    outgoing: VecDeque<Outgoing>,
    /// Of the last message on the volatile channel.
    sequence_number: i64,
    /// Of the last call that had the time.
    now: Clocks,
    /// When a handshake has something to do.
    handshake_due: Option<Instant>,
    /// When a certificate or permissions may have expired.
    check_due: Instant,
    own_validity: Validity,
    renewals: Renewals,
    is_rollover_due: bool,
    /// Participants whose refusal was told.
    refused: HashSet<GuidPrefix>,
    /// The most receivers of any key.
    receivers_max: usize,
    log: Log,
    counters: Counters,
}

/// A message of the volatile channel that waits to be polled.
struct Outgoing {
    /// What it is about, if it has the tokens of endpoints.
    pair: Option<Pair>,
    message: SecurityMessage,
}

impl Plugin {
    /// What was refused, sealed and opened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn own_subject(&self) -> &SubjectName {
        self.local.identity().certificate().subject()
    }

    fn log(&mut self, severity: Severity, text: String) {
        self.log.add(self.now.wall, severity, text);
    }

    /// The time of certificates and permissions.
    fn wall(&self) -> UnixSeconds {
        wall_seconds(self.now)
    }
}

const fn wall_seconds(now: Clocks) -> UnixSeconds {
    now.wall.seconds as UnixSeconds
}

/// The time as handshakes count it.
const fn handshake_clock(now: Clocks) -> Duration {
    Duration::from_nanos(now.at.0)
}

fn participant_guid(prefix: GuidPrefix) -> Guid {
    Guid::new(prefix, EntityId::PARTICIPANT)
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("participant", &self.prefix)
            .field("subject", &self.own_subject().to_string())
            .field("remotes", &self.remotes.len())
            .field("pairs", &self.pairs.len())
            .finish_non_exhaustive()
    }
}
