//! Operations of the controller that wait for a reply.

use alloc::vec::Vec;

use super::Instant;
use crate::cause::ErrorMessage;
use crate::error::Malformed;
use crate::message::{Message, Xid};
use crate::multipart::ReplyBody;

/// Identifier of a request, transaction or bundle of one connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OperationId(pub(super) u64);

/// ERROR for a part of a transaction or bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Index of the failed message. `None` for the barrier, or for the bundle itself.
    pub message: Option<usize>,
    /// Content of the ERROR.
    pub error: ErrorMessage,
}

/// Outcome of an operation. Each operation ends once.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Reply to a request.
    Reply(Message),
    /// Complete reply to a multipart request.
    Multipart(ReplyBody),
    /// All messages of the transaction or bundle were executed.
    Done,
    /// The request, or messages of the transaction, failed. No message of a bundle was executed.
    Failed(Vec<Failure>),
    /// The deadline passed. It is unknown what the switch executed. The errors so far are listed.
    TimedOut(Vec<Failure>),
    /// The connection ended. It is unknown what the switch executed. The errors so far are listed.
    Lost(Vec<Failure>),
    /// The reply is longer than [`super::Limits::multipart_bytes`].
    TooLarge {
        /// Limit in octets.
        limit: usize,
    },
    /// The reply has another type than the request, or its multipart type changed between parts.
    Unexpected(Message),
    /// The reply is malformed.
    Malformed(Malformed),
}

/// State of a bundle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Open, add and close messages are sent; the close is not confirmed.
    Filling,
    /// The commit is not confirmed.
    Committing,
    /// The discard is not confirmed.
    Discarding,
}

/// Kind of an operation.
#[derive(Debug)]
pub(super) enum Kind {
    /// One reply of the type of the request.
    Request {
        /// Whether a message is a reply to the request.
        is_reply: fn(&Message) -> bool,
    },
    /// Multipart reply.
    Multipart {
        /// Multipart type.
        kind: u16,
        /// Parts so far.
        body: Option<ReplyBody>,
        /// Octets of the parts so far.
        octets: usize,
    },
    /// Messages, followed by a barrier.
    Transaction,
    /// A bundle.
    Bundle {
        /// Number of the bundle.
        bundle: u32,
        /// Flags of the bundle.
        flags: u16,
        /// State of the bundle.
        stage: Stage,
        /// Whether the open was confirmed.
        is_open: bool,
    },
}

/// Operation in flight.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    pub(super) deadline: Instant,
    /// Transaction IDs of the operation.
    pub(super) xids: Vec<Xid>,
    pub(super) failures: Vec<Failure>,
}

/// Part of an operation that a transaction ID stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Message of the application, by its index.
    Message(usize),
    /// Barrier of a transaction, or open of a bundle.
    First,
    /// Close, commit or discard of a bundle.
    Control,
}

/// Returns a predicate for replies to `request`, or `None` for a message without reply.
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
