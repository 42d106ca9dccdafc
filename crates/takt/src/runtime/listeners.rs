//! Whose listener is told of a status (DDS 1.4 §2.2.4.2.3): the entity's own; if that has no ear for it, the one of its
//! publisher or subscriber; at last the participant's. `INCONSISTENT_TOPIC` is told to the topic's, or else the
//! participant's.
//!
//! Invariant: a listener is with its slot, or out for one call.

use std::sync::{Arc, Weak};

use takt_core::Priority;

use crate::listener::{
    DomainParticipantListener, PublisherListener, SubscriberListener, TopicListener, tell_publisher, tell_subscriber,
    tell_topic,
};
use crate::reader::{AnyDataReader, ReaderCore};
use crate::runtime::state::Target;
use crate::status::{Signal, StatusMask};
use crate::writer::{AnyDataWriter, WriterCore};

/// A listener of any kind of entity. Readers and writers tell theirs by an adapter that knows the type.
pub(crate) enum Listener {
    Reader(Box<dyn SubscriberListener>),
    Writer(Box<dyn PublisherListener>),
    Topic(Box<dyn TopicListener>),
    Participant(Box<dyn DomainParticipantListener>),
}

/// An endpoint, which may have gone when its listener is to be called.
pub(crate) enum EndpointRef {
    Reader(Weak<ReaderCore>),
    Writer(Weak<WriterCore>),
}

impl EndpointRef {
    /// The entity, if it is still there. Not to be dropped under the lock.
    fn upgrade(&self) -> Option<Entity> {
        match self {
            Self::Reader(reader) => reader.upgrade().map(AnyDataReader::from_core).map(Entity::Reader),
            Self::Writer(writer) => writer.upgrade().map(AnyDataWriter::from_core).map(Entity::Writer),
        }
    }
}

/// A reader or writer that a listener is told about.
pub(crate) enum Entity {
    Reader(AnyDataReader),
    Writer(AnyDataWriter),
}

impl Listener {
    /// Tells it of an entity's statuses.
    pub(crate) fn call(&mut self, entity: &Entity, statuses: StatusMask) {
        match (self, entity) {
            (Self::Reader(listener), Entity::Reader(reader)) => tell_subscriber(&mut **listener, reader, statuses),
            (Self::Writer(listener), Entity::Writer(writer)) => tell_publisher(&mut **listener, writer, statuses),
            (Self::Topic(listener), Entity::Reader(reader)) => {
                tell_topic(&mut **listener, &reader.core.topic, statuses);
            }
            (Self::Topic(listener), Entity::Writer(writer)) => {
                tell_topic(&mut **listener, &writer.core.topic, statuses);
            }
            (Self::Participant(listener), Entity::Reader(reader)) => {
                tell_topic(&mut **listener, &reader.core.topic, statuses);
                tell_subscriber(&mut **listener, reader, statuses);
            }
            (Self::Participant(listener), Entity::Writer(writer)) => {
                tell_topic(&mut **listener, &writer.core.topic, statuses);
                tell_publisher(&mut **listener, writer, statuses);
            }
            (Self::Reader(_), Entity::Writer(_)) | (Self::Writer(_), Entity::Reader(_)) => {}
        }
    }
}

/// Where an entity keeps its listener.
#[derive(Default)]
pub(crate) struct Slot {
    listener: Option<Listener>,
    /// The statuses that it has an ear for; none without a listener.
    mask: StatusMask,
    /// Counts what was set, so that a listener which is being called is not put back over its successor.
    version: u64,
}

impl Slot {
    /// The former listener is for the caller to drop outside the lock.
    pub(crate) fn set(&mut self, listener: Option<Listener>, mask: StatusMask) -> Option<Listener> {
        self.version += 1;
        self.mask = if listener.is_some() { mask } else { StatusMask::NONE };
        std::mem::replace(&mut self.listener, listener)
    }

    pub(crate) fn hears(&self, status: StatusMask) -> bool {
        self.mask.intersects(status)
    }

    /// Takes the listener out for a call.
    pub(crate) fn take(&mut self) -> Option<(Listener, u64)> {
        Some((self.listener.take()?, self.version))
    }

    /// Takes the listener out for a call about an entity, if both are there.
    pub(crate) fn take_for(&mut self, endpoint: &EndpointRef) -> Option<(Listener, u64, Entity)> {
        // In this order: an entity that nobody is told of must not end here, under the lock.
        self.listener.as_ref()?;
        let entity = endpoint.upgrade()?;
        let (listener, version) = self.take()?;
        Some((listener, version, entity))
    }

    /// Puts it back, or hands it back if there is another one or none now, to be dropped outside the lock.
    pub(crate) fn put_back(&mut self, listener: Listener, version: u64) -> Option<Listener> {
        if self.version == version {
            self.listener = Some(listener);
            return None;
        }
        Some(listener)
    }

    /// Whether it is being called, by whichever executor.
    pub(crate) fn is_out(&self) -> bool {
        self.is_set() && self.listener.is_none()
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.mask.is_empty()
    }
}

/// What the runtime knows of a publisher, a subscriber or a topic. The default is one without listener.
#[derive(Default)]
pub(crate) struct Parent {
    pub(crate) slot: Slot,
    /// Of a subscriber, once somebody has asked for it.
    pub(crate) signal: Option<Arc<Signal>>,
}

/// Publishers, subscribers and topics, by a number each.
#[derive(Default)]
pub(crate) struct Parents(Vec<Option<Parent>>);

/// The number of a publisher, subscriber or topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParentId(u32);

impl Parents {
    pub(crate) fn add(&mut self) -> ParentId {
        let index = self.0.iter().position(Option::is_none).unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[index] = Some(Parent::default());
        ParentId(index as u32)
    }

    /// Its listener is for the caller to drop outside the lock.
    pub(crate) fn remove(&mut self, id: ParentId) -> Option<Parent> {
        self.0.get_mut(id.0 as usize)?.take()
    }

    pub(crate) fn get(&self, id: ParentId) -> Option<&Parent> {
        self.0.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: ParentId) -> Option<&mut Parent> {
        self.0.get_mut(id.0 as usize)?.as_mut()
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Parent> + '_ {
        self.0.drain(..).flatten()
    }
}

/// Who is told: the levels of the tree, from the endpoint upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Endpoint,
    Group,
    Topic,
    Participant,
}

impl Level {
    pub(crate) const ALL: [Self; 4] = [Self::Endpoint, Self::Group, Self::Topic, Self::Participant];
}

/// An endpoint's place in the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Its publisher or subscriber.
    pub(crate) group: ParentId,
    pub(crate) topic: ParentId,
}

/// Who is told of a status, and as which: samples may be news of the subscriber (DDS 1.4 §2.2.4.2.2).
pub(crate) fn audience(
    own: &Slot,
    place: Place,
    parents: &Parents,
    participant: &Slot,
    status: StatusMask,
) -> Option<(Level, StatusMask)> {
    let hears = |id: ParentId, status| parents.get(id).is_some_and(|parent| parent.slot.hears(status));
    if status == StatusMask::DATA_AVAILABLE {
        let on_readers = StatusMask::DATA_ON_READERS;
        if hears(place.group, on_readers) {
            return Some((Level::Group, on_readers));
        }
        if participant.hears(on_readers) {
            return Some((Level::Participant, on_readers));
        }
    }
    if status == StatusMask::INCONSISTENT_TOPIC {
        if hears(place.topic, status) {
            return Some((Level::Topic, status));
        }
    } else if own.hears(status) {
        return Some((Level::Endpoint, status));
    } else if hears(place.group, status) {
        return Some((Level::Group, status));
    }
    participant.hears(status).then_some((Level::Participant, status))
}

/// A listener to be called, taken out of its slot for that time.
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) priority: Priority,
    pub(crate) level: Level,
    pub(crate) listener: Listener,
    pub(crate) version: u64,
    pub(crate) entity: Entity,
    pub(crate) statuses: StatusMask,
}
