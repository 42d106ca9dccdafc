//! Output of datagrams, one at a time, built in the transport's frame.

use super::Participant;
use crate::context::{Context, Job};
use crate::discovery::Call;
use crate::time::Instant;
use crate::{FlowTag, LocatorKinds, WriterHandle};
use takt_schedule::Priority;
use takt_wire::{Locator, MESSAGE_LEN_MIN, SharedPayload};

/// Datagram that was built in the caller's frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// Length in bytes.
    pub len: usize,
    /// Socket that should send the datagram.
    pub flow: FlowTag,
    /// Priority of the datagram. It is not higher than that of the previous datagram, and not lower
    /// than that of the next, unless jobs are queued in between.
    pub priority: Priority,
    /// The datagram is a fragment of a large sample. [`Participant::block_fragments`] delays such
    /// datagrams.
    pub is_fragment: bool,
    /// Destinations; never empty.
    pub destinations: &'a [Locator],
    /// Payload sent by reference: the datagram's DATA contains only its first octets, and all
    /// destinations are shared memory of this host.
    pub loan: Option<SharedPayload>,
    /// Payload that follows those octets. Empty unless built by
    /// [`Participant::poll_transmit_gathering`].
    pub payload: &'a [u8],
}

impl Participant {
    /// Builds the next datagram of the highest priority in `frame`. The frame must hold a packet of
    /// the largest MTU in use, or the transport's limit if that is larger. Returns `None` if there
    /// is nothing to send, or if the frame is shorter than any path allows. One call builds one
    /// datagram; stale jobs are skipped, each of them once.
    pub fn poll_transmit(&mut self, now: Instant, frame: &mut [u8]) -> Option<Transmit<'_>> {
        self.ctx.scatter_gather = false;
        self.transmit_next(now, frame)
    }

    /// As [`Self::poll_transmit`], but long fragments are not copied: the caller sends
    /// [`Transmit::payload`] after the frame. The frame has room for the payload after the part
    /// that was built.
    pub fn poll_transmit_gathering(&mut self, now: Instant, frame: &mut [u8]) -> Option<Transmit<'_>> {
        self.ctx.scatter_gather = self.ctx.security.is_none();
        self.transmit_next(now, frame)
    }

    fn transmit_next(&mut self, now: Instant, frame: &mut [u8]) -> Option<Transmit<'_>> {
        if frame.len() < MESSAGE_LEN_MIN {
            return None;
        }
        loop {
            let (priority, job) = self.ctx.jobs.pop()?;
            self.ctx.work.unit();
            if !self.ctx.blocked_flows.is_empty() && self.is_blocked(job) {
                self.hold(priority, job);
                continue;
            }
            self.ctx.destinations.clear();
            (self.ctx.loan, self.ctx.payload_tail, self.ctx.is_fragment) = (None, None, false);
            let mut flow = FlowTag::default();
            let len = match self.ctx.security {
                None => self.build(now, job, frame, &mut flow),
                Some(_) => self.build_protected(now, job, frame, &mut flow),
            };
            if let Some(len) = len.filter(|_| !self.ctx.destinations.is_empty()) {
                self.ctx.counters.datagrams_sent += 1;
                let loan = self.ctx.loan.take();
                let payload = self.ctx.payload_tail.take().and_then(|tail| {
                    let writer = self.endpoints.writers.get(tail.writer)?;
                    writer.history.pool.bytes(tail.payload).get(tail.range)
                });
                let payload = payload.unwrap_or_default();
                let Context { is_fragment, destinations, .. } = &self.ctx;
                let is_fragment = *is_fragment;
                return Some(Transmit { len, flow, priority, is_fragment, destinations, loan, payload });
            }
        }
    }

    /// Delays fragments of this flow to locators of these kinds until
    /// [`unblock_fragments`](Self::unblock_fragments), because the queue of a network interface is
    /// full. All other datagrams are sent as before.
    pub fn block_fragments(&mut self, flow: FlowTag, kinds: LocatorKinds) {
        self.ctx.blocked_flows.block(flow, kinds);
    }

    /// Ends what [`block_fragments`](Self::block_fragments) began.
    pub fn unblock_fragments(&mut self, flow: FlowTag, kinds: LocatorKinds) {
        self.ctx.blocked_flows.unblock(flow, kinds, &mut self.ctx.jobs);
    }

    /// Reports whether fragments of any flow are delayed.
    #[must_use]
    pub fn has_blocked_flows(&self) -> bool {
        !self.ctx.blocked_flows.is_empty()
    }

    /// Reports whether fragments of new samples of a writer are delayed.
    /// [`WriterSpace`](crate::Event::WriterSpace) follows when all of them have been sent. False
    /// for a deleted writer.
    #[must_use]
    pub fn is_writer_blocked(&self, writer: WriterHandle) -> bool {
        self.endpoints.writers.get(writer.index).is_some_and(|it| it.handle == writer && it.is_blocked)
    }

    /// Reports whether the next datagram of a job is a fragment that must wait.
    #[cold]
    fn is_blocked(&mut self, job: Job) -> bool {
        let Self { ctx, endpoints, .. } = self;
        match job {
            Job::Data { writer } => endpoints.writers.get(writer).is_some_and(|writer| {
                let destinations = writer.destinations().iter();
                writer.is_next_fragment() && ctx.blocked_flows.blocks(writer.flows.live, destinations)
            }),
            Job::Repair { writer, proxy } => endpoints.writers.get_mut(writer).is_some_and(|writer| {
                let destination = writer.next_repair_fragment_to(proxy, ctx);
                ctx.blocked_flows.blocks(writer.repair_flow(proxy), destination.iter())
            }),
            _ => false,
        }
    }

    #[cold]
    fn hold(&mut self, priority: Priority, job: Job) {
        if let Job::Data { writer } = job
            && let Some(writer) = self.endpoints.writers.get_mut(writer)
        {
            writer.is_blocked = true;
        }
        self.ctx.blocked_flows.hold(priority, job);
    }

    pub(crate) fn build(&mut self, now: Instant, job: Job, frame: &mut [u8], flow: &mut FlowTag) -> Option<usize> {
        let Self { ctx, endpoints, discovery, .. } = self;
        match job {
            Job::Announce => discovery.transmit_announcement(&mut Call::new(now, ctx, endpoints), frame),
            Job::Introduction { participant } => discovery.transmit_introduction(ctx, participant, frame),
            Job::DirectedAnnouncement { participant } => {
                discovery.transmit_validation(&mut Call::new(now, ctx, endpoints), participant, frame)
            }
            Job::MulticastProbe { group } => {
                discovery.transmit_multicast_probe(&mut Call::new(now, ctx, endpoints), group, frame)
            }
            Job::WriterProbe { writer } => {
                *flow = endpoints.writers.get(writer)?.flows.live;
                endpoints.transmit_writer_probe(now, ctx, writer, frame)
            }
            Job::Data { writer } => {
                let writer = endpoints.writers.get_mut(writer)?;
                *flow = writer.flows.live;
                let len = writer.transmit_data(now, ctx, frame);
                writer.end_blocking(ctx);
                len
            }
            Job::Repair { writer, proxy } => {
                let writer = endpoints.writers.get_mut(writer)?;
                *flow = writer.repair_flow(proxy);
                writer.transmit_repair(now, proxy, ctx, frame)
            }
            Job::Heartbeat { writer } => {
                let writer = endpoints.writers.get_mut(writer)?;
                *flow = writer.flows.live;
                writer.transmit_heartbeat(ctx, frame)
            }
            Job::AckNack { reader, proxy } => {
                let reader = endpoints.readers.get_mut(reader)?;
                *flow = reader.flow;
                reader.transmit_acknack(now, proxy, ctx, frame)
            }
        }
    }

    /// Reports whether [`Self::poll_transmit`] may have something to send.
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        !self.ctx.jobs.is_empty()
    }

    /// Returns the priority of the next datagram. If that job turns out to be stale, the next
    /// datagram has a lower one.
    #[must_use]
    pub fn transmit_priority(&self) -> Option<Priority> {
        self.ctx.jobs.first_priority()
    }

    /// Returns the maximum length of the next datagram in octets if it carries data: the limit of
    /// its path. Returns 0 for other datagrams, which fit into any frame.
    #[must_use]
    pub fn next_transmit_len_max(&self) -> usize {
        let plain = self.next_plain_len_max();
        let overhead = self.ctx.security.as_ref().map_or(0, |security| security.message_overhead());
        if plain == 0 { 0 } else { plain + overhead }
    }

    fn next_plain_len_max(&self) -> usize {
        match self.ctx.jobs.first() {
            Some(Job::Data { writer } | Job::WriterProbe { writer }) => {
                self.endpoints.writers.get(*writer).map_or(0, |writer| writer.message_len_max(&self.ctx))
            }
            Some(Job::Repair { writer, proxy }) => {
                let Some(writer) = self.endpoints.writers.get(*writer) else { return 0 };
                let proxy = writer.proxies.get(*proxy);
                proxy.map_or(0, |proxy| writer.security.with_grown_reserve(proxy.path.max_message, &self.ctx))
            }
            _ => 0,
        }
    }

    /// Returns the unicast locators on which this participant listens for discovery.
    #[must_use]
    pub fn metatraffic_unicast(&self) -> &[Locator] {
        &self.discovery.locators.metatraffic_unicast
    }

    /// Returns the unicast locators on which this participant listens for user data.
    #[must_use]
    pub fn default_unicast(&self) -> &[Locator] {
        &self.discovery.locators.default_unicast
    }
}
