//! The OpenFlow channel, sans-IO: a state machine for the controller and one for the switch (OF 1.3.5 §6.3).
//!
//! [`Controller`] and [`Switch`] take octets ([`Controller::handle_bytes`]), time ([`Controller::handle_timeout`]) and the
//! application's messages, and give octets (`poll_transmit`), events (`poll_event`) and the time of the next deadline
//! (`poll_timeout`). Neither reads a clock, opens a connection or uses a random source; `now` is always an argument.
//!
//! Everything that can grow has a limit in [`Limits`]. A queue that is full stops the channel from taking octets, so that
//! TCP's flow control stops the peer; what the application sends is refused with [`SendError::OutOfRoom`]. Nothing is dropped.
//! When a connection ends, every operation in flight is reported as lost.
//!
//! One call of `handle_bytes` handles the messages in the octets it is given; one message costs a decoding and a constant
//! number of look-ups, one of a bundle's closing the sending of one further message.

mod backoff;
mod bundles;
mod controller;
mod link;
mod operation;
mod switch;

use core::fmt;
use core::time::Duration;

pub use self::backoff::Backoff;
pub use self::bundles::StoredBundle;
pub use self::controller::{Controller, ControllerConfig, Event};
pub use self::operation::{Failure, OperationId, Outcome};
pub use self::switch::{Generation, Request, Switch, SwitchChannelConfig, SwitchEvent};
use crate::cause::ErrorMessage;
use crate::error::{EncodeError, Malformed};
use crate::stream::StreamError;
use crate::version::Versions;

/// A moment, in nanoseconds since any fixed one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// This moment and a span, at most the last moment there is.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// What a channel may hold, and how long it waits.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Octets that wait for transmission. Beyond it, messages of the application are refused and no octets are taken; the answers
    /// of the channel itself to what was taken before, at most one message and 100 octets for each event, come on top.
    pub transmit_bytes: usize,
    /// Events that wait for the application. Beyond it, no further octets are taken.
    pub events: usize,
    /// Messages that wait for an answer.
    pub in_flight: usize,
    /// Octets of one reply in several parts.
    pub multipart_bytes: usize,
    /// Bundles that are open at a switch.
    pub bundles: usize,
    /// Messages of one bundle at a switch.
    pub bundle_messages: usize,
    /// From the connection to the end of the handshake.
    pub handshake: Duration,
    /// Silence of the peer after which it is asked by ECHO_REQUEST.
    pub echo_idle: Duration,
    /// Further silence after which the connection is given up.
    pub echo_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            transmit_bytes: 1 << 20,
            events: 1024,
            in_flight: 8192,
            multipart_bytes: 16 << 20,
            bundles: 16,
            bundle_messages: 8192,
            handshake: Duration::from_secs(10),
            echo_idle: Duration::from_secs(5),
            echo_timeout: Duration::from_secs(5),
        }
    }
}

/// A message that was not taken; nothing of it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SendError {
    /// The handshake has not ended, or the connection has.
    NotConnected,
    /// The octets that wait for transmission leave no room: `poll_transmit` makes some.
    OutOfRoom {
        /// Octets needed.
        needed: usize,
        /// Octets free.
        free: usize,
    },
    /// So many messages wait for an answer already.
    TooManyInFlight {
        /// [`Limits::in_flight`].
        limit: usize,
    },
    /// No reply belongs to the message: it goes into a transaction.
    NoReply,
    /// The version cannot express the message.
    Encode(EncodeError),
}

impl From<EncodeError> for SendError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("the channel is not connected"),
            Self::OutOfRoom { needed, free } => {
                write!(f, "{needed} octets do not fit into the {free} that are free; transmit first")
            }
            Self::TooManyInFlight { limit } => {
                write!(f, "more than {limit} messages would wait for an answer (Limits::in_flight)")
            }
            Self::NoReply => f.write_str("no reply belongs to this message: send it in a transaction"),
            Self::Encode(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SendError {}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Down {
    /// The application closed it.
    Closed,
    /// The peer closed it, or the network did.
    PeerClosed,
    /// The peer sent nothing for the idle time and the time of the echo.
    PeerSilent,
    /// The handshake took too long.
    HandshakeTimedOut,
    /// The first message was no HELLO.
    NoHello {
        /// The type of the first message.
        kind: u8,
    },
    /// HELLO could not be read.
    MalformedHello(Malformed),
    /// There is no version that both ends speak.
    NoCommonVersion {
        /// What this end speaks.
        own: Versions,
        /// What the peer said, if it sent a bitmap.
        peer: Option<Versions>,
        /// The version of the peer's header.
        peer_header: u8,
    },
    /// A message of the handshake cannot be sent.
    Handshake(SendError),
    /// The peer refused the handshake.
    Refused(ErrorMessage),
    /// The octets of the peer are no messages.
    Stream(StreamError),
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed by the application"),
            Self::PeerClosed => f.write_str("closed by the peer"),
            Self::PeerSilent => f.write_str("the peer does not answer ECHO_REQUEST"),
            Self::HandshakeTimedOut => f.write_str("the handshake did not end in time"),
            Self::NoHello { kind } => write!(f, "the first message has the type {kind} and is no HELLO"),
            Self::MalformedHello(error) => write!(f, "HELLO is {error}"),
            Self::NoCommonVersion { own, peer: Some(peer), .. } => {
                write!(f, "no common version: bitmap {:#x} here, {:#x} there", own.bitmap(), peer.bitmap())
            }
            Self::NoCommonVersion { own, peer_header, .. } => {
                write!(f, "no common version: bitmap {:#x} here, wire version {peer_header} there", own.bitmap())
            }
            Self::Handshake(error) => write!(f, "the handshake cannot be sent: {error}"),
            Self::Refused(error) => write!(f, "refused by the peer: {error}"),
            Self::Stream(error) => error.fmt(f),
        }
    }
}

/// What a channel counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Messages received.
    pub received: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// Replies and errors that answer nothing in flight, as after a deadline.
    pub unmatched: u64,
    /// ECHO_REQUESTs answered.
    pub echoes: u64,
}
