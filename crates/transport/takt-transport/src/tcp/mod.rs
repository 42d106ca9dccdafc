//! RTPS over TCP, plain or with TLS, for networks that block UDP, such as behind network address
//! translation.
//!
//! # Streams and links
//! A stream carries messages one after another, each with its length ([`framing`]). A participant
//! that listens announces its addresses (locator kinds 4 and 8, RTPS 2.5 §9.3.2). A participant
//! that does not listen only connects to others, which reply on the connections that it opened.
//! Every message received on a connection has as its source a locator that leads back to the
//! sender. The locator is valid as long as the participant exists, even if the connection is lost
//! and opened again ([`links`]).
//!
//! Two participants that have connected to each other recognize this by the prefixes in their
//! messages, if only in one without content ([`framing::identification`]). They keep one
//! connection: that of the participant with the lower prefix. The other side closes its own after
//! all messages queued on it.
//!
//! # Losses
//! Each connection has a queue of bounded length. Messages that do not fit are lost, counted as
//! `would_block`. Messages in the queue of a broken connection are lost too. Messages without a
//! connection are counted as `host_unreachable`. RTPS repairs these losses for reliable endpoints,
//! which do not know of connections.
//!
//! # Connecting
//! `commit` begins a missing connection, and never waits for it. A failed attempt is repeated after
//! 50 ms, and then with doubled delays up to 5 s. A lost connection is opened again for one minute,
//! even without pending messages.
//!
//! # Malicious peers
//! A connection has to begin with a whole message within the configured time. The number of
//! connections is limited: in total, per address, and of those without a message. Memory is bounded
//! per connection: 128 KiB for received octets and the send queue. Invalid octets close the
//! connection at the first wrong one. With TLS, a participant is bound to the first certificate
//! that it shows: a connection or message that names it and has another certificate is refused.
//!
//! # Costs
//! `commit` copies the message into the connection's queue, `flush` makes one system call for each
//! connection. `recv` makes one system call for all messages that have arrived, and one to find
//! ready connections. Opening and closing connections allocates, and so does TLS.
//!
//! Deliberately not here: multicast, flows with their own ports, priorities, and the control
//! protocol of Fast DDS.

mod buffer;
mod config;
mod connection;
mod connections;
mod framing;
mod links;
mod merging;
mod opening;
mod stream;
#[cfg(test)]
mod tests;
mod timer;
#[cfg(feature = "tls")]
mod tls;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Instant;

use takt_wire::Locator;

pub use config::{TcpConfig, TlsConfig};
use connection::State;
use connections::Connections;
use framing::{LENGTH, MESSAGE_MAX, Prefix};
use links::Links;
use timer::Timer;

use crate::udp::syscall::{BATCH, epoll, epoll_add, epoll_ready, epoll_remove};
use crate::{
    Capabilities, Commit, Control, FlowId, Interface, Locators, Reach, Receive, RxFrame, RxMeta, Scan, Status,
    Transport, TransportError, TransportStats,
};

/// Epoll token of the timer; listeners have tokens from 1 on, connections from
/// [`Connections::FIRST`].
const TIMER: u64 = 0;

/// Number of remembered links for each possible connection.
const LINKS_PER_CONNECTION: usize = 4;

/// TCP transport of a participant. See the [module](self).
#[derive(Debug)]
pub struct TcpTransport {
    config: TcpConfig,
    #[cfg(feature = "tls")]
    identity: Option<tls::Identity>,
    interfaces: Vec<Interface>,
    locators: Locators,
    epoll: OwnedFd,
    descriptors: [RawFd; 1],
    listeners: Vec<TcpListener>,
    /// False while no descriptors are left.
    is_listening: bool,
    timer: Timer,
    connections: Connections,
    links: Links,
    /// Connections with a received message, or that have ended.
    ready: VecDeque<u64>,
    /// Connections with queued messages.
    dirty: Vec<u64>,
    /// Room for a length, and the loaned message.
    frame: Vec<u8>,
    is_loaned: bool,
    /// Own GUID prefix, as the own messages state it.
    own: Option<Prefix>,
    stats: TransportStats,
}

impl TcpTransport {
    /// Opens the listeners. Later, connections allocate.
    ///
    /// # Errors
    /// An address cannot be listened at, or a certificate or key file is not usable.
    pub fn open(config: &TcpConfig) -> Result<Self, TransportError> {
        let mut config = config.clone();
        config.connections_max = config.connections_max.clamp(2, usize::from(u16::MAX));
        config.send_queue_bytes = config.send_queue_bytes.max(config::SEND_QUEUE_MIN);
        let failed = |op: &'static str| move |source| TransportError::new(op, "the TCP transport", source);
        let epoll = epoll().map_err(failed("create an epoll instance for"))?;
        let timer = Timer::new().map_err(failed("create a timer for"))?;
        epoll_add(epoll.as_fd(), timer.as_fd(), TIMER).map_err(failed("watch a timer of"))?;
        let mut transport = Self {
            #[cfg(feature = "tls")]
            identity: config.tls.as_ref().map(tls::Identity::load).transpose()?,
            interfaces: Vec::new(),
            locators: Locators::default(),
            descriptors: [epoll.as_raw_fd()],
            epoll,
            listeners: Vec::new(),
            is_listening: true,
            timer,
            connections: Connections::default(),
            links: Links::new(config.connections_max * LINKS_PER_CONNECTION),
            ready: VecDeque::with_capacity(config.connections_max),
            dirty: Vec::with_capacity(config.connections_max),
            frame: vec![0; LENGTH + MESSAGE_MAX],
            is_loaned: false,
            own: None,
            stats: TransportStats::default(),
            config,
        };
        #[cfg(not(feature = "tls"))]
        if let Some(tls) = &transport.config.tls {
            let why = io::Error::new(io::ErrorKind::Unsupported, "this build lacks the feature `tls`");
            return Err(TransportError::new("use TLS with", tls.certificate.display(), why));
        }
        transport.listen()?;
        transport.control(Control::Refresh)?;
        Ok(transport)
    }

    /// Returns the connection to `destination`, which may still be opening.
    fn route(&mut self, destination: &Locator) -> Option<u64> {
        let index = self.links.find(destination)?;
        match self.links.get(index).connection {
            Some(token) => Some(token),
            None => self.connect(index, Instant::now()),
        }
    }

    /// Sends the first `len` bytes of the frame.
    fn send_to(&mut self, destination: &Locator, len: usize) {
        if !self.reach(destination).is_served() {
            self.stats.send_errors.unserved += 1;
            return;
        }
        let token = self.route(destination);
        let Some(connection) = token.and_then(|token| self.connections.get_mut(token)) else {
            self.stats.send_errors.host_unreachable += 1;
            return;
        };
        match connection.queue(&self.frame[..len], self.epoll.as_fd()) {
            Ok(true) => {
                self.stats.datagrams_out += 1;
                self.stats.bytes_out += (len - LENGTH) as u64;
                if !std::mem::replace(&mut connection.is_dirty, true) {
                    self.dirty.push(connection.token);
                }
            }
            Ok(false) => self.stats.send_errors.would_block += 1,
            Err(_) => {
                self.stats.send_errors.host_unreachable += 1;
                let token = connection.token;
                self.close(token, Instant::now());
            }
        }
    }

    /// Handles ready descriptors. Bounded by [`BATCH`] connections.
    fn poll_descriptors(&mut self) -> Result<(), TransportError> {
        let (mut tokens, mut count) = ([0; BATCH], 0);
        let result = epoll_ready(self.epoll.as_fd(), |token| {
            tokens[count] = token;
            count += 1;
        });
        result.map_err(|source| TransportError::new("epoll_wait", "the TCP transport", source))?;
        for token in &tokens[..count] {
            match *token {
                TIMER => self.handle_timer(Instant::now()),
                token if token < Connections::FIRST => self.accept(token, Instant::now()),
                token => self.handle_ready(token),
            }
        }
        Ok(())
    }

    fn handle_ready(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else { return };
        let epoll = self.epoll.as_fd();
        // Reading may produce output, during a handshake.
        let opened = if connection.state == State::Opening { connection.send(epoll) } else { Ok(()) };
        let moved = opened.and_then(|()| connection.receive()).and_then(|()| connection.send(epoll));
        if moved.is_err() {
            // Messages received before the failure are complete.
            connection.state = State::Ended;
        }
        let has_ended = connection.state == State::Ended;
        if has_ended && epoll_remove(epoll, connection.as_fd()).is_err() {
            return self.close(token, Instant::now());
        }
        if has_ended || connection.next_frame() != Ok(None) {
            self.ready.push_back(token);
        }
    }

    /// Takes the next received message: its connection, and its range there.
    fn pop(&mut self) -> Option<(u64, Range<usize>)> {
        while let Some(token) = self.ready.pop_front() {
            let Some(connection) = self.connections.get(token) else { continue };
            match connection.next_frame() {
                Ok(Some(len)) => {
                    if connection.participant.is_none() && !self.identify_peer(token, Instant::now()) {
                        self.stats.connections.refused += 1;
                        self.close(token, Instant::now());
                        continue;
                    }
                    let is_credible =
                        self.connections.get(token).is_some_and(|connection| self.may_be_from(connection));
                    let connection = self.connections.get_mut(token)?;
                    let message = connection.take(len);
                    if connection.state == State::Ended || connection.next_frame() != Ok(None) {
                        self.ready.push_back(token);
                    }
                    self.stats.connections.wrong_certificate += u64::from(!is_credible);
                    if len == framing::FRAME_MIN || !is_credible {
                        continue;
                    }
                    return Some((token, message));
                }
                Ok(None) => self.close(token, Instant::now()),
                Err(framing::Malformed) => {
                    self.stats.connections.malformed += 1;
                    self.close(token, Instant::now());
                }
            }
        }
        None
    }
}

/// Makes a TCP locator without a port.
fn locator(kind: i32, ip: IpAddr) -> Locator {
    let udp = Locator::from(std::net::SocketAddr::new(ip, 0));
    Locator { kind, ..udp }
}

/// Returns the kind of TCP locators of a family.
fn kind_of(ip: IpAddr) -> i32 {
    if ip.is_ipv4() { Locator::KIND_TCP_V4 } else { Locator::KIND_TCP_V6 }
}

impl Transport for TcpTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "tcp", max_message_len: MESSAGE_MAX, scans_memory: false }
    }

    fn status(&self) -> Status<'_> {
        Status {
            interfaces: &self.interfaces,
            descriptors: &self.descriptors,
            ..Status::new(&self.locators, self.stats)
        }
    }

    fn reach(&self, locator: &Locator) -> Reach {
        let is_usable = |ip: IpAddr| !ip.is_unspecified() && !ip.is_multicast();
        Reach::from(locator.is_tcp() && locator.port != 0 && locator.ip().is_some_and(is_usable))
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.is_loaned = true;
        Ok(&mut self.frame[LENGTH..])
    }

    /// Also returns an error if the committed bytes are no RTPS message.
    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        datagram.flow.check_default()?;
        let wrong = |why: &'static str| {
            TransportError::new("commit", "a message", io::Error::new(io::ErrorKind::InvalidInput, why))
        };
        if !self.is_loaned {
            return Err(wrong("no frame is loaned"));
        }
        let len = datagram.assemble(&mut self.frame[LENGTH..])?;
        let message = &self.frame[LENGTH..LENGTH + len];
        let (_, prefix) = framing::sender(message).ok_or_else(|| wrong("it does not begin with an RTPS header"))?;
        self.own = Some(prefix);
        self.is_loaned = false;
        framing::wrap(&mut self.frame[..LENGTH + len]);
        for destination in datagram.destinations {
            self.send_to(destination, LENGTH + len);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        while let Some(token) = self.dirty.pop() {
            let Some(connection) = self.connections.get_mut(token) else { continue };
            connection.is_dirty = false;
            if connection.send(self.epoll.as_fd()).is_err() {
                self.close(token, Instant::now());
            }
        }
        Ok(())
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        let (Receive::Any(scan) | Receive::NotUrgent(scan)) = request else { return Ok(None) };
        let mut found = self.pop();
        if found.is_none() && scan != Scan::Taken {
            self.poll_descriptors()?;
            found = self.pop();
        }
        let Some((token, range)) = found else { return Ok(None) };
        let Some(connection) = self.connections.get_mut(token) else { return Ok(None) };
        self.stats.datagrams_in += 1;
        self.stats.bytes_in += range.len() as u64;
        let source = connection.link.map_or(Locator::INVALID, |link| self.links.get(link).name);
        let meta = RxMeta { source, local: connection.local, flow: FlowId::DEFAULT, multicast: false };
        Ok(Some(RxFrame::new(connection.message(range), meta)))
    }

    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        match request {
            Control::Connect(to) => self.reach(to).or_unserved(to),
            Control::Refresh => self.find_addresses(),
            Control::ReportSources => Ok(()),
        }
    }
}
