//! Wait for the history of durability services (DDS 1.4 §2.2.3.4).
//!
//! A reader that requests TRANSIENT or PERSISTENT data waits for the history of services before it
//! presents samples of live writers, because late samples of a writer are dropped
//! ([`super::origins`]).
//!
//! A writer that still has its first sample needs no service, unless a known one has not sent its
//! whole history yet. Otherwise the writer's samples wait in its window, and are requested again
//! beyond that: up to [`UNKNOWN_SERVICE_WAIT`] for a service to be discovered, up to
//! [`SERVICE_WAIT`] for the history of known ones.

use super::Reader;
use crate::context::Context;
use crate::time::Instant;
use crate::timer::TimerKind;
use core::time::Duration;
use takt_wire::SequenceNumber;

/// Wait of a writer without its first sample for a service to be discovered.
pub(crate) const UNKNOWN_SERVICE_WAIT: Duration = Duration::from_millis(500);
/// Wait of such a writer for the history of services.
pub(crate) const SERVICE_WAIT: Duration = Duration::from_secs(10);

impl Reader {
    /// Decides at the first heartbeat of a writer, which states its samples, whether they have to
    /// wait.
    pub(super) fn decide_service_wait(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        index: u32,
        first_sn: SequenceNumber,
    ) {
        let has_pending_service_history = self.has_pending_service_history();
        let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| proxy.may_lack_history) else { return };
        if first_sn <= SequenceNumber::FIRST && !has_pending_service_history {
            return;
        }
        proxy.awaits_services = true;
        let kind = TimerKind::ServiceWait { reader: self.handle.index };
        let timer = *self.service_timer.get_or_insert_with(|| ctx.timers.register(kind));
        let wait = if has_pending_service_history { SERVICE_WAIT } else { UNKNOWN_SERVICE_WAIT };
        if !ctx.timers.is_armed(timer) {
            ctx.timers.arm(timer, now.after(wait));
        }
    }

    /// Extends the wait after a service was matched: waiting samples now wait for its history.
    pub(super) fn service_appeared(&mut self, now: Instant, ctx: &mut Context) {
        if let Some(timer) = self.service_timer.filter(|_| self.proxies.iter().any(|(_, proxy)| proxy.awaits_services))
        {
            ctx.timers.arm(timer, now.after(SERVICE_WAIT));
        }
    }

    /// Reports whether the history of a matched service is incomplete.
    fn has_pending_service_history(&self) -> bool {
        self.proxies.iter().any(|(_, proxy)| proxy.is_service && !proxy.has_history())
    }

    /// Continues delivery if the last matched service has delivered its history, or is unmatched.
    pub(super) fn service_history_done(&mut self, now: Instant, ctx: &mut Context) {
        if !self.has_pending_service_history() {
            self.handle_service_wait_end(now, ctx);
        }
    }

    /// Ends the wait. Delivers at most a window of each matched writer.
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
