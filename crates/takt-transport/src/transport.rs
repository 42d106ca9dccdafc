//! The [`Transport`] trait and the types of its calls.

use std::ops::Deref;
use std::os::fd::RawFd;

use takt_wire::{Beside, Lent, LentFrame, Locator};

use crate::shm::Loan;
use crate::{Interface, TransportError, TransportStats, Warning};

/// Names one flow of a transport: what gives outgoing datagrams their source
/// port and priority. See [`Transport::open_flow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u16);

impl FlowId {
    /// The flow that every transport has from the start: priority 0, from any
    /// source port.
    pub const DEFAULT: FlowId = FlowId(0);
}

/// What a flow shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowSpec {
    /// The flow gets a port of its own, which it sends from, receives at and
    /// which is to be announced for the endpoint: flow identity, by which a
    /// switch can tell one topic from another.
    pub own_port: bool,
    /// The `value` of TRANSPORT_PRIORITY (DDS 1.4 §2.2.3.15); higher is more urgent.
    pub transport_priority: i32,
}

/// Where a transport can be reached: what discovery announces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locators {
    /// Discovery traffic to this participant alone.
    pub metatraffic_unicast: Vec<Locator>,
    /// Discovery traffic to everyone. Also where announcements are sent to.
    pub metatraffic_multicast: Vec<Locator>,
    /// User data to this participant alone.
    pub default_unicast: Vec<Locator>,
    /// User data to everyone.
    pub default_multicast: Vec<Locator>,
}

/// A locator that was in reach; see [`Transport::poll_lost`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Where; the port means nothing.
    pub locator: Locator,
    /// The process there is gone, and all that it sent has been received. Otherwise it may be reached in another way.
    pub has_ended: bool,
}

/// How thoroughly [`Transport::recv`] looks for a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// For spinning: look where user data arrives, at the rest only now and
    /// then. `None` means "nothing seen", so call again. Whatever arrives is
    /// found after a bounded number of calls.
    Hot,
    /// Before a wait that follows a success: only what was taken from the kernel
    /// already. Never a system call. `None` means that the descriptors are
    /// readable if there is more.
    Taken,
    /// For a wake-up: look everywhere. `None` means that nothing was queued
    /// at the moment of the call, so one may wait for the descriptors.
    All,
}

/// Where a received datagram came from and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RxMeta {
    /// The sender. May be invalid for user data, where asking the kernel would cost a tenth of a microsecond, unless
    /// [`Transport::name_sources`] was called.
    pub source: Locator,
    /// Where it was received: the group for multicast; for unicast the port,
    /// with an unspecified address where the transport does not know more.
    pub local: Locator,
    /// The flow that it arrived for. [`FlowId::DEFAULT`] unless it arrived at
    /// a flow's own port.
    pub flow: FlowId,
    /// It was sent to a multicast group.
    pub multicast: bool,
}

/// A received datagram, borrowed from the transport.
#[derive(Debug, Clone, Copy)]
pub struct RxFrame<'a> {
    bytes: &'a [u8],
    beside: Beside<'a>,
    /// Where it came from and how.
    pub meta: RxMeta,
}

impl<'a> RxFrame<'a> {
    /// A frame of these bytes; for those who implement [`Transport`].
    pub fn new(bytes: &'a [u8], meta: RxMeta) -> Self {
        Self { bytes, beside: Beside::Nothing, meta }
    }

    /// The same with a payload that goes with it.
    #[must_use]
    pub fn with_lent(self, lent: Option<&'a Lent>) -> Self {
        Self { beside: lent.map_or(Beside::Nothing, Beside::Payload), ..self }
    }

    /// The same, which can be held.
    #[must_use]
    pub fn with_frame(self, frame: Option<LentFrame<'a>>) -> Self {
        Self { beside: frame.map_or(Beside::Nothing, Beside::Frame), ..self }
    }

    /// What there is to hold beside it.
    pub fn beside(&self) -> Beside<'a> {
        self.beside
    }

    /// The payload that the datagram's DATA stands for, if that was lent. It is held until the next [`Transport::recv`]; a
    /// clone holds it longer.
    pub fn lent(&self) -> Option<&'a Lent> {
        self.beside.payload()
    }

    /// The datagram, for as long as the transport lends it.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl Deref for RxFrame<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// Carries datagrams. Non-blocking, single-threaded (`Send`, not `Sync`: the
/// caller brings the lock, if it needs one), and free of allocation in
/// [`loan`](Self::loan), [`commit`](Self::commit), [`flush`](Self::flush) and
/// [`recv`](Self::recv).
///
/// Sending is `loan`, fill, `commit`, and a `flush` when there is no more:
///
/// ```no_run
/// # fn send(t: &mut dyn takt_transport::Transport, to: takt_wire::Locator)
/// # -> Result<(), takt_transport::TransportError> {
/// let frame = t.loan()?;
/// frame[..5].copy_from_slice(b"hello");
/// t.commit(5, takt_transport::FlowId::DEFAULT, &[to])?;
/// t.flush()?;
/// # Ok(()) }
/// ```
///
/// Delivery is not promised: a datagram may be lost, arrive twice or out of
/// order. It arrives whole or not at all. A multicast datagram is delivered to
/// its own sender too, if that is a member of the group.
pub trait Transport: Send {
    /// A short name for people: `"udp"`.
    fn name(&self) -> &'static str;

    /// Whether this transport can send to `locator`.
    fn serves(&self, locator: &Locator) -> bool;

    /// Prepares to send to `locator`, which a participant on this host announces. False: it is to be reached by another
    /// transport. May allocate.
    fn reach(&mut self, locator: &Locator) -> bool {
        self.serves(locator)
    }

    /// A locator that was [reached](Self::reach) and is out of reach now, each told once. Cheap; what it tells is noticed by the
    /// other calls.
    fn poll_lost(&mut self) -> Option<Lost> {
        None
    }

    /// The network interfaces in use; empty for a transport without any.
    fn interfaces(&self) -> &[Interface];

    /// Where this transport can be reached, for discovery to announce.
    fn locators(&self) -> &Locators;

    /// Whether interfaces or addresses may have changed since the last [`refresh`](Self::refresh). Cheap; what it
    /// tells is noticed by [`recv`](Self::recv).
    fn may_have_moved(&self) -> bool {
        false
    }

    /// Follows the interfaces that have come, gone or changed: afterwards [`interfaces`](Self::interfaces),
    /// [`locators`](Self::locators) and [`descriptors`](Self::descriptors) may be others. Ports stay what they were.
    /// Allocates.
    fn refresh(&mut self) -> Result<(), TransportError> {
        Ok(())
    }

    /// Opens a flow. Also returns the unicast locators that reach it, to be
    /// announced for the endpoint that uses it; empty unless `own_port`.
    ///
    /// A transport may return the same [`FlowId`] for equal specs without
    /// `own_port` (and [`FlowId::DEFAULT`] for the default spec), so close a
    /// flow exactly as often as it was opened. Allocates.
    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError>;

    /// Closes a flow, sending first what is still queued for it. Closing
    /// [`FlowId::DEFAULT`] does nothing; closing an unknown flow is an error.
    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError>;

    /// Whether a [hot](Scan::Hot) scan that finds nothing is a look at memory, a small part of a system call.
    fn scans_memory(&self) -> bool {
        false
    }

    /// The largest datagram that this transport can carry at all, in bytes.
    /// What a path carries without fragmentation is up to the interfaces' MTU.
    fn max_message_len(&self) -> usize;

    /// Lends an outgoing frame with room for [`max_message_len`](Self::max_message_len)
    /// bytes, of unspecified content. A second loan without a commit in
    /// between lends the same frame, its content kept.
    fn loan(&mut self) -> Result<&mut [u8], TransportError>;

    /// Queues the first `len` bytes of the loaned frame for all `destinations`.
    /// They leave at [`flush`](Self::flush), or earlier when the queue is full.
    /// A destination that cannot be reached, or that this transport does not
    /// serve, is counted and does not keep the others from being reached.
    ///
    /// Errors: `len` beyond the frame, no loaned frame, an unknown flow.
    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError>;

    /// As [`commit`](Self::commit), of a datagram that goes on with `rest` behind the first `len` bytes of the frame: all of it
    /// fits into the frame. What can send both from where they are does so at once, behind what was queued; others copy.
    ///
    /// Errors: as of `commit`.
    fn commit_gathered(
        &mut self,
        len: usize,
        rest: &[u8],
        flow: FlowId,
        destinations: &[Locator],
    ) -> Result<(), TransportError> {
        let whole = len.saturating_add(rest.len());
        match self.loan()?.get_mut(len..whole) {
            Some(place) => place.copy_from_slice(rest),
            None => return Err(TransportError::new("commit", whole, std::io::ErrorKind::InvalidInput.into())),
        }
        self.commit(whole, flow, destinations)
    }

    /// Whether datagrams to a locator that is [served](Self::serves) go to this process: then an
    /// [object](takt_wire::LentMemory::object) can be lent with them.
    fn stays_in_process(&self, locator: &Locator) -> bool {
        let _ = locator;
        false
    }

    /// Memory for a payload of `len` bytes that can be [lent](Self::commit_lent); `None` where nothing is lent, or none is
    /// free now.
    fn lend(&mut self, len: usize) -> Option<Loan> {
        let _ = len;
        None
    }

    /// As [`commit`](Self::commit), and a payload goes along that [`lend`](Self::lend) gave the memory for, or an object. It stays
    /// where it is; who receives it holds it. Of an object those who are not in this process get a copy of its bytes. The datagram has one DATA, with the payload's first octets
    /// ([`takt_wire::LENT_PREFIX_LEN`]).
    ///
    /// Errors: as of `commit`, and for a payload of another transport.
    fn commit_lent(
        &mut self,
        len: usize,
        flow: FlowId,
        destinations: &[Locator],
        lent: &Lent,
    ) -> Result<(), TransportError> {
        let _ = (len, flow, destinations, lent);
        Err(TransportError::new("commit", "a lent payload", std::io::ErrorKind::Unsupported.into()))
    }

    /// Sends everything queued. What cannot be sent now is counted and lost;
    /// this never blocks.
    fn flush(&mut self) -> Result<(), TransportError>;

    /// The next received datagram, if there is one; see [`Scan`]. Never blocks. Of a flow that [is urgent](Self::recv_urgent)
    /// before others.
    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError>;

    /// The next datagram of a flow with a port of its own and a `transport_priority` above `above`, which is 0 or more: of the most
    /// urgent such flow that has one. Never blocks, and never takes another datagram. Asks each such flow, so that nothing that is
    /// less urgent is received between an urgent arrival and the end of the next call.
    ///
    /// `None` too from a transport that hands out what arrives in its order; [`recv`](Self::recv) finds all that there is.
    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        let _ = above;
        Ok(None)
    }

    /// As [`recv`](Self::recv), without the datagrams that [`recv_urgent`](Self::recv_urgent) hands out. An executor calls it for a job
    /// of normal priority, so that an urgent datagram does not take that job's turn. `None` does not mean that it may sleep: what it took
    /// from the interface may hold urgent datagrams.
    fn recv_common(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.recv(scan)
    }

    /// Descriptors that are readable (`POLLIN`) when [`recv`](Self::recv) has
    /// something to find. Empty means: poll me. May change with
    /// [`open_flow`](Self::open_flow) and [`close_flow`](Self::close_flow).
    ///
    /// Datagrams that the transport has already taken from the kernel do not
    /// make a descriptor readable: wait only after `recv` with [`Scan::Taken`] or
    /// [`Scan::All`] said `None`.
    fn descriptors(&self) -> &[RawFd];

    /// Counters since opening.
    fn stats(&self) -> TransportStats;

    /// From now on, tells the source of user data too.
    fn name_sources(&mut self) {}

    /// What works worse than asked, collected since opening.
    fn warnings(&self) -> &[Warning] {
        &[]
    }

    /// The announced locator on whose behalf a datagram of `flow` to `destination` leaves; its
    /// source port is the same only for a flow with a port of its own. For captures and traces, not for the data path.
    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        let _ = flow;
        let own = &self.locators().default_unicast;
        own.iter().find(|l| l.kind == destination.kind).copied()
    }
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn serves(&self, locator: &Locator) -> bool {
        (**self).serves(locator)
    }

    fn reach(&mut self, locator: &Locator) -> bool {
        (**self).reach(locator)
    }

    fn poll_lost(&mut self) -> Option<Lost> {
        (**self).poll_lost()
    }

    fn interfaces(&self) -> &[Interface] {
        (**self).interfaces()
    }

    fn locators(&self) -> &Locators {
        (**self).locators()
    }

    fn may_have_moved(&self) -> bool {
        (**self).may_have_moved()
    }

    fn refresh(&mut self) -> Result<(), TransportError> {
        (**self).refresh()
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        (**self).open_flow(spec)
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        (**self).close_flow(flow)
    }

    fn scans_memory(&self) -> bool {
        (**self).scans_memory()
    }

    fn max_message_len(&self) -> usize {
        (**self).max_message_len()
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        (**self).loan()
    }

    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        (**self).commit(len, flow, destinations)
    }

    fn commit_gathered(
        &mut self,
        len: usize,
        rest: &[u8],
        flow: FlowId,
        destinations: &[Locator],
    ) -> Result<(), TransportError> {
        (**self).commit_gathered(len, rest, flow, destinations)
    }

    fn stays_in_process(&self, locator: &Locator) -> bool {
        (**self).stays_in_process(locator)
    }

    fn lend(&mut self, len: usize) -> Option<Loan> {
        (**self).lend(len)
    }

    fn commit_lent(
        &mut self,
        len: usize,
        flow: FlowId,
        destinations: &[Locator],
        lent: &Lent,
    ) -> Result<(), TransportError> {
        (**self).commit_lent(len, flow, destinations, lent)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        (**self).flush()
    }

    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        (**self).recv(scan)
    }

    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        (**self).recv_urgent(above)
    }

    fn recv_common(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        (**self).recv_common(scan)
    }

    fn descriptors(&self) -> &[RawFd] {
        (**self).descriptors()
    }

    fn stats(&self) -> TransportStats {
        (**self).stats()
    }

    fn name_sources(&mut self) {
        (**self).name_sources();
    }

    fn warnings(&self) -> &[Warning] {
        (**self).warnings()
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        (**self).source_of(flow, destination)
    }
}
