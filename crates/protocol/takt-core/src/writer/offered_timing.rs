//! Offered timing of a writer: DEADLINE (DDS 1.4 §2.2.3.7) and manual LIVELINESS
//! (DDS 1.4 §2.2.3.11).

use super::pace::Pace;
use super::{Change, Write, Writer};
use crate::cache::{ChangeKind, InstanceHandle};
use crate::context::Context;
use crate::deadline::DeadlineMonitor;
use crate::event::Event;
use crate::lifespan::Expiry;
use crate::slots::WriterHandle;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use core::time::Duration;
use takt_wire::discovery::PublicationData;
use takt_wire::qos::{DataWriterQos, Liveliness, LivelinessKind};

/// Timing that a writer offers, with its timers.
#[derive(Debug)]
pub(crate) struct OfferedTiming {
    pub(super) deadline: DeadlineMonitor,
    pub(super) lease: Option<OwnLease>,
    pub(super) pace: Pace,
    pub(super) expiry_timer: TimerId,
    /// Expiry that the timer is armed for.
    pub(super) armed_expiry: Expiry,
}

impl OfferedTiming {
    pub(super) fn new(now: Instant, handle: WriterHandle, data: &PublicationData, ctx: &mut Context) -> Self {
        let writer = handle.index;
        Self {
            deadline: monitor(handle, data, ctx),
            pace: Pace::new(&data.qos, ctx.timers.register(TimerKind::Pace { writer })),
            lease: OwnLease::new(now, handle, &data.qos.liveliness, ctx),
            expiry_timer: ctx.timers.register(TimerKind::WriterExpiry { writer }),
            armed_expiry: Expiry::NEVER,
        }
    }
}

/// Returns the deadline monitor of a writer. It tracks instances even while the period is infinite,
/// because the period may become finite, and the history lacks instances written while there were
/// no readers.
fn monitor(handle: WriterHandle, data: &PublicationData, ctx: &mut Context) -> DeadlineMonitor {
    let limit = data.qos.resource_limits.max_instances.map(|limit| limit as usize);
    let max_instances = limit.unwrap_or(ctx.limits.default_max_instances);
    DeadlineMonitor::new(data.qos.deadline, max_instances, TimerKind::WriterDeadline { writer: handle.index }, ctx)
}

/// Lease of a writer whose application has to assert its liveliness.
#[derive(Debug)]
pub(super) struct OwnLease {
    kind: LivelinessKind,
    duration: Duration,
    asserted: Instant,
    timer: TimerId,
    is_lost: bool,
}

impl OwnLease {
    /// Returns the lease; `None` if liveliness is automatic or the lease is infinite.
    pub(super) fn new(now: Instant, handle: WriterHandle, qos: &Liveliness, ctx: &mut Context) -> Option<Self> {
        let duration = Duration::from_nanos(qos.lease_duration.as_nanos()?);
        if qos.kind == LivelinessKind::Automatic {
            return None;
        }
        let timer = ctx.timers.register(TimerKind::OwnLease { writer: handle.index });
        ctx.timers.arm(timer, now.after(duration));
        Some(Self { kind: qos.kind, duration, asserted: now, timer, is_lost: false })
    }
}

impl OfferedTiming {
    pub(super) fn close(&self, ctx: &mut Context) {
        self.deadline.close(ctx);
        if let Some(lease) = &self.lease {
            ctx.timers.release(lease.timer);
        }
    }

    /// Records a written change: it asserts the writer, and starts a new period of its instance or
    /// ends the last one.
    pub(super) fn record_write(&mut self, now: Instant, ctx: &mut Context, write: &Write) {
        self.renew_lease(now, ctx);
        match write.kind {
            ChangeKind::Alive => self.deadline.updated(now, ctx, InstanceHandle(write.key_hash)),
            _ => self.deadline.ended(InstanceHandle(write.key_hash)),
        }
    }

    /// Renews the lease after an assertion of the writer.
    pub(super) fn renew_lease(&mut self, now: Instant, ctx: &mut Context) {
        let Some(lease) = &mut self.lease else { return };
        lease.asserted = now;
        if core::mem::take(&mut lease.is_lost) {
            ctx.timers.arm(lease.timer, now.after(lease.duration));
        }
    }

    /// Renews the lease after an assertion of the participant.
    pub(crate) fn participant_asserted(&mut self, now: Instant, ctx: &mut Context) {
        if self.lease.as_ref().is_some_and(|lease| lease.kind == LivelinessKind::ManualByParticipant) {
            self.renew_lease(now, ctx);
        }
    }
}

impl Writer {
    /// Enables the writer, which starts its lease.
    pub(crate) fn enable(&mut self, now: Instant, ctx: &mut Context) {
        self.is_enabled = true;
        self.timing.renew_lease(now, ctx);
    }

    /// Adopts changed policies while the writer is enabled.
    pub(crate) fn adopt(&mut self, now: Instant, ctx: &mut Context, qos: &DataWriterQos) {
        let deadline_changed = self.data.qos.deadline != qos.deadline;
        self.data.qos = qos.clone();
        self.timing.pace.adopt(qos);
        if deadline_changed {
            self.timing.deadline.set_deadline(now, ctx, qos.deadline);
        }
    }

    /// Asserts the writer at readers that are not sent the last change. With MANUAL_BY_TOPIC by a
    /// heartbeat; with MANUAL_BY_PARTICIPANT the participant does it ([`Self::withholds_last`]).
    pub(super) fn assert_by_heartbeat(&mut self, ctx: &mut Context) {
        if self.timing.lease.as_ref().is_some_and(|lease| lease.kind == LivelinessKind::ManualByTopic) {
            self.heartbeat.asserts = true;
            self.queue_heartbeat(ctx);
        }
    }

    /// Reports whether the last change is not sent to every reader, because a filter rejects it or
    /// it is directed.
    pub(crate) fn withholds_last(&self) -> bool {
        let is_withheld = |change: &Change| change.rejected != 0 || !change.directed.readers().is_empty();
        self.history.get(self.history.last_sn()).is_some_and(is_withheld)
    }

    /// Handles the lease timer.
    pub(crate) fn handle_lease_end(&mut self, now: Instant, ctx: &mut Context) {
        let Some(lease) = &mut self.timing.lease else { return };
        let due = lease.asserted.after(lease.duration);
        if due > now {
            return ctx.timers.arm(lease.timer, due);
        }
        if !self.is_enabled {
            return ctx.timers.arm(lease.timer, now.after(lease.duration));
        }
        lease.is_lost = true;
        self.statuses.liveliness_lost.lost();
        ctx.notify(Event::LivelinessLost(self.handle));
    }

    /// Handles the deadline timer.
    pub(crate) fn handle_deadline(&mut self, now: Instant, ctx: &mut Context) {
        let status = &mut self.statuses.deadline_missed;
        self.timing.deadline.handle_timeout(now, ctx, |missed| {
            status.missed(missed.instance, missed.periods);
            true
        });
        if status.total_count_change > 0 {
            ctx.notify(Event::OfferedDeadlineMissed(self.handle));
        }
    }
}
