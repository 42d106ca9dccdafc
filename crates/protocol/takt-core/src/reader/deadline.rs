//! Deadline monitoring at a reader: instances without a sample for too long (DEADLINE,
//! DDS 1.4 §2.2.3.7).
//!
//! A period begins with a sample that the reader keeps. An instance that is not alive misses no
//! deadline. A dropped sample may make an instance alive again; that also begins a period, because
//! data are expected of an alive instance.

use super::Reader;
use crate::cache::{CachePolicies, Delivered, ReaderCache};
use crate::context::Context;
use crate::deadline::DeadlineMonitor;
use crate::event::Event;
use crate::slots::ReaderHandle;
use crate::status::ReaderStatuses;
use crate::time::Instant;
use crate::timer::TimerKind;
use takt_wire::discovery::SubscriptionData;
use takt_wire::qos::DataReaderQos;

/// Returns the monitor of a reader with a finite period.
pub(super) fn monitor(
    handle: ReaderHandle,
    data: &SubscriptionData,
    cache: &ReaderCache,
    ctx: &mut Context,
) -> Option<DeadlineMonitor> {
    let kind = TimerKind::ReaderDeadline { reader: handle.index };
    let is_finite = !data.qos.deadline.period.is_infinite();
    is_finite.then(|| DeadlineMonitor::new(data.qos.deadline, cache.max_instances(), kind, ctx))
}

/// Records a change that the history accepted.
pub(super) fn delivered(monitor: &mut Option<DeadlineMonitor>, now: Instant, ctx: &mut Context, delivered: Delivered) {
    let begins = match delivered {
        // A filtered sample has met the deadline as well.
        Delivered::Data(handle) | Delivered::Filtered(handle) => Some(handle),
        Delivered::Expired { revived } => {
            ctx.counters.expired_samples += 1;
            revived
        }
        Delivered::Outdated { revived } => {
            ctx.counters.outdated_samples += 1;
            revived
        }
        Delivered::NotOwner => {
            ctx.counters.outranked_samples += 1;
            None
        }
        Delivered::StateChange => None,
    };
    if let (Some(handle), Some(monitor)) = (begins, monitor) {
        monitor.updated(now, ctx, handle);
    }
}

impl Reader {
    /// Adopts changed policies while the reader is enabled.
    pub(crate) fn adopt(&mut self, now: Instant, ctx: &mut Context, qos: &DataReaderQos) {
        let deadline_changed = self.data.qos.deadline != qos.deadline;
        self.data.qos = qos.clone();
        self.cache.adopt(CachePolicies::of(qos));
        if deadline_changed {
            self.change_deadline(now, ctx);
        }
    }

    /// Changes the period. Silent instances stay watched. If none were watched, their periods begin
    /// now.
    fn change_deadline(&mut self, now: Instant, ctx: &mut Context) {
        let Some(former) = &mut self.deadline else {
            self.deadline = monitor(self.handle, &self.data, &self.cache, ctx);
            if let Some(monitor) = &mut self.deadline {
                self.cache.alive_instances().for_each(|instance| monitor.updated(now, ctx, instance));
            }
            return;
        };
        if self.data.qos.deadline.period.is_infinite() {
            former.close(ctx);
            self.deadline = None;
        } else {
            former.set_deadline(now, ctx, self.data.qos.deadline);
        }
    }

    /// Handles the deadline timer.
    pub(crate) fn handle_deadline(&mut self, now: Instant, ctx: &mut Context) {
        let Some(monitor) = &mut self.deadline else { return };
        let Self { cache, statuses: ReaderStatuses { deadline_missed, .. }, handle, .. } = self;
        monitor.handle_timeout(now, ctx, |missed| {
            let is_alive = cache.is_alive(missed.instance);
            if is_alive {
                cache.release_ownership(missed.instance);
                deadline_missed.missed(missed.instance, missed.periods);
            }
            is_alive
        });
        if deadline_missed.total_count_change > 0 {
            ctx.notify(Event::RequestedDeadlineMissed(*handle));
        }
    }
}
