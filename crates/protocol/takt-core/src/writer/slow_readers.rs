//! Slow and silent readers, which a writer does not wait for (RTPS 2.5 §8.4.7.5, `isActive` of a
//! ReaderProxy).
//!
//! The send window protects the reorder window of each reliable reader. A reader that keeps it
//! closed for [`EXCLUDED_AFTER`], while another one has received everything, is *excluded*. New
//! samples are not sent to it. It requests them from the history as fast as it acknowledges, and
//! keeps pace again once it has nearly all. A KEEP_ALL writer keeps the samples that such a reader
//! has not acknowledged: `write` blocks when the history is full, and until then the other readers
//! are served.
//!
//! A reliable reader that has never acknowledged anything is *silent* under two conditions. It left
//! more than [`SILENT_HEARTBEATS`] heartbeats unanswered for the lease of its participant, at least
//! [`SILENT_AFTER_MIN`] and at most [`SILENT_AFTER_MAX`], and its participant was heard in that
//! time. Its side may have refused the match. Nothing is kept for it until it answers
//! (RTPS 2.5 §8.4.2.3.1: a reader must answer a HEARTBEAT). `wait_for_acknowledgments` still waits
//! for it. Builtin writers wait for all readers.
//!
//! A reader that has acknowledged before may ignore the writer since (DDS 1.4 §2.2.2.2.1), or its
//! side may have ended the match otherwise. It is silent once it left heartbeats unanswered for the
//! lease of the writer's own participant plus [`SILENT_AFTER_MIN`], counted from when its
//! participant is heard again. A participant that receives nothing for that lease has removed the
//! writer. A participant that receives the writer and is matched with it answers.
//!
//! A link that fails for less than the lease ends no match, so it makes no reader silent either. A
//! participant that is not heard at all is removed with its readers when its lease ends.

use super::{ReaderProxy, Writer};
use crate::config::REORDER_WINDOW;
use crate::context::Context;
use crate::event::Event;
use crate::time::Instant;
use alloc::vec::Vec;
use core::time::Duration;
use takt_wire::{Guid, GuidPrefix, SequenceNumber};

/// Longest time for which a reader may keep the send window closed for others.
const EXCLUDED_AFTER: Duration = Duration::from_millis(50);

/// Minimum time for which a reader may leave heartbeats unanswered, from the first one on, before
/// it is silent.
const SILENT_AFTER_MIN: Duration = Duration::from_secs(2);

/// Maximum time taken from a longer lease, so that a silent reader does not stop a KEEP_ALL writer
/// for longer.
const SILENT_AFTER_MAX: Duration = Duration::from_secs(10);

/// Heartbeats that a reader may leave unanswered before it is silent.
const SILENT_HEARTBEATS: u32 = 8;

/// Liveliness of a reader's participant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presence {
    /// Arrival of its last datagram.
    pub(crate) last_received: Instant,
    pub(crate) lease: Duration,
    /// Lease of the writer's own participant.
    pub(crate) own_lease: Duration,
}

impl Presence {
    /// Returns the presence of the writer's own participant.
    pub(crate) fn own(now: Instant) -> Self {
        Self { last_received: now, lease: SILENT_AFTER_MAX, own_lease: SILENT_AFTER_MAX }
    }
}

/// Heartbeats that a reader has not answered since its last answer.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    unanswered: u32,
    since: Option<Instant>,
    /// Time of the first of them after its participant was heard again.
    heard_since: Option<Instant>,
    pub(super) is_silent: bool,
}

impl Silence {
    /// Records a heartbeat to a reader that never answered one; returns whether the reader becomes
    /// silent.
    fn heartbeat_sent(&mut self, now: Instant, participant: Presence) -> bool {
        let since = *self.since.get_or_insert(now);
        self.unanswered = self.unanswered.saturating_add(1);
        let silent_after = participant.lease.clamp(SILENT_AFTER_MIN, SILENT_AFTER_MAX);
        let is_over = self.unanswered > SILENT_HEARTBEATS && now.since(since) >= silent_after;
        is_over && participant.last_received > since && !core::mem::replace(&mut self.is_silent, true)
    }

    /// Records a heartbeat to a reader that has answered before; returns whether the reader becomes
    /// silent.
    fn heartbeat_repeated(&mut self, now: Instant, participant: Presence) -> bool {
        let since = *self.since.get_or_insert(now);
        self.unanswered = self.unanswered.saturating_add(1);
        if participant.last_received <= since {
            return false;
        }
        let heard_since = *self.heard_since.get_or_insert(now);
        let is_over = now.since(heard_since) >= participant.own_lease + SILENT_AFTER_MIN;
        let is_heard = participant.last_received > heard_since;
        self.unanswered > SILENT_HEARTBEATS && is_over && is_heard && !core::mem::replace(&mut self.is_silent, true)
    }
}

impl Writer {
    /// Returns the matched reliable readers that do not answer the writer's heartbeats.
    pub(crate) fn silent_readers(&self) -> Vec<Guid> {
        let silent = self.proxies.iter().filter(|(_, proxy)| proxy.silence.is_silent);
        silent.map(|(_, proxy)| proxy.guid).collect()
    }

    /// Excludes the readers that keep the send window closed for others.
    pub(super) fn exclude_slow_readers(&mut self, now: Instant, ctx: &mut Context) {
        if self.window.closed_since.is_none_or(|since| now.since(since) < EXCLUDED_AFTER) {
            return;
        }
        ctx.work.steps(2 * self.proxies.len());
        let sent = self.window.cursor.sn.prev();
        let waits = |proxy: &ReaderProxy| !proxy.reliable || proxy.pace().is_some_and(|pace| pace >= sent);
        if !self.proxies.iter().any(|(_, proxy)| waits(proxy)) {
            return;
        }
        for (_, proxy) in self.proxies.iter_mut() {
            if proxy.pace().is_some_and(|pace| pace < sent) {
                proxy.is_excluded = true;
                ctx.counters.readers_excluded += 1;
            }
        }
        self.reroute(ctx);
        self.open_window(ctx);
    }

    /// Opens the send window after readers were excluded from it.
    fn open_window(&mut self, ctx: &mut Context) {
        (self.window.stalled, self.window.closed_since) = (false, None);
        self.release_acknowledged(ctx);
        self.queue_data(ctx);
    }

    /// Includes all readers in the send window again if only excluded readers are left,
    /// after one was unmatched.
    pub(super) fn include_readers(&mut self) {
        if self.proxies.iter().any(|(_, proxy)| !proxy.reliable || proxy.pace().is_some()) {
            return;
        }
        let next = self.window.cursor.sn;
        for (_, proxy) in self.proxies.iter_mut().filter(|(_, proxy)| proxy.is_excluded) {
            (proxy.is_excluded, proxy.pace_from) = (false, next);
        }
    }

    /// Records heartbeats about to be sent: readers that left earlier ones unanswered may become
    /// silent.
    pub(super) fn update_silence(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        presence: impl Fn(GuidPrefix) -> Presence,
    ) {
        if self.entity_id.is_builtin() {
            return;
        }
        ctx.work.steps(self.proxies.len());
        let last = self.history.last_sn();
        let mut silent = 0;
        for (_, proxy) in
            self.proxies.iter_mut().filter(|(_, proxy)| proxy.lags(last) && proxy.heartbeat_retries.is_due)
        {
            let presence = presence(proxy.guid.prefix);
            let is_silent = match proxy.has_answered() {
                true => proxy.silence.heartbeat_repeated(now, presence),
                false => proxy.silence.heartbeat_sent(now, presence),
            };
            silent += u64::from(is_silent);
        }
        if silent > 0 {
            ctx.counters.silent_readers += silent;
            ctx.notify(Event::ReaderSilent(self.handle));
            self.open_window(ctx);
        }
    }

    /// Handles an answer of a reader: a silent one is waited for again, and an excluded one may
    /// keep pace again.
    pub(super) fn handle_reader_answer(&mut self, index: u32, ctx: &mut Context) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let was_silent = core::mem::take(&mut proxy.silence).is_silent;
        let was_excluded = proxy.is_excluded;
        if !was_silent && !was_excluded {
            return;
        }
        let acked = proxy.acked;
        let is_excluded = !self.is_near(acked, ctx);
        let next = self.window.cursor.sn;
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.is_excluded = is_excluded;
            proxy.pace_from = proxy.pace_from.max(next);
        }
        if is_excluded != was_excluded {
            self.reroute(ctx);
        }
        if was_silent {
            ctx.notify(Event::ReaderSilent(self.handle));
        }
    }

    /// Reports whether the changes sent after the given one fill at most half of the send window.
    fn is_near(&self, acked: SequenceNumber, ctx: &mut Context) -> bool {
        let sent = self.window.cursor.sn.prev();
        if sent.0 - acked.0 > REORDER_WINDOW / 2 {
            return false;
        }
        let (mut next, mut bytes) = (acked.next(), 0);
        while let Some(change) = self.history.at_or_after(next).filter(|change| change.sn <= sent) {
            ctx.work.steps(1);
            bytes += change.flight_len as usize;
            next = change.sn.next();
        }
        bytes <= ctx.limits.send_window_bytes / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(milliseconds: u64) -> Instant {
        Instant(milliseconds * 1_000_000)
    }

    fn heard(heard: Instant, lease_s: u64) -> Presence {
        Presence { last_received: heard, lease: Duration::from_secs(lease_s), own_lease: Duration::from_secs(20) }
    }

    #[test]
    fn reader_is_silent_after_enough_heartbeats_and_time() {
        let mut frequent = Silence::default();
        let heartbeat = |silence: &mut Silence, at_ms| silence.heartbeat_sent(at(at_ms), heard(at(at_ms), 1));
        assert!((0..100).all(|at_ms| !heartbeat(&mut frequent, at_ms)), "many heartbeats in a short time");
        assert!(heartbeat(&mut frequent, 2_000) && !heartbeat(&mut frequent, 2_100), "it becomes silent once");
        let mut rare = Silence::default();
        let found: Vec<bool> = (0..10).map(|second| heartbeat(&mut rare, second * 1_000)).collect();
        assert_eq!(found.iter().position(|found| *found), Some(8), "few heartbeats in a long time");
    }

    #[test]
    fn reader_becomes_silent_after_the_lease_of_its_participant_within_bounds() {
        for (lease_s, expected_ms) in [(0, 2_000), (1, 2_000), (3, 3_000), (20, 10_000), (86_400, 10_000)] {
            let mut silence = Silence::default();
            let found = (0..).step_by(100).find(|at_ms| silence.heartbeat_sent(at(*at_ms), heard(at(*at_ms), lease_s)));
            assert_eq!(found, Some(expected_ms), "a lease of {lease_s} s");
        }
    }

    #[test]
    fn reader_that_has_answered_is_silent_after_the_own_lease_from_when_its_participant_is_heard_again() {
        let mut silence = Silence::default();
        // A process that was stopped for 15 s is heard again before it answers.
        let heard_at = |at_ms: u64| heard(at(if at_ms < 15_000 { 0 } else { at_ms }), 3);
        let found = (0..).step_by(100).find(|at_ms| silence.heartbeat_repeated(at(*at_ms), heard_at(*at_ms)));
        assert_eq!(found, Some(15_000 + 20_000 + 2_000));
        let mut heard_once = Silence::default();
        let last = |at_ms: u64| heard(at(at_ms.min(50)), 3);
        let found = (0..100_000).step_by(100).find(|at_ms| heard_once.heartbeat_repeated(at(*at_ms), last(*at_ms)));
        assert_eq!(found, None);
    }

    #[test]
    fn reader_is_not_silent_while_its_participant_is_not_heard() {
        let mut silence = Silence::default();
        let last = heard(at(0), 3);
        assert!((0..20_000).step_by(100).all(|at_ms| !silence.heartbeat_sent(at(at_ms), last)));
        assert!(silence.heartbeat_sent(at(20_000), heard(at(19_999), 3)));
    }
}
