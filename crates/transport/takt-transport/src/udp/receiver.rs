//! Receiving half of the UDP transport: selection of sockets, and the batch of datagrams taken from
//! one.
//!
//! Polling a socket costs a system call, so a spinning receiver polls only *hot* sockets: those of
//! user data, and those that received a datagram recently. One epoll instance watches all others
//! except the default flow's, and occasionally reports those that are ready. The descriptors to
//! wait for are the sockets of the default flow and that epoll instance. Flows therefore come and
//! go without notice to waiting threads, and user data takes no detour.
//!
//! Sockets of *urgent* flows, which have their own port and priority, are polled before all others
//! and one datagram at a time, so that a less urgent datagram never precedes a more urgent one that
//! had arrived. After [`URGENT_IN_ROW_MAX`] urgent datagrams in a row, one of the others follows,
//! if there is one. A flood at an urgent port thus does not starve discovery.
//!
//! The batch grows with the queue: one datagram per call while there is no more (the cheapest call,
//! and one page of memory), up to [`BATCH`] under load.

use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use takt_wire::Locator;

use super::address::Family;
use super::gso;
use super::socket::Socket;
use super::syscall::{self, Incoming};
use super::watch::{InterfaceChanges, Watch};
use crate::urgency_buffer::URGENT_IN_ROW_MAX;
use crate::{FlowId, Interface, RxMeta, Scan, TransportError, TransportStats};

/// Maximum number of datagrams of one call.
const BATCH: usize = 32;

/// Distance of two datagrams in the buffer: room for the largest one plus one cache line, so that
/// their first lines do not compete for one cache set.
const STRIDE: usize = 65_536 + 64;

/// Interval, in calls, between two polls of the sockets that are not hot.
const COLD_INTERVAL: u32 = 32;

/// Number of empty calls after which a socket stops being hot.
const HOT_CALLS: u32 = 64;

/// Epoll token of the watch for interfaces.
const WATCH: u64 = u64::MAX;

/// Epoll tokens from here on stand for fragment sockets: this number plus that of their flow.
const FRAGMENTS: u64 = 1 << 32;

/// Maximum number of sockets that are polled at every call.
const PINNED_MAX: usize = 4;

/// Role of a receiving socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Discovery by unicast.
    Metatraffic,
    /// Discovery or user data by multicast to this group.
    Group(IpAddr),
    /// User data by unicast to this flow.
    User(FlowId),
}

#[derive(Debug)]
struct Listener {
    socket: Socket,
    role: Role,
    /// Urgency; sockets above 0 are polled before others, in descending order.
    urgency: i32,
    /// Polled at every call, even without recent datagrams.
    pinned: bool,
    /// Remaining empty calls until the socket is not hot any more; 0 is cold.
    hot_calls_left: u32,
    /// Number of datagrams to request.
    batch_len: usize,
    /// The last call received a datagram.
    busy: bool,
    /// Whether the kernel coalesces datagrams (GRO); `None`: not supported or not configured.
    gro: Option<bool>,
}

/// Receiving half of a UDP transport.
#[derive(Debug)]
pub(super) struct Receiver {
    epoll: OwnedFd,
    /// Sockets of the default flow, and `epoll`.
    descriptors: Vec<RawFd>,
    listeners: Vec<Option<Listener>>,
    /// Indices in `listeners` of those to be polled at every call.
    hot: Vec<usize>,
    /// Indices in `listeners` of the urgent ones, most urgent first. They are never hot.
    urgent: Vec<usize>,
    /// Urgent datagrams that [`recv`](Self::recv) returned since the last one that was not urgent.
    urgent_in_row: u32,
    /// Start index in `hot`; it advances, so that a busy socket does not starve others.
    next_hot: usize,
    calls: u32,
    /// Indices of the selected interfaces.
    interfaces: Vec<u32>,
    /// Watch for changes of interfaces.
    watch: Option<Watch>,
    /// Flows of which a fragment socket that was full has room.
    with_room: Vec<FlowId>,
    /// A user socket is not pinned because there are too many.
    has_unpinned: bool,
    /// Whether the sources of user data are requested.
    reports_sources: bool,
    /// Datagrams that the kernel dropped at closed sockets.
    closed_socket_drops: u64,
    /// Whether GRO is enabled under load.
    gro: bool,
    batch: Batch,
    /// Batch of urgent sockets; has room for one datagram once there is such a socket.
    urgent_batch: Batch,
}

/// Datagrams taken from one socket and not yet returned.
struct Batch {
    buffer: Vec<u8>,
    incoming: [Incoming; BATCH],
    next: usize,
    /// Offset of the next datagram in the current buffer, if the kernel coalesced several.
    part: usize,
    count: usize,
    /// Index of the listener of the batch.
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
    pub(super) fn new(interfaces: &[Interface], gso: bool) -> io::Result<Self> {
        let epoll = syscall::epoll()?;
        Ok(Self {
            descriptors: vec![epoll.as_raw_fd()],
            epoll,
            listeners: Vec::new(),
            hot: Vec::new(),
            urgent: Vec::new(),
            urgent_in_row: 0,
            next_hot: 0,
            calls: 0,
            interfaces: interfaces.iter().map(|i| i.index).collect(),
            watch: None,
            with_room: Vec::new(),
            has_unpinned: false,
            reports_sources: false,
            closed_socket_drops: 0,
            gro: gso,
            batch: Batch::new(BATCH),
            urgent_batch: Batch::new(0),
        })
    }

    /// Starts to watch for changes of interfaces.
    pub(super) fn watch(&mut self, watch: Watch) -> io::Result<()> {
        syscall::epoll_add(self.epoll.as_fd(), watch.as_fd(), WATCH)?;
        self.watch = Some(watch);
        Ok(())
    }

    /// Adds a fragment socket of a flow, which [`await_room`](Self::await_room) watches.
    pub(super) fn add_fragment_socket(&mut self, socket: &Socket, flow: FlowId) -> io::Result<()> {
        self.with_room.reserve(2);
        syscall::epoll_add_output(self.epoll.as_fd(), socket.as_fd(), FRAGMENTS + u64::from(flow.0))
    }

    /// Makes [`next_with_room`](Self::next_with_room) return the flow once this fragment socket of
    /// it has room. The descriptors become readable then.
    pub(super) fn await_room(&self, socket: RawFd, flow: FlowId) -> io::Result<()> {
        syscall::epoll_await_room(self.epoll.as_fd(), socket, FRAGMENTS + u64::from(flow.0))
    }

    /// Returns the flow of a fragment socket that has room again.
    pub(super) fn next_with_room(&mut self) -> Option<FlowId> {
        self.with_room.pop()
    }

    /// Reports whether interfaces may have changed, once until
    /// [`take_changes`](Self::take_changes).
    pub(super) fn poll_change(&mut self) -> bool {
        self.watch.as_mut().is_some_and(Watch::poll)
    }

    /// Returns the changes of interfaces since the last call.
    pub(super) fn take_changes(&mut self) -> Option<InterfaceChanges> {
        self.watch.as_mut().and_then(Watch::take)
    }

    /// Sets the selected interfaces.
    pub(super) fn set_interfaces(&mut self, interfaces: &[Interface]) {
        self.interfaces = interfaces.iter().map(|i| i.index).collect();
    }

    /// Returns all sockets with their roles.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (Role, &Socket)> {
        self.listeners.iter().flatten().map(|listener| (listener.role, &listener.socket))
    }

    /// Returns the socket of a group, if there is one.
    pub(super) fn group_socket(&self, group: IpAddr, port: u16) -> Option<&Socket> {
        self.sockets().find(|(role, socket)| *role == Role::Group(group) && socket.port() == port).map(|(_, s)| s)
    }

    /// Replaces the unicast sockets of one address family by those that `open` makes for their role
    /// and the former socket. Datagrams queued at the former ones are lost. If `open` fails, the
    /// former socket stays.
    pub(super) fn rebind(
        &mut self,
        v4: bool,
        mut open: impl FnMut(Role, &Socket) -> Result<Socket, TransportError>,
    ) -> Result<(), TransportError> {
        let is_concerned = |l: &Listener| !matches!(l.role, Role::Group(_)) && (l.socket.family == Family::V4) == v4;
        for at in 0..self.listeners.len() {
            let Some(former) = self.listeners[at].as_ref().filter(|l| is_concerned(l)) else { continue };
            let socket = open(former.role, &former.socket)?;
            let Some(Listener { role, urgency, socket: former, .. }) = self.listeners[at].take() else { continue };
            self.closed_socket_drops += u64::from(former.drops());
            self.remove_index(at);
            self.descriptors.retain(|descriptor| *descriptor != former.raw_fd());
            drop(former);
            let local = socket.local;
            self.add(socket, role, urgency).map_err(|e| TransportError::new("watch socket", local, e))?;
        }
        Ok(())
    }

    /// Requests the sources of user data from now on.
    pub(super) fn report_sources(&mut self) {
        self.reports_sources = true;
    }

    pub(super) fn descriptors(&self) -> &[RawFd] {
        &self.descriptors
    }

    /// Adds a socket to receive from; it is polled before others if `urgency` is above 0.
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
        let gso = (user && !is_urgent && self.gro).then_some(false);
        let listener =
            Some(Listener { socket, role, urgency, pinned, hot_calls_left: 0, batch_len: 1, busy: false, gro: gso });
        match free {
            Some(at) => self.listeners[at] = listener,
            None => self.listeners.push(listener),
        }
        if pinned {
            self.hot.push(at);
        }
        if is_urgent {
            let urgency_of = |at: &usize| self.listeners[*at].as_ref().map_or(0, |listener| listener.urgency);
            let position = self.urgent.partition_point(|other| urgency_of(other) >= urgency);
            self.urgent.insert(position, at);
            self.urgent_batch.make_room(1);
        }
        // Capacity for all, so that no later call allocates.
        self.hot.reserve(self.listeners.len() - self.hot.len());
        self.update_has_unpinned();
        Ok(())
    }

    /// Closes the sockets of a flow. Their queued datagrams are lost.
    pub(super) fn remove(&mut self, flow: FlowId) {
        for batch in [&mut self.batch, &mut self.urgent_batch] {
            if batch.role == Role::User(flow) {
                batch.count = 0;
            }
        }
        for at in 0..self.listeners.len() {
            if let Some(listener) = self.listeners[at].take_if(|l| l.role == Role::User(flow)) {
                self.closed_socket_drops += u64::from(listener.socket.drops());
                self.remove_index(at);
            }
        }
        self.update_has_unpinned();
    }

    /// Removes the index of a closed listener.
    fn remove_index(&mut self, at: usize) {
        self.hot.retain(|other| *other != at);
        self.urgent.retain(|other| *other != at);
    }

    fn pinned(&self) -> usize {
        let open = self.listeners.iter().flatten();
        open.filter(|l| l.pinned).count()
    }

    fn update_has_unpinned(&mut self) {
        let unpinned = |l: &Listener| matches!(l.role, Role::User(_)) && !l.pinned && l.urgency <= 0;
        self.has_unpinned = self.listeners.iter().flatten().any(unpinned);
    }

    /// Returns the number of datagrams that the kernel dropped because a receive buffer was full.
    /// One system call per socket.
    pub(super) fn kernel_drops(&self) -> u64 {
        let open = self.listeners.iter().flatten();
        self.closed_socket_drops + open.map(|listener| u64::from(listener.socket.drops())).sum::<u64>()
    }

    /// Returns the next datagram: an urgent one, else the next of the batch, else the first of a
    /// new batch.
    pub(super) fn recv(&mut self, scan: Scan, stats: &mut TransportStats) -> Option<(&[u8], RxMeta)> {
        let polls_urgent = !self.urgent.is_empty() && scan != Scan::Taken;
        let is_turn_of_not_urgent = self.urgent_in_row >= URGENT_IN_ROW_MAX;
        if polls_urgent
            && !is_turn_of_not_urgent
            && let Some((range, meta)) = self.next_urgent(0, stats)
        {
            self.urgent_in_row += 1;
            return Some((&self.urgent_batch.buffer[range], meta));
        }
        self.urgent_in_row = 0;
        if let Some((range, meta)) = self.next_other(scan, stats) {
            return Some((&self.batch.buffer[range], meta));
        }
        if polls_urgent && is_turn_of_not_urgent { self.recv_urgent(0, stats) } else { None }
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

    /// Returns the next datagram of a flow that is not urgent.
    pub(super) fn recv_not_urgent(&mut self, scan: Scan, stats: &mut TransportStats) -> Option<(&[u8], RxMeta)> {
        let (range, meta) = self.next_other(scan, stats)?;
        Some((&self.batch.buffer[range], meta))
    }

    /// Returns the next datagram of the most urgent flow above `above` that has one.
    pub(super) fn recv_urgent(&mut self, above: i32, stats: &mut TransportStats) -> Option<(&[u8], RxMeta)> {
        let (range, meta) = self.next_urgent(above, stats)?;
        Some((&self.urgent_batch.buffer[range], meta))
    }

    /// Takes one datagram of the most urgent socket above `above` that has one. The caller reads it
    /// at once, so the batch never keeps one.
    fn next_urgent(&mut self, above: i32, stats: &mut TransportStats) -> Option<(Range<usize>, RxMeta)> {
        let Self { listeners, urgent, urgent_batch, interfaces, reports_sources: names, .. } = self;
        for at in urgent {
            let Some(listener) = &mut listeners[*at] else {
                unreachable!("a removed socket is removed from the urgent set");
            };
            if listener.urgency <= above {
                return None;
            }
            while listener.fill_batch(urgent_batch, *names, stats) {
                if let Some(next) = urgent_batch.next(interfaces, stats) {
                    return Some(next);
                }
            }
        }
        None
    }

    /// Marks the last socket as not busy: the caller does not request more, so the last single
    /// datagram was not the first of many.
    fn pause(&mut self) {
        if let Some(listener) = self.listeners.get_mut(self.batch.from).and_then(Option::as_mut) {
            listener.busy = false;
        }
    }

    /// Fills the batch from one socket that is ready. Returns false if none is.
    fn refill(&mut self, scan: Scan, stats: &mut TransportStats) -> bool {
        self.calls = self.calls.wrapping_add(1);
        if self.has_unpinned || self.calls.is_multiple_of(COLD_INTERVAL) {
            self.mark_ready_hot();
        }
        if self.poll_hot(stats) {
            return true;
        }
        scan == Scan::All && self.mark_ready_hot() && self.poll_hot(stats)
    }

    /// Makes the ready sockets hot. Returns false if none is ready.
    fn mark_ready_hot(&mut self) -> bool {
        let (listeners, hot) = (&mut self.listeners, &mut self.hot);
        let (watch, with_room) = (&mut self.watch, &mut self.with_room);
        let ready = syscall::epoll_ready(self.epoll.as_fd(), |token| {
            if token == WATCH {
                return watch.iter_mut().for_each(Watch::listen);
            }
            if token >= FRAGMENTS {
                return with_room.push(FlowId((token - FRAGMENTS) as u16));
            }
            let at = token as usize;
            if let Some(listener) = listeners.get_mut(at).and_then(Option::as_mut) {
                if listener.hot_calls_left == 0 && !listener.pinned && listener.urgency <= 0 {
                    hot.push(at);
                }
                listener.hot_calls_left = HOT_CALLS;
            }
        });
        // Fails only if the descriptor is no epoll instance.
        ready.is_ok_and(|count| count > 0)
    }

    fn poll_hot(&mut self, stats: &mut TransportStats) -> bool {
        for _ in 0..self.hot.len() {
            if self.next_hot >= self.hot.len() {
                self.next_hot = 0;
            }
            let at = self.hot[self.next_hot];
            let Some(listener) = &mut self.listeners[at] else {
                unreachable!("a removed socket is removed from the hot set");
            };
            if listener.fill_batch(&mut self.batch, self.reports_sources, stats) {
                self.batch.from = at;
                listener.hot_calls_left = HOT_CALLS;
                self.next_hot += 1;
                return true;
            }
            listener.hot_calls_left = listener.hot_calls_left.saturating_sub(1);
            if listener.hot_calls_left == 0 && !listener.pinned {
                self.hot.swap_remove(self.next_hot);
            } else {
                self.next_hot += 1;
            }
        }
        false
    }
}

impl Listener {
    /// Fills the batch with the queued datagrams of this socket; returns false if there are none.
    fn fill_batch(&mut self, batch: &mut Batch, names: bool, stats: &mut TransportStats) -> bool {
        let named = names || !matches!(self.role, Role::User(_));
        let count = match self.receive(batch, named) {
            Ok(count) => count,
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {
                self.batch_len = 1;
                self.busy = false;
                return false;
            }
            Err(_) => {
                // An ICMP reply to an earlier datagram. Reading the error clears it, so a second
                // call receives the queued datagrams.
                stats.receive_errors += 1;
                match self.receive(batch, named) {
                    Ok(count) => count,
                    Err(_) => return false,
                }
            }
        };
        self.batch_len = match count == self.batch_len {
            // Datagrams that stay in the kernel can still be overtaken.
            _ if self.urgency > 0 => 1,
            // A single datagram is often the only one; more are requested only after a second one
            // at once.
            true if self.busy => (count * 2).min(BATCH),
            true => count,
            false => count.max(1),
        };
        self.busy = true;
        if self.gro == Some(false) && gso::is_load(&batch.incoming[..count]) {
            // A kernel without GRO returns single datagrams, as before.
            self.gro = syscall::enable_gro(self.socket.as_fd()).is_ok().then_some(true);
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
        if self.batch_len == 1 && !control_matters && self.gro != Some(true) {
            let slot = &mut batch.buffer[..STRIDE];
            syscall::receive_one(fd, &mut batch.incoming[0], slot, named)?;
            return Ok(1);
        }
        let incoming = &mut batch.incoming[..self.batch_len];
        syscall::receive(fd, incoming, &mut batch.buffer, STRIDE)
    }
}

impl Batch {
    /// Makes a batch with room for this number of datagrams.
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
            // Zeroed memory becomes resident page by page when touched.
            self.buffer = vec![0; datagrams * STRIDE];
        }
    }

    /// Returns the next datagram that is complete and arrived at a selected interface, as its range
    /// in the buffer.
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
            stats.coalesced_in += u64::from(part.len() < self.incoming[at].len as usize);
            stats.bytes_in += part.len() as u64;
            return Some((at * STRIDE + part.start..at * STRIDE + part.end, meta));
        }
        None
    }

    /// Advances to the next datagram, and returns its buffer and the range in it.
    fn step(&mut self) -> (usize, Range<usize>) {
        let (at, start) = (self.next, self.part);
        let incoming = &self.incoming[at];
        let len = incoming.len as usize;
        let each = incoming.control.segment_len().filter(|_| !incoming.truncated).unwrap_or(len);
        let end = len.min(start + each);
        (self.next, self.part) = if end < len { (at, end) } else { (at + 1, 0) };
        (at, start..end)
    }

    /// Returns the metadata of a datagram; `None` if it arrived at an interface that is not
    /// selected. (An IPv6 socket receives its groups from all interfaces, wherever it joined them;
    /// for the other sockets the kernel filters.)
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

    /// Returns the results of `step` for a buffer of `len` octets with datagrams of `each`.
    fn parts(len: u32, each: i32, truncated: bool) -> Vec<(usize, Range<usize>)> {
        let mut batch = Receiver::new(&[], true).expect("an epoll instance").batch;
        batch.incoming[1] = Incoming { len, truncated, control: Control::gro_segment(each), ..Incoming::EMPTY };
        (batch.next, batch.count) = (1, 2);
        let mut parts = Vec::new();
        while batch.next < batch.count {
            parts.push(batch.step());
        }
        parts
    }

    #[test]
    fn coalesced_datagrams_are_split() {
        assert_eq!(parts(250, 100, false), [(1, 0..100), (1, 100..200), (1, 200..250)]);
        assert_eq!(parts(200, 100, false), [(1, 0..100), (1, 100..200)]);
        assert_eq!(parts(100, 100, false), [(1, 0..100)]);
        assert_eq!(parts(60, 100, false), [(1, 0..60)]);
        assert_eq!(parts(0, 100, false), [(1, 0..0)], "a datagram may be empty");
    }

    #[test]
    fn impossible_segment_lengths_do_no_harm() {
        for each in [0, -1, i32::MIN] {
            assert_eq!(parts(250, each, false), [(1, 0..250)]);
        }
        assert_eq!(parts(250, 100, true), [(1, 0..250)], "a GSO batch that does not fit is dropped whole");
    }
}
