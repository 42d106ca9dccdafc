//! What a reader's history does in time: samples expire (LIFESPAN, DDS 1.4 §2.2.3.16), samples that came too soon are shown
//! (TIME_BASED_FILTER, DDS 1.4 §2.2.3.12), and those of instances that are not alive go (READER_DATA_LIFECYCLE,
//! DDS 1.4 §2.2.3.22).
//!
//! One timer serves all three. It is moved only when it fires, or when something is due before it.

use super::Reader;
use crate::context::Context;
use crate::event::Event;
use crate::lifespan::EXPIRED_PER_CALL;
use crate::time::Instant;

impl Reader {
    /// Removes all that has expired, so that the application does not see it. At most all samples that the reader holds.
    pub(crate) fn expire(&mut self, now: Instant, ctx: &mut Context) {
        if self.cache.next_expiry().is_some() {
            ctx.work.steps(self.cache.expire(ctx.wall_clock(now), usize::MAX));
        }
    }

    /// The timer fired: removes up to [`EXPIRED_PER_CALL`] samples for each reason, which may make room for others, and shows
    /// as many.
    pub(crate) fn handle_upkeep(&mut self, now: Instant, ctx: &mut Context) {
        let removed =
            self.cache.expire(ctx.wall_clock(now), EXPIRED_PER_CALL) + self.cache.purge(now, EXPIRED_PER_CALL);
        let shown = self.cache.show_due(ctx.clocks(now), EXPIRED_PER_CALL);
        ctx.work.steps(removed + shown);
        if shown > 0 {
            self.tell_available(ctx);
        }
        if removed > 0 {
            self.unblock(now, ctx);
        }
        self.rearm_upkeep(now, ctx);
    }

    /// Tells the application that there is something to read, unless it was told and has not yet heard of it.
    pub(super) fn tell_available(&mut self, ctx: &mut Context) {
        if !core::mem::replace(&mut self.is_told, true) {
            ctx.events.push_back(Event::DataAvailable(self.handle));
        }
        if self.cache.latency.as_mut().is_some_and(|latency| latency.take_news()) {
            ctx.notify(Event::LatencyExceeded(self.handle));
        }
    }

    /// To be called when samples came.
    pub(super) fn arm_upkeep(&mut self, now: Instant, ctx: &mut Context) {
        if let Some(due) = self.next_upkeep(now, ctx).filter(|due| *due < self.upkeep_due) {
            self.upkeep_due = due;
            ctx.timers.arm(self.upkeep_timer, due);
        }
    }

    /// The wall clock was set, or the timer fired.
    pub(crate) fn rearm_upkeep(&mut self, now: Instant, ctx: &mut Context) {
        let next = self.next_upkeep(now, ctx);
        self.upkeep_due = next.unwrap_or(Instant(u64::MAX));
        match next {
            Some(due) => ctx.timers.arm(self.upkeep_timer, due),
            None => ctx.timers.cancel(self.upkeep_timer),
        }
    }

    fn next_upkeep(&self, now: Instant, ctx: &Context) -> Option<Instant> {
        let expiry = self.cache.next_expiry().map(|expiry| ctx.moment_of(expiry, now));
        [expiry, self.cache.next_held(), self.cache.next_purge()].into_iter().flatten().min()
    }
}
