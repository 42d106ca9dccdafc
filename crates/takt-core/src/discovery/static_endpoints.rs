//! Endpoints that are known beforehand, so that nobody has to tell them: participants still announce themselves
//! (RTPS 2.5 §8.5.3), but there is no endpoint discovery protocol.
//!
//! All participants are given the same list. A participant is found in it by its name (ENTITY_NAME). Once it has proven its
//! address, its endpoints are taken from the list as if it had announced them. The
//! participant's own endpoints get their entity ids from the list, in its order; one that is not in it, or contradicts it, is
//! refused when it is created.
//!
//! Deliberately not here: type lookup by static endpoints' type information, and policies that nobody compares.

use crate::error::Error;
use crate::participant::Participant;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use takt_wire::discovery::{PublicationData, SubscriptionData, builtin_endpoints as set};
use takt_wire::qos::Partition;
use takt_wire::{EntityId, Guid};

/// The builtin endpoints that a participant with static endpoints does without.
pub(super) const SEDP: u32 = set::PUBLICATIONS_ANNOUNCER
    | set::PUBLICATIONS_DETECTOR
    | set::SUBSCRIPTIONS_ANNOUNCER
    | set::SUBSCRIPTIONS_DETECTOR;

/// What one participant has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticParticipant {
    /// Its ENTITY_NAME.
    pub name: String,
    /// Its writers, with their entity ids; the GUID prefix is of no account.
    pub publications: Vec<PublicationData>,
    /// Its readers, in the same way.
    pub subscriptions: Vec<SubscriptionData>,
}

/// The list of all participants.
#[derive(Debug)]
pub(crate) struct StaticEndpoints {
    participants: BTreeMap<String, StaticParticipant>,
    /// Our own name.
    own: String,
    /// Entity ids of ours that are in use.
    taken: BTreeSet<EntityId>,
}

/// What the list and the application must agree upon, by the policies' names.
type Terms = [(&'static str, String); 7];

fn wrong(what: String) -> Error {
    Error::BadParameter { what: format!("static endpoints: {what}") }
}

impl StaticEndpoints {
    /// Errors if participants share a name, or endpoints an entity id, or if one has none.
    pub(crate) fn new(list: Vec<StaticParticipant>, own: &str) -> Result<Self, Error> {
        let mut participants = BTreeMap::new();
        for participant in list {
            let name = participant.name.clone();
            check(&participant)?;
            if participants.insert(name.clone(), participant).is_some() {
                return Err(wrong(format!("there are two participants '{name}'")));
            }
        }
        if !participants.contains_key(own) {
            return Err(wrong(format!("there is no participant '{own}', which is this one")));
        }
        Ok(Self { participants, own: own.to_string(), taken: BTreeSet::new() })
    }

    /// The entity id of a writer of ours that is about to be created.
    fn claim_writer(&mut self, data: &PublicationData, keyed: bool) -> Result<EntityId, Error> {
        let known = self.participants.get(&self.own).map_or(&[][..], |own| &own.publications);
        let fits = |known: &&PublicationData| {
            known.topic_name == data.topic_name
                && known.type_name == data.type_name
                && known.guid.entity_id.has_key() == keyed
                && !self.taken.contains(&known.guid.entity_id)
        };
        let found = known.iter().find(fits).ok_or_else(|| self.absent("writer", &data.topic_name, &data.type_name))?;
        agree(&writer_terms(found), &writer_terms(data), &data.topic_name)?;
        self.taken.insert(found.guid.entity_id);
        Ok(found.guid.entity_id)
    }

    /// The entity id of a reader of ours that is about to be created.
    fn claim_reader(&mut self, data: &SubscriptionData, keyed: bool) -> Result<EntityId, Error> {
        let known = self.participants.get(&self.own).map_or(&[][..], |own| &own.subscriptions);
        let fits = |known: &&SubscriptionData| {
            known.topic_name == data.topic_name
                && known.type_name == data.type_name
                && known.guid.entity_id.has_key() == keyed
                && !self.taken.contains(&known.guid.entity_id)
        };
        let found = known.iter().find(fits).ok_or_else(|| self.absent("reader", &data.topic_name, &data.type_name))?;
        agree(&reader_terms(found), &reader_terms(data), &data.topic_name)?;
        self.taken.insert(found.guid.entity_id);
        Ok(found.guid.entity_id)
    }

    fn absent(&self, what: &str, topic: &str, type_name: &str) -> Error {
        let own = &self.own;
        Error::PreconditionNotMet {
            what: format!(
                "static endpoints: participant '{own}' has no further {what} of topic '{topic}' with type '{type_name}'"
            ),
        }
    }
}

fn check(participant: &StaticParticipant) -> Result<(), Error> {
    let name = &participant.name;
    if name.is_empty() {
        return Err(wrong("a participant has no name".to_string()));
    }
    let writers = participant.publications.iter().map(|data| (data.guid.entity_id, true, &data.topic_name));
    let readers = participant.subscriptions.iter().map(|data| (data.guid.entity_id, false, &data.topic_name));
    let mut ids = BTreeSet::new();
    for (id, is_writer, topic) in writers.chain(readers) {
        let right = !id.is_builtin() && if is_writer { id.is_writer() } else { id.is_reader() };
        if !right {
            return Err(wrong(format!("{id:?} of topic '{topic}' of participant '{name}' is of another kind")));
        }
        if !ids.insert(id) {
            return Err(wrong(format!("participant '{name}' has two endpoints {id:?}")));
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

fn agree(listed: &Terms, given: &Terms, topic: &str) -> Result<(), Error> {
    match listed.iter().zip(given).find(|(listed, given)| listed != given) {
        None => Ok(()),
        Some(((policy, listed), (_, given))) => Err(Error::InconsistentPolicy {
            what: format!("static endpoints: {policy} of topic '{topic}' is {listed} there and {given} here"),
        }),
    }
}

impl Participant {
    /// Gives a new writer of ours the entity id that others know it by, if that is fixed.
    pub(crate) fn name_writer(&mut self, data: &mut PublicationData, keyed: bool) -> Result<(), Error> {
        if let Some(list) = &mut self.static_endpoints {
            data.guid.entity_id = list.claim_writer(data, keyed)?;
        }
        Ok(())
    }

    /// The same for a reader.
    pub(crate) fn name_reader(&mut self, data: &mut SubscriptionData, keyed: bool) -> Result<(), Error> {
        if let Some(list) = &mut self.static_endpoints {
            data.guid.entity_id = list.claim_reader(data, keyed)?;
        }
        Ok(())
    }

    /// An endpoint of ours is no more; its entity id may be used again.
    pub(crate) fn unname(&mut self, id: EntityId) {
        if let Some(list) = &mut self.static_endpoints {
            list.taken.remove(&id);
        }
    }

    /// A participant has proven its address: it has what the list says.
    pub(super) fn present_static_endpoints(&mut self, now: Instant, index: u32) {
        let Some(list) = &self.static_endpoints else { return };
        let Some(remote) = self.remotes.get(index) else { return };
        let prefix = remote.prefix;
        let Some(known) = list.participants.get(&remote.data.entity_name.0).cloned() else {
            self.ctx.counters.unlisted_participants += 1;
            return;
        };
        let participant = remote.data.guid;
        for data in known.publications {
            self.ctx.work.unit();
            let guid = Guid { prefix, ..data.guid };
            self.handle_publication(now, Box::new(PublicationData { guid, participant, ..data }));
        }
        for data in known.subscriptions {
            self.ctx.work.unit();
            let guid = Guid { prefix, ..data.guid };
            self.handle_subscription(now, Box::new(SubscriptionData { guid, participant, ..data }));
        }
    }
}
