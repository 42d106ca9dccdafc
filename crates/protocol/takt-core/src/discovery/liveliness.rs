//! Writer liveliness protocol (RTPS 2.5 §8.4.13): participants assert the liveliness of their
//! writers over a builtin topic, as often as the shortest lease of these writers requires.
//!
//! A writer is alive while it, or its participant on its behalf, asserts itself within its lease:
//! by data, by a heartbeat (`MANUAL_BY_TOPIC`: only with the liveliness flag), or by an assertion
//! of its kind. Readers track the leases of their writers in [`crate::reader`].
//!
//! A participant with several `MANUAL_BY_PARTICIPANT` writers asserts all of them soon after a
//! write to one of them (DDS 1.4 §2.2.3.11). With one such writer it does so if the change is not
//! sent to every matched reader.

use super::sedp::BuiltinChange;
use super::{PARTICIPANT_MESSAGES, PARTICIPANT_MESSAGES_SECURE};
use crate::cache::{ChangeKind, ReadCursor, Selector};
use crate::context::Context;
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use crate::writer::Writer;
use core::time::Duration;
use takt_wire::discovery::ParticipantMessageData;
use takt_wire::qos::LivelinessKind;
use takt_wire::{EntityId, Guid, GuidPrefix};

/// Number of assertions within one lease, so that two may be lost.
const ASSERTIONS_PER_LEASE: u32 = 3;
/// Minimum time between assertions, however short the lease.
const PERIOD_MIN: Duration = Duration::from_millis(5);

/// State of the assertions of the participant's writers.
#[derive(Debug)]
pub(crate) struct Assertion {
    timer: TimerId,
    /// Period of the assertions of `AUTOMATIC` writers.
    period: Option<Duration>,
    manual_timer: TimerId,
    /// Minimum time between two assertions caused by writes of `MANUAL_BY_PARTICIPANT` writers, if
    /// there are any.
    manual_period: Option<Duration>,
    /// There are several such writers: each write asserts all of them.
    is_manual_shared: bool,
    manual_sent: Option<Instant>,
}

impl Assertion {
    pub(crate) fn new(ctx: &mut Context) -> Self {
        Self {
            timer: ctx.timers.register(TimerKind::AssertLiveliness),
            period: None,
            manual_timer: ctx.timers.register(TimerKind::AssertManually),
            manual_period: None,
            is_manual_shared: false,
            manual_sent: None,
        }
    }
}

impl Discovery {
    /// Reschedules the assertions after a writer was created or deleted, because the shortest lease
    /// may have changed.
    pub(crate) fn schedule_assertions(&mut self, call: &mut Call<'_>) {
        let leases = |kind: LivelinessKind| {
            let enabled = call.endpoints.writers.iter().filter(|(_, writer)| writer.is_enabled);
            let of_writers = enabled.map(|(_, writer)| writer.data.qos.liveliness);
            let of_kind = of_writers.filter(move |liveliness| liveliness.kind == kind);
            of_kind.filter_map(|liveliness| liveliness.lease_duration.as_nanos())
        };
        let period_of = |shortest: u64| (Duration::from_nanos(shortest) / ASSERTIONS_PER_LEASE).max(PERIOD_MIN);
        self.assertion.is_manual_shared = leases(LivelinessKind::ManualByParticipant).count() > 1;
        self.assertion.manual_period = leases(LivelinessKind::ManualByParticipant).min().map(period_of);
        let period = leases(LivelinessKind::Automatic).min().map(period_of);
        if period == self.assertion.period {
            return;
        }
        self.assertion.period = period;
        match period {
            Some(_) => call.ctx.timers.arm(self.assertion.timer, call.now),
            None => call.ctx.timers.cancel(self.assertion.timer),
        }
    }

    /// Handles the assertion timer.
    pub(crate) fn assert_automatic_writers(&mut self, call: &mut Call<'_>) {
        self.write_assertion(call, LivelinessKind::Automatic);
        if let Some(period) = self.assertion.period {
            call.ctx.timers.arm(self.assertion.timer, call.now.after(period));
        }
    }

    /// Asserts all writers whose liveliness is `MANUAL_BY_PARTICIPANT` (DDS 1.4 §2.2.2.2.1.18).
    pub(crate) fn assert_liveliness(&mut self, call: &mut Call<'_>) {
        self.assertion.manual_sent = Some(call.now);
        call.ctx.timers.cancel(self.assertion.manual_timer);
        call.ctx.work.steps(call.endpoints.writers.len());
        for (_, writer) in call.endpoints.writers.iter_mut() {
            writer.timing.participant_asserted(call.now, call.ctx);
        }
        self.write_assertion(call, LivelinessKind::ManualByParticipant);
    }

    /// Records a write to a writer whose liveliness may be `MANUAL_BY_PARTICIPANT`. The write also
    /// asserts the other writers, and readers that are not sent the change must learn that the
    /// writer is alive.
    pub(crate) fn manually_asserted(&mut self, call: &mut Call<'_>, writer: u32) {
        let Some(period) = self.assertion.manual_period else { return };
        let is_manual = |writer: &&Writer| writer.data.qos.liveliness.kind == LivelinessKind::ManualByParticipant;
        let Some(writer) = call.endpoints.writers.get(writer).filter(is_manual) else { return };
        if !self.assertion.is_manual_shared && !writer.withholds_last() {
            return;
        }
        match self.assertion.manual_sent.map(|sent| sent.after(period)).filter(|due| *due > call.now) {
            Some(due) => call.ctx.timers.arm_by(self.assertion.manual_timer, due),
            None => self.assert_liveliness(call),
        }
    }

    /// Announces that the writers of a kind are alive, and asserts them at local readers, which do
    /// not receive the announcement.
    fn write_assertion(&mut self, call: &mut Call<'_>, kind: LivelinessKind) {
        let prefix = call.ctx.header.prefix;
        let wire_kind = match kind {
            LivelinessKind::ManualByParticipant => ParticipantMessageData::KIND_MANUAL_BY_PARTICIPANT,
            _ => ParticipantMessageData::KIND_AUTOMATIC,
        };
        let payload = ParticipantMessageData { prefix, kind: wire_kind, data: &[] }.to_bytes();
        let mut key_hash = [0; 16];
        key_hash[..12].copy_from_slice(&prefix.0);
        key_hash[12..].copy_from_slice(&wire_kind);
        call.ctx.work.steps(call.endpoints.writers.len());
        let of_kind = |writer: &&Writer| !writer.entity_id.is_builtin() && writer.data.qos.liveliness.kind == kind;
        let (mut is_secure, mut is_unprotected) = (false, call.ctx.security.is_none());
        for writer in call.endpoints.writers.iter().map(|(_, writer)| writer).filter(of_kind) {
            is_secure |= writer.security.protection.liveliness;
            is_unprotected |= !writer.security.protection.liveliness;
        }
        for (_, index) in [(is_unprotected, PARTICIPANT_MESSAGES), (is_secure, PARTICIPANT_MESSAGES_SECURE)]
            .into_iter()
            .filter(|(is_due, _)| *is_due)
        {
            let change = BuiltinChange { kind: ChangeKind::Alive, key_hash, payload: &payload };
            self.write_builtin(call, index, change);
        }
        call.endpoints.assert_writers_of(call.now, call.ctx, prefix, kind, None);
    }
}

impl Endpoints {
    /// Handles assertions of remote participants.
    pub(super) fn take_assertions(&mut self, now: Instant, ctx: &mut Context, reader: u32) {
        let is_secure = reader == PARTICIPANT_MESSAGES_SECURE;
        loop {
            let Some(reader) = self.readers.get_mut(reader) else { return };
            let Some(sample) = reader.cache.next(Selector::TAKE, None, &mut ReadCursor::default()) else { return };
            ctx.work.unit();
            let (from, instance) = (sample.info.publication.prefix, sample.info.instance_handle);
            let message = sample.info.valid_data.then(|| ParticipantMessageData::parse(sample.payload));
            let kind = match message {
                Some(Ok(message)) if message.prefix == from => match message.kind {
                    ParticipantMessageData::KIND_AUTOMATIC => Some(LivelinessKind::Automatic),
                    ParticipantMessageData::KIND_MANUAL_BY_PARTICIPANT => Some(LivelinessKind::ManualByParticipant),
                    _ => None,
                },
                Some(_) => {
                    ctx.counters.malformed_discovery += 1;
                    None
                }
                None => None,
            };
            // A participant that invents kinds of assertions must not exhaust the instances.
            reader.cache.abandon(instance);
            if let Some(kind) = kind {
                self.assert_writers_of(now, ctx, from, kind, Some(is_secure));
            }
        }
    }

    /// Asserts the writers of a participant: all of them, or only those whose liveliness is
    /// protected, or only those whose liveliness is not.
    fn assert_writers_of(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        prefix: GuidPrefix,
        kind: LivelinessKind,
        is_secure: Option<bool>,
    ) {
        let first = Guid { prefix, entity_id: EntityId::UNKNOWN };
        for (_, listeners) in self.sources.range(first..).take_while(|(writer, _)| writer.prefix == prefix) {
            ctx.work.steps(listeners.len());
            for (reader, proxy) in listeners {
                if let Some(reader) = self.readers.get_mut(*reader)
                    && is_secure.is_none_or(|is_secure| reader.protection.liveliness == is_secure)
                {
                    reader.handle_assertion(now, ctx, *proxy, kind);
                }
            }
        }
    }
}
