//! Communication statuses (DDS 1.4 §2.2.4.1). Reading one resets its change counts.

use crate::cache::InstanceHandle;
use alloc::string::String;
use core::fmt;
use takt_wire::Guid;
use takt_wire::compat::{Incompatibility, PolicyId};

/// Policies have numbers below this (DDS 1.4 §2.3.3, XTypes 1.3 §7.6.3).
const POLICIES: usize = 32;

/// Statuses of a writer.
#[derive(Debug, Default)]
pub(crate) struct WriterStatuses {
    pub(crate) matched: MatchedStatus,
    pub(crate) incompatible: IncompatibleQosStatus,
    pub(crate) inconsistent_topic: InconsistentTopicStatus,
    pub(crate) deadline_missed: DeadlineMissedStatus,
    pub(crate) liveliness_lost: LivelinessLostStatus,
    /// Longest `write` call that the runtime has reported, in nanoseconds.
    pub(crate) longest_write_ns: u64,
}

/// Statuses of a reader.
#[derive(Debug, Default)]
pub(crate) struct ReaderStatuses {
    pub(crate) matched: MatchedStatus,
    pub(crate) incompatible: IncompatibleQosStatus,
    pub(crate) inconsistent_topic: InconsistentTopicStatus,
    pub(crate) deadline_missed: DeadlineMissedStatus,
    pub(crate) liveliness: LivelinessChangedStatus,
    pub(crate) lost: SampleLostStatus,
    pub(crate) rejected: SampleRejectedStatus,
}

/// `PUBLICATION_MATCHED` or `SUBSCRIPTION_MATCHED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchedStatus {
    /// Matches since the creation of the endpoint.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// Current matches.
    pub current_count: u32,
    /// Change of `current_count` since the status was last read.
    pub current_count_change: i32,
    /// The peer that caused the last change.
    pub last_peer: Option<Guid>,
}

impl MatchedStatus {
    pub(crate) fn added(&mut self, peer: Guid) {
        self.total_count = self.total_count.saturating_add(1);
        self.total_count_change = self.total_count_change.saturating_add(1);
        self.current_count += 1;
        self.current_count_change += 1;
        self.last_peer = Some(peer);
    }

    pub(crate) fn removed(&mut self, peer: Guid) {
        self.current_count -= 1;
        self.current_count_change -= 1;
        self.last_peer = Some(peer);
    }

    pub(crate) fn read(&mut self) -> Self {
        let value = *self;
        self.total_count_change = 0;
        self.current_count_change = 0;
        value
    }
}

/// `OFFERED_INCOMPATIBLE_QOS` or `REQUESTED_INCOMPATIBLE_QOS`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct IncompatibleQosStatus {
    /// Refused peers since the creation of the endpoint.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// Policy of the last refusal; `None` if the OpenFlow controller refused.
    pub last_policy: Option<PolicyId>,
    /// Reason of the OpenFlow controller for the last refusal; `None` if policies were
    /// incompatible.
    pub last_network_reason: Option<String>,
    /// Refusals by policy number; see [`count_of`](Self::count_of).
    pub counts: [u32; POLICIES],
}

/// Lists the incompatible policies and their counts.
impl fmt::Debug for IncompatibleQosStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Counts<'a>(&'a IncompatibleQosStatus);
        impl fmt::Debug for Counts<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let counts = PolicyId::ALL.into_iter().map(|policy| (policy, self.0.count_of(policy)));
                f.debug_map().entries(counts.filter(|(_, count)| *count > 0)).finish()
            }
        }
        f.debug_struct("IncompatibleQosStatus")
            .field("total_count", &self.total_count)
            .field("total_count_change", &self.total_count_change)
            .field("last_network_reason", &self.last_network_reason)
            .field("last_policy", &self.last_policy)
            .field("counts", &Counts(self))
            .finish()
    }
}

impl IncompatibleQosStatus {
    /// Returns how many peers were refused for this policy, perhaps among others.
    #[must_use]
    pub fn count_of(&self, policy: PolicyId) -> u32 {
        self.counts.get(policy as usize).copied().unwrap_or(0)
    }

    /// Records a peer that was refused for these reasons.
    pub(crate) fn refused(&mut self, reasons: &[Incompatibility]) {
        self.total_count = self.total_count.saturating_add(1);
        self.total_count_change = self.total_count_change.saturating_add(1);
        self.last_policy = reasons.first().map(|first| first.policy);
        self.last_network_reason = None;
        for reason in reasons {
            if let Some(count) = self.counts.get_mut(reason.policy as usize) {
                *count = count.saturating_add(1);
            }
        }
    }

    /// Records a peer that the OpenFlow controller refused. No policy counts it.
    pub(crate) fn refused_by_network(&mut self, reason: &str) {
        self.refused(&[]);
        self.last_network_reason = Some(reason.into());
    }
}

/// `SAMPLE_LOST`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleLostStatus {
    /// Samples that never arrived and never will.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
}

/// `INCONSISTENT_TOPIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InconsistentTopicStatus {
    /// Remote endpoints with the same topic name and another type name.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
}

/// `OFFERED_DEADLINE_MISSED` or `REQUESTED_DEADLINE_MISSED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineMissedStatus {
    /// Periods in which an instance was not updated, over all instances.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Instance that missed the last of them.
    pub last_instance: Option<InstanceHandle>,
}

impl DeadlineMissedStatus {
    pub(crate) fn missed(&mut self, instance: InstanceHandle, periods: u64) {
        self.total_count = self.total_count.saturating_add(periods);
        self.total_count_change = self.total_count_change.saturating_add(periods);
        self.last_instance = Some(instance);
    }

    pub(crate) fn read(&mut self) -> Self {
        let value = *self;
        self.total_count_change = 0;
        value
    }
}

/// `LIVELINESS_LOST`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivelinessLostStatus {
    /// Number of times the writer's lease ended without an assertion.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
}

impl LivelinessLostStatus {
    pub(crate) fn lost(&mut self) {
        self.total_count = self.total_count.saturating_add(1);
        self.total_count_change = self.total_count_change.saturating_add(1);
    }

    pub(crate) fn read(&mut self) -> Self {
        let value = *self;
        self.total_count_change = 0;
        value
    }
}

/// Limit that caused the rejection of a sample (DDS 1.4 §2.2.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleRejectedReason {
    /// `RESOURCE_LIMITS.max_samples`.
    SamplesLimit,
    /// `RESOURCE_LIMITS.max_instances`.
    InstancesLimit,
    /// `RESOURCE_LIMITS.max_samples_per_instance`.
    SamplesPerInstanceLimit,
    /// Memory of the reader (`Limits::endpoint_memory_bytes`, `reassembly_bytes`). DDS defines no
    /// reason for this limit.
    MemoryLimit,
}

/// `SAMPLE_REJECTED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRejectedStatus {
    /// Rejected samples. A reliable writer sends them again.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Reason of the last rejection.
    pub last_reason: Option<SampleRejectedReason>,
}

impl IncompatibleQosStatus {
    pub(crate) fn read(&mut self) -> Self {
        let value = self.clone();
        self.total_count_change = 0;
        value
    }
}

impl SampleLostStatus {
    /// Adds lost samples. The writer determines the length of a lost range, so the sum saturates.
    pub(crate) fn add(&mut self, lost: u64) {
        self.total_count = self.total_count.saturating_add(lost);
        self.total_count_change = self.total_count_change.saturating_add(lost);
    }

    pub(crate) fn read(&mut self) -> Self {
        let value = *self;
        self.total_count_change = 0;
        value
    }
}

impl InconsistentTopicStatus {
    pub(crate) fn read(&mut self) -> Self {
        let value = *self;
        self.total_count_change = 0;
        value
    }
}

impl SampleRejectedStatus {
    pub(crate) fn read(&mut self) -> Self {
        let value = *self;
        self.total_count_change = 0;
        value
    }
}

/// `LIVELINESS_CHANGED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivelinessChangedStatus {
    /// Matched writers that are alive.
    pub alive_count: u32,
    /// Matched writers that were not asserted within their lease.
    pub not_alive_count: u32,
    /// Change of `alive_count` since the status was last read.
    pub alive_count_change: i32,
    /// Change of `not_alive_count` since the status was last read.
    pub not_alive_count_change: i32,
    /// The writer that caused the last change.
    pub last_publication: Option<Guid>,
}

impl LivelinessChangedStatus {
    fn change(&mut self, writer: Guid, alive: i32, not_alive: i32) {
        self.alive_count = self.alive_count.saturating_add_signed(alive);
        self.not_alive_count = self.not_alive_count.saturating_add_signed(not_alive);
        self.alive_count_change += alive;
        self.not_alive_count_change += not_alive;
        self.last_publication = Some(writer);
    }

    pub(crate) fn matched(&mut self, writer: Guid) {
        self.change(writer, 1, 0);
    }

    pub(crate) fn unmatched(&mut self, writer: Guid, alive: bool) {
        if alive { self.change(writer, -1, 0) } else { self.change(writer, 0, -1) }
    }

    pub(crate) fn died(&mut self, writer: Guid) {
        self.change(writer, -1, 1);
    }

    pub(crate) fn revived(&mut self, writer: Guid) {
        self.change(writer, 1, -1);
    }

    pub(crate) fn read(&mut self) -> Self {
        let value = *self;
        self.alive_count_change = 0;
        self.not_alive_count_change = 0;
        value
    }
}
