//! Topics: the name and type by which writers and readers match (DDS 1.4 §2.2.2.3.2).

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::condition::StatusCondition;
use crate::listener::TopicListener;
use crate::participant::ParticipantInner;
use crate::qos::{DataReaderQos, DataWriterQos, TopicQos};
use crate::runtime::listeners::{Listener, ParentId};
use crate::runtime::pi_mutex::PiMutex;
use crate::status::{InconsistentTopicStatus, StatusMask};
use crate::{Readable, Result};

/// Topic of type `T`. Dereferences to [`AnyTopic`], which has the type-independent methods. Clones
/// refer to the same topic, which is deleted with its last handle and endpoint.
pub struct Topic<T> {
    any: AnyTopic,
    type_: PhantomData<fn(&T)>,
}

/// Topic without its type.
#[derive(Clone)]
pub struct AnyTopic {
    pub(crate) inner: Arc<TopicInner>,
}

/// State of a topic.
pub(crate) struct TopicInner {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) parent: ParentId,
    /// The participant counts the topic among those of its name, which all have the same type.
    pub(crate) is_registered: bool,
    pub(crate) qos: PiMutex<TopicQos>,
    /// Number of inconsistent topics at the last read of the status.
    pub(crate) reported_count: AtomicU32,
}

const UNDISTURBED: &str = "the lock is not poisoned: no user code runs under it";

impl TopicInner {
    pub(crate) fn qos(&self) -> TopicQos {
        self.qos.lock().expect(UNDISTURBED).clone()
    }
}

impl<T: Readable> Topic<T> {
    /// Adds the type to a topic that the participant has registered.
    pub(crate) fn from_inner(inner: Arc<TopicInner>) -> Self {
        Self { any: AnyTopic { inner }, type_: PhantomData }
    }
}

impl AnyTopic {
    pub(crate) fn from_inner(inner: Arc<TopicInner>) -> Self {
        Self { inner }
    }

    /// Returns the name of the topic, by which endpoints match.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the name of the type, by which endpoints match as well.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.inner.type_name
    }

    /// Returns the policies of the topic.
    #[must_use]
    pub fn qos(&self) -> TopicQos {
        self.inner.qos()
    }

    /// Changes the policies of the topic. TOPIC_DATA is announced with the topic's writers and
    /// readers. All other policies are defaults that endpoints created later may copy.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed.
    pub fn set_qos(&self, qos: TopicQos) -> Result<()> {
        let (writers, readers) = self.inner.participant.endpoints();
        self.inner.participant.engine.call(|driver, now| {
            for writer in writers.iter().filter(|writer| Arc::ptr_eq(&writer.core.topic, &self.inner)) {
                driver.core.set_writer_topic_data(now, writer.core.handle, &qos.topic_data)?;
            }
            for reader in readers.iter().filter(|reader| Arc::ptr_eq(&reader.core.topic, &self.inner)) {
                driver.core.set_reader_topic_data(now, reader.core.handle, &qos.topic_data)?;
            }
            Ok(())
        })?;
        *self.inner.qos.lock().expect(UNDISTURBED) = qos;
        Ok(())
    }

    /// Returns the number of remote endpoints that have the topic's name but another type
    /// (DDS 1.4 §2.2.4.1).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed.
    pub fn inconsistent_topic_status(&self) -> Result<InconsistentTopicStatus> {
        let name = &self.inner.name;
        let total_count = self.inner.participant.engine.inspect(|driver| Ok(driver.core.inconsistent_topics(name)))?;
        let reported = self.inner.reported_count.swap(total_count, Ordering::Relaxed);
        Ok(InconsistentTopicStatus { total_count, total_count_change: total_count.saturating_sub(reported) })
    }

    /// Returns the condition that is true while inconsistent topics were found and the status has
    /// not been read.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed.
    pub fn status_condition(&self) -> Result<StatusCondition> {
        self.inner.participant.parent_condition(self.inner.parent)
    }

    /// Sets the listener of the topic, replacing a former one. It is called for inconsistent
    /// topics.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed.
    pub fn set_listener(&self, listener: Box<dyn TopicListener>) -> Result<()> {
        let listener = Some(Listener::Topic(listener));
        self.inner.participant.set_parent_listener(self.inner.parent, listener, StatusMask::ALL)
    }

    /// Removes the listener. Its status goes to the listener of the participant.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed.
    pub fn clear_listener(&self) -> Result<()> {
        self.inner.participant.set_parent_listener(self.inner.parent, None, StatusMask::NONE)
    }

    /// Returns QoS for a writer, with the policies of the topic copied (`copy_from_topic_qos`).
    #[must_use]
    pub fn datawriter_qos(&self) -> DataWriterQos {
        let mut qos = DataWriterQos::default();
        qos.copy_from_topic(&self.inner.qos.lock().expect(UNDISTURBED));
        qos
    }

    /// Returns QoS for a reader, with the policies of the topic copied (`copy_from_topic_qos`).
    #[must_use]
    pub fn datareader_qos(&self) -> DataReaderQos {
        let mut qos = DataReaderQos::default();
        qos.copy_from_topic(&self.inner.qos.lock().expect(UNDISTURBED));
        qos
    }
}

impl<T> Deref for Topic<T> {
    type Target = AnyTopic;

    fn deref(&self) -> &AnyTopic {
        &self.any
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self { any: self.any.clone(), type_: PhantomData }
    }
}

impl<T> fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}

impl fmt::Debug for AnyTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic")
            .field("name", &self.name())
            .field("type_name", &self.type_name())
            .finish_non_exhaustive()
    }
}

impl Drop for TopicInner {
    fn drop(&mut self) {
        if self.is_registered {
            self.participant.unregister_topic(&self.name);
        }
        self.participant.remove_parent(self.parent);
    }
}
