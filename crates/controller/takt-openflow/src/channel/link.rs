//! Common part of both ends of a channel: framing, HELLO, ECHO, and the transmit queue.

use alloc::vec::Vec;

use super::{CloseReason, Counters, Instant, Limits, SendError};
use crate::cause::{BadRequest, Cause, ErrorMessage, HelloFailed};
use crate::error::Malformed;
use crate::hello::{Hello, negotiate};
use crate::message::{HEADER_LEN, Header, Message, UNKNOWN_TYPE, Xid};
use crate::stream::{MessageStream, StreamError};
use crate::version::{Version, Versions};

/// Octets of a failed message in an ERROR (OF 1.3.5 §7.4.4).
const ERROR_DATA_LEN: usize = 64;
/// The types of HELLO and ERROR in every version.
const HELLO: u8 = 0;
const ERROR: u8 = 1;

enum State {
    /// HELLO is sent, and that of the peer has not arrived.
    Hello,
    Open(Version),
    Closed,
}

/// Result of received octets.
pub(super) enum Received {
    /// HELLO arrived and the version is negotiated.
    Open(Version),
    /// Message that the channel does not answer itself.
    Message {
        /// Transaction ID.
        xid: Xid,
        /// The message.
        message: Message,
        /// Length on the wire, in octets.
        len: usize,
    },
    /// Malformed message. A switch has answered it with an ERROR.
    Malformed(Header, Malformed),
    /// The connection has ended.
    Down(CloseReason),
}

pub(super) struct Link {
    versions: Versions,
    /// Whether malformed messages are answered. A switch answers them, a controller only counts
    /// them.
    answers_malformed: bool,
    state: State,
    stream: MessageStream,
    out: Vec<u8>,
    /// Octets of `out` that have been transmitted.
    sent: usize,
    transmit_bytes: usize,
    next_xid: Xid,
    /// Time of the last message of the peer.
    last_received: Instant,
    /// Time of an ECHO_REQUEST after which no message has arrived.
    echo_sent: Option<Instant>,
    echo_idle: core::time::Duration,
    echo_timeout: core::time::Duration,
    pub(super) counters: Counters,
}

impl Link {
    /// Queues HELLO. With an empty set of versions, no connection is established.
    pub(super) fn new(now: Instant, versions: Versions, limits: &Limits, answers_malformed: bool) -> Self {
        let mut link = Self {
            versions,
            answers_malformed,
            state: State::Hello,
            stream: MessageStream::new(),
            out: Vec::new(),
            sent: 0,
            transmit_bytes: limits.transmit_bytes,
            next_xid: 1,
            last_received: now,
            echo_sent: None,
            echo_idle: limits.echo_idle,
            echo_timeout: limits.echo_timeout,
            counters: Counters::default(),
        };
        let xid = link.xid();
        link.answer(link.own_version(), xid, &Message::Hello(Hello::new(versions)));
        link
    }

    fn own_version(&self) -> Version {
        self.versions.highest().unwrap_or(Version::V1_0)
    }

    pub(super) fn version(&self) -> Option<Version> {
        match self.state {
            State::Open(version) => Some(version),
            State::Hello | State::Closed => None,
        }
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    pub(super) fn close(&mut self) {
        self.state = State::Closed;
    }

    /// Returns a transaction ID that differs from the last 2^32 - 1 ones.
    pub(super) fn xid(&mut self) -> Xid {
        let xid = self.next_xid;
        self.next_xid = xid.checked_add(1).unwrap_or(1);
        xid
    }

    pub(super) fn untransmitted(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    pub(super) fn transmitted(&mut self, len: usize) {
        self.sent = self.out.len().min(self.sent.saturating_add(len));
        // Transmitted octets are removed once they are at least half of the buffer.
        if self.sent * 2 >= self.out.len() {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Queues all messages of the application, or none.
    pub(super) fn send<'m>(&mut self, messages: impl Iterator<Item = (Xid, &'m Message)>) -> Result<(), SendError> {
        let version = self.version().ok_or(SendError::NotConnected)?;
        let start = self.out.len();
        let waiting = start - self.sent;
        for (xid, message) in messages {
            if let Err(error) = message.encode_into(version, xid, &mut self.out) {
                self.out.truncate(start);
                return Err(SendError::Encode(error));
            }
        }
        let needed = self.out.len() - start;
        let free = self.transmit_bytes.saturating_sub(waiting);
        if needed > free {
            self.out.truncate(start);
            return Err(SendError::OutOfRoom { needed, free });
        }
        Ok(())
    }

    /// Queues a message of the channel itself. [`Self::has_reserve`] reserves space for it.
    fn answer(&mut self, version: Version, xid: Xid, message: &Message) {
        let result = message.encode_into(version, xid, &mut self.out);
        debug_assert!(result.is_ok(), "messages of the channel can be encoded in every version: {result:?}");
    }

    /// Queues a message that results from a received one, like [`Self::answer`].
    pub(super) fn follow_up(&mut self, xid: Xid, message: &Message) {
        if let Some(version) = self.version() {
            self.answer(version, xid, message);
        }
    }

    /// Queues an ERROR for a message. A cause that the version lacks is sent as BAD_REQUEST, EPERM.
    pub(super) fn refuse(&mut self, xid: Xid, cause: Cause, failed: &[u8]) {
        let data = failed[..failed.len().min(ERROR_DATA_LEN)].to_vec();
        let version = self.version().unwrap_or(self.own_version());
        let mut error = ErrorMessage { cause, data };
        if Message::Error(error.clone()).encode(version, xid).is_err() {
            error.cause = Cause::BadRequest(BadRequest::Eperm);
        }
        self.answer(version, xid, &Message::Error(error));
    }

    /// Reports whether the replies to one message may be queued. They may exceed the limit by at
    /// most the longest message.
    fn has_reserve(&self) -> bool {
        self.out.len() - self.sent <= self.transmit_bytes
    }

    /// Takes octets until there is a message that the channel does not answer itself. `bytes`
    /// becomes the remaining octets.
    pub(super) fn receive(&mut self, now: Instant, bytes: &mut &[u8]) -> Option<Received> {
        while !self.is_closed() && self.has_reserve() {
            match self.stream.push(bytes) {
                Ok(taken) => *bytes = &bytes[taken..],
                Err(error) => return Some(self.bad_stream(error)),
            }
            let (header, octets) = self.stream.message()?;
            self.last_received = now;
            self.echo_sent = None;
            self.counters.received += 1;
            let received = match self.state {
                State::Hello => {
                    let received = match header.kind {
                        HELLO => Hello::decode_body(&octets[HEADER_LEN..]).map_err(CloseReason::MalformedHello),
                        ERROR => Err(refusal(header, octets)),
                        kind => Err(CloseReason::NoHello { kind }),
                    };
                    Some(self.hello(header, received))
                }
                State::Open(version) => match Message::decode(version, octets) {
                    Ok((xid, message)) => self.handle(version, xid, message, usize::from(header.len)),
                    Err(error) => {
                        let failed = octets[..octets.len().min(ERROR_DATA_LEN)].to_vec();
                        Some(self.malformed(header, error, &failed))
                    }
                },
                State::Closed => None,
            };
            self.stream.pop();
            if received.is_some() {
                return received;
            }
        }
        None
    }

    fn bad_stream(&mut self, error: StreamError) -> Received {
        if let (StreamError::ForeignVersion { .. }, Some(_)) = (error, self.version()) {
            self.refuse(0, Cause::BadRequest(BadRequest::BadVersion), &[]);
        }
        self.close();
        Received::Down(CloseReason::Stream(error))
    }

    /// Handles the first message of the peer.
    fn hello(&mut self, header: Header, hello: Result<Hello, CloseReason>) -> Received {
        let down = match hello {
            Ok(hello) => match negotiate(self.versions, header.version, &hello) {
                Some(version) => {
                    self.state = State::Open(version);
                    self.stream.set_version(version);
                    return Received::Open(version);
                }
                None => CloseReason::NoCommonVersion {
                    own: self.versions,
                    peer: hello.versions(),
                    peer_header: header.version,
                },
            },
            Err(down) => down,
        };
        if !matches!(down, CloseReason::Refused(_)) {
            let cause = Cause::HelloFailed(HelloFailed::Incompatible);
            let data = alloc::format!("{down}").into_bytes();
            let answer = Message::Error(ErrorMessage { cause, data });
            self.answer(self.own_version(), header.xid, &answer);
        }
        self.close();
        Received::Down(down)
    }

    fn handle(&mut self, version: Version, xid: Xid, message: Message, len: usize) -> Option<Received> {
        match message {
            Message::EchoRequest(octets) => {
                self.counters.echoes += 1;
                self.answer(version, xid, &Message::EchoReply(octets));
                None
            }
            // The activity of the peer has been recorded. A second HELLO has no effect.
            Message::EchoReply(_) | Message::Hello(_) => None,
            message => Some(Received::Message { xid, message, len }),
        }
    }

    fn malformed(&mut self, header: Header, error: Malformed, failed: &[u8]) -> Received {
        self.counters.malformed += 1;
        if self.answers_malformed && header.kind != ERROR {
            let cause = if error.what == UNKNOWN_TYPE { BadRequest::BadType } else { BadRequest::BadLen };
            self.refuse(header.xid, Cause::BadRequest(cause), failed);
        }
        Received::Malformed(header, error)
    }

    /// Returns the time at which an ECHO_REQUEST is due, or the connection ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match (&self.state, self.echo_sent) {
            (State::Open(_), Some(sent)) => Some(sent.after(self.echo_timeout)),
            (State::Open(_), None) => Some(self.last_received.after(self.echo_idle)),
            _ => None,
        }
    }

    /// Sends an ECHO_REQUEST to a silent peer, or ends the connection.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<CloseReason> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        if self.echo_sent.is_some() {
            self.close();
            return Some(CloseReason::PeerSilent);
        }
        // A peer that takes no octets is silent as well. No further request is queued, but the
        // timeout runs.
        self.echo_sent = Some(now);
        if self.has_reserve() {
            let xid = self.xid();
            self.follow_up(xid, &Message::EchoRequest(Vec::new()));
        }
        None
    }
}

/// Returns the reason of an ERROR instead of HELLO, decoded in the version of the peer.
fn refusal(header: Header, octets: &[u8]) -> CloseReason {
    let version = Version::from_octet(header.version).unwrap_or(Version::V1_0);
    let mut octets = octets.to_vec();
    octets[0] = version.octet();
    match Message::decode(version, &octets) {
        Ok((_, Message::Error(error))) => CloseReason::Refused(error),
        Ok(_) => CloseReason::NoHello { kind: header.kind },
        Err(error) => CloseReason::MalformedHello(error),
    }
}
