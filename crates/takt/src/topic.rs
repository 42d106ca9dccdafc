//! Topics: a name and a type that publications and subscriptions meet at (DDS 1.4 §2.2.2.3.2).

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::Readable;
use crate::participant::ParticipantInner;
use crate::qos::{DataReaderQos, DataWriterQos, TopicQos};

/// A topic of type `T`. Handles are clones of one another; the topic goes with the last handle and entity that uses it.
pub struct Topic<T> {
    pub(crate) inner: Arc<TopicInner>,
    type_: PhantomData<fn(&T)>,
}

/// What a topic is, its type forgotten.
pub(crate) struct TopicInner {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) name: String,
    pub(crate) qos: TopicQos,
}

impl<T: Readable> Topic<T> {
    /// Of what the participant has registered.
    pub(crate) fn new(inner: TopicInner) -> Self {
        Self { inner: Arc::new(inner), type_: PhantomData }
    }

    /// The name that endpoints are matched by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The name of the type, which endpoints are matched by as well.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        T::TYPE_NAME
    }

    /// The topic's policies.
    #[must_use]
    pub fn qos(&self) -> &TopicQos {
        &self.inner.qos
    }

    /// Policies for a writer that takes over what the topic says (`copy_from_topic_qos`).
    #[must_use]
    pub fn datawriter_qos(&self) -> DataWriterQos {
        let topic = self.inner.qos.clone();
        DataWriterQos {
            durability: topic.durability,
            durability_service: topic.durability_service,
            deadline: topic.deadline,
            latency_budget: topic.latency_budget,
            liveliness: topic.liveliness,
            reliability: topic.reliability,
            destination_order: topic.destination_order,
            history: topic.history,
            resource_limits: topic.resource_limits,
            transport_priority: topic.transport_priority,
            lifespan: topic.lifespan,
            ownership: topic.ownership,
            data_representation: topic.data_representation,
            ..DataWriterQos::default()
        }
    }

    /// Policies for a reader that takes over what the topic says (`copy_from_topic_qos`).
    #[must_use]
    pub fn datareader_qos(&self) -> DataReaderQos {
        let topic = self.inner.qos.clone();
        DataReaderQos {
            durability: topic.durability,
            deadline: topic.deadline,
            latency_budget: topic.latency_budget,
            liveliness: topic.liveliness,
            reliability: topic.reliability,
            destination_order: topic.destination_order,
            history: topic.history,
            resource_limits: topic.resource_limits,
            ownership: topic.ownership,
            ..DataReaderQos::default()
        }
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), type_: PhantomData }
    }
}

impl<T: Readable> fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic")
            .field("name", &self.name())
            .field("type_name", &self.type_name())
            .finish_non_exhaustive()
    }
}

impl Drop for TopicInner {
    fn drop(&mut self) {
        self.participant.forget_topic(&self.name);
    }
}
