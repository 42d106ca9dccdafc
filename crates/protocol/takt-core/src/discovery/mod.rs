//! Discovery of participants and endpoints, and matching (RTPS 2.5 §8.5).
//!
//! - `spdp`: participants; `sedp`: their endpoints.
//! - `matching`: compatibility of endpoints; `announced`: counting of matches.
//! - `reachability`: permitted locators; `validation`: proof that a participant receives at its
//!   address.
//! - `multicast`: receivers of multicast groups; `moving`: changes of addresses.
//! - `liveliness`: writer liveliness; `review`: endpoints whose deletion was missed.
//! - `type_lookup`: type definitions; `type_checks`: type compatibility.
//! - `builtin_endpoints`: creation of the builtin endpoints; `builtin_topics`: discovered entities
//!   for the application.
//!
//! [`Discovery`] owns the state. Its methods get a [`Call`]: the time, the shared [`Context`] and
//! the local [`Endpoints`].

mod admission;
mod announced;
mod builtin_endpoints;
mod builtin_topics;
mod cautions;
mod channels;
mod departed;
mod departures;
mod footprint;
mod ignored;
mod liveliness;
mod local_peers;
mod matching;
mod moving;
mod multicast;
mod peers;
mod reachability;
mod review;
mod sedp;
mod server;
mod source_addresses;
mod spdp;
mod static_endpoints;
mod type_checks;
mod type_lookup;
mod validation;

pub(crate) use announced::Unconfirmed;
pub use builtin_topics::BuiltinTopic;
pub(crate) use builtin_topics::{BuiltinTopics, Departure};
pub use cautions::{Caution, CautionKind};
pub(crate) use departed::Departed;
pub(crate) use departures::Departures;
pub(crate) use ignored::Ignored;
pub(crate) use liveliness::Assertion;
pub(crate) use local_peers::SharedMemoryPath;
pub use matching::{Refusal, RefusalReason};
pub(crate) use reachability::Reachability;
pub(crate) use review::Reviews;
pub(crate) use server::{DiscoveryServer, Lost};
pub use server::{INTEREST_PROPERTY, SERVER_PROPERTY};
pub(crate) use spdp::{Announcer, Remote, SpdpSource, describe, for_handshakes};
pub(crate) use static_endpoints::StaticEndpoints;
pub(crate) use type_checks::TypeChecks;
pub use type_checks::{TypeCheck, TypeVerdict};
pub(crate) use type_lookup::{MAX_REPLY_BYTES, REPLY_DEPTH, TypeLookup};
pub use type_lookup::{OfferedType, TypeAnswer};
pub use validation::{AMPLIFICATION_MAX, SilentParticipant};
pub(crate) use validation::{BEFORE_FIRST_ENDPOINT, Validation};

use crate::cache::{KeyExtractor, KeyHash};
use crate::config::{Config, Locators};
use crate::context::Context;
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::slots::Slots;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData, builtin_endpoints as set};
use takt_wire::{EntityId, Guid, GuidPrefix, Locator};

/// Slots of the builtin endpoints. They are created first, so their indices are fixed.
pub(crate) const SEDP_PUBLICATIONS: u32 = 0;
pub(crate) const SEDP_SUBSCRIPTIONS: u32 = 1;
pub(crate) const PARTICIPANT_MESSAGES: u32 = 2;
pub(crate) const TYPE_REQUESTS: u32 = 3;
pub(crate) const TYPE_REPLIES: u32 = 4;
/// Number of builtin slots: endpoints with a lower index are builtin.
pub(crate) const BUILTIN_ENDPOINTS: u32 = 5;
/// First slot of the endpoints that DDS Security adds.
pub(crate) const SEDP_PUBLICATIONS_SECURE: u32 = 5;
pub(crate) const SEDP_SUBSCRIPTIONS_SECURE: u32 = 6;
pub(crate) const PARTICIPANT_MESSAGES_SECURE: u32 = 7;
pub(crate) const PARTICIPANTS_SECURE: u32 = 8;
/// First slot with a reader only: each remote participant has writers of its own.
pub(crate) const STATELESS_MESSAGES: u32 = 9;
pub(crate) const VOLATILE_MESSAGES: u32 = 10;
/// Number of builtin readers of a participant with DDS Security: readers with a lower index are
/// builtin.
pub(crate) const SECURE_READERS: u32 = 11;

/// Own `BuiltinEndpointSet_t` (RTPS 2.5 §9.3.2).
const OWN_ENDPOINT_SET: u32 = set::STANDARD
    | set::TYPE_LOOKUP_REQUEST_WRITER
    | set::TYPE_LOOKUP_REQUEST_READER
    | set::TYPE_LOOKUP_REPLY_WRITER
    | set::TYPE_LOOKUP_REPLY_READER;

/// Key of endpoint discovery data: the endpoint's GUID, for publications and subscriptions alike.
pub(crate) struct EndpointKey;

impl KeyExtractor for EndpointKey {
    fn key_hash(&mut self, payload: &[u8], _key_only: bool) -> Option<KeyHash> {
        PublicationData::parse_key(payload).ok().map(Guid::to_bytes)
    }

    fn serialize_key(&mut self, payload: &[u8], _key_only: bool, key: &mut Vec<u8>) -> bool {
        let guid = PublicationData::parse_key(payload);
        guid.is_ok_and(|guid| {
            key.extend_from_slice(&PublicationData::key_payload(guid));
            true
        })
    }
}

/// Time, context and local endpoints of one call of the participant, for methods of [`Discovery`].
pub(crate) struct Call<'a> {
    /// Time of the call.
    pub(crate) now: Instant,
    pub(crate) ctx: &'a mut Context,
    /// Local endpoints.
    pub(crate) endpoints: &'a mut Endpoints,
}

impl<'a> Call<'a> {
    pub(crate) fn new(now: Instant, ctx: &'a mut Context, endpoints: &'a mut Endpoints) -> Self {
        Self { now, ctx, endpoints }
    }
}

/// Discovery state of a participant: its own announcement, and the remote participants with their
/// endpoints.
#[derive(Debug)]
pub(crate) struct Discovery {
    /// The participant announces itself, and handles datagrams.
    pub(crate) is_enabled: bool,
    pub(crate) domain_id: u32,
    /// Own locators, which are announced.
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
}

impl Discovery {
    /// Creates the state of a participant that announces `data`. If it is enabled, it announces
    /// itself as soon as it is polled.
    ///
    /// # Errors
    /// Those of the static endpoints.
    pub(crate) fn new(config: Config, data: ParticipantData, now: Instant, ctx: &mut Context) -> Result<Self, Error> {
        let own = &config.qos.entity_name.0;
        let list = config.static_endpoints.as_ref();
        let static_endpoints = list.map(|list| StaticEndpoints::new(list.clone(), own)).transpose()?;
        let overhead = ctx.security.as_ref().map_or(0, |security| security.message_overhead());
        let assertion = Assertion::new(ctx);
        let unconfirmed = Unconfirmed::new(ctx);
        let type_lookup = TypeLookup::new(ctx);
        let discovery_server = config.is_server.then(|| DiscoveryServer::new(ctx));
        let mut announcer = Announcer::new(data, config.announcement_period, ctx);
        if config.is_enabled {
            announcer.start(now, ctx);
        }
        Ok(Self {
            is_enabled: config.is_enabled,
            domain_id: config.domain_id,
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
        })
    }

    /// Takes all samples of the builtin readers. Messages of the security plugins wait for their
    /// timer.
    pub(crate) fn handle_builtin_data(&mut self, call: &mut Call<'_>) {
        loop {
            self.take_publications(call, SEDP_PUBLICATIONS);
            self.take_subscriptions(call, SEDP_SUBSCRIPTIONS);
            call.endpoints.take_assertions(call.now, call.ctx, PARTICIPANT_MESSAGES);
            self.take_type_requests(call);
            self.take_type_replies(call.ctx, call.endpoints);
            if call.ctx.security.is_some() {
                self.take_publications(call, SEDP_PUBLICATIONS_SECURE);
                self.take_subscriptions(call, SEDP_SUBSCRIPTIONS_SECURE);
                call.endpoints.take_assertions(call.now, call.ctx, PARTICIPANT_MESSAGES_SECURE);
                self.take_secure_announcements(call);
            }
            let mut was_full = false;
            for index in 0..call.ctx.builtin_readers() {
                if let Some(reader) = call.endpoints.readers.get_mut(index) {
                    reader.cache.release_taken();
                    was_full |= reader.unblock(call.now, call.ctx);
                }
            }
            if !was_full {
                return;
            }
        }
    }

    /// Matches the builtin endpoints with those of a participant whose address was just validated.
    fn match_builtin_endpoints(&mut self, call: &mut Call<'_>, index: u32) {
        let Some(remote) = self.remotes.get(index) else { return };
        let without = if self.static_endpoints.is_some() { static_endpoints::SEDP } else { 0 };
        let (prefix, available) = (remote.prefix, remote.data.available_builtin_endpoints & !without);
        let guid = |entity_id: EntityId| Guid { prefix, entity_id };
        for (bit, writer, reader) in [
            (set::PUBLICATIONS_DETECTOR, SEDP_PUBLICATIONS, EntityId::SEDP_PUB_READER),
            (set::SUBSCRIPTIONS_DETECTOR, SEDP_SUBSCRIPTIONS, EntityId::SEDP_SUB_READER),
            (set::PARTICIPANT_MESSAGE_DATA_READER, PARTICIPANT_MESSAGES, EntityId::P2P_MESSAGE_READER),
            (set::TYPE_LOOKUP_REQUEST_READER, TYPE_REQUESTS, EntityId::TYPE_LOOKUP_REQUEST_READER),
            (set::TYPE_LOOKUP_REPLY_READER, TYPE_REPLIES, EntityId::TYPE_LOOKUP_REPLY_READER),
        ] {
            if available & bit != 0 {
                self.add_builtin_reader(call, writer, guid(reader), index);
            }
        }
        for (bit, reader, writer) in [
            (set::PUBLICATIONS_ANNOUNCER, SEDP_PUBLICATIONS, EntityId::SEDP_PUB_WRITER),
            (set::SUBSCRIPTIONS_ANNOUNCER, SEDP_SUBSCRIPTIONS, EntityId::SEDP_SUB_WRITER),
            (set::PARTICIPANT_MESSAGE_DATA_WRITER, PARTICIPANT_MESSAGES, EntityId::P2P_MESSAGE_WRITER),
            (set::TYPE_LOOKUP_REQUEST_WRITER, TYPE_REQUESTS, EntityId::TYPE_LOOKUP_REQUEST_WRITER),
            (set::TYPE_LOOKUP_REPLY_WRITER, TYPE_REPLIES, EntityId::TYPE_LOOKUP_REPLY_WRITER),
        ] {
            if available & bit != 0 {
                self.add_builtin_writer(call, reader, guid(writer), index);
            }
        }
        if self.remotes.get(index).is_some_and(|remote| remote.security.is_authenticated()) {
            self.match_secure_endpoints(call, index, prefix, available);
        }
    }

    /// Matches the builtin endpoints of DDS Security (DDS-SEC 1.1 §7.4.5) with those of an
    /// authenticated participant.
    fn match_secure_endpoints(&mut self, call: &mut Call<'_>, index: u32, prefix: GuidPrefix, available: u32) {
        for (bits, at, writer, reader) in [
            (
                [set::PARTICIPANT_SECURE_ANNOUNCER, set::PARTICIPANT_SECURE_DETECTOR],
                PARTICIPANTS_SECURE,
                EntityId::SPDP_SECURE_WRITER,
                EntityId::SPDP_SECURE_READER,
            ),
            (
                [set::PUBLICATIONS_SECURE_ANNOUNCER, set::PUBLICATIONS_SECURE_DETECTOR],
                SEDP_PUBLICATIONS_SECURE,
                EntityId::SEDP_PUB_SECURE_WRITER,
                EntityId::SEDP_PUB_SECURE_READER,
            ),
            (
                [set::SUBSCRIPTIONS_SECURE_ANNOUNCER, set::SUBSCRIPTIONS_SECURE_DETECTOR],
                SEDP_SUBSCRIPTIONS_SECURE,
                EntityId::SEDP_SUB_SECURE_WRITER,
                EntityId::SEDP_SUB_SECURE_READER,
            ),
            (
                [set::PARTICIPANT_MESSAGE_SECURE_WRITER, set::PARTICIPANT_MESSAGE_SECURE_READER],
                PARTICIPANT_MESSAGES_SECURE,
                EntityId::P2P_MESSAGE_SECURE_WRITER,
                EntityId::P2P_MESSAGE_SECURE_READER,
            ),
        ] {
            let guid = |entity_id: EntityId| Guid { prefix, entity_id };
            if available & bits[0] != 0 {
                self.secure_pair(call, reader, guid(writer));
                self.add_builtin_writer(call, at, guid(writer), index);
            }
            if available & bits[1] != 0 {
                self.secure_pair(call, writer, guid(reader));
                self.add_builtin_reader(call, at, guid(reader), index);
            }
        }
    }
}

impl Context {
    /// Returns the number of builtin readers that are emptied on arrival; those of the security
    /// plugins are not.
    fn builtin_readers(&self) -> u32 {
        if self.security.is_some() { STATELESS_MESSAGES } else { BUILTIN_ENDPOINTS }
    }
}
