//! Where the parts of protected octets stand, and the submessages around them.

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
/// A prefix submessage.
pub(super) const PREFIX_LEN: usize = SUBMESSAGE_HEADER_LEN + CRYPTO_HEADER_LEN;
/// What stands in front of the octets in a body submessage: its header and their number.
pub(super) const BODY_HEAD_LEN: usize = SUBMESSAGE_HEADER_LEN + 4;
/// A common code and the number of codes for receivers.
pub(super) const FOOTER_LEN: usize = CODE_LEN + 4;
/// The code for one receiver.
pub(super) const RECEIVER_CODE_LEN: usize = 4 + CODE_LEN;

/// Octets of an encrypted submessage or message: the length of a body submessage has 16 bits.
pub const BODY_LEN_MAX: usize = 65_528;

/// The flags of every submessage of protection: little-endian length.
const FLAGS: u8 = 1;

/// What is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The payload of a DATA submessage.
    Payload,
    /// Submessages; one, if the receiver is not Takt.
    Submessage,
    /// A message with its RTPS header.
    Message,
}

impl Form {
    /// Octets that a sealer needs in front of the plain ones; at most 56.
    pub const fn headroom(self, kind: TransformKind) -> usize {
        let is_encrypted = kind.is_encrypted() as usize;
        match self {
            Self::Payload => CRYPTO_HEADER_LEN + 4 * is_encrypted,
            Self::Submessage => PREFIX_LEN + BODY_HEAD_LEN * is_encrypted,
            Self::Message => PREFIX_LEN + BODY_HEAD_LEN * is_encrypted + INFO_SRC_LEN,
        }
    }

    /// Octets that a sealer needs behind the plain ones.
    pub const fn tailroom(self, receiver_count: usize) -> usize {
        match self {
            Self::Payload => FOOTER_LEN,
            _ => SUBMESSAGE_HEADER_LEN + FOOTER_LEN + receiver_count * RECEIVER_CODE_LEN,
        }
    }
}

/// The length in a submessage header.
pub(super) fn length(submessage: &[u8], flags: u8) -> u16 {
    let octets = [submessage[2], submessage[3]];
    if flags & 1 == 0 { u16::from_be_bytes(octets) } else { u16::from_le_bytes(octets) }
}

/// Writes a submessage header with a length that was checked before.
pub(super) fn put_submessage_header(at: &mut [u8], id: u8, len: usize) {
    let [low, high] = u16::try_from(len).expect("callers check BODY_LEN_MAX and RECEIVERS_MAX").to_le_bytes();
    at[..SUBMESSAGE_HEADER_LEN].copy_from_slice(&[id, FLAGS, low, high]);
}

/// Writes the header of a body submessage and the number of its octets.
pub(super) fn put_body_head(at: &mut [u8], len: usize) {
    put_submessage_header(at, SMID_SEC_BODY, len + 4);
    at[SUBMESSAGE_HEADER_LEN..BODY_HEAD_LEN].copy_from_slice(&be32(len));
}

pub(super) fn be32(value: usize) -> [u8; 4] {
    u32::try_from(value).expect("callers check lengths").to_be_bytes()
}

/// The content of the body submessage at `start`, and where it ends. Padding must be zero.
pub(super) fn body(octets: &[u8], start: usize, flags: u8) -> Result<(Range<usize>, usize)> {
    let early = TransformError::Malformed("body ends early");
    let head: &[u8; BODY_HEAD_LEN] = octets.get(start..).and_then(|rest| rest.first_chunk()).ok_or(early)?;
    let len = usize::from(length(head, flags));
    let end = start + SUBMESSAGE_HEADER_LEN + len;
    let content_len = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    let content_len = usize::try_from(content_len).map_err(|_| early)?;
    let content = start + BODY_HEAD_LEN;
    let is_body = head[0] == SMID_SEC_BODY && head[1] == flags;
    if !is_body || len < 4 || content_len == 0 || content_len.checked_next_multiple_of(4) != Some(len - 4) {
        return Err(TransformError::Malformed("no body, or lengths that contradict each other"));
    }
    let padding = octets.get(content + content_len..end).ok_or(early)?;
    if padding.iter().any(|octet| *octet != 0) {
        return Err(TransformError::Malformed("padding that is not zero"));
    }
    Ok((content..content + content_len, end))
}

/// Walks submessages in the clear up to the postfix; where it begins.
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

/// Codes behind protected octets.
#[derive(Clone, Copy)]
pub(super) struct Postfix<'a> {
    pub(super) code: Code,
    receiver_codes: &'a [u8],
    /// Where the submessage ends.
    pub(super) end: usize,
}

impl<'a> Postfix<'a> {
    pub(super) fn parse(octets: &'a [u8], start: usize, id: u8, flags: u8) -> Result<Self> {
        let early = TransformError::Malformed("postfix ends early");
        let rest = octets.get(start..).ok_or(early)?;
        let head: &[u8; SUBMESSAGE_HEADER_LEN + FOOTER_LEN] = rest.first_chunk().ok_or(early)?;
        let len = usize::from(length(head, flags));
        let code = *head[SUBMESSAGE_HEADER_LEN..].first_chunk().ok_or(early)?;
        let count = head.last_chunk().map_or(0, |count| u32::from_be_bytes(*count));
        let codes_len = usize::try_from(count).ok().and_then(|count| count.checked_mul(RECEIVER_CODE_LEN));
        if head[0] != id || head[1] != flags || codes_len.and_then(|codes| codes.checked_add(FOOTER_LEN)) != Some(len) {
            return Err(TransformError::Malformed("no postfix, or lengths that contradict each other"));
        }
        let end = SUBMESSAGE_HEADER_LEN + len;
        let receiver_codes = rest.get(head.len()..end).ok_or(early)?;
        Ok(Self { code, receiver_codes, end: start + end })
    }

    /// The code for one receiver.
    pub(super) fn receiver_code(&self, key_id: KeyId) -> Option<Code> {
        let mut codes = self.receiver_codes.chunks_exact(RECEIVER_CODE_LEN);
        codes.find(|entry| entry[..4] == key_id).and_then(|entry| entry.last_chunk().copied())
    }
}
