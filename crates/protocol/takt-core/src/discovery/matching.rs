//! Matching of local with remote endpoints (DDS 1.4 §2.2.3), and the reasons of refusals.

use super::local_peers::is_memory;
use super::multicast::has_own_locators;
use super::reachability::MAX_MESSAGE;
use super::type_checks::Compatibility;
use crate::context::Context;
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::event::Event;
use crate::locator_kinds::LocatorKinds;
use crate::multicast_group::MulticastReachability;
use crate::participant::is_durability_service;
use crate::path::Path;
use crate::presentation::missing_group_info;
use crate::reader::{Reader, WriterTraits};
use crate::status::{IncompatibleQosStatus, InconsistentTopicStatus};
use crate::time::Instant;
use crate::writer::{ReaderTraits, Writer};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use takt_wire::compat::{self, Incompatibility, PolicyId};
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::partition::partitions_match;
use takt_wire::qos::{Durability, Partition, ReliabilityKind};
use takt_wire::{Guid, GuidPrefix, Locator, MESSAGE_LEN_MIN, VendorId};

/// Maximum number of pairs that are tried again when addresses change.
const UNREACHABLE_MAX: usize = 1024;

/// Reason for which a local and a remote endpoint of one topic are not matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The type names differ.
    Type {
        /// Type name of the writer.
        writer: String,
        /// Type name of the reader.
        reader: String,
    },
    /// By entity id (RTPS 2.5 §9.3.1.2) one endpoint has a key, and the other has none.
    Keys {
        /// Whether the endpoint with a key is the writer.
        writer_has_key: bool,
    },
    /// The type names are equal, but the reader's type is not assignable from the writer's, or
    /// TYPE_CONSISTENCY_ENFORCEMENT forbids it.
    TypesDiffer {
        /// Description of the difference.
        reason: String,
    },
    /// The endpoints have no partition in common.
    Partition {
        /// Partitions of the writer.
        writer: Vec<String>,
        /// Partitions of the reader.
        reader: Vec<String>,
    },
    /// The writer offers less than the reader requests.
    Qos(Vec<Incompatibility>),
    /// The SDN controller of the network refuses the pair. The announcement of the remote endpoint
    /// contained a reason, and was made incompatible by the policies that controllers change.
    Network {
        /// Reason given by the controller: at most 200 octets, without control characters.
        reason: String,
    },
    /// DDS Security does not allow the pair.
    Security {
        /// Failed check (certificate, permissions, governance or masks), and its side.
        reason: String,
    },
    /// No locator of the remote endpoint is reachable.
    Unreachable,
}

/// Status of an endpoint that a refused match changes.
enum RefusalStatus {
    IncompatibleQos,
    InconsistentTopic,
}

impl RefusalReason {
    /// Counts the refusal in the status of the endpoint that it changes, and returns which one.
    fn count(&self, qos: &mut IncompatibleQosStatus, topic: &mut InconsistentTopicStatus) -> Option<RefusalStatus> {
        match self {
            Self::Qos(list) => qos.refused(list),
            Self::Network { reason } => qos.refused_by_network(reason),
            Self::Type { .. } | Self::Keys { .. } | Self::TypesDiffer { .. } => {
                topic.total_count += 1;
                topic.total_count_change += 1;
                return Some(RefusalStatus::InconsistentTopic);
            }
            Self::Partition { .. } | Self::Unreachable | Self::Security { .. } => return None,
        }
        Some(RefusalStatus::IncompatibleQos)
    }

    /// Counts the refusal in the statuses of a writer, and notifies its application of a change.
    fn count_at_writer(&self, ctx: &mut Context, writer: &mut Writer) {
        match self.count(&mut writer.statuses.incompatible, &mut writer.statuses.inconsistent_topic) {
            Some(RefusalStatus::IncompatibleQos) => ctx.notify(Event::OfferedIncompatibleQos(writer.handle)),
            Some(RefusalStatus::InconsistentTopic) => ctx.notify(Event::WriterInconsistentTopic(writer.handle)),
            None => {}
        }
    }

    /// Counts the refusal in the statuses of a reader, and notifies its application of a change.
    fn count_at_reader(&self, ctx: &mut Context, reader: &mut Reader) {
        match self.count(&mut reader.statuses.incompatible, &mut reader.statuses.inconsistent_topic) {
            Some(RefusalStatus::IncompatibleQos) => ctx.notify(Event::RequestedIncompatibleQos(reader.handle)),
            Some(RefusalStatus::InconsistentTopic) => ctx.notify(Event::ReaderInconsistentTopic(reader.handle)),
            None => {}
        }
    }
}

/// Refused match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// GUID of the local endpoint.
    pub local: Guid,
    /// GUID of the remote endpoint.
    pub remote: Guid,
    /// Readable label of the remote participant: its name, host and process as far as it announces
    /// them ([`ParticipantData::label`](takt_wire::discovery::ParticipantData::label)).
    pub remote_participant: String,
    /// Topic of both endpoints.
    pub topic_name: String,
    /// Reason of the refusal.
    pub reason: RefusalReason,
}

impl Refusal {
    /// Returns the writer of the pair.
    #[must_use]
    pub fn writer(&self) -> Guid {
        writer_of(self.local, self.remote)
    }

    /// Returns the reader of the pair.
    #[must_use]
    pub fn reader(&self) -> Guid {
        reader_of(self.local, self.remote)
    }
}

/// Returns the writer of a pair.
pub(super) fn writer_of(local: Guid, remote: Guid) -> Guid {
    if local.entity_id.is_writer() { local } else { remote }
}

/// Returns the reader of a pair.
pub(super) fn reader_of(local: Guid, remote: Guid) -> Guid {
    if local.entity_id.is_writer() { remote } else { local }
}

/// Writes topic, writer and reader, each with its participant.
pub(super) fn write_pair(
    f: &mut fmt::Formatter<'_>,
    topic_name: &str,
    local: Guid,
    remote: Guid,
    remote_participant: &str,
) -> fmt::Result {
    let roles = if local.entity_id.is_writer() { ["writer", "reader"] } else { ["reader", "writer"] };
    let [own, other] = roles;
    write!(f, "topic '{topic_name}': {own} {local} of this participant and {other} {remote} of {remote_participant} ")
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_pair(f, &self.topic_name, self.local, self.remote, &self.remote_participant)?;
        write!(f, "do not match: {}", self.reason)
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusalReason::Type { writer, reader } => {
                write!(f, "the writer's type is '{writer}', the reader's '{reader}'")
            }
            RefusalReason::Keys { writer_has_key: true } => {
                f.write_str("the writer's type has a key, the reader's has none")
            }
            RefusalReason::Keys { writer_has_key: false } => {
                f.write_str("the reader's type has a key, the writer's has none")
            }
            RefusalReason::TypesDiffer { reason } => write!(f, "their types differ: {reason}"),
            RefusalReason::Partition { writer, reader } => {
                write!(f, "the writer is in partitions {writer:?}, the reader in {reader:?}")
            }
            RefusalReason::Network { reason } => write!(f, "the network controller refuses the pair: {reason}"),
            RefusalReason::Security { reason } => write!(f, "security: {reason}"),
            RefusalReason::Unreachable => f.write_str("no announced locator of the remote endpoint is reachable"),
            RefusalReason::Qos(list) => {
                for (i, incompatibility) in list.iter().enumerate() {
                    write!(f, "{}{incompatibility}", if i == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
        }
    }
}

/// Returns the reason to refuse a pair of one topic; `None` if the endpoints are compatible.
pub(super) fn refusal_of(publication: &PublicationData, subscription: &SubscriptionData) -> Option<RefusalReason> {
    if publication.type_name != subscription.type_name {
        let (writer, reader) = (publication.type_name.clone(), subscription.type_name.clone());
        return Some(RefusalReason::Type { writer, reader });
    }
    if !compat::keys_match(publication.guid, subscription.guid) {
        return Some(RefusalReason::Keys { writer_has_key: publication.guid.entity_id.has_key() });
    }
    let (writer, reader): (&Partition, &Partition) = (&publication.partition, &subscription.partition);
    if !partitions_match(writer, reader) {
        return Some(RefusalReason::Partition { writer: writer.names.clone(), reader: reader.names.clone() });
    }
    let incompatibilities = compat::check(publication, subscription);
    // A controller's reason without the policies that a controller changes is ignored, so a forged
    // one prevents no match and hides no other cause.
    let is_changed = |one: &Incompatibility| matches!(one.policy, PolicyId::Ownership | PolicyId::LatencyBudget);
    let reason = publication.refusal.as_ref().or(subscription.refusal.as_ref());
    match reason.filter(|_| incompatibilities.iter().all(is_changed)) {
        _ if incompatibilities.is_empty() => None,
        Some(reason) => Some(RefusalReason::Network { reason: reason.clone() }),
        None => Some(RefusalReason::Qos(incompatibilities)),
    }
}

impl Discovery {
    /// Returns the path to an endpoint: by its own locators, otherwise those of its participant, at
    /// the validated address of the participant. The validated address is used even if no local
    /// interface leads there now. A participant that is reached by a connection gets everything by
    /// it. The locator has one of the kinds that the local endpoint uses.
    pub(super) fn path_to(
        &mut self,
        ctx: &mut Context,
        prefix: GuidPrefix,
        unicast: &[Locator],
        kinds: LocatorKinds,
    ) -> Option<Path> {
        let mut refused = 0;
        let memory_max = self.reachability.message_max(MAX_MESSAGE);
        let of_kinds = |announced: &[Locator]| -> Vec<Locator> {
            announced.iter().filter(|locator| kinds.has(locator)).copied().collect()
        };
        let path = if prefix == ctx.header.prefix {
            let memory_path = self.own_shared_memory_path(ctx);
            let default = &self.locators.default_unicast;
            let source = default.first().copied().unwrap_or(Locator::INVALID);
            let all = if unicast.is_empty() { default } else { unicast };
            let announced = &of_kinds(all)[..];
            if let Some(path) = memory_path.and_then(|memory_path| memory_path.path(announced, memory_max)) {
                return Some(path);
            }
            if announced.is_empty() && !all.is_empty() {
                return None;
            }
            let path = self.reachability.choose(announced, source, &mut refused);
            // Without any interface the own participant is still known.
            Some(path.unwrap_or(Path { locator: Locator::INVALID, max_message: MESSAGE_LEN_MIN }))
        } else {
            let remote = self.remotes.get(*self.remote_by_prefix.get(&prefix)?)?;
            let announced = &of_kinds(if unicast.is_empty() { &remote.data.default_unicast } else { unicast })[..];
            if let Some(path) =
                remote.shared_memory_path.and_then(|memory_path| memory_path.path(announced, memory_max))
            {
                return Some(path);
            }
            if remote.metatraffic.locator.is_tcp() {
                return kinds.has(&remote.metatraffic.locator).then_some(remote.metatraffic);
            }
            let is_validated =
                |locator: &&Locator| self.reachability.is_validated_by(&remote.metatraffic.locator, locator);
            let validated: Vec<_> = announced.iter().filter(is_validated).copied().collect();
            if validated.is_empty() {
                refused += announced.iter().filter(|locator| !is_memory(locator)).count() as u64;
            }
            let is_validated = || validated.first().map(|locator| Path { locator: *locator, ..remote.metatraffic });
            self.reachability.choose(&validated, remote.source, &mut refused).or_else(is_validated)
        };
        ctx.counters.refused_locators += refused;
        path
    }

    /// Returns the vendor of a participant, the local one included; [`VendorId::UNKNOWN`] if it is
    /// not known.
    #[must_use]
    pub(crate) fn vendor_of(&self, ctx: &Context, prefix: GuidPrefix) -> VendorId {
        if prefix == ctx.header.prefix {
            return VendorId::TAKT;
        }
        let remote = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get(index));
        remote.map_or(VendorId::UNKNOWN, |remote| remote.data.vendor_id)
    }

    /// Matches a new or changed writer with all local readers.
    pub(super) fn match_publication(&mut self, call: &mut Call<'_>, publication: &PublicationData) {
        let mut from = super::BUILTIN_ENDPOINTS;
        while let Some(index) = call.endpoints.readers.next_index(from) {
            from = index + 1;
            self.match_reader(call, index, publication);
        }
    }

    /// Updates a writer whose change does not affect matches.
    pub(crate) fn refresh_publication(&mut self, call: &mut Call<'_>, publication: &PublicationData) {
        let listeners = call.endpoints.sources.get(&publication.guid).cloned().unwrap_or_default();
        for (reader, _) in listeners {
            self.match_reader(call, reader, publication);
        }
    }

    /// Matches a new or changed reader with all local writers.
    pub(super) fn match_subscription(&mut self, call: &mut Call<'_>, subscription: &SubscriptionData) {
        let mut from = super::BUILTIN_ENDPOINTS;
        while let Some(index) = call.endpoints.writers.next_index(from) {
            from = index + 1;
            self.match_writer(call, index, subscription);
        }
    }

    /// Matches the endpoints of a participant again after its permissions have changed.
    pub(crate) fn match_again(&mut self, call: &mut Call<'_>, prefix: GuidPrefix) {
        let first = Guid { prefix, entity_id: Guid::from_bytes([0; 16]).entity_id };
        let publications: Vec<_> = self
            .publications
            .range(first..)
            .take_while(|(guid, _)| guid.prefix == prefix)
            .map(|(_, data)| data.clone())
            .collect();
        let subscriptions: Vec<_> = self
            .subscriptions
            .range(first..)
            .take_while(|(guid, _)| guid.prefix == prefix)
            .map(|(_, data)| data.clone())
            .collect();
        for publication in publications {
            call.ctx.work.unit();
            self.match_publication(call, &publication);
        }
        for subscription in subscriptions {
            call.ctx.work.unit();
            self.match_subscription(call, &subscription);
        }
    }

    /// Matches a new or changed local writer with all readers, local ones included.
    pub(crate) fn match_local_writer(&mut self, call: &mut Call<'_>, index: u32) {
        let remote = core::mem::take(&mut self.subscriptions);
        for subscription in remote.values() {
            self.match_writer(call, index, subscription);
        }
        self.subscriptions = remote;
        let mut from = super::BUILTIN_ENDPOINTS;
        let Some(publication) = call.endpoints.writers.get(index).map(|writer| writer.data.clone()) else { return };
        while let Some(reader) = call.endpoints.readers.next_index(from) {
            from = reader + 1;
            let Some(subscription) = call.endpoints.readers.get(reader).filter(|reader| reader.is_enabled) else {
                continue;
            };
            let subscription = subscription.data.clone();
            self.match_writer(call, index, &subscription);
            self.match_reader(call, reader, &publication);
        }
    }

    /// Matches a new or changed local reader with all writers, local ones included.
    pub(crate) fn match_local_reader(&mut self, call: &mut Call<'_>, index: u32) {
        let remote = core::mem::take(&mut self.publications);
        for publication in remote.values() {
            self.match_reader(call, index, publication);
        }
        self.publications = remote;
        let mut from = super::BUILTIN_ENDPOINTS;
        let Some(subscription) = call.endpoints.readers.get(index).map(|reader| reader.data.clone()) else { return };
        while let Some(writer) = call.endpoints.writers.next_index(from) {
            from = writer + 1;
            let Some(publication) = call.endpoints.writers.get(writer).filter(|writer| writer.is_enabled) else {
                continue;
            };
            let publication = publication.data.clone();
            self.match_reader(call, index, &publication);
            self.match_writer(call, writer, &subscription);
        }
    }

    /// Matches the reader with the writer if they are compatible. An already matched reader is
    /// updated, or unmatched if it became incompatible.
    pub(super) fn match_writer(&mut self, call: &mut Call<'_>, index: u32, subscription: &SubscriptionData) {
        call.ctx.work.steps(1);
        let Some(writer) = call.endpoints.writers.get(index).filter(|writer| writer.is_enabled) else { return };
        let is_builtin = writer.entity_id.is_builtin() || subscription.guid.entity_id.is_builtin();
        if writer.data.topic_name != subscription.topic_name || is_builtin {
            return;
        }
        let (is_matched, entity_id) = (writer.proxy_index(subscription.guid).is_some(), writer.entity_id);
        let mut reason = refusal_of(&writer.data, subscription);
        if reason.is_none() {
            reason = call.ctx.security_refusal_of_reader(call.now, entity_id, subscription);
        }
        let Some(writer) = call.endpoints.writers.get(index) else { return };
        if reason.is_none() {
            reason = match self.type_checks.compatibility(call.ctx, &writer.data, subscription) {
                Compatibility::Yes => None,
                Compatibility::Pending => return,
                Compatibility::No(difference) => Some(RefusalReason::TypesDiffer { reason: difference }),
            };
        }
        let (local, kinds) = (writer.data.guid, writer.kinds);
        let path = self.path_to(call.ctx, subscription.guid.prefix, &subscription.unicast, kinds);
        let vendor = self.vendor_of(call.ctx, subscription.guid.prefix);
        let reachability =
            |path| self.multicast_reachability_of(subscription.guid.prefix, has_own_locators(subscription), path);
        let reachability = path.as_ref().map_or_else(MulticastReachability::default, reachability);
        let Some(writer) = call.endpoints.writers.get_mut(index) else { return };
        match (reason, path) {
            (None, Some(path)) if is_matched => writer.redirect(call.ctx, subscription.guid, path, reachability),
            // The newly announced address is not validated yet.
            (None, None) if is_matched => {}
            (None, Some(path)) => {
                // DEVIATION(RTPS 2.5 §8.4.7.5): a reader that expects inline QoS gets the same
                // inline QoS as all others.
                let traits = ReaderTraits {
                    reliable: subscription.qos.reliability.kind == ReliabilityKind::Reliable,
                    wants_history: subscription.qos.durability != Durability::Volatile,
                    drops_repeats: vendor == VendorId::TAKT,
                    path,
                    reachability,
                };
                writer.add_proxy(call.now, call.ctx, subscription.guid, &traits);
                writer.set_filter(subscription.guid, subscription.content_filter.as_ref());
                // Reserved here, so that sending to all readers does not allocate.
                let readers = writer.proxies.len();
                call.ctx.destinations.reserve(readers.saturating_sub(call.ctx.destinations.len()));
                self.count_match_once_known(call, index, subscription.guid);
                self.remove_refusal(local, subscription.guid);
                self.begin_exchange(call.ctx, subscription.guid.prefix);
                self.secure_pair(call, entity_id, subscription.guid);
            }
            (reason, _) => {
                if is_matched {
                    writer.remove_proxy(call.ctx, subscription.guid);
                    if let Some(security) = call.ctx.security.as_mut() {
                        security.pair_unmatched(entity_id, subscription.guid);
                    }
                }
                let reason = reason.unwrap_or(RefusalReason::Unreachable);
                reason.count_at_writer(call.ctx, writer);
                self.record_refusal(call.ctx, local, subscription.guid, &subscription.topic_name, reason);
            }
        }
    }

    /// Matches the writer with the reader if they are compatible. An already matched writer is
    /// updated, or unmatched if it became incompatible.
    pub(super) fn match_reader(&mut self, call: &mut Call<'_>, index: u32, publication: &PublicationData) {
        call.ctx.work.steps(1);
        let Some(reader) = call.endpoints.readers.get(index).filter(|reader| reader.is_enabled) else { return };
        if reader.data.topic_name != publication.topic_name || reader.entity_id.is_builtin() {
            return;
        }
        let (matched, entity_id) = (call.endpoints.matched_proxy(publication.guid, index), reader.entity_id);
        let mut reason = refusal_of(publication, &reader.data);
        if reason.is_none() {
            reason = call.ctx.security_refusal_of_writer(call.now, entity_id, publication);
        }
        let Some(reader) = call.endpoints.readers.get(index) else { return };
        if reason.is_none() {
            reason = match self.type_checks.compatibility(call.ctx, publication, &reader.data) {
                Compatibility::Yes => None,
                Compatibility::Pending => return,
                Compatibility::No(difference) => Some(RefusalReason::TypesDiffer { reason: difference }),
            };
        }
        let (local, kinds) = (reader.data.guid, reader.kinds);
        let path = self.path_to(call.ctx, publication.guid.prefix, &publication.unicast, kinds);
        let vendor = self.vendor_of(call.ctx, publication.guid.prefix);
        let publisher = call.endpoints.publisher_of(index, publication);
        let Some(reader) = call.endpoints.readers.get_mut(index) else { return };
        match (reason, path) {
            // The newly announced address is not validated yet.
            (None, None) if matched.is_some() => {}
            (None, Some(path)) => {
                let traits = WriterTraits {
                    reliable: publication.qos.reliability.kind == ReliabilityKind::Reliable,
                    durability: publication.qos.durability,
                    liveliness: publication.qos.liveliness,
                    strength: publication.qos.ownership_strength.0,
                    lifespan: publication.qos.lifespan.duration,
                    path,
                    vendor,
                    presentation: publication.presentation,
                    publisher,
                    missing_group_info: missing_group_info(publication, &reader.data.presentation),
                    is_service: is_durability_service(&publication.qos.user_data),
                };
                if let Some(proxy) = matched {
                    return reader.refresh_proxy(call.ctx, proxy, &traits);
                }
                let proxy = reader.add_proxy(call.now, call.ctx, publication.guid, &traits);
                call.endpoints.sources.entry(publication.guid).or_default().push((index, proxy));
                call.endpoints.join_group(index, proxy, publication.guid, publisher);
                self.remove_refusal(local, publication.guid);
                self.begin_exchange(call.ctx, publication.guid.prefix);
                self.secure_pair(call, entity_id, publication.guid);
            }
            (reason, _) => {
                let reason = reason.unwrap_or(RefusalReason::Unreachable);
                reason.count_at_reader(call.ctx, reader);
                if let Some(proxy) = matched {
                    call.ctx.end_secure_pair(entity_id, publication.guid);
                    call.endpoints.unmatch_reader_proxy(call.now, call.ctx, publication.guid, index, proxy);
                }
                self.record_refusal(call.ctx, local, publication.guid, &publication.topic_name, reason);
            }
        }
    }

    /// Tries unreachable endpoints again after addresses of a participant or local interfaces have
    /// changed, or a path through shared memory has opened.
    pub(super) fn match_unreachable(&mut self, call: &mut Call<'_>, prefix: GuidPrefix) {
        let from = Guid { prefix, entity_id: Guid::from_bytes([0; 16]).entity_id };
        let pairs: Vec<_> =
            self.unreachable.range((from, from)..).take_while(|(it, _)| it.prefix == prefix).copied().collect();
        for pair @ (remote, local) in pairs {
            call.ctx.work.unit();
            self.unreachable.remove(&pair);
            if let Some(subscription) = self.subscriptions.get(&remote).cloned() {
                if let Some(&index) = call.endpoints.writer_ids.get(&local.entity_id) {
                    self.match_writer(call, index, &subscription);
                }
            } else if let Some(publication) = self.publications.get(&remote).cloned() {
                call.ctx.work.steps(call.endpoints.readers.len());
                let reader = call.endpoints.readers.iter().find(|(_, reader)| reader.data.guid == local);
                if let Some(index) = reader.map(|(index, _)| index) {
                    self.match_reader(call, index, &publication);
                }
            }
        }
    }

    fn record_refusal(
        &mut self,
        ctx: &mut Context,
        local: Guid,
        remote: Guid,
        topic_name: &str,
        reason: RefusalReason,
    ) {
        if reason == RefusalReason::Unreachable && self.unreachable.len() < UNREACHABLE_MAX {
            self.unreachable.insert((remote, local));
            // Shared memory may be the only path. The driver's answer decides.
            if self.begin_exchange(ctx, remote.prefix) {
                return;
            }
        }
        self.remove_refusal(local, remote);
        if self.refusals.len() >= ctx.limits.max_refusals {
            self.refusals.pop_front();
        }
        let remote_participant = self.label_of(ctx, remote.prefix);
        self.refusals.push_back(Refusal { local, remote, remote_participant, topic_name: topic_name.into(), reason });
        self.refusals_total += 1;
        ctx.notify(Event::PairsRefused);
    }

    /// Removes the refusal by the OpenFlow controller of a pair that is now matched, or refused
    /// for another reason.
    fn remove_refusal(&mut self, local: Guid, remote: Guid) {
        let is_of_pair = |refusal: &Refusal| (refusal.local, refusal.remote) == (local, remote);
        self.refusals.retain(|it| !is_of_pair(it) || !matches!(it.reason, RefusalReason::Network { .. }));
    }

    /// Returns a readable label of a participant.
    pub(crate) fn label_of(&self, ctx: &Context, prefix: GuidPrefix) -> String {
        if prefix == ctx.header.prefix {
            return "this participant".into();
        }
        let remote = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get(index));
        remote.map_or_else(|| "a participant that has left".into(), |remote| remote.data.label())
    }
}

impl Endpoints {
    /// Returns the reader's proxy of a writer, if they are matched.
    fn matched_proxy(&self, writer: Guid, reader: u32) -> Option<u32> {
        let listeners = self.sources.get(&writer)?;
        listeners.iter().find(|(index, _)| *index == reader).map(|(_, proxy)| *proxy)
    }

    /// Ends the match of one reader with a writer.
    fn unmatch_reader_proxy(&mut self, now: Instant, ctx: &mut Context, writer: Guid, index: u32, proxy: u32) {
        if let Some(listeners) = self.sources.get_mut(&writer) {
            listeners.retain(|(reader, _)| *reader != index);
            if listeners.is_empty() {
                self.sources.remove(&writer);
            }
        }
        if let Some(reader) = self.readers.get_mut(index) {
            reader.remove_proxy(now, ctx, proxy);
        }
    }

    /// Unmatches a remote or local writer that has been deleted.
    pub(crate) fn unmatch_writer(&mut self, now: Instant, ctx: &mut Context, guid: Guid) {
        for (reader, proxy) in self.sources.remove(&guid).unwrap_or_default() {
            if let Some(reader) = self.readers.get_mut(reader) {
                reader.remove_proxy(now, ctx, proxy);
                let entity_id = reader.entity_id;
                ctx.end_secure_pair(entity_id, guid);
            }
        }
    }

    /// Unmatches a remote or local reader that has been deleted.
    pub(crate) fn unmatch_reader(&mut self, ctx: &mut Context, guid: Guid) {
        for (_, writer) in self.writers.iter_mut() {
            ctx.work.steps(1);
            if writer.proxy_index(guid).is_some() {
                writer.remove_proxy(ctx, guid);
                if let Some(security) = ctx.security.as_mut() {
                    security.pair_unmatched(writer.entity_id, guid);
                }
            }
        }
    }
}
