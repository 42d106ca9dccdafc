//! Protected RTPS messages (DDS-SEC 1.1 §9.5.3.3.4.7): RTPS header, SRTPS_PREFIX, content,
//! SRTPS_POSTFIX.
//!
//! The content begins with an INFO_SRC that repeats the RTPS header, since the header itself is not
//! protected.

use std::ops::Range;

use super::layout::{
    Form, INFO_SRC_LEN, RTPS_HEADER_LEN, SMID_INFO_SRC, SMID_SRTPS_POSTFIX, SMID_SRTPS_PREFIX, SUBMESSAGE_HEADER_LEN,
    length, put_submessage_header,
};
use super::{Opened, Opener, Receivers, Result, Sealer, TransformError};

const PROTOCOL: &[u8; 4] = b"RTPS";
const IDS: (u8, u8) = (SMID_SRTPS_PREFIX, SMID_SRTPS_POSTFIX);
/// Unused octets of an INFO_SRC before version, vendor and GUID prefix.
const INFO_SRC_UNUSED: usize = 4;

impl Sealer {
    /// Protects the message in `frame[plain]`, RTPS header included, whose length is a multiple of
    /// four. Returns the range of the protected message.
    ///
    /// # Errors
    /// The octets are no RTPS message, there is no room, or the key is exhausted.
    pub fn seal_message(
        &mut self,
        frame: &mut [u8],
        plain: Range<usize>,
        receivers: Receivers,
    ) -> Result<Range<usize>> {
        let header = message_header(frame.get(plain.clone()).ok_or(TransformError::BufferTooSmall)?)?;
        let headroom = Form::Message.headroom(self.material().kind());
        let start = plain.start.checked_sub(headroom).ok_or(TransformError::BufferTooSmall)?;
        // INFO_SRC is longer than the RTPS header that it replaces.
        let info_src = plain.start + RTPS_HEADER_LEN - INFO_SRC_LEN;
        put_submessage_header(&mut frame[info_src..], SMID_INFO_SRC, INFO_SRC_LEN - SUBMESSAGE_HEADER_LEN);
        let body = &mut frame[info_src + SUBMESSAGE_HEADER_LEN..];
        body[..INFO_SRC_UNUSED].fill(0);
        body[INFO_SRC_UNUSED..INFO_SRC_LEN - SUBMESSAGE_HEADER_LEN].copy_from_slice(&header[PROTOCOL.len()..]);
        let sealed = self.seal_between(frame, info_src..plain.end, IDS, receivers)?;
        frame[start..start + RTPS_HEADER_LEN].copy_from_slice(&header);
        Ok(start..sealed.end)
    }
}

impl Opener {
    /// Opens the submessages of a protected message. Encrypted ones are decrypted into `memory`,
    /// which is as long as the message. Submessages after the postfix are not protected and not
    /// returned.
    ///
    /// INTEROP(Fast DDS 2.9): a vendor-specific statistics submessage follows the postfix.
    ///
    /// # Errors
    /// The submessages are malformed, of another key, not authentic, or replayed, the RTPS header
    /// differs from the protected one, or the memory is too short.
    pub fn open_message(&mut self, message: &[u8], memory: &mut [u8]) -> Result<Opened> {
        let header = message_header(message)?;
        let memory = memory.get_mut(RTPS_HEADER_LEN..).ok_or(TransformError::BufferTooSmall)?;
        let mut opened =
            self.open_between(&message[RTPS_HEADER_LEN..], memory, IDS, |plain| check_source(plain, &header))?;
        opened.plain = RTPS_HEADER_LEN + INFO_SRC_LEN + opened.plain.start..RTPS_HEADER_LEN + opened.plain.end;
        opened.end += RTPS_HEADER_LEN;
        Ok(opened)
    }
}

/// Checks that the protected INFO_SRC repeats the RTPS header.
fn check_source(plain: &[u8], header: &[u8; RTPS_HEADER_LEN]) -> Result<()> {
    let info_src: &[u8; INFO_SRC_LEN] = plain.first_chunk().ok_or(TransformError::Malformed("no INFO_SRC"))?;
    let is_info_src = info_src[0] == SMID_INFO_SRC
        && usize::from(length(info_src, info_src[1])) == INFO_SRC_LEN - SUBMESSAGE_HEADER_LEN;
    let protected = &info_src[SUBMESSAGE_HEADER_LEN + INFO_SRC_UNUSED..];
    if !is_info_src || *protected != header[PROTOCOL.len()..] {
        return Err(TransformError::Malformed("RTPS header differs from the protected INFO_SRC"));
    }
    Ok(())
}

fn message_header(message: &[u8]) -> Result<[u8; RTPS_HEADER_LEN]> {
    let header = message.first_chunk().filter(|header| header.starts_with(PROTOCOL));
    header.copied().ok_or(TransformError::Malformed("no RTPS header"))
}
