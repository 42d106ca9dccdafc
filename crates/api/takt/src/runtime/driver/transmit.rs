//! Transmit path of the driver: the core builds each datagram in a transport's frame, and each
//! destination receives it by the first transport that serves it.
//!
//! The core decides the order of the datagrams. A datagram that goes out by the transport of its
//! frame alone is not copied.

use takt_core::{Instant, Transmit};
use takt_transport::{Commit, FRAGMENT_OCTETS_PER_FLUSH, FlowId, Payload, Transport, TransportError};
use takt_wire::{Locator, SharedPayload};

use super::flows::Flow;
use super::{Driver, DriverCounters};
use crate::runtime::roles::TransportSet;

/// Limits on the datagrams that one job sends while an urgent datagram may arrive.
const DATAGRAMS_PER_JOB: usize = 8;
const OCTETS_PER_JOB: usize = 65_536;

impl Driver {
    /// Returns the number of datagrams built.
    pub(crate) fn built(&self) -> u64 {
        self.built
    }

    /// Sends all datagrams that are due.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Instant) {
        let now = self.advance(now);
        if self.core.has_transmit() {
            self.transmit_all(now);
        }
    }

    /// Sends for a call of the application: all datagrams, or at most those of one job if urgent
    /// datagrams may arrive.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant) {
        if self.receives_above(None) {
            self.transmit_some(now);
        } else {
            self.transmit(now);
        }
    }

    fn transmit_all(&mut self, now: Instant) {
        let mut to_flush = FlushSet::default();
        while self.core.has_transmit() && self.transmit_one(now, &mut to_flush).is_some() {}
        self.flush(to_flush);
    }

    /// Sends the most urgent datagrams, all of one priority and at most as many as one job may
    /// send.
    pub(crate) fn transmit_some(&mut self, now: Instant) {
        let now = self.advance(now);
        let (mut to_flush, mut octets) = (FlushSet::default(), 0);
        let priority = self.core.transmit_priority();
        for _ in 0..DATAGRAMS_PER_JOB {
            if self.core.transmit_priority() != priority || octets >= OCTETS_PER_JOB {
                break;
            }
            match self.transmit_one(now, &mut to_flush) {
                Some(len) => octets += len,
                None => break,
            }
        }
        self.flush(to_flush);
    }

    fn flush(&mut self, to_flush: FlushSet) {
        for (index, transport) in self.transports.iter_mut().enumerate() {
            if to_flush.has(index) && transport.flush().is_err() {
                self.counters.send_failures += 1;
            }
        }
        if std::mem::take(&mut self.unflushed_fragment_octets) > 0 {
            self.handle_transport_events(self.now);
        }
    }

    /// Builds one datagram and commits it. Returns its length; `None` if no datagram is due.
    /// Flushes after some fragments of large samples, so that few of them wait in the queues of
    /// network interfaces.
    fn transmit_one(&mut self, now: Instant, to_flush: &mut FlushSet) -> Option<usize> {
        let Built { len, is_fragment } = self.commit_one(now, to_flush)?;
        if is_fragment {
            self.unflushed_fragment_octets += len;
            if self.unflushed_fragment_octets >= FRAGMENT_OCTETS_PER_FLUSH {
                self.flush(std::mem::take(to_flush));
            }
        }
        Some(len)
    }

    /// Builds one datagram in a transport's frame and commits it; `None` if no datagram is due.
    #[inline]
    fn commit_one(&mut self, now: Instant, to_flush: &mut FlushSet) -> Option<Built> {
        if let Some(longest) = self.longest_frames
            && self.transports[self.frame_owner].capabilities().max_message_len < self.core.next_transmit_len_max()
        {
            self.frame_owner = longest;
        }
        let Ok(frame) = self.transports[self.frame_owner].loan() else {
            self.counters.send_failures += 1;
            return None;
        };
        let transmit = self.core.poll_transmit_gathering(now, frame)?;
        self.built += 1;
        let built = Built { len: transmit.len + transmit.payload.len(), is_fragment: transmit.is_fragment };
        let Some(Some(Flow { ids: flows, transports: set, .. })) = self.flows.get(usize::from(transmit.flow.0)) else {
            self.counters.send_failures += 1;
            return Some(built);
        };
        let Transmit { len, is_fragment, destinations, loan, payload, .. } = transmit;
        let loan = loan.as_ref();
        let outgoing = Outgoing { len, payload, is_fragment, flows, transports: *set, destinations, loan };
        if let [only] = &mut self.transports[..] {
            to_flush.add(0);
            if outgoing.commit(only, flows[0], destinations).is_err() {
                self.counters.send_failures += 1;
            }
            return Some(built);
        }
        let Self { transports, served, counters, frame_owner, .. } = self;
        *frame_owner = outgoing.route(transports, *frame_owner, served, to_flush, counters);
        Some(built)
    }
}

/// Datagram that was built and committed.
struct Built {
    len: usize,
    /// It is a fragment of a large sample.
    is_fragment: bool,
}

/// Returns the index of the transport with the longest frames, if others are shorter.
pub(super) fn longest_frames(transports: &[Box<dyn Transport>]) -> Option<usize> {
    let len_max = |index: &usize| transports[*index].capabilities().max_message_len;
    let (shortest, longest) = ((0..transports.len()).min_by_key(len_max)?, (0..transports.len()).max_by_key(len_max)?);
    (len_max(&shortest) < len_max(&longest)).then_some(longest)
}

/// Set of transports that have data to flush. All transports from index 63 on share one bit.
#[derive(Clone, Copy, Default)]
pub(super) struct FlushSet(u64);

impl FlushSet {
    fn add(&mut self, index: usize) {
        self.0 |= 1 << index.min(63);
    }

    pub(super) fn has(self, index: usize) -> bool {
        self.0 >> index.min(63) & 1 != 0
    }
}

/// Outgoing datagram that several transports may carry.
pub(super) struct Outgoing<'a> {
    pub(super) len: usize,
    /// Data that follow the frame's first `len` octets.
    pub(super) payload: &'a [u8],
    /// The datagram is a fragment of a large sample.
    pub(super) is_fragment: bool,
    pub(super) flows: &'a [FlowId],
    /// Transports that may carry the datagram.
    pub(super) transports: TransportSet,
    pub(super) destinations: &'a [Locator],
    /// Loan of the payload.
    pub(super) loan: Option<&'a SharedPayload>,
}

impl Outgoing<'_> {
    /// Sends the datagram to each destination by the first transport that serves it. The frame of
    /// transport `frame_owner` contains the datagram; other transports receive a copy. Returns the
    /// index of the next frame owner: the transport that carried this datagram, if it was the only
    /// one.
    pub(super) fn route(
        &self,
        transports: &mut [Box<dyn Transport>],
        frame_owner: usize,
        served: &mut Vec<Locator>,
        to_flush: &mut FlushSet,
        counters: &mut DriverCounters,
    ) -> usize {
        let transport_of = |transports: &[Box<dyn Transport>], destination: &Locator| {
            let mut candidates = transports.iter().enumerate();
            candidates
                .position(|(index, transport)| self.transports.has(index) && transport.reach(destination).is_served())
        };
        let first = self.destinations.first().and_then(|destination| transport_of(transports, destination));
        if let Some(only) = first
            && self.destinations[1..].iter().all(|destination| transport_of(transports, destination) == first)
        {
            to_flush.add(only);
            let copied = only == frame_owner || self.copy(transports, frame_owner, only);
            if !copied || self.commit(&mut transports[only], self.flows[only], self.destinations).is_err() {
                counters.send_failures += 1;
            }
            return only;
        }
        let unserved = self.destinations.iter().filter(|destination| transport_of(transports, destination).is_none());
        counters.unserved_destinations += unserved.count() as u64;
        let (mut count, mut last) = (0, frame_owner);
        // The frame owner commits last, since its commit ends the loan of the frame.
        for index in (0..transports.len()).filter(|index| *index != frame_owner).chain([frame_owner]) {
            served.clear();
            let of_this = |destination: &&Locator| transport_of(transports, destination) == Some(index);
            served.extend(self.destinations.iter().filter(of_this));
            if served.is_empty() {
                continue;
            }
            (count, last) = (count + 1, index);
            to_flush.add(index);
            let copied = index == frame_owner || self.copy(transports, frame_owner, index);
            if !copied || self.commit(&mut transports[index], self.flows[index], served).is_err() {
                counters.send_failures += 1;
            }
        }
        // Destinations that no transport serves are not considered.
        if count == 1 { last } else { frame_owner }
    }

    /// Commits the frame of a transport.
    fn commit(
        &self,
        transport: &mut Box<dyn Transport>,
        flow: FlowId,
        destinations: &[Locator],
    ) -> std::result::Result<(), TransportError> {
        let payload = match self.loan {
            None if self.payload.is_empty() => Payload::InFrame,
            None => Payload::Gathered(self.payload),
            Some(loan) => Payload::Loaned(loan),
        };
        transport.commit(Commit { len: self.len, flow, destinations, payload, is_fragment: self.is_fragment })
    }

    /// Copies the datagram between the frames of two transports. Returns false if that is not
    /// possible.
    fn copy(&self, transports: &mut [Box<dyn Transport>], from: usize, to: usize) -> bool {
        let Ok([from, to]) = transports.get_disjoint_mut([from, to]) else { return false };
        match (from.loan(), to.loan()) {
            (Ok(from), Ok(to)) if to.len() >= self.len => {
                to[..self.len].copy_from_slice(&from[..self.len]);
                true
            }
            _ => false,
        }
    }
}
