//! A local reader: best-effort or reliable, from any number of writers (RTPS 2.5 §8.4.10, §8.4.12).
//!
//! Samples of each writer are delivered in its order. A reliable reader keeps those that come early, asks
//! for those that are missing, and refuses those for which there is no room, so that the writer keeps them.
//!
//! Invariant: what a proxy holds as `Waiting` lies in `expected .. expected + REORDER_WINDOW`.

mod acknack;
mod commitment;
mod deadline;
mod delivery;
mod fragments;
mod gaps;
mod holding;
mod leaps;
mod liveliness;
mod local;
mod matching;
mod origins;
mod patience;
mod receive;
mod room;
mod service_wait;
mod straight;
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
use crate::presentation::GroupLack;
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
    /// As announced; builtin readers have a description too.
    pub(crate) data: Box<SubscriptionData>,
    pub(crate) is_enabled: bool,
    /// What its acknowledgements leave by.
    pub(crate) flow: FlowTag,
    /// What they may go by.
    pub(crate) kinds: LocatorKinds,
    /// That of its acknowledgements.
    pub(crate) priority: Priority,
    /// What is known beforehand of the ages of its samples.
    pub(crate) latency_terms: LatencyTerms,
    /// Longest serialised sample in bytes, if the type has a bound.
    pub(crate) max_serialized_len: Option<usize>,
    /// The subscriber that it is one of, if that was created.
    pub(crate) group: Option<u32>,
    keyed: bool,
    pub(crate) protection: Protection,
    /// What is lent stays with its lender until it is read.
    pub(crate) borrows: bool,
    key: Option<Box<dyn KeyExtractor>>,
    /// Which samples get in; all if there is none.
    pub(crate) filter: Option<Box<dyn ContentFilter>>,
    pub(crate) cache: ReaderCache,
    pub(crate) proxies: Slots<WriterProxy>,
    /// How far it has come with each original writer, once a TRANSIENT or PERSISTENT one was matched.
    origins: Option<Box<Origins>>,
    /// Ends the wait for the history of services, once there was one.
    service_timer: Option<TimerId>,
    /// It acknowledges when the application says so.
    explicit: bool,
    /// Of its ACKNACKs and NACK_FRAGs to whomever, so that they grow for a writer too that was matched before and has not
    /// noticed that it was forgotten.
    acknack_count: i32,
    nack_frag_count: i32,
    /// What incomplete samples may claim.
    reassembly: Budget,
    /// Some proxy waits for room in the history.
    any_blocked: bool,
    /// The proxy whose turn it is to be the first that finds room.
    unblock_from: u32,
    /// Changes that have arrived and are not shown yet, of all writers.
    pub(crate) held: usize,
    /// That it has something to read waits for [`crate::Participant::poll_event`].
    pub(crate) is_told: bool,
    /// Its samples have their place in one order with those of the subscriber's other readers.
    pub(crate) shares_order: bool,
    /// Nothing that is held may be shown: the application is reading.
    pub(crate) is_frozen: bool,
    /// As much is held as may be, and nothing of it can be shown.
    pub(crate) wants_relief: bool,
    /// The cache's releases when that was last tried in vain.
    blocked_at: u64,
    upkeep_timer: TimerId,
    /// When it is due.
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

/// What a reader must know of a writer to listen to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriterTraits {
    pub(crate) reliable: bool,
    pub(crate) durability: Durability,
    pub(crate) liveliness: Liveliness,
    pub(crate) strength: i32,
    pub(crate) lifespan: Duration,
    pub(crate) path: Path,
    pub(crate) vendor: VendorId,
    /// What its publisher offers beside policies.
    pub(crate) presentation: Presentation,
    /// The publisher, if that counts the changes of its writers and the reader is to look at that.
    pub(crate) publisher: Option<Guid>,
    /// What of its publisher it does not announce, and the reader is to look at.
    pub(crate) group_lack: Option<GroupLack>,
    /// It passes on what others wrote.
    pub(crate) is_service: bool,
}

/// Time and origin of the submessage at hand (RTPS 2.5 §8.3.4).
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
            borrows: false,
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
            is_told: false,
            shares_order: false,
            is_frozen: false,
            wants_relief: false,
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

    /// What it receives is protected from now on. To be called before anything is matched.
    pub(crate) fn set_protection(&mut self, protection: Protection) {
        self.protection = protection;
        self.cache.keys_are_hidden = protection.key;
    }

    /// What reads the keys of its samples, for a reader in its place.
    pub(crate) fn take_key(&mut self) -> Option<Box<dyn KeyExtractor>> {
        self.key.take()
    }

    /// Gives back what the reader holds of the context.
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
