//! Instances of a reader that get no sample for too long (DEADLINE, DDS 1.4 §2.2.3.7).
//!
//! A period begins with a sample that the reader keeps. An instance that is not alive misses nothing. A sample that the reader
//! drops may make an instance alive again; a period begins then too, for data is expected of a living instance.

use super::Reader;
use crate::cache::{CachePolicies, Delivered, ReaderCache};
use crate::context::Context;
use crate::deadline::DeadlineMonitor;
use crate::event::Event;
use crate::slots::ReaderHandle;
use crate::time::Instant;
use crate::timer::TimerKind;
use takt_wire::discovery::SubscriptionData;
use takt_wire::qos::DataReaderQos;

/// The monitor of a reader with a finite period.
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

/// Keeps account of what the history took.
pub(super) fn delivered(monitor: &mut Option<DeadlineMonitor>, now: Instant, ctx: &mut Context, delivered: Delivered) {
    let begins = match delivered {
        // What the filter keeps back has come in time all the same.
        Delivered::Data(handle) | Delivered::Filtered(handle) => Some(handle),
        Delivered::Expired { revived } => {
            ctx.counters.expired_samples += 1;
            revived
        }
        Delivered::Outdated { revived } => {
            ctx.counters.outdated_samples += 1;
            revived
        }
        Delivered::Outranked => {
            ctx.counters.outranked_samples += 1;
            None
        }
        Delivered::News => None,
    };
    if let (Some(handle), Some(monitor)) = (begins, monitor) {
        monitor.updated(now, ctx, handle);
    }
}

impl Reader {
    /// Takes over policies that may change while it is enabled.
    pub(crate) fn adopt(&mut self, now: Instant, ctx: &mut Context, qos: &DataReaderQos) {
        let deadline_changed = self.data.qos.deadline != qos.deadline;
        self.data.qos = qos.clone();
        self.cache.adopt(CachePolicies::of(qos));
        if deadline_changed {
            self.change_deadline(now, ctx);
        }
    }

    /// DEADLINE is another one. Instances that are silent stay watched; where none were watched, their periods begin now.
    fn change_deadline(&mut self, now: Instant, ctx: &mut Context) {
        let Some(former) = &mut self.deadline else {
            self.deadline = monitor(self.handle, &self.data, &self.cache, ctx);
            if let Some(monitor) = &mut self.deadline {
                self.cache.living().for_each(|instance| monitor.updated(now, ctx, instance));
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

    /// The deadline timer fired.
    pub(crate) fn handle_deadline(&mut self, now: Instant, ctx: &mut Context) {
        let Some(monitor) = &mut self.deadline else { return };
        let Self { cache, deadline_missed, handle, .. } = self;
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
