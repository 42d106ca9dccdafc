//! Leaps: sample numbers that a reader skipped although nothing of them has arrived
//! (RTPS 2.5 §8.3.8.4, §8.3.8.6).
//!
//! A GAP, and the first number of a HEARTBEAT, take effect at once: a writer skips numbers at any
//! time, and any HEARTBEAT may be lost. A forged one could name numbers that the writer has not
//! written yet, and would hide them forever. Each leap is therefore recorded until a sample after
//! it is delivered. A later HEARTBEAT that is not final and whose last number lies before the end
//! of the leap contradicts the leap. The reader then goes back and requests the numbers. Nothing of
//! a leap has arrived, so no sample is delivered twice. A final HEARTBEAT contradicts nothing,
//! because a writer's initial heartbeat states what it had at the match.
//!
//! Not covered: forged GAPs for numbers that the writer has written and that are in transit.

use super::Reader;
use super::writer_proxy::{Arrival, WriterProxy};
use crate::config::REORDER_WINDOW;
use crate::context::Context;
use crate::time::Instant;
use takt_wire::SequenceNumber;

/// Numbers that delivery has skipped at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leap {
    /// First skipped number; `None` if delivery began after them.
    from: Option<SequenceNumber>,
    /// Number after the last skipped one.
    to: SequenceNumber,
}

impl WriterProxy {
    /// Begins delivery at the start that the first HEARTBEAT states.
    pub(super) fn begin_leap(&mut self, start: SequenceNumber) {
        self.leap = Some(Leap { from: None, to: start });
    }

    /// Records the numbers that delivery has skipped since `before`.
    pub(super) fn record_leap(&mut self, before: SequenceNumber) {
        let Some(to) = self.expected else { return };
        let first_skipped = before.max(self.highest.next());
        if to > first_skipped {
            let former = self.leap.filter(|leap| leap.to == first_skipped);
            self.leap = Some(Leap { from: former.map_or(Some(first_skipped), |leap| leap.from), to });
        }
    }

    /// Marks a number within the window that a GAP has named.
    pub(super) fn mark_irrelevant(&mut self, sn: SequenceNumber) {
        self.set_arrival(sn, Arrival::Irrelevant);
        self.marked = self.marked.max(sn);
    }

    /// Returns the leap at whose end delivery stands, if the writer has not written so far.
    fn contradicted_leap(&self, last: SequenceNumber) -> Option<Leap> {
        self.leap.filter(|leap| self.expected == Some(leap.to) && last.next() < leap.to)
    }

    /// Clears GAP marks above `last`, which are wrong because these numbers were not written yet.
    /// Returns the number of entries visited.
    fn unmark_above(&mut self, last: SequenceNumber) -> usize {
        let known = last.max(self.highest);
        let Some(expected) = self.expected.filter(|_| self.marked > known) else { return 0 };
        let (from, to) = (expected.max(known.next()).0, self.marked.0);
        for number in from..=to {
            let sn = SequenceNumber(number);
            if self.in_window(sn) && self.arrival(sn) == Arrival::Irrelevant {
                self.set_arrival(sn, Arrival::Missing);
            }
        }
        self.marked = known;
        (to - from + 1).max(0) as usize
    }
}

impl Reader {
    /// Handles a HEARTBEAT with the last number `last`: reverts what contradicts it.
    pub(super) fn revert_contradicted(&mut self, now: Instant, ctx: &mut Context, index: u32, last: SequenceNumber) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        proxy.history_end = proxy.history_end.map(|end| end.min(last));
        if let Some(leap) = proxy.contradicted_leap(last) {
            ctx.counters.contradicted_gaps += 1;
            return self.resume_at(now, ctx, index, leap);
        }
        let visited = proxy.unmark_above(last);
        ctx.counters.contradicted_gaps += u64::from(visited > 0);
        ctx.work.steps(visited);
        self.note_history(now, ctx, index);
    }

    /// Resumes delivery at the start of a leap. Samples that arrived after the leap are dropped,
    /// and requested again.
    fn resume_at(&mut self, now: Instant, ctx: &mut Context, index: u32, leap: Leap) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        for stored in proxy.drain() {
            self.cache.discard(stored);
        }
        ctx.work.steps(REORDER_WINDOW as usize);
        proxy.fragments.drop_below(SequenceNumber::MAX, &mut self.cache.pool, &mut self.reassembly);
        proxy.return_to(leap.from);
        if leap.from.is_none() {
            self.handle_timeout(now, ctx, index);
        }
    }
}
