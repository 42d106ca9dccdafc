//! Shared memory between the processes of one user on one host.
//!
//! # How
//! Each participant listens at a Unix socket with a random name (64 bits) in the abstract namespace, and announces
//! the name in its locators. Who sends to it for the first time makes a *lane*: an anonymous file of memory with a ring of
//! records ([`ring`]), which one process writes and one reads. Its descriptor is handed over with the first message
//! of a connection ([`hello`]). From then on a datagram is written into the ring and read out of it without the kernel. A
//! reader that is about to sleep says so in the lane; only then the next writer rings: a message of one byte on the
//! connection, which makes the reader's descriptor readable. A reader that spins is never rung for.
//!
//! A lane has two rings: one for what goes to flows with a port of their own and a priority above 0, which are told by their ports
//! ([`ports::Band`]), and one for the rest. The first is read before the second, and the most urgent of its next records before
//! others. So nothing that is less urgent stands before what is urgent, nor takes its room.
//!
//! A lane has one writer and one reader, so there are as many lanes as pairs that talk, and no process can be in the way of
//! any other two. There is no daemon, no lock and no file.
//!
//! # Who dies
//! A process that is killed at any instruction leaves lanes with whole records ([`ring`]). The kernel closes its
//! connections; the other ends notice, read what is left, and unmap. Who merely closes a lane that it reads says farewell on the
//! connection first ([`hello`]); so an end without one is the end of a process, and [`Transport::poll_lost`] tells which it was.
//! Nobody else can feign it: the connection was made to the name that the participant itself announces and holds, and whose
//! user the kernel has told. Socket names and memory are gone with the last process
//! that has them (a child that it forked without `exec` counts). Nothing is to be cleaned up, so nothing can leak.
//!
//! # Who lies
//! Other users are kept out by the kernel: both ends ask for the other's user (`SO_PEERCRED`) before anything is shared. A
//! process of the same user could do us any harm anyway; still, by what it writes into a lane or on a connection it can
//! neither crash us nor make us read out of bounds. Memory is sealed against shrinking before it is mapped, so no access
//! faults ([`mapping`]); words are atomic, positions and lengths are checked at each use, and datagrams are *copied* out
//! before anybody parses them. No call waits for the other side.
//!
//! # Who cannot be reached
//! A locator carries a tag of host, boot, network namespace and user ([`host`]); [`Transport::serves`] is false for any
//! other tag, and for whoever turned out to be gone. Containers with a network namespace of their own, other users
//! and other hosts are thus told apart before a datagram is sent to them. A full lane loses datagrams as a full socket buffer
//! does, counted as `would_block`.
//!
//! # Costs
//! `commit` copies the datagram into each destination's lane, `recv` copies it out; neither calls the kernel, nor does `flush`
//! unless somebody sleeps. `recv` with [`Scan::All`] and nothing to find is one system call. A participant without neighbours
//! has three descriptors and no memory that others could map. A lane is 36 MiB of address space on both sides, of which a reader
//! that keeps up makes 32 KiB real for each of its rings that is used, and one descriptor on each; all lanes of a process have a quarter of its descriptors at
//! most. Needs Linux 5.14.
//!
//! Payloads may stay where their sender wrote them, in its [`segment`], and be lent to whoever it has lanes to ([`borrowed`]).
//! Between participants of one process samples need not become payloads at all ([`handover`]).
//! A segment is 256 MiB of address space, of which what is lent at once becomes real, and a descriptor. It is made with the
//! first lane.
//!
//! Deliberately not here: multicast (a datagram goes to each reader's lane).

mod borrowed;
mod config;
mod descriptors;
mod handover;
mod hello;
mod host;
mod incoming;
mod mapping;
mod outgoing;
mod ports;
mod ring;
mod segment;
mod syscall;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use takt_wire::{Lent, Locator, Piece};

pub use config::ShmConfig;
use host::Host;
use incoming::{Arrival, Incoming, LISTENER, TOKENS};
use mapping::Mapping;
use outgoing::{OUTGOING, Outgoing};
use ports::{LENDS, METATRAFFIC, Ports, USER};
use ring::RECORD_LEN_MAX;
pub use segment::Loan;
pub(crate) use syscall::{own_user, peer};

use crate::ahead::URGENT_IN_ROW_MAX;
use crate::readiness::Waker;
use crate::udp::syscall::{BATCH, epoll, epoll_add, epoll_ready};
use crate::{
    FlowId, FlowSpec, Interface, Locators, Lost, RxFrame, RxMeta, Scan, Transport, TransportError, TransportStats,
};

/// Futile hot scans between two looks at the connections, which are a system call.
const SCANS_PER_LOOK: u32 = 1024;

/// Attempts to find a name that is free.
const NAMES_TRIED: usize = 8;

/// Datagrams to ports that are closed that one call passes over.
const STRAYS_PER_CALL: usize = 64;

/// How often one call tries to leave nothing behind while others keep sending to ports that are closed.
const ATTEMPTS_TO_SLEEP: usize = 16;

/// The epoll token of [`ShmTransport::again`].
const AGAIN: u64 = TOKENS - 1;

/// A participant's presence in shared memory. See the [module](self).
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
    /// What came with the last datagram.
    lent: Option<Lent>,
    /// Makes the descriptor readable when a call had to leave something.
    again: Waker,
    /// Hot scans since the last look at the connections.
    scans: u32,
    /// Datagrams that [`recv`](Transport::recv) has handed out since the last one that was not urgent.
    urgent_in_row: u32,
    stats: TransportStats,
}

impl ShmTransport {
    /// Listens for others. Allocates; later only for lanes, for the first of them or the first loan, and for the first of a size.
    ///
    /// # Errors
    /// What the machine refuses: a kernel that is too old, or a sandbox. Others are then reached otherwise. What is wrong with
    /// the configuration ([`ShmConfig::check`]).
    pub fn open(config: &ShmConfig) -> Result<Self, TransportError> {
        let failed = |op: &'static str| move |source| TransportError::new(op, "shared memory", source);
        let checked = config.check().map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what));
        checked.map_err(failed("configure"))?;
        let (name, listener) = listen().map_err(failed("listen for"))?;
        Mapping::probe().map_err(failed("create a file of"))?;
        Mapping::probe_address_space(config.address_space()).map_err(failed("reserve"))?;
        let host = Host::of(&listener).map_err(failed("identify the host for"))?;
        let epoll = epoll().map_err(failed("create an epoll instance for"))?;
        epoll_add(epoll.as_fd(), listener.as_fd(), LISTENER).map_err(failed("watch"))?;
        let again = Waker::new().map_err(failed("create an eventfd for"))?;
        epoll_add(epoll.as_fd(), again.as_fd(), AGAIN).map_err(failed("watch"))?;
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
            incoming: Incoming::new(host, name, listener, config.lanes_max),
            outgoing: Outgoing::new(host, name, config),
            ports: Ports::default(),
            frame: vec![0; RECORD_LEN_MAX],
            is_loaned: false,
            lent: None,
            again,
            scans: 0,
            urgent_in_row: 0,
            stats: TransportStats::default(),
        })
    }

    /// Looks at all connections that have news. Bounded by [`BATCH`] of them.
    fn look(&mut self) -> Result<(), TransportError> {
        let (mut tokens, mut count) = ([0; BATCH], 0);
        let result = epoll_ready(self.epoll.as_fd(), |token| {
            tokens[count] = token;
            count += 1;
        });
        result.map_err(|source| TransportError::new("epoll_wait", "shared memory", source))?;
        for token in &tokens[..count] {
            match *token {
                AGAIN => {
                    let was_set = self.again.reset();
                    debug_assert!(was_set.is_ok(), "an open eventfd can be read");
                }
                token if token & OUTGOING != 0 => self.outgoing.handle_ready(token),
                token => self.incoming.handle_ready(token, self.epoll.as_fd()),
            }
        }
        self.incoming.sweep();
        Ok(())
    }

    /// The most urgent datagram for a port that is open, more so than `above`.
    fn pop_urgent(&mut self, above: i32) -> Option<(Arrival, FlowId)> {
        for _ in 0..STRAYS_PER_CALL {
            let Ok(arrival) = self.incoming.pop_urgent(above, &self.ports)? else { continue };
            if let Some(flow) = self.ports.flow(arrival.ports.to) {
                return Some((arrival, flow));
            }
        }
        None
    }

    /// The next datagram for a port that is open. Behind [`URGENT_IN_ROW_MAX`] urgent ones in a row comes one of the others, if there is
    /// one.
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
        let common = self.pop_common();
        if has_urgent { common.or_else(|| self.pop_urgent(i32::MIN)) } else { common }
    }

    /// The next datagram that is not urgent.
    fn pop_common(&mut self) -> Option<(Arrival, FlowId)> {
        for _ in 0..STRAYS_PER_CALL {
            let arrival = self.incoming.pop()?;
            if let Some(flow) = self.ports.flow(arrival.ports.to) {
                return Some((arrival, flow));
            }
        }
        None
    }

    /// The next datagram, by [`pop`](Self::pop) or [`pop_common`](Self::pop_common); without one, others ring from now on. See [`Scan`].
    fn find(
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
                if self.scans < SCANS_PER_LOOK {
                    return Ok(None);
                }
                self.scans = 0;
                self.look()?;
                return Ok(pop(self));
            }
            Scan::Taken => {}
            Scan::All => self.look()?,
        }
        for _ in 0..ATTEMPTS_TO_SLEEP {
            if let Some(found) = pop(self) {
                return Ok(Some(found));
            }
            if self.incoming.fall_asleep() {
                return Ok(None);
            }
        }
        self.again.wake().map_err(|source| TransportError::new("write", "an eventfd", source))?;
        Ok(None)
    }
}

impl ShmTransport {
    /// Lends what was found.
    fn lend_out(&mut self, (arrival, flow): (Arrival, FlowId)) -> RxFrame<'_> {
        self.stats.datagrams_in += 1;
        self.stats.bytes_in += arrival.len as u64;
        let meta = RxMeta {
            source: self.host.locator(arrival.from, arrival.ports.from),
            local: self.host.locator(self.name, arrival.ports.to),
            flow,
            multicast: false,
        };
        self.lent = arrival.lent;
        RxFrame::new(&self.incoming.buffer()[..arrival.len], meta).with_lent(self.lent.as_ref())
    }

    /// Sends the first bytes of the frame, and what is lent with them, whose piece has its place behind.
    fn send(
        &mut self,
        len: usize,
        flow: FlowId,
        destinations: &[Locator],
        lent: Option<&Lent>,
    ) -> Result<(), TransportError> {
        let from = self.ports.source(flow)?;
        let len = if lent.is_some() { len.saturating_add(Piece::LEN) } else { len };
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
            let mut lent = lent;
            if let Some(object) = lent.filter(|lent| lent.object().is_some() && !self.outgoing.stays_here(name)) {
                copy = copy.or_else(|| self.outgoing.copy(object));
                lent = copy.as_ref();
                if lent.is_none() {
                    self.stats.send_errors.would_block += 1;
                    continue;
                }
            }
            let ports = ring::Ports { to: destination.port & !LENDS, from };
            let (frame, epoll) = (&mut self.frame[..len], self.epoll.as_fd());
            self.outgoing.send(name, ports, frame, lent, epoll, &mut self.stats);
        }
        Ok(())
    }
}

/// A socket at a random name, and that name.
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
    fn name(&self) -> &'static str {
        "shm"
    }

    fn serves(&self, locator: &Locator) -> bool {
        self.host.name(locator).is_some_and(|name| self.outgoing.may_reach(name))
    }

    fn stays_in_process(&self, locator: &Locator) -> bool {
        self.host.name(locator).is_some_and(|name| self.outgoing.stays_here(name))
    }

    fn reach(&mut self, locator: &Locator) -> bool {
        self.host.name(locator).is_some_and(|name| self.outgoing.open(name, self.epoll.as_fd()))
    }

    fn poll_lost(&mut self) -> Option<Lost> {
        let (name, has_ended) = self.outgoing.poll_lost(|name| self.incoming.is_read(name))?;
        Some(Lost { locator: self.host.locator(name, USER), has_ended })
    }

    fn interfaces(&self) -> &[Interface] {
        &[]
    }

    fn locators(&self) -> &Locators {
        &self.locators
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let (flow, port) = self.ports.open(spec)?;
        Ok((flow, port.map(|port| self.host.locator(self.name, port)).into_iter().collect()))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.flush()?;
        self.ports.close(flow)
    }

    fn scans_memory(&self) -> bool {
        true
    }

    fn max_message_len(&self) -> usize {
        RECORD_LEN_MAX
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.is_loaned = true;
        Ok(&mut self.frame)
    }

    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        self.send(len, flow, destinations, None)
    }

    fn lend(&mut self, len: usize) -> Option<Loan> {
        self.outgoing.loan(len)
    }

    fn commit_lent(
        &mut self,
        len: usize,
        flow: FlowId,
        destinations: &[Locator],
        lent: &Lent,
    ) -> Result<(), TransportError> {
        if lent.object().is_none() && !self.outgoing.owns(lent) {
            return Err(TransportError::new("commit", "a lent payload", io::ErrorKind::InvalidInput.into()));
        }
        self.send(len, flow, destinations, Some(lent))
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.outgoing.ring_bells();
        Ok(())
    }

    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.lent = None;
        let found = self.find(scan, Self::pop)?;
        Ok(found.map(|found| self.lend_out(found)))
    }

    fn recv_common(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.lent = None;
        let found = self.find(scan, Self::pop_common)?;
        Ok(found.map(|found| self.lend_out(found)))
    }

    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.lent = None;
        let found = if self.incoming.has_urgent() { self.pop_urgent(above) } else { None };
        Ok(found.map(|found| self.lend_out(found)))
    }

    fn descriptors(&self) -> &[RawFd] {
        &self.descriptors
    }

    fn stats(&self) -> TransportStats {
        TransportStats { receive_errors: self.incoming.refused + self.incoming.unfounded, ..self.stats }
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        self.host.name(destination)?;
        Some(self.host.locator(self.name, self.ports.source(flow).ok()?))
    }
}
