//! Lanes to others: opened at the first datagram, closed when the other end is gone.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use takt_wire::{Lent, Piece};

use super::handover::{self, HandOver};
use super::hello::{BELL, Hello};
use super::host::Host;
use super::mapping::Mapping;
use super::ports::LENDS;
use super::ring::{self, Ports, Refusal, Tail, Word};
use super::segment::{Loan, Segment};
use super::syscall;
use crate::TransportStats;
use crate::udp::syscall::epoll_add;

/// Participants that are remembered as gone or unreachable; the oldest makes room.
const GONE_MAX: usize = 1024;

/// Epoll tokens of connections to others; those from others have this bit clear.
pub(super) const OUTGOING: u64 = 1 << 63;

/// The lane to one participant.
#[derive(Debug)]
struct Lane {
    name: u64,
    token: u64,
    socket: OwnedFd,
    memory: Mapping,
    /// For objects, if the participant is one of this process.
    handover: Option<Arc<HandOver>>,
    tail: Tail,
    /// Something was written since the last bell.
    is_fresh: bool,
}

/// All lanes to others.
#[derive(Debug)]
pub(super) struct Outgoing {
    host: Host,
    own_name: u64,
    words: usize,
    lanes_max: usize,
    /// What is lent to all of them.
    pub(super) segment: Segment,
    /// By name.
    lanes: Vec<Lane>,
    /// Where the last datagram went.
    last: usize,
    /// How many lanes are fresh.
    fresh: usize,
    gone: VecDeque<u64>,
    /// Whose lane was closed, until somebody asks.
    lost: Vec<u64>,
    next_token: u64,
}

impl Outgoing {
    /// Words are those of a lane's records. Allocates all that it will ever need but the lanes.
    pub(super) fn new(host: Host, own_name: u64, words: usize, lanes_max: usize, segment: Segment) -> Self {
        Self {
            host,
            own_name,
            words: ring::RECORDS + words,
            lanes_max,
            segment,
            lanes: Vec::with_capacity(lanes_max),
            last: 0,
            fresh: 0,
            gone: VecDeque::with_capacity(GONE_MAX),
            lost: Vec::with_capacity(lanes_max),
            next_token: OUTGOING,
        }
    }

    /// Whether a participant is not known to be gone.
    pub(super) fn may_reach(&self, name: u64) -> bool {
        self.find(name).is_ok() || !self.gone.contains(&name)
    }

    fn find(&self, name: u64) -> Result<usize, usize> {
        match self.lanes.get(self.last) {
            Some(lane) if lane.name == name => Ok(self.last),
            _ => self.lanes.binary_search_by_key(&name, |lane| lane.name),
        }
    }

    /// Opens the lane to a participant, if there is none. Says whether there is one now.
    pub(super) fn open(&mut self, name: u64, epoll: BorrowedFd<'_>) -> bool {
        match self.find(name) {
            Ok(_) => true,
            Err(at) => self.connect(at, name, epoll).is_ok(),
        }
    }

    /// Memory for a payload that is to be lent; `None` if there is none.
    pub(super) fn loan(&mut self, len: usize) -> Option<Loan> {
        let lanes = &self.lanes;
        let is_held = |slot: u32| lanes.iter().any(|lane| lane.holds(slot).load(Ordering::Acquire) != 0);
        self.segment.loan(len, is_held)
    }

    /// Whether the lane to a participant leads to this process.
    pub(super) fn stays_here(&self, name: u64) -> bool {
        self.find(name).is_ok_and(|at| self.lanes[at].handover.is_some())
    }

    /// A copy of an object's bytes, to be lent in its place where the object cannot go.
    pub(super) fn copy(&mut self, object: &Lent) -> Option<Lent> {
        let bytes = object.bytes()?;
        let mut loan = self.loan(bytes.len())?;
        loan.bytes_mut().copy_from_slice(bytes);
        Some(loan.finish(bytes.len()))
    }

    /// Writes a datagram for a participant, who hears of it at the latest with [`ring_bells`](Self::ring_bells). What is `lent`
    /// goes with it; its piece takes the frame's last bytes, and the participant holds it from now on.
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
        let ports = match lent {
            Some(lent) => {
                let piece = lane.hold(lent);
                if let Some(room) = frame.last_chunk_mut() {
                    *room = piece.to_bytes();
                }
                Ports { to: ports.to | LENDS, ..ports }
            }
            None => ports,
        };
        let result = lane.tail.push(lane.memory.ring(), ports, frame);
        if let Some(lent) = lent.filter(|_| result.is_err()) {
            lane.let_go(lent);
        }
        match result {
            Ok(()) => {
                if !lane.is_fresh {
                    lane.is_fresh = true;
                    self.fresh += 1;
                }
                stats.datagrams_out += 1;
                stats.bytes_out += frame.len() as u64;
            }
            Err(Refusal::Full) => stats.send_errors.would_block += 1,
            Err(Refusal::Broken) => {
                stats.send_errors.other += 1;
                self.close(at);
            }
        }
    }

    /// Opens the lane to `name`, at its place among the others.
    #[cold]
    fn connect(&mut self, at: usize, name: u64, epoll: BorrowedFd<'_>) -> io::Result<()> {
        if self.gone.contains(&name) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if self.lanes.len() == self.lanes_max {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let lane = match self.greet(name, epoll) {
            Ok(lane) => lane,
            Err(error) => {
                // Lack of room there, or of descriptors here, may pass; a name that nobody answers to will not come back.
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
        let (memory, file) = Mapping::create(self.words)?;
        let (words, segment) = (self.words as u64, self.segment.words() as u64);
        let hello = Hello { tag: self.host.tag(), name: self.own_name, words, segment };
        let handover = peer.is_this_process.then(|| handover::offer(self.own_name, name));
        syscall::send(socket.as_fd(), &hello.to_bytes(), &[file.as_fd(), self.segment.file()])?;
        let token = self.next_token;
        epoll_add(epoll, socket.as_fd(), token)?;
        self.next_token = OUTGOING | (token + 1);
        Ok(Lane { name, token, socket, memory, handover, tail: Tail::default(), is_fresh: false })
    }

    fn forget(&mut self, name: u64) {
        if self.gone.len() == GONE_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back(name);
    }

    fn close(&mut self, at: usize) {
        let lane = self.lanes.remove(at);
        self.fresh -= usize::from(lane.is_fresh);
        lane.withdraw(self.own_name);
        self.forget(lane.name);
        // Nobody asks, if nobody wanted to know.
        if self.lost.len() < self.lanes_max {
            self.lost.push(lane.name);
        }
    }

    /// A participant whose lane was closed.
    pub(super) fn poll_lost(&mut self) -> Option<u64> {
        self.lost.pop()
    }

    /// Something is to be read on a connection, where nothing but its end is expected.
    pub(super) fn handle_ready(&mut self, token: u64) {
        let Some(at) = self.lanes.iter().position(|lane| lane.token == token) else { return };
        let received = syscall::receive(self.lanes[at].socket.as_fd(), &mut [0; 8]);
        if !received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            self.close(at);
        }
    }

    /// Wakes those who sleep and for whom something was written.
    pub(super) fn ring_bells(&mut self) {
        if self.fresh == 0 {
            return;
        }
        AtomicU64::fence();
        if self.fresh == 1
            && let Some(lane) = self.lanes.get_mut(self.last)
            && lane.is_fresh
        {
            lane.ring_bell();
        } else {
            self.lanes.iter_mut().filter(|lane| lane.is_fresh).for_each(Lane::ring_bell);
        }
        self.fresh = 0;
    }
}

impl Lane {
    /// How often the other end holds what lies in a slot of the segment.
    fn holds(&self, slot: u32) -> &AtomicU64 {
        &self.memory.holds()[slot as usize]
    }

    /// The other end holds what is lent from now on. Says where that is.
    fn hold(&self, lent: &Lent) -> Piece {
        match &self.handover {
            Some(handover) if lent.object().is_some() => handover.put(lent),
            _ => {
                let piece = lent.piece();
                self.holds(piece.slot).fetch_add(1, Ordering::Relaxed);
                piece
            }
        }
    }

    /// What was held last did not get there.
    fn let_go(&self, lent: &Lent) {
        match &self.handover {
            Some(handover) if lent.object().is_some() => handover.take_back(),
            _ => drop(self.holds(lent.piece().slot).fetch_sub(1, Ordering::Relaxed)),
        }
    }

    /// The lane is no more.
    fn withdraw(&self, own_name: u64) {
        if self.handover.is_some() {
            handover::withdraw(own_name, self.name);
        }
    }

    fn ring_bell(&mut self) {
        self.is_fresh = false;
        if ring::needs_bell(self.memory.ring()) {
            // If it fails, its socket is full of bells, or it is gone, which is noticed elsewhere.
            drop(syscall::send(self.socket.as_fd(), &BELL, &[]));
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.lanes.iter().for_each(|lane| lane.withdraw(self.own_name));
    }
}

/// Counts a datagram to a participant to whom there is no lane.
fn count(error: &io::Error, stats: &mut TransportStats) {
    let errors = &mut stats.send_errors;
    match error.kind() {
        io::ErrorKind::ConnectionRefused => errors.refused += 1,
        io::ErrorKind::PermissionDenied => errors.denied += 1,
        io::ErrorKind::WouldBlock => errors.would_block += 1,
        _ => errors.no_buffers += 1,
    }
}
