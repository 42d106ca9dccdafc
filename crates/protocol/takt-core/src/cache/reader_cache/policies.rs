//! Reader policies that the history applies, apart from HISTORY and RESOURCE_LIMITS.

use super::ReaderCache;
use core::time::Duration;
use takt_wire::qos::{DataReaderQos, DestinationOrder, Ownership, ReliabilityKind};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CachePolicies {
    /// OWNERSHIP EXCLUSIVE.
    pub(crate) exclusive: bool,
    /// DESTINATION_ORDER BY_SOURCE_TIMESTAMP. For an instance with an owner only the owner's
    /// changes count, in its order.
    pub(crate) by_source: bool,
    /// TIME_BASED_FILTER, if it is on.
    pub(crate) separation: Option<Duration>,
    /// Samples delayed by the time-based filter are presented later instead of dropped.
    pub(crate) keeps_last: bool,
    /// READER_DATA_LIFECYCLE: how long samples of an instance without writers, and of a disposed
    /// one, are kept.
    pub(crate) purge_no_writers: Option<Duration>,
    pub(crate) purge_disposed: Option<Duration>,
}

impl CachePolicies {
    pub(crate) fn of(qos: &DataReaderQos) -> Self {
        let exclusive = qos.ownership == Ownership::Exclusive;
        let by_source = qos.destination_order == DestinationOrder::BySourceTimestamp && !exclusive;
        let separation = qos.time_based_filter.minimum_separation.as_nanos().unwrap_or(u64::MAX);
        let delay = |delay: takt_wire::Duration| delay.as_nanos().map(Duration::from_nanos);
        Self {
            exclusive,
            by_source,
            separation: (separation > 0).then(|| Duration::from_nanos(separation)),
            keeps_last: qos.reliability.kind == ReliabilityKind::Reliable,
            purge_no_writers: delay(qos.reader_data_lifecycle.autopurge_nowriter_samples_delay),
            purge_disposed: delay(qos.reader_data_lifecycle.autopurge_disposed_samples_delay),
        }
    }

    /// Reports whether samples of an alive instance may be delayed or dropped by policy.
    pub(super) fn may_delay_or_drop(&self) -> bool {
        self.exclusive || self.by_source || self.separation.is_some()
    }

    /// Reports whether samples of instances that are not alive are purged after a time.
    pub(super) fn purges(&self) -> bool {
        self.purge_no_writers.is_some() || self.purge_disposed.is_some()
    }
}

impl ReaderCache {
    /// Applies changed policies from now on.
    pub(crate) fn adopt(&mut self, policies: CachePolicies) {
        self.policies = policies;
        if policies.separation.is_some() {
            self.reserve_delayed();
        }
    }
}
