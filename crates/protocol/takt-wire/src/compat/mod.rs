//! Compatibility check of offered and requested QoS of a writer and a reader (DDS 1.4 §2.2.3).
//!
//! The caller compares topic and type. PARTITION is not part of the check, because disjoint
//! partitions are no incompatible QoS: see [`partitions_match`].

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::discovery::{PublicationData, SubscriptionData};
use crate::guid::Guid;
use crate::qos;

pub use crate::partition::{fnmatch, partitions_match};
pub use crate::qos::PolicyId;

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
    qos::incompatibilities(offered, requested)
}

#[cfg(test)]
mod tests;
