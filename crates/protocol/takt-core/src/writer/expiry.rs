//! Removal of expired samples from a writer's history (LIFESPAN, DDS 1.4 §2.2.3.16).
//!
//! Late joiners and readers that request such a sample get a GAP.

use super::{Write, Writer};
use crate::context::Context;
use crate::event::Event;
use crate::lifespan::{EXPIRED_PER_CALL, Expiry};
use crate::time::Instant;

impl Writer {
    /// Returns the expiry of a change that is written now.
    pub(super) fn expiry_of(&self, now: Instant, ctx: &Context, write: &Write) -> Expiry {
        Expiry::of(write.kind, self.data.qos.lifespan.duration, write.source_timestamp, ctx.wall_clock(now))
    }

    /// Handles the timer: removes up to [`EXPIRED_PER_CALL`] samples, which frees room.
    pub(crate) fn handle_expiry(&mut self, now: Instant, ctx: &mut Context) {
        let wall = ctx.wall_clock(now);
        let (mut removed, mut freed) = (0, self.window.freed());
        while removed < EXPIRED_PER_CALL
            && let Some((_, change)) = self.history.next_expiry().filter(|(expiry, _)| expiry.is_past(wall))
        {
            let sn = change.sn;
            freed.note(change);
            self.history.remove(sn);
            removed += 1;
        }
        self.window.in_flight_bytes -= freed.bytes;
        ctx.work.steps(removed);
        if removed > 0 && core::mem::take(&mut self.space_wanted) {
            ctx.notify(Event::WriterSpace(self.handle));
        }
        self.rearm_expiry(now, ctx);
    }

    /// Arms the timer after a write. The timer is re-armed only if the new sample expires before
    /// all others.
    pub(super) fn arm_expiry(&mut self, now: Instant, ctx: &mut Context) {
        if self.history.next_expiry().is_some_and(|(next, _)| next < self.timing.armed_expiry) {
            self.rearm_expiry(now, ctx);
        }
    }

    /// Arms the timer again after it fired or the wall clock was set.
    pub(crate) fn rearm_expiry(&mut self, now: Instant, ctx: &mut Context) {
        let next = self.history.next_expiry().map(|(expiry, _)| expiry);
        self.timing.armed_expiry = next.unwrap_or(Expiry::NEVER);
        match next {
            Some(expiry) => ctx.timers.arm(self.timing.expiry_timer, ctx.instant_of(expiry, now)),
            None => ctx.timers.cancel(self.timing.expiry_timer),
        }
    }
}
