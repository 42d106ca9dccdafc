//! [`Transport`] trait and the types of its methods.

use std::io::ErrorKind;
use std::ops::Deref;
use std::os::fd::RawFd;

use takt_wire::{Locator, SharedBuffer, SharedFrame, SharedPayload};

use crate::shm::Loan;
use crate::{Interface, TransportError, TransportStats, Warning};

/// Identifies a flow of a transport, which determines the source port and priority of outgoing
/// datagrams. See [`Transport::open_flow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u16);

impl FlowId {
    /// Flow that every transport has from the start: priority 0, from any source port.
    pub const DEFAULT: FlowId = FlowId(0);

    /// Returns an error for a flow other than the default one, for transports that open none.
    pub fn check_default(self) -> Result<(), TransportError> {
        if self == Self::DEFAULT {
            return Ok(());
        }
        Err(TransportError::new("use", format_args!("flow {}", self.0), ErrorKind::NotFound.into()))
    }
}

/// Requested properties of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowSpec {
    /// Whether the flow gets its own port, which it sends from and receives at, and which is
    /// announced for the endpoint. It identifies the flow, so that a switch can distinguish topics.
    pub own_port: bool,
    /// `value` of TRANSPORT_PRIORITY (DDS 1.4 §2.2.3.15); higher is more urgent.
    pub transport_priority: i32,
}

/// Locators of a transport, which discovery announces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locators {
    /// Discovery traffic to this participant alone.
    pub metatraffic_unicast: Vec<Locator>,
    /// Discovery traffic to all participants; also the destination of announcements.
    pub metatraffic_multicast: Vec<Locator>,
    /// User data to this participant alone.
    pub default_unicast: Vec<Locator>,
    /// User data to all participants.
    pub default_multicast: Vec<Locator>,
}

/// Locator that is no longer reachable; see [`TransportEvent::Lost`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Lost locator; its port is meaningless.
    pub locator: Locator,
    /// Whether the process has ended, and all its datagrams have been received. If not, another
    /// transport may still reach it.
    pub has_ended: bool,
}

/// Properties of a transport that stay the same while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Short name for people: `"udp"`.
    pub name: &'static str,
    /// Maximum size of a datagram, in bytes, at least
    /// [`MESSAGE_LEN_MIN`](crate::MESSAGE_LEN_MIN). The MTU of the interfaces determines the size
    /// without fragmentation.
    pub max_message_len: usize,
    /// Whether a [hot](Scan::Hot) scan that finds nothing only reads memory, which costs a small
    /// part of a system call.
    pub scans_memory: bool,
}

/// State of a transport.
#[derive(Debug, Clone, Copy)]
pub struct Status<'a> {
    /// Network interfaces in use; empty for a transport without any.
    pub interfaces: &'a [Interface],
    /// Locators that discovery announces.
    pub locators: &'a Locators,
    /// Descriptors that are readable (`POLLIN`) when [`Transport::recv`] can find a datagram. Empty
    /// if the transport must be polled. May change with [`Transport::open_flow`],
    /// [`Transport::close_flow`] and [`Control::Refresh`].
    ///
    /// Datagrams that the transport has already taken from the kernel do not make a descriptor
    /// readable: wait only after [`Receive::Any`] with [`Scan::Taken`] or [`Scan::All`] returned
    /// `None`.
    pub descriptors: &'a [RawFd],
    /// Warnings since opening.
    pub warnings: &'a [Warning],
    /// Counters since opening.
    pub stats: TransportStats,
}

impl<'a> Status<'a> {
    /// Makes the state of a transport without interfaces, descriptors and warnings.
    pub fn new(locators: &'a Locators, stats: TransportStats) -> Self {
        Self { interfaces: &[], locators, descriptors: &[], warnings: &[], stats }
    }
}

/// Whether and how a transport sends to a locator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Not at all.
    Unserved,
    /// The transport sends to it.
    Served,
    /// The transport sends to it, and datagrams stay in this process: an
    /// [object](takt_wire::SharedPayloadMemory::object) can be loaned with them.
    InProcess,
}

impl Reach {
    /// Reports whether the transport can send to the locator.
    #[inline]
    pub fn is_served(self) -> bool {
        self != Self::Unserved
    }

    /// Returns the result of [`Control::Connect`] for a transport without connections.
    ///
    /// # Errors
    /// The locator is not served.
    pub fn or_unserved(self, to: &Locator) -> Result<(), TransportError> {
        if self.is_served() {
            return Ok(());
        }
        Err(TransportError::new("connect to", to, ErrorKind::AddrNotAvailable.into()))
    }
}

impl From<bool> for Reach {
    /// Converts whether a locator is served.
    #[inline]
    fn from(is_served: bool) -> Self {
        if is_served { Self::Served } else { Self::Unserved }
    }
}

/// Event of a transport; see [`Transport::poll_event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportEvent {
    /// A locator that was [connected](Control::Connect) is not reachable any more.
    Lost(Lost),
    /// Interfaces or addresses may have changed since the last [`Control::Refresh`], which is due.
    /// Returned once before each refresh.
    InterfacesChanged,
    /// The queues of the network interfaces hold as many fragments of this flow as they may.
    /// Further fragments should be committed after [`Unblocked`](Self::Unblocked); other datagrams
    /// are not affected.
    Blocked(FlowId),
    /// The queues have room for fragments of a flow that was [`Blocked`](Self::Blocked).
    Unblocked(FlowId),
}

/// Request to a transport; see [`Transport::control`].
#[derive(Debug, Clone, Copy)]
pub enum Control<'a> {
    /// Prepare to send to this locator, which a participant on this host announces. Fails if
    /// another transport must be used.
    Connect(&'a Locator),
    /// Apply changes of the interfaces: afterwards [`Status::interfaces`], [`Status::locators`] and
    /// [`Status::descriptors`] may differ. Ports stay the same.
    Refresh,
    /// Report the source of user data too, from now on.
    ReportSources,
}

/// Request for the next received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receive {
    /// Any datagram. Those of [urgent](Self::Urgent) flows come first.
    Any(Scan),
    /// A datagram of a flow with its own port and a `transport_priority` above `above`, which is 0
    /// or more: that of the most urgent such flow. No other datagram is taken. Each such flow is
    /// checked, so that no less urgent datagram is received between an urgent arrival and the end
    /// of the next call.
    ///
    /// Also finds nothing at a transport that returns datagrams in arrival order;
    /// [`Any`](Self::Any) finds all of them.
    Urgent {
        /// Priority that the flow exceeds.
        above: i32,
    },
    /// Any datagram except those of [urgent](Self::Urgent) flows. An executor requests it for a job
    /// of normal priority, so that an urgent datagram does not use up that job. After `None` the
    /// caller must not sleep yet: the transport may have taken urgent datagrams from the interface.
    NotUrgent(Scan),
}

/// Thoroughness with which [`Transport::recv`] looks for a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// For spinning: checks the ports of user data, and the others only occasionally. `None` means
    /// that nothing was found, so call again. Every arriving datagram is found after a bounded
    /// number of calls.
    Hot,
    /// Before a wait that follows a success: checks only datagrams already taken from the kernel.
    /// Never makes a system call. `None` means that the descriptors are readable if there is more.
    Taken,
    /// For a wake-up: checks everything. `None` means that no datagram was queued at the moment of
    /// the call, so the caller can wait for the descriptors.
    All,
}

/// Datagram to be queued: the first `len` bytes of the loaned frame, then the payload. See
/// [`Transport::commit`].
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// Number of bytes of the datagram that are in the frame.
    pub len: usize,
    /// Flow that carries the datagram.
    pub flow: FlowId,
    /// Destinations, each of which gets the whole datagram. None drops the frame.
    pub destinations: &'a [Locator],
    /// Payload outside of the frame.
    pub payload: Payload<'a>,
    /// Whether the datagram is a fragment of a large sample. A transport may limit the fragments in
    /// the queues of network interfaces by [`TransportEvent::Blocked`], so that other datagrams
    /// wait behind few of them. The caller flushes at least every [`FRAGMENT_OCTETS_PER_FLUSH`]
    /// octets of fragments, and then handles the events.
    pub is_fragment: bool,
}

/// Octets of fragments after which the sender flushes and checks whether their flow is
/// [blocked](TransportEvent::Blocked).
pub const FRAGMENT_OCTETS_PER_FLUSH: usize = 16 << 10;

/// Payload of a datagram that is not, or not only, in the frame.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// The whole datagram is in the frame.
    InFrame,
    /// The datagram continues with these bytes. Both together fit into the frame. Transports
    /// that can send both from where they are do so at once, after the queued datagrams; others
    /// [assemble](Commit::assemble) them.
    Gathered(&'a [u8]),
    /// Receivers get the payload without a copy, and hold it. Its memory came from
    /// [`Transport::loan_payload`], or it is an [object](takt_wire::SharedPayloadMemory::object),
    /// of which receivers in other processes get a copy of the bytes. The datagram has one DATA,
    /// with the first octets of the payload ([`takt_wire::PAYLOAD_PREFIX_LEN`]).
    Loaned(&'a SharedPayload),
}

impl<'a> Commit<'a> {
    /// Commits the first `len` bytes of the frame.
    #[inline]
    pub fn new(len: usize, flow: FlowId, destinations: &'a [Locator]) -> Self {
        Self { len, flow, destinations, payload: Payload::InFrame, is_fragment: false }
    }

    /// Adds a payload outside of the frame.
    #[inline]
    #[must_use]
    pub fn with(self, payload: Payload<'a>) -> Self {
        Self { payload, ..self }
    }

    /// Copies a gathered payload into the frame, after the first part. Returns the length of the
    /// datagram. For transports that send from the frame only.
    ///
    /// # Errors
    /// The datagram exceeds the frame, or its payload is a loan.
    #[inline]
    pub fn assemble(&self, frame: &mut [u8]) -> Result<usize, TransportError> {
        match self.payload {
            Payload::InFrame if self.len <= frame.len() => Ok(self.len),
            Payload::InFrame => Err(refused("a datagram that exceeds the frame", ErrorKind::InvalidInput)),
            Payload::Gathered(rest) => {
                let len = self.len.saturating_add(rest.len());
                let room = frame.get_mut(self.len..len);
                let exceeds = || refused("a datagram that exceeds the frame", ErrorKind::InvalidInput);
                room.ok_or_else(exceeds)?.copy_from_slice(rest);
                Ok(len)
            }
            Payload::Loaned(_) => Err(refused("a loaned payload", ErrorKind::Unsupported)),
        }
    }
}

#[cold]
fn refused(what: &str, kind: ErrorKind) -> TransportError {
    TransportError::new("commit", what, kind.into())
}

/// Metadata of a received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RxMeta {
    /// Sender. May be invalid for user data, where querying the kernel would cost a tenth of a
    /// microsecond, unless [`Control::ReportSources`] was requested.
    pub source: Locator,
    /// Receiving locator: the group for multicast; for unicast the port, with an unspecified
    /// address where the transport does not know more.
    pub local: Locator,
    /// Flow that received it; [`FlowId::DEFAULT`] unless it arrived at a flow's own port.
    pub flow: FlowId,
    /// Whether it was sent to a multicast group.
    pub multicast: bool,
}

/// A received datagram, borrowed from the transport.
#[derive(Debug, Clone, Copy)]
pub struct RxFrame<'a> {
    bytes: &'a [u8],
    shared: SharedBuffer<'a>,
    /// Metadata of the datagram.
    pub meta: RxMeta,
}

impl<'a> RxFrame<'a> {
    /// Makes a frame of these bytes, for implementations of [`Transport`].
    pub fn new(bytes: &'a [u8], meta: RxMeta) -> Self {
        Self { bytes, shared: SharedBuffer::Nothing, meta }
    }

    /// Adds a loaned payload that came with the datagram.
    #[must_use]
    pub fn with_loan(self, payload: Option<&'a SharedPayload>) -> Self {
        Self { shared: payload.map_or(SharedBuffer::Nothing, SharedBuffer::Payload), ..self }
    }

    /// Adds the loan of the frame itself.
    #[must_use]
    pub fn with_frame(self, frame: Option<SharedFrame<'a>>) -> Self {
        Self { shared: frame.map_or(SharedBuffer::Nothing, SharedBuffer::Frame), ..self }
    }

    /// Returns the payload or frame that can be held.
    pub fn shared(&self) -> SharedBuffer<'a> {
        self.shared
    }

    /// Returns the loaned payload that the DATA of the datagram refers to, if any. It is held until
    /// the next [`Transport::recv`]; a clone holds it longer.
    pub fn loan(&self) -> Option<&'a SharedPayload> {
        self.shared.payload()
    }

    /// Returns the datagram.
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

/// Sends and receives datagrams. Non-blocking, single-threaded (`Send`, not `Sync`: the caller
/// provides a lock, if it needs one), and free of allocation in [`loan`](Self::loan),
/// [`commit`](Self::commit), [`flush`](Self::flush) and [`recv`](Self::recv).
///
/// Sending is `loan`, fill, `commit`, and a `flush` after the last datagram:
///
/// ```no_run
/// # use takt_transport::{Commit, FlowId, Transport, TransportError};
/// # fn send(t: &mut dyn Transport, to: takt_wire::Locator) -> Result<(), TransportError> {
/// let frame = t.loan()?;
/// frame[..5].copy_from_slice(b"hello");
/// t.commit(Commit::new(5, FlowId::DEFAULT, &[to]))?;
/// t.flush()?;
/// # Ok(()) }
/// ```
///
/// Delivery is not guaranteed: a datagram may be lost, duplicated or reordered. It arrives whole or
/// not at all. A multicast datagram is also delivered to its own sender, if that is a member of the
/// group.
pub trait Transport: Send {
    /// Returns the properties that stay the same while the transport is open.
    fn capabilities(&self) -> Capabilities;

    /// Returns the current state. May make system calls: for setup and diagnosis, not for the data
    /// path.
    fn status(&self) -> Status<'_>;

    /// Returns whether and how datagrams get to a locator.
    fn reach(&self, to: &Locator) -> Reach;

    /// Loans an outgoing frame with room for [`max_message_len`](Capabilities::max_message_len)
    /// bytes, of unspecified content. A second loan without a commit in between returns the same
    /// frame with its content.
    fn loan(&mut self) -> Result<&mut [u8], TransportError>;

    /// Queues the loaned frame as a datagram for all destinations. They are sent at
    /// [`flush`](Self::flush), or earlier when the queue is full. A destination that is unreachable
    /// or not served is counted; the others are still reached.
    ///
    /// # Errors
    /// The datagram exceeds the frame, no frame is loaned, the flow is unknown, or the payload is a
    /// loan that is not of this transport.
    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError>;

    /// Sends all queued datagrams. Those that cannot be sent now are counted and lost. Never
    /// blocks.
    fn flush(&mut self) -> Result<(), TransportError>;

    /// Returns the next received datagram of the requested kind, if there is one. Never blocks.
    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError>;

    /// Returns memory for a payload of `len` bytes that can be [sent as a loan](Payload::Loaned);
    /// `None` if the transport offers no loans, or none is free now.
    fn loan_payload(&mut self, len: usize) -> Option<Loan> {
        let _ = len;
        None
    }

    /// Opens a flow. Also returns the unicast locators of the flow, to be announced for its
    /// endpoint; empty unless `own_port`. By default all flows are [`FlowId::DEFAULT`].
    ///
    /// A transport may return the same [`FlowId`] for equal specs without `own_port` (and
    /// [`FlowId::DEFAULT`] for the default spec), so close a flow exactly as often as it was
    /// opened. Allocates.
    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let _ = spec;
        Ok((FlowId::DEFAULT, Vec::new()))
    }

    /// Closes a flow, after sending its queued datagrams. Closing [`FlowId::DEFAULT`] does nothing;
    /// closing an unknown flow is an error.
    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.flush()?;
        flow.check_default()
    }

    /// Returns the next event, each once. Cheap, since [`recv`](Self::recv) and
    /// [`commit`](Self::commit) detect the causes.
    fn poll_event(&mut self) -> Option<TransportEvent> {
        None
    }

    /// Carries out a request that is not part of the data path. May allocate.
    ///
    /// # Errors
    /// The request failed. A transport ignores requests that do not concern it, but
    /// [`Control::Connect`] fails for a locator that is not served.
    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        match request {
            Control::Connect(to) => self.reach(to).or_unserved(to),
            Control::Refresh | Control::ReportSources => Ok(()),
        }
    }

    /// Returns the announced locator that a datagram of `flow` to `destination` is sent from; its
    /// source port is correct only for a flow with its own port. For captures and traces, not for
    /// the data path.
    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        let _ = flow;
        let own = &self.status().locators.default_unicast;
        own.iter().find(|l| l.kind == destination.kind).copied()
    }
}
