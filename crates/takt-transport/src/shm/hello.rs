//! What comes with a lane: the first message of a connection.
//!
//! | bytes | |
//! |---|---|
//! | 0 .. 8 | `TaktShm1` |
//! | 8 .. 16 | the host's tag, as in locators |
//! | 16 .. 24 | the sender's name, as in locators |
//! | 24 .. 32 | words of the lane, little-endian |
//!
//! The descriptor of the lane's memory goes with it. All further messages are bells of one byte.

const MAGIC: [u8; 8] = *b"TaktShm1";

pub(super) const HELLO_LEN: usize = 32;

/// A bell.
pub(super) const BELL: [u8; 1] = [1];

/// Who opens a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) tag: [u8; 8],
    pub(super) name: u64,
    pub(super) words: u64,
}

impl Hello {
    pub(super) fn to_bytes(self) -> [u8; HELLO_LEN] {
        let mut bytes = [0; HELLO_LEN];
        let parts = [MAGIC, self.tag, self.name.to_be_bytes(), self.words.to_le_bytes()];
        for (to, from) in bytes.chunks_exact_mut(8).zip(parts) {
            to.copy_from_slice(&from);
        }
        bytes
    }

    /// `None` if it is anything else.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (parts, []) = bytes.as_chunks::<8>() else { return None };
        let [MAGIC, tag, name, words] = *parts else { return None };
        Some(Self { tag, name: u64::from_be_bytes(name), words: u64::from_le_bytes(words) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_understood_and_nothing_else_is() {
        let hello = Hello { tag: [3; 8], name: 0x0102_0304_0506_0708, words: 1 << 40 };
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
