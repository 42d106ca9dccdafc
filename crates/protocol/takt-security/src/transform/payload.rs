//! Protected payloads (DDS-SEC 1.1 §9.5.3.3.4.4): header, content, code.

use std::ops::Range;

use super::cipher::CODE_LEN;
use super::header::{CRYPTO_HEADER_LEN, peek_payload};
use super::layout::{FOOTER_LEN, Form, be32};
use super::opener::Protection;
use super::sealer::put_footer;
use super::{Opened, Opener, Result, Sealer, TransformError};

/// Zero octets that senders insert before and after the last field.
const PADDING_LEN_MAX: usize = 6;

impl Sealer {
    /// Protects the payload in `frame[plain]`, encapsulation header included, whose length is a
    /// multiple of four. Returns the range of the protected payload.
    ///
    /// # Errors
    /// The length is wrong, there is no room, or the key is exhausted.
    pub fn seal_payload(&mut self, frame: &mut [u8], plain: Range<usize>) -> Result<Range<usize>> {
        let kind = self.material().kind();
        let whole = room(frame, &plain, Form::Payload.headroom(kind), FOOTER_LEN)?;
        let header = self.begin(plain.len())?;
        let frame = &mut frame[whole.clone()];
        let (head, rest) = frame.split_at_mut(plain.start - whole.start);
        let (content, footer) = rest.split_at_mut(plain.len());
        head[..CRYPTO_HEADER_LEN].copy_from_slice(&header.to_octets());
        if kind.is_encrypted() {
            head[CRYPTO_HEADER_LEN..].copy_from_slice(&be32(plain.len()));
        }
        let code = self.protect(&header, content)?;
        put_footer(footer, code, 0);
        Ok(whole)
    }
}

impl Opener {
    /// Opens a protected payload. An encrypted one is decrypted into `memory`, which has the same
    /// length.
    ///
    /// # Errors
    /// The payload is malformed, of another key, not authentic, or replayed, or the memory is too
    /// short.
    pub fn open_payload(&mut self, payload: &[u8], memory: &mut [u8]) -> Result<Opened> {
        let early = TransformError::Malformed("payload is truncated");
        let header = peek_payload(payload)?;
        let (start, len) = if header.kind.is_encrypted() {
            let len = payload[CRYPTO_HEADER_LEN..].first_chunk().map(|len| u32::from_be_bytes(*len)).ok_or(early)?;
            (CRYPTO_HEADER_LEN + 4, usize::try_from(len).map_err(|_| early)?)
        } else {
            let len = payload.len().checked_sub(CRYPTO_HEADER_LEN + FOOTER_LEN).ok_or(early)?;
            (CRYPTO_HEADER_LEN, len)
        };
        let (_, rest) = payload[start..].split_at_checked(len).ok_or(early)?;
        let (code, rest) = rest.split_first_chunk::<CODE_LEN>().ok_or(early)?;
        // INTEROP(Fast DDS 2.9): aligns the count of receiver-specific codes, which is zero.
        let is_end = (4..=4 + PADDING_LEN_MAX).contains(&rest.len()) && rest.iter().all(|octet| *octet == 0);
        if len == 0 || !is_end {
            return Err(TransformError::Malformed("payload is empty or ends before its authentication code"));
        }
        let protection = Protection { header, code: *code, postfix: None };
        self.open(&protection, payload, memory, (start..start + len, payload.len()), |_| Ok(()))
    }
}

/// Returns the range that the protected form of `plain` occupies.
pub(super) fn room(frame: &[u8], plain: &Range<usize>, headroom: usize, tailroom: usize) -> Result<Range<usize>> {
    if plain.is_empty() || !plain.len().is_multiple_of(4) {
        return Err(TransformError::Malformed("plaintext is empty or its length is not a multiple of four"));
    }
    let start = plain.start.checked_sub(headroom).ok_or(TransformError::BufferTooSmall)?;
    let end =
        plain.end.checked_add(tailroom).filter(|end| *end <= frame.len()).ok_or(TransformError::BufferTooSmall)?;
    Ok(start..end)
}
