//! Counts of what was not sealed, not opened, and not accepted, by reason.

use super::keyring::OpenError;
use super::sealing::SealError;
use crate::transform::TransformError;

/// Counts since the participant began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages, submessages and payloads that were opened.
    pub opened: u64,
    /// No key has the id in the header. Normal until key tokens have come.
    pub unknown_keys: u64,
    /// The key is of another endpoint, or for something else.
    pub misused_keys: u64,
    /// The octets have no form of protected ones.
    pub malformed: u64,
    /// The common code does not fit.
    pub not_authentic: u64,
    /// There is no code for this receiver, or it does not fit.
    pub receiver_codes: u64,
    /// Seen before, or older than the window.
    pub replayed: u64,
    /// Sealed by this participant, and sent back in the name of another one.
    pub reflected: u64,
    /// Messages and payloads that were sealed, or needed no protection.
    pub sealed: u64,
    /// Not sealed: the endpoint or the participant has no key.
    pub seal_without_key: u64,
    /// Not sealed: the frame is too small, or the content too long for protection.
    pub seal_without_room: u64,
    /// Not sealed: no message, or one of endpoints that do not go together.
    pub seal_malformed: u64,
    /// Not opened or not sealed: OpenSSL failed.
    pub library_failures: u64,
    /// Messages of the stateless channel that were refused.
    pub handshake_messages_refused: u64,
    /// Messages of the volatile channel that were refused.
    pub key_messages_refused: u64,
    /// Key tokens of pairs that are not matched, displaced by others.
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
                TransformError::NoRoom | TransformError::TooLong => &mut self.seal_without_room,
                TransformError::KeyExhausted => &mut self.seal_without_key,
                TransformError::Library => &mut self.library_failures,
                _ => &mut self.seal_malformed,
            },
        };
        *counter += 1;
    }
}
