//! Topics: a name and a type that publications and subscriptions meet at (DDS 1.4 §2.2.2.3.2).

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

/// A topic of type `T`. What it is besides that is in [`AnyTopic`], whose methods it has. Handles are clones of one
/// another; the topic goes with the last handle and entity that uses it.
pub struct Topic<T> {
    any: AnyTopic,
    type_: PhantomData<fn(&T)>,
}

/// A topic, whatever its type.
#[derive(Clone)]
pub struct AnyTopic {
    pub(crate) inner: Arc<TopicInner>,
}

/// What a topic is, its type forgotten.
pub(crate) struct TopicInner {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) parent: ParentId,
    /// Whether the participant counts it among the topics of its name, all of which have one type.
    pub(crate) is_registered: bool,
    pub(crate) qos: PiMutex<TopicQos>,
    /// Inconsistent topics that were told of.
    pub(crate) told: AtomicU32,
}

const UNDISTURBED: &str = "no code of others runs under this lock";

impl TopicInner {
    pub(crate) fn qos(&self) -> TopicQos {
        self.qos.lock().expect(UNDISTURBED).clone()
    }
}

impl<T: Readable> Topic<T> {
    /// Of what the participant has registered.
    pub(crate) fn from_inner(inner: Arc<TopicInner>) -> Self {
        Self { any: AnyTopic { inner }, type_: PhantomData }
    }
}

impl AnyTopic {
    pub(crate) fn from_inner(inner: Arc<TopicInner>) -> Self {
        Self { inner }
    }

    /// The name that endpoints are matched by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The name of the type, which endpoints are matched by as well.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.inner.type_name
    }

    /// The topic's policies.
    #[must_use]
    pub fn qos(&self) -> TopicQos {
        self.inner.qos()
    }

    /// Changes the topic's policies. TOPIC_DATA are told to others with its writers and readers; all else is what
    /// endpoints that are created later may take over.
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

    /// How many endpoints of others have the topic's name and another type (DDS 1.4 §2.2.4.1).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed.
    pub fn inconsistent_topic_status(&self) -> Result<InconsistentTopicStatus> {
        let name = &self.inner.name;
        let total_count = self.inner.participant.engine.look(|driver| Ok(driver.core.inconsistent_topics(name)))?;
        let told = self.inner.told.swap(total_count, Ordering::Relaxed);
        Ok(InconsistentTopicStatus { total_count, total_count_change: total_count.saturating_sub(told) })
    }

    /// The condition that is true while endpoints of another type were found that nobody has seen.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed.
    pub fn status_condition(&self) -> Result<StatusCondition> {
        self.inner.participant.parent_condition(self.inner.parent)
    }

    /// Has inconsistent topics told to `listener`, in place of a former one.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed.
    pub fn set_listener(&self, listener: Box<dyn TopicListener>) -> Result<()> {
        let listener = Some(Listener::Topic(listener));
        self.inner.participant.set_parent_listener(self.inner.parent, listener, StatusMask::ALL)
    }

    /// Has them told to nobody, or to the participant's listener.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed.
    pub fn clear_listener(&self) -> Result<()> {
        self.inner.participant.set_parent_listener(self.inner.parent, None, StatusMask::NONE)
    }

    /// Policies for a writer that takes over what the topic says (`copy_from_topic_qos`).
    #[must_use]
    pub fn datawriter_qos(&self) -> DataWriterQos {
        let mut qos = DataWriterQos::default();
        qos.copy_from_topic(&self.inner.qos.lock().expect(UNDISTURBED));
        qos
    }

    /// Policies for a reader that takes over what the topic says (`copy_from_topic_qos`).
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
            self.participant.forget_topic(&self.name);
        }
        self.participant.remove_parent(self.parent);
    }
}
