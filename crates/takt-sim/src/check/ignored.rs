//! What participants ignore: no endpoint matches what its participant ignores, and nothing of that arrives
//! (DDS 1.4 §2.2.2.2.1).
//!
//! The side that is ignored does not know it. It may go on believing in the other one, with the policies and endpoints that it
//! heard of last, and no reader acknowledges what its reliable writers send.

use std::collections::BTreeMap;

use takt_wire::{Guid, GuidPrefix};

use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::Nanos;

/// What a participant may ignore of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ignored {
    /// All of a participant.
    Participant(GuidPrefix),
    /// All endpoints of a topic, by its index.
    Topic(usize),
    /// A writer or reader.
    Endpoint(Guid),
}

impl Ignored {
    fn covers(self, endpoint: &Endpoint) -> bool {
        match self {
            Self::Participant(prefix) => endpoint.guid.prefix == prefix,
            Self::Topic(topic) => endpoint.topic == topic,
            Self::Endpoint(guid) => endpoint.guid == guid,
        }
    }
}

/// What all participants ignore, and since when.
#[derive(Debug, Default)]
pub(super) struct Ignorance(BTreeMap<(GuidPrefix, Ignored), Nanos>);

impl Ignorance {
    /// Since when a participant ignores an endpoint.
    pub(super) fn since(&self, by: GuidPrefix, endpoint: &Endpoint) -> Option<Nanos> {
        if by == endpoint.guid.prefix {
            return None;
        }
        let of_it = self.0.iter().filter(|((who, what), _)| *who == by && what.covers(endpoint));
        of_it.map(|(_, since)| *since).min()
    }

    /// Whether one of two endpoints is ignored by the participant of the other.
    pub(super) fn parts(&self, one: &Endpoint, other: &Endpoint) -> bool {
        self.since(one.guid.prefix, other).or_else(|| self.since(other.guid.prefix, one)).is_some()
    }
}

impl Checker {
    /// From now on a participant ignores something.
    pub fn ignores(&mut self, by: GuidPrefix, what: Ignored) {
        self.ignorance.0.entry((by, what)).or_insert(self.now);
    }

    /// Whether a participant ignores this endpoint of another one.
    pub(super) fn is_ignored(&self, id: EndpointId) -> bool {
        let of = &self.endpoints[id as usize];
        self.ignorance.0.keys().any(|(by, what)| *by != of.guid.prefix && what.covers(of))
    }

    /// Whether the participant of this endpoint ignores something.
    pub(super) fn ignores_others(&self, id: EndpointId) -> bool {
        let prefix = self.endpoints[id as usize].guid.prefix;
        self.ignorance.0.keys().any(|(by, _)| *by == prefix)
    }

    /// Whether another participant ignores this one or something of it.
    pub(super) fn is_ignored_in_part(&self, prefix: GuidPrefix) -> bool {
        let is_of_it = |id: &usize| self.endpoints[*id].guid.prefix == prefix;
        (0..self.endpoints.len()).filter(is_of_it).any(|id| self.is_ignored(id as EndpointId))
    }

    /// Whether the participant of a peer ignores that of an endpoint, and announces nothing to it any more.
    pub(super) fn hears_nothing_from(&self, id: EndpointId, peer: Guid) -> bool {
        let prefix = self.endpoints[id as usize].guid.prefix;
        self.ignorance.0.contains_key(&(peer.prefix, Ignored::Participant(prefix)))
    }

    /// An endpoint is matched with these: its participant must not ignore any of them.
    pub(super) fn must_not_be_ignored(&mut self, at: Nanos, id: EndpointId, peers: &[Guid]) {
        let by = self.endpoints[id as usize].guid.prefix;
        let known = peers.iter().filter_map(|guid| self.by_guid.get(guid)).map(|id| &self.endpoints[*id as usize]);
        let wrong = known.into_iter().find(|peer| self.ignorance.since(by, peer).is_some()).map(|peer| peer.guid);
        if let Some(guid) = wrong {
            self.report(at, Rule::Matching, format!("endpoint {id} is matched with {guid:?}, which it ignores"));
        }
    }

    /// A sample was taken: had the reader's participant not ignored the writer when it was written?
    pub(super) fn judge_ignored(
        &self,
        writer: EndpointId,
        reader: EndpointId,
        number: u32,
    ) -> Result<(), (Rule, String)> {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        let written = from.written_at[number as usize - 1];
        match self.ignorance.since(to.guid.prefix, from).filter(|since| written > *since) {
            Some(since) => {
                Err((Rule::Matching, format!("number {number} of writer {writer}, which is ignored since {since} ns")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use takt_core::{ChangeKind, InstanceState};
    use takt_wire::{EntityId, Timestamp};

    use super::*;
    use crate::check::Change;
    use crate::scenario::QosPlan;

    fn guid(participant: u8) -> Guid {
        Guid { prefix: GuidPrefix([participant; 12]), entity_id: EntityId::UNKNOWN }
    }

    /// A writer of participant 1 and a reader of participant 2, which ignores something.
    fn checker(what: Ignored) -> (Checker, EndpointId, EndpointId) {
        let mut checker = Checker::default();
        let writer = checker.created(guid(1), 0, QosPlan::default(), true);
        let reader = checker.created(guid(2), 0, QosPlan::default(), false);
        checker.now = 100;
        checker.ignores(guid(2).prefix, what);
        (checker, writer, reader)
    }

    const OF_THE_WRITER: [fn() -> Ignored; 3] =
        [|| Ignored::Participant(guid(1).prefix), || Ignored::Topic(0), || Ignored::Endpoint(guid(1))];

    #[test]
    fn match_with_an_ignored_endpoint_breaks_a_promise() {
        for what in OF_THE_WRITER {
            let (mut checker, writer, reader) = checker(what());
            checker.matched(100, writer, &[guid(2)], 1);
            assert_eq!(checker.violation(), None, "the writer's side does not know it");
            checker.matched(100, reader, &[guid(1)], 1);
            assert_eq!(checker.violation().map(|it| it.rule), Some(Rule::Matching), "{:?}", what());
        }
        let (mut checker, _, reader) = checker(Ignored::Topic(1));
        checker.matched(100, reader, &[guid(1)], 1);
        assert_eq!(checker.violation(), None, "another topic is ignored");
    }

    #[test]
    fn sample_of_an_ignored_writer_breaks_a_promise_if_it_was_written_since() {
        for what in OF_THE_WRITER {
            let (mut checker, writer, reader) = checker(what());
            for at in [100, 101] {
                let change = Change { instance: 0, kind: ChangeKind::Alive, to: None, len: 8 };
                checker.wrote(at, Timestamp::ZERO, writer, change);
            }
            assert!(checker.judge_ignored(writer, reader, 1).is_ok());
            assert!(checker.judge_ignored(writer, reader, 2).is_err(), "{:?}", what());
        }
    }

    /// Whoever ignores a participant does not tell it of the end of a writer either.
    #[test]
    fn instance_of_a_deleted_writer_is_alive_only_for_whom_the_writer_ignores() {
        for ignores in [false, true] {
            let mut checker = Checker::default();
            let writer = checker.created(guid(1), 0, QosPlan::default(), true);
            let reader = checker.created(guid(2), 0, QosPlan::default(), false);
            checker.matched(0, writer, &[guid(2)], 1);
            checker.matched(0, reader, &[guid(1)], 1);
            checker.states.insert((reader, 0), InstanceState::Alive);
            if ignores {
                checker.ignores(guid(1).prefix, Ignored::Participant(guid(2).prefix));
            }
            checker.gone(writer, 0);
            checker.finish_instances(100);
            let expected = (!ignores).then_some(Rule::Instance);
            assert_eq!(checker.violation().map(|it| it.rule), expected, "ignores: {ignores}");
        }
    }
}
