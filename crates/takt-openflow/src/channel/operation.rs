//! What the controller has asked for and not yet been answered.

use alloc::vec::Vec;

use super::Instant;
use crate::cause::ErrorMessage;
use crate::error::Malformed;
use crate::message::{Message, Xid};
use crate::multipart::ReplyBody;

/// A request, transaction or bundle of one connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OperationId(pub(super) u64);

/// An ERROR about a part of a transaction or bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The index of the message that failed; `None` for the barrier, or for the bundle itself.
    pub message: Option<usize>,
    /// Why.
    pub error: ErrorMessage,
}

/// How an operation ended. Each ends once.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The reply to a request.
    Reply(Message),
    /// The reply to a multipart request, all parts together.
    Multipart(ReplyBody),
    /// Every message of the transaction or bundle was executed.
    Done,
    /// The request, or messages of the transaction, failed. Of a bundle, nothing was executed.
    Failed(Vec<Failure>),
    /// The deadline passed. What the switch did is unknown; the errors so far are listed.
    TimedOut(Vec<Failure>),
    /// The connection ended. What the switch did is unknown; the errors so far are listed.
    Lost(Vec<Failure>),
    /// The reply has more octets than [`super::Limits::multipart_bytes`].
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The reply is of another type than the request, or of a multipart type that changed between parts.
    Unexpected(Message),
    /// The reply cannot be read.
    Malformed(Malformed),
}

/// Where a bundle stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Opened, filled and closed; the closing is not answered.
    Filling,
    /// The commit is not answered.
    Committing,
    /// The discard is not answered.
    Discarding,
}

/// What is asked for.
#[derive(Debug)]
pub(super) enum Kind {
    /// One reply of the type that belongs to the request.
    Request {
        /// Whether a message answers the request.
        is_reply: fn(&Message) -> bool,
    },
    /// Parts of one reply.
    Multipart {
        /// The type.
        kind: u16,
        /// The parts so far.
        body: Option<ReplyBody>,
        /// Their octets.
        octets: usize,
    },
    /// Messages, then a barrier.
    Transaction,
    /// A bundle.
    Bundle {
        /// The number.
        bundle: u32,
        /// The flags.
        flags: u16,
        /// Where it stands.
        stage: Stage,
        /// Whether it was opened.
        is_open: bool,
    },
}

/// Something in flight.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    pub(super) deadline: Instant,
    /// The transaction ids that belong to it.
    pub(super) xids: Vec<Xid>,
    pub(super) failures: Vec<Failure>,
}

/// What a transaction id stands for in its operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// A message of the application.
    Message(usize),
    /// The barrier of a transaction, or the opening of a bundle.
    First,
    /// The closing, commit or discard of a bundle.
    Control,
}

/// Whether `reply` answers `request`; `None` for a message that has no reply.
pub(super) fn reply_to(request: &Message) -> Option<fn(&Message) -> bool> {
    Some(match request {
        Message::FeaturesRequest => |reply| matches!(reply, Message::FeaturesReply(_)),
        Message::GetConfigRequest => |reply| matches!(reply, Message::GetConfigReply(_)),
        Message::BarrierRequest => |reply| matches!(reply, Message::BarrierReply),
        Message::RoleRequest(_) => |reply| matches!(reply, Message::RoleReply(_)),
        Message::GetAsyncRequest => |reply| matches!(reply, Message::GetAsyncReply(_)),
        Message::QueueGetConfigRequest(_) => |reply| matches!(reply, Message::QueueGetConfigReply(_)),
        Message::Experimenter(_) => |reply| matches!(reply, Message::Experimenter(_)),
        _ => return None,
    })
}
