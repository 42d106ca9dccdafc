//! Rings from other participants: accepted, validated, read round-robin, and closed when the writer
//! is gone and they are drained.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use takt_wire::{Piece, SharedPayload};

use super::descriptors::Descriptor;
use super::handover::{self, HandOvers};
use super::hello::{CLOSE, HELLO_LEN, Hello};
use super::host::Host;
use super::mapping::Mapping;
use super::ports::{self, Band, HAS_LOAN};
use super::remote_segment::Lender;
use super::ring::{self, Broken, Head, Ports, RECORD_LEN_MAX, Word};
use super::syscall;
use crate::udp::syscall::epoll_add;

/// Epoll token of the listening socket. Tokens of connections are at least [`TOKENS`].
pub(super) const LISTENER: u64 = 0;

/// Tokens below this are not those of connections.
pub(super) const TOKENS: u64 = 16;

/// Maximum number of connections that one poll accepts, and of messages that it receives.
const ACCEPTED_PER_CALL: usize = 64;

/// Maximum number of connections without a hello message; a further one replaces the oldest.
pub(super) const SILENT_MAX: usize = 16;

/// Time limit for the hello message of a connection.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Rings of one writer.
#[derive(Debug)]
struct RingPair {
    /// Name of the writer, as it stated.
    from: u64,
    lender: Arc<Lender>,
    /// Queues for objects, if the writer is in this process.
    handovers: Option<HandOvers>,
    /// Read positions, by band.
    heads: [Head; 2],
}

impl RingPair {
    /// Parses a record: a datagram, or one followed by the piece of a loan. Returns `None` if there
    /// is no such loan.
    #[inline]
    fn arrival(&self, band: Band, mut ports: Ports, record: &[u8]) -> Option<Arrival> {
        let (mut datagram, mut loan) = (record, None);
        if ports.to & HAS_LOAN != 0 {
            let (before, piece) = record.split_last_chunk::<{ Piece::LEN }>()?;
            let piece = Piece::from_bytes(*piece);
            let object = self.handovers.as_ref().and_then(|handovers| handovers[band as usize].take(&piece));
            (datagram, loan) = (before, Some(object.or_else(|| self.lender.borrow(piece))?));
            ports.to &= !HAS_LOAN;
        }
        Some(Arrival { from: self.from, ports, len: datagram.len(), loan })
    }

    fn ring(&self, band: Band) -> &[AtomicU64] {
        self.lender.rings.ring(band)
    }

    fn is_drained(&self) -> bool {
        [Band::NotUrgent, Band::Urgent].iter().all(|band| self.heads[*band as usize].is_drained(self.ring(*band)))
    }

    /// Copies the next datagram of the non-urgent ring.
    #[inline]
    fn pop(&mut self, bytes: &mut [u8]) -> Result<Option<(Ports, usize)>, Broken> {
        self.heads[Band::NotUrgent as usize].pop(self.lender.rings.ring(Band::NotUrgent), bytes)
    }

    /// Returns the highest urgency in the urgent ring.
    fn choose(&mut self, rank: impl FnMut(Ports) -> i32) -> Result<Option<i32>, Broken> {
        self.heads[Band::Urgent as usize].choose(self.lender.rings.ring(Band::Urgent), rank)
    }

    /// Copies the datagram that [`choose`](Self::choose) found.
    fn take(&mut self, bytes: &mut [u8]) -> Result<Option<(Ports, usize)>, Broken> {
        self.heads[Band::Urgent as usize].take(self.lender.rings.ring(Band::Urgent), bytes)
    }
}

/// Connection from another participant.
#[derive(Debug)]
struct Connection {
    token: u64,
    /// Socket; `None` once the peer is gone.
    socket: Option<OwnedFd>,
    _descriptor: Descriptor,
    /// Rings; `None` until the hello message arrives.
    rings: Option<RingPair>,
    accepted: Instant,
}

impl Connection {
    /// Reports whether the connection is open without a hello message.
    fn is_silent(&self) -> bool {
        self.socket.is_some() && self.rings.is_none()
    }
}

/// Received datagram: the first bytes of the buffer, and the loan that came with it.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) from: u64,
    pub(super) ports: Ports,
    pub(super) len: usize,
    pub(super) loan: Option<SharedPayload>,
}

/// Rings from all other participants.
#[derive(Debug)]
pub(super) struct Incoming {
    host: Host,
    own_name: u64,
    pub(super) listener: OwnedFd,
    connections_max: usize,
    connections: Vec<Connection>,
    /// Index of the connection that is polled next.
    next: usize,
    /// All rings are marked as those of a sleeping reader.
    is_asleep: bool,
    next_token: u64,
    /// A connection has ended and was not removed yet.
    has_ended: bool,
    /// Number of silent connections.
    silent: usize,
    /// Rings that were closed because of invalid contents, and connections without a valid hello
    /// message.
    pub(super) refused: u64,
    /// Datagrams that were dropped because their loan does not exist.
    pub(super) missing_loans: u64,
    buffer: Vec<u8>,
}

impl Incoming {
    pub(super) fn new(host: Host, own_name: u64, listener: OwnedFd, connections_max: usize) -> Self {
        Self {
            host,
            own_name,
            listener,
            connections_max,
            connections: Vec::with_capacity(connections_max),
            next: 0,
            is_asleep: false,
            next_token: TOKENS,
            has_ended: false,
            silent: 0,
            refused: 0,
            missing_loans: 0,
            buffer: vec![0; RECORD_LEN_MAX],
        }
    }

    pub(super) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Copies the next datagram that is not urgent into the buffer, round-robin over the rings.
    /// Examines at most one record of each ring.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Arrival> {
        for offset in 0..self.connections.len() {
            let at = self.round_robin_index(offset);
            let Some(rings) = &mut self.connections[at].rings else { continue };
            match rings.pop(&mut self.buffer) {
                Ok(None) => {}
                Ok(Some(popped)) => {
                    if let Some(arrival) = self.parse_arrival(at, Band::NotUrgent, popped) {
                        return Some(arrival);
                    }
                }
                Err(Broken) => self.close_rings(at),
            }
        }
        None
    }

    /// Reports whether an urgent ring has a record. Reads one word of each ring.
    pub(super) fn has_urgent(&self) -> bool {
        self.ring_pairs().any(|rings| !rings.heads[Band::Urgent as usize].is_drained(rings.ring(Band::Urgent)))
    }

    /// Copies the most urgent datagram above `above` into the buffer; an error if it was dropped.
    /// Examines each record once, and at most [`ring::EXAMINED_MAX`] records of each ring.
    pub(super) fn pop_urgent(&mut self, above: i32, ports: &ports::Ports) -> Option<Result<Arrival, Broken>> {
        let mut highest: Option<(usize, i32)> = None;
        for offset in 0..self.connections.len() {
            let at = self.round_robin_index(offset);
            let Some(rings) = &mut self.connections[at].rings else { continue };
            match rings.choose(|record| ports.urgency(record.to & !HAS_LOAN)) {
                Ok(Some(rank)) if rank > highest.map_or(above, |(_, highest)| highest) => highest = Some((at, rank)),
                Ok(_) => {}
                Err(Broken) => self.close_rings(at),
            }
        }
        let (at, _) = highest?;
        let taken = self.connections[at].rings.as_mut()?.take(&mut self.buffer).transpose()?;
        let taken = taken.inspect_err(|Broken| self.close_rings(at));
        Some(taken.and_then(|taken| self.parse_arrival(at, Band::Urgent, taken).ok_or(Broken)))
    }

    /// Returns the index of the connection that is `offset` positions after the next one.
    fn round_robin_index(&self, offset: usize) -> usize {
        let (at, count) = (self.next + offset, self.connections.len());
        if at < count { at } else { at - count }
    }

    /// Parses the record in the buffer. A record with a loan that does not exist is dropped.
    #[inline]
    fn parse_arrival(&mut self, at: usize, band: Band, (ports, len): (Ports, usize)) -> Option<Arrival> {
        let arrival = self.connections[at].rings.as_ref()?.arrival(band, ports, &self.buffer[..len]);
        if arrival.is_none() {
            self.missing_loans += 1;
            return None;
        }
        self.next = if at + 1 < self.connections.len() { at + 1 } else { 0 };
        self.stay_awake();
        arrival
    }

    /// Stops reading rings with invalid contents.
    #[cold]
    fn close_rings(&mut self, at: usize) {
        self.refused += 1;
        self.has_ended = true;
        self.connections[at].rings = None;
        self.connections[at].socket.take().inspect(send_close);
    }

    /// Reports whether all datagrams that a participant wrote before its end have been read.
    pub(super) fn is_read(&self, name: u64) -> bool {
        self.ring_pairs().filter(|rings| rings.from == name).all(RingPair::is_drained)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    fn ring_pairs(&self) -> impl Iterator<Item = &RingPair> {
        self.connections.iter().filter_map(|connection| connection.rings.as_ref())
    }

    fn stay_awake(&mut self) {
        if std::mem::take(&mut self.is_asleep) {
            self.ring_pairs().for_each(|rings| ring::wake_up(rings.ring(Band::NotUrgent)));
        }
    }

    /// Marks the reader as sleeping, so that writers wake it. Returns false if a datagram has
    /// arrived meanwhile.
    pub(super) fn fall_asleep(&mut self) -> bool {
        self.is_asleep = true;
        self.ring_pairs().for_each(|rings| ring::fall_asleep(rings.ring(Band::NotUrgent)));
        AtomicU64::fence();
        self.ring_pairs().all(RingPair::is_drained)
    }

    /// Handles readiness: new connections, hello messages, wake-ups, ends.
    pub(super) fn handle_ready(&mut self, token: u64, epoll: BorrowedFd<'_>) {
        if token == LISTENER {
            self.accept(epoll);
        } else if let Some(at) = self.connections.iter().position(|connection| connection.token == token) {
            self.read(at);
        }
    }

    /// Closes connections that have been silent for too long, and removes ended ones whose rings
    /// are drained.
    pub(super) fn sweep(&mut self) {
        if self.silent > 0 {
            let now = Instant::now();
            for at in 0..self.connections.len() {
                let connection = &self.connections[at];
                if connection.is_silent() && now.duration_since(connection.accepted) >= SILENCE_MAX {
                    self.close_rings(at);
                }
            }
            self.silent = self.connections.iter().filter(|connection| connection.is_silent()).count();
        }
        if !self.has_ended {
            return;
        }
        self.connections.retain(|connection| match (&connection.socket, &connection.rings) {
            (Some(_), _) => true,
            (None, Some(rings)) => !rings.is_drained(),
            (None, None) => false,
        });
        self.has_ended = self.connections.iter().any(|connection| connection.socket.is_none());
        self.next = 0;
    }

    fn accept(&mut self, epoll: BorrowedFd<'_>) {
        for _ in 0..ACCEPTED_PER_CALL {
            let Ok(socket) = syscall::accept(self.listener.as_fd()) else { return };
            let is_ours = syscall::peer(socket.as_fd()).is_ok_and(|peer| peer.user == self.host.user());
            let token = self.next_token;
            let has_room = self.connections.iter().filter(|it| it.socket.is_some()).count() < self.connections_max;
            let may_have = is_ours && has_room && epoll_add(epoll, socket.as_fd(), token).is_ok();
            let Some(descriptor) = may_have.then(Descriptor::reserve).and_then(Result::ok) else {
                self.refused += 1;
                send_close(&socket);
                continue;
            };
            self.next_token += 1;
            let (socket, accepted) = (Some(socket), Instant::now());
            self.connections.push(Connection { token, socket, _descriptor: descriptor, rings: None, accepted });
            self.read(self.connections.len() - 1);
            self.limit_silent();
        }
    }

    /// Closes the oldest silent connection if there are more than [`SILENT_MAX`].
    fn limit_silent(&mut self) {
        self.silent = self.connections.iter().filter(|connection| connection.is_silent()).count();
        if self.silent > SILENT_MAX
            && let Some(oldest) = self.connections.iter().position(Connection::is_silent)
        {
            self.close_rings(oldest);
            self.silent -= 1;
        }
    }

    /// Receives one message of a connection: its hello, a wake-up, or its end.
    fn read(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let Some(socket) = &connection.socket else { return };
        let mut message = [0; HELLO_LEN];
        let received = match syscall::receive(socket.as_fd(), &mut message) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // An error ends the connection too.
            Err(_) => syscall::Received { len: 0, truncated: false, descriptors: [None, None] },
            Ok(received) => received,
        };
        if received.len == 0 {
            connection.socket = None;
            self.has_ended = true;
        } else if connection.rings.is_none() {
            let hello = Hello::parse(&message[..received.len]).filter(|hello| hello.tag == self.host.tag());
            let [memory, segment] = received.descriptors;
            let files = memory.zip(segment).filter(|_| !received.truncated);
            let rings = hello.zip(files).and_then(|(hello, (memory, segment))| {
                let [not_urgent, urgent] = hello.words;
                let [not_urgent, urgent, segment_words, slots] = [not_urgent, urgent, hello.segment, hello.slots]
                    .map(|count| usize::try_from(count).unwrap_or(usize::MAX));
                let rings = Mapping::map_remote(memory.as_fd(), [not_urgent, urgent], slots).ok()?;
                let segment = Mapping::map_remote_segment(segment.as_fd(), segment_words, slots).ok()?;
                let is_same_process = syscall::peer(socket.as_fd()).is_ok_and(|peer| peer.is_this_process());
                let handovers = if is_same_process { handover::accept(hello.name, self.own_name) } else { None };
                let lender = Arc::new(Lender::new(rings, segment));
                Some(RingPair { from: hello.name, lender, handovers, heads: [Head::default(), Head::choosing()] })
            });
            if rings.is_none() {
                self.refused += 1;
                self.has_ended = true;
                connection.socket.take().inspect(send_close);
            }
            connection.rings = rings;
            // The new rings are not marked as those of a sleeping reader yet.
            self.is_asleep = false;
        }
    }
}

impl Drop for Incoming {
    /// Loans that are still held stay valid. All writers are notified that this is not the end of
    /// the process.
    fn drop(&mut self) {
        let refuses = syscall::set_owner_only(self.listener.as_fd());
        debug_assert!(refuses.is_ok(), "a socket that listens can be shut down");
        while let Ok(socket) = syscall::accept(self.listener.as_fd()) {
            send_close(&socket);
        }
        for connection in self.connections.drain(..) {
            connection.socket.iter().for_each(send_close);
            if let (Some(socket), Some(rings)) = (connection.socket, connection.rings)
                && Arc::strong_count(&rings.lender) > 1
            {
                rings.lender.keep_connection(socket);
            }
        }
    }
}

/// Notifies the writer that its rings are no longer read, though the process continues. The socket
/// has room, since nothing else is sent in this direction. If it has none, the writer is gone.
fn send_close(socket: &OwnedFd) {
    drop(syscall::send(socket.as_fd(), &CLOSE, &[]));
}
