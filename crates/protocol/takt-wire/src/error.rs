//! Errors of this crate: malformed input, and a frame without room.

use core::fmt;

/// Octets that violate the specification.
///
/// `offset` counts octets from the start of the parser's input (a datagram or a serialized
/// payload). `what` names the violated rule, for counters and logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Offset of the violation in octets from the start of the input.
    pub offset: usize,
    /// Violated rule.
    pub what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed at octet {}: {}", self.offset, self.what)
    }
}

impl core::error::Error for Malformed {}

/// The value exceeds the space that is left. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room left in the frame")
    }
}

impl core::error::Error for Full {}
