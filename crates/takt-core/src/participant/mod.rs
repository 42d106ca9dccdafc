//! Participant: owns all endpoints, and routes every input to the state machine it concerns.
//!
//! `input` parses datagrams, `output` builds them, `endpoints` handles the calls of the
//! application. [`crate::discovery`] implements further parts of this type.

mod durability;
mod endpoints;
mod groups;
mod input;
mod output;
mod policies;
mod publishers;
mod statuses;
mod subscribers;
#[cfg(test)]
mod tests;

pub use durability::DURABILITY_SERVICE;
pub(crate) use durability::is_durability_service;
pub use endpoints::{NewChange, ReaderSpec, WriterSpec};
pub use input::Received;
pub use output::Transmit;

use crate::WriterFlows;
use crate::cache::{CacheLimits, PayloadPool, ReaderCache};
use crate::config::{Config, Limits, Locators, MAX_PEERS};
use crate::context::{Context, Timing};
use crate::deadline::{INSTANCES_PER_CALL, OVERTAKEN_MAX};
use crate::discovery::{
    Announcer, Assertion, BEFORE_FIRST_ENDPOINT, BUILTIN_ENDPOINTS, BuiltinTopics, Departed, Departures,
    DiscoveryServer, EndpointKey, Ignored, Lost, MAX_REPLY_BYTES, PARTICIPANTS_SECURE, REPLY_DEPTH, Reachability,
    Refusal, Remote, Reviews, SECURE_READERS, SEDP_PUBLICATIONS, SEDP_SUBSCRIPTIONS, SharedMemoryPath, StaticEndpoints,
    TYPE_REPLIES, TypeChecks, TypeLookup, Unconfirmed, Validation, for_handshakes,
};
use crate::error::Error;
use crate::event::Event;
use crate::reader::{REORDER_WINDOW, Reader};
use crate::security::{Scratch, Security};
use crate::slots::{ReaderHandle, Slots, WriterHandle};
use crate::time::Instant;
use crate::timer::TimerKind;
use crate::work::Work;
use crate::writer::{HistoryLimits, Presence, Writer, WriterHistory};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::ToString;
use alloc::vec::Vec;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::message::Header;
use takt_wire::qos::{Durability, History, Reliability, ReliabilityKind, ResourceLimits};
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, ProtocolVersion, Timestamp, VendorId};

/// Most timers that one call of [`Participant::handle_timeout`] handles.
pub const MAX_TIMERS_PER_CALL: usize = 16;

/// Most visits of one unit of work to one entry of a table.
const STEPS_PER_ENTRY: usize = 8;

/// Payload memory of a builtin endpoint in bytes, unless the limit of endpoints is lower.
const BUILTIN_MEMORY_BYTES: usize = 16 << 20;

/// DDS participant. See the crate's documentation for the rules of use.
#[derive(Debug)]
pub struct Participant {
    pub(crate) domain_id: u32,
    pub(crate) is_enabled: bool,
    pub(crate) header: Header,
    pub(crate) locators: Locators,
    pub(crate) initial_peers: Vec<Locator>,
    /// Configured discovery servers.
    pub(crate) servers: Vec<Locator>,
    /// Messages of a participant are accepted only from its own addresses.
    pub(crate) checks_sources: bool,
    /// Endpoints of all participants, if they are configured statically.
    pub(crate) static_endpoints: Option<StaticEndpoints>,
    /// State of a discovery server, if this participant is one.
    pub(crate) discovery_server: Option<DiscoveryServer>,
    /// The announcement being handled is an introduction by a trusted discovery server.
    pub(crate) is_introduction: bool,
    /// Remote participants whose lease expired and that may return.
    pub(crate) lost: Lost,
    pub(crate) reachability: Reachability,
    pub(crate) ctx: Context,
    pub(crate) writers: Slots<Writer>,
    pub(crate) readers: Slots<Reader>,
    pub(crate) publishers: Slots<publishers::Publisher>,
    pub(crate) subscribers: Slots<subscribers::Subscriber>,
    pub(crate) writer_ids: BTreeMap<EntityId, u32>,
    /// Readers matched with each remote or local writer, by reader index and proxy.
    pub(crate) sources: BTreeMap<Guid, Vec<(u32, u32)>>,
    pub(crate) own_shared_memory_path: Option<SharedMemoryPath>,
    pub(crate) remotes: Slots<Remote>,
    pub(crate) remote_by_prefix: BTreeMap<GuidPrefix, u32>,
    /// Index in `remotes` of the participant that sent the last datagram, if it still exists.
    pub(crate) last_sender: u32,
    pub(crate) departed: Departed,
    pub(crate) departures: Departures,
    pub(crate) ignored: Ignored,
    pub(crate) validation: Validation,
    pub(crate) publications: BTreeMap<Guid, Box<PublicationData>>,
    pub(crate) subscriptions: BTreeMap<Guid, Box<SubscriptionData>>,
    pub(crate) reviews: Reviews,
    /// Memory in bytes that the announcements of remote participants take.
    pub(crate) discovery_bytes: usize,
    pub(crate) announcer: Announcer,
    pub(crate) assertion: Assertion,
    pub(crate) builtin_topics: BuiltinTopics,
    pub(crate) type_lookup: TypeLookup,
    pub(crate) type_checks: TypeChecks,
    pub(crate) unconfirmed: Unconfirmed,
    pub(crate) refusals: VecDeque<Refusal>,
    pub(crate) refusals_total: u64,
    /// Pairs of remote and local endpoints that would match if the remote one were reachable.
    pub(crate) unreachable: BTreeSet<(Guid, Guid)>,
    /// Destinations of the datagram being built.
    pub(crate) destinations: Vec<Locator>,
    /// Buffer for protected messages, if security is in use.
    pub(crate) scratch: Option<Box<Scratch>>,
    next_entity_key: u32,
}

impl Participant {
    /// Creates a participant. If it is enabled, it announces itself as soon as it is polled.
    ///
    /// # Errors
    /// [`Error::BadParameter`] if the GUID prefix is unknown or the lease is not longer than the
    /// announcement period, [`Error::OutOfResources`] beyond [`MAX_PEERS`].
    pub fn new(config: Config, now: Instant) -> Result<Self, Error> {
        Self::make(config, None, now)
    }

    /// Creates a participant with the plugins of DDS Security, whose identity has the GUID prefix
    /// of `config`. The participant takes 192 KiB more.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::InconsistentPolicy`] with static endpoints or discovery servers,
    /// because these are not protected.
    pub fn with_security(config: Config, security: Box<dyn Security>, now: Instant) -> Result<Self, Error> {
        if config.static_endpoints.is_some() || config.is_server || !config.servers.is_empty() {
            let what = "static endpoints and discovery servers are not supported with security".to_string();
            return Err(Error::InconsistentPolicy { what });
        }
        Self::make(config, Some(security), now)
    }

    fn make(config: Config, security: Option<Box<dyn Security>>, now: Instant) -> Result<Self, Error> {
        if config.guid_prefix == GuidPrefix::default() {
            return Err(Error::BadParameter { what: "the GUID prefix must not be zero".to_string() });
        }
        if config.lease_duration <= config.announcement_period {
            let what = "the lease must be longer than the announcement period".to_string();
            return Err(Error::BadParameter { what });
        }
        if config.initial_peers.len() > MAX_PEERS {
            return Err(Error::OutOfResources { limit: "peers", value: MAX_PEERS as u64 });
        }
        let timing = Timing {
            heartbeat_first: config.heartbeat_first,
            heartbeat_period: config.heartbeat_period,
            nack_delay: config.nack_delay,
            nack_suppression: config.nack_suppression,
        };
        let own = &config.qos.entity_name.0;
        let list = config.static_endpoints.as_ref();
        let static_endpoints = list.map(|list| StaticEndpoints::new(list.clone(), own)).transpose()?;
        let mut ctx = Context::new(config.limits, timing);
        ctx.multicast_groups.readers_min = config.multicast_readers_min;
        let data = Self::describe(&config, security.as_ref().map(|security| security.announced()));
        let overhead = security.as_ref().map_or(0, |security| security.message_overhead());
        let scratch = security.is_some().then(Scratch::new);
        ctx.security_timer = security.is_some().then(|| ctx.timers.register(TimerKind::Security));
        ctx.security = security.map(|mut security| {
            security.set_participant_data(for_handshakes(&data));
            security
        });
        let assertion = Assertion::new(&mut ctx);
        let unconfirmed = Unconfirmed::new(&mut ctx);
        let type_lookup = TypeLookup::new(&mut ctx);
        let discovery_server = config.is_server.then(|| DiscoveryServer::new(&mut ctx));
        let mut announcer = Announcer::new(data, config.announcement_period, &mut ctx);
        if config.is_enabled {
            announcer.start(now, &mut ctx);
        }
        let mut participant = Self {
            domain_id: config.domain_id,
            is_enabled: config.is_enabled,
            header: Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: config.guid_prefix },
            reachability: Reachability::new(config.interfaces, &config.initial_peers)
                .with_transports(config.has_udp, config.has_tcp)
                .with_own(&config.locators)
                .with_udp_messages_of(config.udp_message_max)
                .with_overhead(overhead),
            locators: config.locators,
            initial_peers: config.initial_peers,
            servers: config.servers,
            checks_sources: config.checks_sources,
            static_endpoints,
            discovery_server,
            is_introduction: false,
            lost: Lost::default(),
            ctx,
            writers: Slots::new(),
            readers: Slots::new(),
            publishers: Slots::new(),
            subscribers: Slots::new(),
            writer_ids: BTreeMap::new(),
            sources: BTreeMap::new(),
            own_shared_memory_path: None,
            remotes: Slots::new(),
            remote_by_prefix: BTreeMap::new(),
            last_sender: 0,
            departed: Departed::new(),
            departures: Departures::default(),
            ignored: Ignored::default(),
            validation: Validation::new(config.secret),
            publications: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            reviews: Reviews::default(),
            discovery_bytes: 0,
            announcer,
            assertion,
            builtin_topics: BuiltinTopics::default(),
            type_lookup,
            type_checks: TypeChecks::default(),
            unconfirmed,
            refusals: VecDeque::new(),
            refusals_total: 0,
            unreachable: BTreeSet::new(),
            destinations: Vec::with_capacity(16),
            scratch,
            next_entity_key: 1,
        };
        participant.create_builtin_endpoints();
        if participant.ctx.security.is_some() {
            participant.create_secure_endpoints();
        }
        participant.open_multicast_groups();
        Ok(participant)
    }

    /// Sets the wall clock, which determines source and reception timestamps and the expiry of
    /// samples. Steps of the clock affect nothing else. Visits each endpoint if the clock was
    /// stepped by a millisecond or more.
    pub fn set_wall_clock(&mut self, now: Instant, wall: Timestamp) {
        if !self.ctx.set_wall_clock(now, wall) {
            return;
        }
        for (_, writer) in self.writers.iter_mut() {
            writer.rearm_expiry(now, &mut self.ctx);
        }
        for (_, reader) in self.readers.iter_mut() {
            reader.rearm_upkeep(now, &mut self.ctx);
        }
    }

    /// Returns the GUID of the participant.
    #[must_use]
    pub fn guid(&self) -> Guid {
        Guid { prefix: self.header.prefix, entity_id: EntityId::PARTICIPANT }
    }

    /// Returns the time at which [`Self::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ctx.timers.next_due()
    }

    /// Handles at most [`MAX_TIMERS_PER_CALL`] due timers. Call again while [`Self::poll_timeout`]
    /// is not in the future.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.ctx.standstills.timers_handled(now, self.ctx.timers.next_due());
        for _ in 0..MAX_TIMERS_PER_CALL {
            let Some(kind) = self.ctx.timers.pop_due(now) else { return };
            self.ctx.work.unit();
            self.handle_timer(kind, now);
            self.present_due_groups(now);
        }
    }

    fn handle_timer(&mut self, kind: TimerKind, now: Instant) {
        match kind {
            TimerKind::Groups => self.ctx.groups_changed = true,
            TimerKind::Announce => {
                self.report_latencies();
                self.report_refusals();
                self.announcer.handle_timeout(now, &mut self.ctx);
            }
            TimerKind::Introduction => self.handle_introductions(),
            TimerKind::MulticastProbe { group } => self.handle_multicast_probe_timeout(now, group),
            TimerKind::Lease { participant } => self.handle_lease_end(now, participant),
            TimerKind::Challenge { participant } => self.handle_challenge_timeout(now, participant),
            TimerKind::RepeatTypeRequests => self.handle_type_request_timeout(now),
            TimerKind::ConfirmMatches => self.handle_confirmation_timeout(now),
            TimerKind::Heartbeat { writer } => {
                let remote = |prefix| self.remotes.get(*self.remote_by_prefix.get(&prefix)?);
                let own_lease = self.announcer.lease_duration();
                let presence = |prefix| remote(prefix).map_or(Presence::own(now), |remote| remote.presence(own_lease));
                if let Some(writer) = self.writers.get_mut(writer) {
                    writer.handle_timeout(now, &mut self.ctx, presence);
                }
            }
            TimerKind::Security => self.handle_security_timeout(now),
            TimerKind::AssertLiveliness => self.assert_automatic_writers(now),
            TimerKind::AssertManually => self.assert_liveliness(now),
            TimerKind::WriterLease { reader, proxy } => {
                if let Some(reader) = self.readers.get_mut(reader) {
                    reader.handle_lease_end(now, &mut self.ctx, proxy);
                }
            }
            TimerKind::WriterDeadline { writer } => {
                if let Some(writer) = self.writers.get_mut(writer) {
                    writer.handle_deadline(now, &mut self.ctx);
                }
            }
            TimerKind::ReaderDeadline { reader } => {
                if let Some(reader) = self.readers.get_mut(reader) {
                    reader.handle_deadline(now, &mut self.ctx);
                }
            }
            TimerKind::Batch { writer } => {
                if let Some(writer) = self.writers.get_mut(writer) {
                    writer.handle_batch(now, &mut self.ctx);
                }
            }
            TimerKind::Pace { writer } => {
                if let Some(writer) = self.writers.get_mut(writer) {
                    writer.handle_pace(&mut self.ctx);
                }
            }
            TimerKind::WriterExpiry { writer } => {
                if let Some(writer) = self.writers.get_mut(writer) {
                    writer.handle_expiry(now, &mut self.ctx);
                }
            }
            TimerKind::ReaderUpkeep { reader } => {
                if let Some(reader) = self.readers.get_mut(reader) {
                    reader.handle_upkeep(now, &mut self.ctx);
                }
            }
            TimerKind::RouteChange { writer } => {
                if let Some(writer) = self.writers.get_mut(writer) {
                    writer.handle_route_timeout(now, &mut self.ctx);
                }
            }
            TimerKind::PathProbe { writer } => {
                if let Some(writer) = self.writers.get_mut(writer) {
                    writer.handle_probe_timeout(now, &mut self.ctx);
                }
            }
            TimerKind::ServiceWait { reader } => {
                if let Some(reader) = self.readers.get_mut(reader) {
                    reader.handle_service_wait_end(now, &mut self.ctx);
                }
            }
            TimerKind::OwnLease { writer } => {
                if let Some(writer) = self.writers.get_mut(writer) {
                    writer.handle_lease_end(now, &mut self.ctx);
                }
            }
            TimerKind::AckNack { reader, proxy } => {
                if let Some(reader) = self.readers.get_mut(reader) {
                    reader.handle_timeout(now, &mut self.ctx, proxy);
                }
            }
        }
    }

    /// Returns the work of all calls so far, and restarts the search for the largest unit.
    pub fn take_work(&mut self) -> Work {
        self.ctx.work.take()
    }

    /// Returns the present bound on the steps of a unit of work. It is a sum of these terms:
    /// - a few steps for each endpoint, match, remote participant, remote endpoint and queued
    ///   event;
    /// - each sample of the window of each reader;
    /// - each sample of one reader, or of the readers of one subscriber with scope GROUP;
    /// - each sample of one writer, twice;
    /// - 64 instances that miss a deadline;
    /// - 512 steps for a writer that applies filters of readers.
    #[must_use]
    pub fn steps_per_unit_max(&self) -> u64 {
        let tables = self.ctx.owners() + self.remotes.len() + self.publications.len() + self.subscriptions.len();
        let tables = tables + self.type_checks.len() + self.unconfirmed.len();
        let windows = self.readers.iter().count() * 2 * REORDER_WINDOW as usize;
        let of_reader = self.readers.iter().map(|(_, reader)| reader.cache.steps_max()).max().unwrap_or(0);
        let of_group =
            self.subscribers.iter().filter(|(_, subscriber)| subscriber.wants_access()).map(|(_, subscriber)| {
                let members = subscriber.readers.iter().filter_map(|&index| self.readers.get(index));
                members.map(|reader| reader.cache.steps_max()).sum()
            });
        let of_types = self.type_lookup.steps_max();
        let of_writer = self.writers.iter().map(|(_, writer)| writer.steps_max()).max().unwrap_or(0);
        let samples = windows + of_reader.max(of_group.max().unwrap_or(0)) + of_writer + of_types;
        let steps_per_entry = STEPS_PER_ENTRY + 2 * self.ctx.multicast_groups.list.len();
        (steps_per_entry * (1 + tables + self.ctx.events.len()) + samples + INSTANCES_PER_CALL * (1 + OVERTAKEN_MAX))
            as u64
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            let event = self.ctx.events.pop_front()?;
            if let Event::DataAvailable(handle) = event
                && let Ok(reader) = endpoints::live_reader(&mut self.readers, handle)
            {
                reader.has_pending_event = false;
            }
            if !self.is_builtin(&event) {
                return Some(event);
            }
        }
    }

    /// Reports whether [`Self::poll_event`] may return an event.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.ctx.events.is_empty()
    }

    /// Queues the farewell. Afterwards poll [`Self::poll_transmit`] until it returns `None`, and
    /// drop the participant.
    pub fn shutdown(&mut self) {
        if self.is_enabled {
            self.announcer.close(&mut self.ctx);
        }
    }

    /// Creates the builtin endpoints. Those of SEDP (RTPS 2.5 §8.5.4.2) and of the liveliness
    /// protocol are reliable, transient-local and keep-last 1 per endpoint. Those of the TypeLookup
    /// service (XTypes 1.3 §7.6.3.3) are reliable, volatile and without key.
    fn create_builtin_endpoints(&mut self) {
        for (topic_name, writer_id, reader_id) in [
            ("DCPSPublication", EntityId::SEDP_PUB_WRITER, EntityId::SEDP_PUB_READER),
            ("DCPSSubscription", EntityId::SEDP_SUB_WRITER, EntityId::SEDP_SUB_READER),
            ("DCPSParticipantMessage", EntityId::P2P_MESSAGE_WRITER, EntityId::P2P_MESSAGE_READER),
        ] {
            let qos = BuiltinQos {
                durability: Durability::TransientLocal,
                written: History::default(),
                samples: None,
                sample_len_max: None,
            };
            self.create_builtin_pair(topic_name, writer_id, reader_id, &qos);
        }
        for (topic_name, writer_id, reader_id) in [
            ("TypeLookupRequest", EntityId::TYPE_LOOKUP_REQUEST_WRITER, EntityId::TYPE_LOOKUP_REQUEST_READER),
            ("TypeLookupReply", EntityId::TYPE_LOOKUP_REPLY_WRITER, EntityId::TYPE_LOOKUP_REPLY_READER),
        ] {
            let qos = BuiltinQos {
                durability: Durability::Volatile,
                written: History::KeepLast(REPLY_DEPTH),
                samples: Some(REPLY_DEPTH),
                sample_len_max: Some(MAX_REPLY_BYTES),
            };
            self.create_builtin_pair(topic_name, writer_id, reader_id, &qos);
        }
        for index in [SEDP_PUBLICATIONS, SEDP_SUBSCRIPTIONS] {
            if let Some(writer) = self.writers.get_mut(index) {
                writer.begin_after(BEFORE_FIRST_ENDPOINT);
            }
        }
        debug_assert_eq!(self.writers.len() as u32, BUILTIN_ENDPOINTS);
        debug_assert_eq!(self.writer_ids.get(&EntityId::SEDP_PUB_WRITER), Some(&SEDP_PUBLICATIONS));
        debug_assert_eq!(self.writer_ids.get(&EntityId::TYPE_LOOKUP_REPLY_WRITER), Some(&TYPE_REPLIES));
    }

    /// Creates the endpoints that DDS Security adds (DDS-SEC 1.1 §7.4.5): secure SEDP, liveliness
    /// and SPDP, configured like their plain counterparts, and the readers of the plugins' topics.
    fn create_secure_endpoints(&mut self) {
        for (topic_name, writer_id, reader_id) in [
            ("DCPSPublicationsSecure", EntityId::SEDP_PUB_SECURE_WRITER, EntityId::SEDP_PUB_SECURE_READER),
            ("DCPSSubscriptionsSecure", EntityId::SEDP_SUB_SECURE_WRITER, EntityId::SEDP_SUB_SECURE_READER),
            ("DCPSParticipantMessageSecure", EntityId::P2P_MESSAGE_SECURE_WRITER, EntityId::P2P_MESSAGE_SECURE_READER),
            ("DCPSParticipantsSecure", EntityId::SPDP_SECURE_WRITER, EntityId::SPDP_SECURE_READER),
        ] {
            let qos = BuiltinQos {
                durability: Durability::TransientLocal,
                written: History::default(),
                samples: None,
                sample_len_max: None,
            };
            self.create_builtin_pair(topic_name, writer_id, reader_id, &qos);
            let (written, read) = (self.builtin_protection(writer_id), self.builtin_protection(reader_id));
            let (writer, reader) = (self.writers.len() as u32 - 1, self.readers.len() as u32 - 1);
            if let Some(writer) = self.writers.get_mut(writer) {
                writer.set_protection(written, &self.ctx);
            }
            if let Some(reader) = self.readers.get_mut(reader) {
                reader.set_protection(read);
            }
        }
        debug_assert_eq!(self.writer_ids.get(&EntityId::SPDP_SECURE_WRITER), Some(&PARTICIPANTS_SECURE));
        self.create_channel_readers();
    }

    fn create_builtin_pair(&mut self, topic_name: &str, writer_id: EntityId, reader_id: EntityId, qos: &BuiltinQos) {
        let reliability = Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO };
        let resources = ResourceLimits { max_samples: qos.samples, ..ResourceLimits::default() };
        let guid = |entity_id| Guid { prefix: self.header.prefix, entity_id };
        let mut publication = PublicationData { guid: guid(writer_id), ..PublicationData::default() };
        publication.topic_name = topic_name.to_string();
        publication.qos.reliability = reliability;
        publication.qos.durability = qos.durability;
        publication.qos.history = qos.written;
        let mut subscription = SubscriptionData { guid: guid(reader_id), ..SubscriptionData::default() };
        subscription.topic_name = topic_name.to_string();
        subscription.qos.reliability = reliability;
        subscription.qos.durability = qos.durability;
        subscription.qos.history = History::KeepAll;
        let limits = self.ctx.limits;
        let memory_bytes = match (qos.samples, qos.sample_len_max) {
            (Some(samples), Some(len)) => PayloadPool::capacity_for(samples as usize, len),
            _ => BUILTIN_MEMORY_BYTES,
        };
        let memory_bytes = memory_bytes.min(limits.endpoint_memory_bytes);
        let history = WriterHistory::new(history_limits(qos.written, &resources, &limits), memory_bytes);
        let mut cache = ReaderCache::new(cache_limits(History::KeepAll, &resources, &limits), memory_bytes);
        cache.index_writers();
        let keyed = writer_id.has_key();
        let handle = WriterHandle { index: self.writers.len() as u32, generation: 0 };
        let mut writer = Writer::new(
            handle,
            Box::new(publication),
            keyed,
            WriterFlows::default(),
            history,
            Instant(0),
            &mut self.ctx,
        );
        writer.is_enabled = true;
        self.writer_ids.insert(writer_id, self.writers.insert(writer));
        let handle = ReaderHandle { index: self.readers.len() as u32, generation: 0 };
        let key = keyed.then(|| Box::new(EndpointKey) as _);
        let mut reader = Reader::new(handle, Box::new(subscription), keyed, key, cache, &mut self.ctx);
        reader.is_enabled = true;
        self.readers.insert(reader);
    }
}

/// History settings of a builtin topic.
struct BuiltinQos {
    durability: Durability,
    /// History of the writer; readers use KEEP_ALL.
    written: History,
    /// Most samples; `None`: the limits decide.
    samples: Option<u32>,
    /// Longest sample in bytes.
    sample_len_max: Option<usize>,
}

impl Participant {
    /// Reports whether an event concerns a builtin endpoint. Applications do not get these events.
    fn is_builtin(&self, event: &Event) -> bool {
        let is_builtin_reader = |reader: &ReaderHandle| match self.ctx.security {
            Some(_) => reader.index < SECURE_READERS,
            None => reader.index < BUILTIN_ENDPOINTS,
        };
        // The writers of the security plugins are created and deleted at run time, so their index
        // proves nothing.
        let is_builtin_writer = |writer: &WriterHandle| {
            writer.index < BUILTIN_ENDPOINTS
                || (self.ctx.security.is_some()
                    && self.writers.get(writer.index).is_none_or(|writer| writer.entity_id.is_builtin()))
        };
        match event {
            Event::DataAvailable(reader)
            | Event::HistoryComplete(reader)
            | Event::SubscriptionMatched(reader)
            | Event::RequestedIncompatibleQos(reader)
            | Event::RequestedDeadlineMissed(reader)
            | Event::SampleLost(reader)
            | Event::LatencyExceeded(reader)
            | Event::SampleRejected(reader)
            | Event::LivelinessChanged(reader)
            | Event::ReaderInconsistentTopic(reader) => is_builtin_reader(reader),
            Event::PublicationMatched(writer)
            | Event::OfferedIncompatibleQos(writer)
            | Event::OfferedDeadlineMissed(writer)
            | Event::LivelinessLost(writer)
            | Event::WriterInconsistentTopic(writer)
            | Event::WriterSpace(writer)
            | Event::ReaderSilent(writer)
            | Event::PathNarrowed(writer)
            | Event::Acknowledged(writer) => is_builtin_writer(writer),
            Event::ParticipantDiscovered(_)
            | Event::ParticipantLost(_)
            | Event::TypeAnswer(_)
            | Event::TypeChecks
            | Event::PairsRefused
            | Event::PairsCautioned
            | Event::ParticipantSilent(_)
            | Event::ParticipantRefused(_)
            | Event::SecurityLogged
            | Event::LocalPeerAnnounced(_) => false,
        }
    }
}

fn depth(history: History) -> Option<usize> {
    match history {
        History::KeepLast(depth) => Some(depth.max(1) as usize),
        History::KeepAll => None,
    }
}

fn or(limit: Option<u32>, default: usize) -> usize {
    limit.map_or(default, |limit| limit as usize)
}

pub(crate) fn history_limits(history: History, resources: &ResourceLimits, limits: &Limits) -> HistoryLimits {
    HistoryLimits {
        depth: depth(history),
        max_samples: or(resources.max_samples, limits.default_max_samples),
        is_default_max_samples: resources.max_samples.is_none(),
        max_instances: or(resources.max_instances, limits.default_max_instances),
        max_samples_per_instance: or(resources.max_samples_per_instance, usize::MAX),
    }
}

pub(crate) fn cache_limits(history: History, resources: &ResourceLimits, limits: &Limits) -> CacheLimits {
    let HistoryLimits { depth, max_samples, max_instances, max_samples_per_instance, .. } =
        history_limits(history, resources, limits);
    CacheLimits { depth, max_samples, max_instances, max_samples_per_instance }
}
