//! Checkers: they receive all actions and observations of applications, and compare them with
//! [`crate::model`].

mod alter;
mod contract;
mod delivery;
pub mod exact;
mod finish;
mod fragments;
mod grants;
mod ignored;
mod info;
mod life;
mod pair;
mod policies;
pub mod progress;
mod reading;
mod recovery;
mod sets;
pub mod silence;
mod statuses;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use takt_core::{ChangeKind, InstanceState};
use takt_wire::{Guid, GuidPrefix, Timestamp};

use crate::clock::Nanos;
use crate::scenario::QosPlan;
use exact::Exact;
use fragments::PartialSamples;
pub use grants::{EXPIRY_TOLERANCE, Rights};
pub use ignored::Ignored;
use ignored::IgnoredEntities;
use info::ViewedInstance;
use pair::Pair;
use progress::Progress;
pub use reading::ReadKind;
use reading::UntakenSamples;
use recovery::Recovery;
pub use sets::SetId;
use sets::Sets;

/// Rules that a world must not violate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A sample arrived that was never written, or at a reader that must not receive it.
    UnknownSample,
    /// A sample arrived a second time.
    Duplicate,
    /// A sample arrived after a newer one of its writer.
    Order,
    /// A sample that must arrive was skipped.
    Gap,
    /// A sample that must arrive had not arrived at the end.
    Missing,
    /// Endpoints that must match do not match, or the reverse.
    Matching,
    /// A guaranteed sample did not arrive, or compatible endpoints did not match, although no fault
    /// was active.
    Progress,
    /// A match ended although no fault had occurred.
    Lost,
    /// An endpoint is still matched with one that was deleted or announced its end, although no
    /// fault had occurred.
    ParticipantEnd,
    /// A writer that is not alive is reported as alive, or the reverse.
    Liveliness,
    /// A missed deadline was not notified, or a deadline that was not missed was notified.
    Deadline,
    /// A sample was taken from a writer that does not own the instance.
    Ownership,
    /// A sample was taken after one with a later source timestamp.
    SourceOrder,
    /// A sample was in transit for longer than its writer may delay it.
    Latency,
    /// A sample arrived that was older than the match, or older than the history.
    UnexpectedSample,
    /// A sample, a match or an endpoint is outside of a grant.
    Grant,
    /// A protected message was accepted a second time.
    Replay,
    /// A member of SampleInfo is wrong.
    Info,
    /// A read changed or omitted a sample, or ranks do not agree with the collection.
    Reading,
    /// A type lookup request was answered wrongly, late or never.
    Lookup,
    /// A status or one of its counts is wrong.
    Status,
    /// A sample was shown less than the minimum separation after the previous one of its instance.
    Separation,
    /// A sample of an instance that is not alive was kept too long.
    Lifecycle,
    /// A sample was taken after its lifespan had expired.
    Lifespan,
    /// A sample was taken that does not pass the reader's content filter.
    Filter,
    /// A coherent set was seen in part, or before its end.
    Coherence,
    /// An instance is in a state that its writers did not cause.
    Instance,
    /// A writer waits for space although there is space.
    BlockedWriter,
    /// A history held more than its limits allow.
    Limits,
    /// Datagrams were sent although no protocol exchange was pending.
    IdleTraffic,
    /// A datagram was sent before a more urgent one that was queued.
    Urgency,
    /// A call of the core failed that must succeed.
    CallFailed,
    /// A call of the core examined more than its bound.
    Work,
    /// More state was kept for other participants than the limits allow.
    StateBound,
    /// An address that never answered was sent more than a multiple of what arrived in its name.
    Amplification,
    /// The core panicked.
    Panic,
}

impl Rule {
    /// Reports whether the rule holds even if a hostile host uses the GUID prefixes of others.
    #[must_use]
    pub fn is_safety(self) -> bool {
        matches!(
            self,
            Self::Limits | Self::Work | Self::StateBound | Self::Amplification | Self::CallFailed | Self::Panic
        )
    }

    /// Reports whether the rule holds for signed messages, whatever damage they suffer in transit.
    #[must_use]
    pub fn is_authentic(self) -> bool {
        matches!(self, Self::UnknownSample | Self::Duplicate | Self::Order | Self::Grant | Self::Replay)
    }
}

/// Violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Time of the violation.
    pub at: Nanos,
    /// Violated rule.
    pub rule: Rule,
    /// Description, with the entities involved.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:.6} s: {}", self.rule, self.at as f64 / 1e9, self.text)
    }
}

/// An endpoint of the world, by its position in the order of creation. Writers and readers share
/// one numbering.
pub type EndpointId = u32;

/// State of an endpoint.
#[derive(Debug)]
struct Endpoint {
    guid: Guid,
    topic: usize,
    qos: QosPlan,
    /// Former policies.
    past: Vec<QosPlan>,
    /// Time of each alteration.
    altered: Vec<Nanos>,
    /// Partition in which each change was written.
    written_in: Vec<u8>,
    is_writer: bool,
    /// Whether permissions allow the endpoint.
    is_entitled: bool,
    /// Time at which all others apply the permissions that no longer allow it.
    was_entitled_until: Option<Nanos>,
    alive: bool,
    created_at: Nanos,
    /// Time of its deletion, or of the end of its process.
    ended_at: Option<Nanos>,
    /// Time at which all other participants know of its end.
    unmatched_by: Option<Nanos>,
    /// Written changes, in order of their numbers, from 1.
    written: Vec<Change>,
    /// Time of each write. The next two fields are the wall clock of the writer at that time and
    /// the latest reading up to then.
    written_at: Vec<Nanos>,
    walls: Vec<Timestamp>,
    stamps: Vec<Timestamp>,
    /// Start and end of each suspension of its publications; `Nanos::MAX` for an end in the future.
    suspended: Vec<(Nanos, Nanos)>,
    /// Time of the last take of a reader.
    took_at: Nanos,
}

/// A change that an application wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Instance; 0 without keys.
    pub instance: u8,
    /// Kind: a sample, or the end of the instance.
    pub kind: ChangeKind,
    /// Reader to which the change is directed; `None` for all.
    pub to: Option<EndpointId>,
    /// Length of the payload in octets.
    pub len: usize,
}

/// History of the world, as far as it determines what may happen next.
#[derive(Debug, Default)]
pub struct Checker {
    endpoints: Vec<Endpoint>,
    by_guid: BTreeMap<Guid, EndpointId>,
    /// State of each pair, by writer and reader.
    pairs: BTreeMap<(EndpointId, EndpointId), Pair>,
    /// Last observed state, by reader and instance.
    states: BTreeMap<(EndpointId, u8), InstanceState>,
    /// Readers for which a writer has ever been not alive.
    lapsed: BTreeSet<EndpointId>,
    /// Readers that have ever missed a deadline.
    late: BTreeSet<EndpointId>,
    /// With OWNERSHIP EXCLUSIVE, by reader and instance: writer and number of the last sample.
    owners: BTreeMap<(EndpointId, u8), (EndpointId, u32)>,
    /// By reader and instance: source timestamp and writer of the last taken sample.
    latest: BTreeMap<(EndpointId, u8), (Timestamp, Guid)>,
    /// By reader and instance: time at which a sample was last shown, and the generation of the
    /// instance at that time.
    shown: BTreeMap<(EndpointId, u8), (Nanos, u32)>,
    progress: Progress,
    recovery: Recovery,
    sets: Sets,
    exactly: Exact,
    /// By reader and instance: state at the last read or take.
    viewed_instances: BTreeMap<(EndpointId, u8), ViewedInstance>,
    partial_samples: PartialSamples,
    /// Number of reads and takes so far.
    passes: u64,
    /// By endpoint: total count of matches in its status, and number of current matches.
    matches: BTreeMap<EndpointId, (u32, u32)>,
    ignored_entities: IgnoredEntities,
    /// By reader: samples in its cache, if its application reads before it takes.
    untaken_samples: BTreeMap<EndpointId, UntakenSamples>,
    /// Rights of the participants with restricted permissions.
    rights: BTreeMap<GuidPrefix, Rights>,
    /// Times at which documents of participants expire.
    expires_at: BTreeMap<GuidPrefix, Nanos>,
    /// Participants that have ended.
    ended_participants: BTreeSet<GuidPrefix>,
    /// Writers that wait for space, with the start of the wait.
    waiting: BTreeMap<EndpointId, Nanos>,
    scratch: Vec<u8>,
    violation: Option<Violation>,
    /// True time, set by the world.
    pub now: Nanos,
    /// Whether rules about time are exact in this world.
    pub exact: bool,
    /// Whether every coherent set that its writer keeps must be seen in this world.
    pub exact_sets: bool,
    /// Number of completed coherent sets.
    pub sets_ended: u64,
    /// Whether a hostile host uses the GUID prefixes of others, so that only safety rules are
    /// checked.
    pub only_safety: bool,
    /// Whether a hostile host sends from the addresses of others. Its repeated announcements, which
    /// are never protected, can then keep an ended participant from being lost.
    pub forges_addresses: bool,
    /// Whether messages are signed, so that their statements about samples are authentic even with
    /// an impostor.
    pub signed: bool,
    /// Whether endpoints are discovered through a discovery server.
    pub introduced: bool,
    /// Whether participants authenticate each other.
    pub authenticated: bool,
    /// Whether no fault has occurred so far, and no relevant alteration.
    pub calm: bool,
    /// Whether no fault has occurred so far, with any alterations.
    pub sound: bool,
    /// Whether no wall clock is set in this world.
    pub steady: bool,
    /// Whether the load is so low that no frame waits long for a link.
    pub light: bool,
    /// Whether readers may take a part of their samples, and the rest a moment later.
    pub takes_parts: bool,
    /// Whether readers may read before they take.
    pub reads: bool,
    /// Number of samples that applications took.
    pub taken: u64,
    /// Number of samples that applications wrote.
    pub written: u64,
}

impl Checker {
    /// Records the creation of an endpoint.
    pub fn created(&mut self, guid: Guid, topic: usize, qos: QosPlan, is_writer: bool) -> EndpointId {
        let id = self.endpoints.len() as EndpointId;
        self.endpoints.push(Endpoint {
            guid,
            topic,
            qos,
            past: Vec::new(),
            altered: Vec::new(),
            written_in: Vec::new(),
            is_writer,
            is_entitled: self.is_entitled(guid.prefix, topic, is_writer),
            was_entitled_until: None,
            alive: true,
            created_at: self.now,
            ended_at: None,
            unmatched_by: None,
            written: Vec::new(),
            written_at: Vec::new(),
            walls: Vec::new(),
            stamps: Vec::new(),
            suspended: Vec::new(),
            took_at: 0,
        });
        self.by_guid.insert(guid, id);
        id
    }

    /// Records the deletion of an endpoint, or the end of its process. Without faults, all others
    /// know of it after `time`.
    pub fn endpoint_ended(&mut self, id: EndpointId, time: Nanos) {
        let endpoint = &mut self.endpoints[id as usize];
        endpoint.alive = false;
        endpoint.ended_at = Some(self.now);
        endpoint.unmatched_by = Some(self.now + time);
        self.waiting.remove(&id);
        for (_, pair) in self.pairs.iter_mut().filter(|((writer, reader), _)| *writer == id || *reader == id) {
            pair.unmatch(true);
            pair.unmatch(false);
        }
    }

    /// Records the end of a participant.
    pub fn participant_ended(&mut self, prefix: GuidPrefix) {
        self.ended_participants.insert(prefix);
    }

    /// Reports whether a participant has ended.
    #[must_use]
    pub fn has_ended(&self, prefix: GuidPrefix) -> bool {
        self.ended_participants.contains(&prefix)
    }

    /// Returns the number of the next sample of a writer.
    #[must_use]
    pub fn next_number(&self, writer: EndpointId) -> u32 {
        self.endpoints[writer as usize].written.len() as u32 + 1
    }

    /// Records the next change of a writer.
    pub fn wrote(&mut self, at: Nanos, wall: Timestamp, writer: EndpointId, change: Change) {
        self.written += 1;
        let endpoint = &mut self.endpoints[writer as usize];
        endpoint.written.push(change);
        endpoint.written_at.push(at);
        endpoint.written_in.push(endpoint.qos.partition);
        let last = endpoint.stamps.last().copied().unwrap_or(Timestamp::ZERO);
        endpoint.walls.push(wall);
        endpoint.stamps.push(last.max(wall));
        self.record_time(at, writer, change.instance, change.kind == ChangeKind::Alive);
    }

    /// Returns the endpoint with a GUID.
    #[must_use]
    pub fn id_of(&self, guid: Guid) -> Option<EndpointId> {
        self.by_guid.get(&guid).copied()
    }

    /// Reports whether a writer directs samples to single readers.
    #[must_use]
    pub fn directs(&self, writer: EndpointId) -> bool {
        self.endpoints[writer as usize].qos.directed
    }

    /// Returns the first violation.
    #[must_use]
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Reports a violation. Only the first one is kept.
    pub fn report(&mut self, at: Nanos, rule: Rule, text: String) {
        if rule.is_safety() || !self.only_safety || self.signed && rule.is_authentic() {
            self.violation.get_or_insert(Violation { at, rule, text });
        }
    }
}
