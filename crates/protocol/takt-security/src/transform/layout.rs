//! Layout of protected octets and of the security submessages around them.

use std::ops::Range;

use super::cipher::{CODE_LEN, Code};
use super::header::CRYPTO_HEADER_LEN;
use super::{Result, TransformError};
use crate::keys::{KeyId, TransformKind};

pub(super) const SMID_INFO_SRC: u8 = 0x0c;
pub(super) const SMID_SEC_BODY: u8 = 0x30;
pub(super) const SMID_SEC_PREFIX: u8 = 0x31;
pub(super) const SMID_SEC_POSTFIX: u8 = 0x32;
pub(super) const SMID_SRTPS_PREFIX: u8 = 0x33;
pub(super) const SMID_SRTPS_POSTFIX: u8 = 0x34;

pub(super) const RTPS_HEADER_LEN: usize = 20;
pub(super) const SUBMESSAGE_HEADER_LEN: usize = 4;
pub(super) const INFO_SRC_LEN: usize = 24;
/// Length in octets of a prefix submessage.
pub(super) const PREFIX_LEN: usize = SUBMESSAGE_HEADER_LEN + CRYPTO_HEADER_LEN;
/// Octets before the content of a body submessage: submessage header and content length.
pub(super) const BODY_HEAD_LEN: usize = SUBMESSAGE_HEADER_LEN + 4;
/// Length in octets of the common authentication code and the count of receiver-specific codes.
pub(super) const FOOTER_LEN: usize = CODE_LEN + 4;
/// Length in octets of one receiver-specific code with its key id.
pub(super) const RECEIVER_CODE_LEN: usize = 4 + CODE_LEN;

/// Maximum length in octets of an encrypted submessage or message: the length of a body submessage
/// has 16 bits.
pub const BODY_LEN_MAX: usize = 65_528;

/// Flags of every security submessage: little-endian length.
const FLAGS: u8 = 1;

/// Unit of protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The payload of a DATA submessage.
    Payload,
    /// Submessages; exactly one if the receiver is not Takt.
    Submessage,
    /// RTPS message with its header.
    Message,
}

impl Form {
    /// Returns the octets that a sealer needs before the plain octets; at most 56.
    pub const fn headroom(self, kind: TransformKind) -> usize {
        let is_encrypted = kind.is_encrypted() as usize;
        match self {
            Self::Payload => CRYPTO_HEADER_LEN + 4 * is_encrypted,
            Self::Submessage => PREFIX_LEN + BODY_HEAD_LEN * is_encrypted,
            Self::Message => PREFIX_LEN + BODY_HEAD_LEN * is_encrypted + INFO_SRC_LEN,
        }
    }

    /// Returns the octets that a sealer needs after the plain octets.
    pub const fn tailroom(self, receiver_count: usize) -> usize {
        match self {
            Self::Payload => FOOTER_LEN,
            _ => SUBMESSAGE_HEADER_LEN + FOOTER_LEN + receiver_count * RECEIVER_CODE_LEN,
        }
    }
}

/// Returns the length in a submessage header.
pub(super) fn length(submessage: &[u8], flags: u8) -> u16 {
    let octets = [submessage[2], submessage[3]];
    if flags & 1 == 0 { u16::from_be_bytes(octets) } else { u16::from_le_bytes(octets) }
}

/// Writes a submessage header with a length that was already checked.
pub(super) fn put_submessage_header(at: &mut [u8], id: u8, len: usize) {
    let [low, high] = u16::try_from(len).expect("callers check BODY_LEN_MAX and RECEIVERS_MAX").to_le_bytes();
    at[..SUBMESSAGE_HEADER_LEN].copy_from_slice(&[id, FLAGS, low, high]);
}

/// Writes the header of a body submessage and the length of its content.
pub(super) fn put_body_head(at: &mut [u8], len: usize) {
    put_submessage_header(at, SMID_SEC_BODY, len + 4);
    at[SUBMESSAGE_HEADER_LEN..BODY_HEAD_LEN].copy_from_slice(&be32(len));
}

pub(super) fn be32(value: usize) -> [u8; 4] {
    u32::try_from(value).expect("callers check lengths").to_be_bytes()
}

/// Returns the content range of the body submessage at `start`, and its end. Padding must be zero.
pub(super) fn body(octets: &[u8], start: usize, flags: u8) -> Result<(Range<usize>, usize)> {
    let early = TransformError::Malformed("body is truncated");
    let head: &[u8; BODY_HEAD_LEN] = octets.get(start..).and_then(|rest| rest.first_chunk()).ok_or(early)?;
    let len = usize::from(length(head, flags));
    let end = start + SUBMESSAGE_HEADER_LEN + len;
    let content_len = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    let content_len = usize::try_from(content_len).map_err(|_| early)?;
    let content = start + BODY_HEAD_LEN;
    let is_body = head[0] == SMID_SEC_BODY && head[1] == flags;
    if !is_body || len < 4 || content_len == 0 || content_len.checked_next_multiple_of(4) != Some(len - 4) {
        return Err(TransformError::Malformed("no body, or inconsistent lengths"));
    }
    let padding = octets.get(content + content_len..end).ok_or(early)?;
    if padding.iter().any(|octet| *octet != 0) {
        return Err(TransformError::Malformed("padding that is not zero"));
    }
    Ok((content..content + content_len, end))
}

/// Skips plain submessages up to the postfix, and returns the start of the postfix.
pub(super) fn find_postfix(octets: &[u8], start: usize, postfix: u8) -> Result<usize> {
    let mut at = start;
    loop {
        let Some([id, flags, ..]) = octets.get(at..).and_then(|rest| rest.first_chunk::<SUBMESSAGE_HEADER_LEN>())
        else {
            return Err(TransformError::Malformed("no postfix"));
        };
        if *id == postfix {
            return if at == start { Err(TransformError::Malformed("nothing is protected")) } else { Ok(at) };
        }
        at += SUBMESSAGE_HEADER_LEN + usize::from(length(&octets[at..], *flags));
    }
}

/// Authentication codes after protected octets.
#[derive(Clone, Copy)]
pub(super) struct Postfix<'a> {
    pub(super) code: Code,
    receiver_codes: &'a [u8],
    /// End of the submessage.
    pub(super) end: usize,
}

impl<'a> Postfix<'a> {
    pub(super) fn parse(octets: &'a [u8], start: usize, id: u8, flags: u8) -> Result<Self> {
        let early = TransformError::Malformed("postfix is truncated");
        let rest = octets.get(start..).ok_or(early)?;
        let head: &[u8; SUBMESSAGE_HEADER_LEN + FOOTER_LEN] = rest.first_chunk().ok_or(early)?;
        let len = usize::from(length(head, flags));
        let code = *head[SUBMESSAGE_HEADER_LEN..].first_chunk().ok_or(early)?;
        let count = head.last_chunk().map_or(0, |count| u32::from_be_bytes(*count));
        let codes_len = usize::try_from(count).ok().and_then(|count| count.checked_mul(RECEIVER_CODE_LEN));
        if head[0] != id || head[1] != flags || codes_len.and_then(|codes| codes.checked_add(FOOTER_LEN)) != Some(len) {
            return Err(TransformError::Malformed("no postfix, or inconsistent lengths"));
        }
        let end = SUBMESSAGE_HEADER_LEN + len;
        let receiver_codes = rest.get(head.len()..end).ok_or(early)?;
        Ok(Self { code, receiver_codes, end: start + end })
    }

    /// Returns the code for one receiver.
    pub(super) fn receiver_code(&self, key_id: KeyId) -> Option<Code> {
        let mut codes = self.receiver_codes.chunks_exact(RECEIVER_CODE_LEN);
        codes.find(|entry| entry[..4] == key_id).and_then(|entry| entry.last_chunk().copied())
    }
}
