//! Connections to other participants: opened for the first datagram, closed when the peer is gone.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use takt_wire::{Piece, SharedPayload};

use super::ShmConfig;
use super::descriptors::Descriptor;
use super::handover::{self, HandOver, HandOvers};
use super::hello::{CLOSE, Hello, WAKE_UP};
use super::host::Host;
use super::mapping::Mapping;
use super::ports::{Band, HAS_LOAN};
use super::ring::{self, Ports, Refusal, Tail, Word};
use super::segment::{Loan, Segment};
use super::syscall;
use crate::udp::syscall::epoll_add;
use crate::{Reach, TransportStats};

/// Maximum number of participants remembered as gone or unreachable; the oldest is evicted.
const UNREACHABLE_MAX: usize = 1024;

/// Epoll token bit of outgoing connections; tokens of incoming ones have it clear.
pub(super) const OUTGOING: u64 = 1 << 63;

/// Participant whose connection was closed.
#[derive(Clone, Copy, Debug)]
struct Lost {
    name: u64,
    /// The process has ended: the connection ended without [`CLOSE`](super::hello::CLOSE).
    has_ended: bool,
}

/// Connection to one participant, with its rings.
#[derive(Debug)]
struct Connection {
    name: u64,
    token: u64,
    socket: OwnedFd,
    _descriptor: Descriptor,
    memory: Mapping,
    /// Queues for objects, if the participant is in this process.
    handovers: Option<HandOvers>,
    /// Write positions, by band.
    tails: [Tail; 2],
    /// A datagram was written since the last wake-up.
    needs_wakeup: bool,
    /// The peer has sent [`CLOSE`](super::hello::CLOSE): it no longer reads, but may still hold
    /// loans.
    is_closed_by_peer: bool,
}

/// Connections to all participants.
#[derive(Debug)]
pub(super) struct Outgoing {
    host: Host,
    own_name: u64,
    config: ShmConfig,
    /// Segment of the own loans; created with the first connection or loan.
    pub(super) segment: Option<Segment>,
    /// Connections, sorted by name.
    connections: Vec<Connection>,
    /// Index of the connection of the last datagram.
    last: usize,
    /// Number of connections whose reader needs a wake-up.
    wakeups_due: usize,
    unreachable: VecDeque<u64>,
    /// Participants whose connection was closed and not reported yet.
    lost: Vec<Lost>,
    next_token: u64,
}

impl Outgoing {
    /// Allocates all memory except for connections and the segment.
    pub(super) fn new(host: Host, own_name: u64, config: &ShmConfig) -> Self {
        Self {
            host,
            own_name,
            config: config.clone(),
            segment: None,
            connections: Vec::with_capacity(config.connections_max),
            last: 0,
            wakeups_due: 0,
            unreachable: VecDeque::with_capacity(UNREACHABLE_MAX),
            lost: Vec::with_capacity(config.connections_max),
            next_token: OUTGOING,
        }
    }

    /// Returns whether and how datagrams get to a participant. An unknown one is connected at the
    /// first datagram.
    pub(super) fn reach(&self, name: u64) -> Reach {
        match self.find(name) {
            Ok(at) if self.connections[at].is_closed_by_peer => Reach::Unserved,
            Ok(at) if self.connections[at].handovers.is_some() => Reach::InProcess,
            Ok(_) => Reach::Served,
            Err(_) => Reach::from(!self.unreachable.contains(&name)),
        }
    }

    fn find(&self, name: u64) -> Result<usize, usize> {
        match self.connections.get(self.last) {
            Some(connection) if connection.name == name => Ok(self.last),
            _ => self.connections.binary_search_by_key(&name, |connection| connection.name),
        }
    }

    /// Opens the connection to a participant, if there is none. Reports whether there is one now.
    pub(super) fn open(&mut self, name: u64, epoll: BorrowedFd<'_>) -> bool {
        match self.find(name) {
            Ok(at) => !self.connections[at].is_closed_by_peer,
            Err(at) => self.connect(at, name, epoll).is_ok(),
        }
    }

    /// Returns memory for a payload to be loaned; `None` if there is none.
    pub(super) fn loan(&mut self, len: usize) -> Option<Loan> {
        self.segment().ok()?;
        let Self { connections, segment, .. } = self;
        let is_held =
            |slot: u32| connections.iter().any(|connection| connection.holds(slot).load(Ordering::Acquire) != 0);
        segment.as_mut()?.loan(len, is_held)
    }

    /// Reports whether a payload lies in the segment.
    pub(super) fn owns(&self, payload: &SharedPayload) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.owns(payload))
    }

    fn segment(&mut self) -> io::Result<&Segment> {
        let made = match self.segment.take() {
            Some(segment) => segment,
            None => Segment::create(self.config.segment_bytes, self.config.segment_slots())?,
        };
        Ok(self.segment.insert(made))
    }

    /// Reports whether a participant is in this process.
    pub(super) fn is_in_process(&self, name: u64) -> bool {
        self.find(name).is_ok_and(|at| self.connections[at].handovers.is_some())
    }

    /// Copies the bytes of an object into a loan, for destinations in other processes.
    pub(super) fn copy(&mut self, object: &SharedPayload) -> Option<SharedPayload> {
        let bytes = object.bytes()?;
        let mut loan = self.loan(bytes.len())?;
        loan.bytes_mut().copy_from_slice(bytes);
        Some(loan.finish(bytes.len()))
    }

    /// Writes a datagram for a participant, which [`wake_readers`](Self::wake_readers) notifies at
    /// the latest. The loaned `payload` goes with it: its piece takes the last bytes of the frame,
    /// and the participant holds the payload from now on.
    pub(super) fn send(
        &mut self,
        name: u64,
        ports: Ports,
        frame: &mut [u8],
        payload: Option<&SharedPayload>,
        epoll: BorrowedFd<'_>,
        stats: &mut TransportStats,
    ) {
        let at = match self.find(name) {
            Ok(at) => at,
            Err(at) => match self.connect(at, name, epoll) {
                Ok(()) => at,
                Err(error) => return count(&error, stats),
            },
        };
        self.last = at;
        let connection = &mut self.connections[at];
        let band = Band::of(ports.to);
        let ports = match payload {
            Some(payload) => {
                let piece = connection.add_hold(payload, band);
                if let Some(end) = frame.last_chunk_mut() {
                    *end = piece.to_bytes();
                }
                Ports { to: ports.to | HAS_LOAN, ..ports }
            }
            None => ports,
        };
        let result = connection.tails[band as usize].push(connection.memory.ring(band), ports, frame);
        if let Some(payload) = payload.filter(|_| result.is_err()) {
            connection.release_hold(payload, band);
        }
        match result {
            Ok(()) => {
                if !connection.needs_wakeup {
                    connection.needs_wakeup = true;
                    self.wakeups_due += 1;
                }
                stats.datagrams_out += 1;
                stats.bytes_out += frame.len() as u64;
            }
            Err(Refusal::Full) => stats.send_errors.would_block += 1,
            Err(Refusal::Broken) => {
                stats.send_errors.other += 1;
                self.close(at, false);
            }
        }
    }

    /// Opens the connection to `name` and inserts it at this index.
    #[cold]
    fn connect(&mut self, at: usize, name: u64, epoll: BorrowedFd<'_>) -> io::Result<()> {
        if self.unreachable.contains(&name) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if self.connections.len() == self.config.connections_max {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let connection = match self.connect_to(name, epoll) {
            Ok(connection) => connection,
            Err(error) => {
                // Lack of room at the peer, or of descriptors here, may be temporary; a name
                // without a listener does not return.
                if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::PermissionDenied) {
                    self.mark_unreachable(name);
                }
                return Err(error);
            }
        };
        self.connections.insert(at, connection);
        Ok(())
    }

    fn connect_to(&mut self, name: u64, epoll: BorrowedFd<'_>) -> io::Result<Connection> {
        let socket = syscall::connect_to(name)?;
        let peer = syscall::peer(socket.as_fd())?;
        if peer.user != self.host.user() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let descriptor = Descriptor::reserve()?;
        let rings = self.config.ring_words().map(|words| ring::RECORDS + words);
        let (tag, own_name) = (self.host.tag(), self.own_name);
        let segment = self.segment()?;
        let (memory, file) = Mapping::create(rings, segment.slots())?;
        let (words, slots) = (rings.map(|words| words as u64), segment.slots() as u64);
        let hello = Hello { tag, name: own_name, words, segment: segment.words() as u64, slots };
        let handovers = peer.is_this_process().then(|| handover::offer(own_name, name));
        syscall::send(socket.as_fd(), &hello.to_bytes(), &[file.as_fd(), segment.file()])?;
        let token = self.next_token;
        epoll_add(epoll, socket.as_fd(), token)?;
        self.next_token = OUTGOING | (token + 1);
        let (tails, needs_wakeup, is_closed_by_peer) = ([Tail::default(), Tail::default()], false, false);
        Ok(Connection {
            name,
            token,
            socket,
            _descriptor: descriptor,
            memory,
            handovers,
            tails,
            needs_wakeup,
            is_closed_by_peer,
        })
    }

    fn mark_unreachable(&mut self, name: u64) {
        if self.unreachable.len() == UNREACHABLE_MAX {
            self.unreachable.pop_front();
        }
        self.unreachable.push_back(name);
    }

    /// Closes a connection. If its peer has sent `CLOSE`, it was reported as lost then.
    fn close(&mut self, at: usize, has_ended: bool) {
        let connection = self.connections.remove(at);
        self.wakeups_due -= usize::from(connection.needs_wakeup);
        connection.withdraw(self.own_name);
        if !connection.is_closed_by_peer {
            self.report_lost(connection.name, has_ended);
        }
    }

    fn report_lost(&mut self, name: u64, has_ended: bool) {
        self.mark_unreachable(name);
        // Bounded, because the caller may never poll.
        if self.lost.len() < self.config.connections_max {
            self.lost.push(Lost { name, has_ended });
        }
    }

    /// Returns a participant whose connection was closed, and whether its process has ended. An
    /// ended process is reported only after all its datagrams were read.
    pub(super) fn poll_lost(&mut self, is_read: impl Fn(u64) -> bool) -> Option<(u64, bool)> {
        let at = self.lost.iter().position(|lost| !lost.has_ended || is_read(lost.name))?;
        let Lost { name, has_ended } = self.lost.swap_remove(at);
        Some((name, has_ended))
    }

    /// Handles a readable connection, on which only `CLOSE` and the end are expected.
    pub(super) fn handle_ready(&mut self, token: u64) {
        let Some(at) = self.connections.iter().position(|connection| connection.token == token) else { return };
        let connection = &mut self.connections[at];
        let (name, mut message) = (connection.name, [0; 8]);
        let mut receive = || syscall::receive(connection.socket.as_fd(), &mut message).map(|received| received.len);
        let mut received = receive();
        // Retried once: a peer that closed with unread data causes a reset before the remaining
        // messages.
        if received.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset) {
            received = receive();
        }
        if received.as_ref().is_ok_and(|len| message[..*len] == CLOSE) && !connection.is_closed_by_peer {
            connection.is_closed_by_peer = true;
            received = syscall::receive(connection.socket.as_fd(), &mut message).map(|received| received.len);
            self.report_lost(name, false);
        }
        if !received.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            self.close(at, received.is_ok_and(|len| len == 0));
        }
    }

    /// Wakes sleeping readers for which datagrams were written.
    pub(super) fn wake_readers(&mut self) {
        if self.wakeups_due == 0 {
            return;
        }
        AtomicU64::fence();
        if self.wakeups_due == 1
            && let Some(connection) = self.connections.get_mut(self.last)
            && connection.needs_wakeup
        {
            connection.wake_reader();
        } else {
            self.connections.iter_mut().filter(|connection| connection.needs_wakeup).for_each(Connection::wake_reader);
        }
        self.wakeups_due = 0;
    }
}

impl Connection {
    /// Returns the hold counter of the peer for a slot of the segment.
    fn holds(&self, slot: u32) -> &AtomicU64 {
        &self.memory.holds()[slot as usize]
    }

    /// Adds a hold of the peer on a loan, and returns its piece.
    fn add_hold(&self, payload: &SharedPayload, band: Band) -> Piece {
        match self.handover(payload, band) {
            Some(handover) => handover.put(payload),
            None => {
                let piece = payload.piece();
                self.holds(piece.slot).fetch_add(1, Ordering::Relaxed);
                piece
            }
        }
    }

    /// Removes the last hold, because its datagram was not written.
    fn release_hold(&self, payload: &SharedPayload, band: Band) {
        match self.handover(payload, band) {
            Some(handover) => handover.remove_last(),
            None => drop(self.holds(payload.piece().slot).fetch_sub(1, Ordering::Relaxed)),
        }
    }

    /// Returns the queue for objects, if the loan is an object.
    fn handover(&self, payload: &SharedPayload, band: Band) -> Option<&HandOver> {
        let handovers = self.handovers.as_ref().filter(|_| payload.object().is_some())?;
        Some(&handovers[band as usize])
    }

    /// Withdraws the offered queues of a closed connection.
    fn withdraw(&self, own_name: u64) {
        if self.handovers.is_some() {
            handover::withdraw(own_name, self.name);
        }
    }

    fn wake_reader(&mut self) {
        self.needs_wakeup = false;
        if ring::needs_wakeup(self.memory.ring(Band::NotUrgent)) {
            // A failure means that the socket is full of wake-ups, or that the peer is gone, which
            // is detected elsewhere.
            drop(syscall::send(self.socket.as_fd(), &WAKE_UP, &[]));
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.connections.iter().for_each(|connection| connection.withdraw(self.own_name));
    }
}

/// Counts a datagram to a participant without a connection.
fn count(error: &io::Error, stats: &mut TransportStats) {
    let errors = &mut stats.send_errors;
    match error.kind() {
        io::ErrorKind::ConnectionRefused => errors.refused += 1,
        io::ErrorKind::PermissionDenied => errors.denied += 1,
        io::ErrorKind::WouldBlock => errors.would_block += 1,
        _ => errors.no_buffers += 1,
    }
}
