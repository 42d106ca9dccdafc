//! Samples of a reader that expire (LIFESPAN, DDS 1.4 §2.2.3.16).

use super::Reader;
use crate::context::Context;
use crate::lifespan::{EXPIRED_PER_CALL, Expiry};
use crate::time::Instant;

impl Reader {
    /// Removes all that has expired, so that the application does not see it. At most all samples that the reader holds.
    pub(crate) fn expire(&mut self, now: Instant, ctx: &mut Context) {
        if self.cache.next_expiry().is_some() {
            ctx.work.steps(self.cache.expire(ctx.wall_clock(now), usize::MAX));
        }
    }

    /// The timer fired: removes up to [`EXPIRED_PER_CALL`] samples, which may make room for others.
    pub(crate) fn handle_expiry(&mut self, now: Instant, ctx: &mut Context) {
        let removed = self.cache.expire(ctx.wall_clock(now), EXPIRED_PER_CALL);
        ctx.work.steps(removed);
        if removed > 0 {
            self.unblock(now, ctx);
        }
        self.rearm_expiry(now, ctx);
    }

    /// To be called when samples came. The timer is moved only if one of them expires before all others.
    pub(super) fn arm_expiry(&mut self, now: Instant, ctx: &mut Context) {
        if self.cache.next_expiry().is_some_and(|next| next < self.armed_expiry) {
            self.rearm_expiry(now, ctx);
        }
    }

    /// The wall clock was set, or the timer fired.
    pub(crate) fn rearm_expiry(&mut self, now: Instant, ctx: &mut Context) {
        let next = self.cache.next_expiry();
        self.armed_expiry = next.unwrap_or(Expiry::NEVER);
        match next {
            Some(expiry) => ctx.timers.arm(self.expiry_timer, ctx.moment_of(expiry, now)),
            None => ctx.timers.cancel(self.expiry_timer),
        }
    }
}
