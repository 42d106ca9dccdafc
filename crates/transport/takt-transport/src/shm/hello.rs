//! Hello message: the first message of a shared memory connection.
//!
//! | bytes | |
//! |---|---|
//! | 0 .. 8 | `TaktShm4` |
//! | 8 .. 16 | tag of the host, as in locators |
//! | 16 .. 24 | name of the sender, as in locators |
//! | 24 .. 32 | words of the non-urgent ring, little-endian |
//! | 32 .. 40 | words of the urgent ring, little-endian |
//! | 40 .. 48 | words of the sender's segment, little-endian |
//! | 48 .. 56 | slots of the segment, little-endian |
//!
//! The message carries the descriptors of the ring memory and of the segment, in this order. All
//! further messages have one byte: [`WAKE_UP`], and in the other direction [`CLOSE`]. A connection
//! that ends without [`CLOSE`] has ended because its process did.

const MAGIC: [u8; 8] = *b"TaktShm4";

pub(super) const HELLO_LEN: usize = 56;

/// Wake-up of the reader.
pub(super) const WAKE_UP: [u8; 1] = [1];

/// The reader closes the connection, though its process continues.
pub(super) const CLOSE: [u8; 1] = [2];

/// Contents of a hello message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) tag: [u8; 8],
    pub(super) name: u64,
    /// Words of the rings.
    pub(super) words: [u64; 2],
    /// Words of the segment.
    pub(super) segment: u64,
    pub(super) slots: u64,
}

impl Hello {
    pub(super) fn to_bytes(self) -> [u8; HELLO_LEN] {
        let mut bytes = [0; HELLO_LEN];
        let [not_urgent, urgent] = self.words;
        let [not_urgent, urgent, segment, slots] = [not_urgent, urgent, self.segment, self.slots].map(u64::to_le_bytes);
        let parts = [MAGIC, self.tag, self.name.to_be_bytes(), not_urgent, urgent, segment, slots];
        for (to, from) in bytes.chunks_exact_mut(8).zip(parts) {
            to.copy_from_slice(&from);
        }
        bytes
    }

    /// Parses a hello message; `None` if the bytes are anything else.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (parts, []) = bytes.as_chunks::<8>() else { return None };
        let [MAGIC, tag, name, not_urgent, urgent, segment, slots] = *parts else { return None };
        let [not_urgent, urgent, segment, slots] = [not_urgent, urgent, segment, slots].map(u64::from_le_bytes);
        Some(Self { tag, name: u64::from_be_bytes(name), words: [not_urgent, urgent], segment, slots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_round_trips_and_other_bytes_are_rejected() {
        let hello = Hello { tag: [3; 8], name: 0x0102_0304_0506_0708, words: [1 << 40, 5], segment: 7, slots: 8 };
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
