//! Lanes to other participants: opened for the first datagram, closed when the peer is gone.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use takt_wire::{Lent, Piece};

use super::ShmConfig;
use super::descriptors::Descriptor;
use super::handover::{self, HandOver, HandOvers};
use super::hello::{BELL, FAREWELL, Hello};
use super::host::Host;
use super::mapping::Mapping;
use super::ports::{Band, LENDS};
use super::ring::{self, Ports, Refusal, Tail, Word};
use super::segment::{Loan, Segment};
use super::syscall;
use crate::TransportStats;
use crate::udp::syscall::epoll_add;

/// Maximum number of participants remembered as gone or unreachable; the oldest is evicted.
const UNREACHABLE_MAX: usize = 1024;

/// Epoll token bit of outgoing connections; tokens of incoming ones have it clear.
pub(super) const OUTGOING: u64 = 1 << 63;

/// Participant whose lane was closed.
#[derive(Clone, Copy, Debug)]
struct Lost {
    name: u64,
    /// The process has ended: the connection ended without a farewell.
    has_ended: bool,
}

/// Lane to one participant.
#[derive(Debug)]
struct Lane {
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
    /// The peer has sent a farewell: it no longer reads, but may still hold loans.
    is_closed_by_peer: bool,
}

/// Lanes to all participants.
#[derive(Debug)]
pub(super) struct Outgoing {
    host: Host,
    own_name: u64,
    config: ShmConfig,
    /// Segment of the own loans; made with the first lane or loan.
    pub(super) segment: Option<Segment>,
    /// Lanes, sorted by name.
    lanes: Vec<Lane>,
    /// Index of the lane of the last datagram.
    last: usize,
    /// Number of fresh lanes.
    fresh: usize,
    gone: VecDeque<u64>,
    /// Participants whose lane was closed and not reported yet.
    lost: Vec<Lost>,
    next_token: u64,
}

impl Outgoing {
    /// Allocates all memory except for lanes and the segment.
    pub(super) fn new(host: Host, own_name: u64, config: &ShmConfig) -> Self {
        Self {
            host,
            own_name,
            config: config.clone(),
            segment: None,
            lanes: Vec::with_capacity(config.lanes_max),
            last: 0,
            fresh: 0,
            gone: VecDeque::with_capacity(UNREACHABLE_MAX),
            lost: Vec::with_capacity(config.lanes_max),
            next_token: OUTGOING,
        }
    }

    /// Reports whether the participant is not known to be gone.
    pub(super) fn is_reachable(&self, name: u64) -> bool {
        self.find(name).map_or_else(|_| !self.gone.contains(&name), |at| !self.lanes[at].is_closed_by_peer)
    }

    fn find(&self, name: u64) -> Result<usize, usize> {
        match self.lanes.get(self.last) {
            Some(lane) if lane.name == name => Ok(self.last),
            _ => self.lanes.binary_search_by_key(&name, |lane| lane.name),
        }
    }

    /// Opens the lane to a participant, if there is none. Reports whether there is one now.
    pub(super) fn open(&mut self, name: u64, epoll: BorrowedFd<'_>) -> bool {
        match self.find(name) {
            Ok(at) => !self.lanes[at].is_closed_by_peer,
            Err(at) => self.connect(at, name, epoll).is_ok(),
        }
    }

    /// Returns memory for a payload to be lent; `None` if there is none.
    pub(super) fn loan(&mut self, len: usize) -> Option<Loan> {
        self.segment().ok()?;
        let Self { lanes, segment, .. } = self;
        let is_held = |slot: u32| lanes.iter().any(|lane| lane.holds(slot).load(Ordering::Acquire) != 0);
        segment.as_mut()?.loan(len, is_held)
    }

    /// Reports whether a payload lies in the segment.
    pub(super) fn owns(&self, lent: &Lent) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.owns(lent))
    }

    fn segment(&mut self) -> io::Result<&Segment> {
        let made = match self.segment.take() {
            Some(segment) => segment,
            None => Segment::create(self.config.segment_bytes, self.config.segment_slots())?,
        };
        Ok(self.segment.insert(made))
    }

    /// Reports whether the lane to a participant stays in this process.
    pub(super) fn is_in_process(&self, name: u64) -> bool {
        self.find(name).is_ok_and(|at| self.lanes[at].handovers.is_some())
    }

    /// Copies the bytes of an object into a loan, for destinations in other processes.
    pub(super) fn copy(&mut self, object: &Lent) -> Option<Lent> {
        let bytes = object.bytes()?;
        let mut loan = self.loan(bytes.len())?;
        loan.bytes_mut().copy_from_slice(bytes);
        Some(loan.finish(bytes.len()))
    }

    /// Writes a datagram for a participant, which [`wake_readers`](Self::ring_bells) notifies at the
    /// latest. The `lent` payload goes with it: its piece takes the last bytes of the frame, and
    /// the participant holds the payload from now on.
    pub(super) fn send(
        &mut self,
        name: u64,
        ports: Ports,
        frame: &mut [u8],
        lent: Option<&Lent>,
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
        let lane = &mut self.lanes[at];
        let band = Band::of(ports.to);
        let ports = match lent {
            Some(lent) => {
                let piece = lane.hold(lent, band);
                if let Some(room) = frame.last_chunk_mut() {
                    *room = piece.to_bytes();
                }
                Ports { to: ports.to | LENDS, ..ports }
            }
            None => ports,
        };
        let result = lane.tails[band as usize].push(lane.memory.ring(band), ports, frame);
        if let Some(lent) = lent.filter(|_| result.is_err()) {
            lane.release_hold(lent, band);
        }
        match result {
            Ok(()) => {
                if !lane.needs_wakeup {
                    lane.needs_wakeup = true;
                    self.fresh += 1;
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

    /// Opens the lane to `name` and inserts it at this index.
    #[cold]
    fn connect(&mut self, at: usize, name: u64, epoll: BorrowedFd<'_>) -> io::Result<()> {
        if self.gone.contains(&name) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if self.lanes.len() == self.config.lanes_max {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let lane = match self.greet(name, epoll) {
            Ok(lane) => lane,
            Err(error) => {
                // Lack of room at the peer, or of descriptors here, may be temporary; a name
                // without a listener does not return.
                if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::PermissionDenied) {
                    self.forget(name);
                }
                return Err(error);
            }
        };
        self.lanes.insert(at, lane);
        Ok(())
    }

    fn greet(&mut self, name: u64, epoll: BorrowedFd<'_>) -> io::Result<Lane> {
        let socket = syscall::connect_to(name)?;
        let peer = syscall::peer(socket.as_fd())?;
        if peer.user != self.host.user() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let descriptor = Descriptor::reserve()?;
        let rings = self.config.lane_words().map(|words| ring::RECORDS + words);
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
        Ok(Lane {
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

    fn forget(&mut self, name: u64) {
        if self.gone.len() == UNREACHABLE_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back(name);
    }

    /// Closes a lane. If its participant has sent a farewell, it was reported as lost then.
    fn close(&mut self, at: usize, has_ended: bool) {
        let lane = self.lanes.remove(at);
        self.fresh -= usize::from(lane.needs_wakeup);
        lane.withdraw(self.own_name);
        if !lane.is_closed_by_peer {
            self.lose(lane.name, has_ended);
        }
    }

    fn lose(&mut self, name: u64, has_ended: bool) {
        self.forget(name);
        // Bounded, because the caller may never poll.
        if self.lost.len() < self.config.lanes_max {
            self.lost.push(Lost { name, has_ended });
        }
    }

    /// Returns a participant whose lane was closed, and whether its process has ended. An ended
    /// process is reported only after all its datagrams were read.
    pub(super) fn poll_lost(&mut self, is_read: impl Fn(u64) -> bool) -> Option<(u64, bool)> {
        let at = self.lost.iter().position(|lost| !lost.has_ended || is_read(lost.name))?;
        let Lost { name, has_ended } = self.lost.swap_remove(at);
        Some((name, has_ended))
    }

    /// Handles a readable connection, on which only a farewell and the end are expected.
    pub(super) fn handle_ready(&mut self, token: u64) {
        let Some(at) = self.lanes.iter().position(|lane| lane.token == token) else { return };
        let lane = &mut self.lanes[at];
        let (name, mut message) = (lane.name, [0; 8]);
        let mut receive = || syscall::receive(lane.socket.as_fd(), &mut message).map(|received| received.len);
        let mut received = receive();
        // Retried once: a peer that closed with unread data causes a reset before the remaining
        // messages.
        if received.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset) {
            received = receive();
        }
        if received.as_ref().is_ok_and(|len| message[..*len] == FAREWELL) && !lane.is_closed_by_peer {
            lane.is_closed_by_peer = true;
            received = syscall::receive(lane.socket.as_fd(), &mut message).map(|received| received.len);
            self.lose(name, false);
        }
        if !received.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            self.close(at, received.is_ok_and(|len| len == 0));
        }
    }

    /// Wakes sleeping readers for which datagrams were written.
    pub(super) fn wake_readers(&mut self) {
        if self.fresh == 0 {
            return;
        }
        AtomicU64::fence();
        if self.fresh == 1
            && let Some(lane) = self.lanes.get_mut(self.last)
            && lane.needs_wakeup
        {
            lane.wake_reader();
        } else {
            self.lanes.iter_mut().filter(|lane| lane.needs_wakeup).for_each(Lane::wake_reader);
        }
        self.fresh = 0;
    }
}

impl Lane {
    /// Returns the hold counter of the peer for a slot of the segment.
    fn holds(&self, slot: u32) -> &AtomicU64 {
        &self.memory.holds()[slot as usize]
    }

    /// Adds a hold of the peer on a loan, and returns its piece.
    fn hold(&self, lent: &Lent, band: Band) -> Piece {
        match self.handover(lent, band) {
            Some(handover) => handover.put(lent),
            None => {
                let piece = lent.piece();
                self.holds(piece.slot).fetch_add(1, Ordering::Relaxed);
                piece
            }
        }
    }

    /// Removes the last hold, because its datagram was not written.
    fn release_hold(&self, lent: &Lent, band: Band) {
        match self.handover(lent, band) {
            Some(handover) => handover.take_back(),
            None => drop(self.holds(lent.piece().slot).fetch_sub(1, Ordering::Relaxed)),
        }
    }

    /// Returns the queue for objects, if the loan is an object.
    fn handover(&self, lent: &Lent, band: Band) -> Option<&HandOver> {
        let handovers = self.handovers.as_ref().filter(|_| lent.object().is_some())?;
        Some(&handovers[band as usize])
    }

    /// Withdraws the offered queues of a closed lane.
    fn withdraw(&self, own_name: u64) {
        if self.handovers.is_some() {
            handover::withdraw(own_name, self.name);
        }
    }

    fn wake_reader(&mut self) {
        self.needs_wakeup = false;
        if ring::needs_wakeup(self.memory.ring(Band::Common)) {
            // A failure means that the socket is full of wake-ups, or that the peer is gone, which
            // is detected elsewhere.
            drop(syscall::send(self.socket.as_fd(), &BELL, &[]));
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.lanes.iter().for_each(|lane| lane.withdraw(self.own_name));
    }
}

/// Counts a datagram to a participant without a lane.
fn count(error: &io::Error, stats: &mut TransportStats) {
    let errors = &mut stats.send_errors;
    match error.kind() {
        io::ErrorKind::ConnectionRefused => errors.refused += 1,
        io::ErrorKind::PermissionDenied => errors.denied += 1,
        io::ErrorKind::WouldBlock => errors.would_block += 1,
        _ => errors.no_buffers += 1,
    }
}
