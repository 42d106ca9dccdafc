//! Access control (DDS-SEC 1.1 §9.4): endpoints exist, match and exchange samples only as
//! permissions allow.
//!
//! An endpoint is entitled if the permissions of its participant allow it. An honest participant
//! has only entitled endpoints. An insider may have others, and may consider them as matched. No
//! other participant matches them.

use takt_wire::GuidPrefix;

use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::Nanos;

/// Permissions of a participant, as bit sets of topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Topics for which it may have writers.
    pub writes: u64,
    /// Topics for which it may have readers.
    pub reads: u64,
}

impl Rights {
    /// Rights of a participant that is not a member of the domain.
    pub const NONE: Self = Self { writes: 0, reads: 0 };

    /// Reports whether the participant may have writers of a topic.
    #[must_use]
    pub fn publishes(self, topic: usize) -> bool {
        self.writes >> topic & 1 != 0
    }

    /// Reports whether the participant may have readers of a topic.
    #[must_use]
    pub fn subscribes(self, topic: usize) -> bool {
        self.reads >> topic & 1 != 0
    }
}

impl Endpoint {
    /// Reports whether permissions allow a match of a writer and a reader. An insider may match its
    /// own endpoints with each other.
    pub(super) fn may_match(&self, other: &Self) -> bool {
        self.is_entitled && other.is_entitled || self.guid.prefix == other.guid.prefix
    }
}

impl Checker {
    /// Sets the rights of a participant. Other participants have all rights.
    pub fn set_rights(&mut self, prefix: GuidPrefix, rights: Rights) {
        self.rights.insert(prefix, rights);
    }

    /// Reports whether permissions allow an endpoint of a topic to a participant.
    #[must_use]
    pub fn is_entitled(&self, prefix: GuidPrefix, topic: usize, is_writer: bool) -> bool {
        let may = |rights: &Rights| if is_writer { rights.publishes(topic) } else { rights.subscribes(topic) };
        self.rights.get(&prefix).is_none_or(may)
    }

    /// Reports whether others refuse a participant or some of its endpoints. It then keeps
    /// requesting acknowledgments from them.
    pub(super) fn is_refused_in_part(&self, prefix: GuidPrefix) -> bool {
        let is_outside = self.rights.get(&prefix) == Some(&Rights::NONE);
        is_outside || self.endpoints.iter().any(|endpoint| endpoint.guid.prefix == prefix && !endpoint.is_entitled)
    }

    /// Checks that a writer and a reader that matched, or exchanged a sample, are entitled.
    pub(super) fn check_grants(&self, writer: EndpointId, reader: EndpointId) -> Result<(), (Rule, String)> {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        match from.is_entitled {
            _ if from.may_match(to) => Ok(()),
            false => Err((Rule::Grant, format!("writer {writer} may not write what reader {reader} has"))),
            true => Err((Rule::Grant, format!("reader {reader} may not read what writer {writer} writes"))),
        }
    }

    /// Reports a violation if an honest participant created an endpoint outside of its permissions.
    pub fn must_refuse(&mut self, at: Nanos, id: EndpointId) {
        if !self.endpoints[id as usize].is_entitled {
            self.report(at, Rule::Grant, format!("endpoint {id} exists, which the permissions do not allow"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::QosPlan;
    use takt_wire::{EntityId, Guid};

    fn guid(id: u8) -> Guid {
        Guid { prefix: GuidPrefix([id; 12]), entity_id: EntityId::UNKNOWN }
    }

    /// Creates a writer and a reader of topic 1 whose participants have these rights.
    fn checker(writer: Rights, reader: Rights) -> Checker {
        let mut checker = Checker::default();
        for (id, rights) in [(1, writer), (2, reader)] {
            checker.set_rights(guid(id).prefix, rights);
            checker.created(guid(id), 1, QosPlan::default(), id == 1);
        }
        checker
    }

    const ALL: Rights = Rights { writes: 2, reads: 2 };

    #[test]
    fn match_outside_a_grant_is_a_violation() {
        let broken = |writer: Rights, reader: Rights, believer: EndpointId| {
            let mut checker = checker(writer, reader);
            let peer = guid(if believer == 0 { 2 } else { 1 });
            checker.matched(0, believer, &[peer], 1);
            checker.violation().map(|violation| violation.rule)
        };
        let (reads, writes) = (Rights { writes: 1, reads: 3 }, Rights { writes: 3, reads: 1 });
        assert_eq!(broken(ALL, ALL, 0), None);
        assert_eq!(broken(reads, ALL, 1), Some(Rule::Grant), "the reader believes in a writer that may not write");
        assert_eq!(broken(ALL, writes, 0), Some(Rule::Grant), "the writer believes in a reader that may not read");
        assert_eq!(broken(reads, ALL, 0), None, "beliefs of an insider are not checked");
        assert_eq!(broken(ALL, Rights::NONE, 0), Some(Rule::Grant));
    }

    #[test]
    fn endpoint_outside_its_grant_is_a_violation() {
        let mut checker = checker(Rights::NONE, ALL);
        checker.must_refuse(0, 1);
        assert_eq!(checker.violation(), None);
        assert!(checker.is_refused_in_part(guid(1).prefix) && !checker.is_refused_in_part(guid(2).prefix));
        checker.must_refuse(0, 0);
        assert_eq!(checker.violation().map(|violation| violation.rule), Some(Rule::Grant));
    }
}
