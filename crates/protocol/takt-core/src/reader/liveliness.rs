//! Liveliness of the writers of a reader (DDS 1.4 §2.2.3.11, RTPS 2.5 §8.4.13).

use super::{Reader, WriterProxy};
use crate::context::Context;
use crate::event::Event;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use core::time::Duration;
use takt_wire::SequenceNumber;
use takt_wire::qos::{Liveliness, LivelinessKind};

/// Lease of one matched writer. Its timer is re-armed only when it fires, so a sample costs one
/// store.
#[derive(Debug)]
pub(crate) struct WriterLease {
    kind: LivelinessKind,
    /// Lease duration; `None` is infinite: such a writer is alive while it is matched.
    duration: Option<Duration>,
    last_assertion: Instant,
    timer: Option<TimerId>,
    pub(crate) alive: bool,
}

impl WriterLease {
    /// Creates a lease that begins now.
    pub(super) fn new(now: Instant, liveliness: &Liveliness, kind: TimerKind, ctx: &mut Context) -> Self {
        let duration = liveliness.lease_duration.as_nanos().map(Duration::from_nanos);
        let timer = duration.map(|duration| {
            let timer = ctx.timers.register(kind);
            ctx.timers.arm(timer, now.after(duration));
            timer
        });
        Self { kind: liveliness.kind, duration, last_assertion: now, timer, alive: true }
    }

    pub(super) fn close(&self, ctx: &mut Context) {
        if let Some(timer) = self.timer {
            ctx.timers.release(timer);
        }
    }
}

impl Reader {
    /// Records an assertion of the writer.
    pub(super) fn writer_asserted(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let (Some(duration), Some(timer)) = (proxy.lease.duration, proxy.lease.timer) else { return };
        proxy.lease.last_assertion = now;
        if !proxy.lease.alive {
            proxy.lease.alive = true;
            ctx.timers.arm(timer, now.after(duration));
            self.statuses.liveliness.revived(proxy.guid);
            ctx.notify(Event::LivelinessChanged(self.handle));
        }
    }

    /// Records data of the writer. Repairs and duplicates are sent by the middleware, so they do
    /// not assert a writer with manual liveliness.
    pub(super) fn data_received(&mut self, now: Instant, ctx: &mut Context, index: u32, sn: SequenceNumber) {
        let is_assertion = |proxy: &WriterProxy| proxy.lease.kind == LivelinessKind::Automatic || proxy.is_newest(sn);
        if self.proxies.get(index).is_some_and(is_assertion) {
            self.writer_asserted(now, ctx, index);
        }
    }

    /// Records a heartbeat of the writer; `asserted` is its liveliness flag.
    pub(super) fn heartbeat_received(&mut self, now: Instant, ctx: &mut Context, index: u32, asserted: bool) {
        let automatic = self.proxies.get(index).is_some_and(|proxy| proxy.lease.kind == LivelinessKind::Automatic);
        if automatic || asserted {
            self.writer_asserted(now, ctx, index);
        }
    }

    /// Records an assertion of a participant's writers of a kind.
    pub(crate) fn handle_assertion(&mut self, now: Instant, ctx: &mut Context, index: u32, kind: LivelinessKind) {
        if self.proxies.get(index).is_some_and(|proxy| proxy.lease.kind == kind) {
            self.writer_asserted(now, ctx, index);
        }
    }

    /// Handles a lease timer: the writer was asserted meanwhile, or is no longer alive. Standstills
    /// of this participant do not count.
    pub(crate) fn handle_lease_end(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let (Some(duration), Some(timer)) = (proxy.lease.duration, proxy.lease.timer) else { return };
        let last_sign = proxy.lease.last_assertion;
        let due = last_sign.after(duration + ctx.standstills.excused_since(last_sign));
        if due > now {
            return ctx.timers.arm(timer, due);
        }
        proxy.lease.alive = false;
        ctx.groups_changed |= proxy.holding.is_some();
        let guid = proxy.guid;
        self.statuses.liveliness.died(guid);
        ctx.notify(Event::LivelinessChanged(self.handle));
        let (changed, visited) = self.cache.remove_writers(&(guid..=guid), ctx.clocks(now));
        ctx.work.steps(visited);
        if changed {
            self.notify_available(ctx);
        }
        self.arm_upkeep(now, ctx);
    }
}
