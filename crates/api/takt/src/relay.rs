//! Relay endpoints, which store changes of other writers and forward them. They are the basis of a
//! durability service (DDS 1.4 §2.2.3.4, RTPS 2.5 §8.7.9).
//!
//! A [`RelayReader`] acknowledges changes that its owner has stored safely, not changes that have
//! arrived. A [`RelayWriter`] writes changes under the identity of their original writer. A reader
//! that has received a change from its original writer or from another relay drops the duplicate.
//! Relay endpoints do not decode values; types are needed only to extract keys.
//!
//! Every reader that matches a [`RelayWriter`] receives its history. Changes forwarded later go
//! only to readers of Takt that request history alone.

use std::fmt;

use takt_core::{NewChange, ReadCursor, ReaderSpec, Selector, WriteError, WriterSpec};
use takt_wire::{Guid, SequenceNumber, Timestamp};

pub use takt_core::{ChangeKind, DURABILITY_SERVICE};
pub use takt_wire::inline_qos::SampleIdentity;

use crate::dynamic::{DynamicTypeSupport, key_extractor};
use crate::qos::{
    DataReaderQos, DataWriterQos, EntityFactory, PublisherQos, SubscriberQos, TopicData, TopicQos, UserData,
};
use crate::{AnyDataReader, AnyDataWriter, DomainParticipant, Error, Flow, InstanceHandle, Result, SampleInfo};

/// Change as it is forwarded.
#[derive(Clone, Copy, Debug)]
pub struct RelayedChange<'a> {
    /// Data, dispose or unregister.
    pub kind: ChangeKind,
    /// Handle of the instance.
    pub instance: InstanceHandle,
    /// Original writer and the change's sequence number there.
    pub origin: SampleIdentity,
    /// Time at which the original writer wrote the change.
    pub source_timestamp: Timestamp,
    /// Serialized data or key, with the encapsulation header.
    pub payload: &'a [u8],
}

/// Topic that a relay forwards, as announced by its writers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayTopic {
    /// Name of the topic.
    pub name: String,
    /// Name of the topic's type.
    pub type_name: String,
    /// Whether the type has a key.
    pub has_key: bool,
    /// Announced TypeInformation, if any.
    pub type_information: Option<Vec<u8>>,
    /// TOPIC_DATA.
    pub topic_data: TopicData,
}

/// Reader that receives changes to be stored. Clones refer to the same reader, which is deleted
/// with the last of them.
#[derive(Clone)]
pub struct RelayReader {
    any: AnyDataReader,
}

/// Writer that forwards stored changes. Clones refer to the same writer, which is deleted with the
/// last of them.
#[derive(Clone)]
pub struct RelayWriter {
    any: AnyDataWriter,
}

fn disabled_entities() -> EntityFactory {
    EntityFactory { autoenable_created_entities: false }
}

/// Marks USER_DATA as that of a durability service.
fn mark_user_data(user_data: &UserData) -> UserData {
    if user_data.0.starts_with(DURABILITY_SERVICE) {
        return user_data.clone();
    }
    let mut marked = DURABILITY_SERVICE.to_vec();
    marked.extend_from_slice(&user_data.0);
    UserData(marked)
}

impl DomainParticipant {
    /// Creates a relay reader, marked by its USER_DATA.
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
        let qos = DataReaderQos { user_data: mark_user_data(&qos.user_data), ..qos.clone() };
        let subscriber =
            self.create_subscriber(SubscriberQos { entity_factory: disabled_entities(), ..subscriber.clone() })?;
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
                key: key_extractor(type_),
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

    /// Creates a disabled relay writer, marked by its USER_DATA. Write its history before
    /// [`enable`](RelayWriter::enable) announces it.
    ///
    /// # Errors
    /// As [`create_datawriter`](crate::Publisher::create_datawriter).
    pub fn create_relay_writer(
        &self,
        topic: &RelayTopic,
        qos: &DataWriterQos,
        publisher: &PublisherQos,
    ) -> Result<RelayWriter> {
        let qos = DataWriterQos { user_data: mark_user_data(&qos.user_data), ..qos.clone() };
        let publisher =
            self.create_publisher(PublisherQos { entity_factory: disabled_entities(), ..publisher.clone() })?;
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
    /// Takes all available samples. `visit` receives the info, the kind and the payload of each
    /// sample, and must not call methods of this participant's entities. A `sequence_number` of
    /// zero is not a change; it reports that writers are gone.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn take(&self, mut visit: impl FnMut(&SampleInfo, ChangeKind, &[u8])) -> Result<()> {
        let mut call = self.any.core.begin_read()?;
        let (now, core, mut cursor) = (call.now, call.core()?, ReadCursor::default());
        while let Some(found) = core.read_next(now, self.any.core.handle, Selector::TAKE, &mut cursor)? {
            visit(&found.info, found.kind, found.payload);
        }
        call.finish()
    }

    /// Acknowledges all changes taken so far, which are now stored safely.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn acknowledge_taken(&self) -> Result<()> {
        let core = &*self.any.core;
        core.engine.call(|driver, _| Ok(driver.core.acknowledge_taken(core.handle)?))
    }

    /// Returns, for each matched writer, the first received change that could not be kept because
    /// it exceeds the reader's memory or its key is unreadable. This change and all later ones of
    /// that writer are not acknowledged.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn first_unstored(&self) -> Result<Vec<SampleIdentity>> {
        let core = &*self.any.core;
        core.engine.call(|driver, _| Ok(driver.core.first_unstored(core.handle)?))
    }

    /// Reports whether all changes have arrived that the matched writers, including other relays,
    /// held when they were matched.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn has_history(&self) -> Result<bool> {
        let core = &*self.any.core;
        core.engine.inspect(|driver| Ok(driver.core.has_history(core.handle)?))
    }

    /// Returns the last sequence number that a writer has announced. `None` if the writer is not
    /// matched or has not announced any.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn last_announced(&self, writer: Guid) -> Result<Option<SequenceNumber>> {
        let core = &*self.any.core;
        core.engine.inspect(|driver| Ok(driver.core.last_announced(core.handle, writer)?))
    }

    /// Returns the type-independent part of the reader.
    #[must_use]
    pub fn as_any(&self) -> &AnyDataReader {
        &self.any
    }
}

impl RelayWriter {
    /// Announces the writer together with its history.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn enable(&self) -> Result<()> {
        self.any.enable()
    }

    /// Forwards a change without blocking. Returns false if the history is full.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the change exceeds the capacity of the history,
    /// [`Error::AlreadyDeleted`] after the participant was closed.
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

    /// Removes an instance and its changes from the history. Each change is removed as soon as all
    /// matched reliable readers have acknowledged it. Readers matched after that do not receive it;
    /// readers that already have it keep it. Changes written later are not affected. Until all
    /// changes are removed the instance counts toward `max_instances`, so [`write`](Self::write)
    /// may return false because of this limit.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn discard_instance(&self, instance: InstanceHandle) -> Result<()> {
        let core = &*self.any.core;
        core.engine.call(|driver, _| Ok(driver.core.discard_instance(core.handle, instance)?))
    }

    /// Removes the changes of an original writer whose sequence number exceeds `above`, in the
    /// manner of [`discard_instance`](Self::discard_instance).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn discard_relayed(&self, origin: Guid, above: SequenceNumber) -> Result<()> {
        let core = &*self.any.core;
        core.engine.call(|driver, _| Ok(driver.core.discard_relayed(core.handle, origin, above)?))
    }

    /// Returns the type-independent part of the writer.
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
