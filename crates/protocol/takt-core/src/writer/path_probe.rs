//! Path MTU probes to best-effort readers, which never report missing samples.
//!
//! A network between two interfaces may have a smaller MTU than they do, and drop longer packets
//! silently. Reliable readers reveal this by their requests (`burst`). A writer that sends
//! datagrams beyond [`NARROW_LEN`] to best-effort readers therefore probes these as before a change
//! of route (`route_change`). A short probe is followed by one that `PAD` (RTPS 2.5 §8.3.8.13)
//! extends to the length of the path. A participant that answers a long probe receives such
//! datagrams. A participant that answers [`LONG_LOST_PAIRS`] consecutive short probes and none of
//! the long ones does not: the writer sends it shorter datagrams from now on. A participant that
//! answers neither proves nothing.
//!
//! The long probe comes last, because a reader may answer both by one acknowledgment, which names
//! the last.
//!
//! The result holds for the probed path only. The reader is probed again once samples reach it by
//! another path, such as a multicast group. A path found to be narrow stays so until the reader's
//! locator changes.
//!
//! Not supported: measuring the path MTU, and detecting its change while the locator is unchanged.

use super::probes::Probes;
use super::{ReaderProxy, Writer, route};
use crate::context::Context;
use crate::event::Event;
use crate::path::NARROW_LEN;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use core::time::Duration;
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber};

/// Consecutive short probes that are answered while the long ones are not.
const LONG_LOST_PAIRS: u32 = 6;

/// Pairs of probes before a [`PROBE_PAUSE`].
const PAIRS_MAX: u32 = 12;

/// Wait for answers to the first pair; each further pair waits half as long again.
const WAIT: Duration = Duration::from_millis(50);

/// Time until readers without a result are probed again.
const PROBE_PAUSE: Duration = Duration::from_secs(8);

/// Path MTU probes of a writer.
#[derive(Debug)]
pub(super) struct PathProbe {
    timer: TimerId,
    /// Length of the probed datagrams in octets; 0 while no probe runs.
    len: usize,
    pairs: u32,
    wait: Duration,
    /// Sequence numbers of the probes of the last pair.
    short: SequenceNumber,
    long: SequenceNumber,
    /// The queued or last sent probe is the long one.
    is_long: bool,
    pub(super) is_queued: bool,
}

/// Probe result of the path to a best-effort reader.
#[derive(Debug, Default)]
pub(super) struct PathState {
    /// Destination of the probed path.
    destination: Option<Locator>,
    /// Probes up to this one used another path.
    probed_before: SequenceNumber,
    /// Length of datagrams that arrive, in octets.
    pub(super) len: usize,
    /// The reader has answered the short probe of the last pair.
    answers: bool,
    long_lost: u32,
}

impl ReaderProxy {
    /// Reports whether datagrams of that length may be lost on the path unnoticed.
    fn may_miss(&self, len: usize) -> bool {
        len > self.len_validated()
    }

    /// Records the path of the samples to the reader. Results of another path are discarded.
    pub(super) fn set_probed_path(&mut self, locator: Locator, last_probe: SequenceNumber) {
        if self.path_state.destination != Some(locator) {
            self.path_state =
                PathState { destination: Some(locator), probed_before: last_probe, ..PathState::default() };
            self.reset_repair();
        }
    }

    /// Returns the length of datagrams that reach the reader, or whose loss it reports.
    pub(super) fn len_validated(&self) -> usize {
        let is_silent = !self.reliable && self.path.may_be_narrower();
        if is_silent { self.path_state.len.max(NARROW_LEN) } else { usize::MAX }
    }
}

impl Probes {
    /// Returns the number up to which answers belong to earlier probes. ZERO: there was none.
    pub(super) fn last_path_probe(&self) -> SequenceNumber {
        self.path.as_ref().map_or(SequenceNumber::ZERO, |probe| probe.short.max(probe.long))
    }

    pub(super) fn close_path(&mut self, ctx: &mut Context) {
        if let Some(probe) = self.path.take() {
            ctx.timers.release(probe.timer);
        }
    }

    /// Returns the length of the next probe in octets.
    pub(super) fn probe_len(&self) -> usize {
        self.path.as_ref().map_or(0, |probe| if probe.is_long { probe.len } else { 0 })
    }
}

impl Writer {
    /// Prepares probes after readers were matched or redirected, so that sending does not allocate.
    pub(super) fn prepare_probe(&mut self, ctx: &mut Context) {
        if self.probes.path.is_none() && self.route.max_message > self.route.len_validated {
            self.probes.path = Some(PathProbe {
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

    /// Records the path of the samples for the readers that this group serves.
    pub(super) fn record_paths(&mut self, group: Option<usize>, ctx: &mut Context) {
        ctx.work.steps(self.proxies.len());
        let last_probe = self.probes.last_path_probe();
        for (_, proxy) in self.proxies.iter_mut().filter(|(_, proxy)| !proxy.reliable) {
            let locator = route::path_to(proxy, group, &ctx.multicast_groups).locator;
            proxy.set_probed_path(locator, last_probe);
        }
    }

    /// Records the length of a datagram to all readers.
    #[inline]
    pub(super) fn note_len(&mut self, len: usize, ctx: &mut Context) {
        if len > self.route.len_validated {
            self.begin_probe(ctx);
        }
    }

    #[cold]
    fn begin_probe(&mut self, ctx: &mut Context) {
        let Some(probe) = self.probes.path.as_mut().filter(|probe| probe.len == 0) else { return };
        (probe.len, probe.pairs, probe.wait) = (self.route.max_message, 0, WAIT);
        self.queue_probe_pair(ctx);
    }

    fn queue_probe_pair(&mut self, ctx: &mut Context) {
        if let Some(probe) = &mut self.probes.path {
            (probe.is_long, probe.is_queued) = (false, true);
            self.queue_probe(ctx);
        }
    }

    /// Prepares the probe with sequence number `number`: adds its destinations.
    pub(super) fn address_path_probe(&mut self, now: Instant, number: SequenceNumber, ctx: &mut Context) {
        ctx.work.steps(self.proxies.len());
        let Some(probe) = &mut self.probes.path else { return };
        let group = self.route.multicast_group;
        for (_, proxy) in self.proxies.iter().filter(|(_, proxy)| proxy.may_miss(probe.len)) {
            route::add_destination(&mut ctx.destinations, route::path_to(proxy, group, &ctx.multicast_groups).locator);
        }
        if !probe.is_long {
            (probe.short, probe.is_long) = (number, true);
            return self.queue_probe(ctx);
        }
        ctx.timers.arm(probe.timer, now.after(probe.wait));
        probe.wait = probe.wait * 3 / 2;
        (probe.long, probe.pairs, probe.is_queued) = (number, probe.pairs + 1, false);
    }

    /// Handles the answer of a participant to the probe with this sequence number. The probe may be
    /// that of another writer.
    pub(super) fn handle_path_answer(&mut self, ctx: &mut Context, prefix: GuidPrefix, number: SequenceNumber) {
        let Some(probe) = self.probes.path.as_ref().filter(|probe| probe.len > 0) else { return };
        let (len, is_long) = (probe.len, number == probe.long);
        if !is_long && number != probe.short {
            return;
        }
        let first = Guid { prefix, entity_id: EntityId::UNKNOWN };
        let mut has_changed = false;
        for (_, &index) in self.proxy_by_guid.range(first..).take_while(|(guid, _)| guid.prefix == prefix) {
            ctx.work.steps(1);
            let proxy = self.proxies.get_mut(index).filter(|proxy| proxy.may_miss(len));
            match proxy.filter(|proxy| number > proxy.path_state.probed_before) {
                Some(proxy) if is_long => {
                    (proxy.path_state.len, proxy.path_state.answers, proxy.path_state.long_lost) = (len, false, 0);
                    has_changed = true;
                }
                Some(proxy) => proxy.path_state.answers = true,
                None => {}
            }
        }
        if has_changed {
            self.reroute(ctx);
        }
    }

    /// Handles the timer: ends the wait for a pair of probes, or starts another round.
    pub(crate) fn handle_probe_timeout(&mut self, now: Instant, ctx: &mut Context) {
        ctx.work.steps(self.proxies.len());
        let Some(probe) = &mut self.probes.path else { return };
        let (mut is_open, mut narrow) = (false, 0);
        for (_, proxy) in self.proxies.iter_mut().filter(|(_, proxy)| proxy.may_miss(probe.len)) {
            proxy.path_state.long_lost += u32::from(core::mem::take(&mut proxy.path_state.answers));
            if proxy.path_state.long_lost >= LONG_LOST_PAIRS {
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
            ctx.timers.arm(probe.timer, now.after(PROBE_PAUSE));
        } else {
            self.queue_probe_pair(ctx);
        }
        if narrow > 0 {
            ctx.counters.narrowed_paths += narrow;
            ctx.notify(Event::PathNarrowed(self.handle));
            self.reroute(ctx);
        }
    }
}
