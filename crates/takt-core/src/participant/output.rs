//! Datagrams to be sent, one at a time, built in the transport's frame.

use super::Participant;
use crate::FlowTag;
use crate::context::Job;
use crate::time::Instant;
use takt_exec::Priority;
use takt_wire::{Lent, Locator};

/// A datagram that was built in the caller's frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// Its length in bytes.
    pub len: usize,
    /// The socket it should leave by.
    pub flow: FlowTag,
    /// How urgent it is: no more than what was built before, and no less than what comes next, if nothing is queued meanwhile.
    pub priority: Priority,
    /// Where it goes; never empty.
    pub destinations: &'a [Locator],
    /// A payload that goes along by reference: the datagram's DATA has its first octets alone, and all destinations are of this
    /// host's memory.
    pub lent: Option<Lent>,
    /// What the datagram goes on with behind those octets; empty but of [`Participant::poll_transmit_gathering`].
    pub payload: &'a [u8],
}

/// What the narrowest path takes in one packet, IPv4 and UDP headers off.
const LEAST_FRAME_LEN: usize = 548;

impl Participant {
    /// Builds the next datagram, the most urgent one, in `frame`, which must hold a packet of the largest MTU in use, or what the
    /// transport takes if that is more; `None` if there is nothing more to send, or if the frame is shorter than any
    /// path allows. One call, one datagram; jobs that turn out to be stale are passed over, each of them once.
    pub fn poll_transmit(&mut self, now: Instant, frame: &mut [u8]) -> Option<Transmit<'_>> {
        self.ctx.gathers = false;
        self.transmit_next(now, frame)
    }

    /// As [`Self::poll_transmit`], but long fragments are not copied: they are left in [`Transmit::payload`] for the caller to
    /// send along. There is room for them in the frame, behind what was built there.
    pub fn poll_transmit_gathering(&mut self, now: Instant, frame: &mut [u8]) -> Option<Transmit<'_>> {
        self.ctx.gathers = self.ctx.security.is_none();
        self.transmit_next(now, frame)
    }

    fn transmit_next(&mut self, now: Instant, frame: &mut [u8]) -> Option<Transmit<'_>> {
        if frame.len() < LEAST_FRAME_LEN {
            return None;
        }
        loop {
            let (priority, job) = self.ctx.jobs.pop()?;
            self.ctx.work.unit();
            self.destinations.clear();
            (self.ctx.lent, self.ctx.ahead) = (None, None);
            let mut flow = FlowTag::default();
            let len = match self.ctx.security {
                None => self.build(now, job, frame, &mut flow),
                Some(_) => self.build_protected(now, job, frame, &mut flow),
            };
            if let Some(len) = len.filter(|_| !self.destinations.is_empty()) {
                self.ctx.counters.datagrams_sent += 1;
                let lent = self.ctx.lent.take();
                let payload = self.ctx.ahead.take().and_then(|ahead| {
                    let writer = self.writers.get(ahead.writer)?;
                    writer.history.pool.bytes(ahead.payload).get(ahead.range)
                });
                let payload = payload.unwrap_or_default();
                return Some(Transmit { len, flow, priority, destinations: &self.destinations, lent, payload });
            }
        }
    }

    pub(crate) fn build(&mut self, now: Instant, job: Job, frame: &mut [u8], flow: &mut FlowTag) -> Option<usize> {
        let Self { writers, readers, ctx, header, destinations, .. } = self;
        match job {
            Job::Announce => self.transmit_announcement(now, frame),
            Job::Introduce { participant } => self.transmit_introduction(participant, frame),
            Job::Greet { participant } => self.transmit_letter(now, participant, frame),
            Job::Ask { channel } => self.transmit_question(now, channel, frame),
            Job::Question { writer } => {
                *flow = writers.get(writer)?.flows.live;
                self.transmit_writer_question(now, writer, frame)
            }
            Job::Data { writer } => {
                let writer = writers.get_mut(writer)?;
                *flow = writer.flows.live;
                writer.transmit_data(now, ctx, header, frame, destinations)
            }
            Job::Repair { writer, proxy } => {
                let writer = writers.get_mut(writer)?;
                *flow = writer.repair_flow(proxy);
                writer.transmit_repair(now, proxy, ctx, header, frame, destinations)
            }
            Job::Heartbeat { writer } => {
                let writer = writers.get_mut(writer)?;
                *flow = writer.flows.live;
                writer.transmit_heartbeat(ctx, header, frame, destinations)
            }
            Job::AckNack { reader, proxy } => {
                let reader = readers.get_mut(reader)?;
                *flow = reader.flow;
                reader.transmit_acknack(now, proxy, ctx, header, frame, destinations)
            }
        }
    }

    /// Whether [`Self::poll_transmit`] may have something to send.
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        !self.ctx.jobs.is_empty()
    }

    /// How urgent the next datagram is; it may turn out that nobody wants that one any more, and the next is less so.
    #[must_use]
    pub fn transmit_priority(&self) -> Option<Priority> {
        self.ctx.jobs.first_priority()
    }

    /// How long the next datagram may be at most, in octets, if it carries data: what its way takes. Others fit into whatever
    /// frame they are given.
    #[must_use]
    pub fn next_transmit_len_max(&self) -> usize {
        let plain = self.next_plain_len_max();
        let overhead = self.ctx.security.as_ref().map_or(0, |security| security.message_overhead());
        if plain == 0 { 0 } else { plain + overhead }
    }

    fn next_plain_len_max(&self) -> usize {
        match self.ctx.jobs.first() {
            Some(Job::Data { writer } | Job::Question { writer }) => {
                self.writers.get(*writer).map_or(0, |writer| writer.message_len_max(&self.ctx))
            }
            Some(Job::Repair { writer, proxy }) => {
                let Some(writer) = self.writers.get(*writer) else { return 0 };
                let proxy = writer.proxies.get(*proxy);
                proxy.map_or(0, |proxy| writer.with_grown_reserve(proxy.path.max_message, &self.ctx))
            }
            _ => 0,
        }
    }

    /// Where this participant listens for discovery.
    #[must_use]
    pub fn metatraffic_unicast(&self) -> &[Locator] {
        &self.locators.metatraffic_unicast
    }

    /// Where this participant listens for user data.
    #[must_use]
    pub fn default_unicast(&self) -> &[Locator] {
        &self.locators.default_unicast
    }
}
