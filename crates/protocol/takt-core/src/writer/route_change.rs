//! Changes of a writer's route between unicast and multicast without loss at best-effort readers.
//!
//! A participant receives unicast and multicast by different sockets, which it reads in any order.
//! A best-effort reader drops a sample that is older than one already delivered
//! (RTPS 2.5 §8.4.12.1). The first sample on the new route must therefore not be sent before each
//! best-effort reader concerned has received the last one on the old route.
//!
//! A probe on the old route verifies that: a `HEARTBEAT` of the writer of participant messages, as
//! in [`crate::discovery`], reaches the same sockets behind the samples. If all readers have
//! answered and nothing was sent meanwhile, the route changes. If not, they are probed again, after
//! [`WAIT`] and then after half as long again each time. [`ANSWER_TIMEOUT`] after the first probe
//! the route changes in any case: the writer has sent without a pause of a round trip, or a
//! participant does not answer.

use super::probes::Probes;
use super::{Cursor, ReaderProxy, Route, Writer, route};
use crate::context::Context;
use crate::multicast_group::MulticastSet;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use takt_wire::{GuidPrefix, SequenceNumber};

/// Time between the first two probes.
const WAIT: Duration = Duration::from_millis(10);

/// Time after the first probe at which the route changes without answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Pending change of the route.
#[derive(Debug)]
pub(super) struct RouteChange {
    /// New group of the samples, and the groups that would be used if all listeners had
    /// validated them.
    next: (Option<usize>, MulticastSet),
    timer: TimerId,
    first_probe: Option<Instant>,
    wait: Duration,
    /// Sequence number of the last probe; below the first number there is none.
    last_probe: SequenceNumber,
    /// First unsent change when the probe was sent.
    unsent: Cursor,
    /// Participants that have not answered the probe.
    unanswered: Vec<GuidPrefix>,
    is_queued: bool,
}

impl Probes {
    /// Records a datagram to a single best-effort reader, whose arrival an earlier probe does not
    /// prove.
    pub(super) fn record_directed_datagram(&mut self) {
        if let Some(change) = &mut self.route_change {
            change.last_probe = SequenceNumber::ZERO;
        }
    }

    pub(super) fn end_route_change(&mut self, ctx: &mut Context) {
        if let Some(change) = self.route_change.take() {
            ctx.timers.release(change.timer);
        }
    }

    /// Reports whether a pending change has a probe to send.
    pub(super) fn has_route_probe(&self) -> bool {
        self.route_change.as_ref().is_some_and(|change| change.is_queued)
    }
}

impl Writer {
    /// Recomputes the route after readers were matched, unmatched or redirected.
    pub(super) fn reroute(&mut self, ctx: &mut Context) {
        let (group, wanted) = self.best_multicast_group(ctx);
        if self.concerned(group).next().is_none() {
            self.probes.end_route_change(ctx);
            return self.take_route(group, wanted, ctx);
        }
        // The state of the group in use must be kept meanwhile.
        let in_use = self.route.multicast_group.map_or(0, |at| 1 << at);
        self.take_route(self.route.multicast_group, wanted | in_use, ctx);
        self.begin_change((group, wanted), ctx);
    }

    fn best_multicast_group(&self, ctx: &mut Context) -> (Option<usize>, MulticastSet) {
        ctx.work.steps(3 * self.proxies.len() * (1 + ctx.multicast_groups.list.len()));
        route::choose_multicast_group(&self.proxies, &ctx.multicast_groups)
    }

    fn take_route(&mut self, group: Option<usize>, wanted: MulticastSet, ctx: &mut Context) {
        self.record_paths(group, ctx);
        self.route = Route::to(&self.proxies, self.route.more, &ctx.multicast_groups, group, wanted);
        ctx.start_probing(wanted);
        self.prepare_probe(ctx);
    }

    /// Returns the best-effort readers that the new group would serve differently and that were
    /// already sent samples, with the group that serves them now.
    fn concerned(&self, next: Option<usize>) -> impl Iterator<Item = (&ReaderProxy, Option<usize>)> {
        let (now, sent) = (self.route.multicast_group, self.window.cursor.begun());
        self.proxies.iter().filter(move |(_, proxy)| !proxy.reliable && proxy.first_relevant <= sent).filter_map(
            move |(_, proxy)| {
                let group_for = |group: Option<usize>| group.filter(|at| proxy.reachability.is_served_by(*at));
                (group_for(now) != group_for(next)).then_some((proxy, group_for(now)))
            },
        )
    }

    /// Begins a change of the route, or replaces the target of a pending one.
    fn begin_change(&mut self, next: (Option<usize>, MulticastSet), ctx: &mut Context) {
        let (writer, readers) = (self.index(), self.proxies.len());
        let change = self.probes.route_change.get_or_insert_with(|| {
            Box::new(RouteChange {
                next,
                timer: ctx.timers.register(TimerKind::RouteChange { writer }),
                first_probe: None,
                wait: WAIT,
                last_probe: SequenceNumber::ZERO,
                unsent: self.window.cursor,
                unanswered: Vec::new(),
                is_queued: false,
            })
        });
        change.next = next;
        // Probing does not allocate.
        change.unanswered.clear();
        change.unanswered.reserve(readers);
        self.repeat_probe(ctx);
    }

    /// Probes the readers concerned, which may have changed since the last probe.
    fn repeat_probe(&mut self, ctx: &mut Context) {
        if let Some(change) = &mut self.probes.route_change {
            (change.last_probe, change.is_queued) = (SequenceNumber::ZERO, true);
            self.queue_probe(ctx);
        }
    }

    fn complete_change(&mut self, ctx: &mut Context) {
        let Some((group, wanted)) = self.probes.route_change.as_ref().map(|change| change.next) else { return };
        self.probes.end_route_change(ctx);
        self.take_route(group, wanted, ctx);
    }

    /// Prepares the probe with sequence number `number`: adds its destinations.
    pub(super) fn address_route_probe(&mut self, now: Instant, number: SequenceNumber, ctx: &mut Context) {
        let Some((next, mut unanswered)) =
            self.probes.route_change.as_mut().map(|change| (change.next.0, core::mem::take(&mut change.unanswered)))
        else {
            return;
        };
        ctx.work.steps(self.proxies.len());
        unanswered.clear();
        for (proxy, served_by) in self.concerned(next) {
            route::add_destination(
                &mut ctx.destinations,
                route::path_to(proxy, served_by, &ctx.multicast_groups).locator,
            );
            unanswered.push(proxy.guid.prefix);
        }
        unanswered.sort_unstable();
        unanswered.dedup();
        let unsent = self.window.cursor;
        let Some(change) = &mut self.probes.route_change else { return };
        let last = change.first_probe.get_or_insert(now).after(ANSWER_TIMEOUT);
        ctx.timers.arm(change.timer, now.after(change.wait).min(last));
        (change.last_probe, change.unsent, change.unanswered, change.is_queued) = (number, unsent, unanswered, false);
    }

    /// Handles the answer of a participant to the probe with that sequence number, of any writer.
    pub(super) fn handle_route_answer(&mut self, ctx: &mut Context, prefix: GuidPrefix, number: SequenceNumber) {
        let unsent = self.window.cursor;
        let Some(change) = self.probes.route_change.as_mut().filter(|change| change.last_probe == number) else {
            return;
        };
        change.unanswered.retain(|unanswered| *unanswered != prefix);
        if change.unanswered.is_empty() && change.unsent == unsent {
            self.complete_change(ctx);
        }
    }

    /// Handles the timer: not all have answered the last probe, or samples were sent after it.
    pub(crate) fn handle_route_timeout(&mut self, now: Instant, ctx: &mut Context) {
        let Some(change) = &mut self.probes.route_change else { return };
        if change.first_probe.is_some_and(|first_probe| now.since(first_probe) < ANSWER_TIMEOUT) {
            change.wait = change.wait * 3 / 2;
            return self.repeat_probe(ctx);
        }
        ctx.counters.unconfirmed_route_changes += 1;
        self.complete_change(ctx);
    }
}
