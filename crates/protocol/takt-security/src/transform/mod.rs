//! Protection of payloads, submessages and RTPS messages (DDS-SEC 1.1 §9.5.3.3).
//!
//! A [`Sealer`] protects with one master key, an [`Opener`] opens octets protected with one remote
//! master key. A sealer works in place in a buffer of the caller. It takes the range of the plain
//! octets, with room before ([`Form::headroom`]) and after them ([`Sealer::tailroom`]), and returns
//! the range of the protected octets. An opener does not change the protected octets. Signed octets
//! stay in the caller's buffer, encrypted ones are decrypted into memory of the caller. After setup
//! neither allocates, except when the session changes; [`Sealer::prepare_rollover`] moves that
//! allocation out of the data path.
//!
//! Fields that the specification leaves unauthenticated are checked as well: flags, lengths,
//! padding and the RTPS header must have the only value that a sender writes. A message with any
//! changed bit is refused, except in codes of other receivers, which only those receivers can
//! check. After an error the content of the sealer's buffer and of the opener's memory is
//! undefined.
//!
//! Limits: an encrypted submessage or message has at most [`BODY_LEN_MAX`] octets, and a sealer at
//! most [`RECEIVERS_MAX`] receivers with receiver-specific codes.

mod cipher;
mod header;
mod layout;
mod message;
mod opener;
mod payload;
mod replay;
mod sealer;
mod submessage;

use std::fmt;

pub use header::{CryptoHeader, peek_message, peek_payload, peek_submessage};
pub use layout::{BODY_LEN_MAX, Form};
pub use opener::{Opened, Opener, ReplayState, Replays};
pub use replay::REPLAY_WINDOW;
pub use sealer::{BLOCKS_PER_SESSION, RECEIVERS_MAX, Receivers, Sealer};

/// Reason for which octets were not protected or not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransformError {
    /// The octets do not have the required form.
    Malformed(&'static str),
    /// The header names another key or kind than the one of the opener.
    WrongKey,
    /// The common authentication code is wrong: the octets are forged or damaged.
    Authentication,
    /// The code for this receiver is missing or wrong.
    ReceiverCode,
    /// The message was received before, or is older than the replay window.
    Replay,
    /// The buffer is too small for the plain octets with their headers and codes.
    BufferTooSmall,
    /// The sealer has [`RECEIVERS_MAX`] receivers.
    TooManyReceivers,
    /// The plain octets exceed [`BODY_LEN_MAX`].
    TooLong,
    /// Every session of the master key is exhausted.
    KeyExhausted,
    /// OpenSSL failed.
    Library,
}

impl fmt::Display for TransformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed(what) => return write!(f, "malformed: {what}"),
            Self::WrongKey => "protected with another key",
            Self::Authentication => "authentication code does not match",
            Self::ReceiverCode => "no valid authentication code for this receiver",
            Self::Replay => "seen before, or older than the replay window",
            Self::BufferTooSmall => "the buffer is too small for the protected octets",
            Self::TooManyReceivers => "too many receivers with receiver-specific codes",
            Self::TooLong => "too long for an encrypted submessage",
            Self::KeyExhausted => "all sessions of the master key are used",
            Self::Library => "OpenSSL failed",
        })
    }
}

impl std::error::Error for TransformError {}

impl From<openssl::error::ErrorStack> for TransformError {
    fn from(_: openssl::error::ErrorStack) -> Self {
        Self::Library
    }
}

impl From<crate::SecurityError> for TransformError {
    fn from(_: crate::SecurityError) -> Self {
        Self::Library
    }
}

type Result<T> = std::result::Result<T, TransformError>;

#[cfg(test)]
mod tests;
