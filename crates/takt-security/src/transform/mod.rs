//! Protection of payloads, submessages and RTPS messages (DDS-SEC 1.1 §9.5.3.3).
//!
//! A [`Sealer`] protects with one master key, an [`Opener`] opens what one remote master key
//! protects. A sealer works inside a buffer of the caller: it takes the range of the plain octets,
//! with room in front ([`Form::headroom`]) and behind ([`Sealer::tailroom`]), and returns the range
//! of the protected ones. An opener does not change the protected octets. Signed octets stay in the
//! caller's buffer, encrypted ones are decrypted into memory of the caller. After set-up neither allocates, except when the session changes;
//! [`Sealer::prepare_rollover`] takes that away from the data path.
//!
//! What the specification leaves in the clear is checked as well: flags, lengths, padding and the
//! RTPS header must have the one value that a sender gives them. A message of which one bit was
//! changed is refused, except for the codes of other receivers, which only those can check. The
//! content of the sealer's buffer and of the opener's memory is undefined after an error.
//!
//! Limits: an encrypted submessage or message has at most [`BODY_LEN_MAX`] octets, and a sealer
//! [`RECEIVERS_MAX`] receivers with codes of their own.

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
pub use opener::{Opened, Opener, Replays};
pub use replay::REPLAY_WINDOW;
pub use sealer::{BLOCKS_PER_SESSION, RECEIVERS_MAX, Receivers, Sealer};

/// Why octets were not protected or not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransformError {
    /// The octets do not have the form of protected, or of plain ones.
    Malformed(&'static str),
    /// The header names another key or kind than that of the opener.
    WrongKey,
    /// The common code does not fit: forged or damaged.
    Authentication,
    /// There is no code for this receiver, or it does not fit.
    ReceiverCode,
    /// The message was seen before, or is older than the replay window.
    Replay,
    /// The buffer has too little room in front of the plain octets or behind them.
    NoRoom,
    /// The plain octets exceed [`BODY_LEN_MAX`].
    TooLong,
    /// Every session of the master key is used up.
    KeyExhausted,
    /// OpenSSL failed.
    Library,
}

impl fmt::Display for TransformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed(what) => return write!(f, "malformed: {what}"),
            Self::WrongKey => "protected with another key",
            Self::Authentication => "authentication code does not fit",
            Self::ReceiverCode => "no valid authentication code for this receiver",
            Self::Replay => "seen before, or older than the replay window",
            Self::NoRoom => "no room in the buffer for protection",
            Self::TooLong => "too long for an encrypted submessage",
            Self::KeyExhausted => "every session of the master key is used up",
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
