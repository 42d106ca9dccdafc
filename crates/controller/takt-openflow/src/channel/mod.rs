//! OpenFlow channel, sans-IO: a state machine for the controller and one for the switch (
//! OF 1.3.5 §6.3).
//!
//! [`Controller`] and [`Switch`] take octets ([`Controller::handle_bytes`]), time
//! ([`Controller::handle_timeout`]) and messages of the application. They return octets
//! (`poll_transmit`), events (`poll_event`) and the time of the next deadline (`poll_timeout`).
//! Neither reads a clock, opens a connection or uses a random source; `now` is always an argument.
//!
//! All memory is bounded by [`Limits`]. While a queue is full, the channel takes no octets, so that
//! TCP flow control stops the peer. Messages of the application are then refused with
//! [`SendError::OutOfRoom`]. Nothing is dropped. When a connection ends, every operation in flight
//! is reported as lost.
//!
//! One call of `handle_bytes` handles the messages in its octets. Each message costs its decoding
//! and a constant number of look-ups. The reply that closes a bundle also causes one further
//! message.

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

/// Point in time, in nanoseconds since an arbitrary fixed epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// Returns the time after a span. It saturates at the maximum.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Memory limits and time limits of a channel.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Octets that wait for transmission. At the limit, messages of the application are refused and
    /// no octets are accepted. Replies of the channel to earlier messages are added to it: at
    /// most one message, and 100 octets for each event.
    pub transmit_bytes: usize,
    /// Events that wait for the application. At the limit, no further octets are accepted.
    pub events: usize,
    /// Messages in flight, which wait for a reply.
    pub in_flight: usize,
    /// Octets of one multipart reply.
    pub multipart_bytes: usize,
    /// Open bundles of a switch.
    pub bundles: usize,
    /// Messages of one bundle in a switch.
    pub bundle_messages: usize,
    /// Time from the connection to the end of the handshake.
    pub handshake: Duration,
    /// Silence of the peer after which an ECHO_REQUEST is sent.
    pub echo_idle: Duration,
    /// Further silence after which the connection is closed.
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

/// Error of a message that was refused as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SendError {
    /// The handshake is not complete, or the connection has ended.
    NotConnected,
    /// The transmit queue is full. `poll_transmit` and `transmitted` free it.
    OutOfRoom {
        /// Octets that the message needs.
        needed: usize,
        /// Free octets.
        free: usize,
    },
    /// The limit of messages in flight is reached.
    TooManyInFlight {
        /// Limit of [`Limits::in_flight`].
        limit: usize,
    },
    /// The message has no reply. It can be sent in a transaction.
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
                write!(f, "{needed} octets exceed the {free} free octets of the send buffer; transmit first")
            }
            Self::TooManyInFlight { limit } => {
                write!(f, "more than {limit} messages would await a reply (Limits::in_flight)")
            }
            Self::NoReply => f.write_str("this message has no reply: send it in a transaction"),
            Self::Encode(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SendError {}

/// Reason why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// The application closed it.
    Closed,
    /// The peer closed the connection, or the network failed.
    PeerClosed,
    /// The peer was silent for the idle time and the echo timeout.
    PeerSilent,
    /// The handshake exceeded its time limit.
    HandshakeTimedOut,
    /// The first message was not HELLO.
    NoHello {
        /// The type of the first message.
        kind: u8,
    },
    /// HELLO is malformed.
    MalformedHello(Malformed),
    /// The two ends have no common version.
    NoCommonVersion {
        /// Versions of this end.
        own: Versions,
        /// Versions of the peer, if it sent a bitmap.
        peer: Option<Versions>,
        /// Version in the peer's header.
        peer_header: u8,
    },
    /// A message of the handshake cannot be sent.
    Handshake(SendError),
    /// The peer refused the handshake.
    Refused(ErrorMessage),
    /// The octets of the peer are not a sequence of messages.
    Stream(StreamError),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed by the application"),
            Self::PeerClosed => f.write_str("closed by the peer"),
            Self::PeerSilent => f.write_str("the peer does not answer ECHO_REQUEST"),
            Self::HandshakeTimedOut => f.write_str("the handshake timed out"),
            Self::NoHello { kind } => write!(f, "the first message has type {kind}, expected HELLO"),
            Self::MalformedHello(error) => write!(f, "HELLO is {error}"),
            Self::NoCommonVersion { own, peer: Some(peer), .. } => {
                write!(f, "no common version: bitmap {:#x} here, {:#x} there", own.bitmap(), peer.bitmap())
            }
            Self::NoCommonVersion { own, peer_header, .. } => {
                write!(f, "no common version: bitmap {:#x} here, wire version {peer_header} there", own.bitmap())
            }
            Self::Handshake(error) => write!(f, "cannot send the handshake: {error}"),
            Self::Refused(error) => write!(f, "refused by the peer: {error}"),
            Self::Stream(error) => error.fmt(f),
        }
    }
}

/// Counters of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Messages received.
    pub received: u64,
    /// Malformed messages received.
    pub malformed: u64,
    /// Replies and errors without a matching request in flight, for instance after its deadline.
    pub unmatched: u64,
    /// Answered ECHO_REQUESTs.
    pub echoes: u64,
}
