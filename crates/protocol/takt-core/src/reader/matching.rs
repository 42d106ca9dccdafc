//! Matching and unmatching of a reader's writers (RTPS 2.5 §8.4.10).

use super::liveliness::WriterLease;
use super::origins::Origins;
use super::{Holding, Reader, WriterProxy, WriterTraits};
use crate::context::Context;
use crate::event::Event;
use crate::time::Instant;
use crate::timer::TimerKind;
use alloc::boxed::Box;
use core::ops::RangeInclusive;
use takt_wire::qos::{Durability, ReliabilityKind};
use takt_wire::{EntityId, Guid, SequenceNumber, VendorId};

impl Reader {
    /// Adds a matched writer. Returns the index of its proxy.
    pub(crate) fn add_proxy(&mut self, now: Instant, ctx: &mut Context, guid: Guid, writer: &WriterTraits) -> u32 {
        ctx.add_owner(self.priority);
        let (reader, proxy_index) = (self.handle.index, self.proxies.vacant());
        let timer = ctx.timers.register(TimerKind::AckNack { reader, proxy: proxy_index });
        let lease_timer = TimerKind::WriterLease { reader, proxy: proxy_index };
        let lease = WriterLease::new(now, &writer.liveliness, lease_timer, ctx);
        let reliable = writer.reliable && self.data.qos.reliability.kind == ReliabilityKind::Reliable;
        let mut proxy = WriterProxy::new(guid, reliable, writer.path, timer, lease);
        let is_volatile = self.data.qos.durability == Durability::Volatile;
        if self.entity_id == EntityId::STATELESS_MESSAGE_READER {
            proxy.fragments.set_stateless();
        }
        proxy.directed_heartbeats = writer.vendor == VendorId::TAKT;
        proxy.needs_directed_heartbeat = is_volatile && proxy.directed_heartbeats && !self.entity_id.is_builtin();
        proxy.skips_history = is_volatile && !proxy.directed_heartbeats && writer.durability != Durability::Volatile;
        proxy.strength = writer.strength;
        proxy.lifespan = writer.lifespan;
        if !writer.lifespan.is_infinite() {
            self.cache.reserve_expiries();
        }
        proxy.is_service = writer.is_service;
        proxy.is_late_joiner =
            !is_volatile && writer.durability != Durability::Volatile && !self.entity_id.is_builtin();
        if writer.durability >= Durability::Transient && !self.entity_id.is_builtin() {
            // A durability service recognizes repeated samples itself, including those from before
            // its restart.
            if !self.explicit {
                self.origins.get_or_insert_with(|| Box::new(Origins::new()));
            }
            proxy.may_lack_history = !writer.is_service && self.data.qos.durability >= Durability::Transient;
        }
        proxy.missing_group_info = writer.missing_group_info;
        if writer.missing_group_info.is_some() {
            ctx.notify(Event::PairsCautioned);
        }
        proxy.preemptive_acknack_base_zero = writer.vendor == VendorId::EPROSIMA;
        let holds = self.data.presentation.coherent_access && writer.presentation.coherent_access;
        if holds || writer.publisher.is_some() {
            proxy.holding = Some(Box::new(Holding::new(writer.publisher)));
        }
        let index = self.proxies.insert(proxy);
        debug_assert_eq!(index, proxy_index);
        self.statuses.matched.added(guid);
        self.statuses.liveliness.matched(guid);
        ctx.notify(Event::LivelinessChanged(self.handle));
        ctx.notify(Event::SubscriptionMatched(self.handle));
        if writer.is_service {
            self.service_appeared(now, ctx);
        }
        if reliable {
            // Requests the first heartbeat (pre-emptive ACKNACK, RTPS 2.5 §8.4.12.2).
            self.handle_timeout(now, ctx, index);
        }
        index
    }

    /// Adopts the changed properties of a matched writer.
    pub(crate) fn refresh_proxy(&mut self, ctx: &mut Context, index: u32, writer: &WriterTraits) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        proxy.path = writer.path;
        proxy.lifespan = writer.lifespan;
        if proxy.strength != writer.strength {
            proxy.strength = writer.strength;
            ctx.work.steps(self.cache.len());
            self.cache.set_strength(proxy.guid, writer.strength);
        }
    }

    /// Reports whether all samples have arrived that the writers had when they were matched.
    pub(crate) fn has_history(&self) -> bool {
        self.proxies.iter().all(|(_, proxy)| proxy.has_history())
    }

    /// Returns the last change that a matched writer has announced; `None` before its first
    /// announcement.
    pub(crate) fn last_announced(&self, writer: Guid) -> Option<SequenceNumber> {
        let (_, proxy) = self.proxies.iter().find(|(_, proxy)| proxy.guid == writer)?;
        let is_known =
            if proxy.reliable { proxy.last_heartbeat.is_known() } else { proxy.announced > SequenceNumber::ZERO };
        is_known.then_some(proxy.announced)
    }

    /// Removes an unmatched writer.
    pub(crate) fn remove_proxy(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(guid) = self.proxies.get(index).map(|proxy| proxy.guid) else { return };
        self.detach(now, ctx, index);
        self.remove_writers(now, ctx, &(guid..=guid));
    }

    /// Detaches an unmatched writer whose instances still refer to it: [`Self::remove_writers`]
    /// must follow. The history of a departed service is no longer waited for.
    pub(crate) fn detach(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(mut proxy) = self.proxies.remove(index) else { return };
        ctx.timers.release(proxy.timer);
        proxy.lease.close(ctx);
        ctx.remove_owner();
        if let Some(origins) = &mut self.origins {
            origins.record_unmatched(proxy.guid);
        }
        for stored in proxy.drain() {
            self.cache.discard(stored);
        }
        if let Some(holding) = &mut proxy.holding {
            self.drop_held(ctx, holding);
            ctx.groups_changed |= holding.publisher.is_some();
        }
        proxy.fragments.drop_below(SequenceNumber::MAX, &mut self.cache.pool, &mut self.reassembly);
        self.statuses.matched.removed(proxy.guid);
        self.statuses.liveliness.unmatched(proxy.guid, proxy.lease.alive);
        if proxy.is_service {
            self.service_history_done(now, ctx);
        }
    }

    /// Reports the unmatched writers, and removes them from their instances. Instances without
    /// another writer become not-alive. Counts as a unit of work.
    pub(crate) fn remove_writers(&mut self, now: Instant, ctx: &mut Context, unmatched: &RangeInclusive<Guid>) {
        ctx.notify(Event::LivelinessChanged(self.handle));
        ctx.notify(Event::SubscriptionMatched(self.handle));
        self.resume_services(now, ctx);
        ctx.work.unit();
        let (changed, visited) = self.cache.remove_writers(unmatched, ctx.clocks(now));
        ctx.work.steps(visited);
        if changed {
            self.notify_available(ctx);
        }
        self.arm_upkeep(now, ctx);
    }
}
