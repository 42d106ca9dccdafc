//! Writers of types that are known at run time.

use std::fmt;
use std::sync::Arc;

use takt_core::{ChangeKind, FlowTag, KeyHash, NewChange, WriteError, WriterHandle, WriterSpec};
use takt_wire::Guid;
use takt_xtypes::Representation;
use takt_xtypes::dynamic::{DynamicData, DynamicType};

use super::DynamicTypeSupport;
use crate::condition::StatusCondition;
use crate::publisher::PublisherInner;
use crate::qos::{DataWriterQos, TopicData};
use crate::runtime::clock;
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::runtime::state::Target;
use crate::status::{MatchedStatus, Signal, StatusMask};
use crate::writer::{KEY_PAYLOAD_LEN_MIN, representation};
use crate::{Duration, Error, Publisher, Result};

/// Publishes samples of a type that is known at run time. Deleted when dropped.
pub struct DynamicDataWriter {
    handle: WriterHandle,
    guid: Guid,
    representation: Representation,
    signal: Arc<Signal>,
    progress: Arc<EventCount>,
    engine: Arc<Engine>,
    topic_name: String,
    type_: DynamicTypeSupport,
    qos: DataWriterQos,
    /// Keeps the publisher, and by it the participant.
    _publisher: Arc<PublisherInner>,
}

impl Publisher {
    /// Creates a writer of a type that is known at run time.
    ///
    /// # Errors
    /// As [`create_datawriter`](Self::create_datawriter), and [`Error::IllegalOperation`] if the type is opaque.
    pub fn create_dynamic_datawriter(
        &self,
        topic_name: &str,
        type_: &DynamicTypeSupport,
        qos: DataWriterQos,
    ) -> Result<DynamicDataWriter> {
        if type_.dynamic_type().is_none() {
            return Err(Error::IllegalOperation { what: "an opaque type can be read only" });
        }
        let representation = representation(&qos.data_representation)?;
        let engine = Arc::clone(&self.inner.participant.engine);
        let signal = Arc::new(Signal::new());
        let progress = Arc::new(EventCount::new());
        let (handle, guid) = engine.call_state(|state, now| {
            let driver = state.driver()?;
            let spec = WriterSpec {
                topic_name: topic_name.to_owned(),
                type_name: type_.type_name().to_owned(),
                keyed: type_.has_key(),
                qos: qos.clone(),
                publisher: self.qos().clone(),
                group: Some(self.inner.group),
                topic_data: TopicData::default(),
                type_information: type_.announce(&mut driver.core),
                max_serialized_len: None,
                flow: FlowTag::default(),
                unicast: Vec::new(),
            };
            let handle = driver.core.create_writer(now, spec)?;
            let guid = driver.core.writer_guid(handle)?;
            state.add_endpoint(Target::Writer(handle), Arc::clone(&signal), Arc::clone(&progress));
            Ok((handle, guid))
        })?;
        Ok(DynamicDataWriter {
            handle,
            guid,
            representation,
            signal,
            progress,
            engine,
            topic_name: topic_name.to_owned(),
            type_: type_.clone(),
            qos,
            _publisher: Arc::clone(&self.inner),
        })
    }
}

impl DynamicDataWriter {
    /// Publishes a sample, as [`DataWriter::write`](crate::DataWriter::write) does.
    ///
    /// # Errors
    /// As there.
    pub fn write(&self, data: &DynamicData) -> Result<()> {
        let payload = self.dynamic_type().encode(data, self.representation)?;
        self.publish(ChangeKind::Alive, data, &payload)
    }

    /// Says that the instance of the data exists no more. Only the key members matter.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`Error::IllegalOperation`] if the type has no key.
    pub fn dispose(&self, data: &DynamicData) -> Result<()> {
        self.end_instance(ChangeKind::Disposed, data)
    }

    /// Says that this writer will not update the instance of the data any more, and disposes it if
    /// `WRITER_DATA_LIFECYCLE.autodispose_unregistered_instances`.
    ///
    /// # Errors
    /// As [`dispose`](Self::dispose).
    pub fn unregister_instance(&self, data: &DynamicData) -> Result<()> {
        let autodispose = self.qos.writer_data_lifecycle.autodispose_unregistered_instances;
        self.end_instance(if autodispose { ChangeKind::DisposedUnregistered } else { ChangeKind::Unregistered }, data)
    }

    fn end_instance(&self, kind: ChangeKind, data: &DynamicData) -> Result<()> {
        if !self.type_.has_key() {
            return Err(Error::IllegalOperation { what: "the type has no key, so the topic has no instances" });
        }
        let mut payload = self.dynamic_type().encode_key(data, self.representation)?;
        payload.resize(payload.len().max(KEY_PAYLOAD_LEN_MIN), 0);
        self.publish(kind, data, &payload)
    }

    fn dynamic_type(&self) -> &DynamicType {
        self.type_.dynamic_type().expect("a writer's type is not opaque: that is checked when it is created")
    }

    fn publish(&self, kind: ChangeKind, data: &DynamicData, payload: &[u8]) -> Result<()> {
        let key_hash: KeyHash = self.dynamic_type().key_hash(data, self.representation)?;
        let payload_len = payload.len();
        let change = NewChange { kind, key_hash, source_timestamp: None, destinations: &[], payload_len };
        let patience = self.qos.reliability.max_blocking_time;
        self.engine.block_on(
            &self.progress,
            || clock::deadline(clock::now(), patience),
            |driver, now| {
                let written = driver.core.write(now, self.handle, &change, |out| {
                    out[..payload.len()].copy_from_slice(payload);
                    Some(payload.len())
                });
                match written {
                    Ok(_) => Ok(Some(())),
                    Err(WriteError::WouldBlock) => Ok(None),
                    Err(WriteError::Refused(error)) => Err(error.into()),
                    Err(WriteError::Serialize) => unreachable!("copying does not fail"),
                }
            },
        )
    }

    /// Waits until all reliable readers that are matched now have acknowledged everything written.
    ///
    /// # Errors
    /// [`Error::Timeout`] if some did not in time.
    pub fn wait_for_acknowledgments(&self, max_wait: Duration) -> Result<()> {
        self.engine.block_on(
            &self.progress,
            || clock::deadline(clock::now(), max_wait),
            |driver, _| Ok(driver.core.is_acknowledged(self.handle, None)?.then_some(())),
        )
    }

    /// How many readers are matched, and what changed since this was last asked.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn publication_matched_status(&self) -> Result<MatchedStatus> {
        self.engine.look(|driver| {
            self.signal.clear(StatusMask::PUBLICATION_MATCHED);
            Ok(driver.core.publication_matched_status(self.handle)?)
        })
    }

    /// The condition that is true while a status has changed.
    #[must_use]
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition { signal: Arc::clone(&self.signal), engine: Arc::clone(&self.engine) }
    }

    /// The writer's identity in the domain.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// The topic written to.
    #[must_use]
    pub fn topic_name(&self) -> &str {
        &self.topic_name
    }

    /// The type.
    #[must_use]
    pub fn type_support(&self) -> &DynamicTypeSupport {
        &self.type_
    }

    /// The writer's policies.
    #[must_use]
    pub fn qos(&self) -> &DataWriterQos {
        &self.qos
    }
}

impl Drop for DynamicDataWriter {
    fn drop(&mut self) {
        let result = self.engine.call_state(|state, now| {
            state.driver()?.core.delete_writer(now, self.handle)?;
            Ok(state.remove_endpoint(Target::Writer(self.handle)))
        });
        match result {
            // Another thread than the owner's of an inline participant cannot delete; the participant's end will.
            Ok(_) | Err(Error::AlreadyDeleted | Error::IllegalOperation { .. }) => {}
            Err(error) => debug_assert!(false, "deleting a writer failed: {error}"),
        }
    }
}

impl fmt::Debug for DynamicDataWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicDataWriter")
            .field("guid", &self.guid)
            .field("topic_name", &self.topic_name)
            .field("type", &self.type_)
            .finish_non_exhaustive()
    }
}
