//! Static endpoints: participants still announce themselves (RTPS 2.5 §8.5.3), but a configured
//! list replaces the endpoint discovery protocol.
//!
//! All participants have the same list, in which a participant is found by its name (ENTITY_NAME).
//! Once its address is validated, its endpoints are taken from the list as if it had announced
//! them. Local endpoints get their entity IDs from the list, in its order. The creation of an
//! endpoint that is missing in the list or contradicts it fails.
//!
//! Not supported: type lookup by the type information of static endpoints, and policies that are
//! not compared.

use crate::config::StaticParticipant;
use crate::discovery::{Call, Discovery};
use crate::error::Error;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use takt_wire::discovery::{PublicationData, SubscriptionData, builtin_endpoints as set};
use takt_wire::qos::Partition;
use takt_wire::{EntityId, Guid};

/// Builtin endpoints that a participant with static endpoints does not have.
pub(super) const SEDP: u32 = set::PUBLICATIONS_ANNOUNCER
    | set::PUBLICATIONS_DETECTOR
    | set::SUBSCRIPTIONS_ANNOUNCER
    | set::SUBSCRIPTIONS_DETECTOR;

/// Static endpoints of all participants.
#[derive(Debug)]
pub(crate) struct StaticEndpoints {
    participants: BTreeMap<String, StaticParticipant>,
    /// Name of this participant.
    own: String,
    /// Entity IDs in use by local endpoints.
    ids_in_use: BTreeSet<EntityId>,
}

/// Terms in which list and application must agree, by policy name.
type Terms = [(&'static str, String); 7];

fn bad_parameter(what: String) -> Error {
    Error::BadParameter { what: format!("static endpoints: {what}") }
}

impl StaticEndpoints {
    /// Checks and stores the list. Fails if participants share a name, endpoints share an entity
    /// ID, or one has none.
    pub(crate) fn new(list: Vec<StaticParticipant>, own: &str) -> Result<Self, Error> {
        let mut participants = BTreeMap::new();
        for participant in list {
            let name = participant.name.clone();
            check(&participant)?;
            if participants.insert(name.clone(), participant).is_some() {
                return Err(bad_parameter(format!("participant name '{name}' is used twice")));
            }
        }
        if !participants.contains_key(own) {
            return Err(bad_parameter(format!("the local participant '{own}' is not in the list")));
        }
        Ok(Self { participants, own: own.to_string(), ids_in_use: BTreeSet::new() })
    }

    /// Assigns the entity ID of a local writer to be created.
    fn assign_writer_id(&mut self, data: &PublicationData, keyed: bool) -> Result<EntityId, Error> {
        let known = self.participants.get(&self.own).map_or(&[][..], |own| &own.publications);
        let fits = |known: &&PublicationData| {
            known.topic_name == data.topic_name
                && known.type_name == data.type_name
                && known.guid.entity_id.has_key() == keyed
                && !self.ids_in_use.contains(&known.guid.entity_id)
        };
        let found = known.iter().find(fits).ok_or_else(|| self.absent("writer", &data.topic_name, &data.type_name))?;
        check_terms(&writer_terms(found), &writer_terms(data), &data.topic_name)?;
        self.ids_in_use.insert(found.guid.entity_id);
        Ok(found.guid.entity_id)
    }

    /// Assigns the entity ID of a local reader to be created.
    fn assign_reader_id(&mut self, data: &SubscriptionData, keyed: bool) -> Result<EntityId, Error> {
        let known = self.participants.get(&self.own).map_or(&[][..], |own| &own.subscriptions);
        let fits = |known: &&SubscriptionData| {
            known.topic_name == data.topic_name
                && known.type_name == data.type_name
                && known.guid.entity_id.has_key() == keyed
                && !self.ids_in_use.contains(&known.guid.entity_id)
        };
        let found = known.iter().find(fits).ok_or_else(|| self.absent("reader", &data.topic_name, &data.type_name))?;
        check_terms(&reader_terms(found), &reader_terms(data), &data.topic_name)?;
        self.ids_in_use.insert(found.guid.entity_id);
        Ok(found.guid.entity_id)
    }

    fn absent(&self, what: &str, topic: &str, type_name: &str) -> Error {
        let own = &self.own;
        Error::PreconditionNotMet {
            what: format!(
                "static endpoints: participant '{own}' has no unused {what} of topic '{topic}' with type '{type_name}'"
            ),
        }
    }
}

fn check(participant: &StaticParticipant) -> Result<(), Error> {
    let name = &participant.name;
    if name.is_empty() {
        return Err(bad_parameter("a participant has no name".to_string()));
    }
    let writers = participant.publications.iter().map(|data| (data.guid.entity_id, true, &data.topic_name));
    let readers = participant.subscriptions.iter().map(|data| (data.guid.entity_id, false, &data.topic_name));
    let mut ids = BTreeSet::new();
    for (id, is_writer, topic) in writers.chain(readers) {
        let is_valid = !id.is_builtin() && if is_writer { id.is_writer() } else { id.is_reader() };
        if !is_valid {
            return Err(bad_parameter(format!(
                "{id:?} of topic '{topic}' of participant '{name}' has the wrong entity kind"
            )));
        }
        if !ids.insert(id) {
            return Err(bad_parameter(format!("participant '{name}' has two endpoints with the entity ID {id:?}")));
        }
    }
    Ok(())
}

fn partition(partition: &Partition) -> String {
    format!("{:?}", partition.names)
}

fn writer_terms(data: &PublicationData) -> Terms {
    let qos = &data.qos;
    [
        ("RELIABILITY", format!("{:?}", qos.reliability.kind)),
        ("DURABILITY", format!("{:?}", qos.durability)),
        ("DEADLINE", format!("{:?}", qos.deadline)),
        ("LIVELINESS", format!("{:?}", qos.liveliness)),
        ("OWNERSHIP", format!("{:?}", qos.ownership)),
        ("PRESENTATION", format!("{:?}", data.presentation)),
        ("PARTITION", partition(&data.partition)),
    ]
}

fn reader_terms(data: &SubscriptionData) -> Terms {
    let qos = &data.qos;
    [
        ("RELIABILITY", format!("{:?}", qos.reliability.kind)),
        ("DURABILITY", format!("{:?}", qos.durability)),
        ("DEADLINE", format!("{:?}", qos.deadline)),
        ("LIVELINESS", format!("{:?}", qos.liveliness)),
        ("OWNERSHIP", format!("{:?}", qos.ownership)),
        ("PRESENTATION", format!("{:?}", data.presentation)),
        ("PARTITION", partition(&data.partition)),
    ]
}

fn check_terms(listed: &Terms, given: &Terms, topic: &str) -> Result<(), Error> {
    match listed.iter().zip(given).find(|(listed, given)| listed != given) {
        None => Ok(()),
        Some(((policy, listed), (_, given))) => Err(Error::InconsistentPolicy {
            what: format!("static endpoints: {policy} of topic '{topic}' is {listed} in the list and {given} here"),
        }),
    }
}

impl Discovery {
    /// Assigns the static entity ID to a new local writer, if the list is in use.
    pub(crate) fn assign_static_writer_id(&mut self, data: &mut PublicationData, keyed: bool) -> Result<(), Error> {
        if let Some(list) = &mut self.static_endpoints {
            data.guid.entity_id = list.assign_writer_id(data, keyed)?;
        }
        Ok(())
    }

    /// Assigns the static entity ID to a new local reader, if the list is in use.
    pub(crate) fn assign_static_reader_id(&mut self, data: &mut SubscriptionData, keyed: bool) -> Result<(), Error> {
        if let Some(list) = &mut self.static_endpoints {
            data.guid.entity_id = list.assign_reader_id(data, keyed)?;
        }
        Ok(())
    }

    /// Releases the entity ID of a deleted local endpoint.
    pub(crate) fn release_static_id(&mut self, id: EntityId) {
        if let Some(list) = &mut self.static_endpoints {
            list.ids_in_use.remove(&id);
        }
    }

    /// Adds the listed endpoints of a participant whose address was validated.
    pub(super) fn present_static_endpoints(&mut self, call: &mut Call<'_>, index: u32) {
        let Some(list) = &self.static_endpoints else { return };
        let Some(remote) = self.remotes.get(index) else { return };
        let prefix = remote.prefix;
        let Some(known) = list.participants.get(&remote.data.entity_name.0).cloned() else {
            call.ctx.counters.unlisted_participants += 1;
            return;
        };
        let participant = remote.data.guid;
        for data in known.publications {
            call.ctx.work.unit();
            let guid = Guid { prefix, ..data.guid };
            self.handle_publication(call, Box::new(PublicationData { guid, participant, ..data }));
        }
        for data in known.subscriptions {
            call.ctx.work.unit();
            let guid = Guid { prefix, ..data.guid };
            self.handle_subscription(call, Box::new(SubscriptionData { guid, participant, ..data }));
        }
    }
}
