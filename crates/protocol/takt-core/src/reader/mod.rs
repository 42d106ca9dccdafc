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
pub(crate) use writer_proxy::WriterProxy;

use crate::FlowTag;
use crate::cache::{CachePolicies, KeyExtractor, LatencyTerms, ReaderCache};
use crate::content_filter::ContentFilter;
use crate::context::Context;
use crate::deadline::DeadlineMonitor;
use crate::locator_kinds::LocatorKinds;
use crate::path::Path;
use crate::presentation::MissingGroupInfo;
use crate::security::Protection;
use crate::slots::{ReaderHandle, Slots};
use crate::status::ReaderStatuses;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use acknack::AckCounts;
use alloc::boxed::Box;
use core::fmt;
use fragments::Budget;
use holding::GroupPresentation;
use origins::Origins;
use room::RoomWait;
use takt_schedule::Priority;
use takt_wire::discovery::SubscriptionData;
use takt_wire::qos::{Durability, Liveliness, Presentation};
use takt_wire::{Duration, EntityId, Guid, Timestamp, VendorId};
use upkeep::UpkeepTimer;

pub(crate) struct Reader {
    pub(crate) handle: ReaderHandle,
    pub(crate) entity_id: EntityId,
    /// Announced data. Builtin readers have such data too.
    pub(crate) data: Box<SubscriptionData>,
    pub(crate) is_enabled: bool,
    /// Flow of its acknowledgments.
    pub(crate) flow: FlowTag,
    /// Locator kinds that its acknowledgments may use.
    pub(crate) kinds: LocatorKinds,
    /// Priority of its acknowledgments.
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
    counts: AckCounts,
    /// Memory budget of incomplete samples.
    reassembly: Budget,
    room: RoomWait,
    /// Presentation together with the subscriber's other readers.
    pub(crate) presentation: GroupPresentation,
    /// A data-available event waits for [`crate::Participant::poll_event`].
    pub(crate) has_pending_event: bool,
    upkeep: UpkeepTimer,
    deadline: Option<DeadlineMonitor>,
    pub(crate) statuses: ReaderStatuses,
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
            counts: AckCounts::default(),
            reassembly: Budget::new(ctx.limits.reassembly_bytes),
            room: RoomWait::default(),
            presentation: GroupPresentation::default(),
            has_pending_event: false,
            upkeep: UpkeepTimer::new(ctx.timers.register(TimerKind::ReaderUpkeep { reader: handle.index })),
            deadline,
            statuses: ReaderStatuses::default(),
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
        ctx.timers.release(self.upkeep.id);
        ctx.remove_owner();
    }
}
