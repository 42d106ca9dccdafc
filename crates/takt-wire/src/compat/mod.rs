//! Compatibility check of offered and requested QoS of a writer and a reader (DDS 1.4 §2.2.3).
//!
//! The caller compares topic and type. PARTITION is not part of the check, because disjoint
//! partitions are no incompatible QoS: see [`partitions_match`].

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::discovery::{PublicationData, SubscriptionData};
use crate::guid::Guid;
use crate::qos::{DataRepresentation, Liveliness, Presentation};

pub use crate::partition::{fnmatch, partitions_match};

/// QoS policies with the ids that the OMG assigns (DDS 1.4 §2.3.3, XTypes 1.3 §7.6.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
#[allow(missing_docs, reason = "each is the id of the policy of its name")]
pub enum PolicyId {
    Invalid = 0,
    UserData = 1,
    Durability = 2,
    Presentation = 3,
    Deadline = 4,
    LatencyBudget = 5,
    Ownership = 6,
    OwnershipStrength = 7,
    Liveliness = 8,
    TimeBasedFilter = 9,
    Partition = 10,
    Reliability = 11,
    DestinationOrder = 12,
    History = 13,
    ResourceLimits = 14,
    EntityFactory = 15,
    WriterDataLifecycle = 16,
    ReaderDataLifecycle = 17,
    TopicData = 18,
    GroupData = 19,
    TransportPriority = 20,
    Lifespan = 21,
    DurabilityService = 22,
    DataRepresentation = 23,
    TypeConsistencyEnforcement = 24,
}

impl PolicyId {
    /// All policies, by ascending id.
    pub const ALL: [Self; 24] = [
        Self::UserData,
        Self::Durability,
        Self::Presentation,
        Self::Deadline,
        Self::LatencyBudget,
        Self::Ownership,
        Self::OwnershipStrength,
        Self::Liveliness,
        Self::TimeBasedFilter,
        Self::Partition,
        Self::Reliability,
        Self::DestinationOrder,
        Self::History,
        Self::ResourceLimits,
        Self::EntityFactory,
        Self::WriterDataLifecycle,
        Self::ReaderDataLifecycle,
        Self::TopicData,
        Self::GroupData,
        Self::TransportPriority,
        Self::Lifespan,
        Self::DurabilityService,
        Self::DataRepresentation,
        Self::TypeConsistencyEnforcement,
    ];

    /// Returns the id.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Returns the name of the OMG's constant without the suffix `_QOS_POLICY_ID`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID",
            Self::UserData => "USERDATA",
            Self::Durability => "DURABILITY",
            Self::Presentation => "PRESENTATION",
            Self::Deadline => "DEADLINE",
            Self::LatencyBudget => "LATENCYBUDGET",
            Self::Ownership => "OWNERSHIP",
            Self::OwnershipStrength => "OWNERSHIPSTRENGTH",
            Self::Liveliness => "LIVELINESS",
            Self::TimeBasedFilter => "TIMEBASEDFILTER",
            Self::Partition => "PARTITION",
            Self::Reliability => "RELIABILITY",
            Self::DestinationOrder => "DESTINATIONORDER",
            Self::History => "HISTORY",
            Self::ResourceLimits => "RESOURCELIMITS",
            Self::EntityFactory => "ENTITYFACTORY",
            Self::WriterDataLifecycle => "WRITERDATALIFECYCLE",
            Self::ReaderDataLifecycle => "READERDATALIFECYCLE",
            Self::TopicData => "TOPICDATA",
            Self::GroupData => "GROUPDATA",
            Self::TransportPriority => "TRANSPORTPRIORITY",
            Self::Lifespan => "LIFESPAN",
            Self::DurabilityService => "DURABILITYSERVICE",
            Self::DataRepresentation => "DATAREPRESENTATION",
            Self::TypeConsistencyEnforcement => "TYPECONSISTENCYENFORCEMENT",
        }
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Policy in which the writer offers less than the reader requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incompatibility {
    /// Incompatible policy.
    pub policy: PolicyId,
    /// Value that the writer offers.
    pub offered: String,
    /// Value that the reader requests.
    pub requested: String,
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, offered, requested } = self;
        write!(f, "{policy}: the writer offers {offered}, the reader requests {requested}")
    }
}

/// Reports whether both endpoints have a key or both have none, by the kinds of their entity ids
/// (RTPS 2.5 §9.3.1.2).
///
/// INTEROP(Fast DDS 2.9.1): does not match a writer with a key and a reader without one, nor the
/// reverse.
/// INTEROP(CycloneDDS 11): does not match them either, since the types are not assignable.
#[must_use]
pub fn keys_match(writer: Guid, reader: Guid) -> bool {
    writer.entity_id.has_key() == reader.entity_id.has_key()
}

/// Returns every policy in which `offered` falls short of `requested`, by ascending id. The list is
/// empty if the two are compatible.
pub fn check(offered: &PublicationData, requested: &SubscriptionData) -> Vec<Incompatibility> {
    let mut report = Report(Vec::new());
    let (o, r) = (&offered.qos, &requested.qos);
    report.at_least(PolicyId::Durability, o.durability, r.durability);
    let presentation = (&offered.presentation, &requested.presentation);
    report.refuse_unless(is_presentation_offered(presentation.0, presentation.1), PolicyId::Presentation, || {
        (presentation_text(presentation.0), presentation_text(presentation.1))
    });
    report.at_most(PolicyId::Deadline, o.deadline.period, r.deadline.period);
    report.at_most(PolicyId::LatencyBudget, o.latency_budget.duration, r.latency_budget.duration);
    report.refuse_unless(o.ownership == r.ownership, PolicyId::Ownership, || {
        (o.ownership.to_string(), r.ownership.to_string())
    });
    report.refuse_unless(
        o.liveliness.kind >= r.liveliness.kind && o.liveliness.lease_duration <= r.liveliness.lease_duration,
        PolicyId::Liveliness,
        || (liveliness_text(&o.liveliness), liveliness_text(&r.liveliness)),
    );
    report.at_least(PolicyId::Reliability, o.reliability.kind, r.reliability.kind);
    report.at_least(PolicyId::DestinationOrder, o.destination_order, r.destination_order);
    let representation = o.data_representation.offered();
    report.refuse_unless(r.data_representation.accepts(representation), PolicyId::DataRepresentation, || {
        (representations_text(&[representation]), representations_text(r.data_representation.effective()))
    });
    report.0
}

struct Report(Vec<Incompatibility>);

impl Report {
    fn refuse_unless(&mut self, is_compatible: bool, policy: PolicyId, texts: impl FnOnce() -> (String, String)) {
        if !is_compatible {
            let (offered, requested) = texts();
            self.0.push(Incompatibility { policy, offered, requested });
        }
    }

    /// Checks ordered kinds: the writer may offer more than the reader requests.
    fn at_least<K: PartialOrd + fmt::Display>(&mut self, policy: PolicyId, offered: K, wanted: K) {
        self.refuse_unless(offered >= wanted, policy, || (offered.to_string(), wanted.to_string()));
    }

    /// Checks guaranteed times: the writer may offer a shorter time than the reader requests.
    fn at_most<D: PartialOrd + fmt::Display>(&mut self, policy: PolicyId, offered: D, wanted: D) {
        self.refuse_unless(offered <= wanted, policy, || (offered.to_string(), wanted.to_string()));
    }
}

fn is_presentation_offered(offered: &Presentation, requested: &Presentation) -> bool {
    offered.access_scope >= requested.access_scope
        && (offered.coherent_access || !requested.coherent_access)
        && (offered.ordered_access || !requested.ordered_access)
}

fn presentation_text(presentation: &Presentation) -> String {
    let mut text = presentation.access_scope.to_string();
    if presentation.coherent_access {
        text.push_str(" coherent");
    }
    if presentation.ordered_access {
        text.push_str(" ordered");
    }
    text
}

fn liveliness_text(liveliness: &Liveliness) -> String {
    alloc::format!("{} with lease {}", liveliness.kind, liveliness.lease_duration)
}

fn representations_text(ids: &[i16]) -> String {
    let names: Vec<String> =
        ids.iter().map(|id| DataRepresentation::name(*id).map_or_else(|| id.to_string(), String::from)).collect();
    names.join(" or ")
}

#[cfg(test)]
mod tests;
