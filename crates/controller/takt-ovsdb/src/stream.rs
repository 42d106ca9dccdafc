//! Framing of a byte stream into JSON texts (RFC 7047 §4.1; RFC 8259).
//!
//! JSON-RPC over a stream has no length field: a message ends with its outermost object. The
//! scanner inspects each octet once, regardless of how the stream is fragmented.

use std::fmt;

use serde_json::Value;

use crate::Limits;

/// Error of octets that are not a sequence of JSON objects. The octets after them cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// A message does not begin with `{`.
    NoObject {
        /// Octet found instead.
        found: u8,
    },
    /// A message exceeds [`Limits::message_len`].
    TooLong {
        /// Limit in octets.
        limit: usize,
    },
    /// A message exceeds [`Limits::depth`].
    TooDeep {
        /// Limit of the depth.
        limit: usize,
    },
    /// A message is not valid JSON.
    Malformed(serde_json::Error),
    /// A JSON object is not a JSON-RPC 1.0 message.
    NoMessage {
        /// Reason.
        what: &'static str,
    },
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoObject { found } => write!(f, "a message begins with the octet {found:#04x}, expected '{{'"),
            Self::TooLong { limit } => write!(f, "a message exceeds Limits::message_len ({limit} octets)"),
            Self::TooDeep { limit } => write!(f, "a message exceeds Limits::depth ({limit} arrays and objects)"),
            Self::Malformed(why) => write!(f, "a message is not JSON: {why}"),
            Self::NoMessage { what } => write!(f, "an object is not a JSON-RPC message: {what}"),
        }
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed(why) => Some(why),
            _ => None,
        }
    }
}

/// State of the scanner in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Structure,
    Text,
    /// After a backslash in a string.
    Escape,
}

/// Message that is being received.
#[derive(Debug)]
pub struct MessageStream {
    limits: Limits,
    /// Octets of at most one message.
    buffer: Vec<u8>,
    depth: usize,
    place: Place,
}

impl MessageStream {
    /// Creates a stream before its first message.
    pub fn new(limits: Limits) -> Self {
        Self { limits, buffer: Vec::new(), depth: 0, place: Place::Structure }
    }

    /// Takes octets up to the end of the next message. Returns the number of octets taken, and the
    /// message if it is complete.
    ///
    /// # Errors
    /// [`StreamError`]. The stream is unusable afterwards.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(usize, Option<Value>), StreamError> {
        for (at, &octet) in bytes.iter().enumerate() {
            if self.depth == 0 {
                match octet {
                    b' ' | b'\t' | b'\r' | b'\n' => continue,
                    b'{' => {}
                    found => return Err(StreamError::NoObject { found }),
                }
            }
            if self.buffer.len() == self.limits.message_len {
                return Err(StreamError::TooLong { limit: self.limits.message_len });
            }
            self.buffer.push(octet);
            if self.advance(octet)? {
                let message = serde_json::from_slice(&self.buffer).map_err(StreamError::Malformed)?;
                self.buffer.clear();
                return Ok((at + 1, Some(message)));
            }
        }
        Ok((bytes.len(), None))
    }

    /// Advances the scanner by one octet. Returns `true` at the end of a message.
    fn advance(&mut self, octet: u8) -> Result<bool, StreamError> {
        match (self.place, octet) {
            (Place::Structure, b'"') => self.place = Place::Text,
            (Place::Structure, b'{' | b'[') => {
                if self.depth == self.limits.depth {
                    return Err(StreamError::TooDeep { limit: self.limits.depth });
                }
                self.depth += 1;
            }
            // The parser checks that brackets match.
            (Place::Structure, b'}' | b']') => {
                self.depth -= 1;
                return Ok(self.depth == 0);
            }
            (Place::Text, b'"') | (Place::Escape, _) => {
                self.place = if self.place == Place::Text { Place::Structure } else { Place::Text };
            }
            (Place::Text, b'\\') => self.place = Place::Escape,
            _ => {}
        }
        Ok(false)
    }
}
