//! Timed upkeep of a reader's history.
//!
//! - Samples expire (LIFESPAN, DDS 1.4 §2.2.3.16).
//! - Samples held back by the time-based filter are presented (TIME_BASED_FILTER,
//!   DDS 1.4 §2.2.3.12).
//! - Samples of instances that are not alive are purged (READER_DATA_LIFECYCLE, DDS 1.4 §2.2.3.22).
//!
//! One timer drives all three. It is re-armed only when it fires, or for an earlier due time.

use super::Reader;
use crate::context::Context;
use crate::event::Event;
use crate::lifespan::EXPIRED_PER_CALL;
use crate::time::Instant;
use crate::timer::TimerId;

#[derive(Debug)]
pub(super) struct UpkeepTimer {
    pub(super) id: TimerId,
    /// Time at which the timer is due.
    pub(super) due: Instant,
}

impl UpkeepTimer {
    pub(super) fn new(id: TimerId) -> Self {
        Self { id, due: Instant(u64::MAX) }
    }
}

impl Reader {
    /// Removes all expired samples, so that the application does not see them. At most all samples
    /// that the reader holds.
    pub(crate) fn expire(&mut self, now: Instant, ctx: &mut Context) {
        if self.cache.next_expiry().is_some() {
            ctx.work.steps(self.cache.expire(ctx.wall_clock(now), usize::MAX));
        }
    }

    /// Handles the timer: removes up to [`EXPIRED_PER_CALL`] samples for each reason, which may
    /// free room for others, and presents as many.
    pub(crate) fn handle_upkeep(&mut self, now: Instant, ctx: &mut Context) {
        let removed =
            self.cache.expire(ctx.wall_clock(now), EXPIRED_PER_CALL) + self.cache.purge(now, EXPIRED_PER_CALL);
        let delivered = self.cache.deliver_due(ctx.clocks(now), EXPIRED_PER_CALL);
        ctx.work.steps(removed + delivered);
        if delivered > 0 {
            self.notify_available(ctx);
        }
        if removed > 0 {
            self.unblock(now, ctx);
        }
        self.rearm_upkeep(now, ctx);
    }

    /// Notifies the application of available data, unless such an event waits already.
    pub(super) fn notify_available(&mut self, ctx: &mut Context) {
        if !core::mem::replace(&mut self.has_pending_event, true) {
            ctx.events.push_back(Event::DataAvailable(self.handle));
        }
        if self.cache.latency.as_mut().is_some_and(|latency| latency.take_changed()) {
            ctx.notify(Event::LatencyExceeded(self.handle));
        }
    }

    /// Arms the timer after the arrival of samples.
    pub(super) fn arm_upkeep(&mut self, now: Instant, ctx: &mut Context) {
        if let Some(due) = self.next_upkeep(now, ctx).filter(|due| *due < self.upkeep.due) {
            self.upkeep.due = due;
            ctx.timers.arm(self.upkeep.id, due);
        }
    }

    /// Arms the timer again after it fired or the wall clock was set.
    pub(crate) fn rearm_upkeep(&mut self, now: Instant, ctx: &mut Context) {
        let next = self.next_upkeep(now, ctx);
        self.upkeep.due = next.unwrap_or(Instant(u64::MAX));
        match next {
            Some(due) => ctx.timers.arm(self.upkeep.id, due),
            None => ctx.timers.cancel(self.upkeep.id),
        }
    }

    fn next_upkeep(&self, now: Instant, ctx: &Context) -> Option<Instant> {
        let expiry = self.cache.next_expiry().map(|expiry| ctx.instant_of(expiry, now));
        [expiry, self.cache.next_delayed(), self.cache.next_purge()].into_iter().flatten().min()
    }
}
