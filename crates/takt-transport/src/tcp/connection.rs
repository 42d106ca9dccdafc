//! One connection: its stream, and what waits to go out and what has come in.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use takt_wire::Locator;

use super::buffer::Buffer;
use super::framing::{self, FRAME_MAX, Malformed, Prefix};
use super::stream::{self, Progress, Stream};
use crate::udp::syscall::epoll_change;

/// Room for a message that is not complete and for as much again.
const RECEIVE_BUFFER: usize = 2 * FRAME_MAX;

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Begun by us; the other side has not answered yet.
    Opening,
    Open,
    /// What waits is sent and what comes is taken, but nothing new is sent: another connection leads to the same participant.
    Leaving,
    /// Nothing more comes. It is closed when what has come was taken.
    Ended,
}

/// Who is at the other end, as the first message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Participant {
    pub(super) vendor: [u8; 2],
    pub(super) prefix: Prefix,
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    /// Larger than those of earlier ones.
    pub(super) token: u64,
    pub(super) state: State,
    /// The other end's address.
    pub(super) peer: SocketAddr,
    /// Where it was received.
    pub(super) local: Locator,
    /// Whether it was begun by us.
    pub(super) is_ours: bool,
    /// The way that it is part of; none before the first message of a connection that we accepted.
    pub(super) link: Option<usize>,
    pub(super) participant: Option<Participant>,
    /// Until when it must get further, if it must.
    pub(super) deadline: Option<Instant>,
    /// It is in the list of those with something to send.
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
            is_ours,
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

    /// Whether something may be sent by it, now or once it is open.
    pub(super) fn carries(&self) -> bool {
        matches!(self.state, State::Opening | State::Open)
    }

    /// Whether both ends know that it is open.
    pub(super) fn is_established(&self) -> bool {
        self.state == State::Open && !self.stream.is_handshaking()
    }

    /// Queues a frame, as a whole or not at all.
    pub(super) fn queue(&mut self, frame: &[u8], epoll: BorrowedFd<'_>) -> io::Result<bool> {
        if self.outgoing.free() < frame.len() {
            self.send(epoll)?;
        }
        Ok(self.outgoing.push(frame))
    }

    /// Goes on with opening, and sends what waits.
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

    /// The length of the frame that has come, if one has.
    pub(super) fn next_frame(&self) -> Result<Option<usize>, Malformed> {
        framing::next(self.incoming.data())
    }

    /// The certificate of the other side, in DER; none without TLS.
    pub(super) fn certificate(&self) -> Option<&[u8]> {
        self.stream.certificate()
    }

    /// What has come, the next frame first.
    pub(super) fn pending(&self) -> &[u8] {
        self.incoming.data()
    }

    /// Takes out a frame of this length, and says where its message stands.
    pub(super) fn take(&mut self, len: usize) -> std::ops::Range<usize> {
        let frame = self.incoming.consume(len);
        framing::unwrap(self.incoming.taken(frame.clone()));
        frame.start + framing::LENGTH..frame.end
    }

    /// A message that was taken.
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
