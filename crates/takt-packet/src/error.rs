//! The two ways this crate says no: bytes that cannot be read, and a frame that is too short to be written.

use core::fmt;

/// Bytes that are no packet of the kind that was asked for. `offset` counts octets from the start of that packet; `what` names
/// the rule that was broken, for counters and logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Octets from the start of the packet to the place where the rule was broken.
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

/// What was to be written does not fit: into the frame, or into a length field. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room left in the frame")
    }
}

impl core::error::Error for Full {}

/// The first `N` octets, or the complaint that a header is cut off.
pub(crate) fn header<'a, const N: usize>(bytes: &'a [u8], what: &'static str) -> Result<&'a [u8; N], Malformed> {
    bytes.first_chunk().ok_or(Malformed { offset: bytes.len(), what })
}

/// The first `N` octets to be written to.
pub(crate) fn room<const N: usize>(into: &mut [u8]) -> Result<&mut [u8; N], Full> {
    into.first_chunk_mut().ok_or(Full)
}
