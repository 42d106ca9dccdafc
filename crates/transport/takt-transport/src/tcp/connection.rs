//! TCP connection: its stream and its queues in both directions.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use takt_wire::Locator;

use super::buffer::Buffer;
use super::framing::{self, FRAME_MAX, Malformed, Prefix};
use super::stream::{self, Progress, Stream};
use crate::udp::syscall::epoll_change;

/// Room for an incomplete message and for as much again.
const RECEIVE_BUFFER: usize = 2 * FRAME_MAX;

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Begun by this side; the peer has not answered yet.
    Opening,
    Open,
    /// Queued and received messages are still processed, but new ones are sent by another
    /// connection to the same participant.
    Leaving,
    /// The peer sends nothing more. Closed when the received messages are processed.
    Ended,
}

/// Participant at the other end, as its first message states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Participant {
    pub(super) vendor: [u8; 2],
    pub(super) prefix: Prefix,
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    /// Token of the connection, larger than those of earlier connections.
    pub(super) token: u64,
    pub(super) state: State,
    /// Address of the peer.
    pub(super) peer: SocketAddr,
    /// Locator where its messages are received.
    pub(super) local: Locator,
    /// Whether this side began it.
    pub(super) is_initiator: bool,
    /// Index of its link; `None` before the first message of an accepted connection.
    pub(super) link: Option<usize>,
    pub(super) participant: Option<Participant>,
    /// Time by which it must make progress, if any.
    pub(super) deadline: Option<Instant>,
    /// Whether it is in the list of connections with queued messages.
    pub(super) is_dirty: bool,
    watches_output: bool,
    has_finished: bool,
    incoming: Buffer,
    outgoing: Buffer,
}

impl Connection {
    pub(super) fn new(stream: Stream, token: u64, peer: SocketAddr, is_ours: bool, send_queue: usize) -> Self {
        Self {
            stream,
            token,
            state: if is_ours { State::Opening } else { State::Open },
            peer,
            local: Locator::INVALID,
            is_initiator: is_ours,
            link: None,
            participant: None,
            deadline: None,
            is_dirty: false,
            watches_output: false,
            has_finished: false,
            incoming: Buffer::new(RECEIVE_BUFFER),
            outgoing: Buffer::new(send_queue),
        }
    }

    /// Reports whether messages can be queued, to be sent now or once it is open.
    pub(super) fn accepts_messages(&self) -> bool {
        matches!(self.state, State::Opening | State::Open)
    }

    /// Reports whether both ends know that it is open.
    pub(super) fn is_established(&self) -> bool {
        self.state == State::Open && !self.stream.is_handshaking()
    }

    /// Queues a whole frame, or nothing. Reports whether it was queued.
    pub(super) fn queue(&mut self, frame: &[u8], epoll: BorrowedFd<'_>) -> io::Result<bool> {
        if self.outgoing.free() < frame.len() {
            self.send(epoll)?;
        }
        Ok(self.outgoing.push(frame))
    }

    /// Continues to open the connection, and sends queued bytes.
    pub(super) fn send(&mut self, epoll: BorrowedFd<'_>) -> io::Result<()> {
        if self.state == State::Opening {
            if !stream::is_open(self.stream.socket(), self.peer)? {
                return self.watch_output(epoll, true);
            }
            self.state = State::Open;
        }
        if self.state == State::Ended || self.has_finished {
            return Ok(());
        }
        let progress = self.stream.write_from(&mut self.outgoing)?;
        if self.state == State::Leaving && self.outgoing.is_empty() && progress == Progress::Done {
            self.stream.finish();
            self.has_finished = true;
        }
        self.watch_output(epoll, progress == Progress::Blocked)
    }

    /// Reads once.
    pub(super) fn receive(&mut self) -> io::Result<()> {
        if matches!(self.state, State::Opening | State::Ended) {
            return Ok(());
        }
        if self.stream.read_into(&mut self.incoming)? == Progress::Ended {
            self.state = State::Ended;
        }
        Ok(())
    }

    /// Returns the length of the next received frame, if it is complete.
    pub(super) fn next_frame(&self) -> Result<Option<usize>, Malformed> {
        framing::next(self.incoming.data())
    }

    /// Returns the certificate of the peer, in DER; none without TLS.
    pub(super) fn certificate(&self) -> Option<&[u8]> {
        self.stream.certificate()
    }

    /// Returns the received bytes, the next frame first.
    pub(super) fn pending(&self) -> &[u8] {
        self.incoming.data()
    }

    /// Removes a frame of this length, and returns the range of its message.
    pub(super) fn take(&mut self, len: usize) -> std::ops::Range<usize> {
        let frame = self.incoming.consume(len);
        framing::unwrap(self.incoming.taken(frame.clone()));
        frame.start + framing::LENGTH..frame.end
    }

    /// Returns a message that was removed.
    pub(super) fn message(&mut self, range: std::ops::Range<usize>) -> &[u8] {
        self.incoming.taken(range)
    }

    fn watch_output(&mut self, epoll: BorrowedFd<'_>, output: bool) -> io::Result<()> {
        if self.watches_output != output {
            epoll_change(epoll, self.stream.as_fd(), self.token, output)?;
            self.watches_output = output;
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
