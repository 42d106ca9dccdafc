//! The checkers: told of everything that applications do and see, they compare it with [`crate::model`].

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
use fragments::Begun;
pub use grants::Rights;
use ignored::Ignorance;
pub use ignored::Ignored;
use info::Sight;
use pair::Pair;
use progress::Progress;
pub use reading::Pass;
use reading::Shelf;
use recovery::Recovery;
pub use sets::SetId;
use sets::Sets;

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A sample arrived that nobody wrote, or at a reader that should not get it.
    Invented,
    /// A sample arrived a second time.
    Twice,
    /// A sample arrived behind a newer one of its writer.
    Order,
    /// A sample that must arrive was passed over.
    Gap,
    /// A sample that must arrive had not arrived in the end.
    Missing,
    /// Endpoints that should match do not, or the other way round.
    Matching,
    /// What was owed did not arrive, or those who fit did not match, though nothing was wrong any more.
    Progress,
    /// A match ended though nothing had gone wrong.
    Lost,
    /// Somebody believes in what said farewell, or was deleted, though nothing had gone wrong.
    Farewell,
    /// A writer is taken for alive that is not, or the other way round.
    Liveliness,
    /// A deadline was missed and not told, or told and not missed.
    Deadline,
    /// A sample was taken of a writer that does not own the instance.
    Ownership,
    /// A sample was taken behind one that was written later.
    SourceOrder,
    /// A sample was under way for longer than its writer may wait.
    Latency,
    /// A sample arrived that was older than the match, or older than the history.
    Surplus,
    /// A sample, a match or an endpoint is outside of a grant.
    Grant,
    /// What comes with a sample is not true.
    Info,
    /// READ changed what it must leave, left what it must return, or ranks are not those of the collection.
    Reading,
    /// A request for types was answered wrongly, late or never.
    Lookup,
    /// A status, or one of its counts, is not true.
    Status,
    /// A sample was shown too soon after the last one of its instance.
    Separation,
    /// Something was kept too long of an instance that is not alive.
    Lifecycle,
    /// A sample was taken whose lifespan was over.
    Lifespan,
    /// A sample was taken that does not pass the reader's content filter.
    Filter,
    /// A coherent set was seen in part, or before its end.
    Coherence,
    /// An instance is in a state that its writers did not bring it to.
    Instance,
    /// A writer waits for room that there is.
    Blocked,
    /// A history held more than its limits allow.
    Limits,
    /// Datagrams were sent when there was nothing to say.
    Silence,
    /// A datagram left before a more urgent one that waited.
    Urgency,
    /// A call of the core failed that must not.
    Refused,
    /// A call of the core looked at more than its bound.
    Work,
    /// More was kept for others than the limits allow.
    Kept,
    /// An address that never answered was sent more than a multiple of what came in its name.
    Amplification,
    /// The core panicked.
    Panic,
}

impl Rule {
    /// Whether it must hold even where a hostile host speaks in the names of others.
    #[must_use]
    pub fn is_safety(self) -> bool {
        matches!(self, Self::Limits | Self::Work | Self::Kept | Self::Amplification | Self::Refused | Self::Panic)
    }

    /// Whether it must hold where messages are signed, whatever happens to them on their way.
    #[must_use]
    pub fn is_authentic(self) -> bool {
        matches!(self, Self::Invented | Self::Twice | Self::Order | Self::Grant)
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Nanos,
    /// What.
    pub rule: Rule,
    /// Who and how.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:.6} s: {}", self.rule, self.at as f64 / 1e9, self.text)
    }
}

/// An endpoint of the world, by its place in the order of creation. Writers and readers are counted together.
pub type EndpointId = u32;

/// What is known of an endpoint.
#[derive(Debug)]
struct Endpoint {
    guid: Guid,
    topic: usize,
    qos: QosPlan,
    /// Its policies before they were altered.
    past: Vec<QosPlan>,
    /// When each of these was altered.
    altered: Vec<Nanos>,
    /// By change: the partition in which it was written.
    written_in: Vec<u8>,
    is_writer: bool,
    /// Permissions allow it.
    is_entitled: bool,
    alive: bool,
    created_at: Nanos,
    /// When it was deleted, or its process ended.
    ended_at: Option<Nanos>,
    /// When all others know that it is gone.
    forgotten_at: Option<Nanos>,
    /// What was written, in order of its number, from 1.
    written: Vec<Change>,
    /// When each of these was, what the writer's wall clock showed, and the latest that it had shown.
    written_at: Vec<Nanos>,
    walls: Vec<Timestamp>,
    stamps: Vec<Timestamp>,
    /// When its publications were suspended, and when they resumed; `Nanos::MAX` if not yet.
    suspended: Vec<(Nanos, Nanos)>,
    /// When a reader took something last.
    took_at: Nanos,
}

/// A change that an application made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Of which instance; 0 without keys.
    pub instance: u8,
    /// A sample, or the end of the instance.
    pub kind: ChangeKind,
    /// The only reader that it is for; `None` for all.
    pub to: Option<EndpointId>,
    /// Octets of its payload.
    pub len: usize,
}

/// All that has happened so far, as far as it matters for what may happen.
#[derive(Debug, Default)]
pub struct Checker {
    endpoints: Vec<Endpoint>,
    by_guid: BTreeMap<Guid, EndpointId>,
    /// By writer and reader.
    pairs: BTreeMap<(EndpointId, EndpointId), Pair>,
    /// By reader and instance: the state that was seen last.
    states: BTreeMap<(EndpointId, u8), InstanceState>,
    /// Readers that have ever taken a writer for not alive.
    lapsed: BTreeSet<EndpointId>,
    /// Readers that have ever missed a deadline.
    late: BTreeSet<EndpointId>,
    /// With OWNERSHIP EXCLUSIVE, by reader and instance: the writer whose sample came last, and its number.
    owners: BTreeMap<(EndpointId, u8), (EndpointId, u32)>,
    /// By reader and instance: when the sample that was taken last was written, and by whom.
    latest: BTreeMap<(EndpointId, u8), (Timestamp, Guid)>,
    /// By reader and instance: when a sample was shown last, and how often the instance had been born by then.
    shown: BTreeMap<(EndpointId, u8), (Nanos, u32)>,
    progress: Progress,
    recovery: Recovery,
    sets: Sets,
    exactly: Exact,
    /// By reader and instance: what its last pass saw.
    sights: BTreeMap<(EndpointId, u8), Sight>,
    begun: Begun,
    /// Takes so far.
    passes: u64,
    /// By endpoint: how many matches it had counted, and how many there were.
    matches: BTreeMap<EndpointId, (u32, u32)>,
    ignorance: Ignorance,
    /// By reader: what it holds, if its application reads before it takes.
    shelves: BTreeMap<EndpointId, Shelf>,
    /// What permissions allow participants, of those for whom there are any.
    rights: BTreeMap<GuidPrefix, Rights>,
    /// Participants that have ended.
    left: BTreeSet<GuidPrefix>,
    /// Writers that wait for room, and since when.
    waiting: BTreeMap<EndpointId, Nanos>,
    scratch: Vec<u8>,
    violation: Option<Violation>,
    /// True time, as the world tells it.
    pub now: Nanos,
    /// Promises about time are exact in this world.
    pub exact: bool,
    /// Each coherent set that its writer keeps is seen in this world.
    pub exact_sets: bool,
    /// Coherent sets that have ended.
    pub sets_ended: u64,
    /// Somebody speaks in the names of others: only rules of safety are looked at.
    pub only_safety: bool,
    /// Messages are signed: what they say of samples is true, whoever speaks in the names of others.
    pub signed: bool,
    /// Endpoints find each other through a discovery server.
    pub introduced: bool,
    /// Participants authenticate each other.
    pub authenticated: bool,
    /// Nothing has gone wrong in this world so far, and nothing is altered that matters.
    pub calm: bool,
    /// Nothing has gone wrong in this world so far, though policies may have been altered.
    pub sound: bool,
    /// Nobody sets a wall clock in this world.
    pub steady: bool,
    /// Little is sent, so that nothing waits long for a link.
    pub light: bool,
    /// Readers may take a part of what they have, and the rest a moment later.
    pub takes_parts: bool,
    /// Readers may read before they take.
    pub reads: bool,
    /// Samples that applications took.
    pub taken: u64,
    /// Samples that applications wrote.
    pub written: u64,
}

impl Checker {
    /// An endpoint was created.
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
            alive: true,
            created_at: self.now,
            ended_at: None,
            forgotten_at: None,
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

    /// An endpoint was deleted, or its process ended; all others know that after `time` if nothing goes wrong.
    pub fn gone(&mut self, id: EndpointId, time: Nanos) {
        let endpoint = &mut self.endpoints[id as usize];
        endpoint.alive = false;
        endpoint.ended_at = Some(self.now);
        endpoint.forgotten_at = Some(self.now + time);
        self.waiting.remove(&id);
        for (_, pair) in self.pairs.iter_mut().filter(|((writer, reader), _)| *writer == id || *reader == id) {
            pair.unmatch(true);
            pair.unmatch(false);
        }
    }

    /// A participant has ended.
    pub fn left(&mut self, prefix: GuidPrefix) {
        self.left.insert(prefix);
    }

    /// Whether a participant has ended.
    #[must_use]
    pub fn has_gone(&self, prefix: GuidPrefix) -> bool {
        self.left.contains(&prefix)
    }

    /// The number of the next sample of a writer.
    #[must_use]
    pub fn next_number(&self, writer: EndpointId) -> u32 {
        self.endpoints[writer as usize].written.len() as u32 + 1
    }

    /// A writer made its next change.
    pub fn wrote(&mut self, at: Nanos, wall: Timestamp, writer: EndpointId, change: Change) {
        self.written += 1;
        let endpoint = &mut self.endpoints[writer as usize];
        endpoint.written.push(change);
        endpoint.written_at.push(at);
        endpoint.written_in.push(endpoint.qos.partition);
        let last = endpoint.stamps.last().copied().unwrap_or(Timestamp::ZERO);
        endpoint.walls.push(wall);
        endpoint.stamps.push(last.max(wall));
        self.keep_time(at, writer, change.instance, change.kind == ChangeKind::Alive);
    }

    /// The endpoint of a GUID.
    #[must_use]
    pub fn id_of(&self, guid: Guid) -> Option<EndpointId> {
        self.by_guid.get(&guid).copied()
    }

    /// Whether a writer directs samples to single readers.
    #[must_use]
    pub fn directs(&self, writer: EndpointId) -> bool {
        self.endpoints[writer as usize].qos.directed
    }

    /// What broke first.
    #[must_use]
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// A promise is broken; the first one counts.
    pub fn report(&mut self, at: Nanos, rule: Rule, text: String) {
        if rule.is_safety() || !self.only_safety || self.signed && rule.is_authentic() {
            self.violation.get_or_insert(Violation { at, rule, text });
        }
    }
}
