//! Acknowledgments and requests of readers at a writer (RTPS 2.5 §8.3.8.1, §8.3.8.12, §8.4.9.2).

use super::matching::lacks_heartbeat;
use super::transmit::fragment_count;
use super::{Change, Writer, repair};
use crate::context::Context;
use crate::event::Event;
use crate::time::Instant;
use takt_wire::message::{AckNack, NackFrag};
use takt_wire::{Guid, SequenceNumber};

impl Writer {
    /// Handles an ACKNACK: acknowledged and missing samples (RTPS 2.5 §8.3.8.1, §8.4.9.2).
    pub(crate) fn handle_acknack(&mut self, now: Instant, ctx: &mut Context, reader: Guid, acknack: &AckNack) {
        let unsent = self.window.cursor.sn;
        let Some(index) = self.proxy_index(reader) else {
            ctx.counters.stale_acknowledgments += 1;
            return;
        };
        let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| proxy.reliable) else { return };
        let (acked, path, live_from) = (proxy.acked, proxy.path, proxy.live_from);
        let was_unresponsive = proxy.is_unresponsive_builtin();
        let (history, more) = (&self.history, self.route.more);
        let fragments = |sn| {
            let change = history.get(sn);
            let count =
                |it: &Change| fragment_count(it.payload.len(), repair::fragment_size(&path, live_from, it, more));
            change.map_or(1, |it| count(it).max(1))
        };
        if !proxy.acknowledge(now, &acknack.reader_sn_state, acknack.count, unsent, fragments) {
            ctx.counters.stale_acknowledgments += 1;
            return;
        }
        if let Some(group) = self.route.multicast_group
            && !acknack.reader_sn_state.is_empty()
            && proxy.reachability.is_served_by(group)
        {
            ctx.schedule_early_probe(now, group);
        }
        proxy.heartbeat_due |= !acknack.is_final;
        self.heartbeat.readers_without |= lacks_heartbeat(proxy);
        let is_first = was_unresponsive && !proxy.is_unresponsive_builtin();
        let has_progress = proxy.acked > acked;
        self.handle_reader_answer(index, ctx);
        if has_progress {
            self.release_acknowledged(ctx);
            ctx.notify(Event::Acknowledged(self.handle));
            self.queue_data(ctx);
            self.exclude_slow_readers(now, ctx);
        }
        ctx.work.steps(2 * self.proxies.len());
        self.update_lacks_heartbeat();
        self.queue_repair(index, ctx);
        if has_progress || is_first || !ctx.timers.is_armed(self.heartbeat.timer) {
            self.schedule_heartbeat(now, ctx);
        }
    }

    /// Handles a NACK_FRAG: missing fragments (RTPS 2.5 §8.3.8.12).
    pub(crate) fn handle_nack_frag(&mut self, now: Instant, ctx: &mut Context, reader: Guid, nack: &NackFrag) {
        let unsent = self.window.cursor.sn;
        let Some(index) = self.proxy_index(reader) else {
            ctx.counters.stale_acknowledgments += 1;
            return;
        };
        let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| proxy.reliable) else { return };
        if nack.sn >= unsent || !proxy.request_fragments(now, nack.sn, &nack.fragments, nack.count) {
            ctx.counters.stale_acknowledgments += 1;
            return;
        }
        self.handle_reader_answer(index, ctx);
        self.queue_repair(index, ctx);
    }

    /// Reports whether a reliable reader has not acknowledged all changes.
    pub(crate) fn has_unacknowledged(&self) -> bool {
        let last = self.history.last_sn();
        self.proxies.iter().any(|(_, proxy)| proxy.lags(last))
    }

    /// Reports whether every reliable reader has acknowledged all changes up to `sn`.
    pub(crate) fn is_acknowledged(&self, sn: SequenceNumber) -> bool {
        self.proxies.iter().all(|(_, proxy)| !proxy.reliable || proxy.acked >= sn)
    }

    /// Returns the matched reliable readers, and the last change that each has acknowledged.
    pub(crate) fn acknowledged_by(&self) -> impl Iterator<Item = (Guid, SequenceNumber)> {
        let reliable = self.proxies.iter().filter(|(_, proxy)| proxy.reliable);
        reliable.map(|(_, proxy)| (proxy.guid, proxy.acked))
    }
}
