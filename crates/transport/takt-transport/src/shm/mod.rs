//! Shared memory transport between the processes of one user on one host.
//!
//! # Connections
//! Each participant listens at a Unix socket with a random name (64 bits) in the abstract
//! namespace, and announces the name in its locators. A sender that first sends to a participant
//! opens a *connection*: an anonymous file of memory with two rings of records ([`ring`]), which
//! one process writes and one reads. The first message of a connection carries its descriptor
//! ([`hello`]). From then on, a datagram is written into a ring and read out of it without the
//! kernel. A reader that is about to sleep marks the ring. Only then does the next writer wake it:
//! with a message of one byte on the connection, which makes the reader's descriptor readable. A
//! spinning reader receives no wake-ups.
//!
//! The urgent ring of a connection is for flows with their own port and a priority above 0, which
//! their ports identify ([`ports::Band`]); the non-urgent ring is for the others. The urgent ring
//! is read first, and the most urgent of its next records is read before the rest. Datagrams that
//! are less urgent therefore neither precede urgent ones nor take their space.
//!
//! A connection has one writer and one reader, so there are as many as communicating pairs, and no
//! process interferes with another pair. There is no daemon, no lock and no file in a file system.
//!
//! # Process failure
//! A process that is killed at any instruction leaves only whole records in its rings ([`ring`]).
//! The kernel closes its connections; the peers detect this, read the remaining records, and unmap.
//! A reader that merely closes a connection first sends [`CLOSE`](hello::CLOSE) on it. An end
//! without it is therefore the end of the process, and [`Transport::poll_event`] reports which it
//! was. No other process can forge it: the connection was made to the name that the participant
//! itself announces and owns, and the kernel has confirmed its user. The kernel frees socket names
//! and memory after the last process that has them (including a child forked without `exec`). There
//! is nothing to clean up, so nothing can leak.
//!
//! # Malicious peers
//! The kernel keeps other users out: both ends verify the user of the peer (`SO_PEERCRED`) before
//! they share memory. A process of the same user can harm this one anyway. Still, its writes to
//! shared memory or a socket can neither crash this process nor make it read out of bounds. Memory
//! is sealed against shrinking before it is mapped, so no access faults ([`mapping`]). Words are
//! atomic, positions and lengths are checked at each use, and datagrams are *copied* out before
//! they are parsed. No call waits for the peer.
//!
//! # Unreachable peers
//! A locator contains a tag of host, boot, network namespace and user ([`host`]).
//! [`Transport::reach`] returns [`Reach::Unserved`] for any other tag, and for participants that
//! are known to be gone. Containers with their own network namespace, other users and other hosts
//! are thus excluded before a datagram is sent. A full ring loses datagrams as a full socket buffer
//! does, counted as `would_block`.
//!
//! # Costs
//! `commit` copies the datagram into a ring of each destination, and `recv` copies it out. Neither
//! makes a system call, nor does `flush`, unless a reader sleeps. `recv` with [`Scan::All`] and no
//! datagram makes one system call. A participant without peers on its host has three descriptors
//! and no memory that others can map. A connection takes 36 MiB of address space and a descriptor
//! on both sides. If the reader keeps up, 32 KiB of each used ring become resident. All connections
//! of a process use at most a quarter of its descriptors. Needs Linux 5.14.
//!
//! Payloads can stay where their sender wrote them, in its [`segment`], on loan to its readers
//! ([`remote_segment`]). Between participants of one process, samples need not be serialized at all
//! ([`handover`]). A segment takes 256 MiB of address space, of which concurrent loans become
//! resident, and a descriptor. It is created with the first connection.
//!
//! Deliberately not here: multicast (a datagram goes to the ring of each reader).

mod config;
mod descriptors;
mod handover;
mod hello;
mod host;
mod incoming;
mod mapping;
mod outgoing;
mod ports;
mod remote_segment;
mod ring;
mod segment;
mod syscall;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use takt_wire::{Locator, Piece, SharedPayload};

pub use config::ShmConfig;
use host::Host;
use incoming::{Arrival, Incoming, LISTENER, TOKENS};
use mapping::Mapping;
use outgoing::{OUTGOING, Outgoing};
use ports::{HAS_LOAN, METATRAFFIC, Ports, USER};
use ring::RECORD_LEN_MAX;
pub use segment::Loan;
pub(crate) use syscall::{own_user, peer};

use crate::readiness::Waker;
use crate::udp::syscall::{BATCH, epoll, epoll_add, epoll_ready};
use crate::urgency_buffer::URGENT_IN_ROW_MAX;
use crate::{
    Capabilities, Commit, Control, FlowId, FlowSpec, Locators, Lost, Payload, Reach, Receive, RxFrame, RxMeta, Scan,
    Status, Transport, TransportError, TransportEvent, TransportStats,
};

/// Number of empty hot scans between two polls of the connections, which are system calls.
const SCANS_PER_POLL: u32 = 1024;

/// Maximum number of attempts to find a free name.
const NAMES_TRIED: usize = 8;

/// Maximum number of datagrams to closed ports that one call skips.
const CLOSED_PORT_SKIPS_MAX: usize = 64;

/// Maximum number of attempts of one call to drain the rings before sleep, while others keep
/// sending to closed ports.
const ATTEMPTS_TO_SLEEP: usize = 16;

/// Epoll token of [`ShmTransport::pending_waker`].
const PENDING_TOKEN: u64 = TOKENS - 1;

/// Shared memory transport of a participant. See the [module](self).
#[derive(Debug)]
pub struct ShmTransport {
    host: Host,
    name: u64,
    locators: Locators,
    epoll: OwnedFd,
    descriptors: [RawFd; 1],
    incoming: Incoming,
    outgoing: Outgoing,
    ports: Ports,
    frame: Vec<u8>,
    is_loaned: bool,
    /// Loan that arrived with the last datagram.
    loan: Option<SharedPayload>,
    /// Makes the descriptor readable when a call leaves datagrams in the rings.
    pending_waker: Waker,
    /// Hot scans since the last poll of the connections.
    scans: u32,
    /// Datagrams that [`recv`](Transport::recv) returned since the last one that was not urgent.
    urgent_in_row: u32,
    stats: TransportStats,
}

impl ShmTransport {
    /// Opens the listening socket. Allocates; later only for connections, for the first connection
    /// or loan, and for the first loan of a size.
    ///
    /// # Errors
    /// The configuration is invalid ([`ShmConfig::check`]), the kernel is too old, or a sandbox
    /// refuses; peers must then be reached by other transports.
    pub fn open(config: &ShmConfig) -> Result<Self, TransportError> {
        let failed = |op: &'static str| move |source| TransportError::new(op, "shared memory", source);
        let checked = config.check().map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what));
        checked.map_err(failed("configure"))?;
        let (name, listener) = listen().map_err(failed("listen for"))?;
        Mapping::probe().map_err(failed("create a file of"))?;
        Mapping::probe_address_space(config.address_space()).map_err(failed("reserve"))?;
        let host = Host::query(&listener).map_err(failed("identify the host for"))?;
        let epoll = epoll().map_err(failed("create an epoll instance for"))?;
        epoll_add(epoll.as_fd(), listener.as_fd(), LISTENER).map_err(failed("watch"))?;
        let again = Waker::new().map_err(failed("create an eventfd for"))?;
        epoll_add(epoll.as_fd(), again.as_fd(), PENDING_TOKEN).map_err(failed("watch"))?;
        let locators = Locators {
            metatraffic_unicast: vec![host.locator(name, METATRAFFIC)],
            default_unicast: vec![host.locator(name, USER)],
            ..Locators::default()
        };
        Ok(Self {
            host,
            name,
            locators,
            descriptors: [epoll.as_raw_fd()],
            epoll,
            incoming: Incoming::new(host, name, listener, config.connections_max),
            outgoing: Outgoing::new(host, name, config),
            ports: Ports::default(),
            frame: vec![0; RECORD_LEN_MAX],
            is_loaned: false,
            loan: None,
            pending_waker: again,
            scans: 0,
            urgent_in_row: 0,
            stats: TransportStats::default(),
        })
    }

    /// Handles the connections that are ready. Bounded by [`BATCH`] of them.
    fn poll_connections(&mut self) -> Result<(), TransportError> {
        let (mut tokens, mut count) = ([0; BATCH], 0);
        let result = epoll_ready(self.epoll.as_fd(), |token| {
            tokens[count] = token;
            count += 1;
        });
        result.map_err(|source| TransportError::new("epoll_wait", "shared memory", source))?;
        for token in &tokens[..count] {
            match *token {
                PENDING_TOKEN => {
                    let was_set = self.pending_waker.reset();
                    debug_assert!(was_set.is_ok(), "an open eventfd can be read");
                }
                token if token & OUTGOING != 0 => self.outgoing.handle_ready(token),
                token => self.incoming.handle_ready(token, self.epoll.as_fd()),
            }
        }
        self.incoming.sweep();
        Ok(())
    }

    /// Takes the most urgent datagram for an open port, if its urgency exceeds `above`.
    fn pop_urgent(&mut self, above: i32) -> Option<(Arrival, FlowId)> {
        for _ in 0..CLOSED_PORT_SKIPS_MAX {
            let Ok(arrival) = self.incoming.pop_urgent(above, &self.ports)? else { continue };
            if let Some(flow) = self.ports.flow(arrival.ports.to) {
                return Some((arrival, flow));
            }
        }
        None
    }

    /// Takes the next datagram for an open port. After [`URGENT_IN_ROW_MAX`] urgent ones in a row,
    /// takes one that is not urgent, if there is one.
    fn pop(&mut self) -> Option<(Arrival, FlowId)> {
        let has_urgent = self.incoming.has_urgent();
        if has_urgent
            && self.urgent_in_row < URGENT_IN_ROW_MAX
            && let Some(urgent) = self.pop_urgent(i32::MIN)
        {
            self.urgent_in_row += 1;
            return Some(urgent);
        }
        self.urgent_in_row = 0;
        let not_urgent = self.pop_not_urgent();
        if has_urgent { not_urgent.or_else(|| self.pop_urgent(i32::MIN)) } else { not_urgent }
    }

    /// Takes the next datagram that is not urgent.
    fn pop_not_urgent(&mut self) -> Option<(Arrival, FlowId)> {
        for _ in 0..CLOSED_PORT_SKIPS_MAX {
            let arrival = self.incoming.pop()?;
            if let Some(flow) = self.ports.flow(arrival.ports.to) {
                return Some((arrival, flow));
            }
        }
        None
    }

    /// Takes the next datagram by [`pop`](Self::pop) or [`pop_not_urgent`](Self::pop_not_urgent).
    /// If there is none, writers send wake-ups from now on. See [`Scan`].
    fn receive_wanted(
        &mut self,
        scan: Scan,
        pop: fn(&mut Self) -> Option<(Arrival, FlowId)>,
    ) -> Result<Option<(Arrival, FlowId)>, TransportError> {
        if let Some(found) = pop(self) {
            return Ok(Some(found));
        }
        match scan {
            Scan::Hot => {
                self.scans += 1;
                if self.scans < SCANS_PER_POLL {
                    return Ok(None);
                }
                self.scans = 0;
                self.poll_connections()?;
                return Ok(pop(self));
            }
            Scan::Taken => {}
            Scan::All => self.poll_connections()?,
        }
        for _ in 0..ATTEMPTS_TO_SLEEP {
            if let Some(found) = pop(self) {
                return Ok(Some(found));
            }
            if self.incoming.fall_asleep() {
                return Ok(None);
            }
        }
        self.pending_waker.wake().map_err(|source| TransportError::new("write", "an eventfd", source))?;
        Ok(None)
    }
}

impl ShmTransport {
    /// Returns the number of datagrams sent since opening.
    pub(crate) fn datagrams_out(&self) -> u64 {
        self.stats.datagrams_out
    }

    /// Makes the frame of a datagram that was taken.
    fn make_frame(&mut self, (arrival, flow): (Arrival, FlowId)) -> RxFrame<'_> {
        self.stats.datagrams_in += 1;
        self.stats.bytes_in += arrival.len as u64;
        let meta = RxMeta {
            source: self.host.locator(arrival.from, arrival.ports.from),
            local: self.host.locator(self.name, arrival.ports.to),
            flow,
            multicast: false,
        };
        self.loan = arrival.loan;
        RxFrame::new(&self.incoming.buffer()[..arrival.len], meta).with_loan(self.loan.as_ref())
    }

    /// Sends the first bytes of the frame, and a loan whose piece follows them.
    fn send(
        &mut self,
        len: usize,
        flow: FlowId,
        destinations: &[Locator],
        payload: Option<&SharedPayload>,
    ) -> Result<(), TransportError> {
        let from = self.ports.source(flow)?;
        let len = if payload.is_some() { len.saturating_add(Piece::LEN) } else { len };
        if !self.is_loaned || len > self.frame.len() {
            return Err(TransportError::new("commit", "a datagram", io::ErrorKind::InvalidInput.into()));
        }
        self.is_loaned = false;
        let mut copy = None;
        for destination in destinations {
            let Some(name) = self.host.name(destination) else {
                self.stats.send_errors.unserved += 1;
                continue;
            };
            let mut payload = payload;
            if let Some(object) =
                payload.filter(|payload| payload.object().is_some() && !self.outgoing.is_in_process(name))
            {
                copy = copy.or_else(|| self.outgoing.copy(object));
                payload = copy.as_ref();
                if payload.is_none() {
                    self.stats.send_errors.would_block += 1;
                    continue;
                }
            }
            let ports = ring::Ports { to: destination.port & !HAS_LOAN, from };
            let (frame, epoll) = (&mut self.frame[..len], self.epoll.as_fd());
            self.outgoing.send(name, ports, frame, payload, epoll, &mut self.stats);
        }
        Ok(())
    }
}

/// Opens a socket with a random name, and returns the name with it.
fn listen() -> io::Result<(u64, OwnedFd)> {
    let mut taken = io::ErrorKind::AddrInUse.into();
    for _ in 0..NAMES_TRIED {
        let name = syscall::random()?;
        match syscall::listen_at(name) {
            Ok(listener) => return Ok((name, listener)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

impl Transport for ShmTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "shm", max_message_len: RECORD_LEN_MAX, scans_memory: true }
    }

    fn status(&self) -> Status<'_> {
        let receive_errors = self.incoming.refused + self.incoming.missing_loans;
        let stats = TransportStats { receive_errors, ..self.stats };
        Status { descriptors: &self.descriptors, ..Status::new(&self.locators, stats) }
    }

    fn reach(&self, locator: &Locator) -> Reach {
        self.host.name(locator).map_or(Reach::Unserved, |name| self.outgoing.reach(name))
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let (flow, port) = self.ports.open(spec)?;
        Ok((flow, port.map(|port| self.host.locator(self.name, port)).into_iter().collect()))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.flush()?;
        self.ports.close(flow)
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.is_loaned = true;
        Ok(&mut self.frame)
    }

    fn loan_payload(&mut self, len: usize) -> Option<Loan> {
        self.outgoing.loan(len)
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        let Commit { len, flow, destinations, payload, .. } = datagram;
        let payload = match payload {
            Payload::Loaned(payload) if payload.object().is_none() && !self.outgoing.owns(payload) => {
                return Err(TransportError::new("commit", "a loaned payload", io::ErrorKind::InvalidInput.into()));
            }
            Payload::Loaned(payload) => Some(payload),
            Payload::InFrame => None,
            Payload::Gathered(_) => {
                let len = datagram.assemble(&mut self.frame)?;
                return self.send(len, flow, destinations, None);
            }
        };
        self.send(len, flow, destinations, payload)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.outgoing.wake_readers();
        Ok(())
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.loan = None;
        let found = match request {
            Receive::Any(scan) => self.receive_wanted(scan, Self::pop)?,
            Receive::Urgent { above } if self.incoming.has_urgent() => self.pop_urgent(above),
            Receive::Urgent { .. } => None,
            Receive::NotUrgent(scan) => self.receive_wanted(scan, Self::pop_not_urgent)?,
        };
        Ok(found.map(|found| self.make_frame(found)))
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        let (name, has_ended) = self.outgoing.poll_lost(|name| self.incoming.is_read(name))?;
        Some(TransportEvent::Lost(Lost { locator: self.host.locator(name, USER), has_ended }))
    }

    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        let Control::Connect(to) = request else { return Ok(()) };
        let is_connected = self.host.name(to).is_some_and(|name| self.outgoing.open(name, self.epoll.as_fd()));
        Reach::from(is_connected).or_unserved(to)
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        self.host.name(destination)?;
        Some(self.host.locator(self.name, self.ports.source(flow).ok()?))
    }
}
