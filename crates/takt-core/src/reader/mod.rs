//! Local reader: best-effort or reliable, from any number of writers (RTPS 2.5 §8.4.10, §8.4.12).
//!
//! Samples of each writer are delivered in its order. A reliable reader keeps early samples and
//! requests missing ones. It refuses samples without room, so that the writer keeps them.
//!
//! Invariant: `Waiting` samples of a proxy lie in `expected .. expected + REORDER_WINDOW`.

mod acknack;
mod application_ack;
mod deadline;
mod delivery;
mod fast_path;
mod fragments;
mod gaps;
mod holding;
mod leaps;
mod liveliness;
mod local;
mod matching;
mod origins;
mod receive;
mod retry_timer;
mod room;
mod service_wait;
mod upkeep;
mod writer_proxy;

pub(crate) use holding::{Holding, Range};
pub(crate) use writer_proxy::{REORDER_WINDOW, WriterProxy};

use crate::FlowTag;
use crate::cache::{CachePolicies, KeyExtractor, LatencyTerms, ReaderCache};
use crate::content_filter::ContentFilter;
use crate::context::Context;
use crate::deadline::DeadlineMonitor;
use crate::locator_kinds::LocatorKinds;
use crate::presentation::MissingGroupInfo;
use crate::security::Protection;
use crate::slots::{ReaderHandle, Slots};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus, MatchedStatus,
    SampleLostStatus, SampleRejectedStatus,
};
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use crate::writer::Path;
use alloc::boxed::Box;
use core::fmt;
use fragments::Budget;
use origins::Origins;
use takt_exec::Priority;
use takt_wire::discovery::SubscriptionData;
use takt_wire::qos::{Durability, Liveliness, Presentation};
use takt_wire::{Duration, EntityId, Guid, Timestamp, VendorId};

pub(crate) struct Reader {
    pub(crate) handle: ReaderHandle,
    pub(crate) entity_id: EntityId,
    /// Announced data. Builtin readers have such data too.
    pub(crate) data: Box<SubscriptionData>,
    pub(crate) is_enabled: bool,
    /// Flow of its acknowledgements.
    pub(crate) flow: FlowTag,
    /// Locator kinds that its acknowledgements may use.
    pub(crate) kinds: LocatorKinds,
    /// Priority of its acknowledgements.
    pub(crate) priority: Priority,
    /// Configured limits for the ages of its samples.
    pub(crate) latency_terms: LatencyTerms,
    /// Longest serialized sample in bytes, if the type has a bound.
    pub(crate) max_serialized_len: Option<usize>,
    /// Subscriber of the reader, if one was created.
    pub(crate) group: Option<u32>,
    keyed: bool,
    pub(crate) protection: Protection,
    /// Loaned payloads stay with the writer until they are read.
    pub(crate) keeps_loans: bool,
    key: Option<Box<dyn KeyExtractor>>,
    /// Content filter; `None` to accept every sample.
    pub(crate) filter: Option<Box<dyn ContentFilter>>,
    pub(crate) cache: ReaderCache,
    pub(crate) proxies: Slots<WriterProxy>,
    /// Position of each original writer, once a TRANSIENT or PERSISTENT writer was matched.
    origins: Option<Box<Origins>>,
    /// Timer that ends the wait for the history of services, once there was one.
    service_timer: Option<TimerId>,
    /// The reader acknowledges explicitly, on request of the application.
    explicit: bool,
    /// Count of its ACKNACKs and NACK_FRAGs to all writers. It therefore also increases for a
    /// writer that was matched before and has not noticed that it was unmatched.
    acknack_count: i32,
    nack_frag_count: i32,
    /// Memory budget of incomplete samples.
    reassembly: Budget,
    /// A proxy waits for room in the history.
    any_blocked: bool,
    /// Proxy that is the next to get room first.
    unblock_from: u32,
    /// Number of held changes of all writers.
    pub(crate) held: usize,
    /// A data-available event waits for [`crate::Participant::poll_event`].
    pub(crate) has_pending_event: bool,
    /// Its samples share one order with those of the subscriber's other readers.
    pub(crate) shares_order: bool,
    /// No held change may be presented, because the application is reading.
    pub(crate) is_frozen: bool,
    /// The most changes are held, and none of them can be presented.
    pub(crate) needs_relief: bool,
    /// Release count of the cache at the last failed attempt.
    blocked_at: u64,
    upkeep_timer: TimerId,
    /// Time at which the upkeep timer is due.
    upkeep_due: Instant,
    deadline: Option<DeadlineMonitor>,
    pub(crate) deadline_missed: DeadlineMissedStatus,
    pub(crate) matched: MatchedStatus,
    pub(crate) incompatible: IncompatibleQosStatus,
    pub(crate) inconsistent_topic: InconsistentTopicStatus,
    pub(crate) liveliness: LivelinessChangedStatus,
    pub(crate) lost: SampleLostStatus,
    pub(crate) rejected: SampleRejectedStatus,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("entity_id", &self.entity_id).field("topic", &self.data.topic_name).finish()
    }
}

/// Properties of a writer that its reader needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriterTraits {
    pub(crate) reliable: bool,
    pub(crate) durability: Durability,
    pub(crate) liveliness: Liveliness,
    pub(crate) strength: i32,
    pub(crate) lifespan: Duration,
    pub(crate) path: Path,
    pub(crate) vendor: VendorId,
    /// PRESENTATION of its publisher.
    pub(crate) presentation: Presentation,
    /// Publisher, if that assigns group sequence numbers that the reader uses.
    pub(crate) publisher: Option<Guid>,
    /// Group information that the writer does not announce although the reader needs it.
    pub(crate) missing_group_info: Option<MissingGroupInfo>,
    /// The writer belongs to a durability service.
    pub(crate) is_service: bool,
}

/// Time and origin of the present submessage (RTPS 2.5 §8.3.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) now: Instant,
    pub(crate) source_timestamp: Timestamp,
}

impl Reader {
    pub(crate) fn new(
        handle: ReaderHandle,
        data: Box<SubscriptionData>,
        keyed: bool,
        key: Option<Box<dyn KeyExtractor>>,
        cache: ReaderCache,
        ctx: &mut Context,
    ) -> Self {
        ctx.add_owner(Priority::NORMAL);
        let mut cache = cache;
        cache.adopt(CachePolicies::of(&data.qos));
        let deadline = deadline::monitor(handle, &data, &cache, ctx);
        Self {
            handle,
            entity_id: data.guid.entity_id,
            data,
            is_enabled: false,
            flow: FlowTag::default(),
            kinds: LocatorKinds::ALL,
            priority: Priority::NORMAL,
            latency_terms: LatencyTerms::default(),
            max_serialized_len: None,
            group: None,
            keyed,
            protection: Protection::default(),
            keeps_loans: false,
            key,
            filter: None,
            cache,
            proxies: Slots::new(),
            origins: None,
            service_timer: None,
            explicit: false,
            acknack_count: 0,
            nack_frag_count: 0,
            reassembly: Budget::new(ctx.limits.reassembly_bytes),
            any_blocked: false,
            unblock_from: 0,
            held: 0,
            has_pending_event: false,
            shares_order: false,
            is_frozen: false,
            needs_relief: false,
            blocked_at: 0,
            upkeep_timer: ctx.timers.register(TimerKind::ReaderUpkeep { reader: handle.index }),
            upkeep_due: Instant(u64::MAX),
            deadline,
            deadline_missed: DeadlineMissedStatus::default(),
            matched: MatchedStatus::default(),
            incompatible: IncompatibleQosStatus::default(),
            inconsistent_topic: InconsistentTopicStatus::default(),
            liveliness: LivelinessChangedStatus::default(),
            lost: SampleLostStatus::default(),
            rejected: SampleRejectedStatus::default(),
        }
    }

    /// Requires protection of received submessages from now on. To be called before anything is
    /// matched.
    pub(crate) fn set_protection(&mut self, protection: Protection) {
        self.protection = protection;
        self.cache.keys_are_hidden = protection.key;
    }

    /// Takes the key extractor, for a reader that replaces this one.
    pub(crate) fn take_key(&mut self) -> Option<Box<dyn KeyExtractor>> {
        self.key.take()
    }

    /// Releases the timers and queue space of the reader.
    pub(crate) fn close(&mut self, ctx: &mut Context) {
        for (_, proxy) in self.proxies.iter() {
            ctx.timers.release(proxy.timer);
            proxy.lease.close(ctx);
            ctx.remove_owner();
        }
        if let Some(deadline) = &self.deadline {
            deadline.close(ctx);
        }
        if let Some(timer) = self.service_timer {
            ctx.timers.release(timer);
        }
        ctx.timers.release(self.upkeep_timer);
        ctx.remove_owner();
    }
}
