//! Opening and closing of connections: listening, connecting, limits, timeouts.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use takt_wire::Locator;

use super::config::announced;
use super::connection::{Connection, State};
use super::links::Links;
use super::stream::{Stream, prepare};
use super::{TcpTransport, kind_of, locator};
use crate::udp::address::{Family, SockAddr};
use crate::udp::syscall::{begin_connection, epoll_add, epoll_remove};
use crate::udp::{UdpConfig, interfaces};
use crate::{Locators, TransportError};

/// Maximum number of connections that one poll accepts.
const ACCEPTED_PER_CALL: usize = 16;
/// Time without accepting after the machine has run out of descriptors.
const PAUSE: Duration = Duration::from_secs(1);

impl TcpTransport {
    pub(super) fn listen(&mut self) -> Result<(), TransportError> {
        for (token, address) in (1..).zip(self.config.listen.clone()) {
            let failed = |source| TransportError::new("listen at", format!("tcp/{address}"), source);
            let listener = TcpListener::bind(address).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            epoll_add(self.epoll.as_fd(), listener.as_fd(), token).map_err(failed)?;
            self.listeners.push(listener);
        }
        Ok(())
    }

    /// Determines the addresses of this host, and from them the locators to announce.
    pub(super) fn find_addresses(&mut self) -> Result<(), TransportError> {
        let has_v6 = self.config.listen.iter().any(SocketAddr::is_ipv6);
        let of_interfaces = UdpConfig { interfaces: self.config.interfaces.clone(), ipv6: has_v6, ..UdpConfig::new(0) };
        self.interfaces = interfaces::select(&of_interfaces)?;
        let mut addresses = self.config.announce.clone();
        if addresses.is_empty() {
            for listener in &self.listeners {
                let failed = |source| TransportError::new("find the address of", "a TCP listener", source);
                let own = self.interfaces.iter().flat_map(|interface| &interface.addresses).map(|(ip, _)| *ip);
                addresses.extend(announced(listener.local_addr().map_err(failed)?, own));
            }
        }
        let all: Vec<Locator> = addresses.into_iter().map(at).collect();
        self.locators = Locators { metatraffic_unicast: all.clone(), default_unicast: all, ..Locators::default() };
        Ok(())
    }

    /// Returns a connection for a link without one: another connection to the same participant,
    /// else a new one if its time has come.
    pub(super) fn connect(&mut self, index: usize, now: Instant) -> Option<u64> {
        let link = self.links.get(index);
        let is_same_participant =
            |connection: &&Connection| connection.accepts_messages() && Links::is_to(link, connection);
        if let Some(other) = self.connections.iter().find(is_same_participant).map(|connection| connection.token) {
            self.links.get_mut(index).connection = Some(other);
            return Some(other);
        }
        let target = link.target.filter(|_| link.may_connect(now))?;
        let name = link.name;
        let stream = match self.connections.len() < self.config.connections_max {
            true => self.begin(target, &name),
            false => Err(io::ErrorKind::OutOfMemory.into()),
        };
        let Ok(stream) = stream else {
            self.stats.connections.failed += 1;
            self.links.get_mut(index).record_failure(now, false);
            return None;
        };
        let token = self.add(stream, target, true, now)?;
        self.links.get_mut(index).connection = Some(token);
        let connection = self.connections.get_mut(token)?;
        connection.link = Some(index);
        // On this host, the connection may be open or refused already.
        if connection.send(self.epoll.as_fd()).is_err() {
            self.close(token, now);
            return None;
        }
        Some(token)
    }

    fn begin(&self, target: SocketAddr, name: &Locator) -> io::Result<Stream> {
        let family = if target.is_ipv4() { Family::V4 } else { Family::V6 };
        let address = SockAddr::of_locator(name, family).ok_or(io::ErrorKind::InvalidInput)?;
        let socket = TcpStream::from(begin_connection(family, &address)?);
        prepare(&socket, self.config.peer_timeout)?;
        #[cfg(feature = "tls")]
        if let Some(identity) = &self.identity {
            let host = self.config.names.get(&target).map(String::as_str);
            return Ok(Stream::Tls(Box::new(identity.connect(socket, target, host)?)));
        }
        Ok(Stream::Plain(socket))
    }

    /// Adds a connection and watches it.
    fn add(&mut self, stream: Stream, peer: SocketAddr, is_ours: bool, now: Instant) -> Option<u64> {
        let own = stream.socket().local_addr().ok().map(at);
        let listener = self.locators.default_unicast.iter().find(|listener| listener.kind == kind_of(peer.ip()));
        let local = if is_ours { listener.copied().or(own) } else { own };
        let queue = self.config.send_queue_bytes;
        let token = self.connections.insert(|token| Connection::new(stream, token, peer, is_ours, queue));
        let connection = self.connections.get_mut(token)?;
        connection.local = local.unwrap_or(Locator::INVALID);
        let deadline = now + self.config.open_timeout;
        connection.deadline = Some(deadline);
        if epoll_add(self.epoll.as_fd(), connection.as_fd(), token).is_err() {
            self.connections.remove(token);
            return None;
        }
        self.stats.connections.opened += 1;
        self.timer.set_by(deadline, now);
        Some(token)
    }

    /// Accepts the pending connections of a listener.
    pub(super) fn accept(&mut self, listener: u64, now: Instant) {
        for _ in 0..ACCEPTED_PER_CALL {
            let Some(socket) = self.listeners.get(listener as usize - 1) else { return };
            match socket.accept() {
                Ok((socket, peer)) => {
                    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                    if self.admit(socket, peer, now).is_none() {
                        self.stats.connections.refused += 1;
                    }
                }
                Err(error) if concerns_connection(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.pause(now),
            }
        }
    }

    fn admit(&mut self, socket: TcpStream, peer: SocketAddr, now: Instant) -> Option<u64> {
        if self.connections.with_address(peer.ip()) >= self.config.connections_per_address_max {
            return None;
        }
        let unproven = || self.connections.iter().filter(|one| !one.is_initiator && one.participant.is_none());
        if unproven().count() >= self.config.unidentified_max {
            let oldest = unproven().map(|one| one.token).min()?;
            self.stats.connections.expired += 1;
            self.close(oldest, now);
        }
        if self.connections.len() >= self.config.connections_max {
            return None;
        }
        prepare(&socket, self.config.peer_timeout).ok()?;
        #[cfg(feature = "tls")]
        if let Some(identity) = &self.identity {
            let stream = Stream::Tls(Box::new(identity.accept(socket).ok()?));
            return self.add(stream, peer, false, now);
        }
        self.add(Stream::Plain(socket), peer, false, now)
    }

    /// Stops listening while no descriptors are left; otherwise the listeners would stay ready and
    /// keep the thread busy.
    fn pause(&mut self, now: Instant) {
        let epoll = self.epoll.as_fd();
        self.is_listening = !self.listeners.iter().all(|listener| epoll_remove(epoll, listener.as_fd()).is_ok());
        self.timer.set_by(now + PAUSE, now);
    }

    fn listen_again(&mut self) {
        for (token, listener) in (1..).zip(&self.listeners) {
            // A listener that cannot be watched now is retried later.
            self.is_listening = epoll_add(self.epoll.as_fd(), listener.as_fd(), token).is_ok();
        }
    }

    /// Closes a connection. Its link may get another one.
    pub(super) fn close(&mut self, token: u64, now: Instant) {
        let Some(connection) = self.connections.remove(token) else { return };
        let had_carried = connection.participant.is_some();
        let is_failure = connection.is_initiator && !had_carried;
        self.stats.connections.lost += u64::from(had_carried);
        self.stats.connections.failed += u64::from(is_failure);
        let mut again = None;
        for link in self.links.iter_mut().filter(|link| link.connection == Some(token)) {
            link.connection = None;
            if link.target.is_some() {
                link.record_failure(now, had_carried);
                again = again.into_iter().chain(link.reconnect_due(now)).min();
            }
        }
        if let Some(again) = again {
            self.timer.set_by(again, now);
        }
    }

    /// Handles timeouts: closes connections without progress, and opens lost ones again.
    pub(super) fn handle_timer(&mut self, now: Instant) {
        self.timer.reset();
        if !self.is_listening {
            self.listen_again();
        }
        let is_expired = |one: &&Connection| one.deadline.is_some_and(|deadline| deadline <= now);
        let expired: Vec<u64> = self.connections.iter().filter(is_expired).map(|one| one.token).collect();
        for token in expired {
            let Some(connection) = self.connections.get_mut(token) else { continue };
            if connection.is_initiator && connection.is_established() {
                connection.deadline = None;
                continue;
            }
            self.stats.connections.expired += u64::from(connection.state != State::Leaving);
            self.close(token, now);
        }
        let is_due = |link: &super::links::Link| link.reconnect_due(now).is_some_and(|due| due <= now);
        let due: Vec<usize> = self.links.iter().filter(|(_, link)| is_due(link)).map(|(index, _)| index).collect();
        for index in due {
            self.connect(index, now);
        }
        let deadlines = self.connections.iter().filter_map(|one| one.deadline);
        let attempts = self.links.iter().filter_map(|(_, link)| link.reconnect_due(now));
        let paused = (!self.is_listening).then_some(now + PAUSE);
        if let Some(next) = deadlines.chain(attempts).chain(paused).min() {
            self.timer.set_by(next, now);
        }
    }
}

/// Returns the locator of a socket address.
fn at(address: SocketAddr) -> Locator {
    Locator { port: address.port().into(), ..locator(kind_of(address.ip()), address.ip().to_canonical()) }
}

/// Reports whether an error of `accept` concerns the accepted connection (accept(2)), and not the
/// listener.
fn concerns_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, TimedOut};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | TimedOut)
        || error.raw_os_error().is_some_and(|code| matches!(code, libc::EPROTO | libc::EPERM))
}
