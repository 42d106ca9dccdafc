//! Counters of sealed, opened and refused messages, by reason.

use super::keyring::OpenError;
use super::sealing::SealError;
use crate::transform::TransformError;

/// Counters since the creation of the participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages, submessages and payloads that were opened.
    pub opened: u64,
    /// No key has the id in the header. Normal until key tokens have arrived.
    pub unknown_keys: u64,
    /// The key belongs to another endpoint, or has another use.
    pub misused_keys: u64,
    /// The octets do not have the form of protected content.
    pub malformed: u64,
    /// The common authentication code is wrong.
    pub not_authentic: u64,
    /// The code for this receiver is missing or wrong.
    pub receiver_codes: u64,
    /// Received before, or older than the replay window.
    pub replayed: u64,
    /// Sealed by this participant, and reflected in the name of another one.
    pub reflected: u64,
    /// Messages and payloads that were sealed, or needed no protection.
    pub sealed: u64,
    /// Not sealed: the endpoint or the participant has no key.
    pub seal_without_key: u64,
    /// Not sealed: the frame is too small, or the content too long for protection.
    pub seal_without_room: u64,
    /// Not sealed: malformed message, or a message with endpoints of different protection classes.
    pub seal_malformed: u64,
    /// Not opened or not sealed: OpenSSL failed.
    pub library_failures: u64,
    /// Messages of the stateless endpoints that were refused.
    pub handshake_messages_refused: u64,
    /// Messages of the volatile endpoints that were refused.
    pub key_messages_refused: u64,
    /// Key tokens of unmatched pairs that were displaced by others.
    pub key_tokens_displaced: u64,
}

impl Counters {
    pub(super) fn count_open(&mut self, error: OpenError) {
        let counter = match error {
            OpenError::UnknownKey => &mut self.unknown_keys,
            OpenError::Misused => &mut self.misused_keys,
            OpenError::Reflected => &mut self.reflected,
            OpenError::Transform(error) => match error {
                TransformError::WrongKey => &mut self.misused_keys,
                TransformError::Authentication => &mut self.not_authentic,
                TransformError::ReceiverCode => &mut self.receiver_codes,
                TransformError::Replay => &mut self.replayed,
                TransformError::Library => &mut self.library_failures,
                _ => &mut self.malformed,
            },
        };
        *counter += 1;
    }

    pub(super) fn count_seal(&mut self, error: SealError) {
        let counter = match error {
            SealError::NoKey => &mut self.seal_without_key,
            SealError::Malformed => &mut self.seal_malformed,
            SealError::Transform(error) => match error {
                TransformError::BufferTooSmall | TransformError::TooManyReceivers | TransformError::TooLong => {
                    &mut self.seal_without_room
                }
                TransformError::KeyExhausted => &mut self.seal_without_key,
                TransformError::Library => &mut self.library_failures,
                _ => &mut self.seal_malformed,
            },
        };
        *counter += 1;
    }
}
