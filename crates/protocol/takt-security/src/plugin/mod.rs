//! Security plugins of one participant: authentication, access control and protection behind the
//! trait [`takt_core::security::Security`] (DDS-SEC 1.1 §8).
//!
//! | module | task |
//! |---|---|
//! | `authentication` | handshakes with remote participants, one at a time for each |
//! | `exchange` | key tokens, sent and received over the volatile endpoints |
//! | `access` | access control of local and remote endpoints |
//! | `sealing`, `opening` | protection of messages |
//! | `expiry` | expiry of certificates and permissions during a session |
//! | `renewal` | replacement of certificates and permissions during a session |
//!
//! # Decisions that the specification leaves open
//!
//! - A participant whose masks differ is refused, even where unauthenticated participants are
//!   allowed: it has an identity, but protects differently from the local participant
//!   (DDS-SEC 1.1 §7.2.7).
//! - A participant that fails to authenticate is treated as unauthenticated where the governance
//!   allows unauthenticated participants. It would have the same access if it announced no
//!   identity.
//! - Participant key tokens are always sent, with material of kind none if the governance protects
//!   no messages. INTEROP(CycloneDDS 0.10): ends its handshakes with these tokens.
//! - Key tokens are sent when a pair is matched, without waiting for those of the peer.
//! - Keys have 256 bits. Peers may use keys of 128 bits. Keys of both sides must encrypt where the
//!   governance requires encryption, and have receiver-specific keys where it requires origin
//!   authentication.
//! - A participant opens its own messages with its own keys. With origin authentication it is one
//!   of its own receivers, since every peer knows the sender key.
//! - Content that this participant sealed with the key of the volatile endpoints is refused when it
//!   is reflected: both directions share the key.
//! - An authenticated participant that sends a new challenge gets a new handshake. Keys and matches
//!   remain until that succeeds; then [`takt_core::security::SecurityEvent::Authenticated`] is
//!   reported again.
//!
//! # Limits
//!
//! - [`Settings::handshakes_max`] handshakes at a time. Other participants wait in the order of
//!   their discovery. While participants wait, a pending handshake yields its slot when one of its
//!   messages was refused, or after [`SLOT_TIME`]. Its participant then waits after the others. The
//!   caller limits the number of participants.
//! - A participant that was refused after a timeout gets another handshake after [`RETRY_PERIOD`].
//!   If it opens one itself, it gets one per [`RENEWAL_PERIOD`].
//! - A remote participant has at most two keys for each matched pair, one for messages, and that of
//!   the volatile endpoints, some 3 KiB each. Key tokens for at most [`EARLY_TOKENS_MAX`] unmatched
//!   pairs are stored; more displace the oldest.
//! - The log holds [`LOG_MAX`] entries; more displace the oldest.
//! - [`Settings::has_replay_windows`]: a window covers 1,024 messages.
//! - Overheads reserve room for [`RECEIVERS_RESERVED`] receiver-specific codes, and grow with the
//!   receivers of the endpoint that has the most. Callers query them when they build a message.
//!
//! # Cost
//!
//! A call verifies or creates at most three handshake signatures and one document signature.
//! Sealing and opening allocate no memory, except when a key is first used or in a new session.

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
/// Minimum time between two handshakes that a remote participant opens.
pub const RENEWAL_PERIOD: Duration = Duration::from_secs(10);
/// Time after which a pending handshake yields its slot to a waiting participant.
pub const SLOT_TIME: Duration = Duration::from_secs(3);
/// Maximum number of stored key tokens of one remote participant for unmatched pairs.
pub const EARLY_TOKENS_MAX: usize = 256;
/// Number of receiver-specific codes for which overheads always reserve room.
pub const RECEIVERS_RESERVED: usize = 8;

/// Local endpoint and the remote endpoint with which it is matched.
type Pair = (EntityId, Guid);

/// Security plugins of one participant.
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

    /// Sealer of whole messages, if the governance protects them.
    message: Option<MasterSealer>,
    /// All endpoints of the application, and the protected builtin endpoints.
    endpoints: BTreeMap<EntityId, LocalEndpoint>,
    remotes: BTreeMap<GuidPrefix, Remote>,
    /// Participants that wait for a handshake slot.
    waiting: VecDeque<GuidPrefix>,
    keyring: Keyring,
    /// Keys that the remote endpoint sent for the pair.
    pairs: BTreeMap<Pair, Vec<KeyMaterial>>,

    events: VecDeque<SecurityEvent>,
    outgoing: VecDeque<Outgoing>,
    /// Sequence number of the last message of the volatile writer.
    sequence_number: i64,
    /// Time of the last call that provided it.
    now: Clocks,
    /// Time at which a handshake is due.
    handshake_due: Option<Instant>,
    /// Time at which a certificate or permissions may have expired.
    check_due: Instant,
    own_validity: Validity,
    renewals: Renewals,
    is_rollover_due: bool,
    /// Participants whose refusal was reported.
    refused: HashSet<GuidPrefix>,
    /// Largest number of receivers of any key.
    receivers_max: usize,
    log: Log,
    counters: Counters,
}

/// Message of the volatile endpoints that waits to be polled.
struct Outgoing {
    /// Pair whose tokens the message carries, if it has endpoint tokens.
    pair: Option<Pair>,
    message: SecurityMessage,
}

impl Plugin {
    /// Returns the counters of sealed, opened and refused messages.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn own_subject(&self) -> &SubjectName {
        self.local.identity().certificate().subject()
    }

    fn log(&mut self, severity: Severity, text: String) {
        self.log.add(self.now.wall, severity, text);
    }

    /// Returns the time used for certificates and permissions.
    fn wall(&self) -> UnixSeconds {
        wall_seconds(self.now)
    }
}

const fn wall_seconds(now: Clocks) -> UnixSeconds {
    now.wall.seconds as UnixSeconds
}

/// Converts the time to the clock of the handshakes.
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
