//! What the interceptor reports, decides and counts.

use std::fmt;
use std::net::SocketAddr;

use takt_wire::{Guid, GuidPrefix};

use crate::PortRef;
use crate::contract::{Contract, NoContract};

/// A writer and a reader that match: same domain, domain tag, topic and type, partitions that meet, compatible policies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pair {
    /// The writer.
    pub writer: Guid,
    /// The reader.
    pub reader: Guid,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.writer, self.reader)
    }
}

/// What becomes of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It is forwarded as it came.
    Pass,
    /// These frames are forwarded instead, as if they had come in at the same port. None: the frame is dropped or held.
    Replace(Vec<Vec<u8>>),
}

/// A frame that the interceptor sends of its own accord.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emission {
    /// The port of the host that it comes from; it is forwarded as if it had come in there.
    pub from: PortRef,
    /// The octets.
    pub frame: Vec<u8>,
}

/// Why a frame was not believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forgery {
    /// The participant is attached to another port, or sends from other addresses.
    ForeignSource,
    /// A participant announces no locator with the address that it sends from.
    ForeignLocators,
    /// An announcement of an endpoint that belongs to another participant.
    ForeignEndpoint,
    /// The GUID prefix is one of those that registrations have.
    ReservedPrefix,
}

impl fmt::Display for Forgery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ForeignSource => "the participant is attached to another port or sends from other addresses",
            Self::ForeignLocators => "the participant announces no locator with its source address",
            Self::ForeignEndpoint => "the endpoint belongs to another participant",
            Self::ReservedPrefix => "the GUID prefix is reserved for registrations",
        })
    }
}

/// A limit that was reached; see [`Limits`](super::Limits).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each is the limit of its name")]
pub enum Limit {
    Participants,
    ParticipantsPerAddress,
    EndpointsPerParticipant,
    Endpoints,
    AnnouncementBytes,
    EndpointsPerTopic,
    Pairs,
    Streams,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A participant announced itself.
    ParticipantFound {
        /// Its prefix.
        participant: GuidPrefix,
        /// Its name, host and process, as far as it announces these.
        label: String,
        /// The port of its host.
        port: PortRef,
        /// The address that it sends from.
        source: SocketAddr,
    },
    /// The longest times that a participant saw have grown.
    LatencyReported {
        /// Its prefix.
        participant: GuidPrefix,
    },
    /// A participant said farewell, or its lease ended.
    ParticipantGone {
        /// Its prefix.
        participant: GuidPrefix,
    },
    /// A writer and a reader match, or matched before and announced other policies. With a contract the announcement is held
    /// until [`release`](super::Interceptor::release) or [`refuse`](super::Interceptor::refuse); without one the pair
    /// matches as usual.
    PairFound {
        /// The pair.
        pair: Pair,
        /// What was declared, or what is missing.
        contract: Result<Contract, NoContract>,
    },
    /// The writer of an admitted pair, or of one that asks, has another reader that needs no admission: the pair has no contract, or is within
    /// one host. With it the writer may begin to send by multicast. The announcement is held as that of a pair with a contract.
    CompanionFound {
        /// The pair.
        pair: Pair,
    },
    /// A writer and a reader match, and the policy of isolation denies it: they are shown to each other as incompatible.
    PairDenied {
        /// The pair.
        pair: Pair,
        /// What denies it.
        reason: String,
    },
    /// A pair is no more: an endpoint was deleted, became incompatible, or lost its participant.
    PairGone {
        /// The pair.
        pair: Pair,
    },
    /// No verdict came within `verdict_timeout`: the pair is refused.
    VerdictMissed {
        /// The pair.
        pair: Pair,
    },
    /// Submessages that claim to come from a participant were dropped.
    Forged {
        /// The participant that they named.
        participant: GuidPrefix,
        /// The port that they came in at.
        port: PortRef,
        /// The address that they came from.
        source: SocketAddr,
        /// What was wrong.
        what: Forgery,
    },
    /// A limit was reached; what came beyond it was withheld.
    LimitReached {
        /// The participant.
        participant: GuidPrefix,
        /// The limit.
        limit: Limit,
    },
    /// A participant uses DDS Security for its discovery, which the interceptor cannot read: it passes, and is admitted to nothing.
    Opaque {
        /// The participant.
        participant: GuidPrefix,
    },
}

/// Counts since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames with RTPS messages.
    pub messages: u64,
    /// Of these, frames that went as they came.
    pub passed: u64,
    /// Fragments of IP packets with UDP, which are dropped.
    pub ip_fragments: u64,
    /// Frames beyond `frames_per_second`, which are dropped.
    pub floods: u64,
    /// Submessages that are not readable, or announcements that are not; they are dropped or withheld.
    pub malformed: u64,
    /// Submessages that were not believed.
    pub forged: u64,
    /// Announcements of participants that did not announce themselves; they are dropped, and sent again by their writers.
    pub strangers: u64,
    /// Announcements that a limit withheld.
    pub limited: u64,
    /// Announcements that were held until a verdict.
    pub held: u64,
    /// Announcements that went out incompatible or as GAP because of a refusal.
    pub refused: u64,
    /// Changes inserted into streams.
    pub inserted: u64,
    /// Incomplete announcements that were forgotten.
    pub unfinished: u64,
    /// Secured submessages and DATA of secured writers.
    pub opaque: u64,
    /// Events that found no room.
    pub events_lost: u64,
    /// Frames that found no room, or no way.
    pub frames_lost: u64,
}
