//! Checks of ignored entities: no endpoint matches an entity that its participant ignores, and no
//! sample of it arrives (DDS 1.4 §2.2.2.2.1).
//!
//! The ignored side is not notified. It may keep its matches, with the last policies and endpoints
//! that it received, and no reader acknowledges the samples of its reliable writers.

use std::collections::BTreeMap;

use takt_wire::{Guid, GuidPrefix};

use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::Nanos;

/// Remote entities that a participant may ignore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ignored {
    /// A participant with all its endpoints.
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

/// Ignored entities of all participants, with the time from which they are ignored.
#[derive(Debug, Default)]
pub(super) struct IgnoredEntities(BTreeMap<(GuidPrefix, Ignored), Nanos>);

impl IgnoredEntities {
    /// Returns the time from which a participant ignores an endpoint.
    pub(super) fn since(&self, by: GuidPrefix, endpoint: &Endpoint) -> Option<Nanos> {
        if by == endpoint.guid.prefix {
            return None;
        }
        let of_it = self.0.iter().filter(|((participant, entity), _)| *participant == by && entity.covers(endpoint));
        of_it.map(|(_, since)| *since).min()
    }

    /// Reports whether one of two endpoints is ignored by the participant of the other.
    pub(super) fn separates(&self, one: &Endpoint, other: &Endpoint) -> bool {
        self.since(one.guid.prefix, other).or_else(|| self.since(other.guid.prefix, one)).is_some()
    }
}

impl Checker {
    /// Records that a participant ignores an entity from now on.
    pub fn ignores(&mut self, by: GuidPrefix, what: Ignored) {
        self.ignored_entities.0.entry((by, what)).or_insert(self.now);
    }

    /// Reports whether another participant ignores this endpoint.
    pub(super) fn is_ignored(&self, id: EndpointId) -> bool {
        let of = &self.endpoints[id as usize];
        self.ignored_entities.0.keys().any(|(by, what)| *by != of.guid.prefix && what.covers(of))
    }

    /// Reports whether the participant of this endpoint ignores anything.
    pub(super) fn ignores_any(&self, id: EndpointId) -> bool {
        let prefix = self.endpoints[id as usize].guid.prefix;
        self.ignored_entities.0.keys().any(|(by, _)| *by == prefix)
    }

    /// Reports whether another participant ignores this participant or some of its entities.
    pub(super) fn is_ignored_in_part(&self, prefix: GuidPrefix) -> bool {
        let is_of_it = |id: &usize| self.endpoints[*id].guid.prefix == prefix;
        (0..self.endpoints.len()).filter(is_of_it).any(|id| self.is_ignored(id as EndpointId))
    }

    /// Reports whether the participant of a peer ignores that of an endpoint, and therefore
    /// announces nothing to it.
    pub(super) fn receives_nothing_from(&self, id: EndpointId, peer: Guid) -> bool {
        let prefix = self.endpoints[id as usize].guid.prefix;
        self.ignored_entities.0.contains_key(&(peer.prefix, Ignored::Participant(prefix)))
    }

    /// Checks that the participant of an endpoint ignores none of the endpoints matched with it.
    pub(super) fn must_not_be_ignored(&mut self, at: Nanos, id: EndpointId, peers: &[Guid]) {
        let by = self.endpoints[id as usize].guid.prefix;
        let known = peers.iter().filter_map(|guid| self.by_guid.get(guid)).map(|id| &self.endpoints[*id as usize]);
        let wrong =
            known.into_iter().find(|peer| self.ignored_entities.since(by, peer).is_some()).map(|peer| peer.guid);
        if let Some(guid) = wrong {
            self.report(at, Rule::Matching, format!("endpoint {id} is matched with {guid:?}, which it ignores"));
        }
    }

    /// Checks that the reader's participant did not ignore the writer when a taken sample was
    /// written.
    pub(super) fn check_ignored(
        &self,
        writer: EndpointId,
        reader: EndpointId,
        number: u32,
    ) -> Result<(), (Rule, String)> {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        let written = from.written_at[number as usize - 1];
        match self.ignored_entities.since(to.guid.prefix, from).filter(|since| written > *since) {
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

    /// Creates a writer of participant 1 and a reader of participant 2, which ignores `what`.
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
    fn match_with_an_ignored_endpoint_is_a_violation() {
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
    fn sample_of_an_ignored_writer_is_a_violation_if_written_since() {
        for what in OF_THE_WRITER {
            let (mut checker, writer, reader) = checker(what());
            for at in [100, 101] {
                let change = Change { instance: 0, kind: ChangeKind::Alive, to: None, len: 8 };
                checker.wrote(at, Timestamp::ZERO, writer, change);
            }
            assert!(checker.check_ignored(writer, reader, 1).is_ok());
            assert!(checker.check_ignored(writer, reader, 2).is_err(), "{:?}", what());
        }
    }

    /// A participant that ignores another one does not announce the end of a writer to it either.
    #[test]
    fn instance_of_a_deleted_writer_stays_alive_for_ignored_reader() {
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
            checker.endpoint_ended(writer, 0);
            checker.finish_instances(100);
            let expected = (!ignores).then_some(Rule::Instance);
            assert_eq!(checker.violation().map(|it| it.rule), expected, "ignores: {ignores}");
        }
    }
}
