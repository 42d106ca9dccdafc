//! [`FaultInjector`]: a transport wrapper that loses, duplicates and reorders datagrams,
//! reproducibly for a seed.
//!
//! Each direction has its own random sequence, and every datagram (outgoing: every destination of a
//! frame) draws the same number of values from it. The outcome for a datagram therefore depends
//! only on the seed and on the number of earlier datagrams.
//!
//! Copies every datagram: a tool for tests, not for the data path. Like every transport, it does
//! not allocate after opening.

use std::io;

use takt_wire::{Locator, SharedPayload};

use crate::shm::Loan;
use crate::{Commit, FlowId, Layer, Reach, Receive, RxFrame, RxMeta, Transport, TransportError};

/// Fault probabilities of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Probability of loss, 0.0..=1.0.
    pub loss: f64,
    /// Probability of duplication, 0.0..=1.0.
    pub duplication: f64,
    /// Probability of delay, 0.0..=1.0.
    pub reorder: f64,
    /// Number of later datagrams that overtake a delayed one. Fewer when the direction is idle: a
    /// receiver has no other datagram to return, or a sender has found nothing to receive 16 times.
    pub hold: u32,
}

impl Faults {
    /// No faults.
    pub const NONE: Self = Self { loss: 0.0, duplication: 0.0, reorder: 0.0, hold: 3 };
}

impl Default for Faults {
    fn default() -> Self {
        Self::NONE
    }
}

/// Configuration of a [`FaultInjector`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FaultConfig {
    /// Seed of the random sequences.
    pub seed: u64,
    /// Faults of sent datagrams.
    pub tx: Faults,
    /// Faults of received datagrams.
    pub rx: Faults,
}

/// Faults that a [`FaultInjector`] injected into one direction, in datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Datagrams that arrived at the injector.
    pub seen: u64,
    /// Datagrams that were dropped.
    pub lost: u64,
    /// Datagrams that were passed on twice.
    pub duplicated: u64,
    /// Datagrams that were delayed while others passed.
    pub reordered: u64,
}

/// Transport wrapper that injects faults, reproducibly for a seed. It offers no loans; received
/// loans pass unchanged.
#[derive(Debug)]
pub struct FaultInjector<T> {
    inner: T,
    frame: Vec<u8>,
    loaned: bool,
    tx: Direction<(FlowId, Locator)>,
    /// Destinations of one commit that are sent to at once, and those that are sent to (again)
    /// later, with the due count.
    at_once: Vec<Locator>,
    later: Vec<(Locator, u64)>,
    /// Number of empty `recv` calls since a datagram was delayed.
    empty_receives: u32,
    rx: Direction<RxMeta>,
    received: Vec<u8>,
    /// Loan that arrived with the last received datagram.
    loan: Option<SharedPayload>,
}

/// Number of empty `recv` calls after which delayed outgoing datagrams are sent.
const EMPTY_RECEIVES_MAX: u32 = 16;

/// Room for a datagram of the maximum size.
const ROOM: usize = 1 << 16;

impl<T: Transport> FaultInjector<T> {
    /// Wraps `inner`.
    pub fn new(inner: T, config: FaultConfig) -> Self {
        Self {
            frame: vec![0; inner.capabilities().max_message_len],
            loaned: false,
            tx: Direction::new(config.tx, config.seed),
            at_once: Vec::with_capacity(DELAYED_MAX),
            later: Vec::with_capacity(DELAYED_MAX),
            empty_receives: 0,
            rx: Direction::new(config.rx, !config.seed),
            received: vec![0; ROOM],
            loan: None,
            inner,
        }
    }

    /// Returns the counts of sent datagrams, one per destination.
    pub fn tx_counts(&self) -> FaultCounts {
        self.tx.counts
    }

    /// Returns the counts of received datagrams.
    pub fn rx_counts(&self) -> FaultCounts {
        self.rx.counts
    }

    /// Returns the wrapped transport.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// Sends the datagrams whose delay has ended; all of them if `idle`.
    fn release(&mut self, idle: bool) -> Result<(), TransportError> {
        while let Some(delayed) = self.tx.next_due(idle) {
            let (flow, to) = delayed.tag;
            let datagram = self.tx.bytes(&delayed);
            self.inner.loan()?[..datagram.len()].copy_from_slice(datagram);
            match self.inner.commit(Commit::new(datagram.len(), flow, &[to])) {
                // The flow was closed meanwhile, so the datagram is lost.
                Err(e) if e.source.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Decides on the faults of the received datagram. Returns true if it is passed on now.
    fn passes(&mut self, len: usize, meta: RxMeta) -> bool {
        let outcome = self.rx.draw(0);
        if let Some(due) = outcome.later {
            self.rx.delay(&self.received[..len], meta, due);
        }
        outcome.now
    }
}

/// Copies a received datagram, and keeps the loan that came with it. Returns its length and origin;
/// `Some(None)` if it is too long.
fn copy_received(
    frame: Option<RxFrame<'_>>,
    received: &mut [u8],
    loan: &mut Option<SharedPayload>,
) -> Option<Option<(usize, RxMeta)>> {
    let frame = frame?;
    *loan = frame.loan().cloned();
    let room = received.get_mut(..frame.len());
    Some(room.map(|room| {
        room.copy_from_slice(&frame);
        (frame.len(), frame.meta)
    }))
}

impl<T: Transport> FaultInjector<T> {
    /// Returns the next datagram that passes, among the requested ones.
    fn recv_common(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        loop {
            self.loan = None;
            if let Some(delayed) = self.rx.next_due(false) {
                return Ok(Some(RxFrame::new(self.rx.bytes(&delayed), delayed.tag)));
            }
            let frame = self.inner.recv(request)?;
            let Some(received) = copy_received(frame, &mut self.received, &mut self.loan) else { break };
            if let Some((len, meta)) = received
                && (self.loan.is_some() || self.passes(len, meta))
            {
                return Ok(Some(RxFrame::new(&self.received[..len], meta).with_loan(self.loan.as_ref())));
            }
        }
        self.empty_receives += 1;
        if self.empty_receives == EMPTY_RECEIVES_MAX {
            self.release(true)?;
            self.inner.flush()?;
            self.empty_receives = 0;
        }
        let last = self.rx.next_due(true);
        Ok(last.map(|delayed| RxFrame::new(self.rx.bytes(&delayed), delayed.tag)))
    }

    /// Returns the next urgent datagram that passes. A delayed or duplicated one is no longer
    /// urgent.
    fn recv_urgent(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        loop {
            self.loan = None;
            let frame = self.inner.recv(request)?;
            let Some(received) = copy_received(frame, &mut self.received, &mut self.loan) else { return Ok(None) };
            if let Some((len, meta)) = received
                && (self.loan.is_some() || self.passes(len, meta))
            {
                return Ok(Some(RxFrame::new(&self.received[..len], meta).with_loan(self.loan.as_ref())));
            }
        }
    }
}

impl<T: Transport> Layer for FaultInjector<T> {
    type Inner = T;

    fn inner(&self) -> &T {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    fn reach(&self, to: &Locator) -> Reach {
        self.inner.reach(to).is_served().into()
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.release(true)?;
        self.inner.close_flow(flow)
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.loaned = true;
        Ok(&mut self.frame)
    }

    fn loan_payload(&mut self, _: usize) -> Option<Loan> {
        None
    }

    fn commit(&mut self, request: Commit<'_>) -> Result<(), TransportError> {
        if !self.loaned {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "no frame is loaned");
            return Err(TransportError::new("commit", "a datagram", why));
        }
        let len = request.assemble(&mut self.frame)?;
        let Commit { flow, destinations, .. } = request;
        let datagram = &self.frame[..len];
        self.at_once.clear();
        self.later.clear();
        for to in destinations {
            let outcome = self.tx.draw(self.later.len());
            if outcome.now {
                self.at_once.push(*to);
            }
            if let Some(due) = outcome.later {
                self.later.push((*to, due));
            }
        }
        self.inner.loan()?[..len].copy_from_slice(datagram);
        self.inner.commit(Commit::new(len, flow, &self.at_once))?;
        self.loaned = false;
        for (to, due) in &self.later {
            self.tx.delay(datagram, (flow, *to), *due);
            self.empty_receives = 0;
        }
        self.release(false)
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        match request {
            Receive::Urgent { .. } => self.recv_urgent(request),
            Receive::Any(_) | Receive::NotUrgent(_) => self.recv_common(request),
        }
    }
}

/// Maximum number of delayed datagrams in one direction; a further one passes.
const DELAYED_MAX: usize = 64;

/// State of one direction: faults, random sequence, delayed datagrams.
struct Direction<M> {
    faults: Faults,
    random: SplitMix64,
    counts: FaultCounts,
    /// Delayed datagrams, oldest first.
    delayed: Vec<Delayed<M>>,
    /// Free slots of `buffer`.
    free: Vec<usize>,
    buffer: Vec<u8>,
}

/// Delayed datagram.
#[derive(Debug, Clone, Copy)]
struct Delayed<M> {
    tag: M,
    slot: usize,
    len: usize,
    /// Number of seen datagrams at which it is passed on.
    due: u64,
}

/// Outcome for a datagram: both fields set is a duplicate, neither a loss.
struct Outcome {
    now: bool,
    later: Option<u64>,
}

impl<M> std::fmt::Debug for Direction<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Direction({:?}, {} held)", self.counts, self.delayed.len())
    }
}

impl<M: Copy> Direction<M> {
    fn new(faults: Faults, seed: u64) -> Self {
        Self {
            faults,
            random: SplitMix64(seed),
            counts: FaultCounts::default(),
            delayed: Vec::with_capacity(DELAYED_MAX),
            free: (0..DELAYED_MAX).rev().collect(),
            buffer: vec![0; DELAYED_MAX * ROOM],
        }
    }

    /// Decides on the next datagram. `reserved` slots are not available for it.
    fn draw(&mut self, reserved: usize) -> Outcome {
        let lost = self.random.hit(self.faults.loss);
        let duplicated = self.random.hit(self.faults.duplication);
        let reordered = self.random.hit(self.faults.reorder);
        self.counts.seen += 1;
        let seen = self.counts.seen;
        let room = self.free.len() > reserved;
        let (now, later) = match (lost, duplicated && room, reordered && room) {
            (true, _, _) => (false, None),
            (false, true, is_reordered) => (true, Some(if is_reordered { self.later_count() } else { seen })),
            (false, false, true) => (false, Some(self.later_count())),
            (false, false, false) => (true, None),
        };
        self.counts.lost += u64::from(!now && later.is_none());
        self.counts.duplicated += u64::from(now && later.is_some());
        self.counts.reordered += u64::from(later.is_some_and(|due| due > seen));
        Outcome { now, later }
    }

    fn later_count(&self) -> u64 {
        self.counts.seen + u64::from(self.faults.hold)
    }

    fn delay(&mut self, datagram: &[u8], tag: M, due: u64) {
        let slot = self.free.pop().expect("no more datagrams are delayed than the pool holds");
        let len = datagram.len();
        self.buffer[slot * ROOM..][..len].copy_from_slice(datagram);
        self.delayed.push(Delayed { tag, slot, len, due });
    }

    /// Removes a datagram whose delay has ended; if `idle`, the oldest one. Its bytes stay until
    /// the next datagram is delayed.
    fn next_due(&mut self, idle: bool) -> Option<Delayed<M>> {
        let seen = self.counts.seen;
        let at = self.delayed.iter().position(|h| idle || h.due <= seen)?;
        let delayed = self.delayed.remove(at);
        self.free.push(delayed.slot);
        Some(delayed)
    }

    fn bytes(&self, delayed: &Delayed<M>) -> &[u8] {
        &self.buffer[delayed.slot * ROOM..][..delayed.len]
    }
}

/// SplitMix64 by Sebastiano Vigna: small, and sufficient for fault probabilities.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns true with this probability.
    fn hit(&mut self, probability: f64) -> bool {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        unit < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(faults: Faults, seed: u64) -> (Vec<(bool, Option<u64>)>, FaultCounts) {
        let mut direction: Direction<()> = Direction::new(faults, seed);
        let outcomes = (0..10_000).map(|_| {
            let outcome = direction.draw(0);
            (outcome.now, outcome.later)
        });
        (outcomes.collect(), direction.counts)
    }

    #[test]
    fn seed_determines_the_faults() {
        let faults = Faults { loss: 0.1, duplication: 0.1, reorder: 0.1, hold: 3 };
        assert_eq!(outcomes(faults, 1), outcomes(faults, 1));
        assert_ne!(outcomes(faults, 1).0, outcomes(faults, 2).0);
    }

    #[test]
    fn fault_rates_match_the_probabilities() {
        let faults = Faults { loss: 0.3, duplication: 0.2, reorder: 0.1, hold: 2 };
        let (_, counts) = outcomes(faults, 7);
        // Five standard deviations of 10,000 trials.
        let near = |count: u64, expected: f64| (count as f64 - expected).abs() < 230.0;
        assert_eq!(counts.seen, 10_000);
        assert!(near(counts.lost, 3000.0), "{counts:?}");
        assert!(near(counts.duplicated, 1400.0), "{counts:?}");
        assert!(near(counts.reordered, 700.0), "{counts:?}");
        let (all, counts) = outcomes(Faults { loss: 1.0, ..faults }, 7);
        assert!(all.iter().all(|outcome| *outcome == (false, None)));
        assert_eq!(counts.lost, 10_000);
        let (all, _) = outcomes(Faults::NONE, 7);
        assert!(all.iter().all(|outcome| *outcome == (true, None)));
    }

    #[test]
    fn datagram_beyond_the_delay_capacity_passes() {
        let faults = Faults { reorder: 1.0, hold: 1_000_000, ..Faults::NONE };
        let mut direction: Direction<u32> = Direction::new(faults, 0);
        for n in 0..100 {
            let outcome = direction.draw(0);
            assert_eq!(outcome.now, n >= DELAYED_MAX as u32);
            if let Some(due) = outcome.later {
                direction.delay(&n.to_le_bytes(), n, due);
            }
        }
        assert!(direction.next_due(false).is_none());
        for n in 0..DELAYED_MAX as u32 {
            let delayed = direction.next_due(true).expect("still held");
            assert_eq!((delayed.tag, direction.bytes(&delayed)), (n, &n.to_le_bytes()[..]));
        }
        assert!(direction.next_due(true).is_none());
    }
}
