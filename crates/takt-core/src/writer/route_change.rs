//! Changes of a writer's route between unicast and a multicast group without loss to best-effort readers.
//!
//! A participant receives what is sent to a group and what is sent to its own address by different sockets, and reads these in any
//! order. A best-effort reader drops a sample that is older than one that it has delivered (RTPS 2.5 §8.4.12.1). So the first sample by
//! the new route must not be sent before each best-effort reader concerned has received the last one by the old route.
//!
//! The old route shows that: it takes a question behind the samples, a `HEARTBEAT` of the writer of participant messages as in
//! [`crate::discovery`], to the same sockets. If all have answered and nothing was sent meanwhile, the route changes. If not, they are
//! asked again, after [`WAIT`] and then ever half as long again. [`PATIENCE`] after the first question the route changes in any case: the
//! writer sends without a pause as long as a round trip, or a participant does not answer.

use super::route;
use super::{Cursor, ReaderProxy, Route, Writer};
use crate::channel::ChannelSet;
use crate::context::Context;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use takt_wire::{GuidPrefix, Locator, SequenceNumber};

/// Between the first two questions.
const WAIT: Duration = Duration::from_millis(10);

/// After the first question the route changes without answers.
const PATIENCE: Duration = Duration::from_secs(2);

/// A change of route that waits.
#[derive(Debug)]
pub(super) struct RouteChange {
    /// The channel that samples are to go by, and those that would be used if all who listen had proven to hear them.
    next: (Option<usize>, ChannelSet),
    timer: TimerId,
    first_asked: Option<Instant>,
    wait: Duration,
    /// The number that answers the last question; below the first number there is none.
    question: SequenceNumber,
    /// What was not sent when it was asked.
    unsent: Cursor,
    /// Participants that have not answered it.
    unanswered: Vec<GuidPrefix>,
    is_queued: bool,
}

impl Writer {
    /// Readers have come or gone, or are reached otherwise.
    pub(super) fn reroute(&mut self, ctx: &mut Context) {
        let (channel, wanted) = self.best_channel(ctx);
        if self.concerned(channel).next().is_none() {
            self.end_change(ctx);
            return self.take_route(channel, wanted, ctx);
        }
        // What is known of the channel that is in use must not be forgotten meanwhile.
        let in_use = self.route.channel.map_or(0, |at| 1 << at);
        self.take_route(self.route.channel, wanted | in_use, ctx);
        self.begin_change((channel, wanted), ctx);
    }

    fn best_channel(&self, ctx: &mut Context) -> (Option<usize>, ChannelSet) {
        ctx.work.steps(3 * self.proxies.len() * (1 + ctx.channels.list.len()));
        route::choose_channel(&self.proxies, &ctx.channels)
    }

    fn take_route(&mut self, channel: Option<usize>, wanted: ChannelSet, ctx: &mut Context) {
        self.note_ways(channel, ctx);
        self.route = Route::to(&self.proxies, self.route.more, &ctx.channels, channel, wanted);
        ctx.want_channels(wanted);
        self.prepare_probe(ctx);
    }

    /// The best-effort readers that would be served otherwise with that channel, and that were sent something: with the
    /// channel that serves them now.
    fn concerned(&self, next: Option<usize>) -> impl Iterator<Item = (&ReaderProxy, Option<usize>)> {
        let (now, sent) = (self.route.channel, self.cursor.begun());
        self.proxies.iter().filter(move |(_, proxy)| !proxy.reliable && proxy.first_relevant <= sent).filter_map(
            move |(_, proxy)| {
                let way = |channel: Option<usize>| channel.filter(|at| proxy.hearing.is_served_by(*at));
                (way(now) != way(next)).then_some((proxy, way(now)))
            },
        )
    }

    /// The route is to change, and not to another one that was meant before.
    fn begin_change(&mut self, next: (Option<usize>, ChannelSet), ctx: &mut Context) {
        let (writer, readers) = (self.index(), self.proxies.len());
        let change = self.route_change.get_or_insert_with(|| {
            Box::new(RouteChange {
                next,
                timer: ctx.timers.register(TimerKind::RouteChange { writer }),
                first_asked: None,
                wait: WAIT,
                question: SequenceNumber::ZERO,
                unsent: self.cursor,
                unanswered: Vec::new(),
                is_queued: false,
            })
        });
        change.next = next;
        // Asking does not allocate.
        change.unanswered.clear();
        change.unanswered.reserve(readers);
        self.ask_again(ctx);
    }

    /// Asks the readers concerned. They may be others than those that were asked before.
    fn ask_again(&mut self, ctx: &mut Context) {
        if let Some(change) = &mut self.route_change {
            (change.question, change.is_queued) = (SequenceNumber::ZERO, true);
            self.queue_question(ctx);
        }
    }

    /// Something was sent to a best-effort reader alone: a question that was sent before does not show that it has arrived.
    pub(super) fn note_sent_alone(&mut self) {
        if let Some(change) = &mut self.route_change {
            change.question = SequenceNumber::ZERO;
        }
    }

    pub(super) fn end_change(&mut self, ctx: &mut Context) {
        if let Some(change) = self.route_change.take() {
            ctx.timers.release(change.timer);
        }
    }

    fn complete_change(&mut self, ctx: &mut Context) {
        let Some((channel, wanted)) = self.route_change.as_ref().map(|change| change.next) else { return };
        self.end_change(ctx);
        self.take_route(channel, wanted, ctx);
    }

    /// A question is about to be sent that `number` answers: says where to.
    pub(super) fn ask_for_change(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        ctx: &mut Context,
        destinations: &mut Vec<Locator>,
    ) {
        let Some((next, mut unanswered)) =
            self.route_change.as_mut().map(|change| (change.next.0, core::mem::take(&mut change.unanswered)))
        else {
            return;
        };
        ctx.work.steps(self.proxies.len());
        unanswered.clear();
        for (proxy, served_by) in self.concerned(next) {
            route::add_destination(destinations, route::way_to(proxy, served_by, &ctx.channels).locator);
            unanswered.push(proxy.guid.prefix);
        }
        unanswered.sort_unstable();
        unanswered.dedup();
        let unsent = self.cursor;
        let Some(change) = &mut self.route_change else { return };
        let last = change.first_asked.get_or_insert(now).after(PATIENCE);
        ctx.timers.arm(change.timer, now.after(change.wait).min(last));
        (change.question, change.unsent, change.unanswered, change.is_queued) = (number, unsent, unanswered, false);
    }

    /// Whether a change waits to ask.
    pub(super) fn has_route_question(&self) -> bool {
        self.route_change.as_ref().is_some_and(|change| change.is_queued)
    }

    /// A participant has answered the question with that number, of whichever writer.
    pub(super) fn handle_route_answer(&mut self, ctx: &mut Context, prefix: GuidPrefix, number: SequenceNumber) {
        let unsent = self.cursor;
        let Some(change) = self.route_change.as_mut().filter(|change| change.question == number) else { return };
        change.unanswered.retain(|unanswered| *unanswered != prefix);
        if change.unanswered.is_empty() && change.unsent == unsent {
            self.complete_change(ctx);
        }
    }

    /// The last question was not answered by all, or samples were sent behind it.
    pub(crate) fn handle_route_timeout(&mut self, now: Instant, ctx: &mut Context) {
        let Some(change) = &mut self.route_change else { return };
        if change.first_asked.is_some_and(|first_asked| now.since(first_asked) < PATIENCE) {
            change.wait = change.wait * 3 / 2;
            return self.ask_again(ctx);
        }
        ctx.counters.unconfirmed_route_changes += 1;
        self.complete_change(ctx);
    }
}
