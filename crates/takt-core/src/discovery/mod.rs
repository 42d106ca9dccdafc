//! Discovery of participants and endpoints, and matching (RTPS 2.5 §8.5).
//!
//! - `spdp`: participants; `sedp`: their endpoints.
//! - `matching`: compatibility of endpoints; `announced`: counting of matches.
//! - `reachability`: permitted locators; `validation`: proof that a participant receives at its
//!   address.
//! - `multicast`: receivers of multicast groups; `moving`: changes of addresses.
//! - `liveliness`: writer liveliness; `review`: endpoints whose deletion was missed.
//! - `type_lookup`: type definitions; `type_checks`: type compatibility.
//! - `builtin_topics`: discovered entities for the application.

mod announced;
mod builtin_topics;
mod cautions;
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
pub(crate) use spdp::{Announcer, Remote, for_handshakes};
pub(crate) use static_endpoints::StaticEndpoints;
pub use static_endpoints::StaticParticipant;
pub(crate) use type_checks::TypeChecks;
pub use type_checks::{TypeCheck, TypeVerdict};
pub(crate) use type_lookup::{MAX_REPLY_BYTES, REPLY_DEPTH, TypeLookup};
pub use type_lookup::{OfferedType, TypeAnswer, TypeRequestId};
pub use validation::{AMPLIFICATION_MAX, SilentParticipant};
pub(crate) use validation::{BEFORE_FIRST_ENDPOINT, Validation};

use crate::cache::{KeyExtractor, KeyHash};
use crate::participant::Participant;
use crate::time::Instant;
use alloc::vec::Vec;
use takt_wire::discovery::{PublicationData, builtin_endpoints as set};
use takt_wire::{EntityId, Guid, GuidPrefix};

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

impl Participant {
    /// Takes all samples of the builtin readers. Messages of the security plugins wait for their
    /// timer.
    pub(crate) fn handle_builtin_data(&mut self, now: Instant) {
        loop {
            self.take_publications(now, SEDP_PUBLICATIONS);
            self.take_subscriptions(now, SEDP_SUBSCRIPTIONS);
            self.take_assertions(now, PARTICIPANT_MESSAGES);
            self.take_type_requests(now);
            self.take_type_replies();
            if self.ctx.security.is_some() {
                self.take_publications(now, SEDP_PUBLICATIONS_SECURE);
                self.take_subscriptions(now, SEDP_SUBSCRIPTIONS_SECURE);
                self.take_assertions(now, PARTICIPANT_MESSAGES_SECURE);
                self.take_secure_announcements(now);
            }
            let mut was_full = false;
            for index in 0..self.builtin_readers() {
                if let Some(reader) = self.readers.get_mut(index) {
                    reader.cache.release_taken();
                    was_full |= reader.unblock(now, &mut self.ctx);
                }
            }
            if !was_full {
                return;
            }
        }
    }

    /// Returns the number of builtin readers that are emptied on arrival; those of the security
    /// plugins are not.
    fn builtin_readers(&self) -> u32 {
        if self.ctx.security.is_some() { STATELESS_MESSAGES } else { BUILTIN_ENDPOINTS }
    }

    /// Matches the builtin endpoints with those of a participant whose address was just validated.
    fn match_builtin_endpoints(&mut self, now: Instant, index: u32) {
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
                self.add_builtin_reader(now, writer, guid(reader), index);
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
                self.add_builtin_writer(now, reader, guid(writer), index);
            }
        }
        if self.remotes.get(index).is_some_and(|remote| remote.security.is_authenticated()) {
            self.match_secure_endpoints(now, index, prefix, available);
        }
    }

    /// Matches the builtin endpoints of DDS Security (DDS-SEC 1.1 §7.4.5) with those of an
    /// authenticated participant.
    fn match_secure_endpoints(&mut self, now: Instant, index: u32, prefix: GuidPrefix, available: u32) {
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
                self.secure_pair(now, reader, guid(writer));
                self.add_builtin_writer(now, at, guid(writer), index);
            }
            if available & bits[1] != 0 {
                self.secure_pair(now, writer, guid(reader));
                self.add_builtin_reader(now, at, guid(reader), index);
            }
        }
    }
}
