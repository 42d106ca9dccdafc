//! Access control (DDS-SEC 1.1 §9.4): endpoints exist, match and exchange samples only as
//! permissions allow.
//!
//! An endpoint is entitled if the permissions of its participant allow it. An honest participant
//! has only entitled endpoints. An insider may have others, and may consider them as matched. No
//! other participant matches them. The same holds for endpoints that renewed permissions no longer
//! allow.
//!
//! Matches end, and no more samples are taken, [`EXPIRY_TOLERANCE`] after the certificate or the
//! permissions of either participant have expired.

use takt_wire::{Guid, GuidPrefix};

use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::{MILLISECOND, Nanos};

/// Time after the expiry of a document within which participants check it.
pub const EXPIRY_TOLERANCE: Nanos = 10 * MILLISECOND;

/// Time after renewed permissions within which all others apply them if no fault occurs.
const RENEWAL_TIME_MAX: Nanos = 500 * MILLISECOND;

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

    /// Reports whether permissions have ever allowed a match that others may still have at this
    /// time.
    pub(super) fn might_match(&self, other: &Self, at: Nanos) -> bool {
        let might = |endpoint: &Self| endpoint.is_entitled || endpoint.was_entitled_until.is_some_and(|end| at < end);
        might(self) && might(other) || self.guid.prefix == other.guid.prefix
    }
}

impl Checker {
    /// Sets the rights of a participant. Other participants have all rights.
    pub fn set_rights(&mut self, prefix: GuidPrefix, rights: Rights) {
        self.rights.insert(prefix, rights);
    }

    /// Sets the time at which a document of a participant expires. Other participants never expire.
    pub fn set_expiry(&mut self, prefix: GuidPrefix, at: Option<Nanos>) {
        match at {
            Some(at) => _ = self.expires_at.insert(prefix, at),
            None => _ = self.expires_at.remove(&prefix),
        }
    }

    /// Records that a participant uses permissions with these rights. `is_reliable` if no fault
    /// delays their arrival at the other participants.
    pub fn renewed(&mut self, prefix: GuidPrefix, rights: Rights, is_reliable: bool) {
        self.set_expiry(prefix, None);
        self.set_rights(prefix, rights);
        let until = if is_reliable { self.now + RENEWAL_TIME_MAX } else { Nanos::MAX };
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.guid.prefix == prefix) {
            let may =
                if endpoint.is_writer { rights.publishes(endpoint.topic) } else { rights.subscribes(endpoint.topic) };
            if endpoint.is_entitled && !may {
                (endpoint.is_entitled, endpoint.was_entitled_until) = (false, Some(until));
            }
        }
    }

    /// Reports whether a document of a participant expired at least `time` ago.
    pub(super) fn has_expired(&self, prefix: GuidPrefix, time: Nanos) -> bool {
        self.expires_at.get(&prefix).is_some_and(|at| at + time <= self.now)
    }

    /// Reports whether endpoints of two participants must not be matched, since documents of either
    /// expired at least `time` ago.
    pub(super) fn is_separated(&self, of: GuidPrefix, other: GuidPrefix, time: Nanos) -> bool {
        of != other && (self.has_expired(of, time) || self.has_expired(other, time))
    }

    /// Checks that an endpoint is matched with no endpoint of another participant if documents of
    /// either participant have expired.
    pub fn must_be_separated(&mut self, at: Nanos, id: EndpointId, peers: &[Guid]) {
        let own = self.endpoints[id as usize].guid.prefix;
        let expired = peers.iter().find(|peer| self.is_separated(own, peer.prefix, EXPIRY_TOLERANCE)).copied();
        if let Some(peer) = expired {
            self.report(at, Rule::Grant, format!("endpoint {id} is matched with {peer:?} after a document expired"));
        }
    }

    /// Reports whether permissions allow an endpoint of a topic to a participant.
    #[must_use]
    pub fn is_entitled(&self, prefix: GuidPrefix, topic: usize, is_writer: bool) -> bool {
        let may = |rights: &Rights| if is_writer { rights.publishes(topic) } else { rights.subscribes(topic) };
        self.rights.get(&prefix).is_none_or(may)
    }

    /// Reports whether permissions that have not expired allow an endpoint of a topic to a
    /// participant.
    #[must_use]
    pub fn is_allowed(&self, prefix: GuidPrefix, topic: usize, is_writer: bool) -> bool {
        self.is_entitled(prefix, topic, is_writer) && !self.has_expired(prefix, 0)
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
        if self.is_separated(from.guid.prefix, to.guid.prefix, EXPIRY_TOLERANCE) {
            let text = format!("writer {writer} reaches reader {reader} after a document expired");
            return Err((Rule::Grant, text));
        }
        match from.is_entitled {
            _ if from.might_match(to, self.now) => Ok(()),
            false => {
                Err((Rule::Grant, format!("writer {writer} is not entitled to its topic, but reaches reader {reader}")))
            }
            true => Err((
                Rule::Grant,
                format!("reader {reader} is not entitled to its topic, but is reached by writer {writer}"),
            )),
        }
    }

    /// Reports a violation if an honest participant created an endpoint that its permissions do not
    /// allow.
    pub fn must_refuse(&mut self, at: Nanos, id: EndpointId) {
        if !self.endpoints[id as usize].is_entitled {
            self.report(at, Rule::Grant, format!("endpoint {id} exists, although the permissions do not allow it"));
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
        let broken = |writer: Rights, reader: Rights, at: EndpointId| {
            let mut checker = checker(writer, reader);
            let peer = guid(if at == 0 { 2 } else { 1 });
            checker.matched(0, at, &[peer], 1);
            checker.violation().map(|violation| violation.rule)
        };
        let (reads, writes) = (Rights { writes: 1, reads: 3 }, Rights { writes: 3, reads: 1 });
        assert_eq!(broken(ALL, ALL, 0), None);
        assert_eq!(broken(reads, ALL, 1), Some(Rule::Grant), "the reader matches a writer that may not write");
        assert_eq!(broken(ALL, writes, 0), Some(Rule::Grant), "the writer matches a reader that may not read");
        assert_eq!(broken(reads, ALL, 0), None, "matches at an insider are not checked");
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

    #[test]
    fn match_after_an_expiry_is_a_violation() {
        let after = |expired: u8, late: Nanos, renewal: Option<Rights>| {
            let mut checker = checker(ALL, ALL);
            checker.set_expiry(guid(expired).prefix, Some(100));
            checker.now = 100 + late;
            if let Some(rights) = renewal {
                checker.renewed(guid(expired).prefix, rights, true);
            }
            checker.must_be_separated(checker.now, 1, &[guid(1)]);
            checker.violation().map(|violation| violation.rule)
        };
        for expired in [1, 2] {
            assert_eq!(after(expired, EXPIRY_TOLERANCE - 1, None), None);
            assert_eq!(after(expired, EXPIRY_TOLERANCE, None), Some(Rule::Grant));
            assert_eq!(after(expired, EXPIRY_TOLERANCE, Some(ALL)), None, "its documents are renewed");
        }
    }

    #[test]
    fn match_outside_of_renewed_permissions_is_a_violation() {
        let after = |late: Nanos, is_reliable: bool| {
            let mut checker = checker(ALL, ALL);
            checker.renewed(guid(1).prefix, Rights { writes: 1, reads: 3 }, is_reliable);
            checker.now = late;
            checker.matched(late, 1, &[guid(1)], 1);
            checker.violation().map(|violation| violation.rule)
        };
        assert_eq!(after(RENEWAL_TIME_MAX - 1, true), None);
        assert_eq!(after(RENEWAL_TIME_MAX, true), Some(Rule::Grant));
        assert_eq!(after(RENEWAL_TIME_MAX, false), None, "a fault may delay the renewal");
    }
}
