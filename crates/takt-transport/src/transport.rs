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

/// Locator that is no longer reachable; see [`Transport::poll_lost`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Lost locator; its port is meaningless.
    pub locator: Locator,
    /// Whether the process has ended, and all its datagrams have been received. If not, another
    /// transport may still reach it.
    pub has_ended: bool,
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
}

/// Payload of a datagram that is not, or not only, in the frame.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// The whole datagram is in the frame.
    InFrame,
    /// The datagram continues with these bytes. Both together fit into the frame. Transports
    /// that can send both from where they are do so at once, behind the queued datagrams; others
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
        Self { len, flow, destinations, payload: Payload::InFrame }
    }

    /// Adds a payload outside of the frame.
    #[inline]
    #[must_use]
    pub fn with(self, payload: Payload<'a>) -> Self {
        Self { payload, ..self }
    }

    /// Copies a gathered payload into the frame, behind the first part. Returns the length of the
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
    /// microsecond, unless [`Transport::report_sources`] was called.
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
    /// Returns a short name for people: `"udp"`.
    fn name(&self) -> &'static str;

    /// Reports whether this transport can send to `locator`.
    fn serves(&self, locator: &Locator) -> bool;

    /// Prepares to send to `locator`, which a participant on this host announces. Returns false if
    /// another transport must be used. May allocate.
    fn reach(&mut self, locator: &Locator) -> bool {
        self.serves(locator)
    }

    /// Returns a locator that was [reached](Self::reach) and is not reachable any more; each is
    /// returned once. Cheap, since the other calls detect the loss.
    fn poll_lost(&mut self) -> Option<Lost> {
        None
    }

    /// Returns the network interfaces in use; empty for a transport without any.
    fn interfaces(&self) -> &[Interface];

    /// Returns the locators that discovery announces.
    fn locators(&self) -> &Locators;

    /// Reports whether interfaces or addresses may have changed since the last
    /// [`refresh`](Self::refresh). Cheap, since [`recv`](Self::recv) detects the change.
    fn may_have_moved(&self) -> bool {
        false
    }

    /// Applies changes of the interfaces: afterwards [`interfaces`](Self::interfaces),
    /// [`locators`](Self::locators) and [`descriptors`](Self::descriptors) may differ. Ports stay
    /// the same. Allocates.
    fn refresh(&mut self) -> Result<(), TransportError> {
        Ok(())
    }

    /// Opens a flow. Also returns the unicast locators of the flow, to be announced for its
    /// endpoint; empty unless `own_port`.
    ///
    /// A transport may return the same [`FlowId`] for equal specs without `own_port` (and
    /// [`FlowId::DEFAULT`] for the default spec), so close a flow exactly as often as it was
    /// opened. Allocates.
    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError>;

    /// Closes a flow, after sending its queued datagrams. Closing [`FlowId::DEFAULT`] does nothing;
    /// closing an unknown flow is an error.
    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError>;

    /// Reports whether a [hot](Scan::Hot) scan that finds nothing only reads memory, which costs a
    /// small part of a system call.
    fn scans_memory(&self) -> bool {
        false
    }

    /// Returns the maximum size of a datagram of this transport, in bytes. The MTU of the
    /// interfaces determines the size without fragmentation.
    fn max_message_len(&self) -> usize;

    /// Loans an outgoing frame with room for [`max_message_len`](Self::max_message_len) bytes, of
    /// unspecified content. A second loan without a commit in between returns the same frame with
    /// its content.
    fn loan(&mut self) -> Result<&mut [u8], TransportError>;

    /// Queues the loaned frame as a datagram for all destinations. They are sent at
    /// [`flush`](Self::flush), or earlier when the queue is full. A destination that is unreachable
    /// or not served is counted; the others are still reached.
    ///
    /// # Errors
    /// The datagram exceeds the frame, no frame is loaned, the flow is unknown, or the payload is a
    /// loan that is not of this transport.
    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError>;

    /// Reports whether datagrams to a [served](Self::serves) locator stay in this process: then an
    /// [object](takt_wire::SharedPayloadMemory::object) can be loaned with them.
    fn stays_in_process(&self, locator: &Locator) -> bool {
        let _ = locator;
        false
    }

    /// Returns memory for a payload of `len` bytes that can be [sent as a loan](Payload::Loaned);
    /// `None` if the transport offers no loans, or none is free now.
    fn loan_payload(&mut self, len: usize) -> Option<Loan> {
        let _ = len;
        None
    }

    /// Sends all queued datagrams. Those that cannot be sent now are counted and lost. Never
    /// blocks.
    fn flush(&mut self) -> Result<(), TransportError>;

    /// Returns the next received datagram, if there is one; see [`Scan`]. Never blocks. Datagrams
    /// of [urgent](Self::recv_urgent) flows come first.
    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError>;

    /// Returns the next datagram of a flow with its own port and a `transport_priority` above
    /// `above`, which is 0 or more: that of the most urgent such flow. Never blocks, and never
    /// takes another datagram. Checks each such flow, so that no less urgent datagram is received
    /// between an urgent arrival and the end of the next call.
    ///
    /// Also returns `None` for a transport that returns datagrams in arrival order;
    /// [`recv`](Self::recv) finds all of them.
    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        let _ = above;
        Ok(None)
    }

    /// Returns like [`recv`](Self::recv) the next datagram, except those that
    /// [`recv_urgent`](Self::recv_urgent) returns. An executor calls it for a job of normal
    /// priority, so that an urgent datagram does not use up that job. After `None` the caller must
    /// not sleep yet: the transport may have taken urgent datagrams from the interface.
    fn recv_not_urgent(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.recv(scan)
    }

    /// Returns the descriptors that are readable (`POLLIN`) when [`recv`](Self::recv) can find a
    /// datagram. Empty if the transport must be polled. May change with
    /// [`open_flow`](Self::open_flow) and [`close_flow`](Self::close_flow).
    ///
    /// Datagrams that the transport has already taken from the kernel do not make a descriptor
    /// readable: wait only after `recv` with [`Scan::Taken`] or [`Scan::All`] returned `None`.
    fn descriptors(&self) -> &[RawFd];

    /// Returns the counters since opening.
    fn stats(&self) -> TransportStats;

    /// Reports the source of user data too, from now on.
    fn report_sources(&mut self) {}

    /// Returns the warnings since opening.
    fn warnings(&self) -> &[Warning] {
        &[]
    }

    /// Returns the announced locator that a datagram of `flow` to `destination` is sent from; its
    /// source port is correct only for a flow with its own port. For captures and traces, not for
    /// the data path.
    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        let _ = flow;
        let own = &self.locators().default_unicast;
        own.iter().find(|l| l.kind == destination.kind).copied()
    }
}
