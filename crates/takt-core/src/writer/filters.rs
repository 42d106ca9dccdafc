//! Filters that matched readers ask their writer to apply (RTPS 2.5 §8.7.3): what a reader filters out need not be sent.
//!
//! A change is judged once, when it is written, by every filter; the verdicts are bits of the change. It goes to those that
//! want it, in datagrams of changes with the same verdicts. Reliable readers that do not want it get a `GAP` instead: with
//! the next change that they want, or when many have been passed over, or when the writer needs their acknowledgement. So a
//! filtered-out change costs a reader nothing, and many of them one submessage.
//!
//! Changes say nothing of which filters were applied (`PID_CONTENT_FILTER_INFO`), so readers apply theirs all the same.
//! Changes of before the filter came are sent, as are those for which the writer has no place for the filter, and all of a
//! writer whose PRESENTATION is coherent or of scope GROUP.
//!
//! INTEROP(Fast DDS 2.9.1): its filtering readers take the `GAP`s, and get what passes.

use super::history::Change;
use super::reader_proxy::ReaderProxy;
use super::route::{add_destination, way_to};
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
use takt_wire::{Guid, Locator, SequenceNumber};

/// Filters that a writer evaluates; further readers get everything.
pub(crate) const FILTERS_MAX: usize = 32;

/// Steps that all filters of a writer may take for one change ([`ContentFilter::passes_within`]); of those that take more, the
/// costliest is dropped.
const STEPS_PER_WRITE: u64 = 32_768;

/// Steps of a filter that cost about as much as one of [`crate::Work`].
const STEPS_PER_LOOK: u64 = 64;

/// Changes that a reliable reader is passed over for before it is told.
const PASSED_OVER_MAX: u32 = 32;

/// For each filter, by its place, whether it rejects a change.
pub(crate) type Verdicts = u32;

/// The filters of a writer's readers.
#[derive(Default)]
pub(crate) struct Filters {
    /// `None` if the writer filters for nobody.
    pub(crate) factory: Option<Arc<dyn FilterFactory>>,
    places: Vec<Option<Box<dyn ContentFilter>>>,
    /// Places that are taken.
    count: usize,
    /// Places of filters that were dropped, and whose readers are still there.
    dropped: Verdicts,
}

impl fmt::Debug for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filters").field("factory", &self.factory).field("count", &self.count).finish_non_exhaustive()
    }
}

/// The filter of one reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProxyFilter {
    place: u8,
    /// Earlier changes were not judged by it.
    from: SequenceNumber,
    /// Changes that the reader was not sent and was not told of, and the first of them.
    passed_over: u32,
    first_passed_over: Option<SequenceNumber>,
}

impl ProxyFilter {
    pub(super) fn rejects(&self, change: &Change) -> bool {
        change.sn >= self.from && change.rejected & (1 << self.place) != 0
    }
}

impl Filters {
    /// A place for a filter: the lowest one that is free.
    fn insert(&mut self, filter: Box<dyn ContentFilter>) -> Option<u8> {
        let mut places = self.places.iter().enumerate();
        let free = places.position(|(place, filter)| filter.is_none() && self.dropped >> place & 1 == 0);
        let place = match free {
            Some(place) => place,
            None if self.places.len() < FILTERS_MAX => {
                self.places.push(None);
                self.places.len() - 1
            }
            None => return None,
        };
        self.places[place] = Some(filter);
        self.count += 1;
        Some(place as u8)
    }

    /// Applies a filter no longer. Its place stays taken, as earlier changes were judged by it.
    fn drop_at(&mut self, place: usize) {
        self.places[place] = None;
        self.dropped |= 1 << place;
    }

    fn remove(&mut self, place: u8) {
        self.places[usize::from(place)] = None;
        self.dropped &= !(1 << place);
        self.count -= 1;
    }
}

impl Filters {
    /// What they may add to the steps of one unit of work.
    pub(super) fn steps_max(&self) -> usize {
        if self.is_empty() { 0 } else { (STEPS_PER_WRITE / STEPS_PER_LOOK) as usize }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Writer {
    /// Which filters reject data that are about to be written; looks at each filter. In sets and groups readers filter for
    /// themselves: they could not tell what is kept back from what is lost.
    pub(super) fn judge(&mut self, kind: ChangeKind, payload: PayloadRef, ctx: &mut Context) -> Verdicts {
        if self.filters.count == 0 || kind != ChangeKind::Alive || self.membership.is_some() {
            return 0;
        }
        ctx.work.steps(self.filters.places.len());
        let bytes = self.history.pool.bytes(payload);
        let (mut rejected, mut left, mut costliest) = (0, STEPS_PER_WRITE, (0, 0));
        for (place, filter) in self.filters.places.iter_mut().enumerate() {
            let Some(filter) = filter else { continue };
            let before = left;
            let verdict = filter.passes_within(bytes, &mut left);
            let cost = if verdict.is_some() { before - left } else { before };
            ctx.work.steps((cost / STEPS_PER_LOOK) as usize);
            costliest = costliest.max((cost, place));
            match verdict {
                Some(true) => {}
                Some(false) => rejected |= 1 << place,
                None => {
                    self.drop_filter(costliest.1, ctx);
                    break;
                }
            }
        }
        rejected
    }

    /// A filter costs more than a write may take: its reader is sent everything from now on, and filters for itself.
    fn drop_filter(&mut self, place: usize, ctx: &mut Context) {
        ctx.counters.dropped_filters += 1;
        ctx.work.steps(self.proxies.len());
        self.filters.drop_at(place);
    }

    /// A matched reader has this filter from now on, or none.
    pub(crate) fn set_filter(&mut self, guid: Guid, property: Option<&ContentFilterProperty>) {
        let Some(index) = self.proxy_index(guid) else { return };
        // Where a change stands in its set or group is for every reader to know.
        let presentation = &self.data.presentation;
        let has_places = presentation.coherent_access || presentation.access_scope == AccessScope::Group;
        let factory = self.filters.factory.as_ref().filter(|_| !has_places);
        let compiled = factory.and_then(|factory| property.and_then(|property| factory.compile(property)));
        let from = self.history.last_sn().next();
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if let Some(former) = proxy.filter.take() {
            self.filters.remove(former.place);
        }
        if let Some(place) = compiled.and_then(|filter| self.filters.insert(filter)) {
            proxy.filter = Some(ProxyFilter { place, from, passed_over: 0, first_passed_over: None });
        }
    }

    /// A reader has gone.
    pub(super) fn forget_filter(&mut self, proxy: &ReaderProxy) {
        if let Some(filter) = proxy.filter {
            self.filters.remove(filter.place);
        }
    }

    /// Adds the ways to the readers that want a change; looks at each of them.
    pub(super) fn route_of(&self, change: &Change, destinations: &mut Vec<Locator>, ctx: &mut Context) {
        if change.rejected == 0 {
            return destinations.extend_from_slice(&self.route.destinations);
        }
        ctx.work.steps(2 * self.proxies.len());
        let wanting = || self.proxies.iter().map(|(_, proxy)| proxy).filter(|proxy| !proxy.rejects(change));
        // A best-effort reader drops what others have overtaken, so it is sent all samples by one path. The others that listen there
        // filter for themselves.
        let is_bound = |at: &usize| wanting().any(|proxy| !proxy.reliable && proxy.hearing.is_served_by(*at));
        let channel = self.route.channel.filter(is_bound);
        for proxy in wanting() {
            add_destination(destinations, way_to(proxy, channel, &ctx.channels).locator);
        }
    }

    /// A change was sent to those that want it: the others are told, at once or with others; and at once, by a heartbeat, where
    /// it was a sign of life. Returns how many changes were
    /// looked at for each reader.
    pub(super) fn pass_over(&mut self, change: &Change, ctx: &mut Context) -> u32 {
        if self.filters.count == 0 {
            return 0;
        }
        ctx.work.steps(self.proxies.len());
        if change.rejected != 0 {
            self.show_life_by_heartbeat(ctx);
        }
        let hurries = self.is_nearly_full();
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
            let hurries = hurries || filter.passed_over >= PASSED_OVER_MAX;
            if hurries || !rejects {
                self.tell(index, hurries, ctx);
            }
        }
        1
    }

    /// Readers that were passed over are told, and asked to acknowledge it.
    pub(super) fn tell_passed_over(&mut self, ctx: &mut Context) {
        if self.filters.count == 0 {
            return;
        }
        ctx.work.steps(self.proxies.len());
        let mut from = 0;
        while let Some(index) = self.proxies.next_index(from) {
            from = index + 1;
            self.tell(index, true, ctx);
        }
    }

    /// Queues the `GAP` for what a reader was passed over for, if there is something. It covers the rest as well.
    fn tell(&mut self, index: u32, hurries: bool, ctx: &mut Context) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let Some(filter) = &mut proxy.filter else { return };
        filter.passed_over = 0;
        if let Some(first) = filter.first_passed_over.take() {
            // Beyond the window the reader asks for it.
            proxy.requested.insert(first);
            proxy.heartbeat_due |= hurries;
            self.queue_repair(index, ctx);
        }
    }

    /// A heartbeat with new data, or to all if the data do not go to all.
    pub(super) fn heartbeat_along(
        &mut self,
        rejected: Verdicts,
        message: &mut transmit::Message<'_>,
        ctx: &mut Context,
    ) {
        if rejected == 0 {
            return self.append_heartbeat(message, false, ctx);
        }
        self.ask_all(ctx);
    }
}
