//! Events, decisions and counters of the interceptor.

use std::fmt;
use std::net::SocketAddr;

use takt_wire::{Guid, GuidPrefix};

use crate::PortRef;
use crate::contract::{Contract, NoContract};

/// A matching writer and reader: same domain, domain tag, topic and type, overlapping partitions,
/// compatible policies.
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

/// Treatment of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The frame is forwarded unchanged.
    Pass,
    /// These frames are forwarded instead, as if they had arrived at the same port. An empty list
    /// drops or holds the frame.
    Replace(Vec<Vec<u8>>),
}

/// A frame that the interceptor sends unsolicited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emission {
    /// Port of the host that the frame represents; it is forwarded as if it had arrived there.
    pub from: PortRef,
    /// Octets of the frame.
    pub frame: Vec<u8>,
}

/// Reason why a frame is considered forged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forgery {
    /// The participant is attached to another port, or sends from other addresses.
    ForeignSource,
    /// A participant announces no locator with the address that it sends from.
    ForeignLocators,
    /// An announcement concerns an endpoint of another participant.
    ForeignEndpoint,
    /// The GUID prefix is reserved for registrations.
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

/// An event of the interceptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A participant announced itself.
    ParticipantFound {
        /// GUID prefix of the participant.
        participant: GuidPrefix,
        /// Name, host and process, as far as announced.
        label: String,
        /// Port of its host.
        port: PortRef,
        /// Address that it sends from.
        source: SocketAddr,
    },
    /// The maximum latencies that a participant reports have grown.
    LatencyReported {
        /// GUID prefix of the participant.
        participant: GuidPrefix,
    },
    /// A participant left, or its lease expired.
    ParticipantGone {
        /// GUID prefix of the participant.
        participant: GuidPrefix,
    },
    /// A writer and a reader match, or matched before and announced changed policies. With a
    /// contract, the announcement is held until [`release`](super::Interceptor::release) or
    /// [`refuse`](super::Interceptor::refuse); without one the pair matches as usual.
    PairFound {
        /// The pair.
        pair: Pair,
        /// The declared contract, or the missing values.
        contract: Result<Contract, NoContract>,
    },
    /// The writer of an admitted or pending pair has another reader that needs no admission: that
    /// pair has no contract, or is within one host. With this reader, the writer may begin to send
    /// by multicast. The announcement is held like that of a pair with a contract.
    CompanionFound {
        /// The pair.
        pair: Pair,
    },
    /// The isolation policy denies a writer and a reader that match. Each is announced to the other
    /// as incompatible.
    PairDenied {
        /// The pair.
        pair: Pair,
        /// Reason of the denial.
        reason: String,
    },
    /// A pair ended: an endpoint was deleted, became incompatible, or lost its participant.
    PairGone {
        /// The pair.
        pair: Pair,
    },
    /// No verdict arrived within `verdict_timeout`: the pair is refused.
    VerdictMissed {
        /// The pair.
        pair: Pair,
    },
    /// Submessages with the forged source of a participant were dropped.
    Forged {
        /// The named participant.
        participant: GuidPrefix,
        /// Port at which they arrived.
        port: PortRef,
        /// Address that they came from.
        source: SocketAddr,
        /// Kind of forgery.
        what: Forgery,
    },
    /// A limit was reached; the excess was withheld.
    LimitReached {
        /// The participant.
        participant: GuidPrefix,
        /// The limit.
        limit: Limit,
    },
    /// A participant protects its discovery by DDS Security, which the interceptor cannot read: it
    /// passes, and no pair of it is admitted.
    Opaque {
        /// The participant.
        participant: GuidPrefix,
    },
}

/// Counters since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames with RTPS messages.
    pub messages: u64,
    /// Number of these frames that were forwarded unchanged.
    pub passed: u64,
    /// Fragments of IP packets with UDP, which were dropped.
    pub ip_fragments: u64,
    /// Frames beyond `frames_per_second`, which were dropped.
    pub floods: u64,
    /// Unreadable submessages, which were dropped, and unreadable announcements, which were
    /// withheld.
    pub malformed: u64,
    /// Forged submessages.
    pub forged: u64,
    /// Endpoint announcements of unknown participants. They are dropped; their writers send them
    /// again.
    pub unknown_participants: u64,
    /// Announcements withheld because of a limit.
    pub limited: u64,
    /// Announcements held until a verdict.
    pub held: u64,
    /// Announcements that a refusal turned into an incompatible announcement or a GAP.
    pub refused: u64,
    /// Changes inserted into streams.
    pub inserted: u64,
    /// Incomplete announcements that were discarded.
    pub unfinished: u64,
    /// Secured submessages and DATA of secured writers.
    pub opaque: u64,
    /// Events lost because the queue was full.
    pub events_lost: u64,
    /// Frames lost because the queue was full, or without a path.
    pub frames_lost: u64,
}
