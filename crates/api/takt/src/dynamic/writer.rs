//! Writers of types that are known only at run time.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use takt_core::{ChangeKind, KeyHash, NewChange, WriteError, WriterSpec};
use takt_xtypes::Representation;
use takt_xtypes::dynamic::{DynamicData, DynamicType};

use super::DynamicTypeSupport;
use crate::content_filter::Factory;
use crate::qos::{DataWriterQos, TopicData, TopicQos};
use crate::writer::KEY_PAYLOAD_LEN_MIN;
use crate::{AnyDataWriter, Error, Flow, Publisher, Result};

/// Writer of a type that is known only at run time. Dereferences to [`AnyDataWriter`], which has
/// the methods that do not depend on the type. Clones refer to the same writer, which is deleted
/// with the last of them.
#[derive(Clone)]
pub struct DynamicDataWriter {
    any: AnyDataWriter,
    type_: DynamicTypeSupport,
}

impl Publisher {
    /// Creates a writer of a type that is known only at run time.
    ///
    /// # Errors
    /// As [`create_datawriter`](Self::create_datawriter), and [`Error::IllegalOperation`] if the
    /// type is opaque.
    pub fn create_dynamic_datawriter(
        &self,
        topic_name: &str,
        type_: &DynamicTypeSupport,
        qos: DataWriterQos,
    ) -> Result<DynamicDataWriter> {
        if type_.dynamic_type().is_none() {
            return Err(Error::IllegalOperation { what: "an opaque type can be read but not written" });
        }
        let topic = self.inner.participant.make_topic(topic_name, type_.type_name(), TopicQos::default(), false)?;
        let flow = Flow::default();
        let any = AnyDataWriter::create::<DynamicData>(self, topic, qos.clone(), flow, |driver, flows, unicast| {
            WriterSpec {
                topic_name: topic_name.to_owned(),
                type_name: type_.type_name().to_owned(),
                keyed: type_.has_key(),
                qos,
                publisher: self.qos(),
                group: Some(self.inner.group),
                topic_data: TopicData::default(),
                type_information: type_.announce(&mut driver.core),
                max_serialized_len: None,
                flows,
                unicast,
                filters: Some(Arc::new(Factory::of_known(type_))),
            }
        })?;
        Ok(DynamicDataWriter { any, type_: type_.clone() })
    }
}

impl DynamicDataWriter {
    /// Publishes a sample.
    ///
    /// # Errors
    /// As [`DataWriter::write`](crate::DataWriter::write).
    pub fn write(&self, data: &DynamicData) -> Result<()> {
        let payload = self.dynamic_type().encode(data, self.core.representation)?;
        self.publish(ChangeKind::Alive, data, &payload)
    }

    /// Disposes the instance of the data. Only the key members of `data` are used.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`Error::IllegalOperation`] if the type has no key.
    pub fn dispose(&self, data: &DynamicData) -> Result<()> {
        self.end_instance(ChangeKind::Disposed, data)
    }

    /// Unregisters this writer from the instance of the data. Also disposes the instance if
    /// `WRITER_DATA_LIFECYCLE.autodispose_unregistered_instances` is set.
    ///
    /// # Errors
    /// As [`dispose`](Self::dispose).
    pub fn unregister_instance(&self, data: &DynamicData) -> Result<()> {
        let autodispose = self.core.autodispose.load(Ordering::Relaxed);
        self.end_instance(if autodispose { ChangeKind::DisposedUnregistered } else { ChangeKind::Unregistered }, data)
    }

    fn end_instance(&self, kind: ChangeKind, data: &DynamicData) -> Result<()> {
        if !self.type_.has_key() {
            return Err(Error::IllegalOperation { what: "the type has no key, so the topic has no instances" });
        }
        let mut payload = self.dynamic_type().encode_key(data, self.core.representation)?;
        payload.resize(payload.len().max(KEY_PAYLOAD_LEN_MIN), 0);
        self.publish(kind, data, &payload)
    }

    fn dynamic_type(&self) -> &DynamicType {
        self.type_.dynamic_type().expect("creation of the writer rejects opaque types")
    }

    fn publish(&self, kind: ChangeKind, data: &DynamicData, payload: &[u8]) -> Result<()> {
        let key_hash: KeyHash = self.dynamic_type().key_hash(data, Representation::Xcdr2)?;
        let payload_len = payload.len();
        let change = NewChange { kind, key_hash, source_timestamp: None, destinations: &[], payload_len };
        self.core.check_len(payload_len)?;
        self.core.write_with(|driver, now| {
            let written = driver.core.write(now, self.core.handle, &change, |out| {
                out[..payload.len()].copy_from_slice(payload);
                Some(payload.len())
            });
            match written {
                Ok(_) => Ok(Some(())),
                Err(WriteError::WouldBlock) => Ok(None),
                Err(WriteError::Refused(error)) => Err(self.core.length_error(error, payload_len)),
                Err(WriteError::Serialize) => unreachable!("copying does not fail"),
            }
        })
    }

    /// Returns the type of the samples.
    #[must_use]
    pub fn type_support(&self) -> &DynamicTypeSupport {
        &self.type_
    }
}

impl Deref for DynamicDataWriter {
    type Target = AnyDataWriter;

    fn deref(&self) -> &AnyDataWriter {
        &self.any
    }
}

impl fmt::Debug for DynamicDataWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicDataWriter")
            .field("guid", &self.guid())
            .field("topic_name", &self.topic_name())
            .field("type", &self.type_)
            .finish_non_exhaustive()
    }
}
