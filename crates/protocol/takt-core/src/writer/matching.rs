//! Matched readers of a writer: matching, unmatching and changes of their locators
//! (RTPS 2.5 §8.4.7, §8.4.9).

use super::path_probe::PathState;
use super::{Cursor, ReaderProxy, Writer, route};
use crate::context::Context;
use crate::event::Event;
use crate::multicast_group::{MulticastReachability, MulticastSet};
use crate::path::Path;
use crate::time::Instant;
use takt_wire::{EntityId, Guid, GuidPrefix, Locator};

/// Reports whether a reader may not have received a heartbeat yet.
pub(super) fn lacks_heartbeat(proxy: &ReaderProxy) -> bool {
    proxy.reliable && !proxy.has_seen_heartbeat
}

/// Present paths and multicast groups of a participant's readers, as far as known.
pub(super) type ReaderPaths<'a> = &'a dyn Fn(&Guid) -> Option<(Locator, MulticastReachability)>;

/// Properties of a reader that its writer needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReaderTraits {
    pub(crate) reliable: bool,
    pub(crate) wants_history: bool,
    /// The reader drops samples that it has received from another writer.
    pub(crate) drops_repeats: bool,
    pub(crate) path: Path,
    /// Multicast groups that reach the reader.
    pub(crate) reachability: MulticastReachability,
}

impl Writer {
    /// Adds a matched reader.
    pub(crate) fn add_proxy(&mut self, now: Instant, ctx: &mut Context, guid: Guid, reader: &ReaderTraits) {
        debug_assert!(!self.proxy_by_guid.contains_key(&guid), "a reader is matched only once");
        ctx.add_owner(self.priority);
        let wants_history = self.keeps_history && reader.wants_history;
        let mut proxy = ReaderProxy::new(guid, reader.reliable, reader.path, self.window.cursor.begun(), wants_history);
        if self.relays && !(wants_history && reader.drops_repeats) {
            proxy.relevant_below = self.history.last_sn().next();
        }
        proxy.reachability = reader.reachability;
        let locator = route::path_to(&proxy, self.route.multicast_group, &ctx.multicast_groups).locator;
        proxy.set_probed_path(locator, self.probes.last_path_probe());
        self.route.add(&proxy, &ctx.multicast_groups);
        self.prepare_probe(ctx);
        self.heartbeat.readers_without |= reader.reliable;
        let index = self.proxies.insert(proxy);
        if reader.reachability.listens != 0 {
            self.reroute(ctx);
        }
        self.proxy_by_guid.insert(guid, index);
        self.queue_repair(index, ctx);
        if self.route.reliable {
            self.schedule_heartbeat(now, ctx);
        }
        // The new reader may be the one on which the send window of all others depends.
        self.exclude_slow_readers(now, ctx);
    }

    /// Counts a matched reader in PUBLICATION_MATCHED from now on.
    pub(crate) fn count_match(&mut self, ctx: &mut Context, guid: Guid) {
        let proxy = self.proxy_index(guid).and_then(|index| self.proxies.get_mut(index));
        if proxy.is_some_and(|proxy| !core::mem::replace(&mut proxy.is_counted, true)) {
            self.statuses.matched.added(guid);
            ctx.notify(Event::PublicationMatched(self.handle));
        }
    }

    /// Redirects a matched reader to another path, if it has changed.
    pub(crate) fn redirect(&mut self, ctx: &mut Context, guid: Guid, path: Path, reachability: MulticastReachability) {
        let proxy = self.proxy_index(guid).and_then(|index| self.proxies.get_mut(index));
        let Some(proxy) = proxy else { return };
        let has_changed = core::mem::replace(&mut proxy.reachability, reachability) != reachability;
        if proxy.redirect(path) || has_changed {
            self.reroute(ctx);
        }
    }

    /// Updates which multicast groups the readers listen to and have validated.
    pub(crate) fn update_multicast_reachability(
        &mut self,
        ctx: &mut Context,
        groups_of: &dyn Fn(GuidPrefix) -> Option<(MulticastSet, MulticastSet)>,
    ) {
        ctx.work.steps(self.proxies.len());
        let mut has_changed = false;
        for (_, proxy) in
            self.proxies.iter_mut().filter(|(_, proxy)| proxy.reachability != MulticastReachability::default())
        {
            if let Some((listens, validated)) = groups_of(proxy.guid.prefix) {
                let reachability = MulticastReachability { listens, validated, ..proxy.reachability };
                has_changed |= core::mem::replace(&mut proxy.reachability, reachability) != reachability;
            }
        }
        if has_changed {
            self.reroute(ctx);
        }
    }

    /// Returns the longest datagram of new changes, in octets.
    pub(crate) fn message_len_max(&self, ctx: &Context) -> usize {
        self.security.with_grown_reserve(self.route.max_message, ctx)
    }

    /// Returns the groups that the writer would use if all listeners had validated them.
    pub(crate) fn wanted_multicast_groups(&self) -> MulticastSet {
        self.route.wanted
    }

    /// Removes an unmatched reader.
    pub(crate) fn remove_proxy(&mut self, ctx: &mut Context, guid: Guid) {
        if self.detach(ctx, guid) {
            self.finish_unmatching(ctx);
        }
    }

    /// Redirects the readers of a participant to their present locators, as far as `path_of` knows
    /// them.
    pub(crate) fn redirect_readers(&mut self, ctx: &mut Context, prefix: GuidPrefix, path_of: ReaderPaths<'_>) {
        let first = Guid { prefix, entity_id: EntityId::UNKNOWN };
        let mut moved = false;
        for (guid, &index) in self.proxy_by_guid.range(first..).take_while(|(guid, _)| guid.prefix == prefix) {
            ctx.work.steps(1);
            if let (Some((locator, reachability)), Some(proxy)) = (path_of(guid), self.proxies.get_mut(index)) {
                if core::mem::replace(&mut proxy.path.locator, locator) != locator {
                    (proxy.path_state, moved) = (PathState::default(), true);
                }
                moved |= core::mem::replace(&mut proxy.reachability, reachability) != reachability;
            }
        }
        if moved {
            self.reroute(ctx);
        }
    }

    /// Removes all readers of a departed participant.
    pub(crate) fn remove_proxies_of(&mut self, ctx: &mut Context, prefix: GuidPrefix) {
        let first = Guid { prefix, entity_id: EntityId::UNKNOWN };
        let mut any = false;
        while let Some((&guid, _)) = self.proxy_by_guid.range(first..).next().filter(|(guid, _)| guid.prefix == prefix)
        {
            any |= self.detach(ctx, guid);
        }
        if any {
            self.finish_unmatching(ctx);
        }
    }

    pub(super) fn detach(&mut self, ctx: &mut Context, guid: Guid) -> bool {
        ctx.work.steps(1);
        let Some(index) = self.proxy_by_guid.remove(&guid) else { return false };
        if let Some(proxy) = self.proxies.remove(index) {
            self.remove_filter(&proxy);
            if proxy.is_counted {
                self.statuses.matched.removed(guid);
                ctx.notify(Event::PublicationMatched(self.handle));
            }
        }
        ctx.remove_owner();
        true
    }

    /// Reports the unmatched readers, and continues without them.
    pub(super) fn finish_unmatching(&mut self, ctx: &mut Context) {
        self.include_readers();
        self.has_pending_directed =
            self.has_pending_directed && self.proxies.iter().any(|(_, proxy)| self.owes_directed(proxy));
        self.reroute(ctx);
        self.update_lacks_heartbeat();
        if self.proxies.len() == 0 {
            self.window.cursor = Cursor::at(self.history.last_sn().next());
            (self.window.start, self.window.in_flight_bytes) = (self.history.last_sn(), 0);
        }
        self.release_acknowledged(ctx);
        // The send window of the remaining readers may be open, or not needed.
        self.window.stalled = false;
        self.queue_data(ctx);
    }

    /// Checks whether any reader still lacks a heartbeat; only necessary while there were some.
    pub(super) fn update_lacks_heartbeat(&mut self) {
        self.heartbeat.readers_without &= self.proxies.iter().any(|(_, proxy)| lacks_heartbeat(proxy));
    }

    pub(crate) fn proxy_index(&self, guid: Guid) -> Option<u32> {
        self.proxy_by_guid.get(&guid).copied()
    }
}
