//! Endpoint discovery protocol (RTPS 2.5 §8.5.4): writers and readers announced over reliable
//! builtin topics, by the state machines of user data.

use super::footprint::Footprint;
use super::{
    Departure, PARTICIPANT_MESSAGES, Remote, SEDP_PUBLICATIONS, SEDP_PUBLICATIONS_SECURE, SEDP_SUBSCRIPTIONS,
    SEDP_SUBSCRIPTIONS_SECURE, review,
};
use crate::cache::{ChangeKind, InstanceHandle, KeyHash, ReadCursor, SampleRef, Selector};
use crate::context::Context;
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::error::WriteError;
use crate::multicast_group::MulticastReachability;
use crate::presentation::SetPosition;
use crate::reader::WriterTraits;
use crate::writer::{Directed, ReaderTraits, Write};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::{Durability, Liveliness, Presentation, ReliabilityKind, Terms};
use takt_wire::{Duration, EntityId, Guid, GuidPrefix, SequenceNumber, Timestamp};

/// Announcement of a remote endpoint.
enum Announcement<T> {
    Announced(Guid, Box<T>),
    Gone(Guid),
    Malformed,
}

fn parse_announcement<T>(sample: &SampleRef<'_>, parse: impl FnOnce(&[u8]) -> Option<(Guid, T)>) -> Announcement<T> {
    if sample.info.valid_data {
        return parse(sample.payload)
            .map_or(Announcement::Malformed, |(guid, data)| Announcement::Announced(guid, Box::new(data)));
    }
    // Without a payload, the key hash is the GUID: 16 bytes are their own hash (RTPS 2.5 §9.6.4.8).
    let by_hash = Guid::from_bytes(sample.info.instance_handle.0);
    Announcement::Gone(PublicationData::parse_key(sample.payload).unwrap_or(by_hash))
}

/// Consequence of a changed announcement of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Rediscover the endpoint: it is another one, or differs in an immutable policy
    /// (DDS 1.4 §2.2.3).
    Rediscover,
    /// Re-evaluate the matches of the endpoint.
    Rematch,
    /// Keep all matches.
    Refresh,
}

/// Compares two announcements: first the immutable terms, then the other terms of the match.
fn step<F: PartialEq, J: PartialEq>(from: (F, J), to: (F, J)) -> Step {
    match (from.0 == to.0, from.1 == to.1) {
        (false, _) => Step::Rediscover,
        (true, false) => Step::Rematch,
        (true, true) => Step::Refresh,
    }
}

fn writer_terms(data: &PublicationData) -> (impl PartialEq + '_, impl PartialEq + '_) {
    let names = (&data.topic_name, &data.type_name, &data.type_information, &data.presentation);
    let terms = (&data.partition, &data.unicast, Terms::changeable(&data.qos), &data.refusal);
    ((names, Terms::immutable(&data.qos)), terms)
}

fn reader_terms(data: &SubscriptionData) -> (impl PartialEq + '_, impl PartialEq + '_) {
    let names = (&data.topic_name, &data.type_name, &data.type_information, &data.presentation);
    let terms = (&data.partition, &data.unicast, Terms::changeable(&data.qos), &data.refusal);
    ((names, Terms::immutable(&data.qos), &data.qos.type_consistency), terms)
}

/// Change of an instance of a builtin topic.
pub(super) struct BuiltinChange<'a> {
    pub(super) kind: ChangeKind,
    pub(super) key_hash: KeyHash,
    pub(super) payload: &'a [u8],
}

impl Discovery {
    pub(crate) fn add_builtin_reader(&mut self, call: &mut Call<'_>, writer: u32, guid: Guid, remote: u32) {
        let Some(path) = self.remotes.get(remote).map(|remote| remote.metatraffic) else { return };
        if let Some(writer) = call.endpoints.writers.get_mut(writer) {
            let wants_history = writer.data.qos.durability != Durability::Volatile;
            let reliable = writer.data.qos.reliability.kind == ReliabilityKind::Reliable;
            let traits = ReaderTraits {
                reliable,
                wants_history,
                drops_repeats: false,
                path,
                reachability: MulticastReachability::default(),
            };
            writer.add_proxy(call.now, call.ctx, guid, &traits);
        }
    }

    pub(crate) fn add_builtin_writer(&mut self, call: &mut Call<'_>, reader: u32, guid: Guid, remote: u32) {
        let Some(remote) = self.remotes.get(remote) else { return };
        let vendor = remote.data.vendor_id;
        let (path, liveliness) = (remote.metatraffic, Liveliness::default());
        if let Some(local) = call.endpoints.readers.get_mut(reader) {
            let durability = local.data.qos.durability;
            let lifespan = Duration::INFINITE;
            let traits = WriterTraits {
                reliable: local.data.qos.reliability.kind == ReliabilityKind::Reliable,
                durability,
                liveliness,
                strength: 0,
                lifespan,
                path,
                vendor,
                presentation: Presentation::default(),
                publisher: None,
                missing_group_info: None,
                is_service: false,
            };
            let proxy = local.add_proxy(call.now, call.ctx, guid, &traits);
            call.endpoints.sources.entry(guid).or_default().push((reader, proxy));
        }
    }

    /// Handles samples of one of the two readers of publications.
    pub(super) fn take_publications(&mut self, call: &mut Call<'_>, reader: u32) {
        while let Some((announcement, instance)) =
            call.endpoints.take_builtin(call.ctx, reader, EntityId::is_writer, |sample| {
                parse_announcement(sample, |bytes| PublicationData::parse(bytes).ok().map(|data| (data.guid, data)))
            })
        {
            let topic_name = match &announcement {
                Announcement::Announced(_, data) => Some(&data.topic_name),
                Announcement::Gone(guid) => self.publications.get(guid).map(|data| &data.topic_name),
                Announcement::Malformed => None,
            };
            let is_unprotected = topic_name.is_some_and(|name| call.ctx.is_unprotected(reader, name));
            match announcement {
                _ if is_unprotected => call.ctx.counters.unprotected_announcements += 1,
                Announcement::Announced(guid, data) => {
                    self.conclude_departure_of(call, guid);
                    self.handle_publication(call, data);
                }
                Announcement::Gone(guid) => self.depart(call, guid, Departure::Deleted),
                Announcement::Malformed => call.ctx.counters.malformed_discovery += 1,
            }
            if is_unprotected || !self.publications.contains_key(&Guid::from_bytes(instance.0)) {
                call.endpoints.abandon(reader, instance);
            }
        }
    }

    /// Handles samples of one of the two readers of subscriptions.
    pub(super) fn take_subscriptions(&mut self, call: &mut Call<'_>, reader: u32) {
        while let Some((announcement, instance)) =
            call.endpoints.take_builtin(call.ctx, reader, EntityId::is_reader, |sample| {
                parse_announcement(sample, |bytes| SubscriptionData::parse(bytes).ok().map(|data| (data.guid, data)))
            })
        {
            let topic_name = match &announcement {
                Announcement::Announced(_, data) => Some(&data.topic_name),
                Announcement::Gone(guid) => self.subscriptions.get(guid).map(|data| &data.topic_name),
                Announcement::Malformed => None,
            };
            let is_unprotected = topic_name.is_some_and(|name| call.ctx.is_unprotected(reader, name));
            match announcement {
                _ if is_unprotected => call.ctx.counters.unprotected_announcements += 1,
                Announcement::Announced(_, data) => self.handle_subscription(call, data),
                Announcement::Gone(guid) => self.handle_deleted_subscription(call, guid),
                Announcement::Malformed => call.ctx.counters.malformed_discovery += 1,
            }
            if is_unprotected || !self.subscriptions.contains_key(&Guid::from_bytes(instance.0)) {
                call.endpoints.abandon(reader, instance);
            }
        }
    }

    pub(super) fn handle_publication(&mut self, call: &mut Call<'_>, data: Box<PublicationData>) {
        self.reviews.confirm(review::PUBLICATIONS, data.guid);
        if self.ignored.has_writer(&data) {
            return;
        }
        if let Some(known) = self.publications.get(&data.guid) {
            if **known == *data {
                return;
            }
            let relocated = PublicationData {
                unicast: data.unicast.clone(),
                multicast: data.multicast.clone(),
                ..(**known).clone()
            };
            if relocated == *data
                && self.recount_endpoint(call.ctx, data.guid.prefix, known.footprint(), data.footprint())
            {
                self.update_publication_locators(call, data);
                return;
            }
        }
        let former = self.publications.remove(&data.guid);
        if let Some(former) = &former {
            self.uncount_endpoint(data.guid.prefix, former.footprint());
        }
        let has_room = self.count_endpoint(call.ctx, data.guid.prefix, data.footprint(), self.publications.len());
        let step = former.as_ref().map_or(Step::Rediscover, |former| step(writer_terms(former), writer_terms(&data)));
        if !has_room || step == Step::Rediscover {
            call.endpoints.unmatch_writer(call.now, call.ctx, data.guid);
            self.type_checks.remove_endpoint(call.ctx, data.guid);
        }
        if !has_room {
            if let Some(former) = former {
                self.builtin_topics.withdraw_publication(call, &former, Departure::Lost);
            }
            return;
        }
        match step {
            Step::Rediscover | Step::Rematch => self.match_publication(call, &data),
            Step::Refresh => self.refresh_publication(call, &data),
        }
        self.builtin_topics.present_publication(call, &data);
        if let Some(former) = former {
            let names = (&*former.topic_name, &*former.type_name);
            self.builtin_topics.withdraw_topic(call, names, Departure::Deleted);
        }
        self.schedule_introduction(call.now, call.ctx, data.guid.prefix);
        self.publications.insert(data.guid, data);
    }

    pub(super) fn handle_subscription(&mut self, call: &mut Call<'_>, data: Box<SubscriptionData>) {
        self.reviews.confirm(review::SUBSCRIPTIONS, data.guid);
        if self.ignored.has_reader(&data) {
            return;
        }
        if let Some(known) = self.subscriptions.get(&data.guid) {
            if **known == *data {
                return;
            }
            let relocated = SubscriptionData {
                unicast: data.unicast.clone(),
                multicast: data.multicast.clone(),
                ..(**known).clone()
            };
            if relocated == *data
                && self.recount_endpoint(call.ctx, data.guid.prefix, known.footprint(), data.footprint())
            {
                self.update_subscription_locators(call, data);
                return;
            }
        }
        let former = self.subscriptions.remove(&data.guid);
        if let Some(former) = &former {
            self.uncount_endpoint(data.guid.prefix, former.footprint());
        }
        let has_room = self.count_endpoint(call.ctx, data.guid.prefix, data.footprint(), self.subscriptions.len());
        let step = former.as_ref().map_or(Step::Rediscover, |former| step(reader_terms(former), reader_terms(&data)));
        if !has_room || step == Step::Rediscover {
            call.endpoints.unmatch_reader(call.ctx, data.guid);
            self.type_checks.remove_endpoint(call.ctx, data.guid);
        }
        if !has_room {
            if let Some(former) = former {
                self.builtin_topics.withdraw_subscription(call, &former, Departure::Lost);
            }
            return;
        }
        if step != Step::Refresh {
            self.match_subscription(call, &data);
        }
        if former.as_ref().is_some_and(|former| former.content_filter != data.content_filter) {
            call.endpoints.refilter(call.ctx, &data);
        }
        self.builtin_topics.present_subscription(call, &data);
        if let Some(former) = former {
            let names = (&*former.topic_name, &*former.type_name);
            self.builtin_topics.withdraw_topic(call, names, Departure::Deleted);
        }
        self.schedule_introduction(call.now, call.ctx, data.guid.prefix);
        self.subscriptions.insert(data.guid, data);
    }

    /// Adopts changed locators of a remote writer. The state of its matches stays.
    fn update_publication_locators(&mut self, call: &mut Call<'_>, data: Box<PublicationData>) {
        self.builtin_topics.present_publication(call, &data);
        let prefix = data.guid.prefix;
        self.publications.insert(data.guid, data);
        self.redirect_endpoints(call.ctx, call.endpoints, prefix);
        self.match_unreachable(call, prefix);
    }

    /// Adopts changed locators of a remote reader. The state of its matches stays.
    fn update_subscription_locators(&mut self, call: &mut Call<'_>, data: Box<SubscriptionData>) {
        self.builtin_topics.present_subscription(call, &data);
        let prefix = data.guid.prefix;
        self.subscriptions.insert(data.guid, data);
        self.redirect_endpoints(call.ctx, call.endpoints, prefix);
        self.match_unreachable(call, prefix);
    }

    /// Reports whether the limits admit one more endpoint of `footprint` bytes, and counts it.
    /// `known` is the number of endpoints of its kind.
    fn count_endpoint(&mut self, ctx: &mut Context, prefix: GuidPrefix, footprint: usize, known: usize) -> bool {
        let limits = &ctx.limits;
        let remote = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get_mut(index));
        let fits = |remote: &&mut Remote| {
            known < limits.default_max_instances
                && remote.endpoints < limits.max_endpoints_per_participant
                && remote.footprint + footprint <= limits.max_discovery_bytes_per_participant
                && self.discovery_bytes + footprint <= limits.max_discovery_bytes
        };
        match remote.filter(fits) {
            Some(remote) => {
                remote.endpoints += 1;
                remote.footprint += footprint;
                self.discovery_bytes += footprint;
                true
            }
            None => {
                ctx.counters.refused_remote_entities += 1;
                false
            }
        }
    }

    /// Updates the footprint of an endpoint. Returns whether the limits admit it.
    fn recount_endpoint(&mut self, ctx: &mut Context, prefix: GuidPrefix, before: usize, after: usize) -> bool {
        let limits = &ctx.limits;
        let Some(remote) = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get_mut(index)) else {
            return false;
        };
        let (own, all) = (remote.footprint - before + after, self.discovery_bytes - before + after);
        let fits = own <= limits.max_discovery_bytes_per_participant && all <= limits.max_discovery_bytes;
        if fits {
            (remote.footprint, self.discovery_bytes) = (own, all);
        }
        fits
    }

    fn uncount_endpoint(&mut self, prefix: GuidPrefix, footprint: usize) {
        let remote = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get_mut(index));
        if let Some(remote) = remote {
            remote.endpoints -= 1;
            remote.footprint -= footprint;
            self.discovery_bytes -= footprint;
        }
    }

    pub(super) fn remove_publication(&mut self, call: &mut Call<'_>, guid: Guid) -> Option<Box<PublicationData>> {
        let data = self.publications.remove(&guid)?;
        self.uncount_endpoint(guid.prefix, data.footprint());
        call.endpoints.unmatch_writer(call.now, call.ctx, guid);
        self.type_checks.remove_endpoint(call.ctx, guid);
        Some(data)
    }

    pub(super) fn remove_subscription(
        &mut self,
        ctx: &mut Context,
        endpoints: &mut Endpoints,
        guid: Guid,
    ) -> Option<Box<SubscriptionData>> {
        let data = self.subscriptions.remove(&guid)?;
        self.uncount_endpoint(guid.prefix, data.footprint());
        endpoints.unmatch_reader(ctx, guid);
        self.type_checks.remove_endpoint(ctx, guid);
        Some(data)
    }

    /// Removes a writer that its participant has deleted.
    pub(super) fn handle_deleted_publication(&mut self, call: &mut Call<'_>, guid: Guid) {
        if let Some(data) = self.remove_publication(call, guid) {
            self.builtin_topics.withdraw_publication(call, &data, Departure::Deleted);
        }
    }

    /// Removes a reader that its participant has deleted.
    pub(super) fn handle_deleted_subscription(&mut self, call: &mut Call<'_>, guid: Guid) {
        if let Some(data) = self.remove_subscription(call.ctx, call.endpoints, guid) {
            self.builtin_topics.withdraw_subscription(call, &data, Departure::Deleted);
        }
    }

    /// Removes all endpoints of a participant, builtin ones included.
    pub(crate) fn remove_endpoints_of(&mut self, call: &mut Call<'_>, prefix: GuidPrefix, departure: Departure) {
        let all = Guid::from_bytes([0; 16]).entity_id;
        let from = Guid { prefix, entity_id: all };
        while let Some((&guid, _)) = self.publications.range(from..).next().filter(|(guid, _)| guid.prefix == prefix) {
            if let Some(data) = self.publications.remove(&guid) {
                self.builtin_topics.withdraw_publication(call, &data, departure);
            }
        }
        while let Some((&guid, _)) = self.subscriptions.range(from..).next().filter(|(guid, _)| guid.prefix == prefix) {
            if let Some(data) = self.subscriptions.remove(&guid) {
                self.builtin_topics.withdraw_subscription(call, &data, departure);
            }
        }
        self.type_checks.remove_participant(call.ctx, prefix);
        let mut matched_readers = BTreeSet::new();
        while let Some((&guid, _)) =
            call.endpoints.sources.range(from..).next().filter(|(guid, _)| guid.prefix == prefix)
        {
            for (reader, proxy) in call.endpoints.sources.remove(&guid).unwrap_or_default() {
                if let Some(of) = call.endpoints.readers.get_mut(reader) {
                    of.detach(call.now, call.ctx, proxy);
                    matched_readers.insert(reader);
                }
            }
        }
        for reader in matched_readers {
            if let Some(reader) = call.endpoints.readers.get_mut(reader) {
                let last = Guid::new(prefix, EntityId([u8::MAX; 4]));
                reader.remove_writers(call.now, call.ctx, &(Guid::new(prefix, EntityId::UNKNOWN)..=last));
            }
        }
        for (_, writer) in call.endpoints.writers.iter_mut() {
            writer.remove_proxies_of(call.ctx, prefix);
        }
        self.unreachable.retain(|(remote, _)| remote.prefix != prefix);
        self.reviews.remove(prefix);
    }

    /// Announces a local writer to all participants.
    pub(crate) fn announce_publication(&mut self, call: &mut Call<'_>, data: &PublicationData) {
        let sedp = call.ctx.sedp_of_publications(&data.topic_name);
        let payload = data.to_bytes();
        let change = BuiltinChange { kind: ChangeKind::Alive, key_hash: data.guid.to_bytes(), payload: &payload };
        self.write_builtin(call, sedp, change);
        let announced = call.endpoints.writers.get(sedp).map(|sedp| sedp.history.last_sn());
        let index = call.endpoints.writer_ids.get(&data.guid.entity_id).copied();
        if let (Some(announced), Some(writer)) =
            (announced, index.and_then(|index| call.endpoints.writers.get_mut(index)))
        {
            writer.announced = announced;
        }
    }

    /// Announces a local reader to all participants.
    pub(crate) fn announce_subscription(&mut self, call: &mut Call<'_>, data: &SubscriptionData) {
        let sedp = call.ctx.sedp_of_subscriptions(&data.topic_name);
        let payload = data.to_bytes();
        let change = BuiltinChange { kind: ChangeKind::Alive, key_hash: data.guid.to_bytes(), payload: &payload };
        self.write_builtin(call, sedp, change);
    }

    /// Announces the deletion of a local endpoint to all participants.
    pub(crate) fn retract_endpoint(&mut self, call: &mut Call<'_>, builtin_writer: u32, guid: Guid) {
        let key = PublicationData::key_payload(guid);
        let kind = ChangeKind::DisposedUnregistered;
        let change = BuiltinChange { kind, key_hash: guid.to_bytes(), payload: &key };
        self.write_builtin(call, builtin_writer, change);
    }

    pub(super) fn write_builtin(&mut self, call: &mut Call<'_>, writer: u32, change: BuiltinChange<'_>) {
        let BuiltinChange { kind, key_hash, payload } = change;
        let is_sedp = matches!(
            writer,
            SEDP_PUBLICATIONS | SEDP_SUBSCRIPTIONS | SEDP_PUBLICATIONS_SECURE | SEDP_SUBSCRIPTIONS_SECURE
        );
        if self.static_endpoints.is_some() && is_sedp {
            return;
        }
        let write = Write {
            kind,
            key_hash,
            source_timestamp: Timestamp::INVALID,
            payload_len: payload.len(),
            directed: Directed::default(),
            position: SetPosition::default(),
            in_set: false,
            origin: None,
        };
        let last_probe =
            if writer == PARTICIPANT_MESSAGES { call.ctx.multicast_groups.last_probe } else { SequenceNumber::ZERO };
        let Some(writer) = call.endpoints.writers.get_mut(writer) else { return };
        writer.skip_to(last_probe);
        let result = writer.write(call.now, call.ctx, &write, |slot| {
            slot.copy_from_slice(payload);
            Some(payload.len())
        });
        if matches!(result, Err(WriteError::WouldBlock | WriteError::Refused(_))) {
            call.ctx.counters.refused_local_announcements += 1;
        }
    }
}

impl Endpoints {
    /// Releases an instance, so that a participant that invents endpoints cannot exhaust them.
    pub(super) fn abandon(&mut self, reader: u32, instance: InstanceHandle) {
        if let Some(reader) = self.readers.get_mut(reader) {
            reader.cache.abandon(instance);
        }
    }

    /// Handles one sample of a builtin reader. A participant may announce only its own endpoints,
    /// of the reader's kind, and no builtin ones, which SPDP announces.
    fn take_builtin<T>(
        &mut self,
        ctx: &mut Context,
        reader: u32,
        is_right_kind: impl Fn(EntityId) -> bool,
        read: impl FnOnce(&SampleRef<'_>) -> Announcement<T>,
    ) -> Option<(Announcement<T>, InstanceHandle)> {
        let cache = &mut self.readers.get_mut(reader)?.cache;
        let sample = cache.next(Selector::TAKE, None, &mut ReadCursor::default())?;
        ctx.work.unit();
        let (from, instance) = (sample.info.publication.prefix, sample.info.instance_handle);
        let announcement = read(&sample);
        let is_credible =
            |guid: Guid| guid.prefix == from && !guid.entity_id.is_builtin() && is_right_kind(guid.entity_id);
        let announcement = match announcement {
            Announcement::Announced(guid, _) | Announcement::Gone(guid) if !is_credible(guid) => {
                Announcement::Malformed
            }
            announcement => announcement,
        };
        Some((announcement, instance))
    }
}

impl Context {
    /// Reports whether an endpoint was announced without protection although its topic protects
    /// discovery.
    fn is_unprotected(&self, reader: u32, topic_name: &str) -> bool {
        matches!(reader, SEDP_PUBLICATIONS | SEDP_SUBSCRIPTIONS) && self.protects_discovery(topic_name)
    }

    /// Returns the SEDP writer that announces local writers of a topic.
    pub(crate) fn sedp_of_publications(&self, topic_name: &str) -> u32 {
        if self.protects_discovery(topic_name) { SEDP_PUBLICATIONS_SECURE } else { SEDP_PUBLICATIONS }
    }

    /// Returns the SEDP writer that announces local readers of a topic.
    pub(crate) fn sedp_of_subscriptions(&self, topic_name: &str) -> u32 {
        if self.protects_discovery(topic_name) { SEDP_SUBSCRIPTIONS_SECURE } else { SEDP_SUBSCRIPTIONS }
    }
}
