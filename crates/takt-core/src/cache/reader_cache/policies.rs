//! The policies of a reader that its history acts upon, apart from HISTORY and RESOURCE_LIMITS.

use super::ReaderCache;
use takt_wire::qos::{DataReaderQos, DestinationOrder, Ownership};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CachePolicies {
    /// OWNERSHIP EXCLUSIVE.
    pub(crate) exclusive: bool,
    /// DESTINATION_ORDER BY_SOURCE_TIMESTAMP. Of an instance with an owner only that one's changes count, in its order.
    pub(crate) by_source: bool,
}

impl CachePolicies {
    pub(crate) fn of(qos: &DataReaderQos) -> Self {
        let exclusive = qos.ownership == Ownership::Exclusive;
        let by_source = qos.destination_order == DestinationOrder::BySourceTimestamp && !exclusive;
        Self { exclusive, by_source }
    }
}

impl ReaderCache {
    /// Goes by these policies from now on.
    pub(crate) fn adopt(&mut self, policies: CachePolicies) {
        self.policies = policies;
    }
}
