//! Connected sockets for frequent destinations.
//!
//! A `sendto` on an unconnected socket looks up the route each time, which costs the kernel some
//! 0.5 us. A connected socket has done so once. After [`SENDS_TO_OPEN`] datagrams to one address,
//! the default flow opens a connected socket for it, at most [`SOCKETS_MAX`] at a time. The socket
//! has its own port, so the source port of these datagrams is not the announced one; RTPS replies
//! to announced locators, never to source ports (RTPS 2.5 §8.3.4). Its address is that of the
//! socket that it replaces. Flows with their own port or priority never use connected sockets.
//!
//! Opening one takes six system calls, once for each such destination.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use takt_wire::Locator;

use super::address::{Family, SockAddr};
use super::syscall;

/// Maximum number of connected sockets.
const SOCKETS_MAX: usize = 16;

/// Number of datagrams to one address before it gets a socket: discovery traffic stays below.
const SENDS_TO_OPEN: u32 = 64;

/// Number of datagrams to other addresses after which a socket may be replaced; more than can be
/// queued.
const IDLE_SENDS: u64 = 4096;

#[derive(Debug)]
struct Entry {
    to: Locator,
    socket: Option<OwnedFd>,
    /// A send failed. The socket stays open with its entry, since queued datagrams may still refer
    /// to it.
    failed: bool,
    sends: u32,
    /// Total number of sends when this entry was last used.
    last: u64,
}

/// Connected sockets of a sender.
#[derive(Debug, Default)]
pub(super) struct ConnectedSockets {
    entries: Vec<Entry>,
    /// Index of the entry that was used last, which is checked first.
    recent: usize,
    sends: u64,
}

impl ConnectedSockets {
    pub(super) fn new() -> Self {
        Self { entries: Vec::with_capacity(SOCKETS_MAX), recent: 0, sends: 0 }
    }

    /// Returns the socket that is connected to a unicast address, if there is one. Counts a send.
    /// `unconnected` is the socket that it replaces.
    pub(super) fn socket_to(&mut self, to: &Locator, family: Family, unconnected: RawFd) -> Option<RawFd> {
        self.sends += 1;
        if self.entries.get(self.recent).is_none_or(|entry| entry.to != *to) {
            let Some(at) = self.entries.iter().position(|entry| entry.to == *to) else {
                self.remember(*to);
                return None;
            };
            self.recent = at;
        }
        let entry = &mut self.entries[self.recent];
        entry.last = self.sends;
        if entry.socket.is_none() {
            entry.sends = entry.sends.saturating_add(1);
            if entry.sends == SENDS_TO_OPEN
                && let Some(address) = SockAddr::of_locator(to, family)
            {
                // tidy-allow(dropped-cause): if the kernel refuses, only the speedup is lost.
                entry.socket = syscall::connected_socket(unconnected, family, &address).ok();
            }
        }
        entry.socket.as_ref().filter(|_| !entry.failed).map(AsRawFd::as_raw_fd)
    }

    fn remember(&mut self, to: Locator) {
        let entry = Entry { to, socket: None, failed: false, sends: 1, last: self.sends };
        if self.entries.len() < SOCKETS_MAX {
            self.entries.push(entry);
        } else if let Some(oldest) = self.entries.iter_mut().min_by_key(|entry| entry.last)
            && (oldest.socket.is_none() || self.sends - oldest.last > IDLE_SENDS)
        {
            *oldest = entry;
        }
    }

    /// Stops using a connected socket after a failed send; its address is sent to without
    /// connection from now on.
    pub(super) fn disable(&mut self, fd: RawFd) {
        let through = |entry: &&mut Entry| entry.socket.as_ref().is_some_and(|socket| socket.as_raw_fd() == fd);
        if let Some(entry) = self.entries.iter_mut().find(through) {
            entry.failed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn address(port: u16) -> SockAddr {
        SockAddr::v4([127, 0, 0, 1], port)
    }

    fn to(port: u16) -> Locator {
        address(port).to_locator()
    }

    fn send_socket() -> OwnedFd {
        let unconnected = syscall::udp_socket(Family::V4).expect("a socket");
        syscall::bind(unconnected.as_fd(), &address(0)).expect("a port is free");
        unconnected
    }

    #[test]
    fn frequent_destination_gets_a_connected_socket_of_the_same_address() {
        let (mut sockets, unconnected) = (ConnectedSockets::new(), send_socket());
        let sends = (1..).find(|_| sockets.socket_to(&to(9), Family::V4, unconnected.as_raw_fd()).is_some());
        assert_eq!(sends, Some(SENDS_TO_OPEN));
        let fd = sockets.socket_to(&to(9), Family::V4, unconnected.as_raw_fd()).expect("the socket stays open");
        let socket = sockets.entries[0].socket.as_ref().expect("the socket is open");
        let bound = syscall::local_address(socket.as_fd()).expect("the socket is bound");
        assert_eq!(bound.with_port(0).to_locator(), address(0).to_locator());
        sockets.disable(fd);
        assert!((0..1000).all(|_| sockets.socket_to(&to(9), Family::V4, unconnected.as_raw_fd()).is_none()));
    }

    #[test]
    fn sockets_are_bounded_and_idle_ones_are_replaced() {
        let (mut sockets, unconnected) = (ConnectedSockets::new(), send_socket());
        for port in 1..=50 {
            for _ in 0..SENDS_TO_OPEN {
                sockets.socket_to(&to(port), Family::V4, unconnected.as_raw_fd());
            }
        }
        let open = |sockets: &ConnectedSockets| sockets.entries.iter().filter(|entry| entry.socket.is_some()).count();
        assert_eq!((sockets.entries.len(), open(&sockets)), (SOCKETS_MAX, SOCKETS_MAX));
        assert!(
            sockets.socket_to(&to(1), Family::V4, unconnected.as_raw_fd()).is_some(),
            "the first ones are still there"
        );
        for _ in 0..IDLE_SENDS + u64::from(SENDS_TO_OPEN) + 2 {
            sockets.socket_to(&to(200), Family::V4, unconnected.as_raw_fd());
        }
        assert!(sockets.socket_to(&to(200), Family::V4, unconnected.as_raw_fd()).is_some());
        assert_eq!(sockets.entries.len(), SOCKETS_MAX);
    }
}
