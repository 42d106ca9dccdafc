//! Errors of this crate: bytes that cannot be parsed, and buffers that are too small to write.

use core::fmt;

/// Bytes that are no packet of the expected kind. For counters and logs, it states the violated
/// rule and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Offset of the violation from the start of the packet, in octets.
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

/// The data does not fit into the frame or into a length field. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room left in the frame")
    }
}

impl core::error::Error for NoRoom {}

/// Returns the first `N` octets, or an error that the header is truncated.
pub(crate) fn header<'a, const N: usize>(bytes: &'a [u8], what: &'static str) -> Result<&'a [u8; N], Malformed> {
    bytes.first_chunk().ok_or(Malformed { offset: bytes.len(), what })
}

/// Returns the first `N` octets for writing.
pub(crate) fn room<const N: usize>(into: &mut [u8]) -> Result<&mut [u8; N], NoRoom> {
    into.first_chunk_mut().ok_or(NoRoom)
}
