//! Messages that are protected as a whole (DDS-SEC 1.1 §7.3.6.2) and that a process has accepted.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use takt_wire::GuidPrefix;
use takt_wire::message::HEADER_LEN;

/// Offset of the GUID prefix in the RTPS header.
const PREFIX_AT: usize = 8;

/// SRTPS_PREFIX, the first submessage of such a message.
const SRTPS_PREFIX: u8 = 0x33;

/// Reports whether a message is protected as a whole.
#[must_use]
pub fn is_protected(datagram: &[u8]) -> bool {
    datagram.get(HEADER_LEN) == Some(&SRTPS_PREFIX)
}

/// Digests of accepted messages.
#[derive(Debug, Default)]
pub struct ProtectedMessages(BTreeSet<u64>);

impl ProtectedMessages {
    /// Records a datagram that the participant `own` has accepted. Reports whether it is a
    /// protected message of another participant that was recorded before.
    pub fn is_repeated(&mut self, own: GuidPrefix, datagram: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        datagram.hash(&mut hasher);
        let is_own = datagram.get(PREFIX_AT..HEADER_LEN) == Some(&own.0);
        is_protected(datagram) && !is_own && !self.0.insert(hasher.finish())
    }
}
