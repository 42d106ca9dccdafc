//! Framing of the octets of a TCP connection into messages, with the memory of at most one message.

use alloc::vec::Vec;
use core::fmt;

use crate::message::{HEADER_LEN, Header};
use crate::version::Version;

/// Error of octets that are not a sequence of messages. The octets after them cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamError {
    /// The length is shorter than the header.
    TooShort {
        /// Length in the header.
        len: u16,
    },
    /// The version differs from that of the channel.
    ForeignVersion {
        /// Version in the header.
        found: u8,
        /// Version of the channel.
        expected: Version,
    },
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { len } => write!(f, "message of {len} octets is shorter than its header of {HEADER_LEN}"),
            Self::ForeignVersion { found, expected } => {
                write!(
                    f,
                    "message has the wire version {found}, the channel has {} (OpenFlow {expected})",
                    expected.octet()
                )
            }
        }
    }
}

impl core::error::Error for StreamError {}

/// Message that is being received.
#[derive(Debug, Default)]
pub struct MessageStream {
    /// Received octets, at most one message of 65,535 octets.
    buffer: Vec<u8>,
    /// Version that every message must have.
    version: Option<Version>,
}

impl MessageStream {
    /// Creates a stream that accepts messages of every version, as before HELLO.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the version. Messages of other versions are errors from now on.
    pub fn set_version(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// Takes octets up to the end of a message and returns how many. It takes none while a complete
    /// message is waiting.
    ///
    /// # Errors
    /// The octets cannot be the header of a message. The stream is unusable afterwards.
    pub fn push(&mut self, bytes: &[u8]) -> Result<usize, StreamError> {
        let mut consumed = self.fill(bytes, HEADER_LEN);
        if let Some(header) = Header::parse(&self.buffer) {
            self.check(header)?;
            consumed += self.fill(&bytes[consumed..], usize::from(header.len));
        }
        Ok(consumed)
    }

    /// Returns the message, once it is complete.
    pub fn message(&self) -> Option<(Header, &[u8])> {
        let header = Header::parse(&self.buffer)?;
        (self.buffer.len() == usize::from(header.len)).then_some((header, &self.buffer))
    }

    /// Removes the message, so that the next one can be received.
    pub fn pop(&mut self) {
        self.buffer.clear();
    }

    fn fill(&mut self, bytes: &[u8], len: usize) -> usize {
        let missing = len.saturating_sub(self.buffer.len()).min(bytes.len());
        self.buffer.extend_from_slice(&bytes[..missing]);
        missing
    }

    fn check(&self, header: Header) -> Result<(), StreamError> {
        if let Some(expected) = self.version.filter(|version| version.octet() != header.version) {
            return Err(StreamError::ForeignVersion { found: header.version, expected });
        }
        if usize::from(header.len) < HEADER_LEN {
            return Err(StreamError::TooShort { len: header.len });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;
    use crate::message::Message;

    #[test]
    fn messages_are_reassembled_from_any_fragments() {
        let messages = [Message::EchoRequest(vec![1; 300]), Message::BarrierRequest, Message::EchoReply(vec![])];
        let mut octets = Vec::new();
        for (message, xid) in messages.iter().zip(1..) {
            message.encode_into(Version::V1_3, xid, &mut octets).expect("short");
        }
        for size in [1, 3, 7, 8, 9, 64, 1000] {
            let mut stream = MessageStream::new();
            let mut decoded = Vec::new();
            for mut piece in octets.chunks(size) {
                while !piece.is_empty() {
                    let consumed = stream.push(piece).expect("good headers");
                    piece = &piece[consumed..];
                    if let Some((header, bytes)) = stream.message() {
                        assert_eq!(stream.message().map(|(again, _)| again), Some(header));
                        decoded.push(Message::decode(Version::V1_3, bytes).expect("well formed").1);
                        stream.pop();
                    }
                }
            }
            assert_eq!(decoded, messages, "pieces of {size}");
        }
    }

    #[test]
    fn complete_message_is_not_overwritten() {
        let octets = Message::BarrierRequest.encode(Version::V1_3, 1).expect("short");
        let mut stream = MessageStream::new();
        assert_eq!(stream.push(&[&octets[..], &octets].concat()), Ok(8));
        assert_eq!(stream.push(&octets), Ok(0));
        stream.pop();
        assert_eq!(stream.push(&octets), Ok(8));
    }

    #[test]
    fn invalid_headers_are_reported() {
        let mut stream = MessageStream::new();
        let error = stream.push(&[4, 0, 0, 7, 0, 0, 0, 0]).expect_err("shorter than its header");
        assert_eq!(error.to_string(), "message of 7 octets is shorter than its header of 8");
        let mut stream = MessageStream::new();
        stream.set_version(Version::V1_3);
        let error = stream.push(&[5, 0, 0, 8, 0, 0, 0, 0]).expect_err("another version");
        assert_eq!(error.to_string(), "message has the wire version 5, the channel has 4 (OpenFlow 1.3)");
    }

    #[test]
    fn memory_is_bounded_by_the_longest_message() {
        let mut stream = MessageStream::new();
        let consumed = stream.push(&[vec![4, 2, 0xff, 0xff], vec![0; 200_000]].concat()).expect("a good header");
        assert_eq!((consumed, stream.buffer.len()), (65_535, 65_535));
    }
}
