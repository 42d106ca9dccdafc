//! The two ways this crate says no: bytes that cannot be read, and a frame that is full.

use core::fmt;

/// Bytes that do not follow the specification.
///
/// `offset` counts octets from the start of what was given to the parser (a datagram, or a
/// serialized payload); `what` names the rule that was broken, for counters and logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Octets from the start of the input to the place where the rule was broken.
    pub offset: usize,
    /// The rule that was broken.
    pub what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed at octet {}: {}", self.offset, self.what)
    }
}

impl core::error::Error for Malformed {}

/// What was to be written does not fit in the space that is left; nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room left in the frame")
    }
}

impl core::error::Error for Full {}
