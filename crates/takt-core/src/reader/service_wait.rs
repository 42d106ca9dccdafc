//! History before news: a reader that asks for TRANSIENT or PERSISTENT data waits for what services keep before it shows
//! what living writers say (DDS 1.4 §2.2.3.4), since what comes late of a writer is dropped ([`super::origins`]).
//!
//! A writer that has its first sample still needs no service, unless one is known that has not told all yet. Otherwise the
//! writer's samples wait in its window, and are asked for again beyond that: up to [`UNKNOWN_SERVICE_WAIT`] for a service
//! that is not known yet, up to [`SERVICE_WAIT`] for the history of those that are.

use super::Reader;
use crate::context::Context;
use crate::time::Instant;
use crate::timer::TimerKind;
use core::time::Duration;
use takt_wire::SequenceNumber;

/// How long a writer without its first sample waits for a service to be discovered.
pub(crate) const UNKNOWN_SERVICE_WAIT: Duration = Duration::from_millis(500);
/// How long it waits for the history of services.
pub(crate) const SERVICE_WAIT: Duration = Duration::from_secs(10);

impl Reader {
    /// The first heartbeat of a writer says which samples it has: whether its samples are to wait.
    pub(super) fn may_hold(&mut self, now: Instant, ctx: &mut Context, index: u32, first_sn: SequenceNumber) {
        let services_tell = self.services_tell();
        let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| proxy.may_lack_history) else { return };
        if first_sn <= SequenceNumber::FIRST && !services_tell {
            return;
        }
        proxy.awaits_services = true;
        let kind = TimerKind::ServiceWait { reader: self.handle.index };
        let timer = *self.service_timer.get_or_insert_with(|| ctx.timers.register(kind));
        let wait = if services_tell { SERVICE_WAIT } else { UNKNOWN_SERVICE_WAIT };
        if !ctx.timers.is_armed(timer) {
            ctx.timers.arm(timer, now.after(wait));
        }
    }

    /// A service was matched: what waits does so for its history now.
    pub(super) fn service_appeared(&mut self, now: Instant, ctx: &mut Context) {
        if let Some(timer) = self.service_timer.filter(|_| self.proxies.iter().any(|(_, proxy)| proxy.awaits_services))
        {
            ctx.timers.arm(timer, now.after(SERVICE_WAIT));
        }
    }

    /// Whether the history of a matched service is not complete yet.
    fn services_tell(&self) -> bool {
        self.proxies.iter().any(|(_, proxy)| proxy.is_service && !proxy.has_history())
    }

    /// A service has told its history, or has gone: what waited goes on if it was the last.
    pub(super) fn service_told(&mut self, now: Instant, ctx: &mut Context) {
        if !self.services_tell() {
            self.handle_service_wait_end(now, ctx);
        }
    }

    /// Nothing waits any longer. At most a window of each matched writer is delivered.
    pub(crate) fn handle_service_wait_end(&mut self, now: Instant, ctx: &mut Context) {
        let Some(timer) = self.service_timer else { return };
        ctx.timers.cancel(timer);
        let mut from = 0;
        while let Some(index) = self.proxies.next_index(from) {
            from = index + 1;
            ctx.work.steps(1);
            if self.proxies.get_mut(index).is_some_and(|proxy| core::mem::take(&mut proxy.awaits_services)) {
                self.deliver(ctx, index, now);
                self.queue_acknack(ctx, index);
            }
        }
    }
}
