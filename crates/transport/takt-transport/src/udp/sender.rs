//! Sending half of the UDP transport: the loaned frames, and the queue of datagrams.
//!
//! A frame is written once for all destinations: every destination is one queued datagram that
//! refers to the same bytes. A multicast destination is one datagram per interface, unless it
//! [names](Locator::by_interface) one. A single datagram is sent by one `sendto`. Several are sent
//! by one `sendmmsg` per run of the same socket, and those of one size to one address by
//! segmentation offload ([`super::gso`]).

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;

use takt_wire::Locator;

use super::address::{Control, Family, SockAddr};
use super::connected_sockets::ConnectedSockets;
use super::gso::Gso;
use super::syscall::{self, Outgoing};
use crate::{Interface, SendErrors, TransportStats};

/// Maximum UDP payload of IPv4: 65,535 less 20 and 8 for the headers. Used for IPv6 too, which
/// could carry 20 bytes more.
pub(super) const MAX_MESSAGE_LEN: usize = 65_507;

/// Maximum number of queued frames.
const FRAMES: usize = 32;

/// Maximum number of queued datagrams: those of one `sendmmsg`.
const QUEUE: usize = syscall::BATCH;

/// Distance of two frames in the buffer; see the receiver's.
const STRIDE: usize = 65_536 + 64;

/// Sockets that a flow sends through.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SendSockets {
    pub(super) v4: Option<RawFd>,
    pub(super) v6: Option<RawFd>,
    /// Connected sockets may be used: the flow has neither its own source port nor a priority.
    pub(super) uses_connected: bool,
}

impl SendSockets {
    fn of_family(&self, family: Family) -> Option<RawFd> {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}

/// Sending half of a UDP transport.
pub(super) struct Sender {
    buffer: Vec<u8>,
    /// Index of the loaned frame, or of the next one.
    frame: usize,
    loaned: bool,
    queue: Vec<Outgoing>,
    /// Interfaces and source addresses of outgoing multicast; also used for link-local IPv6
    /// destinations.
    multicast_v4: Vec<MulticastInterface>,
    multicast_v6: Vec<MulticastInterface>,
    /// Control messages of those interfaces.
    controls: Vec<Control>,
    connected_sockets: ConnectedSockets,
    gso: Gso,
}

/// Interface of outgoing multicast.
#[derive(Clone, Copy)]
struct MulticastInterface {
    ifindex: u32,
    /// Source address.
    address: IpAddr,
    /// Index of the control message that selects both.
    control: u16,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sender({} queued)", self.queue.len())
    }
}

impl Sender {
    pub(super) fn new() -> Self {
        Self {
            gso: Gso::NONE,
            // Zeroed memory becomes resident page by page when touched.
            buffer: vec![0; FRAMES * STRIDE],
            frame: 0,
            loaned: false,
            queue: Vec::with_capacity(QUEUE),
            multicast_v4: Vec::new(),
            multicast_v6: Vec::new(),
            controls: Vec::new(),
            connected_sockets: ConnectedSockets::new(),
        }
    }

    /// Enables segmentation offload, within the limits of `gso`.
    pub(super) fn set_gso(&mut self, gso: Gso) {
        self.gso = gso;
    }

    /// Sets the current interfaces, whose MTU limits segmentation offload.
    pub(super) fn set_mtus(&mut self, interfaces: &[Interface]) {
        self.gso = self.gso.beyond_packets(interfaces);
    }

    /// Adds an interface and source address of outgoing multicast.
    pub(super) fn add_multicast(&mut self, ifindex: u32, address: IpAddr) {
        let (interfaces, control) = match address {
            IpAddr::V4(v4) => (&mut self.multicast_v4, Control::pktinfo_v4(ifindex, v4)),
            IpAddr::V6(v6) => (&mut self.multicast_v6, Control::pktinfo_v6(ifindex, v6)),
        };
        if interfaces.iter().any(|interface| interface.ifindex == ifindex) {
            return;
        }
        if let Ok(index) = u16::try_from(self.controls.len()) {
            interfaces.push(MulticastInterface { ifindex, address, control: index });
            self.controls.push(control);
        }
    }

    /// Removes all multicast interfaces and connected sockets. The queue must be empty.
    pub(super) fn clear_interfaces(&mut self) {
        self.multicast_v4.clear();
        self.multicast_v6.clear();
        self.controls.clear();
        self.connected_sockets = ConnectedSockets::new();
    }

    /// Reports whether multicast of that family can be sent by any interface.
    pub(super) fn has_multicast(&self, family: Family) -> bool {
        match family {
            Family::V4 => !self.multicast_v4.is_empty(),
            Family::V6 => !self.multicast_v6.is_empty(),
        }
    }

    pub(super) fn loan(&mut self) -> &mut [u8] {
        self.loaned = true;
        &mut self.buffer[self.frame * STRIDE..][..MAX_MESSAGE_LEN]
    }

    pub(super) fn commit(
        &mut self,
        len: usize,
        sockets: SendSockets,
        destinations: &[Locator],
        stats: &mut TransportStats,
    ) -> io::Result<()> {
        if !self.loaned {
            let why = "commit without a loaned frame";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        if len > MAX_MESSAGE_LEN {
            let why = format!("{len} bytes exceed the maximum of a datagram ({MAX_MESSAGE_LEN} bytes)");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.loaned = false;
        for destination in destinations {
            if !self.route(len, sockets, destination, stats) {
                stats.send_errors.unserved += 1;
            }
        }
        if !self.queue.is_empty() {
            self.frame += 1;
        }
        if self.frame == FRAMES {
            self.flush(stats);
        }
        Ok(())
    }

    /// Commits a datagram whose rest is in separate memory. It is sent from there at once if it has
    /// one destination, else it is copied.
    pub(super) fn commit_gathered(
        &mut self,
        len: usize,
        rest: &[u8],
        sockets: SendSockets,
        destinations: &[Locator],
        stats: &mut TransportStats,
    ) -> io::Result<()> {
        let total_len = len.saturating_add(rest.len());
        if self.loaned
            && total_len <= MAX_MESSAGE_LEN
            && let [to] = destinations
            && !to.is_multicast()
        {
            self.send_queue(stats);
            self.loaned = false;
            match self.route(len, sockets, to, stats) {
                true => self.send_alone(rest, stats),
                false => stats.send_errors.unserved += 1,
            }
            self.frame = 0;
            return Ok(());
        }
        if let Some(room) = self.loan().get_mut(len..total_len) {
            room.copy_from_slice(rest);
        }
        self.commit(total_len, sockets, destinations, stats)
    }

    /// Queues the frame for one destination; returns false if that is not served.
    fn route(&mut self, len: usize, sockets: SendSockets, to: &Locator, stats: &mut TransportStats) -> bool {
        let Some(family) = Family::of_kind(to.kind) else {
            return false;
        };
        let Some(fd) = sockets.of_family(family) else {
            return false;
        };
        let offset = (self.frame * STRIDE) as u32;
        let is_plain = match family {
            Family::V4 => !is_multicast_v4(to),
            Family::V6 => !needs_interface_v6(to),
        };
        if is_plain
            && sockets.uses_connected
            && let Some(fd) = self.connected_sockets.socket_to(to, family, fd)
        {
            let (address, control) = (SockAddr::EMPTY, None);
            self.push(Outgoing { fd, connected: true, offset, len: len as u32, address, control }, stats);
            return true;
        }
        let Some(address) = SockAddr::of_locator(to, family) else {
            return false;
        };
        let message = Outgoing { fd, connected: false, offset, len: len as u32, address, control: None };
        match family {
            Family::V4 if is_multicast_v4(to) => {
                let only = to.interface().map(IpAddr::V4);
                let mut any = false;
                for i in 0..self.multicast_v4.len() {
                    let MulticastInterface { address, control, .. } = self.multicast_v4[i];
                    if only.is_none_or(|only| only == address) {
                        any = true;
                        self.push(Outgoing { control: Some(control), ..message }, stats);
                    }
                }
                any
            }
            Family::V6 if needs_interface_v6(to) => {
                for i in 0..self.multicast_v6.len() {
                    let MulticastInterface { ifindex, control, .. } = self.multicast_v6[i];
                    let (control, address) = (Some(control), address.with_scope(ifindex));
                    self.push(Outgoing { control, address, ..message }, stats);
                }
                self.has_multicast(family)
            }
            _ => {
                self.push(message, stats);
                true
            }
        }
    }

    fn push(&mut self, message: Outgoing, stats: &mut TransportStats) {
        if self.queue.len() == QUEUE {
            self.send_queue(stats);
        }
        self.queue.push(message);
    }

    pub(super) fn flush(&mut self, stats: &mut TransportStats) {
        self.send_queue(stats);
        if self.loaned && self.frame > 0 {
            // The content of the loaned frame must be kept, so it stays where it is.
            return;
        }
        self.frame = 0;
    }

    /// Sends the queued datagrams, each with `rest` after it: the path of single replies and of
    /// long fragments. There is usually one; link-local IPv6 has one per interface.
    fn send_alone(&mut self, rest: &[u8], stats: &mut TransportStats) {
        for one in &self.queue {
            let control = one.control.and_then(|at| self.controls.get(usize::from(at)));
            let send = || match rest {
                [] => syscall::send_one(one, &self.buffer),
                _ => syscall::send_gathered(one, control, &self.buffer, rest),
            };
            match retry_refused(stats, send) {
                Ok(()) => {
                    count_sent(stats, std::slice::from_ref(one));
                    stats.bytes_out += rest.len() as u64;
                }
                Err(e) => {
                    count_error(&mut stats.send_errors, &e);
                    if one.connected && is_about_the_socket(&e) {
                        self.connected_sockets.disable(one.fd);
                    }
                }
            }
        }
        self.queue.clear();
    }

    fn send_queue(&mut self, stats: &mut TransportStats) {
        if let [one] = &self.queue[..]
            && one.control.is_none()
        {
            return self.send_alone(&[], stats);
        }
        let mut rest = &self.queue[..];
        while let Some(first) = rest.first() {
            let run = rest.iter().take_while(|m| m.fd == first.fd).count();
            let gso = self.gso;
            let send = || syscall::send_batch(&rest[..run], &self.controls, &self.buffer, |queue| gso.first(queue));
            let done = match retry_refused(stats, send) {
                Ok(sent) => {
                    count_sent(stats, &rest[..sent]);
                    stats.segmented_out += gso.count(&rest[..sent]);
                    sent.max(1)
                }
                Err(e) => {
                    let run_len = gso.first(&rest[..run]);
                    if run_len > 1 && self.gso.handle_refusal(first.len, &e) {
                        continue;
                    }
                    // The error concerns the first datagrams; those behind are tried without them.
                    for _ in 0..run_len {
                        count_error(&mut stats.send_errors, &e);
                    }
                    if first.connected && is_about_the_socket(&e) {
                        self.connected_sockets.disable(first.fd);
                    }
                    run_len
                }
            };
            rest = &rest[done..];
        }
        self.queue.clear();
    }
}

/// Retries after `ECONNREFUSED`. On a socket without a fixed peer, the error concerns an earlier
/// datagram, and reading it clears it.
fn retry_refused<T>(stats: &mut TransportStats, mut send: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    match send() {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            stats.send_errors.refused += 1;
            send()
        }
        result => result,
    }
}

/// Reports whether a connected socket will fail again. A closed port may open, and a full queue
/// drains.
fn is_about_the_socket(error: &io::Error) -> bool {
    let passing = [libc::ECONNREFUSED, libc::EAGAIN, libc::ENOBUFS, libc::ENOMEM];
    !error.raw_os_error().is_some_and(|code| passing.contains(&code))
}

fn count_sent(stats: &mut TransportStats, messages: &[Outgoing]) {
    stats.datagrams_out += messages.len() as u64;
    stats.bytes_out += messages.iter().map(|m| u64::from(m.len)).sum::<u64>();
}

fn count_error(errors: &mut SendErrors, error: &io::Error) {
    let counter = match error.raw_os_error() {
        Some(libc::EAGAIN) => &mut errors.would_block,
        Some(libc::ENOBUFS | libc::ENOMEM) => &mut errors.no_buffers,
        Some(libc::ENETUNREACH | libc::ENETDOWN | libc::EADDRNOTAVAIL) => &mut errors.network_unreachable,
        Some(libc::EHOSTUNREACH | libc::EHOSTDOWN) => &mut errors.host_unreachable,
        Some(libc::ECONNREFUSED) => &mut errors.refused,
        Some(libc::EPERM | libc::EACCES) => &mut errors.denied,
        Some(libc::EMSGSIZE) => &mut errors.too_large,
        _ => &mut errors.other,
    };
    *counter += 1;
}

fn is_multicast_v4(to: &Locator) -> bool {
    to.address[12] & 0xf0 == 0xe0
}

/// Multicast and link-local unicast: the address alone does not determine the interface.
fn needs_interface_v6(to: &Locator) -> bool {
    to.address[0] == 0xff || (to.address[0] == 0xfe && to.address[1] & 0xc0 == 0x80)
}
