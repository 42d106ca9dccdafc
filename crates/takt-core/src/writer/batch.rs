//! Samples that wait for others to share a datagram with (LATENCY_BUDGET, DDS 1.4 §2.2.3.8).
//!
//! Without a budget a sample leaves at once. With one it waits for up to the budget, so that those that are written meanwhile
//! leave with it. All leave before if they fill a datagram, if the history is full, or if the application says so. No reader
//! has to be asked: one that matches allows for at least the writer's budget. The budget is no more than a hint for the rest of
//! the way; DEADLINE and LIVELINESS of a writer should leave room for it.

use super::Writer;
use super::transmit::SAMPLES_PER_DATAGRAM;
use crate::context::Context;
use crate::time::Instant;
use crate::timer::TimerId;
use core::time::Duration;
use takt_wire::SequenceNumber;
use takt_wire::qos::History;

/// What surrounds a small sample in a message: `INFO_TS` 12, `DATA` 24, inline QoS 28.
const OVERHEAD_LEN: usize = 64;

/// The RTPS header.
const HEADER_LEN: usize = 20;

/// No sample waits for longer, whatever the budget.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The samples of a writer that wait.
#[derive(Debug)]
pub(super) struct Batch {
    timer: TimerId,
    /// Whether there are any. Then nothing of the writer's new samples is sent.
    waits: bool,
    /// Octets that they take in a message, about.
    len: usize,
    /// The last of those that a datagram carries, counted from the first that waits.
    full_at: SequenceNumber,
}

impl Batch {
    pub(super) const fn new(timer: TimerId) -> Self {
        Self { timer, waits: false, len: 0, full_at: SequenceNumber::ZERO }
    }

    pub(super) fn close(&self, ctx: &mut Context) {
        ctx.timers.release(self.timer);
    }

    pub(super) fn waits(&self) -> bool {
        self.waits
    }
}

impl Writer {
    /// The last change, of so many octets, is to be sent: now, or with others.
    pub(super) fn send_in_time(&mut self, now: Instant, ctx: &mut Context, payload_len: usize) {
        let budget = self.data.qos.latency_budget.duration;
        if budget == takt_wire::Duration::ZERO || self.proxies.len() == 0 {
            return self.flush(now, ctx);
        }
        if !self.batch.waits {
            if self.data_queued || self.cursor.sn != self.history.last_sn() {
                // Others before it wait for something else.
                return self.flush(now, ctx);
            }
            let wait = budget.as_nanos().map_or(WAIT_MAX, Duration::from_nanos).min(WAIT_MAX);
            self.batch.waits = true;
            self.batch.len = HEADER_LEN;
            self.batch.full_at = SequenceNumber(self.cursor.sn.0.saturating_add(SAMPLES_PER_DATAGRAM - 1));
            ctx.timers.arm(self.batch.timer, now.after(wait));
        }
        self.batch.len += payload_len + OVERHEAD_LEN;
        if self.batch.len + OVERHEAD_LEN > self.route.max_message || self.history.last_sn() >= self.batch.full_at {
            self.flush(now, ctx);
        }
    }

    /// Sends what waits, and whatever else is to be sent.
    pub(crate) fn flush(&mut self, now: Instant, ctx: &mut Context) {
        if core::mem::take(&mut self.batch.waits) {
            ctx.timers.cancel(self.batch.timer);
        }
        // Behind a closed window there is nothing to try before it opens; readers of KEEP_LAST may be left behind.
        if !self.stalled || self.data.qos.history != History::KeepAll {
            self.queue_data(ctx);
        }
        if self.route.reliable {
            self.ask_soon(now, ctx);
        }
    }

    /// The budget of the sample that waits longest is used up.
    pub(crate) fn handle_batch(&mut self, now: Instant, ctx: &mut Context) {
        self.flush(now, ctx);
    }
}
