//! Whether datagrams of full length reach best-effort readers, which never say that they miss something.
//!
//! A network between two interfaces may take shorter packets than they do, and drop longer ones in silence. Reliable readers ask again,
//! and show it (`burst`). So a writer that sends datagrams beyond [`NARROW_LEN`] to best-effort readers asks these, as before a change of
//! route (`route_change`): by a short question, and behind it by one that `PAD` (RTPS 2.5 §8.3.8.13) fills up to the length of the
//! path. A participant that answers a long one is reached by such datagrams. One that answers [`LONG_IN_VAIN`] short ones in a row, and
//! never the long one behind, is not: the writer sends it shorter datagrams from now on. One that answers neither proves nothing.
//!
//! The long question comes last, since a reader may answer both by one acknowledgement, which names the last.
//!
//! What a reader has shown holds for the path that was asked about: it is asked again once samples get to it by another one, such as a
//! multicast group. One that was found narrow stays so until its locator changes.
//!
//! Deliberately not here: finding out the length of the path, or that it has changed while the locator has not.

use super::burst::NARROW_LEN;
use super::{ReaderProxy, Writer, route};
use crate::context::Context;
use crate::event::Event;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use alloc::vec::Vec;
use core::time::Duration;
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber};

/// Short questions that are answered while the long ones are not, in a row.
const LONG_IN_VAIN: u32 = 6;

/// Pairs of questions before a [`REST`].
const PAIRS_MAX: u32 = 12;

/// How long the first pair waits for answers; each further one waits half as long again.
const WAIT: Duration = Duration::from_millis(50);

/// Before readers of which nothing is known yet are asked again.
const REST: Duration = Duration::from_secs(8);

/// The questions of a writer about the length of its paths.
#[derive(Debug)]
pub(super) struct PathProbe {
    timer: TimerId,
    /// Octets of the datagrams in question; 0 while nothing is asked.
    len: usize,
    pairs: u32,
    wait: Duration,
    /// The numbers that answer the questions of the last pair.
    short: SequenceNumber,
    long: SequenceNumber,
    /// The question that is queued, or was sent last, is the long one.
    is_long: bool,
    pub(super) is_queued: bool,
}

/// What a best-effort reader has shown of the path by which samples get to it.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// Where that path leads.
    by: Option<Locator>,
    /// Questions up to this one went by another path.
    asked_before: SequenceNumber,
    /// Datagrams of that length arrive.
    pub(super) len: usize,
    /// It has answered the short question of the last pair.
    answers: bool,
    long_in_vain: u32,
}

impl ReaderProxy {
    /// Whether datagrams of that length may be lost on the way to it unnoticed.
    fn may_miss(&self, len: usize) -> bool {
        len > self.len_proven()
    }

    /// Samples get to it by a path. What it has shown of another one says nothing of this one.
    pub(super) fn goes_by(&mut self, way: Locator, last_question: SequenceNumber) {
        if self.reached.by != Some(way) {
            self.reached = Reached { by: Some(way), asked_before: last_question, ..Reached::default() };
            self.begin_repair(SequenceNumber::ZERO, 1);
        }
    }

    /// The length of datagrams that reach it, or the loss of which it reports.
    pub(super) fn len_proven(&self) -> usize {
        let is_silent = !self.reliable && self.path.may_be_narrower();
        if is_silent { self.reached.len.max(NARROW_LEN) } else { usize::MAX }
    }
}

impl Writer {
    /// Readers have come, or are reached otherwise: registers what questions take, so that sending does not allocate.
    pub(super) fn prepare_probe(&mut self, ctx: &mut Context) {
        if self.path_probe.is_none() && self.route.max_message > self.route.len_proven {
            self.path_probe = Some(PathProbe {
                timer: ctx.timers.register(TimerKind::PathProbe { writer: self.index() }),
                len: 0,
                pairs: 0,
                wait: WAIT,
                short: SequenceNumber::ZERO,
                long: SequenceNumber::ZERO,
                is_long: false,
                is_queued: false,
            });
        }
    }

    /// Samples are about to go by this channel to those whom it serves.
    pub(super) fn note_ways(&mut self, channel: Option<usize>, ctx: &mut Context) {
        ctx.work.steps(self.proxies.len());
        let last_question = self.last_path_question();
        for (_, proxy) in self.proxies.iter_mut().filter(|(_, proxy)| !proxy.reliable) {
            let way = route::way_to(proxy, channel, &ctx.channels).locator;
            proxy.goes_by(way, last_question);
        }
    }

    /// Answers up to this number are to questions that were asked before. ZERO: none was.
    pub(super) fn last_path_question(&self) -> SequenceNumber {
        self.path_probe.as_ref().map_or(SequenceNumber::ZERO, |probe| probe.short.max(probe.long))
    }

    pub(super) fn close_probe(&mut self, ctx: &mut Context) {
        if let Some(probe) = self.path_probe.take() {
            ctx.timers.release(probe.timer);
        }
    }

    /// A datagram of so many octets has been built, to all readers.
    #[inline]
    pub(super) fn note_len(&mut self, len: usize, ctx: &mut Context) {
        if len > self.route.len_proven {
            self.begin_probe(ctx);
        }
    }

    #[cold]
    fn begin_probe(&mut self, ctx: &mut Context) {
        let Some(probe) = self.path_probe.as_mut().filter(|probe| probe.len == 0) else { return };
        (probe.len, probe.pairs, probe.wait) = (self.route.max_message, 0, WAIT);
        self.ask_pair(ctx);
    }

    fn ask_pair(&mut self, ctx: &mut Context) {
        if let Some(probe) = &mut self.path_probe {
            (probe.is_long, probe.is_queued) = (false, true);
            self.queue_question(ctx);
        }
    }

    /// How long the next question is to be.
    pub(super) fn probe_len(&self) -> usize {
        self.path_probe.as_ref().map_or(0, |probe| if probe.is_long { probe.len } else { 0 })
    }

    /// A question is about to be sent that `number` answers: says where to.
    pub(super) fn ask_about_path(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        ctx: &mut Context,
        destinations: &mut Vec<Locator>,
    ) {
        ctx.work.steps(self.proxies.len());
        let Some(probe) = &mut self.path_probe else { return };
        let channel = self.route.channel;
        for (_, proxy) in self.proxies.iter().filter(|(_, proxy)| proxy.may_miss(probe.len)) {
            route::add_destination(destinations, route::way_to(proxy, channel, &ctx.channels).locator);
        }
        if !probe.is_long {
            (probe.short, probe.is_long) = (number, true);
            return self.queue_question(ctx);
        }
        ctx.timers.arm(probe.timer, now.after(probe.wait));
        probe.wait = probe.wait * 3 / 2;
        (probe.long, probe.pairs, probe.is_queued) = (number, probe.pairs + 1, false);
    }

    /// A participant has answered the question with that number, of whichever writer.
    pub(super) fn handle_path_answer(&mut self, ctx: &mut Context, prefix: GuidPrefix, number: SequenceNumber) {
        let Some(probe) = self.path_probe.as_ref().filter(|probe| probe.len > 0) else { return };
        let (len, is_long) = (probe.len, number == probe.long);
        if !is_long && number != probe.short {
            return;
        }
        let first = Guid { prefix, entity_id: EntityId::UNKNOWN };
        let mut is_news = false;
        for (_, &index) in self.proxy_by_guid.range(first..).take_while(|(guid, _)| guid.prefix == prefix) {
            ctx.work.steps(1);
            let proxy = self.proxies.get_mut(index).filter(|proxy| proxy.may_miss(len));
            match proxy.filter(|proxy| number > proxy.reached.asked_before) {
                Some(proxy) if is_long => {
                    (proxy.reached.len, proxy.reached.answers, proxy.reached.long_in_vain) = (len, false, 0);
                    is_news = true;
                }
                Some(proxy) => proxy.reached.answers = true,
                None => {}
            }
        }
        if is_news {
            self.reroute(ctx);
        }
    }

    /// The answers to a pair of questions should be there, or readers may be asked again.
    pub(crate) fn handle_probe_timeout(&mut self, now: Instant, ctx: &mut Context) {
        ctx.work.steps(self.proxies.len());
        let Some(probe) = &mut self.path_probe else { return };
        let (mut is_open, mut narrow) = (false, 0);
        for (_, proxy) in self.proxies.iter_mut().filter(|(_, proxy)| proxy.may_miss(probe.len)) {
            proxy.reached.long_in_vain += u32::from(core::mem::take(&mut proxy.reached.answers));
            if proxy.reached.long_in_vain >= LONG_IN_VAIN {
                proxy.narrow();
                narrow += 1;
            } else {
                is_open = true;
            }
        }
        if !is_open || probe.pairs > PAIRS_MAX {
            probe.len = 0;
        } else if probe.pairs == PAIRS_MAX {
            probe.pairs += 1;
            ctx.timers.arm(probe.timer, now.after(REST));
        } else {
            self.ask_pair(ctx);
        }
        if narrow > 0 {
            ctx.counters.narrowed_paths += narrow;
            ctx.notify(Event::PathNarrowed(self.handle));
            self.reroute(ctx);
        }
    }
}
