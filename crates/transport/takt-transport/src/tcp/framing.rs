//! Framing of RTPS messages in a stream.
//!
//! Directly after its RTPS header (RTPS 2.5 §9.4.4), each message has a submessage of kind 0x81.
//! Its content is the length of the message in octets, including the header and this submessage.
//! Kinds from 0x80 are vendor-specific (RTPS 2.5 §8.3.3.2); receivers skip unknown ones.
//!
//! INTEROP(CycloneDDS 0.10): CycloneDDS uses this form, so both interoperate.

/// Length of the RTPS header.
pub(super) const HEADER: usize = 20;
/// Length of the submessage with the message length: kind, flags, length of its content, content.
pub(super) const LENGTH: usize = 8;
/// Length of a message without further content, which only identifies its sender.
pub(super) const FRAME_MIN: usize = HEADER + LENGTH;
/// Maximum length of a received message in its frame.
pub(super) const FRAME_MAX: usize = 65_536;
/// Maximum length of a sent message, without the submessage with its length.
pub(super) const MESSAGE_MAX: usize = 65_500;

const KIND: u8 = 0x81;
const LITTLE_ENDIAN: u8 = 1;

/// The received octets are no stream of messages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// GUID prefix of a participant: twelve octets of the header.
pub(super) type Prefix = [u8; 12];

/// Returns the vendor and the prefix in the header of a message; `None` if it is no RTPS message.
pub(super) fn sender(message: &[u8]) -> Option<([u8; 2], Prefix)> {
    let header: &[u8; HEADER] = message.first_chunk()?;
    let [b'R', b'T', b'P', b'S', _, _, v0, v1, prefix @ ..] = *header else { return None };
    Some(([v0, v1], prefix))
}

/// Makes a frame of the RTPS message that stands in `buffer` behind [`LENGTH`] octets: moves its
/// header to the front.
pub(super) fn wrap(buffer: &mut [u8]) {
    buffer.copy_within(LENGTH..LENGTH + HEADER, 0);
    let len = u32::try_from(buffer.len()).expect("a frame is short");
    buffer[HEADER..HEADER + 4].copy_from_slice(&[KIND, LITTLE_ENDIAN, 4, 0]);
    buffer[HEADER + 4..FRAME_MIN].copy_from_slice(&len.to_le_bytes());
}

/// Makes a frame that only identifies its sender.
pub(super) fn identification(vendor: [u8; 2], prefix: Prefix) -> [u8; FRAME_MIN] {
    let mut frame = [0; FRAME_MIN];
    frame[LENGTH..LENGTH + 6].copy_from_slice(b"RTPS\x02\x05");
    frame[LENGTH + 6..LENGTH + 8].copy_from_slice(&vendor);
    frame[LENGTH + 8..].copy_from_slice(&prefix);
    wrap(&mut frame);
    frame
}

/// Reverses [`wrap`]: afterwards the message stands in `frame` behind [`LENGTH`] octets.
pub(super) fn unwrap(frame: &mut [u8]) {
    frame.copy_within(..HEADER, LENGTH);
}

/// Returns the length of the frame at the start of `bytes`, if it is complete. An invalid frame is
/// an error from its first wrong octet on.
pub(super) fn next(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let begun = bytes.len().min(4);
    if bytes[..begun] != b"RTPS"[..begun] {
        return Err(Malformed);
    }
    let Some(frame) = bytes.first_chunk::<FRAME_MIN>() else { return Ok(None) };
    let [.., kind, flags, c0, c1, l0, l1, l2, l3] = *frame;
    let is_little = flags & LITTLE_ENDIAN != 0;
    let content = if is_little { u16::from_le_bytes([c0, c1]) } else { u16::from_be_bytes([c0, c1]) };
    let octets = [l0, l1, l2, l3];
    let len = if is_little { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) };
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if kind != KIND || content != 4 || !(FRAME_MIN..=FRAME_MAX).contains(&len) {
        return Err(Malformed);
    }
    Ok((bytes.len() >= len).then_some(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: usize) -> Vec<u8> {
        let mut message = b"RTPS\x02\x05\x01\x02abcdefghijkl".to_vec();
        message.extend((HEADER..len).map(|i| i as u8));
        message
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; LENGTH];
        frame.extend_from_slice(message);
        wrap(&mut frame);
        frame
    }

    #[test]
    fn frame_has_the_form_of_cyclonedds() {
        let frame = framed(&message(24));
        assert_eq!(frame[..HEADER], message(20));
        assert_eq!(frame[HEADER..], [0x81, 1, 4, 0, 32, 0, 0, 0, 20, 21, 22, 23]);
        // The same frame of a big-endian machine.
        let mut big = frame;
        big[HEADER..28].copy_from_slice(&[0x81, 0, 0, 4, 0, 0, 0, 32]);
        assert_eq!(next(&big), Ok(Some(32)));
    }

    #[test]
    fn unwrap_reverses_wrap() {
        for len in [20, 21, 27, 28, 29, 100, MESSAGE_MAX] {
            let message = message(len);
            let mut frame = framed(&message);
            for cut in (0..frame.len()).step_by(1 + len / 50) {
                assert_eq!(next(&frame[..cut]), Ok(None), "{cut} of {len}");
            }
            assert_eq!(next(&frame), Ok(Some(frame.len())));
            unwrap(&mut frame);
            assert_eq!(frame[LENGTH..], message);
        }
    }

    #[test]
    fn invalid_octets_are_malformed_at_once() {
        assert_eq!(next(b"G"), Err(Malformed));
        assert_eq!(next(b"RTPX"), Err(Malformed));
        let good = framed(&message(40));
        for (at, value) in [(20, 0x15), (22, 8), (24, 27), (25, 0xff), (26, 1), (27, 0x80)] {
            let mut bad = good.clone();
            bad[at] = value;
            let expected = if at == 25 { Ok(None) } else { Err(Malformed) };
            assert_eq!(next(&bad), expected, "octet {at}");
        }
        let mut empty = good;
        empty[24] = 0;
        assert_eq!(next(&empty), Err(Malformed));
    }

    #[test]
    fn identification_names_its_sender() {
        let frame = identification([1, 2], *b"abcdefghijkl");
        assert_eq!((next(&frame), sender(&frame)), (Ok(Some(FRAME_MIN)), Some(([1, 2], *b"abcdefghijkl"))));
    }

    #[test]
    fn sender_is_read_from_the_header() {
        assert_eq!(sender(&message(20)), Some(([1, 2], *b"abcdefghijkl")));
        assert_eq!(sender(&message(20)[..19]), None);
        assert_eq!(sender(b"RTPX\x02\x05\x01\x02abcdefghijkl"), None);
    }
}
