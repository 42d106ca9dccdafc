//! Send window of a writer: how much of its history was sent, and may be sent before its reliable
//! readers acknowledge.

use crate::time::Instant;
use takt_wire::SequenceNumber;

/// First change, or fragment of it, that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) sn: SequenceNumber,
    pub(super) fragment: u32,
}

impl Cursor {
    /// Returns the position of a change of which nothing was sent.
    pub(super) fn at(sn: SequenceNumber) -> Self {
        Self { sn, fragment: 1 }
    }

    /// Returns the last change that was sent at least in part.
    pub(super) fn begun(&self) -> SequenceNumber {
        if self.fragment > 1 { self.sn } else { self.sn.prev() }
    }
}

#[derive(Debug)]
pub(super) struct SendWindow {
    pub(super) cursor: Cursor,
    /// Last change that all reliable readers had acknowledged when the window was last moved.
    pub(super) start: SequenceNumber,
    pub(super) in_flight_bytes: usize,
    /// The last datagram or the window was full: the next datagram is to be full too.
    pub(super) stalled: bool,
    /// Time at which the window closed, if it has not opened since.
    pub(super) closed_since: Option<Instant>,
    /// Last change that was loaned to readers with shared memory while it was still to be sent to
    /// others.
    pub(super) last_loaned: SequenceNumber,
}

impl SendWindow {
    pub(super) fn new() -> Self {
        Self {
            cursor: Cursor::at(SequenceNumber::FIRST),
            start: SequenceNumber::ZERO,
            in_flight_bytes: 0,
            stalled: false,
            closed_since: None,
            last_loaned: SequenceNumber::ZERO,
        }
    }
}
