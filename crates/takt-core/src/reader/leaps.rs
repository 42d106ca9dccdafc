//! Sample numbers that a reader was made to skip though nothing of them has arrived (RTPS 2.5 §8.3.8.4, §8.3.8.6).
//!
//! A GAP, and the first number of a HEARTBEAT, take effect at once: a writer skips numbers at any time, and any HEARTBEAT may be
//! lost. A forged one names numbers that the writer has not written yet, and would hide them for ever. So each leap is remembered
//! until a sample behind it is delivered. A later HEARTBEAT that is not final, and whose last number lies before the end of the
//! leap, contradicts it: the reader goes back and asks for the numbers. Nothing of a leap has arrived, so no sample is delivered
//! twice. A final HEARTBEAT contradicts nothing: a writer greets new readers with what it had when it found them.
//!
//! It deliberately does not do: recognise a GAP for numbers that the writer has written and that are under way.

use super::writer_proxy::{Arrival, WriterProxy};
use super::{REORDER_WINDOW, Reader};
use crate::context::Context;
use crate::time::Instant;
use takt_wire::SequenceNumber;

/// Numbers that delivery has skipped at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leap {
    /// The first of them; `None` if delivery began behind them.
    from: Option<SequenceNumber>,
    /// The number after the last one.
    to: SequenceNumber,
}

impl WriterProxy {
    /// Delivery begins, with what the first HEARTBEAT says.
    pub(super) fn begin_leap(&mut self, start: SequenceNumber) {
        self.leap = Some(Leap { from: None, to: start });
    }

    /// Delivery was at `before`, and has skipped what it had to skip.
    pub(super) fn note_leap(&mut self, before: SequenceNumber) {
        let Some(to) = self.expected else { return };
        let unheard = before.max(self.highest.next());
        if to > unheard {
            let former = self.leap.filter(|leap| leap.to == unheard);
            self.leap = Some(Leap { from: former.map_or(Some(unheard), |leap| leap.from), to });
        }
    }

    /// A GAP names a number within the window.
    pub(super) fn mark_irrelevant(&mut self, sn: SequenceNumber) {
        self.set_arrival(sn, Arrival::Irrelevant);
        self.marked = self.marked.max(sn);
    }

    /// The leap at the end of which delivery stands, if the writer has not come so far.
    fn contradicted_leap(&self, last: SequenceNumber) -> Option<Leap> {
        self.leap.filter(|leap| self.expected == Some(leap.to) && last.next() < leap.to)
    }

    /// Numbers above `last` have not been written yet: whatever GAP has named them is wrong. Says how many it looked at.
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
    /// A HEARTBEAT says that `last` is the writer's last sample: takes back what contradicts that.
    pub(super) fn take_back(&mut self, now: Instant, ctx: &mut Context, index: u32, last: SequenceNumber) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        proxy.history_end = proxy.history_end.map(|end| end.min(last));
        if let Some(leap) = proxy.contradicted_leap(last) {
            ctx.counters.contradicted_gaps += 1;
            return self.go_back(now, ctx, index, leap);
        }
        let looked_at = proxy.unmark_above(last);
        ctx.counters.contradicted_gaps += u64::from(looked_at > 0);
        ctx.work.steps(looked_at);
        self.note_history(now, ctx, index);
    }

    /// Delivery goes on where a leap began. What has arrived behind the leap is forgotten, and asked for again.
    fn go_back(&mut self, now: Instant, ctx: &mut Context, index: u32, leap: Leap) {
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
