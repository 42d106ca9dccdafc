//! Changes of a writer's route between unicast and multicast without loss at best-effort readers.
//!
//! A participant receives unicast and multicast by different sockets, which it reads in any order.
//! A best-effort reader drops a sample that is older than one already delivered
//! (RTPS 2.5 §8.4.12.1). The first sample on the new route must therefore not be sent before each
//! best-effort reader concerned has received the last one on the old route.
//!
//! A probe on the old route verifies that. It is a `HEARTBEAT` of the builtin writer of participant
//! messages, and reaches the same sockets after the samples. If the participants of all these
//! readers have answered and no sample was sent meanwhile, the route changes. Otherwise they are
//! probed again, first after [`WAIT`], then at intervals that grow by half.
//!
//! [`ANSWER_TIMEOUT`] after the first probe the route changes without answers. Either the writer
//! has not paused for a round trip since, or a participant does not answer.

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

/// Multicast groups of a route.
#[derive(Clone, Copy, Debug)]
struct RouteTarget {
    /// Group that receives the samples; `None` for unicast alone.
    group: Option<usize>,
    /// Groups that would save datagrams if all their listeners had validated them.
    wanted: MulticastSet,
}

/// Pending change of the route.
#[derive(Debug)]
pub(super) struct RouteChange {
    target: RouteTarget,
    timer: TimerId,
    /// Time at which the first probe was sent.
    first_probe: Option<Instant>,
    /// Time from the last probe to the next one.
    wait: Duration,
    /// Sequence number of the last probe; zero if no answer to it counts.
    last_probe: SequenceNumber,
    /// First unsent change when the last probe was sent.
    unsent: Cursor,
    /// Participants that have not answered the last probe.
    unanswered: Vec<GuidPrefix>,
    /// A probe is to be sent.
    is_queued: bool,
}

impl Probes {
    /// Records a datagram to a single best-effort reader. The answer to an earlier probe does not
    /// prove that this datagram has arrived.
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
        let target = self.best_target(ctx);
        if self.affected_readers(target.group).next().is_none() {
            self.probes.end_route_change(ctx);
            return self.apply_route(target, ctx);
        }
        // Until the change the samples still use the present group, so it remains wanted.
        let group = self.route.multicast_group;
        let in_use = group.map_or(0, |at| 1 << at);
        self.apply_route(RouteTarget { group, wanted: target.wanted | in_use }, ctx);
        self.begin_change(target, ctx);
    }

    fn best_target(&self, ctx: &mut Context) -> RouteTarget {
        ctx.work.steps(3 * self.proxies.len() * (1 + ctx.multicast_groups.list.len()));
        let (group, wanted) = route::choose_multicast_group(&self.proxies, &ctx.multicast_groups);
        RouteTarget { group, wanted }
    }

    fn apply_route(&mut self, RouteTarget { group, wanted }: RouteTarget, ctx: &mut Context) {
        self.record_paths(group, ctx);
        self.route = Route::to(&self.proxies, self.route.more, &ctx.multicast_groups, group, wanted);
        ctx.start_probing(wanted);
        self.prepare_probe(ctx);
    }

    /// Returns the best-effort readers that were already sent samples and whose group the new route
    /// changes, each with its present group (`None`: unicast).
    fn affected_readers(&self, next: Option<usize>) -> impl Iterator<Item = (&ReaderProxy, Option<usize>)> {
        let (now, sent) = (self.route.multicast_group, self.window.cursor.begun());
        self.proxies.iter().filter(move |(_, proxy)| !proxy.reliable && proxy.first_relevant <= sent).filter_map(
            move |(_, proxy)| {
                let group_for = |group: Option<usize>| group.filter(|at| proxy.reachability.is_served_by(*at));
                (group_for(now) != group_for(next)).then_some((proxy, group_for(now)))
            },
        )
    }

    /// Begins a change of the route, or replaces the target of a pending one.
    fn begin_change(&mut self, target: RouteTarget, ctx: &mut Context) {
        let (writer, readers) = (self.index(), self.proxies.len());
        let change = self.probes.route_change.get_or_insert_with(|| {
            Box::new(RouteChange {
                target,
                timer: ctx.timers.register(TimerKind::RouteChange { writer }),
                first_probe: None,
                wait: WAIT,
                last_probe: SequenceNumber::ZERO,
                unsent: self.window.cursor,
                unanswered: Vec::new(),
                is_queued: false,
            })
        });
        change.target = target;
        // Reserved here, since probing must not allocate.
        change.unanswered.clear();
        change.unanswered.reserve(readers);
        self.repeat_probe(ctx);
    }

    /// Queues a probe of the affected readers. These may have changed since the last probe, so its
    /// answers no longer count.
    fn repeat_probe(&mut self, ctx: &mut Context) {
        if let Some(change) = &mut self.probes.route_change {
            (change.last_probe, change.is_queued) = (SequenceNumber::ZERO, true);
            self.queue_probe(ctx);
        }
    }

    fn complete_change(&mut self, ctx: &mut Context) {
        let Some(target) = self.probes.route_change.as_ref().map(|change| change.target) else { return };
        self.probes.end_route_change(ctx);
        self.apply_route(target, ctx);
    }

    /// Adds the destinations of the probe with this sequence number, records whose answers it
    /// awaits, and sets the timer for the next probe.
    pub(super) fn address_route_probe(&mut self, now: Instant, number: SequenceNumber, ctx: &mut Context) {
        let Some(change) = &mut self.probes.route_change else { return };
        let (next, mut unanswered) = (change.target.group, core::mem::take(&mut change.unanswered));
        ctx.work.steps(self.proxies.len());
        unanswered.clear();
        for (proxy, served_by) in self.affected_readers(next) {
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
        let deadline = change.first_probe.get_or_insert(now).after(ANSWER_TIMEOUT);
        ctx.timers.arm(change.timer, now.after(change.wait).min(deadline));
        (change.last_probe, change.unsent, change.unanswered, change.is_queued) = (number, unsent, unanswered, false);
    }

    /// Handles the answer of a participant to the probe with this sequence number. The probe may be
    /// that of another writer.
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

    /// Handles the timer: not all participants have answered the last probe, or samples were sent
    /// after it.
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
