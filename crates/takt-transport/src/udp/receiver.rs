//! Receiving: which socket to ask, and the batch of datagrams taken from it.
//!
//! Asking a socket costs a system call, so a spinning receiver asks only *hot*
//! ones: those of user data, and those that were heard a moment ago. One epoll
//! instance watches all but the default flow's and names, now and then, those
//! that have something. The descriptors to wait for are the default flow's
//! sockets and that epoll instance, so flows come and go without anyone who
//! waits having to know, and user data takes no detour.
//!
//! Sockets of *urgent* flows, which have a port and a priority of their own, are asked before all others and one datagram at a
//! time, so that a less urgent one does not stand before a more urgent one that had arrived. Behind [`URGENT_IN_ROW_MAX`] of them in
//! a row comes one of the others, if there is one: nobody who floods an urgent port keeps discovery from being heard.
//!
//! The batch grows with what is queued: one datagram per call while there is
//! no more (the cheapest call, and one page of memory), up to [`BATCH`] under load.

use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use takt_wire::Locator;

use super::address::Family;
use super::socket::Socket;
use super::syscall::{self, Incoming};
use super::train;
use super::watch::{News, Watch};
use crate::ahead::URGENT_IN_ROW_MAX;
use crate::{FlowId, Interface, RxMeta, Scan, TransportError, TransportStats};

/// Most datagrams taken by one call.
const BATCH: usize = 32;

/// Distance of two datagrams in the buffer: room for the largest one, and one
/// cache line more, so that their first lines do not compete for one cache set.
const STRIDE: usize = 65_536 + 64;

/// Every how many calls the sockets that are not hot are looked at.
const COLD_INTERVAL: u32 = 32;

/// How many futile calls a socket stays hot after it was heard.
const ATTENTION: u32 = 64;

/// What the epoll instance calls the watch for interfaces.
const WATCH: u64 = u64::MAX;

/// How many sockets are asked at every call in any case.
const PINNED_MAX: usize = 4;

/// What a receiving socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Discovery by unicast.
    Metatraffic,
    /// Discovery or user data by multicast, sent to this group.
    Group(IpAddr),
    /// User data by unicast, of this flow.
    User(FlowId),
}

#[derive(Debug)]
struct Listener {
    socket: Socket,
    role: Role,
    /// Above 0 it is asked before others, the larger the earlier.
    urgency: i32,
    /// Asked at every call, whatever was heard.
    pinned: bool,
    /// Futile calls left until it is not hot any more; 0 is cold.
    attention: u32,
    /// How many datagrams to ask for.
    appetite: usize,
    /// The last call found something.
    busy: bool,
    /// The kernel hands out trains of datagrams in one piece; `None`: it does not, and is not to.
    trains: Option<bool>,
}

/// The receiving half of a UDP transport.
#[derive(Debug)]
pub(super) struct Receiver {
    epoll: OwnedFd,
    /// The default flow's sockets and `epoll`.
    descriptors: Vec<RawFd>,
    listeners: Vec<Option<Listener>>,
    /// Indices into `listeners` of those to be asked at every call.
    hot: Vec<usize>,
    /// Indices into `listeners` of the urgent ones, the most urgent first. They are never hot.
    urgent: Vec<usize>,
    /// How many of theirs [`recv`](Self::recv) has handed out since the last one of the others.
    urgent_in_row: u32,
    /// Where in `hot` to begin, so that nobody starves behind a busy socket.
    turn: usize,
    calls: u32,
    /// Indices of the chosen interfaces.
    interfaces: Vec<u32>,
    /// Hears of interfaces that come and go.
    watch: Option<Watch>,
    /// A user socket is not pinned since there are too many.
    crowded: bool,
    /// Whether the sources of user data are asked for.
    names: bool,
    /// What the kernel dropped at sockets that are closed.
    former_drops: u64,
    /// Under load trains of datagrams are taken in one piece.
    trains: bool,
    batch: Batch,
    /// Of urgent sockets; with room for one datagram, once there are any.
    urgent_batch: Batch,
}

/// Datagrams taken from one socket and not yet handed out.
struct Batch {
    buffer: Vec<u8>,
    incoming: [Incoming; BATCH],
    next: usize,
    /// Where in that one to go on, if it is a train.
    part: usize,
    count: usize,
    /// Which listener gave it.
    from: usize,
    role: Role,
    local: Locator,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({} of {})", self.next, self.count)
    }
}

impl Receiver {
    pub(super) fn new(interfaces: &[Interface], trains: bool) -> io::Result<Self> {
        let epoll = syscall::epoll()?;
        Ok(Self {
            descriptors: vec![epoll.as_raw_fd()],
            epoll,
            listeners: Vec::new(),
            hot: Vec::new(),
            urgent: Vec::new(),
            urgent_in_row: 0,
            turn: 0,
            calls: 0,
            interfaces: interfaces.iter().map(|i| i.index).collect(),
            watch: None,
            crowded: false,
            names: false,
            former_drops: 0,
            trains,
            batch: Batch::new(BATCH),
            urgent_batch: Batch::new(0),
        })
    }

    /// Hears of interfaces that come and go from now on.
    pub(super) fn watch(&mut self, watch: Watch) -> io::Result<()> {
        syscall::epoll_add(self.epoll.as_fd(), watch.as_fd(), WATCH)?;
        self.watch = Some(watch);
        Ok(())
    }

    /// Whether there are news of interfaces.
    pub(super) fn has_news(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::has_news)
    }

    /// The news of interfaces since the last call.
    pub(super) fn take_news(&mut self) -> Option<News> {
        self.watch.as_mut().and_then(Watch::take)
    }

    /// The chosen interfaces are these now.
    pub(super) fn set_interfaces(&mut self, interfaces: &[Interface]) {
        self.interfaces = interfaces.iter().map(|i| i.index).collect();
    }

    /// All sockets, with what they are for.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (Role, &Socket)> {
        self.listeners.iter().flatten().map(|listener| (listener.role, &listener.socket))
    }

    /// The socket of a group, if there is one.
    pub(super) fn group_socket(&self, group: IpAddr, port: u16) -> Option<&Socket> {
        self.sockets().find(|(role, socket)| *role == Role::Group(group) && socket.port() == port).map(|(_, s)| s)
    }

    /// Replaces the unicast sockets of one address family by what `open` makes for their role and the former socket.
    /// What the former ones had queued is lost. If `open` fails, the former socket stays.
    pub(super) fn bind_anew(
        &mut self,
        v4: bool,
        mut open: impl FnMut(Role, &Socket) -> Result<Socket, TransportError>,
    ) -> Result<(), TransportError> {
        let is_concerned = |l: &Listener| !matches!(l.role, Role::Group(_)) && (l.socket.family == Family::V4) == v4;
        for at in 0..self.listeners.len() {
            let Some(former) = self.listeners[at].as_ref().filter(|l| is_concerned(l)) else { continue };
            let socket = open(former.role, &former.socket)?;
            let Some(Listener { role, urgency, socket: former, .. }) = self.listeners[at].take() else { continue };
            self.former_drops += u64::from(former.drops());
            self.forget(at);
            self.descriptors.retain(|descriptor| *descriptor != former.raw_fd());
            drop(former);
            let local = socket.local;
            self.add(socket, role, urgency).map_err(|e| TransportError::new("watch socket", local, e))?;
        }
        Ok(())
    }

    /// Asks for the sources of user data from now on.
    pub(super) fn name_sources(&mut self) {
        self.names = true;
    }

    pub(super) fn descriptors(&self) -> &[RawFd] {
        &self.descriptors
    }

    /// Receives from `socket` from now on; before others if it is `urgent`, which is above 0.
    pub(super) fn add(&mut self, socket: Socket, role: Role, urgency: i32) -> io::Result<()> {
        let free = self.listeners.iter().position(Option::is_none);
        let at = free.unwrap_or(self.listeners.len());
        if role == Role::User(FlowId::DEFAULT) {
            self.descriptors.insert(0, socket.raw_fd());
        } else {
            syscall::epoll_add(self.epoll.as_fd(), socket.as_fd(), at as u64)?;
        }
        let user = matches!(role, Role::User(_));
        let is_urgent = urgency > 0;
        let pinned = user && !is_urgent && self.pinned() < PINNED_MAX;
        let trains = (user && !is_urgent && self.trains).then_some(false);
        let listener = Some(Listener { socket, role, urgency, pinned, attention: 0, appetite: 1, busy: false, trains });
        match free {
            Some(at) => self.listeners[at] = listener,
            None => self.listeners.push(listener),
        }
        if pinned {
            self.hot.push(at);
        }
        if is_urgent {
            let urgency_of = |at: &usize| self.listeners[*at].as_ref().map_or(0, |listener| listener.urgency);
            let place = self.urgent.partition_point(|other| urgency_of(other) >= urgency);
            self.urgent.insert(place, at);
            self.urgent_batch.make_room(1);
        }
        // Room for all at once, so that nothing allocates later.
        self.hot.reserve(self.listeners.len() - self.hot.len());
        self.count_crowd();
        Ok(())
    }

    /// Closes the sockets of a flow. What they had queued is lost.
    pub(super) fn remove(&mut self, flow: FlowId) {
        for batch in [&mut self.batch, &mut self.urgent_batch] {
            if batch.role == Role::User(flow) {
                batch.count = 0;
            }
        }
        for at in 0..self.listeners.len() {
            if let Some(listener) = self.listeners[at].take_if(|l| l.role == Role::User(flow)) {
                self.former_drops += u64::from(listener.socket.drops());
                self.forget(at);
            }
        }
        self.count_crowd();
    }

    /// A listener has gone.
    fn forget(&mut self, at: usize) {
        self.hot.retain(|other| *other != at);
        self.urgent.retain(|other| *other != at);
    }

    fn pinned(&self) -> usize {
        let open = self.listeners.iter().flatten();
        open.filter(|l| l.pinned).count()
    }

    fn count_crowd(&mut self) {
        let unpinned = |l: &Listener| matches!(l.role, Role::User(_)) && !l.pinned && l.urgency <= 0;
        self.crowded = self.listeners.iter().flatten().any(unpinned);
    }

    /// Datagrams that the kernel dropped since a receive buffer was full. A system call per socket.
    pub(super) fn kernel_drops(&self) -> u64 {
        let open = self.listeners.iter().flatten();
        self.former_drops + open.map(|listener| u64::from(listener.socket.drops())).sum::<u64>()
    }

    /// The next datagram: an urgent one, one of the batch, or else of the next one.
    pub(super) fn recv(&mut self, scan: Scan, stats: &mut TransportStats) -> Option<(&[u8], RxMeta)> {
        let asks_urgent = !self.urgent.is_empty() && scan != Scan::Taken;
        let is_others_turn = self.urgent_in_row >= URGENT_IN_ROW_MAX;
        if asks_urgent
            && !is_others_turn
            && let Some((range, meta)) = self.next_urgent(0, stats)
        {
            self.urgent_in_row += 1;
            return Some((&self.urgent_batch.buffer[range], meta));
        }
        self.urgent_in_row = 0;
        if let Some((range, meta)) = self.next_other(scan, stats) {
            return Some((&self.batch.buffer[range], meta));
        }
        if asks_urgent && is_others_turn { self.recv_urgent(0, stats) } else { None }
    }

    fn next_other(&mut self, scan: Scan, stats: &mut TransportStats) -> Option<(Range<usize>, RxMeta)> {
        loop {
            if let Some(next) = self.batch.next(&self.interfaces, stats) {
                return Some(next);
            }
            if scan == Scan::Taken {
                self.pause();
                return None;
            }
            if !self.refill(scan, stats) {
                return None;
            }
        }
    }

    /// The next datagram of a flow that is not urgent.
    pub(super) fn recv_common(&mut self, scan: Scan, stats: &mut TransportStats) -> Option<(&[u8], RxMeta)> {
        let (range, meta) = self.next_other(scan, stats)?;
        Some((&self.batch.buffer[range], meta))
    }

    /// The next datagram of the most urgent flow above `above` that has one.
    pub(super) fn recv_urgent(&mut self, above: i32, stats: &mut TransportStats) -> Option<(&[u8], RxMeta)> {
        let (range, meta) = self.next_urgent(above, stats)?;
        Some((&self.urgent_batch.buffer[range], meta))
    }

    /// Takes one datagram of the most urgent socket above `above` that has one. What it leaves in the batch is read by the caller
    /// at once, so there is never one left over.
    fn next_urgent(&mut self, above: i32, stats: &mut TransportStats) -> Option<(Range<usize>, RxMeta)> {
        let Self { listeners, urgent, urgent_batch, interfaces, names, .. } = self;
        for at in urgent {
            let Some(listener) = &mut listeners[*at] else {
                unreachable!("who is removed is removed from the urgent ones too");
            };
            if listener.urgency <= above {
                return None;
            }
            while listener.ask(urgent_batch, *names, stats) {
                if let Some(next) = urgent_batch.next(interfaces, stats) {
                    return Some(next);
                }
            }
        }
        None
    }

    /// Nobody asks whether there is more: the lone datagram taken last was not the beginning of many.
    fn pause(&mut self) {
        if let Some(listener) = self.listeners.get_mut(self.batch.from).and_then(Option::as_mut) {
            listener.busy = false;
        }
    }

    /// Fills the batch from one socket that has something. `false` if none has.
    fn refill(&mut self, scan: Scan, stats: &mut TransportStats) -> bool {
        self.calls = self.calls.wrapping_add(1);
        if self.crowded || self.calls.is_multiple_of(COLD_INTERVAL) {
            self.heat_ready();
        }
        if self.ask_hot(stats) {
            return true;
        }
        scan == Scan::All && self.heat_ready() && self.ask_hot(stats)
    }

    /// Makes hot who is ready; `false` if nobody is.
    fn heat_ready(&mut self) -> bool {
        let (listeners, hot) = (&mut self.listeners, &mut self.hot);
        let watch = &mut self.watch;
        let ready = syscall::epoll_ready(self.epoll.as_fd(), |token| {
            if token == WATCH {
                return watch.iter_mut().for_each(Watch::listen);
            }
            let at = token as usize;
            if let Some(listener) = listeners.get_mut(at).and_then(Option::as_mut) {
                if listener.attention == 0 && !listener.pinned && listener.urgency <= 0 {
                    hot.push(at);
                }
                listener.attention = ATTENTION;
            }
        });
        // It can only fail for a descriptor that is no epoll instance.
        ready.is_ok_and(|count| count > 0)
    }

    fn ask_hot(&mut self, stats: &mut TransportStats) -> bool {
        for _ in 0..self.hot.len() {
            if self.turn >= self.hot.len() {
                self.turn = 0;
            }
            let at = self.hot[self.turn];
            let Some(listener) = &mut self.listeners[at] else {
                unreachable!("who is removed is removed from the hot ones too");
            };
            if listener.ask(&mut self.batch, self.names, stats) {
                self.batch.from = at;
                listener.attention = ATTENTION;
                self.turn += 1;
                return true;
            }
            listener.attention = listener.attention.saturating_sub(1);
            if listener.attention == 0 && !listener.pinned {
                self.hot.swap_remove(self.turn);
            } else {
                self.turn += 1;
            }
        }
        false
    }
}

impl Listener {
    /// Fills the batch with what is queued here; `false` if nothing is.
    fn ask(&mut self, batch: &mut Batch, names: bool, stats: &mut TransportStats) -> bool {
        let named = names || !matches!(self.role, Role::User(_));
        let count = match self.receive(batch, named) {
            Ok(count) => count,
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {
                self.appetite = 1;
                self.busy = false;
                return false;
            }
            Err(_) => {
                // The network's answer to something sent earlier. Reading it
                // clears it, so what is queued behind comes with a second call.
                stats.receive_errors += 1;
                match self.receive(batch, named) {
                    Ok(count) => count,
                    Err(_) => return false,
                }
            }
        };
        self.appetite = match count == self.appetite {
            // What is left in the kernel can still be passed by.
            _ if self.urgency > 0 => 1,
            // A lone datagram is often followed by none: a second one at once is needed to ask for more.
            true if self.busy => (count * 2).min(BATCH),
            true => count,
            false => count.max(1),
        };
        self.busy = true;
        if self.trains == Some(false) && train::is_load(&batch.incoming[..count]) {
            // A kernel that does not know it hands out one datagram at a time, as before.
            self.trains = syscall::join_segments(self.socket.as_fd()).is_ok().then_some(true);
        }
        batch.next = 0;
        batch.part = 0;
        batch.count = count;
        batch.role = self.role;
        batch.local = self.socket.local;
        count > 0
    }

    fn receive(&mut self, batch: &mut Batch, named: bool) -> io::Result<usize> {
        let fd = self.socket.as_fd();
        let control_matters = matches!(self.role, Role::Group(IpAddr::V6(_)));
        if self.appetite == 1 && !control_matters && self.trains != Some(true) {
            let slot = &mut batch.buffer[..STRIDE];
            syscall::receive_one(fd, &mut batch.incoming[0], slot, named)?;
            return Ok(1);
        }
        let incoming = &mut batch.incoming[..self.appetite];
        syscall::receive(fd, incoming, &mut batch.buffer, STRIDE)
    }
}

impl Batch {
    /// One with room for so many datagrams.
    fn new(room: usize) -> Self {
        let mut batch = Self {
            buffer: Vec::new(),
            incoming: [Incoming::EMPTY; BATCH],
            next: 0,
            part: 0,
            count: 0,
            from: 0,
            role: Role::Metatraffic,
            local: Locator::INVALID,
        };
        batch.make_room(room);
        batch
    }

    fn make_room(&mut self, datagrams: usize) {
        if self.buffer.len() < datagrams * STRIDE {
            // Zeroed memory comes from the kernel page by page when touched.
            self.buffer = vec![0; datagrams * STRIDE];
        }
    }

    /// The next datagram that is whole and came by a chosen interface: where it stands in the buffer.
    #[inline]
    fn next(&mut self, interfaces: &[u32], stats: &mut TransportStats) -> Option<(Range<usize>, RxMeta)> {
        while self.next < self.count {
            let (at, part) = self.step();
            if self.incoming[at].truncated {
                stats.truncated += 1;
                continue;
            }
            let Some(meta) = self.meta(at, interfaces) else {
                continue;
            };
            stats.datagrams_in += 1;
            stats.joined_in += u64::from(part.len() < self.incoming[at].len as usize);
            stats.bytes_in += part.len() as u64;
            return Some((at * STRIDE + part.start..at * STRIDE + part.end, meta));
        }
        None
    }

    /// Goes on to the next datagram: which buffer it is in, and where in that.
    fn step(&mut self) -> (usize, Range<usize>) {
        let (at, start) = (self.next, self.part);
        let incoming = &self.incoming[at];
        let len = incoming.len as usize;
        let each = incoming.control.segment_len().filter(|_| !incoming.truncated).unwrap_or(len);
        let end = len.min(start + each);
        (self.next, self.part) = if end < len { (at, end) } else { (at + 1, 0) };
        (at, start..end)
    }

    /// Where a datagram came from and how; `None` if it came by an interface
    /// that is not chosen. (An IPv6 socket hears its groups from all interfaces,
    /// wherever it joined them; the other sockets are spared by the kernel.)
    fn meta(&self, at: usize, interfaces: &[u32]) -> Option<RxMeta> {
        let incoming = &self.incoming[at];
        let mut meta = RxMeta {
            source: incoming.address.to_locator(),
            local: self.local,
            flow: FlowId::DEFAULT,
            multicast: false,
        };
        match self.role {
            Role::Metatraffic => {}
            Role::User(flow) => meta.flow = flow,
            Role::Group(IpAddr::V4(_)) => meta.multicast = true,
            Role::Group(IpAddr::V6(_)) => {
                let (address, ifindex) = incoming.control.arrival_v6()?;
                if !interfaces.contains(&ifindex) {
                    return None;
                }
                meta.local = Locator::udp_v6(address, self.local.port as u16);
                meta.multicast = address.is_multicast();
            }
        }
        Some(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Control;
    use super::*;

    /// What `step` makes of a datagram of `len` octets that consists of parts of `each`.
    fn parts(len: u32, each: i32, truncated: bool) -> Vec<(usize, Range<usize>)> {
        let mut batch = Receiver::new(&[], true).expect("an epoll instance").batch;
        batch.incoming[1] = Incoming { len, truncated, control: Control::joined(each), ..Incoming::EMPTY };
        (batch.next, batch.count) = (1, 2);
        let mut parts = Vec::new();
        while batch.next < batch.count {
            parts.push(batch.step());
        }
        parts
    }

    #[test]
    fn a_train_is_taken_apart() {
        assert_eq!(parts(250, 100, false), [(1, 0..100), (1, 100..200), (1, 200..250)]);
        assert_eq!(parts(200, 100, false), [(1, 0..100), (1, 100..200)]);
        assert_eq!(parts(100, 100, false), [(1, 0..100)]);
        assert_eq!(parts(60, 100, false), [(1, 0..60)]);
        assert_eq!(parts(0, 100, false), [(1, 0..0)], "a datagram may be empty");
    }

    #[test]
    fn what_the_kernel_cannot_have_said_does_no_harm() {
        for each in [0, -1, i32::MIN] {
            assert_eq!(parts(250, each, false), [(1, 0..250)]);
        }
        assert_eq!(parts(250, 100, true), [(1, 0..250)], "a train that did not fit is dropped whole");
    }
}
