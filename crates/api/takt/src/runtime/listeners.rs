//! Selection of the listener for a status (DDS 1.4 §2.2.4.2.3): the entity's own, else that of its
//! publisher or subscriber, else that of the participant, depending on their masks.
//! `INCONSISTENT_TOPIC` goes to the topic's listener, else to the participant's.
//!
//! Invariant: a listener is either in its slot or taken out for one call.

use std::sync::{Arc, Weak};

use takt_core::Priority;

use crate::listener::{
    DomainParticipantListener, PublisherListener, SubscriberListener, TopicListener, notify_publisher,
    notify_subscriber, notify_topic,
};
use crate::reader::{AnyDataReader, ReaderCore};
use crate::runtime::state::Target;
use crate::status::{Signal, StatusMask};
use crate::writer::{AnyDataWriter, WriterCore};

/// Listener of any kind of entity. Adapters convert those of typed readers and writers.
pub(crate) enum Listener {
    Reader(Box<dyn SubscriberListener>),
    Writer(Box<dyn PublisherListener>),
    Topic(Box<dyn TopicListener>),
    Participant(Box<dyn DomainParticipantListener>),
}

/// Reference to an endpoint, which may be deleted before its listener is called.
pub(crate) enum EndpointRef {
    Reader(Weak<ReaderCore>),
    Writer(Weak<WriterCore>),
}

impl EndpointRef {
    /// Returns the entity if it still exists. It must not be dropped while holding the lock.
    fn upgrade(&self) -> Option<Entity> {
        match self {
            Self::Reader(reader) => reader.upgrade().map(AnyDataReader::from_core).map(Entity::Reader),
            Self::Writer(writer) => writer.upgrade().map(AnyDataWriter::from_core).map(Entity::Writer),
        }
    }
}

/// Reader or writer about which a listener is called.
pub(crate) enum Entity {
    Reader(AnyDataReader),
    Writer(AnyDataWriter),
}

impl Listener {
    /// Calls the listener for statuses of an entity.
    pub(crate) fn call(&mut self, entity: &Entity, statuses: StatusMask) {
        match (self, entity) {
            (Self::Reader(listener), Entity::Reader(reader)) => notify_subscriber(&mut **listener, reader, statuses),
            (Self::Writer(listener), Entity::Writer(writer)) => notify_publisher(&mut **listener, writer, statuses),
            (Self::Topic(listener), Entity::Reader(reader)) => {
                notify_topic(&mut **listener, &reader.core.topic, statuses);
            }
            (Self::Topic(listener), Entity::Writer(writer)) => {
                notify_topic(&mut **listener, &writer.core.topic, statuses);
            }
            (Self::Participant(listener), Entity::Reader(reader)) => {
                notify_topic(&mut **listener, &reader.core.topic, statuses);
                notify_subscriber(&mut **listener, reader, statuses);
            }
            (Self::Participant(listener), Entity::Writer(writer)) => {
                notify_topic(&mut **listener, &writer.core.topic, statuses);
                notify_publisher(&mut **listener, writer, statuses);
            }
            (Self::Reader(_), Entity::Writer(_)) | (Self::Writer(_), Entity::Reader(_)) => {}
        }
    }
}

/// Slot for the listener of an entity.
#[derive(Default)]
pub(crate) struct Slot {
    listener: Option<Listener>,
    /// Mask of the listener; empty if there is none.
    mask: StatusMask,
    /// Number of changes, so that a listener which is being called does not overwrite its
    /// successor.
    version: u64,
}

impl Slot {
    /// Sets the listener. The caller drops the returned former one without holding the lock.
    pub(crate) fn set(&mut self, listener: Option<Listener>, mask: StatusMask) -> Option<Listener> {
        self.version += 1;
        self.mask = if listener.is_some() { mask } else { StatusMask::NONE };
        std::mem::replace(&mut self.listener, listener)
    }

    pub(crate) fn handles(&self, status: StatusMask) -> bool {
        self.mask.intersects(status)
    }

    /// Takes the listener out for a call.
    pub(crate) fn take(&mut self) -> Option<(Listener, u64)> {
        Some((self.listener.take()?, self.version))
    }

    /// Takes the listener out for a call about an entity, if both exist.
    pub(crate) fn take_for(&mut self, endpoint: &EndpointRef) -> Option<(Listener, u64, Entity)> {
        // Check the listener first: without one, upgrading could drop the last reference to the
        // entity while holding the lock.
        self.listener.as_ref()?;
        let entity = endpoint.upgrade()?;
        let (listener, version) = self.take()?;
        Some((listener, version, entity))
    }

    /// Returns the listener to the slot. Hands it back if it was replaced or removed, to be dropped
    /// without holding the lock.
    pub(crate) fn put_back(&mut self, listener: Listener, version: u64) -> Option<Listener> {
        if self.version == version {
            self.listener = Some(listener);
            return None;
        }
        Some(listener)
    }

    /// Reports whether an executor is calling the listener.
    pub(crate) fn is_being_called(&self) -> bool {
        self.is_set() && self.listener.is_none()
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.mask.is_empty()
    }
}

/// Runtime state of a publisher, subscriber or topic. The default has no listener.
#[derive(Default)]
pub(crate) struct Parent {
    pub(crate) slot: Slot,
    /// Signal of `DATA_ON_READERS` of a subscriber, created on request.
    pub(crate) signal: Option<Arc<Signal>>,
}

/// Runtime states of publishers, subscribers and topics, by id.
#[derive(Default)]
pub(crate) struct Parents(Vec<Option<Parent>>);

/// Id of a publisher, subscriber or topic.
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

    /// Removes the state. The caller drops its listener without holding the lock.
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

/// Level of a listener in the entity tree, from the endpoint upward.
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

/// Position of an endpoint in the entity tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreePosition {
    /// Publisher or subscriber of the endpoint.
    pub(crate) group: ParentId,
    pub(crate) topic: ParentId,
}

/// Selects the level whose listener is called for a status, and the status to report there:
/// available data may be reported as `DATA_ON_READERS` (DDS 1.4 §2.2.4.2.2).
pub(crate) fn select_listener(
    own: &Slot,
    position: TreePosition,
    parents: &Parents,
    participant: &Slot,
    status: StatusMask,
) -> Option<(Level, StatusMask)> {
    let handles = |id: ParentId, status| parents.get(id).is_some_and(|parent| parent.slot.handles(status));
    if status == StatusMask::DATA_AVAILABLE {
        let on_readers = StatusMask::DATA_ON_READERS;
        if handles(position.group, on_readers) {
            return Some((Level::Group, on_readers));
        }
        if participant.handles(on_readers) {
            return Some((Level::Participant, on_readers));
        }
    }
    if status == StatusMask::INCONSISTENT_TOPIC {
        if handles(position.topic, status) {
            return Some((Level::Topic, status));
        }
    } else if own.handles(status) {
        return Some((Level::Endpoint, status));
    } else if handles(position.group, status) {
        return Some((Level::Group, status));
    }
    participant.handles(status).then_some((Level::Participant, status))
}

/// Pending call of a listener that was taken out of its slot.
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) priority: Priority,
    pub(crate) level: Level,
    pub(crate) listener: Listener,
    pub(crate) version: u64,
    pub(crate) entity: Entity,
    pub(crate) statuses: StatusMask,
}
