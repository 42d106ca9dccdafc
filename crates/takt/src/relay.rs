//! Endpoints that keep what others write and pass it on: what a durability service is made of (DDS 1.4 §2.2.3.4, RTPS 2.5
//! §8.7.9).
//!
//! A [`RelayReader`] acknowledges what its owner has made safe, not what has arrived. A [`RelayWriter`] writes changes of
//! others under their names: who has heard the original writer, or another relay, drops them. Neither knows values; types
//! serve to find keys.
//!
//! With a [`RelayWriter`] every reader gets its history when it is matched; what is passed on later goes to Takt readers that
//! ask for history alone.

use std::fmt;

use takt_core::{NewChange, ReadCursor, ReaderSpec, Selector, WriteError, WriterSpec};
use takt_wire::{Guid, SequenceNumber, Timestamp};

pub use takt_core::{ChangeKind, DURABILITY_SERVICE};
pub use takt_wire::inline_qos::SampleIdentity;

use crate::dynamic::{DynamicTypeSupport, key_of};
use crate::qos::{
    DataReaderQos, DataWriterQos, EntityFactory, PublisherQos, SubscriberQos, TopicData, TopicQos, UserData,
};
use crate::status::StatusMask;
use crate::{AnyDataReader, AnyDataWriter, DomainParticipant, Error, Flow, InstanceHandle, Result, SampleInfo};

/// A change as it is passed on.
#[derive(Clone, Copy, Debug)]
pub struct RelayedChange<'a> {
    /// Data, or what happens to the instance.
    pub kind: ChangeKind,
    /// The instance.
    pub instance: InstanceHandle,
    /// Who wrote it, and which of that writer's changes it is.
    pub origin: SampleIdentity,
    /// When it was written.
    pub source_timestamp: Timestamp,
    /// Serialised, with encapsulation header: the data, or the key.
    pub payload: &'a [u8],
}

/// What a relay passes on: a topic as its writers announce it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayTopic {
    /// Its name.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
    /// Whether the type has a key.
    pub has_key: bool,
    /// What is announced of the type, if anything.
    pub type_information: Option<Vec<u8>>,
    /// TOPIC_DATA.
    pub topic_data: TopicData,
}

/// Receives changes, to be kept. Handles are clones of one another; the reader is deleted with the last one.
#[derive(Clone)]
pub struct RelayReader {
    any: AnyDataReader,
}

/// Passes changes on. Handles are clones of one another; the writer is deleted with the last one.
#[derive(Clone)]
pub struct RelayWriter {
    any: AnyDataWriter,
}

fn later() -> EntityFactory {
    EntityFactory { autoenable_created_entities: false }
}

/// USER_DATA that says what the endpoint is.
fn marked(user_data: &UserData) -> UserData {
    if user_data.0.starts_with(DURABILITY_SERVICE) {
        return user_data.clone();
    }
    let mut marked = DURABILITY_SERVICE.to_vec();
    marked.extend_from_slice(&user_data.0);
    UserData(marked)
}

impl DomainParticipant {
    /// Creates a reader for a relay. Its USER_DATA says what it is.
    ///
    /// # Errors
    /// As [`create_datareader`](crate::Subscriber::create_datareader).
    pub fn create_relay_reader(
        &self,
        topic_name: &str,
        type_: &DynamicTypeSupport,
        qos: &DataReaderQos,
        subscriber: &SubscriberQos,
    ) -> Result<RelayReader> {
        let qos = DataReaderQos { user_data: marked(&qos.user_data), ..qos.clone() };
        let subscriber = self.create_subscriber(SubscriberQos { entity_factory: later(), ..subscriber.clone() })?;
        let topic =
            subscriber.inner.participant.make_topic(topic_name, type_.type_name(), TopicQos::default(), false)?;
        let any = AnyDataReader::create::<()>(&subscriber, topic, qos.clone(), Flow::default(), |driver, unicast| {
            ReaderSpec {
                topic_name: topic_name.to_owned(),
                type_name: type_.type_name().to_owned(),
                qos,
                subscriber: subscriber.qos(),
                group: None,
                topic_data: TopicData::default(),
                key: key_of(type_),
                type_information: type_.announce(&mut driver.core),
                max_serialized_len: None,
                unicast,
                content_filter: None,
            }
        })?;
        any.core.engine.call(|driver, _| Ok(driver.core.acknowledge_explicitly(any.core.handle)?))?;
        any.enable()?;
        Ok(RelayReader { any })
    }

    /// Creates a writer for a relay, not enabled yet, so that it has its history when others hear of it. Its USER_DATA says
    /// what it is.
    ///
    /// # Errors
    /// As [`create_datawriter`](crate::Publisher::create_datawriter).
    pub fn create_relay_writer(
        &self,
        topic: &RelayTopic,
        qos: &DataWriterQos,
        publisher: &PublisherQos,
    ) -> Result<RelayWriter> {
        let qos = DataWriterQos { user_data: marked(&qos.user_data), ..qos.clone() };
        let publisher = self.create_publisher(PublisherQos { entity_factory: later(), ..publisher.clone() })?;
        let inner =
            publisher.inner.participant.make_topic(&topic.name, &topic.type_name, TopicQos::default(), false)?;
        let any = AnyDataWriter::create::<()>(&publisher, inner, qos.clone(), Flow::default(), |_, flows, unicast| {
            WriterSpec {
                topic_name: topic.name.clone(),
                type_name: topic.type_name.clone(),
                keyed: topic.has_key,
                qos,
                publisher: publisher.qos(),
                group: None,
                topic_data: topic.topic_data.clone(),
                type_information: topic.type_information.clone(),
                max_serialized_len: None,
                flows,
                unicast,
                filters: None,
            }
        })?;
        any.core.engine.call(|driver, _| Ok(driver.core.make_relay(any.core.handle)?))?;
        Ok(RelayWriter { any })
    }
}

impl RelayReader {
    /// Takes everything there is. `visit` is told of each sample what it does, and sees its payload; it must not call
    /// anything on this participant's entities. A `sequence_number` of zero is no change, but the news that writers have gone.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn take(&self, mut visit: impl FnMut(&SampleInfo, ChangeKind, &[u8])) -> Result<()> {
        let core = &*self.any.core;
        core.engine.call(|driver, now| {
            core.signal.clear(StatusMask::DATA_AVAILABLE);
            let mut cursor = ReadCursor::default();
            while let Some(found) = driver.core.read_next(now, core.handle, Selector::TAKE, &mut cursor)? {
                visit(&found.info, found.kind, found.payload);
            }
            Ok(driver.core.end_read(now, core.handle)?)
        })
    }

    /// Acknowledges everything that was taken: it is safe.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn acknowledge_taken(&self) -> Result<()> {
        let core = &*self.any.core;
        core.engine.call(|driver, _| Ok(driver.core.acknowledge_taken(core.handle)?))
    }

    /// Of each matched writer, the first change that came and could not be kept, since it is larger than the reader's memory, or its
    /// key cannot be read. Nothing from it on is acknowledged.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn unkept(&self) -> Result<Vec<SampleIdentity>> {
        let core = &*self.any.core;
        core.engine.call(|driver, _| Ok(driver.core.unkept(core.handle)?))
    }

    /// Whether all has arrived that its writers, other relays among them, had when they were matched.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn has_history(&self) -> Result<bool> {
        let core = &*self.any.core;
        core.engine.look(|driver| Ok(driver.core.has_history(core.handle)?))
    }

    /// Up to which change a writer has announced that it has written. `None` if it is not matched, or has not said so yet.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn announced_by(&self, writer: Guid) -> Result<Option<SequenceNumber>> {
        let core = &*self.any.core;
        core.engine.look(|driver| Ok(driver.core.announced_by(core.handle, writer)?))
    }

    /// What it is besides that.
    #[must_use]
    pub fn as_any(&self) -> &AnyDataReader {
        &self.any
    }
}

impl RelayWriter {
    /// Announces it, with what it has.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn enable(&self) -> Result<()> {
        self.any.enable()
    }

    /// Passes a change on. Does not wait: false if there is no room in its history.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if it can never fit, [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn write(&self, change: &RelayedChange<'_>) -> Result<bool> {
        let new = NewChange {
            kind: change.kind,
            key_hash: change.instance.0,
            source_timestamp: Some(change.source_timestamp),
            destinations: &[],
            payload_len: change.payload.len(),
        };
        let core = &*self.any.core;
        core.engine.call(|driver, now| match driver.core.relay(now, core.handle, &new, change.origin, change.payload) {
            Ok(_) => Ok(true),
            Err(WriteError::WouldBlock) => Ok(false),
            Err(WriteError::Refused(error)) => Err(Error::from(error)),
            Err(WriteError::Serialize) => unreachable!("copying does not fail"),
        })
    }

    /// Forgets an instance with its changes. Each change is removed as soon as all matched reliable readers have acknowledged it; readers
    /// that are matched after that do not hear of it. Readers that have it keep it. Changes that are written later are not forgotten. Until
    /// all are removed the instance counts for `max_instances`, and [`write`](Self::write) finds no room where this limit is in the way.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn forget(&self, instance: InstanceHandle) -> Result<()> {
        let core = &*self.any.core;
        core.engine.call(|driver, _| Ok(driver.core.forget_instance(core.handle, instance)?))
    }

    /// Forgets the changes of an original writer above a number, as [`forget`](Self::forget) does those of an instance.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn forget_relayed(&self, origin: Guid, above: SequenceNumber) -> Result<()> {
        let core = &*self.any.core;
        core.engine.call(|driver, _| Ok(driver.core.forget_relayed(core.handle, origin, above)?))
    }

    /// What it is besides that.
    #[must_use]
    pub fn as_any(&self) -> &AnyDataWriter {
        &self.any
    }
}

impl fmt::Debug for RelayReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}

impl fmt::Debug for RelayWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}
