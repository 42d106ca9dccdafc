//! Acknowledgments of a reader (RTPS 2.5 §8.4.12.2).
//!
//! A heartbeat that requests an answer, or that reveals missing samples, is answered at once. The
//! same samples are not requested more often than every `nack_suppression`, nor while their repair
//! may be in transit ([`RetryTimer`](super::retry_timer)). Missing samples that the data reveal are
//! requested after `nack_delay`, without waiting for a heartbeat.

use super::Reader;
use crate::context::{Context, Job};
use crate::time::Instant;
use core::time::Duration;
use takt_wire::builder::MessageBuilder;
use takt_wire::message::{AckNack, Heartbeat, NackFrag};
use takt_wire::{Full, SequenceNumber};

/// Time between the first requests for a writer's first heartbeat; doubles up to 16 times the
/// heartbeat period.
const PREEMPTIVE_ACKNACK_PERIOD: Duration = Duration::from_millis(20);
const PREEMPTIVE_ACKNACK_DOUBLINGS_MAX: u32 = 6;
/// Range of one request beyond the first missing sample.
const REQUEST_RANGE_MAX: i64 = 255;
/// Minimum time between two requests of a builtin reader for the same samples; see
/// [`Context::period_multiplier`].
const BUILTIN_SUPPRESSION: Duration = Duration::from_millis(10);

/// Counts of a reader's ACKNACKs and NACK_FRAGs to all writers. They therefore also increase for a
/// writer that was matched before and has not noticed that it was unmatched.
#[derive(Debug, Default)]
pub(super) struct AckCounts {
    pub(super) acknack: i32,
    pub(super) nack_frag: i32,
}

impl Reader {
    pub(super) fn answer_heartbeat(&mut self, now: Instant, ctx: &mut Context, index: u32, heartbeat: &Heartbeat) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let misses = proxy.misses_samples();
        // Samples that the writer does not have need not be requested again.
        let is_available = proxy.expected.is_none_or(|expected| expected <= heartbeat.last_sn);
        if heartbeat.is_final && !(misses && is_available) {
            return;
        }
        if heartbeat.reader == self.entity_id {
            proxy.retry_timer.ended();
        }
        let due = proxy.expected.filter(|_| misses).and_then(|expected| proxy.retry_timer.due(expected));
        match due {
            Some(due) if due > now => ctx.timers.arm_by(proxy.timer, due),
            _ => self.queue_acknack(ctx, index),
        }
    }

    pub(super) fn queue_acknack(&mut self, ctx: &mut Context, index: u32) {
        let reader = self.handle.index;
        if let Some(proxy) = self.proxies.get_mut(index)
            && !proxy.queued
        {
            proxy.queued = true;
            ctx.jobs.push(self.priority, Job::AckNack { reader, proxy: index });
        }
    }

    /// Handles the timer of a proxy: requests missing samples, or the first heartbeat.
    pub(crate) fn handle_timeout(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        if let Some(expected) = proxy.expected {
            if proxy.needs_heartbeat() {
                ctx.timers.arm(proxy.timer, now.after(ctx.timing.heartbeat_period));
            } else if !proxy.misses_samples() {
                return;
            } else if let Some(due) = proxy.retry_timer.due(expected).filter(|due| *due > now) {
                return ctx.timers.arm(proxy.timer, due);
            }
        } else {
            let doublings = proxy.preemptive_acknacks.min(PREEMPTIVE_ACKNACK_DOUBLINGS_MAX);
            proxy.preemptive_acknacks += 1;
            let multiplier = if self.entity_id.is_builtin() { ctx.period_multiplier() } else { 1 };
            ctx.timers.arm(proxy.timer, now.after(PREEMPTIVE_ACKNACK_PERIOD * multiplier * 2_u32.pow(doublings)));
        }
        self.queue_acknack(ctx, index);
    }

    /// Builds the acknowledgment to one writer, with requests for missing fragments.
    pub(crate) fn transmit_acknack(
        &mut self,
        now: Instant,
        index: u32,
        ctx: &mut Context,
        frame: &mut [u8],
    ) -> Option<usize> {
        let proxy = self.proxies.get_mut(index)?;
        if !core::mem::take(&mut proxy.queued) {
            return None;
        }
        ctx.destinations.push(proxy.path.locator);
        let len = frame.len().min(proxy.path.max_message);
        let mut builder = MessageBuilder::new(&mut frame[..len], &ctx.header).ok()?;
        self.build_acknack(now, index, ctx, &mut builder).ok()?;
        Some(builder.len())
    }

    fn build_acknack(
        &mut self,
        now: Instant,
        index: u32,
        ctx: &mut Context,
        builder: &mut MessageBuilder<'_>,
    ) -> Result<(), Full> {
        let Some(proxy) = self.proxies.get_mut(index) else { return Err(Full) };
        builder.info_destination(proxy.guid.prefix)?;
        let misses = proxy.misses_samples();
        let requests_heartbeat = proxy.take_heartbeat_request();
        self.counts.acknack = self.counts.acknack.wrapping_add(1);
        builder.acknack(&AckNack {
            reader: self.entity_id,
            writer: proxy.guid.entity_id,
            reader_sn_state: proxy.state(),
            count: self.counts.acknack,
            is_final: !misses && !requests_heartbeat,
        })?;
        ctx.counters.acknacks_sent += 1;
        let Some(expected) = proxy.expected else { return Ok(()) };
        if misses {
            let wait_min = match self.entity_id.is_builtin() {
                true => ctx.timing.nack_suppression.max(BUILTIN_SUPPRESSION * ctx.period_multiplier()),
                false => ctx.timing.nack_suppression,
            };
            let last = proxy.announced.min(SequenceNumber(expected.0.saturating_add(REQUEST_RANGE_MAX)));
            proxy.retry_timer.request_sent(now, (expected, last), wait_min);
            if let Some(due) = proxy.retry_timer.retry() {
                ctx.timers.arm(proxy.timer, due);
            }
        }
        let mut after = expected.prev();
        while let Some(sn) = proxy.fragments.incomplete().filter(|sn| *sn > after && *sn <= proxy.announced).min() {
            after = sn;
            let Some(fragments) = proxy.fragments.missing(sn, &self.cache.pool) else { continue };
            self.counts.nack_frag = self.counts.nack_frag.wrapping_add(1);
            let (reader, writer, count) = (self.entity_id, proxy.guid.entity_id, self.counts.nack_frag);
            if builder.nack_frag(&NackFrag { reader, writer, sn, fragments, count }).is_err() {
                // The remaining fragments are requested next time.
                break;
            }
            ctx.counters.nack_frags_sent += 1;
        }
        Ok(())
    }
}
