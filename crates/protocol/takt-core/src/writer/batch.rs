//! Batching of samples into shared datagrams (LATENCY_BUDGET, DDS 1.4 §2.2.3.8).
//!
//! Without a budget a sample is sent at once. With a budget it waits for at most that time, and
//! samples written meanwhile are sent with it. They are sent earlier if they fill a datagram, if
//! the history is full, or on request of the application. Readers need not be considered: a matched
//! reader accepts at least the writer's budget. The budget is only a hint for the rest of the path;
//! DEADLINE and LIVELINESS of a writer should allow for it.

use super::Writer;
use super::transmit::SAMPLES_PER_DATAGRAM;
use crate::context::Context;
use crate::time::Instant;
use crate::timer::TimerId;
use core::time::Duration;
use takt_wire::SequenceNumber;
use takt_wire::qos::History;

/// Overhead of a small sample in a message, in octets: `INFO_TS` 12, `DATA` 24, inline QoS 28.
const OVERHEAD_LEN: usize = 64;

/// Length of the RTPS header in octets.
const HEADER_LEN: usize = 20;

/// Longest wait of a sample, regardless of the budget.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Waiting samples of a writer.
#[derive(Debug)]
pub(super) struct Batch {
    timer: TimerId,
    /// Samples wait. While they do, none of the writer's new samples is sent.
    waits: bool,
    /// Approximate length of the waiting samples in a message, in octets.
    len: usize,
    /// Last sample that fits into one datagram, counted from the first waiting one.
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
    /// Sends the last change, of `payload_len` octets, at once or with others.
    pub(super) fn send_in_time(&mut self, now: Instant, ctx: &mut Context, payload_len: usize) {
        let budget = self.data.qos.latency_budget.duration;
        if budget == takt_wire::Duration::ZERO || self.proxies.len() == 0 {
            return self.flush(now, ctx);
        }
        if !self.batch.waits {
            if self.data_queued || self.window.cursor.sn != self.history.last_sn() {
                // Earlier samples wait for something else.
                return self.flush(now, ctx);
            }
            let wait = budget.as_nanos().map_or(WAIT_MAX, Duration::from_nanos).min(WAIT_MAX);
            self.batch.waits = true;
            self.batch.len = HEADER_LEN;
            self.batch.full_at = SequenceNumber(self.window.cursor.sn.0.saturating_add(SAMPLES_PER_DATAGRAM - 1));
            ctx.timers.arm(self.batch.timer, now.after(wait));
        }
        self.batch.len += payload_len + OVERHEAD_LEN;
        if self.batch.len + OVERHEAD_LEN > self.route.max_message || self.history.last_sn() >= self.batch.full_at {
            self.flush(now, ctx);
        }
    }

    /// Sends the waiting samples, and all other unsent changes.
    pub(crate) fn flush(&mut self, now: Instant, ctx: &mut Context) {
        if core::mem::take(&mut self.batch.waits) {
            ctx.timers.cancel(self.batch.timer);
        }
        // With a closed window there is nothing to send before it opens, except that KEEP_LAST
        // writers may leave readers behind.
        if !self.window.stalled || self.data.qos.history != History::KeepAll {
            self.queue_data(ctx);
        }
        if self.route.reliable {
            self.schedule_heartbeat(now, ctx);
        }
    }

    /// Handles the batch timer: the budget of the sample that waits longest is used up.
    pub(crate) fn handle_batch(&mut self, now: Instant, ctx: &mut Context) {
        self.flush(now, ctx);
    }
}
