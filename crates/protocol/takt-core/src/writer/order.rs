//! Source timestamps of a writer. With DESTINATION_ORDER BY_SOURCE_TIMESTAMP they never decrease,
//! so their order is the order of the writes (DDS 1.4 §2.2.3.17).

use super::Writer;
use crate::error::Error;
use alloc::string::ToString;
use takt_wire::Timestamp;
use takt_wire::qos::DestinationOrder;

/// Source timestamps of a writer.
#[derive(Debug)]
pub(super) struct Stamps {
    /// Greatest timestamp that bounds the next one.
    pub(super) last: Timestamp,
    /// Timestamp of the last change.
    pub(super) written: Timestamp,
}

impl Default for Stamps {
    fn default() -> Self {
        Self { last: Timestamp::ZERO, written: Timestamp::INVALID }
    }
}

impl Writer {
    /// Returns the timestamp of the next change: that of the application, else that of the wall
    /// clock.
    pub(crate) fn stamp(&self, given: Option<Timestamp>, wall: Timestamp) -> Result<Timestamp, Error> {
        let ordered = self.data.qos.destination_order == DestinationOrder::BySourceTimestamp;
        let refuse = |what: &str| Err(Error::BadParameter { what: what.to_string() });
        match given {
            Some(stamp) if stamp.is_invalid() || stamp.is_infinite() => refuse("the source timestamp is invalid"),
            Some(stamp) if ordered && stamp < self.stamps.last => {
                refuse("the source timestamp precedes that of the previous change")
            }
            Some(stamp) => Ok(stamp),
            None if ordered => Ok(wall.max(self.stamps.last)),
            None => Ok(wall),
        }
    }
}
