//! Creation of the builtin endpoints.

use super::EndpointKey;
use crate::WriterFlows;
use crate::cache::{PayloadPool, ReaderCache};
use crate::context::Context;
use crate::discovery::{
    BEFORE_FIRST_ENDPOINT, BUILTIN_ENDPOINTS, MAX_REPLY_BYTES, PARTICIPANTS_SECURE, REPLY_DEPTH, SEDP_PUBLICATIONS,
    SEDP_SUBSCRIPTIONS, TYPE_REPLIES,
};
use crate::endpoints::Endpoints;
use crate::participant::{cache_limits, history_limits};
use crate::reader::Reader;
use crate::slots::{ReaderHandle, WriterHandle};
use crate::time::Instant;
use crate::writer::{Writer, WriterHistory};
use alloc::boxed::Box;
use alloc::string::ToString;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::{Durability, History, Reliability, ReliabilityKind, ResourceLimits};
use takt_wire::{EntityId, Guid};

/// Payload memory of a builtin endpoint in bytes, unless the limit of endpoints is lower.
const BUILTIN_MEMORY_BYTES: usize = 16 << 20;

impl Endpoints {
    /// Creates the builtin endpoints. Those of SEDP (RTPS 2.5 §8.5.4.2) and of the liveliness
    /// protocol are reliable, transient-local and keep-last 1 per endpoint. Those of the TypeLookup
    /// service (XTypes 1.3 §7.6.3.3) are reliable, volatile and without key.
    pub(crate) fn create_builtin(&mut self, ctx: &mut Context) {
        for (topic_name, writer_id, reader_id) in [
            ("DCPSPublication", EntityId::SEDP_PUB_WRITER, EntityId::SEDP_PUB_READER),
            ("DCPSSubscription", EntityId::SEDP_SUB_WRITER, EntityId::SEDP_SUB_READER),
            ("DCPSParticipantMessage", EntityId::P2P_MESSAGE_WRITER, EntityId::P2P_MESSAGE_READER),
        ] {
            self.create_builtin_pair(ctx, topic_name, writer_id, reader_id, &BuiltinQos::KEPT);
        }
        for (topic_name, writer_id, reader_id) in [
            ("TypeLookupRequest", EntityId::TYPE_LOOKUP_REQUEST_WRITER, EntityId::TYPE_LOOKUP_REQUEST_READER),
            ("TypeLookupReply", EntityId::TYPE_LOOKUP_REPLY_WRITER, EntityId::TYPE_LOOKUP_REPLY_READER),
        ] {
            self.create_builtin_pair(ctx, topic_name, writer_id, reader_id, &BuiltinQos::EXCHANGED);
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
    pub(crate) fn create_secure(&mut self, ctx: &mut Context) {
        for (topic_name, writer_id, reader_id) in [
            ("DCPSPublicationsSecure", EntityId::SEDP_PUB_SECURE_WRITER, EntityId::SEDP_PUB_SECURE_READER),
            ("DCPSSubscriptionsSecure", EntityId::SEDP_SUB_SECURE_WRITER, EntityId::SEDP_SUB_SECURE_READER),
            ("DCPSParticipantMessageSecure", EntityId::P2P_MESSAGE_SECURE_WRITER, EntityId::P2P_MESSAGE_SECURE_READER),
            ("DCPSParticipantsSecure", EntityId::SPDP_SECURE_WRITER, EntityId::SPDP_SECURE_READER),
        ] {
            self.create_builtin_pair(ctx, topic_name, writer_id, reader_id, &BuiltinQos::KEPT);
            let (written, read) = (ctx.builtin_protection(writer_id), ctx.builtin_protection(reader_id));
            let (writer, reader) = (self.writers.len() as u32 - 1, self.readers.len() as u32 - 1);
            if let Some(writer) = self.writers.get_mut(writer) {
                writer.set_protection(written, ctx);
            }
            if let Some(reader) = self.readers.get_mut(reader) {
                reader.set_protection(read);
            }
        }
        debug_assert_eq!(self.writer_ids.get(&EntityId::SPDP_SECURE_WRITER), Some(&PARTICIPANTS_SECURE));
        self.create_channel_readers(ctx);
    }

    fn create_builtin_pair(
        &mut self,
        ctx: &mut Context,
        topic_name: &str,
        writer_id: EntityId,
        reader_id: EntityId,
        qos: &BuiltinQos,
    ) {
        let reliability = Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO };
        let resources = ResourceLimits { max_samples: qos.samples, ..ResourceLimits::default() };
        let guid = |entity_id| Guid { prefix: ctx.header.prefix, entity_id };
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
        let limits = ctx.limits;
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
        let mut writer =
            Writer::new(handle, Box::new(publication), keyed, WriterFlows::default(), history, Instant(0), ctx);
        writer.is_enabled = true;
        self.writer_ids.insert(writer_id, self.writers.insert(writer));
        let handle = ReaderHandle { index: self.readers.len() as u32, generation: 0 };
        let key = keyed.then(|| Box::new(EndpointKey) as _);
        let mut reader = Reader::new(handle, Box::new(subscription), keyed, key, cache, ctx);
        reader.is_enabled = true;
        self.readers.insert(reader);
    }
}

/// History settings of a builtin topic.
struct BuiltinQos {
    durability: Durability,
    /// History of the writer; readers use KEEP_ALL.
    written: History,
    /// Maximum number of samples; `None`: the limits decide.
    samples: Option<u32>,
    /// Longest sample in bytes.
    sample_len_max: Option<usize>,
}

impl BuiltinQos {
    /// Topics whose last state of each endpoint is kept for late joiners.
    const KEPT: Self = Self {
        durability: Durability::TransientLocal,
        written: History::KeepLast(1),
        samples: None,
        sample_len_max: None,
    };
    /// Requests and replies of the TypeLookup service.
    const EXCHANGED: Self = Self {
        durability: Durability::Volatile,
        written: History::KeepLast(REPLY_DEPTH),
        samples: Some(REPLY_DEPTH),
        sample_len_max: Some(MAX_REPLY_BYTES),
    };
}
