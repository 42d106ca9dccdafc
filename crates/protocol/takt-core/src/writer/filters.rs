//! Writer-side content filters (RTPS 2.5 §8.7.3): samples that a reader's filter rejects need not
//! be sent.
//!
//! Every filter evaluates a change once, when it is written; the verdicts are bits of the change.
//! The change is sent to the readers whose filter accepts it, in datagrams of changes with equal
//! verdicts. Reliable readers whose filter rejects it get a `GAP` instead: with the next accepted
//! change, after many rejected ones, or when the writer needs their acknowledgment. A rejected
//! change therefore costs a reader nothing, and many of them one submessage.
//!
//! Changes do not state which filters were applied (`PID_CONTENT_FILTER_INFO`), so readers apply
//! theirs as well. Samples are sent unfiltered if they are older than the filter, if the writer has
//! no slot for the filter, or if the writer's PRESENTATION is coherent or of scope GROUP.
//!
//! INTEROP(Fast DDS 2.9.1): its filtering readers accept the `GAP`s, and receive the samples that
//! pass.

use super::history::Change;
use super::reader_proxy::ReaderProxy;
use super::route::{add_destination, path_to};
use super::{Writer, transmit};
use crate::cache::{ChangeKind, PayloadRef};
use crate::content_filter::{ContentFilter, FilterFactory};
use crate::context::Context;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use takt_wire::discovery::ContentFilterProperty;
use takt_wire::qos::AccessScope;
use takt_wire::{Guid, SequenceNumber};

/// Maximum number of filters that a writer evaluates; further readers get every sample.
pub(crate) const FILTERS_MAX: usize = 32;

/// Maximum number of steps of all filters of a writer for one change
/// ([`ContentFilter::passes_within`]). If they take more, the costliest is dropped.
const STEPS_PER_WRITE: u64 = 32_768;

/// Steps of a filter that cost about as much as one step of [`crate::Work`].
const FILTER_STEPS_PER_STEP: u64 = 64;

/// Maximum number of rejected changes after which a reliable reader is sent a GAP.
const PASSED_OVER_MAX: u32 = 32;

/// Set of filters that reject a change, by their slot.
pub(crate) type Verdicts = u32;

/// Filters of a writer's readers.
#[derive(Default)]
pub(crate) struct Filters {
    /// Compiler of filters; `None` if the writer does not filter.
    pub(crate) factory: Option<Arc<dyn FilterFactory>>,
    slots: Vec<Option<Box<dyn ContentFilter>>>,
    /// Number of slots in use.
    count: usize,
    /// Slots of dropped filters whose readers are still matched.
    dropped: Verdicts,
}

impl fmt::Debug for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filters").field("factory", &self.factory).field("count", &self.count).finish_non_exhaustive()
    }
}

/// Filter of one reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProxyFilter {
    slot: u8,
    /// First change that the filter evaluated.
    from: SequenceNumber,
    /// Number of rejected changes for which no GAP was sent, and the first of them.
    passed_over: u32,
    first_passed_over: Option<SequenceNumber>,
}

impl ProxyFilter {
    pub(super) fn rejects(&self, change: &Change) -> bool {
        change.sn >= self.from && change.rejected & (1 << self.slot) != 0
    }
}

impl Filters {
    /// Assigns the lowest free slot to a filter; `None` if there is none.
    fn insert(&mut self, filter: Box<dyn ContentFilter>) -> Option<u8> {
        let mut slots = self.slots.iter().enumerate();
        let free = slots.position(|(slot, filter)| filter.is_none() && self.dropped >> slot & 1 == 0);
        let slot = match free {
            Some(slot) => slot,
            None if self.slots.len() < FILTERS_MAX => {
                self.slots.push(None);
                self.slots.len() - 1
            }
            None => return None,
        };
        self.slots[slot] = Some(filter);
        self.count += 1;
        Some(slot as u8)
    }

    /// Drops a filter. Its slot stays in use, because earlier changes have its verdict.
    fn drop_at(&mut self, slot: usize) {
        self.slots[slot] = None;
        self.dropped |= 1 << slot;
    }

    fn remove(&mut self, slot: u8) {
        self.slots[usize::from(slot)] = None;
        self.dropped &= !(1 << slot);
        self.count -= 1;
    }
}

impl Filters {
    /// Returns the most steps that filters add to one unit of work.
    pub(super) fn steps_max(&self) -> usize {
        if self.is_empty() { 0 } else { (STEPS_PER_WRITE / FILTER_STEPS_PER_STEP) as usize }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Writer {
    /// Returns which filters reject the data about to be written; visits each filter. In coherent
    /// sets and groups readers filter for themselves, because they could not distinguish withheld
    /// samples from lost ones.
    pub(super) fn evaluate_filters(&mut self, kind: ChangeKind, payload: PayloadRef, ctx: &mut Context) -> Verdicts {
        if self.filters.count == 0 || kind != ChangeKind::Alive || self.membership.is_some() {
            return 0;
        }
        ctx.work.steps(self.filters.slots.len());
        let bytes = self.history.pool.bytes(payload);
        let (mut rejected, mut steps_left, mut costliest) = (0, STEPS_PER_WRITE, (0, 0));
        for (slot, filter) in self.filters.slots.iter_mut().enumerate() {
            let Some(filter) = filter else { continue };
            let before = steps_left;
            let verdict = filter.passes_within(bytes, &mut steps_left);
            let cost = if verdict.is_some() { before - steps_left } else { before };
            ctx.work.steps((cost / FILTER_STEPS_PER_STEP) as usize);
            costliest = costliest.max((cost, slot));
            match verdict {
                Some(true) => {}
                Some(false) => rejected |= 1 << slot,
                None => {
                    self.drop_filter(costliest.1, ctx);
                    break;
                }
            }
        }
        rejected
    }

    /// Drops a filter that exceeds the budget of a write. Its reader gets every sample from now on,
    /// and filters for itself.
    fn drop_filter(&mut self, slot: usize, ctx: &mut Context) {
        ctx.counters.dropped_filters += 1;
        ctx.work.steps(self.proxies.len());
        self.filters.drop_at(slot);
    }

    /// Sets or removes the filter of a matched reader.
    pub(crate) fn set_filter(&mut self, guid: Guid, property: Option<&ContentFilterProperty>) {
        let Some(index) = self.proxy_index(guid) else { return };
        // Every reader needs the positions of all changes in their sets and groups.
        let presentation = &self.data.presentation;
        let uses_positions = presentation.coherent_access || presentation.access_scope == AccessScope::Group;
        let factory = self.filters.factory.as_ref().filter(|_| !uses_positions);
        let compiled = factory.and_then(|factory| property.and_then(|property| factory.compile(property)));
        let from = self.history.last_sn().next();
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if let Some(former) = proxy.filter.take() {
            self.filters.remove(former.slot);
        }
        if let Some(slot) = compiled.and_then(|filter| self.filters.insert(filter)) {
            proxy.filter = Some(ProxyFilter { slot, from, passed_over: 0, first_passed_over: None });
        }
    }

    /// Removes the filter of an unmatched reader.
    pub(super) fn remove_filter(&mut self, proxy: &ReaderProxy) {
        if let Some(filter) = proxy.filter {
            self.filters.remove(filter.slot);
        }
    }

    /// Adds the destinations of readers whose filter accepts a change; visits each reader.
    pub(super) fn route_of(&self, change: &Change, ctx: &mut Context) {
        if change.rejected == 0 {
            return ctx.destinations.extend_from_slice(&self.route.destinations);
        }
        ctx.work.steps(2 * self.proxies.len());
        let accepting = || self.proxies.iter().map(|(_, proxy)| proxy).filter(|proxy| !proxy.rejects(change));
        // A best-effort reader drops samples that others have overtaken, so it gets all samples by
        // one path. Other readers of the group apply their own filters.
        let is_bound = |at: &usize| accepting().any(|proxy| !proxy.reliable && proxy.reachability.is_served_by(*at));
        let group = self.route.multicast_group.filter(is_bound);
        for proxy in accepting() {
            add_destination(&mut ctx.destinations, path_to(proxy, group, &ctx.multicast_groups).locator);
        }
    }

    /// Records the rejection of a change for the readers that do not get it, and sends a GAP if one
    /// is due. If the change asserted the writer's liveliness, a heartbeat follows at once. Returns
    /// the number of changes for which every reader was visited.
    pub(super) fn pass_over(&mut self, change: &Change, ctx: &mut Context) -> u32 {
        if self.filters.count == 0 {
            return 0;
        }
        ctx.work.steps(self.proxies.len());
        if change.rejected != 0 {
            self.assert_by_heartbeat(ctx);
        }
        let is_urgent = self.is_nearly_full();
        let mut from = 0;
        while let Some(index) = self.proxies.next_index(from) {
            from = index + 1;
            let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| proxy.reliable) else { continue };
            let rejects = proxy.rejects(change);
            let Some(filter) = &mut proxy.filter else { continue };
            if rejects {
                ctx.counters.withheld_samples += 1;
                filter.first_passed_over.get_or_insert(change.sn);
                filter.passed_over += 1;
            }
            let is_urgent = is_urgent || filter.passed_over >= PASSED_OVER_MAX;
            if is_urgent || !rejects {
                self.announce_passed_over_to(index, is_urgent, ctx);
            }
        }
        1
    }

    /// Sends a GAP for rejected changes to all readers concerned, and requests their
    /// acknowledgment.
    pub(super) fn announce_passed_over(&mut self, ctx: &mut Context) {
        if self.filters.count == 0 {
            return;
        }
        ctx.work.steps(self.proxies.len());
        let mut from = 0;
        while let Some(index) = self.proxies.next_index(from) {
            from = index + 1;
            self.announce_passed_over_to(index, true, ctx);
        }
    }

    /// Queues the `GAP` for the rejected changes of a reader, if there are any. It covers all of
    /// them.
    fn announce_passed_over_to(&mut self, index: u32, is_urgent: bool, ctx: &mut Context) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let Some(filter) = &mut proxy.filter else { return };
        filter.passed_over = 0;
        if let Some(first) = filter.first_passed_over.take() {
            // Beyond the window, the reader requests the change.
            proxy.requested.insert(first);
            proxy.heartbeat_due |= is_urgent;
            self.queue_repair(index, ctx);
        }
    }

    /// Sends a heartbeat with new data, or to all readers if the data do not go to all.
    pub(super) fn piggyback_heartbeat(
        &mut self,
        rejected: Verdicts,
        message: &mut transmit::Message<'_>,
        ctx: &mut Context,
    ) {
        if rejected == 0 {
            return self.append_heartbeat(message, false, ctx);
        }
        self.heartbeat_all(ctx);
    }
}
