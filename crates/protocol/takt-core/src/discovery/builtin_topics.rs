//! Builtin topics (DDS 1.4 §2.2.5): discovered remote entities as samples of ordinary readers.
//!
//! A sample is the announcement as a parameter list, an instance is an entity, and its handle is
//! the entity's GUID. Entities that leave by a farewell or are deleted become disposed; entities
//! that fall silent lose their writer. Entities of this participant are not presented: the
//! specification assumes that the application knows them.
//!
//! RTPS has no topic announcements, so an instance of `DCPSTopic` is a topic name with a type that
//! some remote endpoint uses. Its sample is that endpoint's announcement, a writer's if there is
//! one.
//!
//! DEVIATION(DDS 1.4 §2.2.5): the policies of a topic are therefore those of one of its endpoints.
//!
//! Bounds: a reader has room for [`Limits::max_participants`](crate::Limits) participants (and
//! those with unvalidated addresses), or for [`Limits::default_max_instances`](crate::Limits) of
//! the other entities, and for [`Limits::endpoint_memory_bytes`](crate::Limits). Beyond, departed
//! entities are replaced.

use super::Remote;
use crate::cache::{CacheLimits, ChangeKind, KeyHash, ReaderCache};
use crate::context::Context;
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::reader::Reader;
use crate::slots::ReaderHandle;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::{DataReaderQos, Durability, Reliability, ReliabilityKind};
use takt_wire::{Duration, EntityId, Guid};

/// Kind of a builtin topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltinTopic {
    /// Participants.
    Participant,
    /// Topics: names and their types.
    Topic,
    /// Writers.
    Publication,
    /// Readers.
    Subscription,
}

/// Longest time that the specification lets a `write` of these topics block.
const MAX_BLOCKING_TIME: Duration = Duration::from_millis(100);

impl BuiltinTopic {
    /// Returns the name of the topic.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Participant => "DCPSParticipant",
            Self::Topic => "DCPSTopic",
            Self::Publication => "DCPSPublication",
            Self::Subscription => "DCPSSubscription",
        }
    }

    /// Returns the policies of the topic's reader, from the table of DDS 1.4 §2.2.5.
    #[must_use]
    pub fn reader_qos() -> DataReaderQos {
        DataReaderQos {
            durability: Durability::TransientLocal,
            reliability: Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: MAX_BLOCKING_TIME },
            ..DataReaderQos::default()
        }
    }

    fn reader_id(self) -> EntityId {
        match self {
            Self::Participant => EntityId::SPDP_READER,
            Self::Topic => EntityId::SEDP_TOPIC_READER,
            Self::Publication => EntityId::SEDP_PUB_READER,
            Self::Subscription => EntityId::SEDP_SUB_READER,
        }
    }

    fn writer_id(self) -> EntityId {
        match self {
            Self::Participant => EntityId::SPDP_WRITER,
            Self::Topic => EntityId::SEDP_TOPIC_WRITER,
            Self::Publication => EntityId::SEDP_PUB_WRITER,
            Self::Subscription => EntityId::SEDP_SUB_WRITER,
        }
    }
}

/// Reason for the departure of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The entity was deleted, and announced that.
    Deleted,
    /// The entity was silent for too long, or is ignored from now on.
    Lost,
}

impl Departure {
    fn change(self) -> ChangeKind {
        match self {
            Self::Deleted => ChangeKind::DisposedUnregistered,
            Self::Lost => ChangeKind::Unregistered,
        }
    }
}

/// Readers of builtin topics and the state for them.
#[derive(Debug, Default)]
pub(crate) struct BuiltinTopics {
    readers: Vec<(BuiltinTopic, u32)>,
    /// Remote endpoints of each topic, by name and type. Maintained while a reader of topics
    /// exists.
    topics: BTreeMap<(String, String), TopicEndpoints>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TopicEndpoints {
    count: usize,
    /// The presented policies are those of a writer.
    from_writer: bool,
}

impl BuiltinTopics {
    fn has_reader(&self, topic: BuiltinTopic) -> bool {
        self.readers.iter().any(|(known, _)| *known == topic)
    }
}

/// Change for a reader of a builtin topic.
struct Change<'a> {
    topic: BuiltinTopic,
    kind: ChangeKind,
    /// Builtin endpoint that sent the announcement.
    writer: Guid,
    key_hash: KeyHash,
    payload: &'a [u8],
}

impl Change<'_> {
    fn of(topic: BuiltinTopic, entity: Guid, kind: ChangeKind, payload: &[u8]) -> Change<'_> {
        let writer = Guid { prefix: entity.prefix, entity_id: topic.writer_id() };
        Change { topic, kind, writer, key_hash: entity.to_bytes(), payload }
    }
}

/// Returns the handle of a topic: FNV-1a of its name and type, so that it is equal in all
/// participants.
fn topic_key(topic_name: &str, type_name: &str) -> KeyHash {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let text = topic_name.bytes().chain([0]).chain(type_name.bytes());
    text.fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME)).to_be_bytes()
}

impl Discovery {
    /// Creates a reader of a builtin topic, filled with the entities known now.
    pub(crate) fn create_builtin_reader(&mut self, call: &mut Call<'_>, topic: BuiltinTopic) -> ReaderHandle {
        let limits = &call.ctx.limits;
        let max_samples = match topic {
            BuiltinTopic::Participant => limits.max_participants + limits.max_unvalidated_participants,
            _ => limits.default_max_instances,
        };
        let bounds = CacheLimits {
            depth: Some(1),
            max_samples,
            // Each known entity may have replaced a departed one whose last change is not taken
            // yet.
            max_instances: 2 * max_samples,
            max_samples_per_instance: usize::MAX,
        };
        let cache = ReaderCache::new(bounds, limits.endpoint_memory_bytes);
        let data = Box::new(SubscriptionData {
            guid: Guid { prefix: call.ctx.header.prefix, entity_id: topic.reader_id() },
            participant: Guid::new(call.ctx.header.prefix, EntityId::PARTICIPANT),
            topic_name: topic.name().to_string(),
            qos: BuiltinTopic::reader_qos(),
            ..SubscriptionData::default()
        });
        let index = call.endpoints.readers.vacant();
        let handle = ReaderHandle { index, generation: call.endpoints.readers.generation(index) };
        let mut reader = Reader::new(handle, data, true, Some(Box::new(super::EndpointKey)), cache, call.ctx);
        reader.is_enabled = true;
        call.endpoints.readers.insert(reader);
        self.fill_builtin_reader(call, topic, index);
        self.builtin_topics.readers.push((topic, index));
        handle
    }

    /// Removes a deleted reader. Returns whether it was a reader of a builtin topic.
    pub(crate) fn remove_builtin_reader(&mut self, index: u32) -> bool {
        let known = self.builtin_topics.readers.iter().position(|(_, reader)| *reader == index);
        let Some(position) = known else { return false };
        self.builtin_topics.readers.swap_remove(position);
        if !self.builtin_topics.has_reader(BuiltinTopic::Topic) {
            self.builtin_topics.topics.clear();
        }
        true
    }

    /// Fills a new reader with the known entities (TRANSIENT_LOCAL).
    fn fill_builtin_reader(&mut self, call: &mut Call<'_>, topic: BuiltinTopic, index: u32) {
        let Self { remotes, publications, subscriptions, builtin_topics, .. } = self;
        let Endpoints { readers, .. } = call.endpoints;
        let Some(reader) = readers.get_mut(index) else { return };
        let mut insert = |entity: Guid, payload: Vec<u8>| {
            let change = Change::of(topic, entity, ChangeKind::Alive, &payload);
            reader.insert(call.now, call.ctx, change.writer, change.kind, change.key_hash, change.payload);
        };
        match topic {
            BuiltinTopic::Participant => {
                remotes.iter().for_each(|(_, remote)| insert(remote.data.guid, remote.data.to_bytes()));
            }
            BuiltinTopic::Publication => publications.values().for_each(|data| insert(data.guid, data.to_bytes())),
            BuiltinTopic::Subscription => subscriptions.values().for_each(|data| insert(data.guid, data.to_bytes())),
            BuiltinTopic::Topic => {
                let is_counted = builtin_topics.has_reader(BuiltinTopic::Topic);
                let mut seen = BTreeSet::new();
                let prefix = call.ctx.header.prefix;
                let written = publications.values().map(|data| (&data.topic_name, &data.type_name, data.guid));
                let read = subscriptions.values().map(|data| (&data.topic_name, &data.type_name, data.guid));
                for (topic_name, type_name, guid) in written.chain(read) {
                    let from_writer = guid.entity_id.is_writer();
                    if !is_counted {
                        let counted = builtin_topics.topics.entry((topic_name.clone(), type_name.clone())).or_default();
                        counted.count += 1;
                        counted.from_writer |= from_writer;
                    }
                    if !seen.insert((topic_name, type_name)) {
                        continue;
                    }
                    let payload = if from_writer {
                        publications.get(&guid).map(|data| data.to_bytes())
                    } else {
                        subscriptions.get(&guid).map(|data| data.to_bytes())
                    };
                    let writer = Guid { prefix, entity_id: topic.writer_id() };
                    let key_hash = topic_key(topic_name, type_name);
                    reader.insert(
                        call.now,
                        call.ctx,
                        writer,
                        ChangeKind::Alive,
                        key_hash,
                        &payload.unwrap_or_default(),
                    );
                }
            }
        }
    }
}

impl BuiltinTopics {
    fn deliver(&mut self, call: &mut Call<'_>, change: &Change<'_>) {
        for (_, index) in self.readers.iter().filter(|(topic, _)| *topic == change.topic) {
            if let Some(reader) = call.endpoints.readers.get_mut(*index) {
                reader.insert(call.now, call.ctx, change.writer, change.kind, change.key_hash, change.payload);
            }
        }
    }

    /// Presents a participant that was discovered or changed its announcement.
    pub(super) fn present_participant(&mut self, call: &mut Call<'_>, remote: &Remote) {
        if self.has_reader(BuiltinTopic::Participant) {
            let payload = remote.data.to_bytes();
            let change = Change::of(BuiltinTopic::Participant, remote.data.guid, ChangeKind::Alive, &payload);
            self.deliver(call, &change);
        }
    }

    /// Reports the departure of a participant.
    pub(super) fn withdraw_participant(&mut self, call: &mut Call<'_>, remote: &Remote, departure: Departure) {
        self.deliver(call, &Change::of(BuiltinTopic::Participant, remote.data.guid, departure.change(), &[]));
    }

    /// Presents a remote writer that was discovered or changed its policies.
    pub(super) fn present_publication(&mut self, call: &mut Call<'_>, data: &PublicationData) {
        let (publication, topic) = (BuiltinTopic::Publication, BuiltinTopic::Topic);
        if !self.has_reader(publication) && !self.has_reader(topic) {
            return;
        }
        let payload = data.to_bytes();
        self.deliver(call, &Change::of(publication, data.guid, ChangeKind::Alive, &payload));
        self.present_topic(call, (&data.topic_name, &data.type_name), true, &payload);
    }

    /// Presents a remote reader that was discovered or changed its policies.
    pub(super) fn present_subscription(&mut self, call: &mut Call<'_>, data: &SubscriptionData) {
        let (subscription, topic) = (BuiltinTopic::Subscription, BuiltinTopic::Topic);
        if !self.has_reader(subscription) && !self.has_reader(topic) {
            return;
        }
        let payload = data.to_bytes();
        self.deliver(call, &Change::of(subscription, data.guid, ChangeKind::Alive, &payload));
        self.present_topic(call, (&data.topic_name, &data.type_name), false, &payload);
    }

    /// Reports the departure of a remote writer.
    pub(super) fn withdraw_publication(&mut self, call: &mut Call<'_>, data: &PublicationData, departure: Departure) {
        self.deliver(call, &Change::of(BuiltinTopic::Publication, data.guid, departure.change(), &[]));
        self.withdraw_topic(call, (&data.topic_name, &data.type_name), departure);
    }

    /// Reports the departure of a remote reader.
    pub(super) fn withdraw_subscription(&mut self, call: &mut Call<'_>, data: &SubscriptionData, departure: Departure) {
        self.deliver(call, &Change::of(BuiltinTopic::Subscription, data.guid, departure.change(), &[]));
        self.withdraw_topic(call, (&data.topic_name, &data.type_name), departure);
    }

    /// Adds an endpoint to its topic. The topic is presented for the first endpoint and for the
    /// first writer.
    fn present_topic(
        &mut self,
        call: &mut Call<'_>,
        (topic_name, type_name): (&str, &str),
        is_writer: bool,
        payload: &[u8],
    ) {
        if !self.has_reader(BuiltinTopic::Topic) {
            return;
        }
        let counted = self.topics.entry((topic_name.to_string(), type_name.to_string())).or_default();
        counted.count += 1;
        let is_update = counted.count == 1 || (is_writer && !counted.from_writer);
        counted.from_writer |= is_writer;
        if is_update {
            let change = topic_change(call.ctx, (topic_name, type_name), ChangeKind::Alive, payload);
            self.deliver(call, &change);
        }
    }

    /// Removes an endpoint from its topic.
    pub(super) fn withdraw_topic(
        &mut self,
        call: &mut Call<'_>,
        (topic_name, type_name): (&str, &str),
        departure: Departure,
    ) {
        if !self.has_reader(BuiltinTopic::Topic) {
            return;
        }
        let key = (topic_name.to_string(), type_name.to_string());
        let Some(counted) = self.topics.get_mut(&key) else { return };
        counted.count -= 1;
        if counted.count == 0 {
            self.topics.remove(&key);
            let change = topic_change(call.ctx, (topic_name, type_name), departure.change(), &[]);
            self.deliver(call, &change);
        }
    }
}

/// Returns the change of a topic, which is derived locally and not announced.
fn topic_change<'a>(ctx: &Context, names: (&str, &str), kind: ChangeKind, payload: &'a [u8]) -> Change<'a> {
    let topic = BuiltinTopic::Topic;
    let writer = Guid { prefix: ctx.header.prefix, entity_id: topic.writer_id() };
    Change { topic, kind, writer, key_hash: topic_key(names.0, names.1), payload }
}
