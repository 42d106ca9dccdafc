//! Crypto headers with key id, session id and counter (DDS-SEC 1.1 §9.5.2.3).

use super::cipher::{NONCE_LEN, Nonce};
use super::layout::{PREFIX_LEN, RTPS_HEADER_LEN, SMID_SEC_PREFIX, SMID_SRTPS_PREFIX, SUBMESSAGE_HEADER_LEN};
use super::{Result, TransformError};
use crate::keys::{KeyId, TransformKind};

/// Length in octets of a crypto header.
pub(super) const CRYPTO_HEADER_LEN: usize = 20;

/// Crypto header that precedes protected octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CryptoHeader {
    /// Transformation for which the key was used.
    pub kind: TransformKind,
    /// Id of the master key, chosen by the sender.
    pub key_id: KeyId,
    /// Id of the session.
    pub session_id: [u8; 4],
    /// Counter of the message within the session.
    pub counter: u64,
}

impl CryptoHeader {
    pub(super) fn parse(octets: &[u8; CRYPTO_HEADER_LEN]) -> Result<Self> {
        let word = |at: usize| [octets[at], octets[at + 1], octets[at + 2], octets[at + 3]];
        let kind = TransformKind::from_octets(word(0));
        let Some(kind) = kind.filter(|kind| *kind != TransformKind::None) else {
            return Err(TransformError::Malformed("unknown transformation kind"));
        };
        let counter = octets.last_chunk().map_or(0, |counter| u64::from_be_bytes(*counter));
        Ok(Self { kind, key_id: word(4), session_id: word(8), counter })
    }

    pub(super) fn to_octets(self) -> [u8; CRYPTO_HEADER_LEN] {
        let mut octets = [0; CRYPTO_HEADER_LEN];
        octets[..4].copy_from_slice(&self.kind.to_octets());
        octets[4..8].copy_from_slice(&self.key_id);
        octets[8..].copy_from_slice(&self.nonce());
        octets
    }

    pub(super) fn nonce(&self) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[..4].copy_from_slice(&self.session_id);
        nonce[4..].copy_from_slice(&self.counter.to_be_bytes());
        nonce
    }
}

/// Returns the header of a protected payload, which names the key.
///
/// # Errors
/// The payload is shorter than a header, or its kind is unknown.
pub fn peek_payload(payload: &[u8]) -> Result<CryptoHeader> {
    let header = payload.first_chunk().ok_or(TransformError::Malformed("payload is truncated"))?;
    CryptoHeader::parse(header)
}

/// Returns the header in the SEC_PREFIX at the start of `octets`.
///
/// # Errors
/// There is no SEC_PREFIX, or its kind is unknown.
pub fn peek_submessage(octets: &[u8]) -> Result<CryptoHeader> {
    prefix(octets, SMID_SEC_PREFIX).map(|(header, _)| header)
}

/// Returns the header in the SRTPS_PREFIX after the RTPS header.
///
/// # Errors
/// There is no SRTPS_PREFIX, or its kind is unknown.
pub fn peek_message(message: &[u8]) -> Result<CryptoHeader> {
    let submessages = message.get(RTPS_HEADER_LEN..).ok_or(TransformError::Malformed("message is truncated"))?;
    prefix(submessages, SMID_SRTPS_PREFIX).map(|(header, _)| header)
}

/// Returns the crypto header in a prefix submessage, and the flags of the submessage.
pub(super) fn prefix(octets: &[u8], id: u8) -> Result<(CryptoHeader, u8)> {
    let found: &[u8; PREFIX_LEN] = octets.first_chunk().ok_or(TransformError::Malformed("prefix is truncated"))?;
    let (submessage, header) = found.split_at(SUBMESSAGE_HEADER_LEN);
    let flags = submessage[1];
    let len = super::layout::length(submessage, flags);
    if submessage[0] != id || flags > 1 || usize::from(len) != CRYPTO_HEADER_LEN {
        return Err(TransformError::Malformed("no prefix"));
    }
    let header = header.first_chunk().ok_or(TransformError::Malformed("prefix is truncated"))?;
    Ok((CryptoHeader::parse(header)?, flags))
}
