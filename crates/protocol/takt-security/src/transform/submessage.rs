//! Protected submessages (DDS-SEC 1.1 §7.3.6, §9.5.3.3.4.5): SEC_PREFIX, content, SEC_POSTFIX.
//!
//! Signed content stays plain between prefix and postfix; encrypted content is the body of a
//! SEC_BODY. The specification protects one submessage at a time; Takt accepts several.

use std::ops::Range;

use super::header::CRYPTO_HEADER_LEN;
use super::header::prefix;
use super::layout::{
    BODY_HEAD_LEN, BODY_LEN_MAX, Form, PREFIX_LEN, Postfix, SMID_SEC_POSTFIX, SMID_SEC_PREFIX, SUBMESSAGE_HEADER_LEN,
    body, find_postfix, put_body_head, put_submessage_header,
};
use super::opener::Protection;
use super::payload::room;
use super::{Opened, Opener, Receivers, Result, Sealer, TransformError};

impl Sealer {
    /// Protects the submessages in `frame[plain]`, whose length is a multiple of four. Returns the
    /// range of the protected submessages.
    ///
    /// # Errors
    /// The length is wrong, there is no room, or the key is exhausted.
    pub fn seal_submessage(
        &mut self,
        frame: &mut [u8],
        plain: Range<usize>,
        receivers: Receivers,
    ) -> Result<Range<usize>> {
        let ids = (SMID_SEC_PREFIX, SMID_SEC_POSTFIX);
        self.seal_between(frame, plain, ids, receivers)
    }

    /// Protects `frame[plain]` between a prefix and a postfix with these ids.
    pub(super) fn seal_between(
        &mut self,
        frame: &mut [u8],
        plain: Range<usize>,
        (prefix, postfix): (u8, u8),
        receivers: Receivers,
    ) -> Result<Range<usize>> {
        let kind = self.material().kind();
        let whole = room(frame, &plain, Form::Submessage.headroom(kind), self.postfix_len(receivers))?;
        if kind.is_encrypted() && plain.len() > BODY_LEN_MAX {
            return Err(TransformError::TooLong);
        }
        let header = self.begin(plain.len())?;
        let frame = &mut frame[whole.clone()];
        let (head, rest) = frame.split_at_mut(plain.start - whole.start);
        let (content, footer) = rest.split_at_mut(plain.len());
        put_submessage_header(head, prefix, CRYPTO_HEADER_LEN);
        head[SUBMESSAGE_HEADER_LEN..PREFIX_LEN].copy_from_slice(&header.to_octets());
        if kind.is_encrypted() {
            put_body_head(&mut head[PREFIX_LEN..PREFIX_LEN + BODY_HEAD_LEN], plain.len());
        }
        let code = self.protect(&header, content)?;
        self.put_postfix(footer, postfix, &header, code, receivers)?;
        Ok(whole)
    }
}

impl Opener {
    /// Opens the protected submessages at the start of `octets`. Encrypted ones are decrypted into
    /// `memory`, which is as long as `octets`.
    ///
    /// # Errors
    /// The submessages are malformed, of another key, not authentic, or replayed, or the memory is
    /// too short.
    pub fn open_submessage(&mut self, octets: &[u8], memory: &mut [u8]) -> Result<Opened> {
        self.open_between(octets, memory, (SMID_SEC_PREFIX, SMID_SEC_POSTFIX), |_| Ok(()))
    }

    /// Opens the content between a prefix at the start of `octets` and a postfix, if it passes
    /// `check`.
    pub(super) fn open_between(
        &mut self,
        octets: &[u8],
        memory: &mut [u8],
        ids: (u8, u8),
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<Opened> {
        let (header, flags) = prefix(octets, ids.0)?;
        let (plain, end) = if header.kind.is_encrypted() {
            body(octets, PREFIX_LEN, flags)?
        } else {
            let end = find_postfix(octets, PREFIX_LEN, ids.1)?;
            (PREFIX_LEN..end, end)
        };
        let postfix = Postfix::parse(octets, end, ids.1, flags)?;
        let protection = Protection { header, code: postfix.code, postfix: Some(postfix) };
        self.open(&protection, octets, memory, (plain, postfix.end), check)
    }
}
