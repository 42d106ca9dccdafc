//! What comes with a lane: the first message of a connection.
//!
//! | bytes | |
//! |---|---|
//! | 0 .. 8 | `TaktShm2` |
//! | 8 .. 16 | the host's tag, as in locators |
//! | 16 .. 24 | the sender's name, as in locators |
//! | 24 .. 32 | words of the lane's ring, little-endian |
//! | 32 .. 40 | words of the sender's segment, little-endian |
//!
//! The descriptors of the memory of the lane and of the segment go with it, in this order. All further messages are bells of one byte.

const MAGIC: [u8; 8] = *b"TaktShm2";

pub(super) const HELLO_LEN: usize = 40;

/// A bell.
pub(super) const BELL: [u8; 1] = [1];

/// Who opens a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) tag: [u8; 8],
    pub(super) name: u64,
    /// Of the lane.
    pub(super) words: u64,
    /// Of the segment.
    pub(super) segment: u64,
}

impl Hello {
    pub(super) fn to_bytes(self) -> [u8; HELLO_LEN] {
        let mut bytes = [0; HELLO_LEN];
        let (words, segment) = (self.words.to_le_bytes(), self.segment.to_le_bytes());
        let parts = [MAGIC, self.tag, self.name.to_be_bytes(), words, segment];
        for (to, from) in bytes.chunks_exact_mut(8).zip(parts) {
            to.copy_from_slice(&from);
        }
        bytes
    }

    /// `None` if it is anything else.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (parts, []) = bytes.as_chunks::<8>() else { return None };
        let [MAGIC, tag, name, words, segment] = *parts else { return None };
        let (words, segment) = (u64::from_le_bytes(words), u64::from_le_bytes(segment));
        Some(Self { tag, name: u64::from_be_bytes(name), words, segment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_understood_and_nothing_else_is() {
        let hello = Hello { tag: [3; 8], name: 0x0102_0304_0506_0708, words: 1 << 40, segment: 7 };
        let bytes = hello.to_bytes();
        assert_eq!(Hello::parse(&bytes), Some(hello));
        for len in 0..HELLO_LEN {
            assert_eq!(Hello::parse(&bytes[..len]), None);
        }
        assert_eq!(Hello::parse(&[&bytes[..], &[0; 8]].concat()), None);
        for at in 0..8 {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(Hello::parse(&other), None);
        }
    }
}
